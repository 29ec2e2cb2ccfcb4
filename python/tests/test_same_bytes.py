# SPDX-License-Identifier: BSD-3-Clause
"""The same data, seed and options give the same model file in C, in the program and in the estimators."""

import ctypes as C
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn")

import mercer  # noqa: E402
from c_options import fit_options  # noqa: E402
import mercer  # noqa: E402
from mercer import Context, Dataset  # noqa: E402
from untuned import flat  # noqa: E402
from mercer import _library as L  # noqa: E402

SEED, MEMORY = 5, 10**9


def samples(dtype, classes):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(700, 4))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 40
    X = (X * [10, 20, 5, 30] + 128).clip(0, 255) if dtype == "u1" else X * [1, 100, 1e-3, 7] + [0, 3, 0, 1e4]
    return X.astype(dtype), np.digitize(y, [39.5, 40.5]) if classes else y


# Each case: parameters of the estimator, options of the program, fields of mercer_fit_options (FIT_FIELDS) and
# of mercer_train_options.
DEFAULT = ({}, [], {}, {})
PLAIN = ({"tune": "off"}, ["--tune", "off"], {"tune": L.OFF}, {})
TUNED = ({"tune": True, "effort": 1}, ["--tune", "on", "--effort", 1], {"tune": L.ON, "effort": 1}, {})
LEARNED = (
    {"learn_features": True, "effort": 1, "kernel": "gaussian", "ridge": 0.01},
    ["--learn-features", "on", "--effort", 1, "--kernel", "gaussian", "--lambda", 0.01],
    {"learn_features": L.ON, "effort": 1, "kernel": b"gaussian"},
    {"lambda": 0.01},
)
MEAN = ({"effort": 4, "centers": 50}, ["--effort", 4, "--centers", 50], {"effort": 4, "centers": 50}, {})
# A sufficient budget has no effect on the model.
BUDGETED = ({"effort": 1, "budget": 3600.0}, ["--effort", 1, "--budget", "1h"], {"effort": 1, "budget": 3600.0}, {})
GIVEN = (
    {"kernel": "gaussian:bandwidth=1.5", "centers": 60, "solver": "ep4", "epochs": 3, "ridge": 0.01},
    ["--kernel", "gaussian:bandwidth=1.5", "--centers", 60, "--solver", "ep4", "--epochs", 3, "--lambda", 0.01],
    {"kernel": b"gaussian:bandwidth=1.5", "centers": 60},
    {"solver": b"ep4", "epochs": 3, "lambda": 0.01},
)
HELD = (
    {"centers": 80, "solver": "ep4", "epochs": 20, "early_stopping": True, "validation_fraction": 0.2},
    ["--centers", 80, "--solver", "ep4", "--epochs", 20, "--validation-fraction", 0.2, "--patience", 5],
    {"centers": 80, "validation_fraction": 0.2},
    {"solver": b"ep4", "epochs": 20, "patience": 5},
)
CHOSEN = (
    {"centers": 50, "center_method": "kmeans", "preprocess": "minmax", "precision": "float32", "batch_size": 70},
    ["--centers", 50, "--center-method", "kmeans", "--preprocess", "minmax", "--precision", "f32", "--batch", 70],
    {"centers": 50, "center_method": b"kmeans", "preprocess": b"minmax", "precision": L.F32},
    {"batch": 70},
)
CASES = [
    pytest.param(dtype, classes, how, id=f"{name}-{dtype}-{'classes' if classes else 'values'}")
    for name, how in {
        "plain": PLAIN, "default": DEFAULT, "tuned": TUNED, "learned": LEARNED, "budgeted": BUDGETED, "given": GIVEN,
        "held": HELD, "chosen": CHOSEN, "mean": MEAN,
    }.items()
    for dtype, classes in (("f4", False), ("f8", True), ("u1", True), ("f8", False))
    if name not in ("default", "tuned", "learned", "budgeted", "mean") or dtype == "f4" or classes
]


def of_estimator(folder, X, y, classes, parameters, sample_weight=None):
    kind = flat(mercer.KernelClassifier if classes else mercer.KernelRegressor)
    model = kind(random_state=SEED, memory=MEMORY, **parameters).fit(X, y, sample_weight)
    model.model_.save(folder / "python")
    return (folder / "python").read_bytes()


def of_program(folder, classes, options):
    task = "classification" if classes else "regression"
    given = ["--x", "x.npy", "--y", "y.npy", "--task", task, "--seed", SEED, "--memory", MEMORY, "-o", "program", "-q"]
    paths = os.pathsep.join([str(Path(mercer.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "mercer", "train", *map(str, [*given, *options])]
    done = subprocess.run(command, cwd=folder, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return (folder / "program").read_bytes()


def of_library(folder, data, fields, train, **more):
    """Call mercer_fit and mercer_model_save with the arguments of a C program."""
    context, model, inner = data.context, C.c_void_p(), L.mercer_train_options(**train)
    options = fit_options(seed=SEED, memory=MEMORY, train=C.pointer(inner), **fields, **more)
    context.call("mercer_fit", model, context.handle, data.handle, options, None)
    context.call("mercer_model_save", model, str(folder / "c").encode(), None)
    L.lib.mercer_model_free(model)
    return (folder / "c").read_bytes()


@pytest.mark.parametrize("dtype, classes, how", CASES)
def test_same_bytes(dtype, classes, how, tmp_path):
    X, y = samples(dtype, classes)
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", y)
    parameters, options, fields, train = how
    # The estimator and the program calibrate probabilities by default, the library only on request.
    calibrate = {"calibrate": L.ON} if classes else {}
    program = of_program(tmp_path, classes, options)
    task = "classification" if classes else "regression"
    data = Dataset(tmp_path / "x.npy", tmp_path / "y.npy", task=task)
    assert of_library(tmp_path, data, fields, train, **calibrate) == program
    assert of_estimator(tmp_path, X, y, classes, parameters) == program


@pytest.mark.parametrize("classes", [False, True])
def test_sample_weights(classes, tmp_path):
    """Weights give the same bytes in the estimator and in the library, and the same as repeated rows."""
    X, y = samples("f8", classes)
    weights = np.random.default_rng(0).integers(0, 4, len(X)).astype(float)
    targets = {"labels": y, "classes": 3, "names": ["0", "1", "2"]} if classes else {"Y": y.reshape(-1, 1)}
    ours = of_estimator(tmp_path, X, y, classes, HELD[0], weights)
    data = Dataset._of_arrays(Context(), X, sample_weight=weights, **targets)
    calibrate = {"calibrate": L.ON} if classes else {}
    assert of_library(tmp_path, data, HELD[2], HELD[3], merge=L.ON, **calibrate) == ours
    rows = np.repeat(np.arange(len(X)), weights.astype(int))
    assert of_estimator(tmp_path, X[rows], y[rows], classes, HELD[0]) == ours


def test_another_seed_gives_other_bytes(tmp_path):
    X, y = samples("f4", False)
    data = Dataset._of_arrays(Context(), X, Y=y.reshape(-1, 1))
    first = of_library(tmp_path, data, HELD[2], HELD[3])
    context, model, inner = data.context, C.c_void_p(), L.mercer_train_options(**HELD[3])
    options = fit_options(seed=SEED + 1, memory=MEMORY, train=C.pointer(inner), **HELD[2])
    context.call("mercer_fit", model, context.handle, data.handle, options, None)
    context.call("mercer_model_save", model, str(tmp_path / "other").encode(), None)
    L.lib.mercer_model_free(model)
    assert (tmp_path / "other").read_bytes() != first
