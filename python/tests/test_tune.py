# SPDX-License-Identifier: BSD-3-Clause
"""The search of the estimators."""

import numpy as np
import pytest
from mercer import KernelClassifier, KernelRegressor

RNG = np.random.default_rng(3)
X = RNG.normal(size=(900, 6))
Y = np.sin(2 * X[:, 0]) + np.abs(X[:, 1])
COMMON = {"n_centers": 150, "kernels": ["laplace-l1", "gaussian"], "learn_features": 1, "random_state": 0, "ridge": 0.0}


def test_search():
    plain = KernelRegressor(n_centers=150, random_state=0).fit(X[:600], Y[:600])
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
    assert "search" not in KernelClassifier(n_centers=100, random_state=0).fit(X, labels).summary_


@pytest.mark.parametrize(
    ("options", "words"),
    [({"tune": -1}, "tune is -1"), ({"tune": True, "criterion": "guess"}, "tune_criterion"),
     ({"tune": True, "bandwidth": 2.0}, "bandwidth"), ({"tune": True, "kernels": ["ntk"]}, "ntk")],
)
def test_refusals(options, words):
    with pytest.raises(ValueError, match=words):
        KernelRegressor(**options).fit(X, Y)
