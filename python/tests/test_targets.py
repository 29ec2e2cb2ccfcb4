# SPDX-License-Identifier: BSD-3-Clause
"""Targets with any offset and unit, durations and dates."""

import pickle

import numpy as np
import pytest

import mercer
from mercer import Model, Trainer
from untuned import KernelClassifier, KernelRegressor

SHIFTS = ((0.0, 1.0), (200.0, 1.0), (0.0, 1e6), (-3e4, 1e-3))


@pytest.fixture(scope="module")
def waves():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 5))
    return X[:1500], np.sin(X[:1500, 0]) + X[:1500, 1], X[1500:], np.sin(X[1500:, 0]) + X[1500:, 1]


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("solver", ["direct", "cg", "ep4"])
def test_offset_and_unit_have_no_effect(waves, solver, precision):
    X, y, X_test, y_test = waves
    found = []
    for offset, scale in SHIFTS:
        model = KernelRegressor(centers=200, solver=solver, precision=precision, random_state=0)
        model.fit(X, offset + scale * y)
        found.append(model.score(X_test, offset + scale * y_test))
    assert found[0] > 0.9
    # Rounding of the shifted targets to double is at most 2e-9 of their standard deviation.
    assert np.ptp(found) < 1e-6


def test_transforms(waves):
    X, y, X_test, y_test = waves
    far = y + 200
    centered = KernelRegressor(centers=200, target_transform="center", random_state=0).fit(X, far)
    assert centered.score(X_test, y_test + 200) > 0.9
    offset, scale = centered.model_.targets
    assert offset == pytest.approx(far.mean()) and scale == 1
    plain = KernelRegressor(centers=200, target_transform="none", random_state=0).fit(X, far)
    assert plain.model_.targets is None and plain.score(X_test, y_test + 200) < 0
    for bad in ("log", None, 3):
        with pytest.raises(ValueError, match="target_transform"):
            KernelRegressor(target_transform=bad).fit(X, y)


def test_constant_target(waves):
    X = waves[0]
    assert (KernelRegressor(centers=50).fit(X, np.full(len(X), 7.25)).predict(X[:10]) == 7.25).all()


def test_weights_count(waves):
    X, y, _, _ = waves
    weights = np.arange(len(X)) % 3.0
    model = KernelRegressor(centers=100, random_state=0).fit(X, y + 5, sample_weight=weights)
    offset, scale = model.model_.targets
    mean = np.average(y + 5, weights=weights)
    assert offset == pytest.approx(mean)
    assert scale == pytest.approx(np.sqrt(np.average((y + 5 - mean) ** 2, weights=weights)))


def test_classes_begin_at_their_shares(waves):
    X, y, _, _ = waves
    names = np.where(y > 1.5, "high", "low")
    model = KernelClassifier(centers=200, random_state=0).fit(X, names)
    offset, scale = model.model_.targets
    assert offset == pytest.approx([np.mean(names == "high"), np.mean(names == "low")]) and (scale == 1).all()
    assert (model.predict(np.full((1, 5), 1e6)) == "low").all()  # the more frequent class, far from all samples
    probabilities = model.predict_proba(np.full((1, 5), 1e6))
    assert probabilities[0, 1] > 0.5


def test_a_stream_has_the_units_of_its_first_batch(waves):
    X, y, X_test, y_test = waves
    model = KernelRegressor(centers=200, random_state=0)
    for _ in range(4):
        for first in range(0, 1500, 500):
            model.partial_fit(X[first : first + 500], 200 + y[first : first + 500])
    assert model.model_.targets[0] == pytest.approx(200 + y[:500].mean())
    assert model.score(X_test, 200 + y_test) > 0.9


def test_files_and_pickles_keep_the_targets(waves, tmp_path):
    X, y, X_test, _ = waves
    model = KernelRegressor(centers=50, random_state=0).fit(X, y + 200)
    f = model.predict(X_test)
    assert (pickle.loads(pickle.dumps(model)).predict(X_test) == f).all()
    model.model_.save(tmp_path / "model.safetensors")
    loaded = Model.load(tmp_path / "model.safetensors")
    assert (loaded.predict(X_test)[:, 0] == f).all()
    assert loaded.targets[0] == model.model_.targets[0]


def test_model_and_trainer(waves):
    X, y, X_test, y_test = waves
    model = Model("laplace:bandwidth=3", X[:200].astype(np.float32))
    assert model.targets is None
    before = model.predict(X_test)
    assert before.dtype == np.float32
    model.targets = mercer.target_moments(1e9 + y)
    Trainer(model, solver="direct").fit(X, 1e9 + y)
    f = model.predict(X_test)
    assert f.dtype == np.float64 and np.abs(f[:, 0] - 1e9 - y_test).mean() < 0.3
    for bad in ((0, 0), (0, -1), (np.nan, 1), (0, np.inf)):
        with pytest.raises(ValueError, match="scale|offset"):
            model.targets = bad
    with pytest.raises(ValueError):
        model.targets = ([1, 2], 1)
    model.targets = None
    assert model.targets is None and model.predict(X_test).dtype == np.float32


def as_targets(days, pandas):
    """Return the durations in every type that can hold them."""
    series = pandas.Series(pandas.to_timedelta(days, unit="D"))
    return {
        "series": series,
        "array": series.to_numpy(),
        "minutes": series.to_numpy().astype("timedelta64[m]"),
        "index": pandas.TimedeltaIndex(series),
        "list": series.tolist(),
        "objects": series.astype(object),
        "frame": pandas.DataFrame({"took": series, "days": days}),
    }


@pytest.mark.parametrize("form", ["series", "array", "minutes", "index", "list", "objects", "frame"])
def test_durations_are_days(waves, form):
    pandas = pytest.importorskip("pandas")
    X, days = waves[0][:300], np.round(20 + waves[1][:300], 3)
    y = as_targets(days, pandas)[form]
    model = KernelRegressor(centers=100, random_state=0).fit(X, y)
    found = model.predict(X)
    assert found.dtype == np.float64
    assert np.abs(found.reshape(len(X), -1)[:, 0] - days).mean() < 0.5
    assert model.score(X, y) > 0.8
    assert KernelRegressor(centers=100).partial_fit(X, y).score(X, y) > 0


def test_missing_durations_are_refused(waves):
    y = np.full(300, 36, "timedelta64[h]")
    y[3] = "NaT"
    with pytest.raises(ValueError, match="NaN"):
        KernelRegressor().fit(waves[0][:300], y)


def test_dates_are_refused(waves):
    pandas = pytest.importorskip("pandas")
    dates = pandas.Series(pandas.date_range("2020-01-01", periods=300))
    for y, says in (
        (dates, "y has dtype datetime64"),
        (dates.to_numpy(), "y has dtype datetime64"),
        (dates.dt.tz_localize("UTC"), "UTC"),
        (pandas.DataFrame({"when": dates}), "y, column 'when' has dtype datetime64"),
        (dates.dt.to_period("D"), r"y has dtype period\[D\].*y.dt.start_time"),
        (pandas.PeriodIndex(dates.dt.to_period("D")), r"y has dtype period\[D\]"),
    ):
        with pytest.raises(TypeError, match=says):
            KernelRegressor().fit(waves[0][:300], y)
    with pytest.raises(TypeError, match="y has dtype datetime64.*durations"):
        KernelRegressor().fit(waves[0][:300], dates)
