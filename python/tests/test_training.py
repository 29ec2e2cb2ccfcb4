# SPDX-License-Identifier: BSD-3-Clause
"""Trainers: training, single steps, callbacks, interruption, plans and datasets."""

import ctypes as C
import os
import signal
import threading

import numpy as np
import pytest

import mercer
from mercer import Dataset, Kernel, Model, Trainer
from mercer import _library as L
from mercer._context import Context
from mercer._training import Watch


@pytest.fixture
def problem(rng):
    X = rng.normal(size=(600, 3))
    return X, np.stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]], axis=1)


def test_direct_solves_the_normal_equations(problem):
    X, Y = problem
    model = Model("laplace:bandwidth=2", X[:60], outputs=2)
    report = Trainer(model, solver="direct", ridge=0.3).fit(X, Y)
    K, G = model.kernel(X, X[:60]), model.kernel(X[:60])
    alpha = np.linalg.solve(K.T @ K + 0.3 * G, K.T @ Y)
    np.testing.assert_allclose(model.weights, alpha, rtol=1e-6, atol=1e-8)
    assert report["plan"]["solver"] == "direct" and report["stopped"] == "finished"


def test_weights_count_rows(problem, rng):
    X, Y = problem
    counts = rng.integers(0, 4, len(X)).astype(float)
    weighted, repeated = (Model("laplace:bandwidth=2", X[:60], outputs=2) for _ in range(2))
    Trainer(weighted, solver="direct").fit(X, Y, counts)
    rows = np.repeat(np.arange(len(X)), counts.astype(int))
    Trainer(repeated, solver="direct").fit(X[rows], Y[rows])
    np.testing.assert_allclose(weighted.weights, repeated.weights, rtol=1e-6, atol=1e-9)


def test_iteration_history_and_spectrum(problem):
    X, Y = problem
    model = Model("laplace:bandwidth=2", X[:200], outputs=2)
    seen = []
    trainer = Trainer(model, solver="ep4", epochs=5, validation=(X[:50], Y[:50]), callbacks=[lambda p: seen.append(p)])
    report = trainer.fit(X, Y, random_state=3)
    assert report["epochs"] == 5 and [p["epoch"] for p in trainer.history] == [1, 2, 3, 4, 5]
    assert trainer.history[-1]["train_loss"] < trainer.history[0]["train_loss"]
    assert np.isfinite(report["validation_loss"]) and len(seen) >= 5
    spectrum = trainer.spectrum()
    assert len(spectrum) == report["plan"]["eigenpairs"] + 1 and (np.diff(spectrum) <= 0).all()


def test_validation_weights(problem):
    """Validation rows of weight 0 have no effect on the validation loss."""
    X, Y = problem
    weights = np.r_[np.zeros(30), np.full(20, 3.0)]
    losses = []
    for validation in ((X[:50], Y[:50], weights), (X[30:50], Y[30:50]), (X[:50], Y[:50])):
        trainer = Trainer(Model("laplace:bandwidth=3", X[:40], outputs=2), solver="ep4", epochs=3, validation=validation)
        losses.append(trainer.fit(X, Y)["validation_loss"])
    assert losses[0] == pytest.approx(losses[1], rel=1e-6) and losses[0] != pytest.approx(losses[2], rel=1e-3)
    with pytest.raises(ValueError, match="sample_weight .*shape"):
        Trainer(Model("laplace:bandwidth=3", X[:40], outputs=2), validation=(X[:50], Y[:50], weights[:3]))


def test_the_same_seed_gives_the_same_bits(problem):
    X, Y = problem
    results = []
    for threads in (1, 2):
        model = Model("laplace:bandwidth=2", X[:100], outputs=2, n_jobs=threads)
        Trainer(model, solver="ep4", epochs=3, random_state=5).fit(X, Y, random_state=5)
        results.append(model.weights.copy())
    np.testing.assert_array_equal(*results)


def test_labels_are_one_hot(blobs):
    X, y = blobs
    a, b = (Model("laplace:bandwidth=2", X[:60], outputs=3) for _ in range(2))
    Trainer(a, solver="direct", classification=True).fit(X, labels=y)
    Trainer(b, solver="direct").fit(X, np.eye(3)[y])
    np.testing.assert_array_equal(a.weights, b.weights)


def test_callback_stops(problem):
    X, Y = problem
    model = Model("laplace:bandwidth=2", X[:100], outputs=2)
    report = Trainer(model, solver="ep4", epochs=50, callbacks=[lambda p: p["epoch"] >= 2]).fit(X, Y)
    assert report["stopped"] == "callback" and report["epochs"] == 2 and model.weights.any()


def test_callback_raises(problem):
    X, Y = problem
    model = Model("laplace:bandwidth=2", X[:100], outputs=2)

    def fail(progress):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        Trainer(model, solver="ep4", epochs=50, callbacks=[fail]).fit(X, Y)
    assert np.isfinite(model.weights).all()
    model.predict(X)


def test_callback_cannot_use_the_model_that_is_trained(problem):
    X, Y = problem
    model = Model("laplace:bandwidth=2", X[:100], outputs=2)
    with pytest.raises(RuntimeError, match="callback"):
        Trainer(model, solver="ep4", epochs=2, callbacks=[lambda p: model.predict(X)]).fit(X, Y)
    model.predict(X)


def test_control_c_keeps_the_last_good_weights(problem):
    X, Y = problem
    model = Model("laplace:bandwidth=2", X, outputs=2)
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    trainer = Trainer(model, solver="ep4", epochs=10**6, progress_seconds=0.02)
    try:
        with pytest.raises(KeyboardInterrupt):
            trainer.fit(X, Y)
    finally:
        timer.cancel()
    assert trainer.report()["stopped"] == "callback"
    assert np.isfinite(model.weights).all() and model.weights.any()
    assert np.mean((model.predict(X) - Y) ** 2) < 0.5 * np.mean(Y**2)


def test_kernel_function_that_fails_in_training(problem):
    X, Y = problem
    calls = []

    def fails(r):
        calls.append(1)
        if len(calls) > 3:
            raise ZeroDivisionError
        return np.exp(-r)

    model = Model(Kernel.from_function(fails), X[:50], outputs=2)
    with pytest.raises(ZeroDivisionError):
        Trainer(model, solver="ep4", epochs=3).fit(X, Y)
    assert not model.weights.any()


def test_steps_and_finish(problem):
    X, Y = problem
    model = Model("laplace:bandwidth=2", X[:100], outputs=2)
    trainer = Trainer(model, solver="ep4", batch_size=100)
    for _ in range(5):
        for first in range(0, 600, 100):
            trainer.step(X[first : first + 100], Y[first : first + 100], np.ones(100))
    trainer.finish()
    assert np.mean((model.predict(X) - Y) ** 2) < 0.3 * np.mean(Y**2)
    with pytest.raises(ValueError, match="weights|sample_weight"):
        trainer.step(X[:10], Y[:10], np.ones(3))
    with pytest.raises(ValueError):
        trainer.step(X[:10, :2], Y[:10])
    with pytest.raises(ValueError):
        trainer.step(X[:10], Y[:9])
    with pytest.raises(NotImplementedError):
        Trainer(Model("laplace:bandwidth=2", X[:100], outputs=2), solver="direct").step(X, Y)


def test_checkpoint_and_resume(problem, tmp_path):
    X, Y = problem
    options = {"solver": "ep4", "epochs": 6, "random_state": 1, "memory": "1G"}

    def fresh():
        return Model("laplace:bandwidth=2", X[:100], outputs=2)

    whole = fresh()
    Trainer(whole, **options).fit(X, Y)
    path = tmp_path / "state"
    part = Trainer(fresh(), checkpoint=path, checkpoint_seconds=1e-9, callbacks=[lambda p: p["epoch"] == 3], **options)
    assert part.fit(X, Y)["epochs"] == 3
    model = Model.load(path)
    trainer = Trainer(model, **options)
    trainer.resume(path)
    trainer.fit(X, Y)
    np.testing.assert_array_equal(model.weights, whole.weights)
    with pytest.raises(FileNotFoundError):
        trainer.resume(tmp_path / "nowhere")
    other = Trainer(Model.load(path), **{**options, "ridge": 0.5})
    with pytest.raises(ValueError):
        other.resume(path)
        other.fit(X, Y)


def test_checkpoint_on_request(problem, tmp_path):
    """A callback can request a checkpoint in the middle of an epoch."""
    X, Y = problem
    path, seen = tmp_path / "state", []

    def ask(progress):
        if progress["phase"] is not None:
            return
        seen.append(path.stat().st_ino)
        if len(seen) == 3:
            trainer.checkpoint()

    model = Model("laplace:bandwidth=2", X[:100], outputs=2)
    options = {"solver": "ep4", "epochs": 1, "batch_size": 50, "progress_seconds": 1e-9}
    trainer = Trainer(model, checkpoint=path, checkpoint_seconds=1e9, callbacks=[ask], **options)
    trainer.fit(X, Y)
    steps = [a != b for a, b in zip(seen, seen[1:])]
    assert steps[2] and sum(steps) == 1
    with pytest.raises(ValueError, match="checkpoint="):
        Trainer(Model("laplace:bandwidth=2", X[:100], outputs=2)).checkpoint()


def test_plan():
    small = mercer.plan(1000, 500, 10, 3)
    assert small["solver"] == "direct" and "solver" in small["text"] and small["bytes"] > 0
    large = mercer.plan(10**6, 20_000, 784, 10, dtype=np.uint8, memory="4GiB", epochs=3, solver="ep4")
    assert large["solver"] == "ep4" and large["epochs"] == 3 and large["bytes"] <= 4 * 2**30
    assert mercer.plan(1000, 500, 10, preset="paper")["solver"] == "paper"
    assert mercer.plan(1000, 500, 10, dtype=np.float64)["precision"] == "float64"


@pytest.mark.parametrize(
    "change, error",
    [
        ({"solver": "magic"}, ValueError),
        ({"solver": 3}, TypeError),
        ({"projector": "slide"}, ValueError),
        ({"epochs": -1}, ValueError),
        ({"epochs": 1.5}, TypeError),
        ({"epochs": 2**70}, ValueError),
        ({"ridge": -2.0}, ValueError),
        ({"ridge": float("nan")}, ValueError),
        ({"ridge": "much"}, TypeError),
        ({"average": 3}, ValueError),
        ({"step_factor": 2.0}, ValueError),
        ({"memory": -5}, ValueError),
        ({"memory": []}, TypeError),
        ({"random_state": []}, TypeError),
        ({"samples": 0}, ValueError),
        ({"samples": 2.5}, TypeError),
        ({"centers": -3}, ValueError),
        ({"features": 2**80}, ValueError),
        ({"dtype": np.int32}, TypeError),
        ({"precision": "f128"}, ValueError),
        ({"unheard": 1}, TypeError),
    ],
)
def test_bad_options(change, error):
    with pytest.raises(error):
        mercer.plan(**{"samples": 100, "centers": 10, "features": 3, **change})


def test_a_budget_too_small():
    with pytest.raises(MemoryError):
        mercer.plan(10**6, 10**5, 784, 10, memory="1k", solver="direct")


def test_bad_fits(problem):
    X, Y = problem
    trainer = Trainer(Model("laplace:bandwidth=2", X[:100], outputs=2))
    for arguments, error in (
        ((X,), TypeError),
        ((X, Y[:, :1]), ValueError),
        ((X, Y[:5]), ValueError),
        ((X, np.full_like(Y, np.nan)), ValueError),
        ((X, Y, -np.ones(600)), ValueError),
        ((X[:0], Y[:0]), ValueError),
    ):
        with pytest.raises(error):
            trainer.fit(*arguments)
    with pytest.raises(ValueError):
        trainer.fit(X, labels=np.full(600, 7))
    with pytest.raises(ValueError):
        trainer.fit(X, labels=np.zeros(3, int))
    with pytest.raises(TypeError, match="labels"):
        trainer.fit(X, labels=np.zeros(600))
    with pytest.raises(TypeError, match="augment"):
        trainer.fit(X, Y, augment="flip")
    with pytest.raises(ValueError):
        Trainer(trainer.model, validation=(X, Y[:3]))
    with pytest.raises(TypeError):
        Trainer(trainer.model, unheard=1)


def test_dataset_from_files(tmp_path, problem):
    X, Y = problem
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", Y)
    data = Dataset(tmp_path / "x.npy", tmp_path / "y.npy", task="regression")
    info = data.info()
    assert (info["rows"], info["features"], info["outputs"], info["task"]) == (600, 3, 2, "regression") and info[
        "mapped"
    ]
    x, y = data.read(10, 5)
    np.testing.assert_array_equal(x, X[10:15])
    np.testing.assert_array_equal(y, Y[10:15])
    np.testing.assert_array_equal(data.read(rows=[7, 3])[0], X[[7, 3]])
    model = Model("laplace:bandwidth=2", X[:60], outputs=2)
    Trainer(model, solver="direct").fit(data)
    again = Model("laplace:bandwidth=2", X[:60], outputs=2)
    Trainer(again, solver="direct").fit(X, Y)
    np.testing.assert_allclose(model.weights, again.weights, rtol=1e-6, atol=1e-9)
    assert "600 rows" in repr(data)


def test_dataset_in_several_files(tmp_path, problem):
    X, Y = problem
    cuts = [0, 100, 100, 350, 600]
    for number, (first, last) in enumerate(zip(cuts, cuts[1:])):
        np.save(tmp_path / f"part-{number + 8}.npy", X[first:last])
    np.save(tmp_path / "y.npy", Y)
    data = Dataset(tmp_path / "part-*.npy", tmp_path / "y.npy", task="regression")
    assert len(data) == 600 and data.info()["mapped"]
    np.testing.assert_array_equal(data.read()[0], X)
    np.testing.assert_array_equal(data.read(rows=[599, 99, 100])[0], X[[599, 99, 100]])
    np.save(tmp_path / "part-9.npy", X[:3, :2])
    with pytest.raises(ValueError, match="part-9.npy: .* 2 "):
        Dataset(tmp_path / "part-*.npy")
    with pytest.raises(FileNotFoundError, match="none-"):
        Dataset(tmp_path / "none-*.npy")


def test_csv(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,label\n1,2,x\n3,4,y\n5,6,x\n")
    data = Dataset(tmp_path / "t.csv", target="label")
    assert data.info()["labels"] == ["x", "y"] and data.info()["feature_names"] == ["a", "b"]
    assert data.read()[1].tolist() == [0, 1, 0]


def test_augmented_digits():
    data = Dataset.synthesize("digits", 300, random_state=1)
    X, y = data.read()
    model = Model("laplace:bandwidth=1500", X[:100], outputs=10)
    trainer = Trainer(model, solver="ep4", epochs=2, classification=True)
    report = trainer.fit(data, augment="shift:pixels=1", samples=600)
    assert report["samples"] == 1200
    with pytest.raises(ValueError):
        trainer.fit(data, augment="spin")
    with pytest.raises(TypeError):
        trainer.fit(data, pixels=3)


def test_bad_datasets(tmp_path):
    with pytest.raises(FileNotFoundError):
        Dataset(tmp_path / "nowhere.npy")
    (tmp_path / "bad.csv").write_text("1,2\n3,four\n")
    with pytest.raises(ValueError, match="bad.csv"):
        Dataset(tmp_path / "bad.csv", header=False, task="regression")
    with pytest.raises(ValueError, match="task"):
        Dataset(tmp_path / "bad.csv", task="guess")
    with pytest.raises(ValueError):
        Dataset.synthesize("letters", 10)
    data = Dataset.synthesize("digits", 10)
    with pytest.raises(ValueError):
        data.read(5, 100)
    with pytest.raises(ValueError):
        data.read(20)
    with pytest.raises(ValueError):
        data.read(rows=[99])


def test_every_option_is_listed():
    """The library's list of options and the struct agree, except for fields that are not options."""
    listed, row = {}, 0
    while option := L.lib.mercer_train_option(row):
        listed[option.contents.name.decode()] = option.contents
        row += 1
    kinds = {C.c_int64: 1, C.c_double: 2, C.c_int: 3, C.c_char_p: 4}
    ours = {"struct_size", "seed", "memory", "classification", "progress", "progress_user", "progress_seconds"}
    ours |= {"checkpoint", "checkpoint_seconds", "checkpoint_note"}
    ours |= {"validation_X", "validation_Y", "validation_weights"}
    fields = {name: kind for name, kind in L.mercer_train_options._fields_ if name not in ours}
    assert {name: option.type for name, option in listed.items()} == {name: kinds[kind] for name, kind in fields.items()}
    for name, option in listed.items():
        assert option.offset == getattr(L.mercer_train_options, name).offset


def test_history_has_epochs_that_ended():
    """A progress report at the start of a pass is neither recorded nor passed to callbacks if its counts have not changed."""
    watch, told = Watch(Context(), []), []
    watch.callbacks = [lambda progress: told.append(progress["epoch"])]
    for epoch, samples, within in ((0, 0, 0), (0, 10, 10), (1, 20, 0), (1, 20, 0), (1, 30, 10), (2, 40, 0), (1, 20, 0)):
        assert not watch._record(L.mercer_progress(stage=b"training", epoch=epoch, samples=samples, pass_samples=within))
    assert [(p["epoch"], p["samples"]) for p in watch.history] == [(1, 20), (2, 40), (1, 20)]
    assert told == [0, 1, 1, 2, 1]
