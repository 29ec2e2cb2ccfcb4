# SPDX-License-Identifier: BSD-3-Clause
"""Training: options, plans, trainers."""

from __future__ import annotations

import ctypes as C
import math
import weakref
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any

import numpy as np

from . import _arrays as A
from . import _library as L
from ._arrays import Array
from ._context import byte_count, release_with, seed_from, shared_context
from ._dataset import Dataset
from ._model import Model, release

Callback = Callable[[dict[str, Any]], Any]

_SWITCHES = {None: L.AUTO, "auto": L.AUTO, True: L.ON, False: L.OFF}
_TYPES = {name: kind for name, kind, *_ in L.mercer_train_options._fields_ if name != "struct_size"}
_FIELDS = {"batch_size": "batch", "ridge": "lambda", "random_state": "seed"}


def train_options(options: dict[str, Any]) -> L.mercer_train_options:
    """The struct from Python's options; None is 0, which means: choose."""
    struct = L.mercer_train_options()
    for name, value in options.items():
        field = _FIELDS.get(name, name)
        kind = _TYPES.get(field)
        if kind is C.c_int:  # a mercer_switch
            if not (value is None or isinstance(value, (bool, np.bool_)) or value == "auto"):
                raise ValueError(f"{name} is {value!r}; valid: True, False, None")
            setattr(struct, field, _SWITCHES[value if value is None or isinstance(value, str) else bool(value)])
        elif value is None:
            continue
        elif field == "memory":
            struct.memory = byte_count(value)
        elif field == "seed":
            struct.seed = seed_from(value)
        elif kind is C.c_int64:
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
                raise TypeError(f"{name} must be an integer or None, not {value!r}")
            if not -(2**63) <= value < 2**63:
                raise ValueError(f"{name} is {value}: out of range")
            setattr(struct, field, int(value))
        elif kind is C.c_double:
            if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
                raise TypeError(f"{name} must be a number or None, not {value!r}")
            setattr(struct, field, float(value))
        elif kind is C.c_char_p:
            setattr(struct, field, L.text(value, name))
        else:
            raise TypeError(f"unknown option {name!r}")
    return struct


def _plan_dict(plan: L.mercer_plan) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name in L.fields(plan):
        value = getattr(plan, name)
        result[name] = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    result["precision"] = str(A.NUMPY[result["precision"]]) if result["precision"] in A.NUMPY else None
    result["ridge"], result["batch_size"] = result.pop("lambda"), result.pop("batch")
    for name in ("carry", "average", "decay", "cache_data", "cache_centers"):
        result[name] = bool(result[name])
    return result


def plan(
    samples: int,
    centers: int,
    features: int,
    outputs: int = 1,
    *,
    dtype: Any = np.float32,
    precision: str | None = None,
    n_jobs: int | None = None,
    device: str | None = None,
    **options: Any,
) -> dict[str, Any]:
    """What training of a given size will do, and why, without any data.

    Parameters
    ----------
    samples, centers, features, outputs : int
    dtype : type of samples and centers
    precision : {"auto", "float32", "float64"}
    **options
        Options of :class:`Trainer`.

    Returns
    -------
    plan : dict
        Solver, sizes, estimated ``bytes``, ``flops`` and ``seconds``; ``plan["text"]`` has the reasons in words.

    Examples
    --------
    >>> import mercer
    >>> plan = mercer.plan(1_000_000, 20_000, 784, 10, memory="8G")
    >>> plan["bytes"] < 8_000_000_000
    True
    """
    for name, value in (("samples", samples), ("centers", centers), ("features", features), ("outputs", outputs)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise TypeError(f"{name} must be an integer, not {value!r}")
        if not -(2**63) <= value < 2**63:
            raise ValueError(f"{name} is {value}: out of range")
    points = np.dtype(dtype)
    if points not in A.DTYPES:
        raise TypeError(f"dtype is {points}; valid: float64, float32, float16, uint8")
    shape = L.mercer_shape(
        samples=int(samples),
        centers=int(centers),
        features=int(features),
        outputs=int(outputs),
        points=A.DTYPES[points],
        weights=A.DTYPES[A.weight_type(precision, points)],
    )
    context, result = shared_context(n_jobs, device), L.mercer_plan()
    struct = train_options(options)
    context.call("mercer_plan_shape", context.handle, C.byref(result), C.byref(shape), C.byref(struct))
    return _plan_dict(result)


_PROGRESS = L.fields(L.mercer_progress)


class Trainer:
    """Trains a model's weights: on arrays, on a dataset, or batch by batch on the caller's own data loader.

    Parameters
    ----------
    model : Model
        Weights other than 0 are where training begins.
    validation : tuple of arrays (X, Y) or (X, Y, sample_weight), optional
        Watched at the end of every epoch.
    callbacks : callables, optional
        Each gets a dict of the progress at the end of every epoch, and every ``progress_seconds`` in between;
        something true stops cleanly. ``pass_samples`` is 0 at the end of an epoch. With ``progress_seconds`` it is
        called during set-up, too: ``phase`` then says what is done, and is None otherwise.
    **options
        ``solver, projector, epochs, batch_size, nystrom, eigenpairs, period, ridge, average, decay, polish,
        patience, step_factor, memory, cache, classification, random_state, progress_seconds, checkpoint,
        checkpoint_seconds, checkpoint_note, carry`` and ``projector_*``: see ``mercer_train_options`` in the C
        header. None means: choose.

    Attributes
    ----------
    history : list of dict
        The progress at the end of every epoch.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Model, Trainer
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 2)); Y = np.sin(X[:, :1])
    >>> trainer = Trainer(Model("laplace:bandwidth=3", X[:200]), solver="ep4", batch_size=100)
    >>> for i in range(20):
    ...     trainer.step(X[i * 100 : i * 100 + 100], Y[i * 100 : i * 100 + 100])
    >>> trainer.finish()
    >>> bool(np.mean((trainer.model.predict(X) - Y) ** 2) < 0.05)
    True
    """

    def __init__(
        self,
        model: Model,
        *,
        validation: tuple[Any, ...] | None = None,
        callbacks: Iterable[Callback] = (),
        **options: Any,
    ) -> None:
        self.model = model
        self.callbacks = list(callbacks)
        self.history: list[dict[str, Any]] = []
        self._error: BaseException | None = None
        struct = train_options(options)
        self._kept: list[Any] = []
        if validation is not None:
            x, y = self._pair(*validation[:2])
            views = A.view(x), A.view(y)
            struct.validation_X, struct.validation_Y = C.pointer(views[0]), C.pointer(views[1])
            weights = A.weights(validation[2] if len(validation) > 2 else None, x.shape[0])
            if weights is not None:
                struct.validation_weights = A.doubles(weights)
            self._kept += [x, y, views, weights]
        # The library holds the callback as long as the trainer; the callback must not hold the trainer.
        me = weakref.ref(self)
        progress = L.mercer_progress_callback(lambda _user, progress: _on_progress(me(), progress))
        struct.progress = progress
        self._kept.append(progress)
        handle = C.c_void_p()
        model.context.call("mercer_trainer_create", C.byref(handle), model.handle, None, C.byref(struct))
        self.handle = handle
        release_with(self, release, "mercer_trainer_free", handle, (model, self._kept))

    def _pair(self, X: Any, Y: Any) -> tuple[Array, Array]:
        weights = A.NUMPY[L.lib.mercer_model_weights(self.model.handle).dtype]
        x = A.take(X, "X")
        single = weights == np.float32 and x.dtype == np.float64
        # Targets keep all their digits until the library has taken their offset away.
        wide = np.dtype(np.float64) if self.model.targets is not None else weights
        return A.points(x, "X", np.dtype(np.float32) if single else None), A.columns(Y, "Y", wide)

    def _call(self, name: str, *arguments: Any) -> None:
        """A call that may run callbacks: what they raised comes first."""
        self._error = None
        try:
            with self.model.kernel.failure:
                self.model.context.call(name, self.handle, *arguments)
        except Exception as error:
            if self._error is not None:
                raise self._error from error
            raise
        finally:
            problem, self._error = self._error, None
        if problem is not None:
            raise problem

    # ---- Whole trainings ----

    def fit(
        self,
        X: Any,
        Y: Any = None,
        sample_weight: Any = None,
        *,
        labels: Any = None,
        classes: int | None = None,
        random_state: Any = 0,
        **stream: Any,
    ) -> dict[str, Any]:
        """Trains on all samples.

        Parameters
        ----------
        X : array of shape (n, d), or Dataset
        Y : array of shape (n, c)
            Targets; not with a dataset, which has its own.
        sample_weight : array of shape (n,), optional
            A weight of 2 is a row that comes twice.
        labels, classes
            Instead of Y: class numbers 0 .. classes - 1.
        random_state
            Of the order of the samples.
        **stream
            With a dataset: ``augment, samples, height, width, channels, block, prefetch``.

        Returns
        -------
        report : dict

        Notes
        -----
        KeyboardInterrupt, and what a callback raises, is raised when training has stopped cleanly: the model then
        has the best weights so far.
        """
        if isinstance(X, Dataset):
            self._take_names(X)
            source, kept = X._source(random_state=random_state, **stream), [X]
        else:
            if stream:
                raise TypeError(f"{sorted(stream)[0]!r} is for a Dataset")
            source, kept = self._source(X, Y, sample_weight, labels, classes, seed_from(random_state))
        report = L.mercer_report()
        self.history = []
        # A dataset is read through its own context: nobody else may be inside that one either.
        with X.context.lock if isinstance(X, Dataset) else nullcontext():
            try:
                self._call("mercer_trainer_fit", C.byref(source), C.byref(report))
            finally:
                L.lib.mercer_source_free(C.byref(source))
                del kept
        return _report_dict(report)

    def _take_names(self, data: Dataset) -> None:
        """A model learns the names of its columns from the first dataset that has any; later ones must agree."""
        known, found = self.model.feature_names, data.info()["features_named"]
        if known is None and found is not None and len(found) == self.model.centers.shape[1]:
            self.model.feature_names = found
        elif known is not None and found is not None and known != found:
            self.model.match(found)  # says which is missing
            raise ValueError("columns stand in another order than the model's; open it with columns=model.feature_names")

    def _source(self, X: Any, Y: Any, sample_weight: Any, labels: Any, classes: int | None, seed: int) -> Any:
        source, context = L.mercer_source(), self.model.context
        if (Y is None) == (labels is None):
            raise TypeError("fit needs Y or labels, and not both")
        if labels is None:
            x, y = self._pair(X, Y)
            weights = A.weights(sample_weight, x.shape[0])
            context.call(
                "mercer_source_from_matrices",
                C.byref(source),
                context.handle,
                C.byref(A.view(x)),
                C.byref(A.view(y)),
                A.doubles(weights),
                seed,
            )
            return source, [x, y, weights]
        x = self._pair(X, np.zeros((1, 1)))[0]
        numbers = A.class_numbers(labels, x.shape[0])
        weights = A.weights(sample_weight, x.shape[0])
        context.call(
            "mercer_source_from_labels",
            C.byref(source),
            context.handle,
            C.byref(A.view(x)),
            A.integers(numbers),
            self.model.weights.shape[1] if classes is None else classes,
            A.doubles(weights),
            seed,
        )
        return source, [x, numbers, weights]

    def resume(self, path: Any) -> None:
        """The next fit goes on where the checkpoint was written; load the model from the checkpoint, too."""
        self._call("mercer_trainer_resume", L.text(path, "path"))

    # ---- Batch by batch ----

    def step(self, X: Any, Y: Any, sample_weight: Any = None) -> None:
        """One step on a batch. The first should bring some hundreds of rows: the preconditioner is made of them."""
        x, y = self._pair(X, Y)
        weights = A.weights(sample_weight, x.shape[0])
        self._call("mercer_trainer_step", C.byref(A.view(x)), C.byref(A.view(y)), A.doubles(weights))

    def finish(self) -> None:
        """Brings the model's weights up to date with all steps."""
        self._call("mercer_trainer_finish")

    # ---- What happened ----

    def report(self) -> dict[str, Any]:
        """Sizes, losses, residuals, seconds, flops and bytes so far, and the plan."""
        report = L.mercer_report()
        self._call("mercer_trainer_report", C.byref(report))
        return _report_dict(report)

    def spectrum(self) -> Array:
        """The top eigenvalues of the kernel matrix of the preconditioner's sample, divided by its size."""
        count = C.c_int64()
        self._call("mercer_trainer_spectrum", None, 0, C.byref(count))
        values = np.empty(count.value, np.float64)
        self._call("mercer_trainer_spectrum", A.doubles(values), count.value, C.byref(count))
        return values


def _report_dict(report: L.mercer_report) -> dict[str, Any]:
    result = {name: getattr(report, name) for name in L.fields(report) if name != "plan"}
    result["plan"] = _plan_dict(report.plan.contents)
    result["stopped"] = {0: "finished", 1: "early stopping", 2: "callback"}.get(report.stopped, str(report.stopped))
    return result


def _on_progress(trainer: Trainer | None, pointer: Any) -> int:
    """The library's callback: Python's signal handlers run now, so this is where Control-C is noticed."""
    if trainer is None or trainer._error is not None or trainer.model.context.interrupted:
        return 1
    try:
        progress = {name: getattr(pointer.contents, name) for name in _PROGRESS}
        phase = progress["phase"]
        progress["phase"] = None if phase is None else phase.decode()
        if phase is None and progress["pass_samples"] == 0:
            trainer.history.append(progress)
        stop = [bool(callback(dict(progress))) for callback in trainer.callbacks]
        return 1 if any(stop) or trainer.model.context.interrupted else 0
    except BaseException as error:
        trainer._error = error
        return 1


def history_arrays(history: list[dict[str, Any]]) -> dict[str, Array]:
    """The history as arrays, one for each field that says something."""
    left_out = ("pass_samples", "pass_total", "epochs", "phase", "phase_share")
    names = [name for name in _PROGRESS if name not in left_out]
    arrays = {name: np.array([record[name] for record in history]) for name in names}
    return {name: values for name, values in arrays.items() if not all(math.isnan(v) for v in values)}
