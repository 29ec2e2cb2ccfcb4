# SPDX-License-Identifier: BSD-3-Clause
"""The estimators beyond scikit-learn's own checks: their parameters, and their use with pandas, pipelines, pickles and forks."""

import io
import json
import math
import multiprocessing
import os
import pickle
import re
import signal
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.base import clone  # noqa: E402
from sklearn.datasets import load_digits  # noqa: E402
from sklearn.exceptions import NotFittedError  # noqa: E402
from sklearn.metrics import log_loss  # noqa: E402
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402

import mercer  # noqa: E402
from expect import warns  # noqa: E402
from mercer import Kernel, Model  # noqa: E402
from mercer._estimators.progress import Bar  # noqa: E402
from untuned import KernelClassifier, KernelRegressor  # noqa: E402


@pytest.fixture
def waves(rng):
    X = rng.uniform(-3, 3, (500, 2))
    return X, np.sin(X[:, 0]) + 0.5 * X[:, 1]


# ---- Quality ----


def test_digits():
    X, y = load_digits(return_X_y=True)
    X = X.astype("uint8")
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=1 / 3, random_state=0, stratify=y)
    start = time.process_time()
    model = KernelClassifier(random_state=0).fit(X_train, y_train)
    assert model.score(X_test, y_test) >= 0.985
    assert time.process_time() - start < 2 * (os.cpu_count() or 1)  # CPU time of all threads


def test_ridge_is_the_ridge_of_the_objective(waves):
    X, y = waves
    K = Kernel("gaussian", bandwidth=1.0)(X)
    for transform, offset in (("none", 0), ("auto", y.mean())):  # The offset is not penalized.
        how = {"preprocess": "none", "target_transform": transform}
        model = KernelRegressor("gaussian", bandwidth=1.0, ridge=0.7, **how).fit(X, y)
        wanted = offset + K @ np.linalg.solve(K + 0.7 * np.eye(500), y - offset)
        np.testing.assert_allclose(model.predict(X), wanted, rtol=1e-4, atol=1e-5)


# ---- Weights ----


@pytest.mark.parametrize(
    "parameters", [{}, {"centers": 40}, {"centers": 40, "center_method": "kmeans"}, {"ridge": 1.0}]
)
def test_weights_are_repetitions(parameters, blobs, rng):
    X, y = blobs[0][:300], blobs[1][:300]
    counts = rng.integers(0, 4, 300)
    weighted = KernelClassifier(random_state=0, **parameters).fit(X, y, counts)
    order = rng.permutation(np.repeat(np.arange(300), counts))
    repeated = KernelClassifier(random_state=0, **parameters).fit(X[order], y[order])
    for method in ("decision_function", "predict_proba"):
        np.testing.assert_array_equal(getattr(weighted, method)(blobs[0]), getattr(repeated, method)(blobs[0]))


def test_weights_matter(waves):
    X, y = waves
    target = np.where(np.arange(500) < 250, 1.0, -1.0)
    heavy = KernelRegressor("gaussian", bandwidth=50.0, ridge=1.0).fit(X, target, np.where(target > 0, 9.0, 1.0))
    even = KernelRegressor("gaussian", bandwidth=50.0, ridge=1.0).fit(X, target)
    assert heavy.predict(X).mean() > even.predict(X).mean() + 0.5


def test_large_sets_draw_heavy_centers():
    X = np.arange(12_000.0).reshape(-1, 1)  # all rows are distinct, so no rows are merged
    weights = np.where(X[:, 0] < 1000, 100.0, 0.001)
    model = KernelRegressor(centers=50, random_state=0, solver="cg", epochs=2, preprocess="none")
    assert (model.fit(X, X[:, 0], weights).model_.centers < 1000).mean() > 0.9


# ---- Probabilities ----


def test_probabilities_are_calibrated(rng):
    """20 % of the labels are wrong. Without calibration an interpolating model is certain of all of them."""
    X = rng.uniform(-1, 1, (3000, 2))
    right = (X[:, 0] > 0).astype(int)
    y = np.where(rng.random(3000) < 0.8, right, 1 - right)
    best = -(0.8 * np.log(0.8) + 0.2 * np.log(0.2))
    model = KernelClassifier(random_state=0, ridge=0).fit(X[:1500], y[:1500])
    raw = KernelClassifier(random_state=0, ridge=0, validation_fraction=0).fit(X[:1500], y[:1500])
    calibrated, not_calibrated = (log_loss(y[1500:], m.predict_proba(X[1500:])) for m in (model, raw))
    assert calibrated < 0.75 * not_calibrated and best < calibrated < np.log(2)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    np.testing.assert_array_equal(model.predict_proba(X).argmax(1), model.predict(X))
    sure = model.predict_proba(X[1500:]).max(1)
    hit = model.predict(X[1500:]) == y[1500:]
    assert abs(sure.mean() - hit.mean()) < 0.06


def test_held_out_for_calibration(rng):
    X = rng.normal(size=(6000, 2)).astype("f")
    y = (X[:, 0] + 0.5 * rng.normal(size=6000) > 0).astype(int)
    trained, parameters = [], {"centers": 50, "ridge": 1.0, "random_state": 0}
    for share in (0.1, 0):
        model = KernelClassifier(validation_fraction=share, **parameters).fit(X, y)
        trained.append(json.loads(model.model_.note)["rows"])
        assert (model.temperature_ == 0.25) == (share == 0) and 0.02 < model.temperature_ < 1
    assert trained == [5700, 6000]  # 5 % of the rows are held out; validation_fraction 0.1 only switches calibration on.


def test_few_samples():
    model = KernelClassifier().fit([[0.0], [1.0], [2.0]], ["a", "b", "b"])
    assert model.predict([[0.1]])[0] == "a" and model.temperature_ == 0.25
    one = KernelClassifier().fit([[0.0], [1.0]], ["a", "a"])
    assert one.predict([[5.0]])[0] == "a" and one.predict_proba([[5.0]]).tolist() == [[1.0]]


# ---- Parameters ----


def test_centers(waves):
    X, y = waves
    assert KernelRegressor(centers=30).fit(X, y).model_.centers.shape == (30, 2)
    assert KernelRegressor(centers=10**6).fit(X, y).model_.centers.shape == (500, 2)
    own = KernelRegressor(centers=X[:7], preprocess="none").fit(X, y)
    np.testing.assert_array_equal(own.model_.centers, X[:7])
    with warns("center_method"):
        KernelRegressor(centers=X[:7], center_method="kmeans", preprocess="none").fit(X, y)
    for method in ("kmeans", "rpcholesky"):
        assert KernelRegressor(centers=20, center_method=method).fit(X, y).model_.centers.shape == (20, 2)
    labels = (y > 1).astype(int)
    assert KernelClassifier(centers=20, center_method="balanced").fit(X, labels).score(X, labels) > 0.8


def test_all_centers(waves):
    model = KernelRegressor(centers="all", preprocess="none").fit(*waves)
    np.testing.assert_array_equal(model.model_.centers, waves[0])  # in the order of the rows


def test_precision_and_types(waves):
    X, y = waves
    assert KernelRegressor().fit(X, y).predict(X).dtype == np.float64
    for single in (KernelRegressor(precision="float32").fit(X, y), KernelRegressor().fit(X.astype("f"), y)):
        assert single.model_.weights.dtype == np.float32
        assert single.predict(X).dtype == np.float64  # An offset may have more digits than a float.
    assert KernelRegressor(precision="float32", target_transform="none").fit(X, y).predict(X).dtype == np.float32
    assert KernelRegressor(tune="off").fit(X.astype(np.float16), y).model_.centers.dtype == np.float16
    bytes_ = KernelRegressor(tune="off").fit((X * 30 + 100).astype(np.uint8), y)
    assert bytes_.model_.centers.dtype == np.uint8
    large = np.repeat(X, 25, axis=0)
    assert KernelRegressor(centers=20).fit(large, np.repeat(y, 25)).model_.weights.dtype == np.float64


@pytest.mark.parametrize("solver", ["direct", "cg", "ep4", "ep3", "paper", "ep2", "ep1", "gd", "nytro", "pegasos", "richardson"])
def test_solvers(solver, waves):
    X, y = waves
    model = KernelRegressor(solver=solver, epochs=20, random_state=0).fit(X, y)
    assert model.plan_["solver"] == solver and model.score(X, y) > 0.3
    if solver == "ep2":
        with pytest.raises(ValueError, match="ep2"):
            KernelRegressor(solver="ep2", centers=10).fit(X, y)


def test_same_seed_same_bits(waves):
    X, y = waves
    runs = [KernelRegressor(solver="ep4", centers=90, epochs=3, random_state=7, n_jobs=j).fit(X, y) for j in (1, 2)]
    np.testing.assert_array_equal(runs[0].predict(X), runs[1].predict(X))
    other = KernelRegressor(solver="ep4", centers=90, epochs=3, random_state=8).fit(X, y)
    assert (other.predict(X) != runs[0].predict(X)).any()


def test_early_stopping(blobs):
    X, y = blobs
    model = KernelClassifier(solver="ep4", epochs=200, early_stopping=True, random_state=0).fit(X, y)
    assert model.n_iter_ < 200 and model.summary_["stopped"] == "early stopping"
    history = model.history_
    assert len(history["validation_accuracy"]) == model.n_iter_ and len(history["epoch"]) == model.n_iter_
    assert model.temperature_ != 0.25


def test_tolerance(waves):
    X, y = waves
    loose = KernelRegressor(solver="ep4", epochs=300, tol=0.2, random_state=0).fit(X, y)
    assert loose.n_iter_ < 300 and loose.summary_["stopped"] == "callback"


def test_warm_start(waves):
    X, y = waves
    model = KernelRegressor(solver="ep4", centers=200, epochs=2, average=False, warm_start=True, random_state=0)
    first = model.fit(X, y).history_["train_loss"][-1]
    held = model.model_
    assert model.fit(X, y).history_["train_loss"][0] < first and model.model_ is held
    labels = KernelClassifier(warm_start=True).fit(X, y > 0)
    with pytest.raises(ValueError, match="classes"):
        labels.fit(X, np.where(y > 0, "a", "b"))
    with pytest.raises(ValueError):
        model.fit(X, np.stack([y, y], axis=1))


@pytest.mark.parametrize(
    "parameters, error",
    [
        ({"kernel": "laplac"}, ValueError),
        ({"kernel": 3}, TypeError),
        ({"kernel": Kernel("linear"), "bandwidth": 1.0}, ValueError),
        ({"bandwidth": -1.0}, ValueError),
        ({"bandwidth": "wide"}, TypeError),
        ({"centers": 0}, ValueError),
        ({"centers": 2.5}, TypeError),
        ({"centers": np.ones((3, 5))}, ValueError),
        ({"center_method": "guess", "centers": 3}, ValueError),
        ({"center_method": "balanced"}, ValueError),
        ({"solver": "magic"}, ValueError),
        ({"epochs": -3}, ValueError),
        ({"epochs": 1.5}, TypeError),
        ({"batch_size": -1}, ValueError),
        ({"ridge": -1.0}, ValueError),
        ({"average": "maybe"}, ValueError),
        ({"tol": -1.0}, ValueError),
        ({"validation_fraction": 1.0}, ValueError),
        ({"validation_fraction": "half"}, ValueError),
        ({"early_stopping": True, "validation_fraction": 0}, ValueError),
        ({"memory": "lots"}, ValueError),
        ({"device": "abacus"}, ValueError),
        ({"arithmetic": "sloppy"}, ValueError),
        ({"precision": "half"}, ValueError),
        ({"n_jobs": 0}, ValueError),
        ({"random_state": "seed"}, TypeError),
    ],
)
def test_bad_parameters(parameters, error, waves):
    model = KernelRegressor(**parameters)
    with pytest.raises(error):
        model.fit(*waves)
    with pytest.raises(NotFittedError):
        model.predict(waves[0])


@pytest.mark.parametrize(
    "parameters, field, message",
    [
        ({"patience": 3}, "patience", "patience "),
        ({"polish": 3, "solver": "direct"}, "polish", "solver direct "),
        ({"learn_features": True}, "search.learn_features", "learn_features "),
        ({"centers": np.ones((4, 1))}, "", "centers: 1 features"),
        ({"ridge": -1.0}, None, "ridge is -1"),  # refused before a call of the library
        ({"batch_size": -5, "solver": "ep4"}, "batch", "batch_size is -5"),
    ],
)
def test_messages_name_parameters_of_python(parameters, field, message, waves):
    """Messages use neither the names of C structs and fields nor the options of the program."""
    with pytest.raises(ValueError, match="^" + re.escape(message)) as refused:
        KernelRegressor(**parameters).fit(*waves)
    assert getattr(refused.value, "field", None) == field


def test_intervals_without_held_out_rows(waves):
    with pytest.raises(ValueError, match="intervals=True"):
        KernelRegressor().fit(*waves).predict_interval(waves[0])


def test_a_failed_fit_keeps_the_last_model(blobs):
    X, y = blobs
    model = KernelClassifier(random_state=0).fit(X, y)
    before = model.predict_proba(X)
    with pytest.raises(MemoryError):
        model.set_params(memory=1000, solver="direct").fit(X, np.where(y == 0, "a", "b"))
    np.testing.assert_array_equal(model.predict_proba(X), before)


# ---- Streams ----


def test_partial_fit(blobs):
    X, y = blobs
    names = np.array(["low", "right", "top"])[y]
    model = KernelClassifier(centers=200, random_state=0)
    for _ in range(3):
        for first in range(0, 900, 300):
            rows = slice(first, first + 300)
            model.partial_fit(X[rows], names[rows], classes=["low", "right", "top"])
    assert model.score(X[900:], names[900:]) > 0.85
    assert 0.01 < model.temperature_ < 1 and model.temperature_ != 0.25
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    again.partial_fit(X[:300], names[:300])
    with pytest.raises(ValueError, match="left"):
        model.partial_fit(X[:300], np.full(300, "left"))
    with pytest.raises(ValueError, match="classes"):
        model.partial_fit(X[:300], names[:300], classes=["a", "b"])
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:300, :1], names[:300])
    with pytest.raises(ValueError):
        model.partial_fit(X[:0], names[:0])


def test_partial_fit_of_types_and_after_fit(waves):
    X, y = waves
    model = KernelRegressor(random_state=0).fit(X, y)
    before = model.predict(X).copy()
    model.partial_fit(X, y + 1.0, sample_weight=np.ones(500))
    assert (model.predict(X) != before).any() and model.n_iter_ >= 2
    stream = KernelRegressor(centers=50, random_state=0).partial_fit(X.astype("f"), y)
    stream.partial_fit(X, y).partial_fit(X.tolist(), y)
    with pytest.raises(ValueError, match="columns"):
        stream.partial_fit(X, np.stack([y, y], axis=1))
    stream.fit(X, y)
    assert stream.score(X, y) > 0.9


# ---- Use with other libraries ----


def test_multi_output(waves):
    X, y = waves
    both = KernelRegressor(ridge=0.1).fit(X, np.stack([y, -2 * y], axis=1))
    alone = KernelRegressor(ridge=0.1).fit(X, y)
    assert both.predict(X).shape == (500, 2)
    np.testing.assert_allclose(both.predict(X)[:, 0], alone.predict(X), rtol=1e-6, atol=1e-9)


def test_frames_pipelines_and_search(blobs):
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(blobs[0], columns=["east", "north"])
    y = pandas.Series(np.array(["a", "b", "c"])[blobs[1]])
    pipe = make_pipeline(StandardScaler().set_output(transform="pandas"), KernelClassifier(random_state=0))
    search = GridSearchCV(pipe, {"kernelclassifier__ridge": [0.1, 10.0]}, cv=3, n_jobs=2).fit(X, y)
    assert search.best_score_ > 0.85 and set(search.predict(X)) == {"a", "b", "c"}
    fitted = search.best_estimator_[-1]
    assert fitted.feature_names_in_.tolist() == ["east", "north"]
    with pytest.raises(ValueError, match="feature names"):
        fitted.predict(X[["north", "east"]])
    assert cross_val_score(KernelClassifier(random_state=0), X, y, cv=3, scoring="neg_log_loss").min() > -0.6


def test_clone_and_kernel_objects(blobs):
    X, y = blobs
    model = clone(KernelClassifier(Kernel("gaussian", bandwidth=1.0), ridge=1.0)).fit(X, y)
    assert str(model.model_.kernel) == "gaussian:bandwidth=1"
    own = KernelClassifier(Kernel.from_function(lambda r: np.exp(-r)), centers=40, ridge=0.1).fit(X, y)
    assert clone(own).fit(X, y).score(X, y) > 0.8


def test_model_file_of_an_estimator(blobs, tmp_path):
    X, y = blobs
    model = KernelClassifier(centers=50, random_state=0).fit(X, np.array(["a", "b", "c"])[y])
    model.model_.save(tmp_path / "m.safetensors")
    plain = Model.load(tmp_path / "m.safetensors")
    assert plain.labels == ["a", "b", "c"]
    np.testing.assert_array_equal(np.array(plain.labels)[plain.classify(X)], model.predict(X))


def test_sparse_is_refused(waves):
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(TypeError, match="dense"):
        KernelRegressor().fit(sparse.csr_matrix(waves[0]), waves[1])


def _score_in_child(model, X, y, queue):
    queue.put(model.fit(X, y).score(X, y))


def test_a_forked_process_can_continue(blobs):
    """Threads do not survive a fork, so the child has to start its own."""
    X, y = blobs
    model = KernelClassifier(random_state=0, n_jobs=2).fit(X, y)
    fork = multiprocessing.get_context("fork")
    queue = fork.Queue()
    child = fork.Process(target=_score_in_child, args=(model, X, y, queue), daemon=True)
    child.start()
    child.join(60)
    if child.is_alive():
        child.kill()
        pytest.fail("the child hangs")
    assert queue.get(timeout=5) == model.score(X, y)


# ---- Progress, plots and reports ----


def test_callbacks(waves):
    X, y = waves
    seen = []
    model = KernelRegressor(solver="ep4", epochs=50)
    model.fit(X, y, callbacks=[lambda p: seen.append(p["epoch"]) or p["epoch"] >= 3])
    assert model.n_iter_ == 3 and max(seen) == 3 and model.summary_["stopped"] == "callback"


def test_control_c(waves):
    X, y = waves

    def interrupt(state):  # interrupts after the first epoch, independent of the machine's speed
        if state["epoch"] >= 1:
            os.kill(os.getpid(), signal.SIGINT)

    model = KernelClassifier(solver="ep4", epochs=10**6)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y > 0, callbacks=[interrupt])
    assert model.score(X, y > 0) > 0.8 and model.predict_proba(X).shape == (500, 2)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_progress_line(waves, capsys):
    KernelRegressor(solver="ep4", epochs=3, verbose=2).fit(*waves)
    shown = capsys.readouterr()
    assert shown.err.count("\n") == 3 and "100% |####" in shown.err and "epoch 3/3" in shown.err
    assert "solver" in shown.out or "epochs" in shown.out


def test_progress_line_on_a_terminal(waves, monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    KernelRegressor(solver="ep4", epochs=3, verbose=1).fit(*waves)
    err = capsys.readouterr().err
    assert err.count("\r") >= 3 and err.count("\n") == 1


def test_remaining_time_is_measured_over_epochs(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: True)
    bar = Bar(stream)
    empty = dict.fromkeys(("train_loss", "train_accuracy", "validation_loss", "validation_accuracy"), math.nan)
    at = {**empty, "epochs": 4, "pass_samples": 0, "pass_total": 100, "phase_share": -1.0}
    bar({**at, "epoch": 0, "samples": 0, "seconds": 8.0, "phase": "eigensystem"})
    assert stream.getvalue().startswith("\rsetting up: eigensystem, 8.0 s")
    bar({**at, "epoch": 0, "samples": 0, "seconds": 10.0, "phase": "ready"})
    bar({**at, "epoch": 1, "samples": 100, "seconds": 12.0, "phase": None})
    assert "50 rows/s, 12.0 s, 6 s left" in stream.getvalue()


def test_set_up_reaches_callbacks(waves):
    seen = []
    model = KernelRegressor(solver="ep4", epochs=2).fit(*waves, callbacks=[seen.append])
    phases = [progress["phase"] for progress in seen]
    assert "eigensystem" in phases and None in phases and "ready" in phases and phases[-1] == "calibration"
    assert len(model.history_["train_loss"]) == 2


def test_every_option_of_training(waves):
    model = clone(KernelRegressor(solver="ep4", epochs=2, projector="exact", eigenpairs=7, random_state=0)).fit(*waves)
    assert model.plan_["projector"] == "exact" and model.plan_["eigenpairs"] == 7
    assert model.get_params()["advanced"]["eigenpairs"] == 7 and KernelRegressor().get_params()["advanced"] is None
    with pytest.raises(TypeError, match="KernelRegressor .*'eigenpair'"):
        KernelRegressor(eigenpair=7)
    with pytest.raises(ValueError, match=r"advanced .*'eigenpair'.*'eigenpairs'\?"):
        mercer.KernelRegressor(advanced={"eigenpair": 7}).fit(*waves)
    with pytest.raises(ValueError, match="patience"):
        KernelRegressor(patience=2).fit(*waves)


def test_plots(waves):
    pytest.importorskip("matplotlib")
    model = KernelRegressor(solver="ep4", epochs=3).fit(*waves)
    assert len(model.plot_history().lines) == 1 and len(model.plot_spectrum().lines) == 1
    direct = KernelRegressor(solver="direct").fit(*waves)
    for axes in direct.plot_spectrum(), direct.plot_history():
        assert not axes.lines and "solver direct" in axes.texts[0].get_text()
    stream = KernelRegressor().partial_fit(*waves)
    for axes in stream.plot_spectrum(), stream.plot_history():
        assert "partial_fit" in axes.texts[0].get_text()
    with pytest.raises(NotFittedError):
        KernelRegressor().plot_history()


@pytest.fixture(scope="module")
def default_fits():
    """Return a regressor and a classifier with default parameters and a seed, fitted to enough rows for a search."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(600, 3))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
    regressor = mercer.KernelRegressor(random_state=0).fit(X, y)
    assert regressor.summary_["search"]["steps"]
    return regressor, mercer.KernelClassifier(random_state=0).fit(X, y > 0)


def test_plots_after_a_default_fit(default_fits):
    pytest.importorskip("matplotlib")
    for fitted in default_fits:
        for plot in fitted.plot_history, fitted.plot_spectrum:
            axes = plot()
            assert axes.lines or "ep4" in axes.texts[0].get_text()


def test_report_after_a_default_fit(default_fits, tmp_path):
    for fitted in default_fits:
        page = Path(fitted.report(tmp_path / "page.html")).read_text(encoding="utf-8")
        assert "Held-out error" in page and "Importance" in page and "Partial dependence" in page
        assert ("Residuals" if fitted is default_fits[0] else "Calibration") in page and "cross-validated training" in page
        assert str(fitted.model_.kernel).partition(":")[0] in page


def test_report(waves, tmp_path):
    path = KernelRegressor(solver="ep4", epochs=3).fit(*waves).report(tmp_path / "page.html")
    page = Path(path).read_text(encoding="utf-8")
    assert page.startswith("<!") and "KernelRegressor" in page and "<script" not in page
    KernelRegressor().fit(*waves).report(tmp_path / "direct.html")
    mercer.KernelRegressor(advanced={"learn_features": True}, effort=1).fit(*waves).report(tmp_path / "features.html")
    with pytest.raises(OSError):
        KernelRegressor().fit(*waves).report(tmp_path / "no" / "folder.html")
