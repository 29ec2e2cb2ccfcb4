# SPDX-License-Identifier: BSD-3-Clause
"""Training: options, plans, trainers."""

from __future__ import annotations

import ctypes as C
import math
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from . import _arrays as A
from . import _library as L
from ._arrays import Array
from ._context import Context, Failure, byte_count, release_with, seed_from, shared_context
from ._dataset import Dataset
from ._model import Model, release

Callback = Callable[[dict[str, Any]], Any]

_SWITCHES = {None: L.AUTO, "auto": L.AUTO, True: L.ON, False: L.OFF}
_FIELDS = {"batch_size": "batch", "ridge": "lambda", "random_state": "seed"}


def fill(struct: Any, options: dict[str, Any]) -> Any:
    """Sets fields of a struct of options by their types; None is 0, which means: choose.

    >>> options = fill(L.mercer_train_options(), {"epochs": 3, "ridge": 0.5, "average": True, "memory": "1k"})
    >>> options.epochs, getattr(options, "lambda"), options.average == L.ON, options.memory
    (3, 0.5, True, 1000)
    """
    kinds = {entry[0]: entry[1] for entry in struct._fields_[1:]}
    for name, value in options.items():
        field = _FIELDS.get(name, name)
        kind = kinds.get(field)
        if kind is C.c_int:  # a mercer_switch
            if not (value is None or isinstance(value, (bool, np.bool_)) or value == "auto"):
                raise ValueError(f"{name} is {value!r}; valid: True, False, None")
            value = _SWITCHES[value if value is None or isinstance(value, str) else bool(value)]
        elif value is None:
            continue
        elif field == "memory":
            value = byte_count(value)
        elif field == "seed":
            value = seed_from(value)
        elif kind is C.c_int64:
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
                raise TypeError(f"{name} must be an integer or None, not {value!r}")
            if not -(2**63) <= value < 2**63:
                raise ValueError(f"{name} is {value}: out of range")
        elif kind is C.c_double:
            if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
                raise TypeError(f"{name} must be a number or None, not {value!r}")
        elif kind is C.c_char_p:
            value = L.text(value, name)
        else:
            raise TypeError(f"unknown option {name!r}")
        setattr(struct, field, value)
    return struct


def _plan_dict(plan: L.mercer_plan) -> dict[str, Any]:
    result = L.as_dict(plan)
    result["precision"] = str(A.NUMPY[result["precision"]]) if result["precision"] in A.NUMPY else None
    result["ridge"], result["batch_size"] = result.pop("lambda"), result.pop("batch")
    for name in ("carry", "average", "decay", "cache_data", "cache_centers"):
        result[name] = bool(result[name])
    return result


def report_dict(report: L.mercer_report) -> dict[str, Any]:
    """What training did; its plan is a dict, too."""
    result = {name: value for name, value in L.as_dict(report).items() if name != "plan"}
    result["plan"] = _plan_dict(report.plan.contents)
    result["stopped"] = ("finished", "early stopping", "callback")[report.stopped]
    return result


def plan(
    samples: int, centers: int, features: int, outputs: int = 1, *, dtype: Any = np.float32,
    precision: str | None = None, n_jobs: int | None = None, device: str | None = None, **options: Any,
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

    >>> plan(1_000_000, 20_000, 784, 10, memory="8G")["bytes"] < 8_000_000_000
    True
    """
    sizes = {"samples": samples, "centers": centers, "features": features, "outputs": outputs}
    shape, result, context = fill(L.mercer_shape(), sizes), L.mercer_plan(), shared_context(n_jobs, device)
    points = np.dtype(dtype)
    if points not in A.DTYPES:
        raise TypeError(f"dtype is {points}; valid: float64, float32, float16, uint8")
    shape.points, shape.weights = A.DTYPES[points], A.DTYPES[A.weight_type(precision, points)]
    context.call("mercer_plan_shape", context.handle, result, shape, fill(L.mercer_train_options(), options))
    return _plan_dict(result)


_PROGRESS = L.fields(L.mercer_progress)


class Watch:
    """Callbacks of a training and its history; stops it when one says so, or fails, or Control-C was pressed."""

    def __init__(self, context: Context, callbacks: Iterable[Callback]) -> None:
        self.context, self.callbacks, self.failure = context, list(callbacks), Failure()
        self.history: list[dict[str, Any]] = []
        # The library holds the callback as long as the trainer, which must not hold this object in turn.
        me = weakref.ref(self)

        @self.failure.guard
        def progress(_user: Any, pointer: Any) -> bool:
            watch = me()
            return watch is None or watch._tell(pointer.contents)

        self.callback = L.mercer_progress_callback(progress)

    def _tell(self, struct: L.mercer_progress) -> bool:
        """Python's signal handlers run now, so this is where Control-C is noticed."""
        progress = L.as_dict(struct)
        if progress["phase"] is None and progress["pass_samples"] == 0:
            self.history.append(progress)
        stop = self.failure.error is not None or self.context.interrupted
        return stop or any([callback(dict(progress)) for callback in self.callbacks]) or self.context.interrupted

    def arrays(self) -> dict[str, Array]:
        """The history as arrays, one for each field that says something."""
        left_out = ("pass_samples", "pass_total", "epochs", "phase", "phase_share")
        arrays = {n: np.array([record[n] for record in self.history]) for n in _PROGRESS if n not in left_out}
        return {name: values for name, values in arrays.items() if not all(math.isnan(v) for v in values)}


def spectrum(context: Context, trainer: Any) -> Array:
    """The eigenvalues that a trainer's preconditioner was made from."""
    count = C.c_int64()
    context.call("mercer_trainer_spectrum", trainer, None, 0, count)
    values = np.empty(count.value, np.float64)
    context.call("mercer_trainer_spectrum", trainer, A.doubles(values), count.value, count)
    return values


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
        self, model: Model, *, validation: tuple[Any, ...] | None = None, callbacks: Iterable[Callback] = (),
        **options: Any,
    ) -> None:
        self.model, self._watch = model, Watch(model.context, callbacks)
        struct = fill(L.mercer_train_options(), options)
        kept: list[Any] = []
        if validation is not None:
            x, y = self._pair(*validation[:2])
            weights = A.weights(validation[2] if len(validation) > 2 else None, x.shape[0])
            struct.validation_X, struct.validation_Y = C.pointer(A.view(x)), C.pointer(A.view(y))
            struct.validation_weights = A.doubles(weights)
            kept += [x, y, weights]
        struct.progress, self.handle = self._watch.callback, C.c_void_p()
        model.context.call("mercer_trainer_create", self.handle, model.handle, None, struct)
        release_with(self, release, "mercer_trainer_free", self.handle, (model, struct, kept))

    @property
    def history(self) -> list[dict[str, Any]]:
        """The progress at the end of every epoch."""
        return self._watch.history

    def _pair(self, X: Any, Y: Any) -> tuple[Array, Array]:
        weights = A.NUMPY[L.lib.mercer_model_weights(self.model.handle).dtype]
        x = A.take(X, "X")
        single = weights == np.float32 and x.dtype == np.float64
        # Targets keep all their digits until the library has taken their offset away.
        wide = np.dtype(np.float64) if self.model.targets is not None else weights
        return A.points(x, "X", np.dtype(np.float32) if single else None), A.columns(Y, "Y", wide)

    def _call(self, name: str, *arguments: Any) -> None:
        with self._watch.failure, self.model.kernel.failure:
            self.model.context.call(name, self.handle, *arguments)

    # ---- Whole trainings ----

    def fit(
        self, X: Any, Y: Any = None, sample_weight: Any = None, *, labels: Any = None, classes: int | None = None,
        random_state: Any = 0, **stream: Any,
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
        elif stream or (Y is None) == (labels is None):
            raise TypeError(f"{sorted(stream)[0]!r} is for a Dataset" if stream else "fit needs Y or labels, and not both")
        else:
            outputs = self.model.weights.shape[1] if classes is None else classes
            x, y = self._pair(X, np.zeros((1, 1)) if Y is None else Y)
            targets = {"Y": y} if labels is None else {"labels": labels, "classes": outputs}
            X = Dataset._of_arrays(self.model.context, x, sample_weight=sample_weight, **targets)
        report, self._watch.history = L.mercer_report(), []
        source = X._source(random_state=random_state, **stream)
        try:
            with X.context.lock:  # nobody else may read the dataset meanwhile
                self._call("mercer_trainer_fit", source, report)
        finally:
            L.lib.mercer_source_free(source)
        return report_dict(report)

    def _take_names(self, data: Dataset) -> None:
        """A model learns the names of its columns from the first dataset that has any; later ones must agree."""
        known, found = self.model.feature_names, data.info()["features_named"]
        if known is None and found is not None and len(found) == self.model.centers.shape[1]:
            self.model.feature_names = found
        elif known is not None and found is not None and known != found:
            self.model.match(found)  # says which is missing
            raise ValueError("columns stand in another order than the model's; open it with columns=model.feature_names")

    def resume(self, path: Any) -> None:
        """The next fit goes on where the checkpoint was written; load the model from the checkpoint, too."""
        self._call("mercer_trainer_resume", L.text(path, "path"))

    # ---- Batch by batch ----

    def step(self, X: Any, Y: Any, sample_weight: Any = None) -> None:
        """One step on a batch. The first should bring some hundreds of rows: the preconditioner is made of them."""
        x, y = self._pair(X, Y)
        self._call("mercer_trainer_step", A.view(x), A.view(y), A.doubles(A.weights(sample_weight, x.shape[0])))

    def finish(self) -> None:
        """Brings the model's weights up to date with all steps."""
        self._call("mercer_trainer_finish")

    # ---- What happened ----

    def report(self) -> dict[str, Any]:
        """Sizes, losses, residuals, seconds, flops and bytes so far, and the plan."""
        report = L.mercer_report()
        self._call("mercer_trainer_report", report)
        return report_dict(report)

    def spectrum(self) -> Array:
        """The top eigenvalues of the kernel matrix of the preconditioner's sample, divided by its size."""
        return spectrum(self.model.context, self.handle)
