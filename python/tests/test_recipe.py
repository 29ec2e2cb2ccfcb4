# SPDX-License-Identifier: BSD-3-Clause
"""The estimators and the program use the same preprocessing and defaults, so the same table gives equivalent models."""

import gzip
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.metrics import r2_score  # noqa: E402
from sklearn.model_selection import GridSearchCV  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402

import mercer  # noqa: E402
from mercer import Model  # noqa: E402
from untuned import KernelClassifier, KernelRegressor  # noqa: E402

HOUSING = Path(os.environ.get("MERCER_DATA", "")) / "tables" / "housing_train.csv.gz"


def program(*arguments, cwd):
    done = subprocess.run(
        [sys.executable, "-m", "mercer", *map(str, arguments)],
        cwd=cwd,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(Path(mercer.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def write_table(path, X, y):
    names = [f"f{j}" for j in range(X.shape[1])]
    np.savetxt(path, np.column_stack([X, y]), delimiter=",", fmt="%.9g", header=",".join([*names, "y"]), comments="")


@pytest.fixture(scope="module")
def table():
    """Return five relevant columns with very different units: X (1500, 5), y (1500)."""
    rng = np.random.default_rng(3)
    plain = rng.normal(size=(1500, 5))
    y = np.sin(2 * plain[:, 0]) + plain[:, 1] * plain[:, 2] + 0.5 * plain[:, 3] - plain[:, 4] ** 2 / 3
    y += 0.1 * rng.normal(size=1500)
    return plain * [1, 1e-3, 300, 1e5, 12] + [40, 0, 1e4, -3e5, 1900], y


@pytest.mark.parametrize("kind", ["csv", "npy"])
def test_program_and_estimator_agree(table, kind, tmp_path):
    X, y = table[0].astype("f"), table[1]
    if kind == "csv":
        write_table(tmp_path / "train.csv", X[:1000], y[:1000])
        data = ["--x", "train.csv", "--target", "y"]
    else:
        np.save(tmp_path / "x.npy", X[:1000])
        np.save(tmp_path / "y.npy", y[:1000])
        data = ["--x", "x.npy", "--y", "y.npy", "--task", "regression"]
    program("train", *data, "--tune", "off", "-o", "model", "-q", cwd=tmp_path)
    theirs = Model.load(tmp_path / "model")
    ours = KernelRegressor(random_state=0).fit(X[:1000], y[:1000])
    assert ours.model_.preprocess == theirs.preprocess == "standardize"
    assert str(ours.model_.kernel) == str(theirs.kernel)
    scores = [r2_score(y[1000:], model.predict(X[1000:])) for model in (ours, theirs)]
    assert scores[0] > 0.8
    # Centers, rows and objective are the same, so the scores differ only by rounding.
    np.testing.assert_allclose(scores[0], scores[1], atol=2e-3)


def test_a_table_needs_no_scaler(table):
    X, y = table
    scaler = StandardScaler().fit(X[:1000])
    plain = KernelRegressor(random_state=0).fit(X[:1000], y[:1000])
    scaled = KernelRegressor(random_state=0, preprocess="none").fit(scaler.transform(X[:1000]), y[:1000])
    raw = KernelRegressor(random_state=0, preprocess="none").fit(X[:1000], y[:1000])
    wanted = scaled.score(scaler.transform(X[1000:]), y[1000:])
    np.testing.assert_allclose(plain.score(X[1000:], y[1000:]), wanted, atol=1e-6)
    assert raw.score(X[1000:], y[1000:]) < wanted - 0.3


def test_files_and_pickles_predict_raw_features(table, tmp_path):
    X, y = table
    model = KernelRegressor(random_state=0, centers=200).fit(X, y)
    wanted = model.predict(X)
    model.model_.save(tmp_path / "m")
    np.testing.assert_array_equal(Model.load(tmp_path / "m").predict(X)[:, 0], wanted)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), wanted)
    np.save(tmp_path / "x.npy", X)
    program("predict", "-m", "m", "--x", "x.npy", "-o", "f.npy", "-q", cwd=tmp_path)
    np.testing.assert_array_equal(np.load(tmp_path / "f.npy").reshape(-1), wanted)


@pytest.mark.parametrize(
    "preprocess, dtype, spec",
    [
        ("auto", "f8", "standardize"),
        ("auto", "f4", "standardize"),
        ("auto", "f2", "none"),
        ("auto", "u1", "scale"),
        ("minmax", "f8", "minmax"),
        ("unit", "f8", "unit"),
        ("scale:factor=0.5", "f8", "scale:factor=0.5"),
        (None, "f8", "none"),
        ("none", "u1", "none"),
    ],
)
def test_kinds(preprocess, dtype, spec, rng):
    X = rng.integers(0, 200, (300, 4)).astype(dtype)
    y = X[:, 0].astype(float) / 100
    model = KernelRegressor(preprocess=preprocess, random_state=0).fit(X, y)
    assert model.model_.preprocess.startswith(spec) and model.score(X, y) > 0.9
    if dtype == "u1":
        assert model.model_.centers.dtype == np.uint8  # The bandwidth includes the factor.


def test_bad_preprocess(table):
    with pytest.raises(ValueError, match="wash"):
        KernelRegressor(preprocess="wash").fit(*table)
    with pytest.raises(TypeError):
        KernelRegressor(preprocess=3).fit(*table)


def test_givecenters_are_in_the_units_of_the_data(table):
    X, y = table
    own = KernelRegressor(centers=X[:7]).fit(X, y)
    np.testing.assert_allclose(own.model_.centers, own.model_.preprocessed(X[:7]))
    assert abs(own.model_.preprocessed(X).mean(axis=0)).max() < 1e-9


def test_large_numbers_are_not_rounded_before_they_are_standardized():
    """Seconds since 1970 have ten digits and differ only in the last ones, but a float has seven digits."""
    times = 1_700_000_000.0 + np.arange(200.0).reshape(-1, 1)
    y = np.sin(times[:, 0] / 20)
    model = KernelRegressor(precision="float32", random_state=0).fit(times, y)
    assert model.score(times, y) > 0.99 and model.model_.weights.dtype == np.float32


def test_weights_search_stream_and_warm_start(table):
    X, y = table
    search = GridSearchCV(KernelRegressor(random_state=0, centers=200), {"advanced": [{"preprocess": "none"}, {"preprocess": "auto"}]}, cv=3)
    assert search.fit(X, y).best_params_ == {"advanced": {"preprocess": "auto"}}
    twice = KernelRegressor(random_state=0, centers=200).fit(np.vstack([X, X[:99]]), np.r_[y, y[:99]])
    weights = np.r_[np.full(99, 2.0), np.ones(1401)]
    heavy = KernelRegressor(random_state=0, centers=200).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(twice.predict(X), heavy.predict(X))
    stream = KernelRegressor(centers=300, random_state=0)
    for _ in range(5):
        for first in range(0, 1500, 500):
            stream.partial_fit(X[first : first + 500], y[first : first + 500])
    assert stream.score(X, y) > 0.7 and stream.model_.preprocess == "standardize"
    warm = KernelRegressor(warm_start=True, random_state=0, centers=300).fit(X, y)
    assert warm.fit(X, y).score(X, y) > 0.8
    stops = KernelRegressor(early_stopping=True, solver="ep4", random_state=0).fit(X, y)
    assert stops.history_["validation_loss"].min() < np.var(y) / 2


def test_probabilities_of_a_table(table):
    X, y = table
    labels = np.digitize(y, [-1, 0.5])
    model = KernelClassifier(random_state=0).fit(X[:1000], labels[:1000])
    assert model.score(X[1000:], labels[1000:]) > 0.7 and model.temperature_ != 0.25


@pytest.mark.skipif(not HOUSING.exists(), reason="MERCER_DATA has no tables")
def test_housing(tmp_path):
    """A real table: house prices by location, age, rooms, population and income."""
    parts = {}
    for part in ("train", "test"):
        with gzip.open(HOUSING.with_name(f"housing_{part}.csv.gz"), "rt") as file:
            names = file.readline().strip().split(",")
            rows = [line.strip().split(",") for line in file]
        kept = [j for j, name in enumerate(names) if name != "ocean_proximity"]
        values = np.array([[row[j] for j in kept] for row in rows if all(row[j] for j in kept)], float)
        parts[part] = values[:, :-1].astype("f"), values[:, -1]
    (X, y), (X_test, y_test) = parts["train"], parts["test"]
    write_table(tmp_path / "train.csv", X, y)
    program("train", "--x", "train.csv", "--target", "y", "--centers", 1000, "--tune", "off", "-o", "model", "-q",
            cwd=tmp_path)
    theirs = r2_score(y_test, Model.load(tmp_path / "model").predict(X_test))
    ours = KernelRegressor(centers=1000, random_state=0).fit(X, y).score(X_test, y_test)
    print(json.dumps({"estimator": ours, "program": theirs}))
    assert ours > 0.7
    np.testing.assert_allclose(ours, theirs, atol=5e-3)
