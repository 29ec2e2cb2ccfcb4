# SPDX-License-Identifier: BSD-3-Clause
"""What the estimators share: parameters, one fit, streams, predictions."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from . import _arrays as A
from . import _library as L
from ._arrays import Array
from ._context import Context, seed_from
from ._dataset import Dataset
from ._kernels import Kernel
from ._model import Model
from ._show import Bar, ShowMixin
from ._training import Callback, Fitting, Trainer

PATIENCE = 5  # epochs without a better result before training stops early
WITHOUT_DATA = 0.25  # temperature of probabilities that nothing was held back for
TYPES = [np.float64, np.float32, np.float16, np.uint8]
PRECISIONS = {"auto": 0, "float32": L.F32, "float64": L.F64}
NEED_STEPS = ("auto", "direct", "cg", "ep1", "ep2", "richardson", "pegasos")  # solvers that a stream replaces by ep4


@dataclass
class Task:
    """What is to be fitted."""

    outputs: int
    classes: Array | None = None  # sorted; of a classifier
    flat: bool = True  # targets of a regressor were 1-d

    @property
    def classification(self) -> bool:
        """Whether targets are class numbers."""
        return self.classes is not None


class KernelEstimator(ShowMixin, BaseEstimator):
    """The base of KernelClassifier and KernelRegressor."""

    def __init__(
        self, kernel: str | Kernel = "laplace", *, bandwidth: float | None = None, preprocess: str | None = "auto",
        n_centers: int | str | None = None, centers: Any = None, center_method: str = "random", solver: str = "auto",
        epochs: int | None = None, batch_size: int | None = None, ridge: float = 0.0, target_transform: str = "auto",
        average: bool | None = None, tol: float | None = None, validation_fraction: float = 0.1,
        early_stopping: bool = False, memory: int | str | None = None, device: str = "cpu",
        arithmetic: str = "accurate", precision: str = "auto", n_jobs: int | None = None, random_state: Any = None,
        verbose: int = 0, warm_start: bool = False, metric: Any = None, learn_features: bool | int = False,
    ) -> None:
        self.kernel, self.bandwidth, self.preprocess = kernel, bandwidth, preprocess
        self.n_centers, self.centers, self.center_method = n_centers, centers, center_method
        self.solver, self.epochs, self.batch_size, self.ridge = solver, epochs, batch_size, ridge
        self.target_transform, self.average, self.tol = target_transform, average, tol
        self.validation_fraction, self.early_stopping = validation_fraction, early_stopping
        self.memory, self.device, self.arithmetic, self.precision = memory, device, arithmetic, precision
        self.n_jobs, self.random_state, self.verbose, self.warm_start = n_jobs, random_state, verbose, warm_start
        self.metric, self.learn_features = metric, learn_features

    # ---- Input ----

    def _validate_data(self, X: Any, y: Any, *, reset: bool = True, **options: Any) -> tuple[Array, Array]:
        if hasattr(X, "__dlpack__") and not hasattr(X, "__array__") and not hasattr(X, "__array_interface__"):
            X = A.take(X, "X")
        # Half floats and bytes stay what they are; all other types become double.
        X, y = validate_data(self, X, y, dtype=TYPES, reset=reset, **options)
        return X, y

    def _weights(self, sample_weight: Any, X: Array) -> Array | None:
        if sample_weight is None:
            return None
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not (weights > 0).any():
            raise ValueError("sample_weight: all weights are zero; at least one must be above")
        return np.ascontiguousarray(weights)

    def _check_parameters(self) -> None:
        share, width = self.validation_fraction, self.bandwidth
        if isinstance(share, bool) or not isinstance(share, numbers.Real) or not 0 <= share < 1:
            raise ValueError(f"validation_fraction is {share!r}; it must be at least 0 and below 1")
        if self.early_stopping and share == 0:
            raise ValueError("early_stopping needs a validation_fraction above 0")
        if self.precision not in PRECISIONS:
            raise ValueError(f"precision is {self.precision!r}; valid: {', '.join(PRECISIONS)}")
        if not isinstance(self.target_transform, str):
            raise ValueError(f"target_transform is {self.target_transform!r}; a text is needed")
        if isinstance(width, numbers.Real) and not width > 0:
            raise ValueError(f"bandwidth is {width!r}; it must be above 0, or None")
        if self.tol is not None and not (isinstance(self.tol, numbers.Real) and self.tol >= 0):
            raise ValueError(f"tol is {self.tol!r}; it must be a number >= 0, or None")

    def _center_count(self) -> int:
        count = self.n_centers
        if count is None or (isinstance(count, str) and count == "all"):
            return 0 if count is None else -1
        if isinstance(count, bool) or not isinstance(count, numbers.Integral):
            raise TypeError(f"n_centers must be an integer, 'all' or None, not {count!r}")
        if count < 1:
            raise ValueError(f"n_centers is {count}; it must be at least 1")
        return int(count)

    def _rounds(self) -> int:
        rounds = self.learn_features
        if rounds is None or isinstance(rounds, (bool, np.bool_)):
            return -1 if rounds else 0
        if not isinstance(rounds, numbers.Integral):
            raise TypeError(f"learn_features must be a bool or a number of rounds, not {rounds!r}")
        if rounds < 0:
            raise ValueError(f"learn_features is {rounds}; it must be a bool or a number of rounds")
        return int(rounds)

    # ---- One fit ----

    def _train_options(self) -> dict[str, Any]:
        names = ("solver", "epochs", "batch_size", "ridge", "average")
        return {name: getattr(self, name) for name in names}

    def _fitting(
        self, task: Task, X: Array, y: Array, weights: Array | None, seed: int, callbacks: Iterable[Callback] = (),
        *, model: Model | None = None, train: dict[str, Any], **options: Any,
    ) -> Fitting:
        """A fit with the estimator's parameters, opened and prepared."""
        context = model.context if model is not None else Context(self.n_jobs, self.device, self.arithmetic)
        names = None if task.classes is None else [str(name) for name in task.classes]
        columns = getattr(self, "feature_names_in_", None)
        targets: dict[str, Any] = {"Y": A.columns(y, "y", np.dtype(np.float64))}
        if names is not None:
            usable = all(name and name.isprintable() for name in names)  # a file can hold them
            targets = {"labels": y, "classes": task.outputs, "names": names if usable else None}
        data = Dataset._of_arrays(context, A.points(X, "X"), columns=columns, sample_weight=weights, **targets)
        given = None if self.centers is None else Dataset._of_arrays(context, A.points(self.centers, "centers"))
        options = {
            "bandwidth": self.bandwidth,
            "preprocess": "none" if self.preprocess is None else self.preprocess,
            "target_transform": self.target_transform,
            "center_method": self.center_method,
            "centers": None if given is not None else self._center_count(),
            "memory": self.memory,
            "random_state": seed,
            "merge": True,
            **options,
        }
        metric = None
        if model is None:  # which has its own
            options["learn_features"] = self._rounds()
            metric = None if self.metric is None else A.points(np.atleast_2d(self.metric), "metric", np.float64)
        parts = self.kernel, options, train, callbacks
        fixed: dict[str, Any] = {"centers": given, "model": model, "metric": metric}
        fitting = Fitting(data, *parts, precision=PRECISIONS[self.precision], **fixed)
        try:
            fitting.prepare()
        except ValueError as error:
            if self.bandwidth is not None or len(np.unique(X, axis=0)) > 1 or "distance" not in str(error):
                raise
            options["bandwidth"] = 1.0  # all samples are the same point: any will do
            fitting = Fitting(data, *parts, precision=PRECISIONS[self.precision], **fixed)
            fitting.prepare()
        return fitting

    def _warm(self) -> bool:
        return bool(self.warm_start) and hasattr(self, "model_")

    def _fit(self, task: Task, X: Array, y: Array, sample_weight: Any, callbacks: Iterable[Callback] | None) -> None:
        self._check_parameters()
        weights, seed, bar = self._weights(sample_weight, X), seed_from(self.random_state), None
        share, model = float(self.validation_fraction), self.model_ if self._warm() else None
        train = {"progress_seconds": 0.05, **self._train_options()}
        options: dict[str, Any] = {"calibrate": task.classification and share > 0}
        if self.early_stopping:
            train["patience"], options["validation_fraction"] = PATIENCE, share
        watch = list(callbacks or [])
        if self.verbose:
            bar = Bar()
            watch.insert(0, bar)
        if self.tol is not None:
            watch.append(_Tolerance(float(self.tol), self.early_stopping))
        if model is not None:
            self._sync()
        fitting = self._fitting(task, X, y, weights, seed, watch, model=model, train=train, **options)
        try:
            fitting.run()
        except KeyboardInterrupt:
            self._publish(fitting, task)  # the best weights so far
            raise
        finally:
            if bar:
                bar.close()
        self._publish(fitting, task)
        if self.verbose > 1:
            print(self.plan_["text"], end="")

    def _publish(self, fitting: Fitting, task: Task) -> None:
        model, report, spectrum, temperature = fitting.result()
        self._adopt(model, task, temperature)
        self.history_, self.spectrum_ = fitting.watch.arrays(), spectrum
        self.plan_, self.summary_ = report.pop("plan"), report
        self.n_iter_ = max(1, report["epochs"])

    def _adopt(self, model: Model, task: Task, temperature: float = math.nan) -> None:
        """All that predictions need, at once: a fit that fails leaves the estimator as it was."""
        self.model_, self._task = model, task
        if task.classes is not None:
            self.classes_ = task.classes
            self.temperature_ = WITHOUT_DATA if math.isnan(temperature) else temperature
        self._trainer: Trainer | None = None
        self._stream_type: str | None = None
        self._behind = False
        self._stream: list[tuple[Array, Array]] = []  # latest scores and labels

    # ---- Streams ----

    def _partial_fit(self, task: Task, X: Array, y: Array, sample_weight: Any) -> None:
        self._check_parameters()
        weights, first = self._weights(sample_weight, X), not hasattr(self, "model_")
        model, trainer = (None, None) if first else (self.model_, self._trainer)
        train: dict[str, Any] = {**self._train_options(), "solver": "ep4" if self.solver in NEED_STEPS else self.solver}
        del train["epochs"]
        if model is None:
            self._seed = seed_from(self.random_state)
            model = self._fitting(task, X, y, weights, self._seed, train=train).model()
        if model.weights.shape[1] != task.outputs:
            raise ValueError(f"y has {task.outputs} columns, earlier batches had {model.weights.shape[1]}")
        if trainer is None:
            own: dict[str, Any] = {"memory": self.memory, "random_state": getattr(self, "_seed", 0)}
            trainer = Trainer(model, classification=task.classification, **train, **own)
        # Batches must all be of one type: that of the first.
        seen = model.preprocessed(X)
        stream_type = np.dtype(getattr(self, "_stream_type", None) or seen.dtype)
        trainer.step(A.points(seen, "X", stream_type), np.eye(task.outputs)[y] if task.classification else y, weights)
        if first:
            self._adopt(model, task)
            self.history_, self.plan_, self.summary_, self.spectrum_ = {}, {}, {}, np.zeros(0)
            self.n_iter_ = 0
        self._trainer, self._stream_type, self._behind = trainer, stream_type.name, True
        self.n_iter_ += 1

    def _sync(self) -> None:
        """Brings the model up to date with the steps of partial_fit."""
        if self._behind and self._trainer is not None:
            self._trainer.finish()
            self._behind = False

    # ---- Predictions ----

    def _scores(self, X: Any, checked: bool = False) -> Array:
        check_is_fitted(self, "model_")
        if not checked:
            X = validate_data(self, X, dtype=TYPES, reset=False)
        self._sync()
        return self.model_.predict(X)

    def __getstate__(self) -> Any:
        if hasattr(self, "model_"):
            self._sync()
        state = dict(super().__getstate__())
        state["_trainer"] = None  # the next partial_fit makes a new one and goes on with the weights
        return state


class _Tolerance:
    """A callback that stops when the loss no longer falls."""

    def __init__(self, share: float, validation: bool) -> None:
        self.share, self.name = share, "validation_loss" if validation else "train_loss"
        self.best, self.since = math.inf, 0

    def __call__(self, progress: dict[str, Any]) -> bool:
        loss = progress[self.name]
        if progress["pass_samples"] or math.isnan(loss):
            return False
        better = loss < self.best * (1 - self.share)
        self.best, self.since = min(self.best, loss), 0 if better else self.since + 1
        return self.since >= PATIENCE
