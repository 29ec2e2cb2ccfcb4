# SPDX-License-Identifier: BSD-3-Clause
"""Base class of the estimators: fits, and calls of the model."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Bunch
from sklearn.utils import validation as V

from .. import _arrays as A
from .. import _device as D
from .._arrays import Array
from .._context import Context, seed_from, warn
from .._evaluation import permutation_importance
from .._model import Dataset, Model
from .._training import Callback, Fitting
from .files import FileMixin, class_names
from .inputs import InputMixin, check_new_missing_values, sort_keys
from .parameters import PATIENCE, PRECISIONS, ParametersMixin
from .progress import Tolerance, progress_bar
from .results import ResultsMixin
from .shap_values import ShapMixin
from .show import ShowMixin
from .streams import StreamMixin

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass
class Task:
    """Outputs and classes of a fit."""

    outputs: int
    classes: Array | None = None  # sorted classes; None for regression
    flat: bool = True  # regression: y was 1-d
    class_weight: dict[int, float] | str | None = None  # weights by class number, or a keyword


@dataclass
class Samples:
    """Encoded training rows of a fit, with groups and times, which determine the rows to hold out."""

    X: Array
    y: Array
    weights: Array | None
    keys: dict[str, Any]  # "groups" and "times", each an array or None
    held_out: tuple[Any, Array, Array | None] | None = None  # X, y and weights of eval_set


COLUMNS = ("_table", "n_features_in_", "feature_names_in_")  # attributes that describe the columns of X


class KernelEstimator(
    ParametersMixin, InputMixin, StreamMixin, FileMixin, ResultsMixin, ShapMixin, ShowMixin, BaseEstimator,
):
    """Base class of KernelClassifier and KernelRegressor."""

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, callbacks: Iterable[Callback] | None = None, *,
        groups: Any = None, times: Any = None, eval_set: tuple[Any, ...] | None = None,
    ) -> Self:
        """Fit the model to X (n, d) and y: class labels (n,), which are numbers or texts, or values (n,) or (n, c).

        A regressor fits targets of type timedelta as days, and predicts days; it rejects dates and periods. A sample of
        weight 2 is equivalent to two equal samples. Returns the estimator itself.

        Each of ``callbacks`` is called with a dict of the progress. In the phases "search", "centers", "members" and
        "calibration", the dict has ``phase``, ``phase_share`` and ``error``, which is the held-out error in "search".
        In training, the dict is that of :class:`Trainer`. If a callback returns a true value, the fit stops with the
        current model, or raises a RuntimeError if no model exists yet.

        ``groups`` (n,): rows with the same value are all training rows or all held-out rows. ``times`` (n,): numbers or
        dates; the latest rows are held out. ``eval_set``: held-out rows for early stopping, calibration and intervals,
        as (X, y) or (X, y, sample_weight); the search still holds out training rows.
        """
        self._check_parameters()
        continued = self._continues_last_fit()
        columns = {name: self.__dict__[name] for name in COLUMNS if name in self.__dict__} if continued else None
        try:
            task, samples = self._all_samples(X, y, sample_weight, groups, times, eval_set)
            if columns is not None:
                check_new_missing_values(columns.get("_table"), self._table)
            self._fit(task, samples, callbacks)
        except Exception:
            if columns is not None:  # the fit failed and the last model remains, so restore its columns
                for name in COLUMNS:
                    self.__dict__.pop(name, None)
                self.__dict__.update(columns)
            raise
        return self

    def _all_samples(
        self, X: Any, y: Any, sample_weight: Any, groups: Any, times: Any, eval_set: Any
    ) -> tuple[Task, Samples]:
        """Validate and encode all inputs of a fit."""
        shape = getattr(X, "shape", None)
        rows = shape[0] if shape else len(X) if hasattr(X, "__len__") else None
        keys = {"weight": sample_weight, "group": groups, "time": times}
        task, X, y, weights = self._samples(X, y, sample_weight, keys=keys)
        # The classifier drops samples of weight 0, so drop their groups and times, too.
        kept = None if rows in (None, X.shape[0]) else np.asarray(sample_weight) > 0
        keys = {"groups": sort_keys(groups, "groups", rows, kept), "times": sort_keys(times, "times", rows, kept)}
        return task, Samples(X, y, weights, keys, self._evaluation_rows(eval_set, task))

    def _samples(self, X: Any, y: Any, sample_weight: Any, *, keys: dict[str, Any] | None = None) -> Any:
        """Return task, X, y and weights of a fit; each estimator has its own."""
        raise NotImplementedError

    def _targets(self, y: Any, task: Task) -> Array:
        """Return targets of validated rows for the library; each estimator has its own."""
        raise NotImplementedError

    def _evaluation_rows(self, eval_set: Any, task: Task) -> tuple[Any, Array, Array | None] | None:
        """Return encoded X, y and weights of eval_set; error messages say that they are about eval_set."""
        if eval_set is None:
            return None
        if isinstance(eval_set, list) and len(eval_set) == 1:  # LightGBM's form: a list with one pair
            eval_set = eval_set[0]
        if not isinstance(eval_set, (tuple, list)) or len(eval_set) not in (2, 3):
            raise ValueError("eval_set must be a pair (X, y), or (X, y, sample_weight)")
        try:
            X, y = self._validate_data(eval_set[0], eval_set[1], reset=False, **self._targets_allowed)
            weights = self._weights(eval_set[2] if len(eval_set) == 3 else None, X)
            return X, self._targets(y, task), weights
        except (ValueError, TypeError) as error:
            raise type(error)(f"eval_set: {error}") from None

    # ---- Fitting ----

    def _dataset(
        self, context: Context, task: Task, X: Any, y: Array, weights: Array | None, keys: dict[str, Any] | None = None
    ) -> Dataset:
        """Return a dataset of encoded rows with their targets."""
        schema, columns = getattr(self, "_table", None) or (None, getattr(self, "feature_names_in_", None))
        if task.classes is None:
            targets: dict[str, Any] = {"Y": A.columns(y, "y", np.dtype(np.float64))}
        else:
            targets = {"labels": y, "classes": task.outputs, "names": class_names(task.classes)}
        points = A.points(X, "X") if D.device_of(X) is None else D.DeviceArray(X, "X", context)
        return Dataset._of_arrays(
            context, points, columns=columns, schema=schema, sample_weight=weights, **targets, **(keys or {})
        )

    def _fitting(
        self, task: Task, samples: Samples, seed: int, callbacks: Iterable[Callback] = (), *, model: Model | None = None,
        train: dict[str, Any], **options: Any,
    ) -> Fitting:
        """Open and prepare a fit with the estimator's parameters."""
        context = model.context if model is not None else Context(self.n_jobs, self.device, self._option("arithmetic"))
        data = self._dataset(context, task, samples.X, samples.y, samples.weights, samples.keys)
        held = None if samples.held_out is None else self._dataset(context, task, *samples.held_out)
        seen = data._fingerprint() if D.device_of(samples.X) is None else None
        before = getattr(self, "_seen", None)
        if model is not None and None not in (seen, before) and seen != before:
            text = (
                "warm_start: X or y differs from the last fit; the model keeps the kernel, preprocessing, centers and units of y of "
                "that fit, and only the weights are trained further; set warm_start=False to fit everything"
            )
            warn([("warm_start", text)])
        if task.classes is not None:
            options |= {"class_weight": self._class_weight_text(task), "calibrate_to": self._option("calibrate_to")}
        given = self._given_centers()
        given = None if given is None else Dataset._of_arrays(context, A.points(given, "centers"))
        if given is not None and self._option("center_method") != "random":
            warn([("center_method", "center_method has no effect, because centers is an array; remove one of them")])
        rows, count = samples.X.shape[0], self._center_count()
        if count > rows:
            warn([("centers", f"centers is {count}, but X has {rows} rows; all of them are centers")])
        metric, blend, preprocess = None, None, self._option("preprocess")
        if model is None:  # with warm_start, the last model already has hyperparameters and a metric
            options |= self._search()
            metric = self._option("metric")
            metric = None if metric is None else A.points(np.atleast_2d(metric), "metric", A.F64)
            blend = self._option("blend")
            blend = None if blend is None else A.points(np.atleast_2d(blend), "blend", A.F64)
        options |= {
            "preprocess": "none" if preprocess is None else preprocess,
            "target_transform": self._option("target_transform"),
            "center_method": self._option("center_method"),
            "centers": None if given is not None else min(count, rows),
            "memory": self.memory,
            "random_state": seed,
        } | self._sizes()
        fitting = Fitting(
            data, self._given_kernel(), {"bandwidth": self.bandwidth, **options}, train, callbacks,
            precision=PRECISIONS[self._option("precision")], centers=given, model=model, metric=metric, blend=blend,
            held_out=held,
        )
        fitting.seen = seen
        return fitting

    def _class_weight_text(self, task: Task) -> str | None:
        """Return the class weights as the library reads them."""
        weight = task.class_weight
        if isinstance(weight, dict):
            names = class_names(task.classes)
            return ",".join(f"{names[k] if names else k}={value!r}" for k, value in weight.items()) or None
        return weight or None

    def _continues_last_fit(self) -> bool:
        return bool(self._option("warm_start")) and hasattr(self, "model_")

    def _prepare(self, task: Task, samples: Samples, callbacks: Iterable[Callback] | None, bar: Any) -> Fitting:
        """Return a fit that is prepared up to its plan, including the search."""
        model = self.model_ if self._continues_last_fit() else None
        share, held_out = float(self._option("validation_fraction")), samples.held_out is not None
        train = {"progress_seconds": 0.05, **self._train_options()}
        options: dict[str, Any] = {"calibrate": task.classes is not None and (share > 0 or held_out)}
        if share > 0 or held_out:
            options["score"] = True
        if self.intervals:
            options["intervals"] = True
        if self.early_stopping:
            if share == 0 and not held_out:
                raise ValueError("early_stopping needs an eval_set, or a validation_fraction above 0")
            train["patience"] = train["patience"] or PATIENCE
            if not held_out:
                options["validation_fraction"] = share
        watch = [bar, *(callbacks or [])] if bar else list(callbacks or [])
        if (tol := self._option("tol")) is not None:
            watch.append(Tolerance(float(tol), self.early_stopping or held_out))
        if model is not None:
            self._sync()
        return self._fitting(task, samples, seed_from(self.random_state), watch, model=model, train=train, **options)

    def _fit(self, task: Task, samples: Samples, callbacks: Iterable[Callback] | None) -> None:
        start = time.monotonic()
        with progress_bar(self.verbose) as bar:
            fitting = self._prepare(task, samples, callbacks, bar)
            try:
                fitting.run()
            except KeyboardInterrupt:
                self._store_results(fitting, task, samples)  # the best weights so far
                raise
        self._store_results(fitting, task, samples)
        self.summary_["wall_time"] = time.monotonic() - start
        self._warn_unused_parameters(self.plan_["solver"], self.n_iter_, samples.held_out is not None)
        if self.verbose and self.verbose > 1:
            print(self.plan_["text"], end="")

    def _store_results(self, fitting: Fitting, task: Task, samples: Samples) -> None:
        model, report, spectrum = fitting.result()
        self._store_model(model, task)
        self._seen = fitting.seen
        self.history_, self.spectrum_ = fitting.watch.arrays(), spectrum
        self.plan_, self.summary_ = report.pop("plan"), report
        self.n_iter_ = max(1, report["epochs"])
        self._store_sample(samples)

    def _store_model(self, model: Model, task: Task) -> None:
        """Set all attributes that predictions need; called only after success, so a failed fit changes nothing."""
        self.model_, self._task = model, task
        if task.classes is not None:
            self.classes_ = task.classes
            self.temperature_, self.curvature_ = model.temperature, model.curvature
        self._trainer = None
        self._stream_type: str | None = None
        self._behind = False
        self._stream: list[tuple[Array, Array]] = []  # partial_fit: scores and labels of the latest batches
        self._sample = self._held_out = None

    # ---- Predictions ----

    def _call_model(self, X: Any, what: str, *arguments: Any, checked: bool = False) -> Any:
        """Call method ``what`` of the model after writing pending steps. X is validated unless ``checked``."""
        V.check_is_fitted(self, "model_")
        if not checked:
            X = self._validate_data(X, reset=False)
        self._sync()
        return getattr(self.model_, what)(X, *arguments)

    def _scores(self, X: Any, checked: bool = False) -> Array:
        scores: Array = self._call_model(X, "predict", checked=checked)
        return scores

    def permutation_importance(
        self, X: Any, y: Any, *, n_repeats: int = 5, random_state: Any = None, sample_weight: Any = None
    ) -> Bunch:
        """Measure how much R2, or accuracy, drops when a column of X is permuted among the rows.

        All features of a category are permuted together. The result has ``importances_mean`` and ``importances_std``
        (columns,), as in scikit-learn's function of the same name. It also has ``standard_error`` of the means,
        ``names`` of the columns, and ``score``, the score without permutation. Columns that the fit dropped are not
        included.
        """
        V.check_is_fitted(self, "model_")
        X, y = self._validate_data(X, y, reset=False, **self._targets_allowed)
        weights = self._weights(sample_weight, X)
        self._sync()
        data = self._dataset(self.model_.context, self._task, D.to_host(X), self._targets(y, self._task), weights)
        seed = seed_from(random_state)
        found = permutation_importance(self.model_, data, n_repeats=n_repeats, random_state=seed)
        names = found["names"] or [str(j) for j in range(len(found["drops"]))]
        spread = found["standard_errors"] * math.sqrt(found["repeats"])
        return Bunch(
            importances_mean=found["drops"], importances_std=spread, standard_error=found["standard_errors"],
            names=names, score=found["score"],
        )

    _targets_allowed: dict[str, Any] = {}  # options of scikit-learn's validate_data for y

    def __getstate__(self) -> Any:
        if hasattr(self, "model_"):
            self._sync()
        state = dict(super().__getstate__())
        state["_trainer"] = None  # the next partial_fit creates a trainer that continues from the weights
        return state
