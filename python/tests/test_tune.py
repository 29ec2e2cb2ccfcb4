# SPDX-License-Identifier: BSD-3-Clause
"""The hyperparameter search of the estimators: effort, budget, given hyperparameters, report, progress."""

import os
import pickle
import signal
import time
import warnings

import numpy as np
import pytest

pytest.importorskip("sklearn")

import mercer  # noqa: E402
from expect import warns  # noqa: E402
from mercer import Kernel, Model  # noqa: E402
from mercer._context import MercerWarning  # noqa: E402
from untuned import flat  # noqa: E402

KernelClassifier, KernelRegressor = flat(mercer.KernelClassifier), flat(mercer.KernelRegressor)

RNG = np.random.default_rng(3)
X = RNG.normal(size=(900, 6))
Y = np.sin(2 * X[:, 0]) + np.abs(X[:, 1])
LABELS = np.where(Y > 0.8, "high", "low")
QUICK = {"effort": 1, "random_state": 0}
REPORT = {
    "skipped", "effort", "error", "r2", "ridge", "seconds", "rows", "held", "cut", "centers", "twice_the_centers", "members", "steps",
}  # fmt: skip


def fitted(**parameters):
    return KernelRegressor(**{**QUICK, **parameters}).fit(X[:600], Y[:600])


def search_of(**parameters):
    return fitted(**parameters).summary_["search"]


# ---- Effort ----


def test_search():
    plain = KernelRegressor(random_state=0, tune="off").fit(X[:600], Y[:600])
    model = KernelRegressor(random_state=0, n_jobs=1).fit(X[:600], Y[:600])
    search = model.summary_["search"]
    assert set(search) == REPORT and search["skipped"] is None and search["effort"] == 3 and not search["cut"]
    assert 0 < search["error"] < 0.1 and search["r2"] == 1 - search["error"] and search["ridge"] > 0
    assert search["rows"] > 0 and search["held"] > 0 and search["seconds"] > 0
    assert search["centers"] == {600: search["error"]}  # Cross-validation trains on all rows.
    stages = {step["stage"] for step in search["steps"]}
    assert {1, 2} < stages <= {1, 2, 3, 4}
    assert all(step["error"] > 0 and step["ridge"] > 0 for step in search["steps"])
    assert model.score(X[600:], Y[600:]) > plain.score(X[600:], Y[600:])
    assert "search: effort 3, " in model.plan_["text"]
    again = KernelRegressor(random_state=0, n_jobs=2).fit(X[:600], Y[:600])
    assert again.model_.to_bytes() == model.model_.to_bytes()


def test_errors_by_number_of_centers():
    """With 2,000 rows or more, the search reports errors at three numbers of centers."""
    A = np.random.default_rng(4).normal(size=(2000, 6))
    centers = KernelRegressor(**QUICK).fit(A, np.sin(2 * A[:, 0]) + np.abs(A[:, 1])).summary_["search"]["centers"]
    sizes = sorted(centers)
    assert len(sizes) == 3 and centers[sizes[2]] <= centers[sizes[0]]


def test_efforts():
    """A larger effort takes at least as many steps; None is the default effort."""
    steps = [search_of(effort=effort)["steps"] for effort in (1, 2, 5)]
    assert len(steps[0]) < len(steps[1]) <= len(steps[2])
    assert [search_of(effort=effort)["members"] for effort in (2, 4)] == [1, 3]
    assert fitted(effort=None).model_.to_bytes() == fitted(effort=3).model_.to_bytes()
    assert search_of(effort=np.int64(1))["effort"] == 1


def test_effort_without_a_search():
    """The effort also sets the number of centers."""
    A, b = np.random.default_rng(0).normal(size=(4000, 2)), np.zeros(4000)
    for effort, centers in ((1, 2500), (2, 4000)):
        model = KernelRegressor(tune="off", effort=effort, ridge=1.0, random_state=0).fit(A, b)
        assert len(model.model_.centers) == centers and model.summary_["search"]["effort"] == effort


@pytest.mark.parametrize("wrong", [0, 6, -1, 2.0, True, "3", np.nan, [3]])
def test_invalid_effort(wrong):
    with pytest.raises(ValueError, match=r"effort is .*1 to 5"):
        KernelRegressor(effort=wrong).fit(X, Y)


# ---- Budget ----


def test_budget():
    """A sufficient budget selects effort 5, or the given effort, and has no other effect."""
    assert search_of(effort=3, budget=600)["effort"] == 5 and search_of(effort=None, budget=600.0)["effort"] == 5
    limited = fitted(effort=1, budget=600)
    assert limited.summary_["search"]["effort"] == 1 and not limited.summary_["search"]["cut"]
    assert limited.model_.to_bytes() == fitted(effort=1).model_.to_bytes()


@pytest.mark.parametrize("kind, target", [(KernelRegressor, Y), (KernelClassifier, LABELS)])
def test_budget_that_is_too_small(kind, target):
    with warns("search.budget", " 0 s "):
        model = kind(budget=1e-6, random_state=0).fit(X[:600], target[:600])
    search = model.summary_["search"]
    assert search["effort"] == 1 and search["cut"] and 1 <= len(search["steps"]) < 5
    assert "time limit" in model.plan_["text"]
    assert model.score(X[600:], target[600:]) > 0.5


def test_budget_ends_training():
    """The budget ends an iterative solver that has epochs left."""
    with pytest.warns(MercerWarning):
        model = KernelRegressor(bandwidth=3.0, ridge=1e-3, solver="ep4", epochs=10**6, budget=0.5, random_state=0).fit(X, Y)
    assert model.summary_["stopped"] == "budget" and model.n_iter_ < 10**6 and model.score(X, Y) > 0.8


@pytest.mark.parametrize("wrong", [0, -1, "10s", True, np.nan, np.inf, [1]])
def test_invalid_budget(wrong):
    with pytest.raises(ValueError, match=r"budget is .*seconds"):
        KernelRegressor(budget=wrong).fit(X, Y)


# ---- Which fits are searched ----


def test_default():
    """Hyperparameters are searched by default on tables with 50 distinct rows or more."""
    for given in ({}, {"kernel": "laplace"}, {"ridge": 1.0}, {"solver": "cg"}, {"metric": np.ones(6)}, {"bandwidth": 2.0}):
        search = KernelRegressor(**QUICK, **given).fit(X[:50], Y[:50]).summary_["search"]
        assert search["skipped"] is None and search["steps"]
    for rows, given, why in [(49, {}, "50 distinct rows"), (500, {"tune": "off"}, "off"), (500, {"tune": False}, "off")]:
        plain = KernelRegressor(**QUICK, **given).fit(X[:rows], Y[:rows])
        search = plain.summary_["search"]
        assert set(search) == REPORT and why in search["skipped"] and search["steps"] == [] and search["centers"] == {}
        assert np.isnan(search["error"]) and np.isnan(search["r2"]) and "search: none, " in plain.plan_["text"]
    pixels = np.tile((X * 20 + 128).clip(0, 255).astype(np.uint8), 11)
    assert "bytes" in KernelRegressor(**QUICK, centers=40).fit(pixels, Y).summary_["search"]["skipped"]
    for tune in (True, "on", np.True_):
        assert KernelRegressor(**QUICK, centers=40, tune=tune).fit(pixels, Y).summary_["search"]["steps"]
    with warns("search.tune", "f16"):
        assert "f16" in KernelRegressor(**QUICK, centers=40).fit(pixels.astype(np.float16), Y).summary_["search"]["skipped"]


@pytest.mark.parametrize("type_", [np.uint8, np.float16])
def test_few_columns_are_a_table_in_every_type(type_):
    """Without a search, R2 would be lower by more than .02."""
    values = (X * 40 + 128).clip(0, 255).astype(np.uint8)
    scores = []
    for table in (values.astype(np.float64), values.astype(type_)):
        model = KernelRegressor(**QUICK).fit(table[:600], Y[:600])
        assert model.summary_["search"]["steps"]
        scores.append(model.score(table[600:], Y[600:]))
    assert abs(scores[0] - scores[1]) < 0.005


def test_equal_rows_are_one():
    rows = np.repeat(np.arange(40), 3)
    assert "50 distinct rows" in KernelRegressor(**QUICK).fit(X[rows], Y[rows]).summary_["search"]["skipped"]


@pytest.mark.parametrize(
    ("options", "words"),
    [({"tune": -1}, "tune is -1; .*budget"), ({"tune": 60}, "tune is 60; .*budget"),
     ({"tune": "yes"}, "tune is 'yes'"), ({"tune": None}, "tune is None"),
     ({"tune": True, "kernel": Kernel("gaussian:bandwidth=2")}, "kernel .*Kernel")],
)
def test_rejected_parameters(options, words):
    with pytest.raises(ValueError, match=words):
        KernelRegressor(**options).fit(X, Y)


def test_parameters_of_earlier_versions():
    for name in ("kernels", "criterion", "average_models"):
        with pytest.raises(TypeError, match=f"KernelRegressor .*'{name}'"):
            KernelRegressor(**{name: None})


# ---- Given hyperparameters are not changed ----


@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "matern32", "laplace-l1", "exppower:gamma=0.7"])
def test_given_kernel(kernel):
    with warns("kernel.spec", kernel):
        found = fitted(kernel=kernel).model_.kernel
    name, _, parameters = kernel.partition(":")
    assert str(found).partition(":")[0] == name and parameters in str(found) and "bandwidth=" in str(found)


@pytest.mark.parametrize("ridge", [0.25, 3.0])
def test_given_ridge(ridge):
    model = fitted(ridge=ridge)
    assert model.plan_["ridge"] == ridge
    assert model.summary_["search"]["ridge"] == pytest.approx(ridge / 600)


@pytest.mark.parametrize("preprocess", ["none", "standardize", "minmax", "rank"])
def test_given_preprocess(preprocess):
    assert fitted(preprocess=preprocess).model_.preprocess.partition(":")[0].partition("+")[0].strip() == preprocess


def test_given_metric():
    """With a given metric, only its scale (the bandwidth) is searched."""
    metric = np.array([1.0, 4, 0.5, 0, 1, 1])
    model = fitted(metric=metric)
    found = model.model_.metric
    assert np.allclose(found / found[0], metric / metric[0]) and model.model_.preprocess.startswith("standardize")


def test_givecenters():
    model = fitted(centers=70)
    assert len(model.model_.centers) == 70
    own = KernelRegressor(**QUICK, centers=X[:30]).fit(X[:600], Y[:600])
    np.testing.assert_allclose(own.model_.centers, own.model_.preprocessed(X[:30]), rtol=1e-6, atol=1e-7)


# ---- Samples ----


@pytest.mark.parametrize("kind, target", [(KernelRegressor, Y), (KernelClassifier, LABELS)])
def test_weights_are_repetitions(kind, target):
    counts = np.random.default_rng(1).integers(1, 4, 300)
    weighted = kind(**QUICK).fit(X[:300], target[:300], counts.astype(float))
    rows = np.concatenate([np.arange(300), np.repeat(np.arange(300), counts - 1)])
    repeated = kind(**QUICK).fit(X[rows], target[rows])
    assert repeated.model_.to_bytes() == weighted.model_.to_bytes()


def test_groups_and_times():
    """Whole groups are held out: a feature that identifies the group is useful only without group keys."""
    rng = np.random.default_rng(4)
    groups = np.repeat(np.arange(60), 10)
    A, b = np.c_[groups, rng.normal(size=600)], rng.normal(size=60)[groups]
    errors = [
        KernelRegressor(**QUICK).fit(A, b, groups=keys).summary_["search"]["error"] for keys in (None, [f"g{k}" for k in groups])
    ]
    assert errors[0] < 0.3 and errors[1] > 0.8
    times = np.arange("2020-01-01", "2021-09-01", dtype="datetime64[D]")[:600]
    search = KernelRegressor(**QUICK).fit(A, b, times=times).summary_["search"]
    assert 0 < search["held"] <= 200 and search["rows"] + search["held"] <= 600
    for wrong, words in (({"groups": groups[:9]}, "groups .*shape"), ({"times": ["a"] * 600}, "times .*array")):
        with pytest.raises(ValueError, match=words):
            KernelRegressor(**QUICK).fit(A, b, **wrong)


def test_few_groups():
    groups = np.arange(600) % 49
    with warns("groups", "50"):
        model = KernelRegressor(**QUICK).fit(X[:600], Y[:600], groups=groups)
    assert "groups" in model.summary_["search"]["skipped"]


def test_options_of_training_do_not_warn_about_others(recwarn):
    """After a search, the planner prefers converging solvers. Neither average=True, which excludes them, nor converge=False warns."""
    model = fitted(average=True)
    assert model.plan_["solver"] == "ep4" and not recwarn.list
    assert fitted(converge=False).plan_["solver"] == "krr" and not recwarn.list


def test_classes_and_pickle(tmp_path):
    model = KernelClassifier(**QUICK).fit(X[:600], LABELS[:600])
    shares = model.predict_proba(X[600:])
    assert np.array_equal(model.classes_[shares.argmax(axis=1)], model.predict(X[600:]))
    assert model.score(X[600:], LABELS[600:]) > 0.9
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict_proba(X[600:]), shares) and again.model_.to_bytes() == model.model_.to_bytes()
    assert again.summary_["search"]["steps"] == model.summary_["search"]["steps"]
    model.model_.save(tmp_path / "m")
    assert np.array_equal(Model.load(tmp_path / "m").probabilities(X[600:]), shares)


def test_warm_start_keeps_what_was_found():
    model = fitted(warm_start=True)
    kernel = str(model.model_.kernel)
    model.fit(X[:600], Y[:600])
    assert str(model.model_.kernel) == kernel and "model" in model.summary_["search"]["skipped"]


# ---- Progress ----


def test_callbacks_receive_the_progress_of_the_search():
    heard = []
    model = KernelClassifier(**QUICK).fit(X[:600], LABELS[:600], callbacks=[heard.append])
    steps = [progress for progress in heard if progress["phase"] == "search"]
    assert len(steps) == len(model.summary_["search"]["steps"])
    shares = [progress["phase_share"] for progress in steps]
    assert shares == sorted(shares) and shares[0] > 0 and shares[-1] == 1
    assert all(progress["error"] > 0 and progress["epoch"] == 0 for progress in steps)
    assert heard[len(steps)]["phase"] != "search" and np.isnan(steps[0]["train_loss"])


def test_callback_stops_the_search():
    heard, model = [], KernelRegressor(**QUICK)
    with pytest.raises(RuntimeError, match="search"):
        model.fit(X, Y, callbacks=[lambda progress: heard.append(progress) or len(heard) >= 3])
    assert len(heard) == 3 and not hasattr(model, "model_")

    def fail(progress):
        raise ZeroDivisionError(progress["phase"])

    with pytest.raises(ZeroDivisionError, match="search"):
        model.fit(X, Y, callbacks=[fail])
    assert model.fit(X, Y).score(X, Y) > 0.9


def test_control_c_in_the_search():
    heard, model = [], KernelRegressor(**QUICK)

    def interrupt(progress):
        heard.append(progress["phase"])
        if len(heard) == 3:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)  # gives the signal handler time to run

    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y, callbacks=[interrupt])
    assert heard == ["search"] * 3 and not hasattr(model, "model_")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_progress_line_of_the_search(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    fitted(verbose=1)
    err = capsys.readouterr().err
    assert "100% |####################| searching hyperparameters, held-out R2 0.9" in err and err.count("\n") == 1
    monkeypatch.undo()
    fitted(verbose=1)
    assert "search" not in capsys.readouterr().err


def test_weights_with_a_smooth_kernel():
    """Earlier, rounding made the equations of the gaussian kernel indefinite, and all steps were rejected: R2 .96, not .99."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(700, 4))
    truth = 2 * np.sin(1.5 * x[:, 0]) + x[:, 1] * x[:, 2] + x[:, 3]
    for weight in (1.0, 3.0):
        model = KernelRegressor("gaussian", random_state=0).fit(x, truth + 0.7 * rng.normal(size=700), np.full(700, weight))
        steps = [step["error"] for step in model.summary_["search"]["steps"]]
        assert min(steps) > 0 and model.score(x, truth) > 0.98


@pytest.mark.parametrize("option", [{"tune": "on"}, {"learn_features": True}, {"effort": 5}])
@pytest.mark.parametrize("rows", [40, 300])
def test_options_of_the_search_without_enough_rows(option, rows):
    """With fewer than 50 distinct rows there is no search, and a given option of the search causes a warning."""
    x = X[np.arange(rows) % 40]
    with warns("search." + next(iter(option)), next(iter(option)), "50 distinct rows"):
        KernelRegressor(random_state=0, **option).fit(x, Y[:rows])
    with warnings.catch_warnings():
        warnings.simplefilter("error", MercerWarning)
        KernelRegressor(random_state=0).fit(x, Y[:rows])
