# SPDX-License-Identifier: BSD-3-Clause
"""Metrics agree with scikit-learn; probabilities, intervals and class sets of Python are those of the program."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn import metrics as S  # noqa: E402

import mercer  # noqa: E402
from mercer import Dataset, Model  # noqa: E402
from mercer._estimators import held_out  # noqa: E402
from untuned import KernelClassifier, KernelRegressor  # noqa: E402

N = 400


def rows(classes, weighted, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, N)
    scores = np.round(8 * (rng.normal(size=(N, classes)) + 1.5 * np.eye(classes)[labels])) / 8  # multiples of 1/8, so that differences are exact
    return scores, labels, rng.integers(0, 4, N).astype(float) if weighted else None


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_classification_metrics_agree_with_scikit_learn(classes, weighted):
    scores, labels, weights = rows(classes, weighted)
    found = mercer.measure(scores, labels, classification=True, sample_weight=weights, temperature=0.7, each=True)
    P = np.exp(scores / 0.7 - (scores / 0.7).max(axis=1, keepdims=True))
    P /= P.sum(axis=1, keepdims=True)
    given, weight = scores.argmax(axis=1), {"sample_weight": weights}
    assert found["accuracy"] == pytest.approx(S.accuracy_score(labels, given, **weight), rel=1e-12)
    assert found["log_loss"] == pytest.approx(S.log_loss(labels, P, **weight), rel=1e-12)
    assert found["f1"] == pytest.approx(S.f1_score(labels, given, average="macro", **weight), rel=1e-12)
    assert np.allclose(found["confusion"], S.confusion_matrix(labels, given, **weight), rtol=1e-12)
    if classes == 2:
        assert found["auc"] == pytest.approx(S.roc_auc_score(labels, scores[:, 1] - scores[:, 0], **weight), rel=1e-12)
        assert found["brier"] == pytest.approx(S.brier_score_loss(labels, P[:, 1], **weight), rel=1e-12)
    else:
        squares = ((P - np.eye(classes)[labels]) ** 2).sum(axis=1)
        assert found["brier"] == pytest.approx(np.average(squares, weights=weights), rel=1e-12)
        # Probabilities that differ only by rounding may be ranked either way. Such pairs are rare and contribute little.
        assert found["auc"] == pytest.approx(S.roc_auc_score(labels, P, multi_class="ovr", **weight), abs=1e-4)
    parts = S.precision_recall_fscore_support(labels, given, **weight)
    for name, values in zip(("precision", "recall", "f1", "weight"), parts, strict=True):
        assert np.allclose([one[name] for one in found["each"]], values, rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_regression_metrics_agree_with_scikit_learn(weighted):
    F, _, weights = rows(3, weighted)
    Y = F + np.random.default_rng(1).normal(size=F.shape) * [1, 2, 0.1]
    found, weight = mercer.measure(F, Y, sample_weight=weights, each=True), {"sample_weight": weights}
    assert found["mse"] == pytest.approx(S.mean_squared_error(Y, F, **weight), rel=1e-12)
    assert found["mae"] == pytest.approx(S.mean_absolute_error(Y, F, **weight), rel=1e-12)
    each = S.r2_score(Y, F, multioutput="raw_values", **weight)
    assert np.allclose([one["r2"] for one in found["each"]], each, rtol=1e-11)
    assert found["r2"] == pytest.approx(S.r2_score(Y, F, multioutput="variance_weighted", **weight), rel=1e-11)
    errors = np.abs(F - Y)[:, 0]
    if not weighted:
        for name, share in (("error_median", 0.5), ("error_90", 0.9), ("error_99", 0.99), ("error_max", 1)):
            assert found["each"][0][name] == np.quantile(errors, share, method="inverted_cdf")


def test_rejected_arguments():
    with pytest.raises(ValueError, match="2 rows"):
        mercer.measure([[1.0]], [1, 2])
    with pytest.raises(ValueError, match="labels"):
        mercer.measure([[1.0, 2.0]], [2], classification=True)
    with pytest.raises(ValueError, match="weight"):
        mercer.measure([[1.0]], [[1.0]], sample_weight=[-1.0])


def program(folder, *arguments):
    paths = os.pathsep.join([str(Path(mercer.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "mercer", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def problem(seed=3, n=600):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=n) + 40
    return X, y, np.digitize(y, [39.5, 40.5])


def test_probabilities_and_sets_agree_with_the_program(tmp_path):
    X, _, labels = problem()
    model = KernelClassifier(centers=50, random_state=0, intervals=True, ridge=0.1).fit(X[:400], labels[:400])
    model.model_.save(tmp_path / "m")
    np.save(tmp_path / "x.npy", X[400:])
    program(tmp_path, "predict", "-m", "m", "--x", "x.npy", "--probabilities", "-o", "p.npy")
    P = model.predict_proba(X[400:])
    assert np.array_equal(np.load(tmp_path / "p.npy"), P)
    assert np.allclose(P.sum(axis=1), 1) and model.temperature_ == Model.load(tmp_path / "m").temperature != 0.25
    program(tmp_path, "predict", "-m", "m", "--x", "x.npy", "--interval", "0.8", "-o", "s.npy")
    sets = model.predict_set(X[400:], 0.8)
    assert np.array_equal(np.load(tmp_path / "s.npy"), sets) and sets[np.arange(200), P.argmax(axis=1)].all()
    hits = sets[np.arange(200), labels[400:]].mean()
    np.save(tmp_path / "y.npy", labels[400:])
    files = ["-m", "m", "--x", "x.npy", "--y", "y.npy"]
    told = json.loads(program(tmp_path, "eval", *files, "--interval", "0.8", "--json"))
    assert told["coverage"] == pytest.approx(hits) and told["log_loss"] == pytest.approx(S.log_loss(labels[400:], P))


def test_intervals_agree_with_the_program(tmp_path):
    X, y, _ = problem()
    model = KernelRegressor(centers=50, random_state=0, intervals=True, ridge=0.1).fit(X[:400], y[:400])
    low, high = model.predict_interval(X[400:], 0.8)
    assert np.allclose((low + high) / 2, model.predict(X[400:])) and (high > low).all()
    model.model_.save(tmp_path / "m")
    np.save(tmp_path / "x.npy", X[400:])
    np.save(tmp_path / "y.npy", y[400:])
    program(tmp_path, "predict", "-m", "m", "--x", "x.npy", "--interval", "0.8", "-o", "p.npy")
    assert np.array_equal(np.load(tmp_path / "p.npy"), np.column_stack([model.predict(X[400:]), low, high]))
    data = Dataset(tmp_path / "x.npy", tmp_path / "y.npy", task="regression")
    found = mercer.evaluate(model.model_, data, interval=0.8)
    assert found["coverage"] == pytest.approx(((y[400:] >= low) & (y[400:] <= high)).mean())
    level = found["interval"]
    missed = np.maximum(0, low - y[400:]) + np.maximum(0, y[400:] - high)
    assert found["interval_score"] == pytest.approx((high - low + 2 / (1 - level) * missed).mean())
    assert found["r2"] == pytest.approx(model.score(X[400:], y[400:]))
    with pytest.raises(ValueError, match="intervals"):
        KernelRegressor(centers=20).fit(X, y).predict_interval(X)
    with pytest.raises(ValueError, match="level is|intervals"):
        model.predict_interval(X, 0.999)


def curved_problem(n=3000):
    """One feature that is the probability of class 1."""
    rng = np.random.default_rng(5)
    X = rng.beta(0.5, 0.5, size=(n, 1))
    return X, (rng.random(n) < X[:, 0]).astype(int)


def test_curvature(tmp_path):
    X, y = curved_problem()
    model = KernelClassifier(centers=50, ridge=1.0, random_state=0).fit(X[:2000], y[:2000])
    assert model.curvature_ == model.model_.curvature > 0
    P, F = model.predict_proba(X[2000:]), model.model_.predict(X[2000:]).astype(float)
    g = np.arcsinh(model.curvature_ * F) / np.arcsinh(model.curvature_) / model.temperature_
    assert np.allclose(P[:, 1], 1 / (1 + np.exp(g[:, 0] - g[:, 1])), atol=1e-12)
    assert np.array_equal(P.argmax(axis=1), model.predict(X[2000:]))
    assert np.allclose(held_out.probabilities(model, SimpleNamespace(scores=F)), P, atol=1e-12)
    known = mercer.measure(
        F, y[2000:], classification=True, temperature=model.temperature_, curvature=model.curvature_
    )
    straight = mercer.measure(F, y[2000:], classification=True, temperature=0.3)
    assert known["log_loss"] < straight["log_loss"] and known["accuracy"] == straight["accuracy"]
    model.model_.save(tmp_path / "m")
    again = Model.load(tmp_path / "m")
    assert again.curvature == model.curvature_ and np.array_equal(again.probabilities(X[2000:]), P)
    again.curvature = 0
    again.temperature = 0.3
    assert np.isclose(mercer.measure(again.predict(X[2000:]), y[2000:], classification=True, temperature=0.3)["log_loss"],
                      -np.log(again.probabilities(X[2000:])[np.arange(1000), y[2000:]]).mean())
    again.curvature = 20
    again.temperature = 0
    assert again.curvature == 0 and again.temperature == 0.25
    with pytest.raises(ValueError, match="temperature"):
        again.curvature = 20
    with pytest.raises(ValueError, match="curvature is -1"):
        mercer.measure(F, y[2000:], classification=True, curvature=-1)


def test_curvature_of_a_stream():
    X, y = curved_problem(4000)
    model = KernelClassifier(centers=50, ridge=1.0, random_state=0)
    for begin in range(0, 4000, 100):
        model.partial_fit(X[begin : begin + 100], y[begin : begin + 100], classes=[0, 1])
    assert model.curvature_ == model.model_.curvature > 0
    assert model.temperature_ == model.model_.temperature


def test_class_weights_are_weights_of_samples():
    X, _, labels = problem()
    names = np.array(["a", "b, c", "d=1"])[labels]
    given = {"a": 2.0, "d=1": 0.5}
    options = {"centers": 40, "random_state": 0, "validation_fraction": 0, "solver": "direct", "ridge": 0.1}
    for weight, factors in ((given, np.array([2, 1, 0.5])), ("balanced", len(X) / 3 / np.bincount(labels))):
        ours = KernelClassifier(class_weight=weight, **options).fit(X, names)
        by_hand = KernelClassifier(**options).fit(X, names, sample_weight=factors[labels])
        assert np.array_equal(ours.decision_function(X), by_hand.decision_function(X))
    assert ours.get_params()["class_weight"] == "balanced" and "ridge" in ours.get_params()
    # Balanced class weights make predictions of a rare class more frequent.
    rare = np.where(np.arange(len(X)) % 10 == 0, labels == 2, 0).astype(int)
    models = [KernelClassifier(class_weight=weight, **options).fit(X, rare) for weight in (None, "balanced")]
    assert models[1].predict(X).sum() > models[0].predict(X).sum()
    for bad, what in (({"e": 1}, "class_weight: 'e'"), ("even", "balanced"), ([1, 2, 3], "dict"), ({"a": -1.0}, "-1")):
        with pytest.raises(ValueError, match=what):
            KernelClassifier(class_weight=bad, **options).fit(X, names)


def test_logarithms_and_ranks_of_targets(tmp_path):
    X, y, _ = problem()
    y = np.exp(y - 40)
    options = {"centers": 60, "random_state": 0, "ridge": 0.1}
    by_hand = KernelRegressor(**options).fit(X, np.log(y))
    ours = KernelRegressor(target_transform="log", **options).fit(X, y)
    assert np.allclose(ours.predict(X), np.exp(by_hand.predict(X)), rtol=1e-12)
    ours.model_.save(tmp_path / "m")
    assert np.array_equal(Model.load(tmp_path / "m").predict(X)[:, 0], ours.predict(X))
    ranked = KernelRegressor(target_transform="rank", **options).fit(X, y)
    assert y.min() <= ranked.predict(X * 100).min() and ranked.predict(X).max() <= y.max()
    assert np.corrcoef(np.log(ranked.predict(X)), np.log(y))[0, 1] > 0.7
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", y)
    for how, model in (("log", ours), ("rank", ranked)):
        files = ["--x", "x.npy", "--y", "y.npy", "--task", "regression", "-o", how, "-q"]
        program(tmp_path, "train", *files, "--centers", 60, "--lambda", 0.1, "--tune", "off", "--target-transform", how)
        assert np.array_equal(Model.load(tmp_path / how).predict(X)[:, 0], model.predict(X))
    with pytest.raises(ValueError, match="is -1"):
        KernelRegressor(target_transform="log").fit(X, np.where(y < 0.5, -1, y))
