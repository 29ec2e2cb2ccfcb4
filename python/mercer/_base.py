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
from . import centers as choice
from ._arrays import Array
from ._calibration import WITHOUT_DATA
from ._context import seed_from
from ._kernels import Kernel, median_distance
from ._model import Model, target_moments
from ._progress import Bar
from ._samples import GROUPED, Samples, distinct_rows, drop_weightless, merge_repeated, split, weighted_rows
from ._show import ShowMixin
from ._training import Callback, Trainer, history_arrays

SMALL = GROUPED  # samples up to which repetitions are merged and double stays double; most centers that are chosen
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
        device: str = "auto",
        precision: str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
    ) -> None:
        self.kernel = kernel
        self.bandwidth = bandwidth
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

    def _choose_kernel(self, X: Array, seed: int) -> Kernel:
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
            return Kernel(self.kernel, bandwidth=median_distance(X, random_state=seed, n_jobs=self.n_jobs))
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

    def _choose_centers(self, samples: Samples, kernel: Kernel, seed: int, task: Task) -> Array:
        X = samples.X
        if self.centers is not None:
            Z = A.points(self.centers, "centers")
            if Z.shape[1] != X.shape[1]:
                raise ValueError(f"centers has {Z.shape[1]} columns, X has {X.shape[1]} features")
            return A.points(Z, "centers", X.dtype) if Z.dtype == np.float64 and X.dtype == np.float32 else Z
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

    def _build(self, samples: Samples, task: Task, real: A.Type, seed: int) -> Model:
        kernel = self._choose_kernel(samples.X, seed)
        Z = self._choose_centers(samples, kernel, seed, task)
        model = Model(kernel, Z, task.outputs, precision=real.name, n_jobs=self.n_jobs, device=self.device)
        if task.classes is not None:
            try:
                model.labels = [str(name) for name in task.classes]
            except ValueError:
                pass  # names that a file cannot hold; the estimator has its own list
        self._set_targets(model, samples, task)
        return model

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

    def _prepare(self, samples: Samples, real: A.Type) -> Samples:
        samples = drop_weightless(samples)
        if samples.X.dtype == np.float64 and real == np.float32:
            samples.X = A.points(samples.X, "X", real)
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
        everything = self._prepare(Samples(X, y, self._weights(sample_weight, X)), real)
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
        else:
            model = self._build(samples, task, real, seed)
        self._run(model, task, samples, aside, seed, callbacks)
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
        if self.early_stopping and aside is not None:
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
        rows = distinct_rows(samples.X)[0]
        same = self.centers is not None or whole.centers.shape[0] < len(rows)
        Z = whole.centers if same else samples.X if self.solver in SAMPLES_ARE_CENTERS else samples.X[rows]
        outputs = whole.weights.shape[1]
        model = Model(
            whole.kernel, Z, outputs, precision=whole.weights.dtype.name, n_jobs=self.n_jobs, device=self.device
        )
        self._set_targets(model, samples, self._task)
        options = self._options(self._task, 0)
        Trainer(model, **options).fit(samples.X, sample_weight=samples.weights, labels=samples.y, classes=outputs)
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
            samples = drop_weightless(Samples(X, y, weights))
            if X.dtype == np.float64 and real == np.float32:
                samples.X = A.points(samples.X, "X", real)
            model = self._build(samples, task, real, seed)
        if model.weights.shape[1] != task.outputs:
            raise ValueError(f"y has {task.outputs} columns, earlier batches had {model.weights.shape[1]}")
        if trainer is None:
            options = self._options(task, getattr(self, "_seed", 0))
            options.pop("epochs")
            if self.solver in NEED_STEPS:
                options["solver"] = "ep4"
            trainer = Trainer(model, **options)
        # Batches must all be of one type: that of the first.
        dtype = model.weights.dtype if X.dtype == np.float64 else X.dtype
        stream_type = np.dtype(getattr(self, "_stream_type", None) or dtype)
        trainer.step(A.points(X, "X", stream_type), np.eye(task.outputs)[y] if task.classification else y, weights)
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
