# SPDX-License-Identifier: BSD-3-Clause
"""The first steps of a new user: the signature, progress, files, eval_set, hyperparameters, importances, threads and routing."""

import inspect
import json
import pickle
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

pytest.importorskip("sklearn")
pandas = pytest.importorskip("pandas")

from sklearn import config_context  # noqa: E402
from sklearn.base import clone  # noqa: E402
from sklearn.feature_selection import SelectFromModel  # noqa: E402
from sklearn.model_selection import cross_val_score  # noqa: E402
from sklearn.pipeline import Pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402

import mercer  # noqa: E402
from expect import warns  # noqa: E402
from mercer import KernelClassifier, KernelRegressor  # noqa: E402
from mercer import _estimators as E  # noqa: E402
from mercer._estimators import progress  # noqa: E402

RNG = np.random.default_rng(5)
X = RNG.normal(size=(400, 4))
Y = np.sin(2 * X[:, 0]) + np.abs(X[:, 1]) + 0.1 * RNG.normal(size=400)
FRAME = pandas.DataFrame(X, columns=list("abcd")).assign(city=RNG.choice(["Bonn", "Graz", "Oslo"], 400))
FRAME.loc[::17, "b"] = np.nan
PRICE = Y + (FRAME["city"] == "Oslo")
BOTH = pytest.mark.parametrize("estimator", [KernelRegressor, KernelClassifier])
# Parameters of the constructors of 0.2 that moved.
MOVED = [
    "arithmetic", "average", "batch_size", "cache", "calibrate_to", "carry", "center_method", "converge", "decay", "eigenpairs",
    "epochs", "learn_features", "metric", "nystrom", "patience", "period", "polish", "precision", "preprocess", "projector",
    "projector_block", "projector_eigenpairs", "projector_nystrom", "projector_passes", "projector_tolerance", "step_factor", "tol",
    "validation_fraction", "warm_start",
]  # fmt: skip


def quick(estimator=KernelRegressor, **parameters):
    return estimator(**{"effort": 1, "random_state": 0, **parameters})


# ---- Signature ----


@BOTH
def test_signature(estimator):
    parameters = inspect.signature(estimator).parameters
    assert len(parameters) <= 20 and not any(p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL) for p in parameters.values())
    documentation = inspect.getdoc(estimator)
    for name in parameters:
        line = documentation.split(f"\n{name} : ", 1)[1].split("\n")
        assert line[1].startswith("    ") and line[1].strip()[-1] in ".:", name
        assert not line[2].startswith("    ") or name == "advanced", f"{name}: several lines"
    for name in {**E.ADVANCED, **estimator._advanced_only}:
        assert f"- ``{name}``: " in documentation


@BOTH
@pytest.mark.parametrize("name", MOVED)
def test_moved_parameters(estimator, name):
    """A parameter of 0.2 raises an error that names the replacement, and the replacement works."""
    if name == "calibrate_to" and estimator is KernelRegressor:
        pytest.skip("only a classifier had it")
    message = rf"{name}: .*{estimator.__name__}\(advanced=\{{'{name}': \.\.\.\}}\)"
    with pytest.raises(TypeError, match=message):
        estimator(**{name: None})
    with pytest.raises(ValueError, match=message):
        estimator().set_params(**{name: None})
    estimator(advanced={name: None})._check_advanced()


def test_unknown_parameters():
    with pytest.raises(TypeError, match="n_centers .*centers=NUMBER or centers='all'"):
        KernelRegressor(n_centers=5)
    with pytest.raises(TypeError, match="KernelRegressor .*'kernal'"):
        KernelRegressor(kernal="laplace")
    for advanced, message in (
        ({"epoch": 3}, r"advanced .*'epoch'.*'epochs'\?"),
        ({"ridge": 3}, "advanced: 'ridge' .*KernelRegressor"),
    ):
        with pytest.raises(ValueError, match=message):
            KernelRegressor(advanced=advanced).fit(X, Y)
    with pytest.raises(TypeError, match="advanced .*3; .*dict"):
        KernelRegressor(advanced=3).fit(X, Y)


def test_equal_calls_give_equal_models():
    assert quick().fit(X, Y).model_.to_bytes() == quick().fit(X, Y).model_.to_bytes()


# ---- Progress ----


def test_callbacks_hear_every_stage():
    seen = []
    quick(KernelClassifier).fit(X, Y > 1, callbacks=[seen.append])
    phases = list(dict.fromkeys(p["phase"] for p in seen))
    assert phases[0] == "search" and None in phases and "calibration" in phases, phases
    shares = [p["phase_share"] for p in seen if p["phase"] == "search"]
    assert len(shares) > 10 and shares == sorted(shares) and 0 < shares[0] < 0.2 and shares[-1] == 1


def test_progress_begins_with_the_search(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    quick(verbose=1).fit(X, Y)
    shown = capsys.readouterr().err.split("\r")
    assert "data" in shown[1] and "held-out R2 0." in shown[2]


@pytest.mark.parametrize("verbose, seconds, shows", [(None, 0.0, True), (None, 3600.0, False), (0, 0.0, False)])
def test_progress_in_notebooks(monkeypatch, capsys, verbose, seconds, shows):
    """In a notebook, a fit that takes longer than some seconds shows its progress by default."""
    monkeypatch.setattr(progress, "in_notebook", lambda: True)
    monkeypatch.setattr(progress, "NOTEBOOK_SECONDS", seconds)
    quick(verbose=verbose).fit(X, Y)
    assert ("searching" in capsys.readouterr().err) == shows


def test_progress_of_a_notebook_is_one_output(monkeypatch):
    """All lines of a fit replace each other in one output of the cell, and the last one says that it is done."""
    lines = []
    monkeypatch.setattr(progress, "in_notebook", lambda: True)
    monkeypatch.setattr(progress, "_notebook_output", lambda: lines.append)
    monkeypatch.setattr(progress, "NOTEBOOK_SECONDS", 0.0)
    model = quick(effort=4).fit(X[:100], Y[:100])
    assert "hyperparameters" in lines[0] and any("models" in line for line in lines)
    assert lines[-1].startswith("100% |####################| done, ") and model.summary_["wall_time"] > 0


def test_no_progress_elsewhere(capsys):
    quick().fit(X, Y)
    assert capsys.readouterr().err == ""


# ---- Files ----


@pytest.mark.parametrize(
    "classes, extra",
    [
        (["no", "yes", "maybe"], False),
        ([3, 1, 2], False),
        ([1.0, 2.0, -1.0], True),
        ([True, False], True),
        (["1", "2", "10"], True),
        (["a\nb", "", "c"], True),
    ],
)
def test_saved_classifier(tmp_path, classes, extra):
    """A loaded classifier has the same classes of the same type, and the same predictions for data frames."""
    y = np.array(classes)[np.arange(400) % len(classes)]
    model = quick(KernelClassifier, tune="off").fit(FRAME, y)
    model.save(tmp_path / "m.safetensors")
    again = mercer.load(tmp_path / "m.safetensors")
    assert isinstance(again, KernelClassifier) and again.classes_.dtype.kind == model.classes_.dtype.kind
    np.testing.assert_array_equal(again.classes_, model.classes_)
    np.testing.assert_array_equal(again.predict(FRAME), model.predict(FRAME))
    np.testing.assert_array_equal(again.predict_proba(FRAME[::-1]), model.predict_proba(FRAME[::-1]))
    assert list(again.feature_names_in_) == list(FRAME.columns) and again.n_features_in_ == 5
    assert again.temperature_ == model.temperature_
    assert ("python" in json.loads(again.model_.note)) == extra
    assert (again.model_.to_bytes() == model.model_.to_bytes()) == (not extra)


@pytest.mark.parametrize("shape", [(400,), (400, 1), (400, 2)])
def test_saved_regressor(tmp_path, shape):
    y = np.stack([Y, -Y], axis=1)[:, : shape[-1] if len(shape) > 1 else 1].reshape(shape)
    model = quick(intervals=True, tune="off").fit(X, y)
    model.save(tmp_path / "m.safetensors")
    again = mercer.load(tmp_path / "m.safetensors")
    assert isinstance(again, KernelRegressor) and again.predict(X).shape == model.predict(X).shape
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.predict_interval(X), model.predict_interval(X))
    pickle.loads(pickle.dumps(again)).partial_fit(X, y)
    again.fit(X, y)


def test_saved_columns_and_missing(tmp_path):
    """Kinds of columns and words for missing values apply to frames that a loaded model predicts."""
    frame = FRAME.assign(zip=np.arange(400) % 7, d=np.where(np.arange(400) % 9 == 0, -999.0, FRAME["d"]), id=np.arange(400))
    model = quick(columns={"zip": "category", "id": "drop"}, missing=-999).fit(frame, PRICE)
    model.save(tmp_path / "m.safetensors")
    again = mercer.load(tmp_path / "m.safetensors")
    assert again.columns == model.columns and again.missing == ["-999"]
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))


def test_files_that_are_not_models(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n" * 100)
    with pytest.raises(ValueError, match="t.csv .*Mercer model"):
        mercer.load(tmp_path / "t.csv")
    with pytest.raises(FileNotFoundError, match="none"):
        mercer.load(tmp_path / "none")


# ---- eval_set and early stopping ----


def test_eval_set():
    """Rows of eval_set are used for early stopping and intervals, and all rows of X for training."""
    options = {"solver": "ep4", "tune": "off", "advanced": {"epochs": 60}, "early_stopping": True}
    model = quick(**options).fit(X[:300], Y[:300], eval_set=(X[300:], Y[300:]))
    assert json.loads(model.model_.note)["rows"] == 300 and model.n_iter_ < 60
    best = model.history_["validation_loss"].min()
    assert best == pytest.approx(((model.predict(X[300:]) - Y[300:]) ** 2).mean(), rel=0.2)
    low, high = model.predict_interval(X[300:], 0.9)
    assert 0.9 <= ((low <= Y[300:]) & (Y[300:] <= high)).mean() <= 0.97  # the rows that the width comes from
    assert "100 rows of eval_set" in model.held_out_score()[1]


def test_eval_set_of_frames_and_classes():
    labels = np.where(PRICE > 1, "high", "low")
    model = quick(KernelClassifier).fit(FRAME[:300], labels[:300], eval_set=[(FRAME[300:], labels[300:])])
    assert 0.01 < model.temperature_ != 0.25 and model.feature_importances_.shape == (5,)
    with pytest.raises(ValueError, match="eval_set: y .*'new'"):
        quick(KernelClassifier).fit(FRAME, labels, eval_set=(FRAME, np.full(400, "new")))
    with pytest.raises(ValueError, match=r"eval_set .*\(X, y\)"):
        quick().fit(X, Y, eval_set=X)
    with pytest.raises(ValueError, match="eval_set: X has 5 features"):
        quick().fit(X, Y, eval_set=(np.hstack([X, X[:, :1]]), Y))


def test_early_stopping_without_effect():
    with pytest.raises(ValueError, match="early_stopping .*'krr'"):
        KernelRegressor(solver="krr", early_stopping=True).fit(X, Y)
    with pytest.raises(ValueError, match="early_stopping .*eval_set.*validation_fraction"):
        KernelRegressor(early_stopping=True, advanced={"validation_fraction": 0}).fit(X, Y)
    with warns("early_stopping", "cg", "1 step"):
        quick(early_stopping=True).fit(X, Y)


# ---- Hyperparameters ----


@pytest.mark.parametrize("kernel", [None, "laplace-l1", "gaussian"])
def test_best_params_give_the_same_model(kernel):
    """A fit with best_params_ has no search, and predicts the same.

    The weights of the metric are roots of the scales, so points differ by the rounding of float, 6e-8. A small ridge
    amplifies that: 1e-6 of the variance is far above it, and far below the effect of any other weight.
    """
    model = quick(kernel=kernel).fit(FRAME, PRICE)
    again = KernelRegressor(**model.best_params_).fit(FRAME, PRICE)
    assert ((again.predict(FRAME) - model.predict(FRAME)) ** 2).mean() < 1e-6 * PRICE.var()
    assert not again.summary_["search"]["steps"]
    clone(again)
    assert pickle.loads(pickle.dumps(model)).best_params_["ridge"] == model.best_params_["ridge"]


@BOTH
def test_search_once(estimator):
    """search_once finds the hyperparameters of a fit, and cross-validation with them does not search."""
    y = PRICE if estimator is KernelRegressor else np.where(PRICE > 1, "high", "low")
    unchanged = quick(estimator)
    params = unchanged.search_once(FRAME, y)
    assert not hasattr(unchanged, "model_")
    found = quick(estimator).fit(FRAME, y).best_params_
    assert {n: params[n] for n in ("kernel", "ridge", "tune", "centers")} == {n: found[n] for n in ("kernel", "ridge", "tune", "centers")}
    start = time.process_time()
    scores = cross_val_score(estimator(**params), FRAME, y, cv=3)
    once = time.process_time() - start
    start = time.process_time()
    every = cross_val_score(quick(estimator), FRAME, y, cv=3)
    assert once < time.process_time() - start
    assert scores.mean() > every.mean() - 0.05


# ---- Importances and representation ----


def test_feature_importances():
    frame = FRAME.assign(name=[f"row {i}" for i in range(400)])
    with warns("name", "'row "):
        model = quick().fit(frame, PRICE)
    found = dict(zip(model.feature_names_in_, model.feature_importances_))
    assert found["name"] == 0 and min(found["a"], found["b"], found["city"]) > 10 * max(0.001, abs(found["c"]))
    assert model.feature_importances_ is not None and model._held_out is not None  # computed once
    selected = SelectFromModel(quick(tune="off")).fit(X, Y).get_support()
    assert selected[0] and not selected[2]
    with pytest.raises(AttributeError, match="partial_fit .*rows"):
        quick().partial_fit(X, Y).feature_importances_


def test_held_out_predictions_are_honest():
    """Targets that are noise have a held-out R2 near 0, also for a model that interpolates them, and for repeated rows."""
    noise = RNG.normal(size=400)
    model = quick(tune="off", ridge=0).fit(np.vstack([X, X]), np.r_[noise, noise])
    assert model.score(X, noise) > 0.99 and model.held_out_score()[0] < 0.1


def test_held_out_score_of_a_fit():
    """summary_ has the metrics of held-out rows: by cross-validation of up to 5,000 rows, or of eval_set."""
    model = quick().fit(X[:300], Y[:300])
    found = model.summary_["held_out"]
    assert found["rows"] == 300 and found["r2"] == pytest.approx(model.score(X[300:], Y[300:]), abs=0.05)
    given = quick().fit(X[:300], Y[:300], eval_set=(X[300:], Y[300:]))
    assert given.summary_["held_out"]["r2"] == pytest.approx(given.score(X[300:], Y[300:]), rel=1e-6)
    many = np.random.default_rng(0).normal(size=(6000, 2))
    assert quick(tune="off", centers=50).fit(many, many[:, 0]).summary_["held_out"] is None
    assert quick(KernelClassifier, tune="off", centers=50).fit(many, many[:, 0] > 0).summary_["held_out"]["rows"] == 300
    assert quick(advanced={"validation_fraction": 0}).fit(X, Y).summary_["held_out"] is None


@BOTH
def test_html_shows_the_model(estimator):
    y = PRICE if estimator is KernelRegressor else np.where(PRICE > 1, "high", "low")
    model = quick(estimator)
    assert "mercer" not in model._repr_mimebundle_()["text/html"].partition("<style>")[0]
    page = model.fit(FRAME, y)._repr_mimebundle_()["text/html"]
    name = str(model.model_.kernel).partition(":")[0]
    for part in (name, "400 centers", "R2" if estimator is KernelRegressor else "accuracy", "on 400 held-out rows", "city (category)", "a (number)"):
        assert part in page, part
    assert model.feature_importances_ is not None
    assert "training rows" in model._repr_html_()
    hostile = quick(tune="off").fit(FRAME.rename(columns={"a": "<i>a"}), PRICE)
    assert "&lt;i&gt;a (number)" in hostile._repr_html_() and "<i>a (number)" not in hostile._repr_html_()


# ---- Threads and routing ----


@pytest.mark.parametrize("name", ["predict", "predict_proba", "decision_function"])
def test_eight_predicting_threads(name):
    labels = np.where(PRICE > 1, "high", "low")
    model = quick(KernelClassifier, tune="off").fit(FRAME, labels)
    parts = [FRAME.iloc[i * 7 % 300 : i * 7 % 300 + 60] for i in range(64)]
    expected = [getattr(model, name)(part) for part in parts]
    with ThreadPoolExecutor(8) as pool:
        for found, wanted in zip(pool.map(getattr(model, name), parts), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", ["sample_weight", "groups", "times"])
def test_routing_in_a_pipeline(name):
    """Weights, groups and times reach the estimator at the end of a pipeline."""
    values = {"sample_weight": np.linspace(0, 2, 400), "groups": np.arange(400) // 8, "times": np.arange(400)}[name]
    Z = StandardScaler().fit_transform(X)
    with config_context(enable_metadata_routing=True):
        last = quick(intervals=True).set_fit_request(**{name: True})
        pipe = Pipeline([("scale", StandardScaler().set_fit_request(sample_weight=False)), ("model", last)]).fit(X, Y, **{name: values})
    direct = quick(intervals=True).fit(Z, Y, **{name: values})
    assert pipe[-1].model_.to_bytes() == direct.model_.to_bytes()
    assert pipe[-1].model_.to_bytes() != quick(intervals=True).fit(Z, Y).model_.to_bytes()
