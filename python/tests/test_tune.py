# SPDX-License-Identifier: BSD-3-Clause
"""The search of the estimators."""

import pickle

import numpy as np
import pytest
from mercer import KernelClassifier, KernelRegressor

RNG = np.random.default_rng(3)
X = RNG.normal(size=(900, 6))
Y = np.sin(2 * X[:, 0]) + np.abs(X[:, 1])
COMMON = {"n_centers": 150, "kernels": ["laplace-l1", "gaussian"], "learn_features": 1, "random_state": 0, "ridge": 0.0}
QUICK = {"kernels": ["laplace-l1"], "n_centers": 40, "random_state": 0}


def test_search():
    plain = KernelRegressor(n_centers=150, random_state=0, tune="off").fit(X[:600], Y[:600])
    model = KernelRegressor(tune=True, n_jobs=1, **COMMON).fit(X[:600], Y[:600])
    search = model.summary_["search"]
    assert search["whole"] and search["best"]["error"] == min(one["error"] for one in search["tries"])
    assert {one["kernel"] for one in search["tries"]} == {"laplace-l1", "gaussian"}
    assert len(search["best"]["errors"]) == len(search["ridges"])
    assert model.score(X[600:], Y[600:]) > plain.score(X[600:], Y[600:])
    again = KernelRegressor(tune=1e6, n_jobs=2, **COMMON).fit(X[:600], Y[:600])
    assert np.array_equal(again.predict(X[600:]), model.predict(X[600:]))


def test_classes_and_a_kernel_that_is_given():
    labels = np.where(Y > 0.8, "high", "low")
    model = KernelClassifier("matern32", tune=True, n_centers=100, learn_features=1, random_state=0).fit(X, labels)
    assert {one["kernel"] for one in model.summary_["search"]["tries"]} == {"matern32"}


def test_default():
    """Numbers of 500 samples or more are searched, unless something of the model is given."""
    model = KernelRegressor(**QUICK).fit(X[:500], Y[:500])
    assert model.summary_["untuned"] is None and "\ntuned: " in model.plan_["text"]
    for n, given, why in [(499, {}, "500 rows"), (500, {"kernel": "laplace"}, "kernel"), (500, {"ridge": 1.0}, "ridge"),
                          (500, {"tune": "off"}, "off"), (500, {"solver": "cg"}, "solver")]:
        plain = KernelRegressor(n_centers=40, random_state=0, **given).fit(X[:n], Y[:n])
        assert why in plain.summary_["untuned"] and "search" not in plain.summary_
        assert "\nnot tuned: " in plain.plan_["text"]
    bytes_ = KernelRegressor(n_centers=40).fit((X * 20 + 128).clip(0, 255).astype(np.uint8), Y)
    assert "no table" in bytes_.summary_["untuned"]


def test_average(tmp_path):
    """The mean of three models, with its probabilities, and after a file."""
    labels = np.where(Y > 0.8, "high", "low")
    options = {"kernels": ["laplace-l1", "gaussian"], "n_centers": 40, "learn_features": 1, "random_state": 0, "tune": 0.3}
    one = KernelClassifier(**options).fit(X[:500], labels[:500])
    three = KernelClassifier(average_models=3, **options).fit(X[:500], labels[:500])
    assert (one.model_.members, three.model_.members) == (1, 3)
    shares = three.predict_proba(X[500:])
    assert np.array_equal(three.classes_[shares.argmax(axis=1)], three.predict(X[500:]))
    again = pickle.loads(pickle.dumps(three))
    assert again.model_.members == 3 and np.array_equal(again.predict_proba(X[500:]), shares)
    again.model_.export(tmp_path / "mean.c")
    assert "static int member_2(" in (tmp_path / "mean.c").read_text()
    with pytest.raises(ValueError, match="tune is off"):
        KernelClassifier(average_models=3, tune="off").fit(X[:500], labels[:500])


def test_groups_and_times():
    """A feature that names the group predicts groups that were seen, and no others: by rows it looks good, by groups not."""
    rng = np.random.default_rng(4)
    groups = np.repeat(np.arange(25), 24)
    A, b = np.c_[groups, rng.normal(size=600)], rng.normal(size=25)[groups]
    errors = [
        KernelRegressor(kernels="laplace-l1", n_centers=100, random_state=0, tune=0.2).fit(A, b, groups=keys).summary_["search"]["best"]["error"]
        for keys in (None, [f"g{k}" for k in groups])
    ]
    assert errors[0] < 0.3 < 0.8 < errors[1]
    times = np.arange("2020-01-01", "2021-09-01", dtype="datetime64[D]")[:600]
    search = KernelRegressor(**QUICK, tune=0.05, criterion="holdout").fit(A, b, times=times).summary_["search"]
    assert search["held"] == 120
    for wrong, words in (({"groups": groups[:9]}, "groups has the shape"), ({"times": ["a"] * 600}, "times is an array")):
        with pytest.raises(ValueError, match=words):
            KernelRegressor(**QUICK, tune=0.05).fit(A, b, **wrong)


@pytest.mark.parametrize(
    ("options", "words"),
    [({"tune": -1}, "tune is -1"), ({"tune": "yes"}, "tune is 'yes'"), ({"tune": True, "criterion": "guess"}, "criterion"),
     ({"tune": True, "bandwidth": 2.0}, "bandwidth"), ({"tune": True, "kernels": ["ntk"]}, "ntk")],
)
def test_refusals(options, words):
    with pytest.raises(ValueError, match=words):
        KernelRegressor(**options).fit(X, Y)
