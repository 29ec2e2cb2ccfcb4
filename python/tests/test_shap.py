# SPDX-License-Identifier: BSD-3-Clause
"""Shapley values: sums, columns of frames, backgrounds, refusals, and the package shap where it is installed."""

import math
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import mercer

pytestmark = pytest.mark.filterwarnings("ignore:tune")


def table(rows=150, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({
        "area": rng.uniform(20, 120, rows), "city": pd.Categorical(rng.choice(["Ulm", "Bonn", "Rom"], rows)),
        "built": rng.integers(1900, 2020, rows).astype(float),
    })
    frame.loc[::9, "area"] = np.nan
    y = 3 * frame["area"].fillna(60) + 50 * (frame["city"] == "Rom") + (frame["built"] - 1960) / 4
    return frame, y.to_numpy()


def enumerate_values(output, x, b):
    """Return the Shapley values of one row and one background row by enumeration of all subsets."""
    d, phi = len(x), np.zeros(len(x))
    for k in range(d):
        others = [l for l in range(d) if l != k]
        for size in range(d):
            weight = math.factorial(size) * math.factorial(d - 1 - size) / math.factorial(d)
            for chosen in combinations(others, size):
                mixed = b.copy()
                mixed[list(chosen)] = x[list(chosen)]
                more = mixed.copy()
                more[k] = x[k]
                phi[k] += weight * (output(more) - output(mixed))
    return phi


@pytest.mark.parametrize("kernel", ["laplace-l1:bandwidth=3", "exppower:bandwidth=3,gamma=1.3"])
def test_enumeration(kernel):
    rng = np.random.default_rng(1)
    Z, X, B = rng.normal(size=(60, 5)), rng.normal(size=(4, 5)), rng.normal(size=(3, 5))
    model = mercer.Model(mercer.Kernel(kernel), Z, 2)
    model.weights[:] = rng.normal(size=(60, 2))
    found = model.shap_values(X, B)
    assert found.values.shape == (4, 5, 2) and found.base_values.shape == (4, 2)
    assert found.background == "3 rows"
    bound = found.error + 1e-12 * np.abs(model.weights).sum()
    for i, x in enumerate(X):
        for c in range(2):
            wanted = np.mean([enumerate_values(lambda r, c=c: model.predict(r[None])[0, c], x, b) for b in B], axis=0)
            assert np.abs(found.values[i, :, c] - wanted).max() <= bound
    assert np.abs(found.values.sum(1) + found.base_values - model.predict(X)).max() <= 5 * bound
    pairs = model.shap_interaction_values(X, B)
    assert pairs.values.shape == (4, 5, 5, 2) and (pairs.values == pairs.values.transpose(0, 2, 1, 3)).all()
    assert np.abs(pairs.values.sum(2) - found.values).max() <= 1e-12


def test_frames():
    X, y = table()
    for kernel, tune in (("exppower-l1:gamma=0.8", "off"), ("laplace-l1", "auto")):
        model = mercer.KernelRegressor(kernel, tune=tune, random_state=0).fit(X, y)
        found = model.shap_values(X[:10])
        assert found.feature_names == ["area", "city", "built"] and found.values.shape == (10, 3)
        assert found.output_names is None or len(found.output_names) == 1
        assert found.data.tolist()[1] == X.iloc[1].tolist()
        assert np.allclose(found.base_values + found.values.sum(1), model.predict(X[:10]), atol=1e-2)
        direct = model.model_.shap_values(X[:10])
        assert (direct.values == found.values).all()
        pairs = model.shap_interaction_values(X[:10])
        assert pairs.values.shape == (10, 3, 3)
        assert np.allclose(pairs.values.sum(2), found.values, rtol=0, atol=1e-9 * np.abs(y).max())
        some = model.shap_values(X[:2], X[100:], background_rows=20)
        assert some.background == "20 rows" and not (some.values == found.values[:2]).all()
        single = model.shap_values(X[:2], X[:1])
        assert np.abs(single.values[0]).max() == 0


def test_classes():
    X, y = table()
    model = mercer.KernelClassifier("laplace-l1", tune="off").fit(X, np.where(y > 250, "high", "low"))
    found = model.shap_values(X[:6])
    assert found.values.shape == (6, 3, 2) and found.output_names == ["high", "low"] and not found.transformed
    assert np.allclose(found.base_values + found.values.sum(1), model.model_.predict(X[:6]), atol=1e-3)


def test_transformed():
    X, y = table()
    model = mercer.KernelRegressor("laplace-l1", tune="off", target_transform="log").fit(X, y + 100)
    found = model.shap_values(X[:6])
    assert found.transformed
    assert np.allclose(np.exp(found.base_values + found.values.sum(1)), model.predict(X[:6]), rtol=1e-3)


def test_refusals():
    X = np.random.default_rng(2).normal(size=(80, 4))
    model = mercer.KernelRegressor("linear", tune="off").fit(X, X[:, 0])
    with pytest.raises(Exception, match="kernel linear: .*Shapley"):
        model.shap_values(X)
    model = mercer.KernelRegressor("gaussian", tune="off").fit(X, X[:, 0])
    with pytest.raises(ValueError, match="background_rows is 0"):
        model.shap_values(X, background_rows=0)
    with pytest.raises(ValueError, match="3 features"):
        model.shap_values(X, X[:, :3])
    with pytest.raises(ValueError, match="NaN"):
        model.shap_values(X, np.full((2, 4), np.nan))
    with pytest.raises(Exception, match="not fitted"):
        mercer.KernelRegressor().shap_values(X, X)
    metric = np.eye(4) + 0.1
    model = mercer.KernelRegressor("gaussian", tune="off", advanced={"metric": metric}).fit(X, X[:, 0])
    with pytest.raises(Exception, match="metric"):
        model.shap_values(X)


def test_package():
    """Agreement with the exact explainer of the package shap, and an object that its plots accept."""
    shap = pytest.importorskip("shap")
    rng = np.random.default_rng(3)
    Z, X, B = rng.normal(size=(40, 6)), rng.normal(size=(5, 6)), rng.normal(size=(8, 6))
    model = mercer.Model(mercer.Kernel("matern52", bandwidth=2.0), Z, 1)
    model.weights[:] = rng.normal(size=(40, 1))
    found = model.shap_values(X, B)
    theirs = shap.explainers.Exact(lambda x: model.predict(x)[:, 0], shap.maskers.Independent(B))(X)
    assert np.abs(found.values - theirs.values).max() <= found.error + 1e-12 * np.abs(model.weights).sum()
    assert np.allclose(found.base_values, theirs.base_values)
    assert isinstance(found.to_shap(), shap.Explanation)
