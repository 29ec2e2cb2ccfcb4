# SPDX-License-Identifier: BSD-3-Clause
"""Gradients, metrics and learned features, compared with NumPy."""

import numpy as np
import pytest

pytest.importorskip("sklearn")

import mercer  # noqa: E402
from mercer import Model  # noqa: E402
from untuned import KernelClassifier, KernelRegressor, flat  # noqa: E402

RNG = np.random.RandomState(1)
X, Z, ALPHA = RNG.randn(7, 4), RNG.randn(9, 4), RNG.randn(9, 2)


def kernel(r, b, q):
    return np.exp(-((r / b) ** q))


def distances(A, B):
    return np.sqrt(np.maximum(((A[:, None] - B[None]) ** 2).sum(-1), 0))


def jacobian(A, B, alpha, b, q):
    """Return the gradients (m, c, d) by their definition, pair by pair."""
    r = distances(A, B)
    psi = kernel(r, b, q) * (q / b**q) * r ** (q - 2)
    return -np.einsum("mp,mpd,pc->mcd", psi, A[:, None] - B[None], alpha)


@pytest.mark.parametrize("q", [1.0, 0.7])
def test_gradients(q):
    spec = "laplace:bandwidth=1.7" if q == 1 else "exppower:bandwidth=1.7,gamma=0.7"
    model = Model(spec, Z, 2)
    model.weights[...] = ALPHA
    got, wanted = model.gradients(X), jacobian(X, Z, ALPHA, 1.7, q)
    assert got.shape == (7, 2, 4)
    assert np.abs(got - wanted).max() < 1e-12 * np.abs(wanted).max()
    steps = [(model.predict(X + e) - model.predict(X - e)) / 2e-6 for e in 1e-6 * np.eye(4)]
    outer = [np.einsum("mcd,mce->de", J, J) / len(X) for J in (got, np.stack(steps, -1))]
    assert np.abs(outer[0] - outer[1]).max() < 1e-6 * np.abs(outer[1]).max()


def test_kernels_without_gradients_are_rejected():
    with pytest.raises(Exception, match="kernel polynomial"):
        Model("polynomial:degree=2", Z).gradients(X)


def fit(A, Y, C, b, lam):
    K, KZ = kernel(distances(A, C), b, 1), kernel(distances(C, C), b, 1)
    return np.linalg.solve(K.T @ K + lam * KZ, K.T @ Y)


def planted(n=900, d=6, seed=3):
    rng = np.random.RandomState(seed)
    A = rng.randn(n, d)
    return A, np.sin(2 * A[:, 0]) + 0.5 * A[:, 1] * A[:, 2]


def test_one_round_agrees_with_numpy():
    """The predictions and gradients of a fit agree with NumPy."""
    A, y = planted()
    y = (y - y.mean()) / y.std()
    rows, held = A[:720], A[720:]
    both = {"kernel": "laplace", "preprocess": "none", "centers": rows[:200], "solver": "direct", "ridge": 1e-3}
    first = KernelRegressor(bandwidth=3.0, target_transform="none", **both).fit(rows, y[:720])
    alpha = fit(rows, y[:720, None], rows[:200], 3.0, 1e-3)
    assert np.abs(first.predict(held) - (kernel(distances(held, rows[:200]), 3.0, 1) @ alpha)[:, 0]).max() < 1e-6
    J = first.model_.gradients(rows[200:])
    wanted = jacobian(rows[200:], rows[:200], alpha, 3.0, 1.0)
    assert np.abs(J - wanted).max() < 1e-5 * np.abs(wanted).max()


def test_metric_is_a_map():
    A, y = planted()
    half = np.random.RandomState(5).randn(6, 3)
    common = {"bandwidth": 2.0, "preprocess": "none", "solver": "direct", "ridge": 1e-2, "centers": 100, "random_state": 0}
    model = KernelRegressor(metric=half @ half.T, **common).fit(A, y)
    by_hand = KernelRegressor(**common).fit(A @ half, y)
    assert model.model_.centers.shape == (100, 3)
    assert np.allclose(model.model_.metric, half @ half.T)
    assert model.model_.preprocessed(A).shape == (900, 3)
    assert np.abs(model.predict(A) - by_hand.predict(A @ half)).max() < 1e-6
    diagonal = KernelRegressor(metric=[1, 4, 9, 0, 1, 1], **common).fit(A, y)
    assert np.allclose(diagonal.model_.metric, [1, 4, 9, 0, 1, 1])
    by_hand = KernelRegressor(**common).fit(A * [1, 2, 3, 0, 1, 1], y)
    assert np.abs(diagonal.predict(A) - by_hand.predict(A * [1, 2, 3, 0, 1, 1])).max() < 1e-6


@pytest.mark.parametrize(
    "metric, words", [([1, 1, -2, 1, 1, 1], "weight 2 .* is -2"), ([1, 2], "1 x 2"), (np.diag([1, 1, 1, 1, 1, -1.0]), "eigenvalue is -1")]
)
def test_rejected_metrics(metric, words):
    A, y = planted(50)
    with pytest.raises(ValueError, match=words):
        KernelRegressor(metric=metric).fit(A, y)


def test_learning(tmp_path):
    A, y = planted(1500, 10)
    common = {"kernel": "laplace", "centers": 300, "effort": 2, "random_state": 0}
    model = flat(mercer.KernelRegressor)(learn_features=True, n_jobs=1, **common).fit(A, y)
    steps = model.summary_["search"]["steps"]
    assert steps[-1]["error"] < 0.6 * steps[0]["error"]
    assert model.model_.preprocess.startswith("standardize") and str(model.model_.kernel).startswith("laplace:")
    weights = np.diag(model.model_.metric)
    assert weights[:3].min() > 3 * weights[3:].max()
    B, z = planted(1000, 10, seed=4)
    assert model.score(B, z) > KernelRegressor(**common).fit(A, y).score(B, z) + 0.2
    model.model_.save(tmp_path / "a")
    assert (Model.load(tmp_path / "a").predict(B) == model.model_.predict(B)).all()
    again = flat(mercer.KernelRegressor)(learn_features=True, n_jobs=2, **common).fit(A, y)
    assert again.model_.to_bytes() == model.model_.to_bytes()  # independent of the number of threads


def test_learning_in_norm_1():
    """A kernel of the L1 distance gets one weight per feature."""
    A, y = planted(1200, 10)
    model = flat(mercer.KernelRegressor)("laplace-l1", learn_features=True, effort=1, random_state=0).fit(A, y)
    weights = model.model_.metric
    assert weights.shape == (10,) and weights[:3].min() > 2 * weights[3:].max()
    assert str(model.model_.kernel).startswith("laplace-l1:")


def test_classes_are_learned_too():
    A, y = planted(1200, 10)
    labels = np.digitize(y, np.quantile(y, [0.2, 0.4, 0.6, 0.8]))
    model = flat(mercer.KernelClassifier)(learn_features=True, centers=300, effort=2, random_state=0).fit(A, labels)
    steps = model.summary_["search"]["steps"]
    assert steps[-1]["error"] < steps[0]["error"]
    B, z = planted(500, 10, seed=4)
    found = np.digitize(z, np.quantile(y, [0.2, 0.4, 0.6, 0.8]))
    plain = KernelClassifier(centers=300, random_state=0).fit(A, labels)
    assert model.score(B, found) > plain.score(B, found) + 0.05


def test_learn_features_must_be_a_bool():
    A, y = planted(50)
    for wrong in (1.5, -1, 2, "on"):
        with pytest.raises(ValueError, match="learn_features is .*bool"):
            flat(mercer.KernelRegressor)(learn_features=wrong).fit(A, y)


@pytest.mark.parametrize(
    "given, words",
    [({"tune": "off"}, "tune off"), ({"metric": np.ones(6)}, "metric"), ({"kernel": "polynomial:degree=2"}, "polynomial"),
     ({"kernel": mercer.Kernel("gaussian:bandwidth=2")}, "kernel")],
)
def test_options_that_exclude_a_learned_metric(given, words):
    A, y = planted(100)
    with pytest.raises((ValueError, NotImplementedError), match=words):
        flat(mercer.KernelRegressor)(learn_features=True, **given).fit(A, y)
