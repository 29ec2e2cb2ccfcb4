# SPDX-License-Identifier: BSD-3-Clause
"""Small tables, all options with sensible values, and functions that fit a table through the program, Python or C.

test_paths.py, test_metamorphic.py and test_nothing_silent.py share this module. An option without an entry in OPTIONS or
NOT_FITTED fails test_paths.py::test_every_option_has_an_entry.
"""

from __future__ import annotations

import ctypes as C
import inspect
import json
import os
import re
import shutil
import subprocess
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
from mercer import KernelClassifier, KernelRegressor
from mercer import _library as L
from mercer import _table as T
from mercer._context import FIT_FIELDS, Context
from mercer._runtime import program

from c_options import fit_options
from untuned import OPTIONS as OPTIONS_OF_PYTHON
from untuned import flat

SEED = 0
INTERFACES = ("program", "python", "c")

# ---- Tables ----


@dataclass
class Table:
    """Training rows, validation rows and noiseless test rows; y holds numbers or class names."""

    name: str
    frame: pd.DataFrame
    y: np.ndarray
    check: tuple[pd.DataFrame, np.ndarray]  # validation rows
    test: tuple[pd.DataFrame, np.ndarray]
    # Absolute slack of the error, above the measured range of the default fit's error over seeds 0 to 4: numbers 0.005,
    # words 0.0008, repeated 0.012, heavy 0.013, few 0.003, classes 0.005.
    slack: float
    groups: np.ndarray | None = None
    grouped: tuple[pd.DataFrame, np.ndarray] | None = None  # replaces frame and y if groups are given

    @property
    def classes(self):
        return self.y.dtype.kind in "UO"

    @property
    def is_plain(self):
        return T.is_plain(self.frame)

    def rows(self, variant):
        return self.grouped if variant == "groups" and self.grouped else (self.frame, self.y)


def _columns(rng, n):
    """Return n rows of five numbers; the target depends on the first four, and e is noise."""
    return pd.DataFrame(rng.normal(size=(n, 5)), columns=list("abcde"))


def _signal(x):
    return np.sin(1.5 * x["a"]) + x["b"] * x["c"] / 2 + x["d"] / 2


def _parts(seed, n, signal, noise, columns=_columns, held=100, tested=800):
    rng = np.random.default_rng(seed)
    frames = [columns(rng, rows) for rows in (n, held, tested)]
    targets = [np.array(signal(frame)) for frame in frames]
    for y, frame in zip(targets[:2], frames, strict=False):
        y += noise * rng.normal(size=len(frame))
    return frames, targets


def numbers():
    frames, y = _parts(1, 500, _signal, 0.3)
    return Table("numbers", frames[0], y[0], (frames[1], y[1]), (frames[2], y[2]), slack=0.01)


def words():
    def columns(rng, n):
        frame = _columns(rng, n)
        frame["city"] = rng.choice(["Bonn", "Graz", "Lyon", "Oslo", "Pisa"], n)
        frame["kind"] = rng.choice(["new", "used"], n)
        return frame

    def signal(frame):
        city = frame["city"].map({"Bonn": 0.0, "Graz": 1.0, "Lyon": -1.0, "Oslo": 0.5, "Pisa": -0.5})
        return city + np.where(frame["kind"] == "new", frame["a"], -frame["a"]) + frame["d"] / 2

    frames, y = _parts(2, 510, signal, 0.3, columns)
    rng = np.random.default_rng(20)
    for frame in frames[:2]:  # Test rows stay complete, because a missing value acts as noise.
        frame.loc[rng.random(len(frame)) < 0.04, "d"] = np.nan
        frame.loc[rng.random(len(frame)) < 0.04, "city"] = None
    return Table("words", frames[0], y[0], (frames[1], y[1]), (frames[2], y[2]), slack=0.03)


def repeated():
    """Return a table with three copies of each row, in random order. If groups are given, the three rows of a group differ slightly."""
    frames, y = _parts(3, 168, lambda x: np.sin(1.5 * x["a"]) + x["b"] / 2, 0.3)
    order = np.random.default_rng(30).permutation(3 * 168)
    frame, targets = (frames[0].iloc[np.repeat(np.arange(168), 3)[order]].reset_index(drop=True), np.repeat(y[0], 3)[order])
    jitter = np.random.default_rng(31)
    near = frame + 1e-3 * jitter.normal(size=frame.shape), targets + 1e-3 * jitter.normal(size=len(targets))
    groups = np.repeat(np.arange(168), 3)[order]
    return Table("repeated", frame, targets, (frames[1], y[1]), (frames[2], y[2]), 0.03, groups, near)


def heavy():
    frames, y = _parts(4, 500, _signal, 0.1)
    y = [np.exp(values) for values in y]
    return Table("heavy", frames[0], y[0], (frames[1], y[1]), (frames[2], y[2]), slack=0.06)


def few():
    frames, y = _parts(5, 120, _signal, 0.2)
    return Table("few", frames[0], y[0], (frames[1], y[1]), (frames[2], y[2]), slack=0.05)


def _class_table(name, seed, n, count, slack):
    """Return a table of classes around random centers in the plane of a and b; the other columns are noise."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(count, 2)) * 3

    def part(rows):
        numbers = rng.integers(0, count, rows)
        frame = 0.5 * _columns(rng, rows)
        frame[["a", "b"]] = centers[numbers] + 0.6 * rng.normal(size=(rows, 2))
        return frame, np.array([f"c{k:02d}" for k in numbers])

    (frame, y), check, test = part(n), part(100), part(1500)
    return Table(name, frame, y, check, test, slack)


def classes():
    return _class_table("classes", 6, 520, 12, slack=0.01)


def few_classes():
    return _class_table("few_classes", 7, 120, 3, slack=0.01)


TABLES = {make.__name__: make for make in (numbers, words, repeated, heavy, few, classes)}
_made: dict[str, Table] = {}


def table(name):
    if name not in _made:
        _made[name] = {**TABLES, "few_classes": few_classes}[name]()
    return _made[name]


# ---- Options ----


@dataclass
class Option:
    """One value of one option, as passed to the program, Python and C; None if an interface does not have the option."""

    name: str
    program: list[str] | None = None
    python: dict | None = None
    c: dict | None = None  # fields of mercer_fit_options (FIT_FIELDS); "train.NAME", "context.NAME" and "data.NAME" are fields of other structs
    variant: str = ""  # further column of the training rows: "weights", "groups", "times" or "ids"
    only: str = ""  # kind of table: "values", "classes" or "numbers" (without text and missing values); "" for all
    words: tuple[str, ...] = ()  # further names that a warning or an error may use
    # The value requests a worse model, whose error must only be below that of a constant prediction.
    weaker: bool = False
    weaker_on: str = ""  # name of a table on which the value gives a worse model

    def given(self, interface):
        return {"program": self.program, "python": self.python, "c": self.c}[interface]

    def fits(self, interface, rows):
        kinds = {"": True, "values": not rows.classes, "classes": rows.classes, "numbers": rows.is_plain}
        return self.given(interface) is not None and kinds[self.only]

    def names(self):
        program_names = [text.removeprefix("--") for text in self.program or () if text.startswith("--")]
        c_names = [key.removeprefix("train.") for key in self.c or ()]
        return {plain(name) for name in (self.name, *self.words, *program_names, *(self.python or ()), *c_names)}


def plain(text):
    return text.lower().replace("-", "_")


def both(name, value, text=None, c=None, **more):
    """Return an option that has the same name in all three interfaces."""
    text = [f"--{name.replace('_', '-')}", str(value) if text is None else text]
    return Option(name, text, {name: value}, {name: value.encode() if isinstance(value, str) else value} if c is None else c, **more)


def training(name, value, **more):
    """Return an option that is a field of mercer_train_options."""
    text = {True: "on", False: "off"}.get(value, str(value)) if isinstance(value, bool) else str(value)
    c = {True: L.ON, False: L.OFF}[value] if isinstance(value, bool) else value.encode() if isinstance(value, str) else value
    return Option(name, [f"--{name.replace('_', '-')}", text], {name: value}, {f"train.{name}": c}, **more)


def switch(name, value):
    return Option(name, [f"--{name.replace('_', '-')}", "on" if value else "off"], None, {name: L.ON if value else L.OFF})


def only_program(name, *values, **more):
    return Option(name, [f"--{name}", *values], **more)


OPTIONS = [
    *(both("kernel", name) for name in ("gaussian", "laplace", "matern32")),
    both("kernel", "gaussian:bandwidth=3"),
    Option("kernel_function", c={"kernel_function": "gaussian:bandwidth=3"}, words=("kernel",)),
    both("bandwidth", 3.0),
    *(both("preprocess", name) for name in ("none", "standardize", "minmax", "rank")),
    both("preprocess", "unit", weaker=True),
    both("preprocess", "scale", weaker=True),
    *(
        Option(
            "ridge", ["--ridge", str(value)], {"ridge": value}, {"train.lambda": value or -1.0}, only=only, words=("lambda",),
            weaker=not value,
            # The search chooses a ridge of 0.31 on this table, but kernels with smaller ridges score nearly as well.
            weaker_on="repeated",
        )
        for value, only in ((0.02, "values"), (0, ""), (0.5, "classes"))
    ),
    *(training("solver", name) for name in ("krr", "direct", "cg", "ep4", "ep3", "ep2")),
    *(training("solver", name, weaker=True) for name in ("ep1", "richardson", "pegasos", "nytro", "gd", "paper", "ep3-exact")),
    training("epochs", 30),
    Option("batch", ["--batch", "100"], {"batch_size": 100}, {"train.batch": 100}),
    *(training("projector", name) for name in ("exact", "ep2", "pcg", "bgs")),
    training("average", True),
    training("average", False),
    training("decay", True),
    training("decay", False),
    training("polish", 20),
    training("step_factor", 0.7),
    training("nystrom", 60),
    training("eigenpairs", 30),
    training("period", 7),
    training("projector_nystrom", 200),
    training("projector_eigenpairs", 30),
    training("projector_passes", 20),
    training("projector_tolerance", 1e-4),
    training("projector_block", 50),
    training("carry", True),
    training("cache", False),
    training("cache", True),
    training("converge", True),
    training("converge", False),
    training("patience", 5),
    Option("n_centers", ["--centers", "100"], {"centers": 100}, {"centers": 100}, words=("centers",), weaker=True),
    Option("n_centers", ["--centers", "all"], {"centers": "all"}, {"centers": -1}, words=("centers",)),
    Option("centers", ["--center-method", "file:centers.npy"], {"centers": "rows"}, {"given_centers": "rows"}, only="numbers"),
    *(both("center_method", name) for name in ("kmeans", "rpcholesky")),
    both("center_method", "balanced", only="classes"),
    *(  # options of the method kmeans
        Option(
            name, ["--center-method", "kmeans", f"--{name.replace('_', '-')}", text], None,
            {"center_method": b"kmeans", name: value}, words=("center_method",),
        )
        for name, text, value in (("center_iterations", "20", 20), ("center_batch", "100", 100))
    ),
    Option("center_type", ["--center-type", "f64"], None, {"center_type": L.F64}),
    Option("center_type", ["--center-type", "f32"], None, {"center_type": L.F32}),
    *(both("target_transform", name) for name in ("none", "center", "standardize")),
    both("target_transform", "log", only="values"),
    both("target_transform", "rank", only="values"),
    both("class_weight", "balanced", only="classes"),
    Option("class_weight", ["--class-weight", "c00=2"], {"class_weight": {"c00": 2.0}}, {"class_weight": b"c00=2"}, only="classes"),
    Option(
        "class_weight", ["--class-weight", "c00=20"], {"class_weight": {"c00": 20.0}}, {"class_weight": b"c00=20"},
        only="classes", weaker=True,
    ),
    both("calibrate_to", "weighted", only="classes"),
    switch("calibrate", True),
    switch("calibrate", False),
    Option("intervals", ["--intervals", "on"], {"intervals": True}, {"intervals": L.ON}),
    Option("intervals", ["--intervals", "off"], None, {"intervals": L.OFF}),
    Option("validation_fraction", ["--validation-fraction", "0.1"], {"validation_fraction": 0.2}, {"validation_fraction": 0.1}),
    Option("validation", ["--x-val", "check.csv"], None, {"validation": "rows"}, words=("x_val",)),
    Option("early_stopping", None, {"early_stopping": True}),
    Option("tol", None, {"tol": 1e-3}),
    Option("tol", None, {"tol": 0.9}, weaker=True),
    Option("tune", ["--tune", "off"], {"tune": "off"}, {"tune": L.OFF}),
    Option("tune", ["--tune", "on"], {"tune": True}, {"tune": L.ON}),
    both("effort", 1),
    both("effort", 5),
    Option("budget", ["--budget", "1h"], {"budget": 3600.0}, {"budget": 3600.0}),  # sufficient for effort 5
    Option("budget", ["--budget", "0.001s"], {"budget": 0.001}, {"budget": 0.001}),
    Option("learn_features", ["--learn-features", "on"], {"learn_features": True}, {"learn_features": L.ON}),
    Option("metric", ["--metric", "file:metric.npy"], {"metric": "ones"}, {"metric": "ones"}, only="numbers"),
    Option(
        "blend", None, {"blend": "ones", "preprocess": "blend", "tune": "off"},
        {"blend": "ones", "preprocess": b"blend", "tune": L.OFF}, only="numbers", words=("tune",),
    ),
    Option("precision", ["--precision", "f64"], {"precision": "float64"}, {"precision": L.F64}),
    Option("precision", ["--precision", "f32"], {"precision": "float32"}, {"precision": L.F32}),
    Option("seed", ["--seed", "3"], {"random_state": 3}, {"seed": 3}),
    Option("memory", ["--memory", "500M"], {"memory": "500M"}, {"memory": 500_000_000}),
    Option("threads", ["--threads", "2"], {"n_jobs": 2}, {"context.threads": 2}),
    both("arithmetic", "accurate", c={"context.arithmetic": b"accurate"}),
    both("device", "auto", c={"context.backend": b"auto"}),
    Option("merge", None, None, {"merge": L.OFF}),
    Option("augment", ["--augment", "noise:sigma=0.02"], None, {"augment": b"noise:sigma=0.02"}, only="numbers"),
    Option(
        "samples", ["--augment", "noise:sigma=0.02", "--samples", "800"], None,
        {"augment": b"noise:sigma=0.02", "samples": 800}, only="numbers", words=("augment",),
    ),
    Option("missing", None, {"missing": -999}),
    Option("columns", None, {"columns": {"e": "drop"}}),
    Option("warm_start", None, {"warm_start": True}),
    Option("model", None, None, {"model": "default"}),
    Option("verbose", None, {"verbose": 1}),
    Option("weights", ["--weight-column", "w"], {"fit.sample_weight": "ones"}, {"data.weights": "ones"}, variant="weights"),
    Option("groups", ["--group-column", "g"], {"fit.groups": "groups"}, {"data.groups": "groups"}, variant="groups"),
    Option("times", ["--time-column", "t"], {"fit.times": "times"}, {"data.times": "times"}, variant="times"),
    only_program("id-column", "i", variant="ids"),
    only_program("rows", "110", weaker=True),
    only_program("first", "5", weaker=True),
    only_program("format", "csv"),
    only_program("header", "on"),
    only_program("columns", "a:number"),
    only_program("drop", "e"),
    only_program("only", "a,b,c,d", only="numbers"),
    only_program("missing", "NA,-999"),
    Option("task", ["--task", "regression"], only="values"),
    Option("task", ["--task", "classification"], only="classes"),
    only_program("save-centers-as", "f64"),
    only_program("log", "run.jsonl"),
    only_program("checkpoint", "state"),
    Option("checkpoint-every", ["--checkpoint", "state", "--checkpoint-every", "30s"]),
    Option("verify", ["--checkpoint", "state", "--verify"]),
    Option("force", ["--checkpoint", "state", "--force"]),
    only_program("comm", "self"),
    only_program("shards", "2"),
    only_program("exchange", "host"),
    only_program("deadline", "30s"),
    only_program("no-map"),
    only_program("config", "options.json", words=("kernel",)),
    only_program("color", "never"),
]

# Options that no path sets, with the reason.
NOT_FITTED = {
    "program": {
        "x": "every path gives it", "target": "every path gives it", "output": "every path gives it", "json": "every path gives it",
        "quiet": "every path gives it", "verbose": "excludes --quiet", "help": "fits nothing", "print-config": "fits nothing",
        "y": "other file formats", "y-val": "other file formats", "y-format": "other file formats", "raw": "other file formats",
        "features": "libsvm files", "data": "image files", "image": "image files", "synth": "synthetic samples",
        "synth-seed": "synthetic samples", "lambda": "given by its alias --ridge",
    },
    "python": {},
    "c": {  # check-messages: allow (reasons, which no test compares)
        "height": "image files", "width": "image files", "channels": "image files", "comm": "several processes",
        "shards": "plans without processes", "checkpoint": "the file of an unfinished fit", "progress": "a callback",
        "progress_user": "a callback", "score": "only a part of mercer_fit_parts",
    },
}  # fmt: skip
# Fields of mercer_train_options that are not options of a fit: the fit sets them, or they are callbacks.
FIT_SETS = {
    "seed", "memory", "classification", "validation_X", "validation_Y", "validation_weights", "progress", "progress_user",
    "progress_seconds", "checkpoint", "checkpoint_seconds", "checkpoint_note",
}  # fmt: skip

PAIRS = [
    (("kernel", 0), ("ridge", 0)), (("kernel", 1), ("ridge", 0)), (("kernel", 0), ("validation_fraction", 0)),
    (("kernel", 0), ("target_transform", 0)), (("kernel", 0), ("n_centers", 1)), (("kernel", 0), ("preprocess", 1)),
    (("solver", 0), ("validation_fraction", 0)), (("solver", 3), ("validation_fraction", 0)), (("solver", 1), ("kernel", 0)),
    (("solver", 3), ("epochs", 0)), (("solver", 3), ("ridge", 0)), (("solver", 3), ("early_stopping", 0)),
    (("tune", 0), ("kernel", 0)), (("tune", 0), ("validation_fraction", 0)), (("tune", 0), ("solver", 3)),
    (("effort", 1), ("kernel", 0)), (("effort", 1), ("validation_fraction", 0)), (("budget", 0), ("validation_fraction", 0)),
    (("budget", 1), ("intervals", 0)), (("learn_features", 0), ("kernel", 0)), (("learn_features", 0), ("ridge", 0)),
    (("learn_features", 0), ("effort", 0)), (("weights", 0), ("groups", 0)), (("weights", 0), ("validation_fraction", 0)),
    (("groups", 0), ("validation_fraction", 0)), (("groups", 0), ("intervals", 0)), (("times", 0), ("intervals", 0)),
    (("intervals", 0), ("validation_fraction", 0)), (("target_transform", 3), ("kernel", 0)),
    (("target_transform", 3), ("learn_features", 0)), (("target_transform", 4), ("validation_fraction", 0)),
    (("class_weight", 0), ("calibrate", 0)), (("class_weight", 2), ("calibrate", 0)), (("warm_start", 0), ("kernel", 0)),
    (("precision", 0), ("kernel", 0)), (("precision", 1), ("ridge", 1)), (("seed", 0), ("validation_fraction", 0)),
]  # fmt: skip


def pick(name, index):
    return [option for option in OPTIONS if option.name == name][index]


def join(options):
    """Combine several options into one; return None if one is for values and another for classes.

    The combined option is None for an interface that lacks one of them.
    """
    joined = replace(options[0])
    for option in options[1:]:
        variants = {joined.variant, option.variant} - {""}
        if {joined.only, option.only} == {"values", "classes"}:
            return None
        joined = Option(
            f"{joined.name} x {option.name}",
            *(
                None if a is None or b is None else a + b if isinstance(a, list) else {**a, **b}
                for a, b in ((joined.given(i), option.given(i)) for i in INTERFACES)
            ),
            variant="+".join(sorted(variants)), only=joined.only or option.only,
            words=(*joined.names(), *option.names()), weaker=joined.weaker or option.weaker,
            weaker_on=joined.weaker_on or option.weaker_on,
        )  # fmt: skip
    return joined


def program_options():
    """Return the names of all options of mercer train."""
    text = subprocess.run([program(), "train", "--help", "all"], capture_output=True, text=True, check=True, timeout=60).stdout
    return re.findall(r"(?m)^ {2,6}(?:-\w, )?--([a-z-]+)", text)  # deeper lines continue a help text


def python_parameters():
    """Return all parameters and advanced options of the estimators."""
    both = [name for kind in (KernelRegressor, KernelClassifier) for name in inspect.signature(kind).parameters]
    return [name for name in dict.fromkeys([*both, *OPTIONS_OF_PYTHON]) if name != "advanced"]


def c_fields():
    return [*FIT_FIELDS, *(f"train.{name}" for name in L.fields(L.mercer_train_options) if name not in FIT_SETS)]


# ---- One fit ----


@dataclass
class Outcome:
    """Result of a fit. `bytes` is the model file; `shown` is all other deterministic output."""

    error: float = float("nan")  # 1 - R2, or the misclassification rate
    constant: float = 1.0  # error of the best constant prediction
    log_loss: float | None = None
    coverage: float | None = None  # share of test targets in their 90 % interval or class set
    warnings: list[str] = field(default_factory=list)  # error message; in C after the name of the field
    refusal: str | None = None
    bytes: bytes = b""
    shown: str = ""


def _error(y, predicted):
    if y.dtype.kind in "UO":
        return float((y != predicted).mean())
    return float(((y - predicted) ** 2).mean() / y.var())


def _constant(rows):
    y = rows.test[1]
    return 1 - np.unique(y, return_counts=True)[1].max() / len(y) if rows.classes else 1.0


def _extra(rows, variant):
    """Return the training rows of a variant, their targets and its columns that are not features."""
    frame, y = rows.rows(variant if "groups" not in variant else "groups")
    n, extra = len(frame), {}
    if "weights" in variant:
        extra["w"] = np.ones(n)
    if "groups" in variant:
        extra["g"] = rows.groups if rows.groups is not None else np.random.default_rng(40).integers(0, n // 4, n)
    if "times" in variant:
        extra["t"] = np.arange(n)
    if "ids" in variant:
        extra["i"] = [f"row {k}" for k in range(n)]
    return frame, y, extra


def of_program(rows, option, folder):
    """Run mercer train with the option, and mercer eval on the test rows."""
    frame, y, extra = _extra(rows, option.variant)
    folder = Path(folder)
    if not (folder / "test.csv").exists():
        rows.test[0].assign(y=rows.test[1]).to_csv(folder / "test.csv", index=False)
        rows.check[0].assign(y=rows.check[1]).to_csv(folder / "check.csv", index=False)
        if rows.is_plain:
            np.save(folder / "centers.npy", frame.to_numpy()[: len(frame) * 4 // 5])
            np.save(folder / "metric.npy", np.ones((1, frame.shape[1])))
        (folder / "options.json").write_text('{"kernel": "gaussian"}')
    name = f"train-{option.variant}.csv"
    if not (folder / name).exists():
        frame.assign(**extra, y=y).to_csv(folder / name, index=False)
    for left in ("state", "run.jsonl", "model"):
        shutil.rmtree(folder / left, ignore_errors=True)
        (folder / left).unlink(missing_ok=True)
    before = set(folder.iterdir())
    told = _run(folder, "train", "--x", name, "--target", "y", "-o", "model", "--json", "-q", *option.program)
    found = Outcome(constant=_constant(rows), warnings=re.findall(r"(?m)^mercer: warning: (.*)", told.stderr))
    if told.returncode != 0:
        found.refusal = told.stderr.strip().splitlines()[-1] if told.stderr.strip() else f"exit code {told.returncode}"
        return found
    answer = json.loads(told.stdout)
    written = sorted(path.name for path in set(folder.iterdir()) - before)
    found.bytes, found.shown = (folder / "model").read_bytes(), _shown(answer) + str(written)
    arguments = ["eval", "-m", "model", "--x", "test.csv", "--target", "y", "--json"]
    done = _run(folder, *arguments)
    assert done.returncode == 0, done.stderr
    measured = json.loads(done.stdout)
    found.error = 1 - (measured["accuracy"] if rows.classes else measured["r2"])
    found.log_loss = measured.get("log_loss")
    found.coverage = measured.get("coverage")
    return found


def _run(folder, *arguments):
    environment = {**os.environ, "MERCER_THREADS": "1"}
    return subprocess.run([program(), *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


# Measured fields, warnings, which are compared by themselves, and the origin of a decision, which is "given" for every given
# option and so no evidence of an effect.
UNSHOWN = re.compile(r"second|time|phases|flops|bytes|memory|peak|speed|path|output|warnings|origin|importance")  # the rows for importance depend on the time


def _shown(value):
    """Return an answer as text, without the fields of UNSHOWN."""
    if isinstance(value, dict):
        return "{%s}" % ",".join(f"{key}:{_shown(value[key])}" for key in sorted(value, key=str) if not UNSHOWN.search(str(key)))
    if isinstance(value, (list, tuple)):
        return "[%s]" % ",".join(map(_shown, value))
    if isinstance(value, str):
        return "\n".join(line for line in value.splitlines() if not re.match(r"time|memory|estimates", line) and " s" not in line)
    return repr(value)


def _values(rows, value, frame):
    """Replace a placeholder such as "ones" by the array for this table; return other values unchanged."""
    if not isinstance(value, str) or value not in ("ones", "rows", "groups", "times"):
        return value
    return {
        "ones": lambda: np.ones(len(frame)), "rows": lambda: frame.to_numpy()[: len(frame) * 4 // 5],
        "times": lambda: np.arange(len(frame)), "groups": lambda: _extra(rows, "groups")[2]["g"],
    }[value]()  # fmt: skip


def of_python(rows, option, folder):
    """Fit a KernelRegressor or KernelClassifier with the option."""
    frame, y, _ = _extra(rows, option.variant)
    X, test = (frame, rows.test[0]) if not rows.is_plain or "columns" in option.python else (frame.to_numpy(), rows.test[0].to_numpy())
    given = {name: value for name, value in option.python.items() if not name.startswith("fit.")}
    fitted = {name[4:]: _values(rows, value, frame) for name, value in option.python.items() if name.startswith("fit.")}
    if "metric" in given:
        given["metric"] = np.ones(frame.shape[1])
    if "blend" in given:
        given["blend"] = np.ones((2, frame.shape[1]))
    if "centers" in given:
        given["centers"] = _values(rows, "rows", frame)
    found = Outcome(constant=_constant(rows))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = flat(KernelClassifier if rows.classes else KernelRegressor)(**{"random_state": SEED, **given})
            for _ in range(2 if given.get("warm_start") else 1):
                model.fit(X, y, **fitted)
        except (ValueError, TypeError, NotImplementedError) as error:
            found.refusal = str(error)
        found.warnings = [str(one.message) for one in caught]
    if found.refusal is not None:
        return found
    found.error = _error(rows.test[1], model.predict(test))
    if rows.classes:
        probability = model.predict_proba(test)[np.arange(len(test)), np.searchsorted(model.classes_, rows.test[1])]
        found.log_loss = float(-np.log(np.maximum(probability, 1e-15)).mean())
    elif given.get("intervals") or given.get("early_stopping"):
        try:
            low, high = model.predict_interval(test, 0.9)
            found.coverage = float(((low <= rows.test[1]) & (rows.test[1] <= high)).mean())
        except ValueError as error:  # too few groups were held out for this level
            assert "intervals" in str(error) or "held" in str(error), error
    found.bytes = model.model_.to_bytes()
    found.shown = _shown(model.plan_) + _shown(model.summary_) + _shown({key: len(v) for key, v in model.history_.items()})
    return found


class _Library:
    """Calls to the C library with the arguments of a C program and float samples."""

    def __init__(self, fields):
        options = L.mercer_context_options(threads=1)
        for name, value in fields.items():
            setattr(options, name, value)
        self.context, self.kept, self.frees = C.c_void_p(), [], []
        L.check(L.lib.mercer_context_create(self.context, options), None)

    def call(self, name, *arguments):
        status = getattr(L.lib, name)(*arguments)
        if status != L.OK:
            raise ValueError(L.lib.mercer_last_error(self.context).decode())

    def matrix(self, values):
        self.kept.append(values)
        kind = {"float64": L.F64, "float32": L.F32}[values.dtype.name]
        return L.lib.mercer_matrix_view(values.ctypes.data, *values.shape, kind)

    def doubles(self, values):
        values = np.ascontiguousarray(values, np.float64)
        self.kept.append(values)
        return values.ctypes.data_as(C.POINTER(C.c_double))

    def dataset(self, X, y=None, names=None, schema=None, **keys):
        arrays = L.mercer_dataset_arrays(X=C.pointer(self.matrix(X)), schema=schema)
        if y is not None and names is not None:
            numbers = np.searchsorted(names, y).astype(np.int32)
            arrays.labels, arrays.classes = numbers.ctypes.data_as(C.POINTER(C.c_int32)), len(names)
            arrays.label_names = (C.c_char_p * len(names))(*(name.encode() for name in names))
            self.kept.append(numbers)
        elif y is not None:
            arrays.Y = C.pointer(self.matrix(np.ascontiguousarray(y, np.float64).reshape(-1, 1)))
        for name, values in keys.items():
            setattr(arrays, name, self.doubles(values))
        made = C.c_void_p()
        self.call("mercer_dataset_from_arrays", made, self.context, arrays)
        self.frees.append(("mercer_dataset_free", made))
        return made

    def warned(self):
        texts, name = [], C.c_char_p()
        while text := L.lib.mercer_warning(self.context, len(texts), name):
            texts.append(f"{name.value.decode()}: {text.decode()}")
        return texts

    def close(self):
        for name, handle in reversed(self.frees):
            getattr(L.lib, name)(handle)
        L.lib.mercer_context_free(self.context)


def of_c(rows, option, folder):
    """Call mercer_fit with the option, on a dataset of arrays."""
    frame, y, _ = _extra(rows, option.variant)
    fields = {"seed": SEED, **option.c}
    split = {part: {name[len(part) :]: fields.pop(name) for name in list(fields) if name.startswith(part)}
             for part in ("context.", "data.", "train.")}  # fmt: skip
    schema, found = None, Outcome(constant=_constant(rows))
    X, test, check = (part.to_numpy(np.float32) if rows.is_plain else part for part in (frame, rows.test[0], rows.check[0]))
    if not rows.is_plain:
        encoder = Context(1)
        X, schema, _ = T.encode(encoder, frame)
        test, check = (T.encode(encoder, part, schema)[0] for part in (test, check))
    X, test, check = (np.ascontiguousarray(part, np.float32) for part in (X, test, check))
    names = np.unique(y).tolist() if rows.classes else None
    c = _Library(split["context."])
    try:
        keys = {name: _values(rows, value, frame) for name, value in split["data."].items()}
        schema = schema.encode() if schema else None
        data = c.dataset(X, y, names, schema, **keys)
        inner = L.mercer_train_options(**split["train."])
        if fields.get("validation") == "rows":
            fields["validation"] = c.dataset(check, rows.check[1], names, schema)
        if fields.get("given_centers") == "rows":
            fields["given_centers"] = c.dataset(X[: len(X) * 4 // 5].copy())
        if fields.get("metric") == "ones":
            fields["metric"] = C.pointer(c.matrix(np.ones((1, X.shape[1]))))
        if fields.get("blend") == "ones":
            fields["blend"] = C.pointer(c.matrix(np.ones((2, X.shape[1]))))
        if "kernel_function" in fields:
            kernel = L.mercer_kernel()
            c.call("mercer_kernel_parse", kernel, c.context, fields["kernel_function"].encode())
            fields["kernel_function"] = C.pointer(kernel)
        model = C.c_void_p()
        if fields.get("model") == "default":
            c.call("mercer_fit", model, c.context, data, fit_options(seed=SEED), None)
            fields["model"] = model
            c.frees.append(("mercer_model_free", C.c_void_p(model.value)))
        options = fit_options(train=C.pointer(inner), **fields)
        plan = L.mercer_plan()
        trained = L.mercer_report(plan=C.pointer(plan))
        search = L.mercer_search_report()
        report = L.mercer_fit_report(training=C.pointer(trained), search=C.pointer(search))
        try:
            c.call("mercer_fit", model, c.context, data, options, report)
        except ValueError as error:
            found.refusal, found.warnings = str(error), c.warned()
            return found
        if not c.frees or c.frees[-1][0] != "mercer_model_free":
            c.frees.append(("mercer_model_free", model))
        found.warnings = c.warned()
        F = np.empty((len(test), len(names) if names else 1))
        c.call("mercer_model_predict", model, c.matrix(F), c.matrix(test))
        if names:
            found.error = _error(rows.test[1], np.array(names)[F.argmax(axis=1)])
            P = np.empty_like(F)
            c.call("mercer_model_probabilities", model, c.matrix(P), c.matrix(test))
            probability = P[np.arange(len(P)), np.searchsorted(names, rows.test[1])]
            found.log_loss = float(-np.log(np.maximum(probability, 1e-15)).mean())
        else:
            found.error = _error(rows.test[1], F[:, 0])
            radius = (C.c_double * 1)()
            if L.lib.mercer_model_interval(model, radius, 0.9) == L.OK:
                found.coverage = float((abs(F[:, 0] - rows.test[1]) <= radius[0]).mean())
        path = Path(folder) / "c.safetensors"
        c.call("mercer_model_save", model, str(path).encode(), None)
        found.bytes = path.read_bytes()
        told = {name: getattr(report, name) for name in ("rows", "validation_rows", "centers", "effort")}
        told |= {f"search {name}": getattr(search, name) for name in ("rows", "held_out")}
        found.shown = repr(told) + _shown(plan.text.decode())
        return found
    finally:
        c.close()


RUNNERS = {"program": of_program, "python": of_python, "c": of_c}
NOTHING = Option("default", [], {}, {})


def run(rows, option, interface, folder):
    with mock.patch.dict(os.environ, {"OMP_NUM_THREADS": "1"}):  # number of threads of a fit in Python without n_jobs
        return RUNNERS[interface](rows, option, folder)


# Option names that are common words. A message must mark them as names, as in --rows, rows=5 or 'rows'.
COMMON = {
    "rows", "first", "only", "drop", "columns", "header", "format", "missing", "task", "log", "model", "samples", "weights",
    "groups", "times", "validation", "centers", "force", "verify", "config", "color", "seed", "memory", "ones", "w", "g", "t",
}  # fmt: skip


def names_option(outcome, option):
    """Return whether a warning or the error names one of the given options."""
    texts = [plain(text) for text in (*outcome.warnings, outcome.refusal or "")]
    for name in map(re.escape, option.names()):
        marked = rf"--{name}\b|__{name}\b|\b{name} ?=|'{name}'|^{name}:" if name in COMMON else rf"(?<![a-z]){name}(?![a-z])"
        if any(re.search(marked, text) for text in texts):
            return True
    return False
