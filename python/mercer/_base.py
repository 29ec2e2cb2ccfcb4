# SPDX-License-Identifier: BSD-3-Clause
"""What the estimators share: parameters, centers and kernel, one training, predictions."""

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
from . import centers as choice
from ._arrays import Array
from ._calibration import WITHOUT_DATA
from ._context import seed_from
from ._kernels import Kernel, median_distance
from ._model import Model, target_moments
from ._preprocess import Preprocess
from ._progress import Bar
from ._samples import GROUPED, Samples, distinct_rows, drop_weightless, merge_repeated, split, weighted_rows
from ._show import ShowMixin
from ._training import Callback, Trainer, history_arrays

SMALL = GROUPED  # samples up to which repetitions are merged and double stays double; most centers that are chosen
MEDIAN_ROWS = 2000  # of which the bandwidth is the median distance, spread over the samples, as the program does
PATIENCE = 5  # epochs without a better result before training stops early
TYPES = [np.float64, np.float32, np.float16, np.uint8]
SAMPLES_ARE_CENTERS = ("ep1", "ep2", "richardson", "pegasos")
TRANSFORMS = ("auto", "none", "center", "standardise")
NEED_STEPS = ("auto", "direct", "cg", *SAMPLES_ARE_CENTERS)  # solvers that a stream replaces by ep4


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
        self,
        kernel: str | Kernel = "laplace",
        *,
        bandwidth: float | None = None,
        preprocess: str | None = "auto",
        n_centers: int | str | None = None,
        centers: Any = None,
        center_method: str = "random",
        solver: str = "auto",
        epochs: int | None = None,
        batch_size: int | None = None,
        ridge: float = 0.0,
        target_transform: str = "auto",
        average: bool | None = None,
        tol: float | None = None,
        validation_fraction: float = 0.1,
        early_stopping: bool = False,
        memory: int | str | None = None,
        device: str = "cpu",
        arithmetic: str = "accurate",
        precision: str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
    ) -> None:
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.preprocess = preprocess
        self.n_centers = n_centers
        self.centers = centers
        self.center_method = center_method
        self.solver = solver
        self.epochs = epochs
        self.batch_size = batch_size
        self.ridge = ridge
        self.target_transform = target_transform
        self.average = average
        self.tol = tol
        self.validation_fraction = validation_fraction
        self.early_stopping = early_stopping
        self.memory = memory
        self.device = device
        self.arithmetic = arithmetic
        self.precision = precision
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start

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

    def _real(self, X: Array) -> A.Type:
        if self.precision == "auto" and X.dtype == np.float64 and len(X) > SMALL:
            return np.dtype(np.float32)
        return A.weight_type(self.precision, X.dtype)

    def _check_parameters(self, task: Task) -> None:
        share = self.validation_fraction
        if isinstance(share, bool) or not isinstance(share, numbers.Real) or not 0 <= share < 1:
            raise ValueError(f"validation_fraction is {share!r}; it must be at least 0 and below 1")
        if self.early_stopping and share == 0:
            raise ValueError("early_stopping needs a validation_fraction above 0")
        if self.center_method == "balanced" and not task.classification:
            raise ValueError("center_method 'balanced' is for classification")
        if not isinstance(self.target_transform, str) or self.target_transform not in TRANSFORMS:
            raise ValueError(f"target_transform is {self.target_transform!r}; valid: {', '.join(TRANSFORMS)}")
        if self.tol is not None and not (isinstance(self.tol, numbers.Real) and self.tol >= 0):
            raise ValueError(f"tol is {self.tol!r}; it must be a number >= 0, or None")

    # ---- The parts of a model ----

    def _choose_kernel(self, X: Array, before: Preprocess) -> Kernel:
        """The kernel on preprocessed samples."""
        bandwidth = self.bandwidth
        if isinstance(self.kernel, Kernel):
            if bandwidth is not None:
                raise ValueError("bandwidth: the kernel given has one already")
            return self.kernel
        if bandwidth is not None:
            return Kernel(self.kernel, bandwidth=bandwidth)
        try:
            return Kernel(self.kernel)
        except ValueError:
            Kernel(self.kernel, bandwidth=1.0)  # if that is refused too, it is not for want of a bandwidth
        try:
            some = X if len(X) <= MEDIAN_ROWS else X[np.arange(MEDIAN_ROWS) * len(X) // MEDIAN_ROWS]
            median = median_distance(before.apply(some, X.dtype), random_state=0, n_jobs=self.n_jobs)
            return Kernel(self.kernel, bandwidth=float(f"{median:.4g}"))  # more digits are no better
        except ValueError:
            if len(X) > 1 and (X != X[0]).any():
                raise
            return Kernel(self.kernel, bandwidth=1.0)  # all samples are the same point: any will do

    def _center_count(self, available: int) -> int:
        count = self.n_centers
        if count is None:
            return min(available, SMALL)
        if isinstance(count, str) and count == "all":
            return available
        if isinstance(count, bool) or not isinstance(count, numbers.Integral):
            raise TypeError(f"n_centers must be an integer, 'all' or None, not {count!r}")
        if count < 1:
            raise ValueError(f"n_centers is {count}; it must be at least 1")
        return min(int(count), available)

    def _own_centers(self, before: Preprocess, features: int, real: A.Type) -> Array:
        """The centers given, in the units of the data, as the kernel sees them."""
        Z = A.points(self.centers, "centers")
        if Z.shape[1] != features:
            raise ValueError(f"centers has {Z.shape[1]} columns, X has {features} features")
        return before.apply(Z, real)

    def _choose_centers(self, samples: Samples, kernel: Kernel, seed: int, task: Task) -> Array:
        X = samples.X
        if self.solver in SAMPLES_ARE_CENTERS:
            if self._center_count(max(len(X), SMALL)) < len(X):
                raise ValueError(f"solver {self.solver!r} has all samples as centers: leave n_centers at 'all'")
            return X
        first = distinct_rows(X)[0] if len(X) <= SMALL else None
        available = len(X) if first is None else len(first)
        count = self._center_count(available)
        if count == available:
            return X if first is None or available == len(X) else X[first]
        if self.center_method == "random" and samples.weights is not None:
            return weighted_rows(samples, count, np.random.RandomState(seed % 2**32))
        labels = samples.y if task.classification else None
        rows = X if first is None or self.center_method == "kmeans" else X[first]
        if labels is not None and rows is not X:
            labels = labels[first]
        return choice.choose(
            rows,
            count,
            self.center_method,
            kernel=kernel,
            labels=labels,
            memory=self.memory,
            random_state=seed,
            n_jobs=self.n_jobs,
        )

    def _model(self, kernel: Kernel, Z: Array, outputs: int, real: str) -> Model:
        where = {"n_jobs": self.n_jobs, "device": self.device, "arithmetic": self.arithmetic}
        return Model(kernel, Z, outputs, precision=real, **where)

    def _build(self, samples: Samples, task: Task, real: A.Type, seed: int) -> tuple[Model, Samples]:
        """A model without weights, and the samples as its kernel sees them."""
        before = Preprocess(self.preprocess, samples.X, self.n_jobs)
        kernel = before.fold(self._choose_kernel(samples.X, before))
        seen = Samples(before.apply(samples.X, real), samples.y, samples.weights)
        if self.centers is not None:
            Z = self._own_centers(before, samples.X.shape[1], real)
        else:
            Z = self._choose_centers(seen, kernel, seed, task)
        model = self._model(kernel, Z, task.outputs, real.name)
        model._set_preprocess(before.handle)
        if task.classes is not None:
            try:
                model.labels = [str(name) for name in task.classes]
            except ValueError:
                pass  # names that a file cannot hold; the estimator has its own list
        self._set_targets(model, samples, task)
        return model, seen

    def _set_targets(self, model: Model, samples: Samples, task: Task) -> None:
        """The units that targets are learned in: those of classes begin at their shares, values are standardised."""
        how = self.target_transform
        if how == "auto":
            how = "center" if task.classification else "standardise"
        if how == "none":
            return
        if task.classification:
            counts = np.bincount(samples.y, samples.weights, task.outputs).astype(np.float64)
            mean = counts / counts.sum()
            deviation = np.sqrt(mean * (1 - mean))
            deviation[deviation == 0] = 1
        else:
            mean, deviation = target_moments(samples.y, samples.weights)
        model.targets = mean, deviation if how == "standardise" else np.ones_like(mean)

    # ---- Training ----

    def _options(self, task: Task, seed: int) -> dict[str, Any]:
        return {
            "solver": self.solver,
            "epochs": self.epochs,
            "batch_size": self.batch_size,
            "ridge": self.ridge,
            "average": self.average,
            "memory": self.memory,
            "classification": task.classification,
            "random_state": seed,
        }

    def _warm(self) -> bool:
        return bool(self.warm_start) and hasattr(self, "model_")

    def _prepare(self, samples: Samples) -> Samples:
        samples = drop_weightless(samples)
        if len(samples) <= SMALL and self.solver not in SAMPLES_ARE_CENTERS:
            samples = merge_repeated(samples)
        return samples

    def _holds_back(self, samples: Samples) -> int:
        """Samples that are held back though early_stopping is off."""
        return 0

    def _after_fit(self, samples: Samples, aside: Samples | None, seed: int) -> None:
        """What is left to do with the samples when the model is trained."""

    def _fit(self, task: Task, X: Array, y: Array, sample_weight: Any, callbacks: Iterable[Callback] | None) -> None:
        self._check_parameters(task)
        seed, real = seed_from(self.random_state), self._real(X)
        everything = self._prepare(Samples(X, y, self._weights(sample_weight, X)))
        samples, aside = everything, None
        held: float | int = float(self.validation_fraction) if self.early_stopping else self._holds_back(everything)
        if held and len(everything) > 1:
            rows, others = split(everything, held, np.random.RandomState(seed % 2**32), task.classification)
            aside = everything.take(others)
            # A large X is not copied for the sake of a few rows: they get the weight 0 instead.
            few_centers = self.centers is not None or self._center_count(len(everything)) < len(rows)
            in_place = len(everything) > SMALL and few_centers and self.solver not in SAMPLES_ARE_CENTERS
            samples = everything.without(others) if in_place and not self.early_stopping else everything.take(rows)
        if self._warm():
            model = self.model_
            self._sync()
            if model.centers.shape[1] != X.shape[1] or model.weights.shape[1] != task.outputs:
                raise ValueError("warm_start: X or y has not the shape of the last fit")
            seen = Samples(model.preprocessed(samples.X), samples.y, samples.weights)
        else:
            model, seen = self._build(samples, task, real, seed)
        watched = None
        if self.early_stopping and aside is not None:
            watched = Samples(model.preprocessed(aside.X), aside.y, aside.weights)
        self._run(model, task, seen, watched, seed, callbacks)
        self._after_fit(samples, aside, seed)

    def _run(
        self,
        model: Model,
        task: Task,
        samples: Samples,
        aside: Samples | None,
        seed: int,
        callbacks: Iterable[Callback] | None,
    ) -> None:
        bar = Bar() if self.verbose else None
        watch: list[Callback] = [*([bar] if bar else []), *(callbacks or [])]
        if self.tol is not None:
            watch.append(_Tolerance(float(self.tol), self.early_stopping))
        validation: tuple[Any, ...] | None = None
        if aside is not None:
            counted = aside.weights if aside.weights is not None and np.any(aside.weights > 0) else None
            validation = (aside.X, np.eye(task.outputs)[aside.y] if task.classification else aside.y, counted)
        trainer = Trainer(
            model,
            validation=validation,
            callbacks=watch,
            patience=PATIENCE if validation is not None else None,
            progress_seconds=0.05,
            **self._options(task, seed),
        )
        targets = {"labels": samples.y, "classes": task.outputs} if task.classification else {"Y": samples.y}
        try:
            report = trainer.fit(samples.X, sample_weight=samples.weights, random_state=seed, **targets)
        except KeyboardInterrupt:
            self._publish(model, task, trainer, trainer.report())  # the best weights so far
            raise
        finally:
            if bar:
                bar.close()
        if self.verbose > 1:
            print(report["plan"]["text"], end="")
        self._publish(model, task, trainer, report)

    def _publish(self, model: Model, task: Task, trainer: Trainer, report: dict[str, Any]) -> None:
        self._adopt(model, task)
        self.history_ = history_arrays(trainer.history)
        self.plan_ = report.pop("plan")
        self.summary_ = report
        self.spectrum_ = trainer.spectrum()
        self.n_iter_ = max(1, report["epochs"])

    def _adopt(self, model: Model, task: Task) -> None:
        """All that predictions need, at once: a fit that fails leaves the estimator as it was."""
        self.model_, self._task = model, task
        if task.classes is not None:
            self.classes_, self.temperature_ = task.classes, WITHOUT_DATA
        self._trainer: Trainer | None = None
        self._stream_type: str | None = None
        self._behind = False

    def _refit(self, samples: Samples) -> Model:
        """The same training on a part of the samples, for cross-validation."""
        whole = self.model_
        X = whole.preprocessed(samples.X)
        rows = distinct_rows(X)[0]
        same = self.centers is not None or whole.centers.shape[0] < len(rows)
        Z = whole.centers if same else X if self.solver in SAMPLES_ARE_CENTERS else X[rows]
        outputs = whole.weights.shape[1]
        model = self._model(whole.kernel, Z, outputs, whole.weights.dtype.name)
        self._set_targets(model, samples, self._task)
        options = self._options(self._task, 0)
        Trainer(model, **options).fit(X, sample_weight=samples.weights, labels=samples.y, classes=outputs)
        model._set_preprocess(L.lib.mercer_model_preprocess(whole.handle))
        return model

    # ---- Streams ----

    def _partial_fit(self, task: Task, X: Array, y: Array, sample_weight: Any) -> None:
        self._check_parameters(task)
        weights = self._weights(sample_weight, X)
        first = not hasattr(self, "model_")
        model, trainer = (None, None) if first else (self.model_, self._trainer)
        if model is None:
            real = self._real(X)
            seed = self._seed = seed_from(self.random_state)
            model, _ = self._build(drop_weightless(Samples(X, y, weights)), task, real, seed)
        if model.weights.shape[1] != task.outputs:
            raise ValueError(f"y has {task.outputs} columns, earlier batches had {model.weights.shape[1]}")
        if trainer is None:
            options = self._options(task, getattr(self, "_seed", 0))
            options.pop("epochs")
            if self.solver in NEED_STEPS:
                options["solver"] = "ep4"
            trainer = Trainer(model, **options)
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
