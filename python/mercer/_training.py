# SPDX-License-Identifier: BSD-3-Clause
"""Training: plans, trainers, and complete fits from samples to a model."""

from __future__ import annotations

import ctypes as C
import math
import time
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from . import _arrays as A
from . import _device as D
from . import _library as L
from ._arrays import Array
from ._context import Context, Failure, fill_options, release_with, shared_context
from ._evaluation import evaluate_handle, metrics_of
from ._kernels import Kernel
from ._model import Dataset, Model, _has_other_schema, release

Callback = Callable[[dict[str, Any]], Any]


def _plan_dict(plan: L.mercer_plan) -> dict[str, Any]:
    result = L.as_dict(plan)
    result["precision"] = str(A.NUMPY[plan.precision]) if plan.precision in A.NUMPY else None
    result["ridge"], result["batch_size"] = result.pop("lambda"), result.pop("batch")
    switches = ("carry", "average", "decay", "cache_data", "cache_centers")
    return result | {name: bool(result[name]) for name in switches}


def report_dict(report: L.mercer_report) -> dict[str, Any]:
    """Return the report of a training run as a dict, with its plan as a nested dict."""
    stopped = ("finished", "early stopping", "callback", "budget")[report.stopped]
    return L.as_dict(report) | {"plan": _plan_dict(report.plan.contents), "stopped": stopped}


def plan(
    samples: int, centers: int, features: int, outputs: int = 1, *, dtype: Any = np.float32,
    precision: str | None = None, n_jobs: int | None = None, device: str | None = None, **options: Any,
) -> dict[str, Any]:
    """Plan a training run from its sizes, without data; ``options`` are the options of :class:`Trainer`.

    The plan contains the solver, sizes, and estimated ``bytes``, ``flops`` and ``seconds``. Its entry ``text`` explains
    the choices.

    >>> plan(1_000_000, 20_000, 784, 10, memory="8G")["bytes"] < 8_000_000_000
    True
    """
    sizes = {"samples": samples, "centers": centers, "features": features, "outputs": outputs}
    shape, result, context = fill_options(L.mercer_shape(), sizes), L.mercer_plan(), shared_context(n_jobs, device)
    points = np.dtype(dtype)
    if points not in A.DTYPES:
        raise TypeError(f"dtype is {points}; valid: float64, float32, float16, uint8")
    shape.points, shape.weights = A.DTYPES[points], A.DTYPES[A.weight_type(precision, points)]
    context.call("mercer_plan_shape", context.handle, result, shape, fill_options(L.mercer_train_options(), options))
    return _plan_dict(result)


_STAGE = ("stage", "done", "total", "error")
_PROGRESS = [name for name in L.fields(L.mercer_progress) if name not in _STAGE]


class Watch:
    """History and callbacks of training. Control-C, or a callback that returns a true value or raises, stops it."""

    def __init__(self, context: Context, callbacks: Iterable[Callback]) -> None:
        self.context, self.callbacks, self.failure = context, list(callbacks), Failure()
        self.history: list[dict[str, Any]] = []
        self.start = time.monotonic()
        # A weak reference, because the callback lives until the trainer is released. With a strong reference, a user's
        # callback that refers to the trainer would keep the trainer alive forever.
        me = weakref.ref(self)

        @self.failure.guard
        def progress(_user: Any, pointer: Any) -> bool:
            watch = me()
            return watch is None or watch._record(pointer.contents)

        self.callback = L.mercer_progress_callback(progress)

    def _record(self, struct: L.mercer_progress) -> bool:
        """Record and report progress; return whether to stop.

        Python runs pending signal handlers when the callback enters the interpreter, so Control-C is noticed here.
        """
        progress = L.as_dict(struct)
        stage, done, total, error = (progress.pop(name) for name in _STAGE)
        stop = self.failure.error is not None or self.context.interrupted
        if stage != "training":
            progress = {name: math.nan if isinstance(value, float) else value for name, value in progress.items()}
            progress |= {"phase": stage, "phase_share": done / total if total > 0 else -1.0, "error": error}
            progress["seconds"] = time.monotonic() - self.start
        elif progress["phase"] is None and progress["pass_samples"] == 0:
            last = self.history[-1] if self.history else {"epoch": 0, "samples": 0}
            if (progress["epoch"], progress["samples"]) == (last["epoch"], last["samples"]):
                return stop  # start of an epoch: its end was recorded before
            self.history.append(progress)
        return stop or any([callback(dict(progress)) for callback in self.callbacks]) or self.context.interrupted

    def arrays(self) -> dict[str, Array]:
        """Return the history as arrays, one for each field that is not always NaN."""
        left_out = ("pass_samples", "pass_total", "epochs", "phase", "phase_share")
        arrays = {n: np.array([record[n] for record in self.history]) for n in _PROGRESS if n not in left_out}
        return {name: values for name, values in arrays.items() if not all(math.isnan(v) for v in values)}


def spectrum(context: Context, trainer: Any) -> Array:
    """Return the eigenvalues from which the preconditioner of a trainer was computed."""
    count = C.c_int64()
    context.call("mercer_trainer_spectrum", trainer, None, 0, count)
    values = np.empty(count.value, np.float64)
    context.call("mercer_trainer_spectrum", trainer, A.doubles(values), count.value, count)
    return values


class Trainer:
    """Trains the weights of a model on arrays, on a dataset, or on batches from a data loader of the caller.

    Parameters
    ----------
    model : Model
        Model to train, starting from its weights: weights other than 0 are a warm start.
    validation : tuple of arrays (X, Y) or (X, Y, sample_weight), optional
        Validation samples, evaluated at the end of every epoch.
    callbacks : callables, optional
        Each is called with a dict of the progress at the end of every epoch. If ``progress_seconds`` is set, each is
        also called at this interval during epochs and set-up. ``phase`` is the current phase of set-up, or None during
        epochs. If a callback returns a true value, training stops cleanly.
    **options
        ``solver, epochs, batch_size, ridge, memory, random_state, checkpoint``, ...: fields of
        ``mercer_train_options`` in the C header mercer.h. None: the default.

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
        struct = fill_options(L.mercer_train_options(), options)
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
        """Progress at the end of every epoch."""
        return self._watch.history

    def _pair(self, X: Any, Y: Any) -> tuple[Any, Any]:
        weights = A.NUMPY[self.model._info().weights.dtype]
        # Pass targets with an offset as float64, which keeps all digits until the library subtracts the offset.
        wide = np.dtype(np.float64) if self.model.targets is not None else weights
        y = self._device_array(Y, "Y") if D.device_of(Y) is not None else A.columns(Y, "Y", wide)
        if D.device_of(X) is not None:
            return self._device_array(X, "X"), y
        x = A.as_array(X, "X")
        single = weights == np.float32 and x.dtype == np.float64
        return A.points(x, "X", np.dtype(np.float32) if single else None), y

    def _device_array(self, values: Any, name: str) -> D.DeviceArray:
        return D.DeviceArray(values, name, self.model.context)

    def _call(self, name: str, *arguments: Any) -> None:
        with self._watch.failure, self.model.kernel.failure:
            self.model.context.call(name, self.handle, *arguments)

    # ---- Training on all samples ----

    def fit(
        self, X: Any, Y: Any = None, sample_weight: Any = None, *, labels: Any = None, classes: int | None = None,
        random_state: Any = 0, **stream: Any,
    ) -> dict[str, Any]:
        """Train on all samples, X (n, d) with Y (n, c), or a Dataset, and return the report.

        Instead of Y, ``labels`` may be class numbers 0 .. ``classes`` - 1. A ``sample_weight`` of 2 is equivalent to
        two equal rows. ``random_state`` determines the order of the samples. For a dataset, ``stream`` may contain
        ``augment, samples, height, width, channels, block, prefetch``: fields of ``mercer_stream_options`` in the C
        header samples.h.

        KeyboardInterrupt, or an exception of a callback, is raised after training has stopped cleanly; the model then
        has the best weights so far.
        """
        if isinstance(X, Dataset):
            self._take_names(X)
        elif stream or (Y is None) == (labels is None):
            wrong = f"{sorted(stream)[0]!r} is only for a Dataset" if stream else "fit needs either Y or labels"
            raise TypeError(wrong)
        else:
            outputs = self.model.weights.shape[1] if classes is None else classes
            x, y = self._pair(X, np.zeros((1, 1)) if Y is None else Y)
            targets = {"Y": y} if labels is None else {"labels": labels, "classes": outputs}
            X = Dataset._of_arrays(self.model.context, x, sample_weight=sample_weight, **targets)
        report, self._watch.history = L.mercer_report(), []
        source = X._source(random_state=random_state, **stream)
        try:
            with X.context.lock:  # no other thread may read the dataset during training
                self._call("mercer_trainer_fit", source, report)
        finally:
            L.lib.mercer_source_free(source)
        return report_dict(report)

    def _take_names(self, data: Dataset) -> None:
        """Take column names and schema from the first dataset; later datasets must have the same columns."""
        info = data.info()
        known, found = self.model.feature_names, info["feature_names"]
        if _has_other_schema(info, self.model):
            if self.model.schema is not None or known is not None or self.model.weights.any():
                how = "columns=model.feature_names" if self.model.schema is None else "schema=model.schema"
                raise ValueError(f"the dataset is encoded by a schema other than the model's; open the dataset with {how}")
            self.model.schema = info["schema"]
        if known is None and found is not None and len(found) == self.model.centers.shape[1]:
            self.model.feature_names = found
        elif known is not None and found is not None and known != found:
            self.model.match(found)  # raises an error that names a missing column
            raise ValueError("the columns of the dataset are not in the model's order; open the dataset with columns=model.feature_names")

    def resume(self, path: Any) -> None:
        """Make the next fit resume from a checkpoint. The model must have been loaded from the same checkpoint."""
        self._call("mercer_trainer_resume", L.text(path, "path"))

    def checkpoint(self) -> None:
        """Make a running fit write its ``checkpoint`` file and continue; call it in a callback or another thread."""
        # Call the library without the context, which the training thread has locked.
        if L.lib.mercer_trainer_checkpoint(self.handle) != 0:
            raise ValueError("checkpoint() needs a Trainer with checkpoint=PATH")

    # ---- Training on batches ----

    def step(self, X: Any, Y: Any, sample_weight: Any = None) -> None:
        """Train on a batch, with one step or more.

        The preconditioner is computed from the first batch, which should have a few hundred rows or more.
        """
        x, y = self._pair(X, Y)
        self._call("mercer_trainer_step", A.view(x), A.view(y), A.doubles(A.weights(sample_weight, x.shape[0])))

    def finish(self) -> None:
        """Write the pending steps into the model's weights."""
        self._call("mercer_trainer_finish")

    # ---- Reports ----

    def report(self) -> dict[str, Any]:
        """Return sizes, losses, residuals, seconds, flops and bytes so far, and the plan."""
        report = L.mercer_report()
        self._call("mercer_trainer_report", report)
        return report_dict(report)

    def spectrum(self) -> Array:
        """Return the largest eigenvalues of the preconditioner's kernel matrix, divided by the size of its sample."""
        return spectrum(self.model.context, self.handle)


def _search_dict(report: L.mercer_fit_report, search: L.mercer_search_report) -> dict[str, Any]:
    """Return the report of the search. If no search was done, ``skipped`` is the reason, and numbers are NaN or 0."""
    done = bool(search.steps)
    steps: Array = A.borrowed(search.steps.contents, search) if done else np.zeros((0, 4))
    names = "stage", "error", "exponent", "ridge"
    numbers = {"error": search.error, "r2": 1 - search.error, "ridge": search.ridge}
    sizes = zip(search.centers, search.center_errors)
    return {
        "skipped": search.skipped.decode() if search.skipped else None, "effort": report.effort,
        **(numbers if done else dict.fromkeys(numbers, math.nan)), "seconds": search.seconds,
        "rows": search.rows, "held": search.held_out, "cut": bool(search.cut),
        "centers": {p: error for p, error in sizes if p > 0}, "twice_the_centers": search.more_centers,
        "members": report.members,
        "steps": [{**dict(zip(names, step)), "stage": int(step[0])} for step in steps.tolist()],
    }


class Fitting:
    """Fit that is prepared up to its plan. If ``model`` is given, the fit trains this model further.

    ``options`` are fields of ``mercer_fit_options`` with the names in ``FIT_FIELDS``, ``train`` fields of
    ``mercer_train_options``.
    """

    def __init__(
        self, data: Dataset, kernel: Kernel | str | None, options: dict[str, Any], train: dict[str, Any],
        callbacks: Iterable[Callback] = (), *, precision: int = 0, centers: Dataset | None = None,
        model: Model | None = None, metric: Array | None = None,
        blend: Array | None = None, held_out: Dataset | None = None,
    ) -> None:
        context = data.context
        self.seen: int | None = None  # fingerprint of the data
        self.context, self._model, self._kernel = context, model, kernel if isinstance(kernel, Kernel) else None
        self.watch = Watch(context, callbacks)
        inner = fill_options(L.mercer_train_options(), train)
        named = options if self._kernel else {"kernel": kernel, **options}
        struct = fill_options(L.mercer_fit_options(), named)
        struct.train, struct.run.precision, struct.run.progress = C.pointer(inner), precision, self.watch.callback
        struct.centers.given = None if centers is None else centers.handle
        struct.validation.data = None if held_out is None else held_out.handle
        struct.run.model = None if model is None else model.handle
        view = None if metric is None else A.view(metric)
        struct.kernel.metric = None if view is None else C.pointer(view)
        weights = None if blend is None else A.view(blend)
        struct.kernel.blend = None if weights is None else C.pointer(weights)
        if self._kernel:
            struct.kernel.function = C.pointer(self._kernel.struct)
        self.handle = C.c_void_p()
        context.call("mercer_fitting_open", self.handle, context.handle, data.handle, struct)
        kept = data, centers, held_out, model, struct, inner, metric, view, blend, weights
        release_with(self, release, "mercer_fitting_free", self.handle, kept)
        self._call("mercer_fitting_prepare", None)

    def _call(self, name: str, *arguments: Any) -> None:
        with self.watch.failure, (self._kernel or Kernel("linear")).failure:
            self.context.call(name, self.handle, *arguments)

    def run(self) -> None:
        """Train and calibrate the model."""
        self._call("mercer_fitting_run", None)

    def result(self) -> tuple[Model, dict[str, Any], Array]:
        """Return the model, which the caller then owns, the report and the spectrum."""
        training, search, parts = L.mercer_report(), L.mercer_search_report(), L.mercer_fit_parts()
        report = L.mercer_fit_report(training=C.pointer(training), search=C.pointer(search))
        self._call("mercer_fitting_query", report)
        self._call("mercer_fitting_parts", parts)
        result = report_dict(training) if training.plan else {}
        result["search"] = _search_dict(report, search)
        result["decisions"] = self.decisions()
        values, model = spectrum(self.context, parts.trainer), self.model()
        found = None
        if parts.scores:
            found = metrics_of(self.context, parts.scores)
        elif parts.validation and result["stopped"] != "callback":
            found = evaluate_handle(model, parts.validation)
        result["held_out"] = found
        return model, result, values

    def planned_ridge(self) -> float | None:
        """Return the ridge that the search or the caller has set; None if training chooses the ridge."""
        values = [one["value"] for one in self.decisions() if one["name"] == "ridge"]
        return float(values[-1]) if values else None

    def decisions(self) -> list[dict[str, str]]:
        """Return the decisions of the fit in order, as dicts with stage, name, origin, value and text.

        The origin is given, default, data, search, resumed or budget.
        """
        found, one, exists = [], L.mercer_decision(), C.c_int(1)
        names = ("stage", "name", "origin", "value", "text")
        self._call("mercer_fitting_decision", len(found), one, exists)
        while exists.value:
            found.append({name: getattr(one, name).decode() for name in names})
            self._call("mercer_fitting_decision", len(found), one, exists)
        return found

    def model(self) -> Model:
        """Return the model, trained or not, which the caller then owns."""
        handle = C.c_void_p()
        self._call("mercer_fitting_take_model", handle)
        if self._model is not None:
            return self._model
        own = Model.__new__(Model)
        own._adopt(self.context, handle, self._kernel if self._kernel and self._kernel._function else None)
        return own
