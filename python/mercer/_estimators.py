# SPDX-License-Identifier: BSD-3-Clause
"""scikit-learn estimators."""

from __future__ import annotations

import ctypes as C
import inspect
import math
import numbers
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils import Bunch
from sklearn.utils import validation as V
from sklearn.utils.multiclass import check_classification_targets

from . import _arrays as A
from . import _device as D
from . import _library as L
from . import _table as T
from ._arrays import Array
from ._context import Context, as_integer, seed_from, shared_context, warn
from ._evaluation import permutation_importance
from ._kernels import Kernel
from ._model import Dataset, Model
from ._show import Bar, ShowMixin
from ._training import Callback, Fitting, Trainer

if TYPE_CHECKING:
    from typing_extensions import Self

DEFAULT_EFFORT, MOST_EFFORT = 3, 5
PATIENCE = 5  # epochs without a better result after which training stops
TYPES = [np.float64, np.float32, np.float16, np.uint8]  # used without conversion
PRECISIONS = {"auto": 0, "float32": L.F32, "float64": L.F64}
REAL: Any = numbers.Real  # mypy rejects comparisons with numbers.Real
STREAM_SCORES, STREAM_ROWS = 2000, 200  # partial_fit: scores saved to find the temperature; rows scored per batch

PARAMETERS = """Parameters
    ----------
    kernel : str or Kernel
        Kernel function by name ("laplace", "gaussian", "matern32", ...), optionally with parameters
        ("exppower:gamma=0.7"). "auto": found by the search; "laplace" without a search.
    bandwidth : float or None
        Bandwidth of the kernel for preprocessed samples and feature weights of mean 1. None: found by the search;
        without a search, the median distance.
    preprocess : {"auto", "none", "scale", "standardize", "minmax", "unit", "rank"}
        Transform of the features before the kernel is applied. "auto": found by the search; without a search,
        "scale" for uint8, "none" for float16 and "standardize" for other types.
    n_centers : int, "all" or None
        Number of centers, at most the number of samples. None: set by the effort (at effort 3, 6,000 after a search,
        otherwise 10,000).
    centers : array or None; (p, d) in the units of X
        Centers to use; None: chosen from X by ``center_method``.
    center_method : {"random", "kmeans", "rpcholesky", "balanced"}
        Method of choosing the centers; "balanced": equal numbers from each class.
    solver : {"auto", "direct", "cg", "ep4", ...}
        Algorithm of training. "auto": chosen by size, time and memory.
    epochs, batch_size, average
        Number of passes over the samples, or of steps for "cg"; samples per step; whether to average later iterates.
    ridge : float or None
        lambda of the objective sum_i w_i |f(x_i) - y_i|^2 + lambda |f|^2. None: chosen by held-out error. 0: no ridge.
    target_transform : {"auto", "none", "center", "standardize", "log", "rank"}
        Transform of the targets, which predictions undo. "auto": "center" for classes, "standardize" for values.
    tol, early_stopping, validation_fraction
        ``tol``: stop if the loss has not decreased by this share for 5 epochs. ``early_stopping``: stop if the
        validation result has not improved for 5 epochs. ``validation_fraction``: share of the samples that are held out
        for early stopping; 0: no samples are held out for calibration either.
    intervals : bool
        Hold out 10 % of the samples (20 % with ``groups``), at most 2,000, for prediction intervals or sets of
        classes. With ``early_stopping`` the validation samples are used instead.
    memory : int, str or None
        Memory limit of training in bytes, not including the data: 8000000000, "8G". None: half of the free memory.
    device, arithmetic, n_jobs
        See :class:`Context`.
    precision : {"auto", "float32", "float64"}
        Type of the weights and of training. "auto": float64 for float64 samples, otherwise float32.
    random_state : int, RandomState or None
        Seed of all random choices. None: a seed from NumPy's global random state.
    verbose : int
        1: show a progress line on stderr; 2: also print the plan.
    warm_start : bool
        The next fit keeps centers and kernel and starts from the weights of the last fit. It warns if X or y has
        changed.
    metric : array or None
        Metric of the kernel on preprocessed samples: weights (d,), or a symmetric matrix M (d, d).
    learn_features : bool
        True: search a metric for the given kernel ("auto": "laplace") and preprocessing.
    tune : {"auto", "on", "off"} or bool
        Hyperparameter search over kernel, feature weights, bandwidth and ridge, except those that are given.
        "auto" searches for tables, that is, at least 50 distinct samples of at most 1,024 features that are not bytes
        or half floats; "on" also for other samples. "off", and "auto" for other samples, search only the ridge.
    effort : int or None
        Effort of search and training, 1 (quick) to 5 (thorough). It determines sizes and numbers of steps, not times,
        so equal efforts give equal models.
    budget : float or None
        Limit of the wall-clock time of the whole fit in seconds. The fit uses the largest effort whose predicted time
        is within the limit: up to ``effort``, or up to 5 if effort is 3 (the default) or None. At the deadline, search
        and training stop with the best model so far.
    **options
        Further options of training: ``projector, polish, step_factor, nystrom``, ..., as for :class:`Trainer`.

    See docs/python.md for details.

    Attributes
    ----------
    model_ : Model
        Trained model.
    history_, plan_, n_iter_
        Arrays by epoch (train_loss, validation_loss, seconds, ...); the plan of the training with its reasons; number of
        epochs.
    summary_ : dict
        Report of the fit. ``summary_["search"]`` describes the search: effort, error (held-out squared error over the
        variance of the targets), r2 (1 - error), ridge per unit of sample weight, seconds, numbers of training rows and
        held-out rows, errors by number of centers, and steps; ``skipped`` is the reason for no search, or None.
    n_features_in_, feature_names_in_
        Number of columns of X, and their names if X was a data frame."""

CLASS_WEIGHT = """class_weight : None, "balanced" or dict
        Factors of the sample weights by class, also for validation samples. "balanced": all classes have the same total
        weight. A dict has the factors by class; they are 1 for classes that it omits.
    calibrate_to : {"population", "weighted"}
        Distribution that probabilities refer to if class_weight is set: the data without or with the class weights.
"""


# Names of the library's training options; those that the constructor does not name are further parameters.
TRAIN: list[str] = []
while _option := L.lib.mercer_train_option(len(TRAIN)):
    # Python uses the aliases (batch_size, ridge), but not "preset", the alias of solver in the program.
    _by_alias = _option.contents.alias and _option.contents.name != b"solver"
    TRAIN.append((_option.contents.alias if _by_alias else _option.contents.name).decode())
FURTHER = [name for name in TRAIN if name not in ("solver", "epochs", "batch_size", "ridge", "average")]


@dataclass
class Task:
    """Outputs and classes of a fit."""

    outputs: int
    classes: Array | None = None  # sorted classes; None for regression
    flat: bool = True  # regression: y was 1-d
    class_weight: dict[int, float] | str | None = None  # weights by class number, or a keyword


COLUMNS = ("_table", "n_features_in_", "feature_names_in_")  # attributes that describe the columns of X


class KernelEstimator(ShowMixin, BaseEstimator):
    """Base class of KernelClassifier and KernelRegressor."""

    def __init__(
        self, kernel: str | Kernel = "auto", *, bandwidth: float | None = None, preprocess: str | None = "auto",
        n_centers: int | str | None = None, centers: Any = None, center_method: str = "random", solver: str = "auto",
        epochs: int | None = None, batch_size: int | None = None, ridge: float | None = None, target_transform: str = "auto",
        average: bool | None = None, tol: float | None = None, validation_fraction: float = 0.1,
        early_stopping: bool = False, intervals: bool = False, memory: int | str | None = None, device: str = "cpu",
        arithmetic: str = "auto", precision: str = "auto", n_jobs: int | None = None, random_state: Any = None,
        verbose: int = 0, warm_start: bool = False, metric: Any = None, learn_features: bool = False,
        tune: str | bool = "auto", effort: int | None = DEFAULT_EFFORT, budget: float | None = None, **options: Any,
    ) -> None:
        given = {name: value for name, value in locals().items() if name not in ("self", "options")}
        if unknown := sorted(set(options) - set(FURTHER)):
            raise TypeError(f"{type(self).__name__} has no parameter {unknown[0]!r}")
        for name, value in (given | dict.fromkeys(FURTHER) | options).items():
            setattr(self, name, value)

    # ---- Input ----

    def _validate_data(self, X: Any, *y: Any, reset: bool = True, **options: Any) -> Any:
        """Return features from X, and y if it is given, after scikit-learn's checks; X on a GPU stays there."""
        if D.device_of(X) is not None:
            return self._validate_on_device(X, *y, reset=reset, **options)
        if hasattr(X, "__dlpack__") and not hasattr(X, "__array__") and not hasattr(X, "__array_interface__"):
            X = A.as_array(X, "X")
        X, *y = (A.unmasked(values, name) for values, name in zip((X, *map(D.to_host, y)), ("X", "y")))
        if options.get("y_numeric"):
            y = [T.number_targets(t) for t in y]
        frame, known = T.as_frame(X), None if reset else (getattr(self, "_table", None) or (None,))[0]
        if frame is not None and (known is not None or (reset and not T.is_plain(frame))):
            checked = [V.validate_data(self, y=t, **options) if reset else V._check_y(t, **options) for t in y]
            V.check_consistent_length(frame, *checked)
            return (self._encode(frame, known, reset), *checked) if y else self._encode(frame, known, reset)
        X = X if frame is None else frame
        if reset and frame is not None:
            T.warn_plain(frame)
        elif reset and isinstance(X, np.ndarray) and X.dtype.kind in "iu":
            A.warn_columns(X, "X")
        # float64, float32, float16 and uint8 stay unchanged; all other types become float64.
        finite = {"ensure_all_finite": "allow-nan"} if reset or known is not None else {}
        found = V.validate_data(self, X, *y, dtype=TYPES, reset=reset, **finite, **options)
        x = found[0] if y else found
        if known is not None or (x.dtype.kind == "f" and bool(np.isnan(x).any())):
            x = self._encode(x, known, False)
        elif reset:
            self._table: tuple[str, list[str] | None] | None = None
        return (x, found[1]) if y else x

    def _validate_on_device(self, X: Any, *y: Any, reset: bool, **options: Any) -> Any:
        """Validate X on a GPU, where the library checks its values; y is small and is copied to the host."""
        if len(X.shape) != 2:
            raise ValueError(f"X has {len(X.shape)} dimensions; use a matrix with one sample per row")
        V._check_n_features(self, X, reset=reset)
        if reset:
            self._table = None
            self.__dict__.pop("feature_names_in_", None)
        elif getattr(self, "_table", None):
            raise ValueError("X is on a GPU, but the model was fitted to a data frame; use a data frame")
        if not y:
            return X
        host = D.to_host(y[0])
        if options.get("y_numeric"):
            host = T.number_targets(host)
        checked = V.validate_data(self, y=host, **options) if reset else V._check_y(host, **options)
        V.check_consistent_length(np.empty((X.shape[0], 0)), checked)
        return X, checked

    def _encode(self, table: Any, schema: str | None, names: bool) -> Array:
        """Encode a table as features by ``schema``, or by a new one, which is saved; ``names``: save column names."""
        X, found, features = T.encode(shared_context(), table, schema)
        if names:
            V._check_feature_names(self, table, reset=True)
            V._check_n_features(self, table, reset=True)
        if schema is None:
            self._table = None if found is None else (found, features)
        return X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.categorical = True
        return tags

    def _weights(self, sample_weight: Any, X: Array) -> Array | None:
        if sample_weight is None:
            return None
        like = X if isinstance(X, np.ndarray) else np.empty((X.shape[0], 1))
        weights = V._check_sample_weight(D.to_host(sample_weight), like, dtype=np.float64, ensure_non_negative=True)
        if not (weights > 0).any():
            raise ValueError("sample_weight: all weights are zero; at least one must be positive")
        return np.ascontiguousarray(weights)

    def _check_parameters(self) -> None:
        share, width = self.validation_fraction, self.bandwidth
        if isinstance(share, bool) or not isinstance(share, REAL) or not 0 <= share < 1:
            raise ValueError(f"validation_fraction is {share!r}; it must be at least 0 and below 1")
        if self.early_stopping and share == 0:
            raise ValueError("early_stopping needs a validation_fraction above 0")
        if self.early_stopping and L.lib.mercer_solver_kind_of(L.text(self.solver, "solver")) == L.SOLVER_DIRECT:
            raise ValueError(f"early_stopping has no effect with solver {self.solver!r}, which has no epochs")
        if self.precision not in PRECISIONS:
            raise ValueError(f"precision is {self.precision!r}; valid: {', '.join(PRECISIONS)}")
        if not isinstance(self.target_transform, str):
            raise ValueError(f"target_transform is {self.target_transform!r}; it must be a str")
        if isinstance(width, REAL) and not width > 0:
            raise ValueError(f"bandwidth is {width!r}; it must be above 0, or None")
        if self.ridge is not None and (isinstance(self.ridge, bool) or not isinstance(self.ridge, REAL) or not self.ridge >= 0):
            raise ValueError(f"ridge is {self.ridge!r}; it must be a number >= 0, or None")
        if self.tol is not None and not (isinstance(self.tol, REAL) and self.tol >= 0):
            raise ValueError(f"tol is {self.tol!r}; it must be a number >= 0, or None")

    def _center_count(self) -> int:
        """Return the number of centers; 0: chosen by the library, -1: all samples."""
        if self.n_centers is None or (isinstance(self.n_centers, str) and self.n_centers == "all"):
            return 0 if self.n_centers is None else -1
        if as_integer(self.n_centers, "n_centers", ", 'all' or None") < 1:
            raise ValueError(f"n_centers is {self.n_centers}; it must be at least 1")
        return int(self.n_centers)

    def _sizes(self) -> dict[str, Any]:
        """Return effort and budget. With a budget, the default effort is not a limit: the library chooses up to 5."""
        effort, budget = self.effort, self.budget
        if effort is not None and not (_is_integer(effort) and 1 <= effort <= MOST_EFFORT):
            raise ValueError(f"effort is {effort!r}; it must be an integer from 1 to {MOST_EFFORT}, or None")
        if budget is None:
            return {"effort": effort}
        if isinstance(budget, (bool, np.bool_)) or not isinstance(budget, REAL) or not 0 < budget < math.inf:
            raise ValueError(f"budget is {budget!r}; it must be a number of seconds above 0, or None")
        return {"effort": None if effort == DEFAULT_EFFORT else effort, "budget": float(budget)}

    def _search(self) -> dict[str, Any]:
        """Return the options of the hyperparameter search."""
        tune, learn = self.tune, self.learn_features
        if isinstance(tune, (bool, np.bool_)):
            tune = "on" if tune else "off"
        if not isinstance(tune, str) or tune not in ("auto", "on", "off"):
            limit = "; for a time limit use budget" if isinstance(tune, REAL) else ""
            raise ValueError(f"tune is {self.tune!r}; it must be 'auto', 'on', 'off' or a bool{limit}")
        if learn is not None and not isinstance(learn, (bool, np.bool_)):
            raise ValueError(f"learn_features is {learn!r}; it must be a bool")
        if tune == "on" and isinstance(self.kernel, Kernel):
            raise ValueError("tune is on, but kernel is a Kernel, which cannot be searched; use a str")
        switches = {"auto": None, "on": True, "off": False}
        return {"tune": switches[tune], "learn_features": True if learn else None}

    # ---- Fitting ----

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, callbacks: Iterable[Callback] | None = None, *,
        groups: Any = None, times: Any = None,
    ) -> Self:
        """Fit the model to X (n, d) and y: class labels (n,), numbers or texts; or values (n,) or (n, c).

        A regressor fits targets of type timedelta as days, and predicts days; it rejects dates and periods. A sample of
        weight 2 is equivalent to two equal samples. Returns the estimator itself.

        Each of ``callbacks`` is called with a dict of the progress. In the phases "search", "centers", "members" and
        "calibration" it has ``phase``, ``phase_share`` and ``error``, the held-out error in "search"; otherwise it
        describes training, as for :class:`Trainer`. If a callback returns a true value, the fit stops with the model so
        far, or raises a RuntimeError if there is none yet.

        Rows of one of the ``groups`` (n,) are never split between training and held-out rows; with ``times`` (n,),
        numbers or dates, the latest rows are held out.
        """
        shape = getattr(X, "shape", None)
        rows = shape[0] if shape else len(X) if hasattr(X, "__len__") else None
        continued = self._continues_last_fit()
        columns = {name: self.__dict__[name] for name in COLUMNS if name in self.__dict__} if continued else None
        try:
            task, X, y, weights = self._samples(X, y, sample_weight)
            if columns is not None:
                _check_new_missing_values(columns.get("_table"), self._table)
            # The classifier drops samples of weight 0; their groups and times must be dropped, too.
            kept = None if rows in (None, X.shape[0]) else np.asarray(sample_weight) > 0
            keys = {"groups": _sort_keys(groups, "groups", rows, kept), "times": _sort_keys(times, "times", rows, kept)}
            self._fit(task, X, y, weights, callbacks, keys)
        except Exception:
            if columns is not None:  # the model of the last fit remains, so restore its columns
                for name in COLUMNS:
                    self.__dict__.pop(name, None)
                self.__dict__.update(columns)
            raise
        return self

    def _train_options(self) -> dict[str, Any]:
        options = {name: getattr(self, name) for name in TRAIN}
        if self.ridge is not None and self.ridge == 0:
            options["ridge"] = -1.0  # no ridge; in the library, 0 is the default, a chosen ridge
        return options

    def _fitting(
        self, task: Task, X: Array, y: Array, weights: Array | None, seed: int, callbacks: Iterable[Callback] = (),
        *, model: Model | None = None, train: dict[str, Any], keys: dict[str, Any] | None = None, **options: Any,
    ) -> Fitting:
        """Open and prepare a fit with the estimator's parameters."""
        context = model.context if model is not None else Context(self.n_jobs, self.device, self.arithmetic)
        schema, columns = getattr(self, "_table", None) or (None, getattr(self, "feature_names_in_", None))
        targets: dict[str, Any] = {"Y": A.columns(y, "y", np.dtype(np.float64))}
        if task.classes is not None:
            names = [str(name) for name in task.classes]
            # Class names must be distinct in a model, and printable in text files.
            usable = all(name and name.isprintable() for name in names) and len(set(names)) == len(names)
            targets = {"labels": y, "classes": task.outputs, "names": names if usable else None}
            weight = task.class_weight
            if isinstance(weight, dict):
                weight = ",".join(f"{names[k] if usable else k}={value!r}" for k, value in weight.items())
            options["class_weight"] = weight or None
            options["calibrate_to"] = self.calibrate_to
        points = A.points(X, "X") if D.device_of(X) is None else D.DeviceArray(X, "X", context)
        data = Dataset._of_arrays(
            context, points, columns=columns, schema=schema, sample_weight=weights, **targets, **(keys or {})
        )
        seen, before = data._fingerprint() if isinstance(points, np.ndarray) else None, getattr(self, "_seen", None)
        if model is not None and None not in (seen, before) and seen != before:
            warn([
                "warm_start: X or y differs from the last fit; its kernel, preprocessing, centers and units of y are kept, "
                "and only the weights are trained further; set warm_start=False to fit all of them"
            ])
        given = None if self.centers is None else Dataset._of_arrays(context, A.points(self.centers, "centers"))
        metric, kernel = None, None if isinstance(self.kernel, str) and self.kernel == "auto" else self.kernel
        if model is None:  # a given model has its own hyperparameters and metric
            options |= self._search()
            metric = None if self.metric is None else A.points(np.atleast_2d(self.metric), "metric", A.F64)
        ignored = {"n_centers": self.n_centers is not None, "center_method": self.center_method != "random"}
        for name in [name for name, is_set in ignored.items() if is_set and given is not None]:
            warn([f"{name} has no effect, because centers is given; remove one of them"])
        if given is None and self._center_count() > X.shape[0]:
            warn([f"n_centers is {self.n_centers}, but X has {X.shape[0]} rows; all of them are centers"])
        options |= {
            "preprocess": "none" if self.preprocess is None else self.preprocess,
            "target_transform": self.target_transform,
            "center_method": self.center_method,
            "centers": None if given is not None else min(self._center_count(), X.shape[0]),
            "memory": self.memory,
            "random_state": seed,
        } | self._sizes()

        fitting = Fitting(
            data, kernel, {"bandwidth": self.bandwidth, **options}, train, callbacks,
            precision=PRECISIONS[self.precision], centers=given, model=model, metric=metric,
        )
        fitting.seen = seen
        return fitting

    def _continues_last_fit(self) -> bool:
        return bool(self.warm_start) and hasattr(self, "model_")

    def _fit(
        self, task: Task, X: Array, y: Array, weights: Array | None, callbacks: Iterable[Callback] | None,
        keys: dict[str, Any] | None = None,
    ) -> None:
        self._check_parameters()
        seed, bar = seed_from(self.random_state), None
        share, model = float(self.validation_fraction), self.model_ if self._continues_last_fit() else None
        train = {"progress_seconds": 0.05, **self._train_options()}
        options: dict[str, Any] = {"calibrate": task.classes is not None and share > 0}
        if self.intervals:
            options["intervals"] = True
        if self.early_stopping:
            train["patience"], options["validation_fraction"] = train["patience"] or PATIENCE, share
        watch = list(callbacks or [])
        if self.verbose:
            bar = Bar()
            watch.insert(0, bar)
        if self.tol is not None:
            watch.append(_Tolerance(float(self.tol), self.early_stopping))
        if model is not None:
            self._sync()
        fitting = self._fitting(task, X, y, weights, seed, watch, model=model, train=train, keys=keys, **options)
        try:
            fitting.run()
        except KeyboardInterrupt:
            self._store_results(fitting, task)  # the best weights so far
            raise
        finally:
            if bar:
                bar.close()
        self._store_results(fitting, task)
        self._warn_unused()
        if self.verbose > 1:
            print(self.plan_["text"], end="")

    def _warn_unused(self) -> None:
        """Warn about parameters that had no effect in this fit."""
        kind = L.lib.mercer_solver_kind_of(self.plan_["solver"].encode())
        if self.tol is not None and kind in (L.SOLVER_DIRECT, L.SOLVER_ON_SAMPLES):
            warn([f"tol has no effect with solver {self.plan_['solver']}, which has no epochs"])
        if not self.early_stopping and self.validation_fraction not in (0, 0.1):
            warn(["validation_fraction has no effect without early_stopping, unless it is 0"])

    def _store_results(self, fitting: Fitting, task: Task) -> None:
        model, report, spectrum = fitting.result()
        self._store_model(model, task)
        self._seen = fitting.seen
        self.history_, self.spectrum_ = fitting.watch.arrays(), spectrum
        self.plan_, self.summary_ = report.pop("plan"), report
        self.n_iter_ = max(1, report["epochs"])

    def _store_model(self, model: Model, task: Task) -> None:
        """Set all attributes that predictions need, only after success: a failed fit leaves the estimator unchanged."""
        self.model_, self._task = model, task
        if task.classes is not None:
            self.classes_ = task.classes
            self.temperature_ = model.temperature
        self._trainer: Trainer | None = None
        self._stream_type: str | None = None
        self._behind = False
        self._stream: list[tuple[Array, Array]] = []  # scores and labels of the latest batches

    # ---- Streams: partial_fit ----

    def _partial_fit(self, task: Task, X: Array, y: Array, sample_weight: Any) -> Self:
        self._check_parameters()
        X = D.to_host(X)  # batches are preprocessed on the host
        weights, first = self._weights(sample_weight, X), not hasattr(self, "model_")
        model, trainer = (None, None) if first else (self.model_, self._trainer)
        train = self._train_options()
        del train["epochs"]
        kind = L.lib.mercer_solver_kind_of(L.text(self.solver, "solver"))
        if self.solver == "auto" or kind in (L.SOLVER_DIRECT, L.SOLVER_STEPS, L.SOLVER_ON_SAMPLES):
            train["solver"] = "ep4"  # the others need all samples at once
        if model is None:
            self._warn_unused_by_streams(train["solver"])
            self._seed = seed_from(self.random_state)
            model = self._fitting(task, X, y, weights, self._seed, train=train).model()
        if model.weights.shape[1] != task.outputs:
            raise ValueError(f"y has {task.outputs} columns, but earlier batches had {model.weights.shape[1]}")
        if trainer is None:
            own: dict[str, Any] = {"memory": self.memory, "random_state": getattr(self, "_seed", 0)}
            trainer = Trainer(model, classification=task.classes is not None, **train, **own)
        # All batches must have the element type of the first one.
        seen = model.preprocessed(X)
        stream_type = np.dtype(getattr(self, "_stream_type", None) or seen.dtype)
        trainer.step(A.points(seen, "X", stream_type), np.eye(task.outputs)[y] if task.classes is not None else y, weights)
        if first:
            self._store_model(model, task)
            self._seen = None
            self.history_, self.plan_, self.summary_, self.spectrum_ = {}, {}, {}, np.zeros(0)
            self.n_iter_ = 0
        self._trainer, self._stream_type, self._behind = trainer, stream_type.name, True
        self.n_iter_ += 1
        return self

    def _warn_unused_by_streams(self, solver: str) -> None:
        """Warn about given parameters that partial_fit does not use; ``solver``: the one that it uses."""
        defaults = {"epochs": None, "tol": None, "early_stopping": False, "intervals": False, "solver": "auto"}
        given = [name for name, default in defaults.items() if getattr(self, name) != default]
        if solver == self.solver and "solver" in given:
            given.remove("solver")
        warn([f"{name} has no effect in partial_fit" + (f", which uses {solver}" if name == "solver" else "") for name in given])

    def _sync(self) -> None:
        """Write pending steps of partial_fit into the model."""
        if self._behind and self._trainer is not None:
            self._trainer.finish()
            self._behind = False

    # ---- Predictions ----

    def _call_model(self, X: Any, what: str, *arguments: Any, checked: bool = False) -> Any:
        """Call method ``what`` of the up-to-date model with samples, which are validated unless ``checked``."""
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
        (columns,), as in scikit-learn's function of the same name, and ``standard_error`` of the means, ``names`` of
        the columns and ``score`` without permutation. Columns that the fit dropped are not included.
        """
        V.check_is_fitted(self, "model_")
        X, y = self._validate_data(X, y, reset=False, **self._targets_allowed)
        weights = self._weights(sample_weight, X)
        self._sync()
        data = self._labeled(X, y, weights)
        seed = seed_from(random_state)
        found = permutation_importance(self.model_, data, n_repeats=n_repeats, random_state=seed)
        names = found["names"] or [str(j) for j in range(len(found["drops"]))]
        spread = found["standard_errors"] * math.sqrt(found["repeats"])
        return Bunch(
            importances_mean=found["drops"], importances_std=spread, standard_error=found["standard_errors"],
            names=names, score=found["score"],
        )

    _targets_allowed: dict[str, Any] = {}  # options of validate_data for y

    def _labeled(self, X: Array, y: Array, weights: Array | None) -> Dataset:
        """Return a dataset of encoded samples with their targets."""
        Y = A.columns(np.asarray(y, dtype=np.float64), "y", np.dtype(np.float64))
        return Dataset._of_arrays(self.model_.context, A.points(X, "X"), Y=Y, sample_weight=weights)

    def __getstate__(self) -> Any:
        if hasattr(self, "model_"):
            self._sync()
        state = dict(super().__getstate__())
        state["_trainer"] = None  # the next partial_fit creates a trainer that continues from the weights
        return state


def _is_integer(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _check_new_missing_values(last: Any, now: Any) -> None:
    """Reject columns with missing values that had none in the last fit, whose model has no feature for them."""
    known, gaps = (T.missing_columns(table[0] if table else None) for table in (last, now))
    if names := [name for name in gaps if name not in known]:
        raise ValueError(
            f"warm_start: X has missing values in column{'s' if len(names) > 1 else ''} {', '.join(names)}, where the last "
            "fit had none; fill them, or set warm_start=False"
        )


def _sort_keys(values: Any, name: str, rows: int | None, kept: Array | None) -> Array | None:
    """Return groups or times as numbers that sort in the same order; ``kept`` selects samples, None: all."""
    if values is None:
        return None
    found = np.asarray(values)
    if found.ndim != 1 or (rows is not None and len(found) != rows):
        raise ValueError(f"{name} has the shape {found.shape}; it must be ({rows},)")
    if name == "times" and found.dtype.kind not in "iufM":
        raise ValueError(f"times is an array of {found.dtype}; use numbers or dates")
    numbers = found.astype("datetime64[us]").astype(np.int64) if found.dtype.kind == "M" else found
    if name == "groups":
        numbers = np.unique(found, return_inverse=True)[1].reshape(-1)
    numbers = numbers if kept is None else numbers[kept]
    return np.ascontiguousarray(numbers, dtype=np.float64)


def _set_signature(init: Any, names: dict[str, Any]) -> None:
    """Set the signature of a constructor, in which scikit-learn finds the parameters: the base's and ``names``."""
    base = inspect.signature(KernelEstimator.__init__)
    named = [p for p in base.parameters.values() if p.kind is not p.VAR_KEYWORD]
    named += [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=value) for name, value in names.items()]
    init.__signature__ = base.replace(parameters=named)


_set_signature(KernelEstimator.__init__, dict.fromkeys(FURTHER))


class _Tolerance:
    """Callback that stops training when the loss no longer decreases."""

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


def params_doc(cls: type) -> type:
    """Insert the parameters that estimators share into the docstring of a class."""
    own = PARAMETERS.replace("    tol, early", f"    {CLASS_WEIGHT}    tol, early")
    cls.__doc__ = (cls.__doc__ or "").replace("%PARAMETERS%", PARAMETERS).replace("%CLASSIFIER%", own)
    return cls


@params_doc
class KernelRegressor(MultiOutputMixin, RegressorMixin, KernelEstimator):
    """Kernel ridge regression on selected centers.

    The model f(x) = sum_j a_j K(x, z_j) minimizes the sum of squared errors plus the ridge term. Targets may have
    several columns, which share all kernel values.

    %PARAMETERS%

    >>> X = np.linspace(0, 6, 200).reshape(-1, 1)
    >>> model = KernelRegressor("gaussian", bandwidth=0.5, ridge=1e-3, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> model.predict([[np.pi / 2]]).round(2)
    array([1.])
    """

    _targets_allowed = {"multi_output": True, "y_numeric": True}

    def _samples(self, X: Any, y: Any, sample_weight: Any, reset: bool = True) -> Any:
        X, y = self._validate_data(X, y, reset=reset, **self._targets_allowed)
        task = Task(outputs=1 if y.ndim == 1 else y.shape[1], flat=y.ndim == 1)
        return task, X, np.asarray(y, dtype=np.float64), self._weights(sample_weight, X)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on a batch, with one step or more. The first batch provides the centers and should have hundreds of rows."""
        return self._partial_fit(*self._samples(X, y, sample_weight, reset=not hasattr(self, "model_")))

    def predict(self, X: Any) -> Array:
        """Predict values of shape (m,), or (m, c) if y was 2-d."""
        F = self._scores(X)
        return F[:, 0] if self._task.flat else F

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R2 of the predictions; targets of type timedelta are converted to days, as in :meth:`fit`."""
        return float(super().score(X, T.number_targets(y), sample_weight))

    def predict_interval(self, X: Any, level: float = 0.9) -> tuple[Array, Array]:
        """Predict intervals that contain a share ``level`` of new targets.

        Returns the lower and upper ends, each of the shape of :meth:`predict`. Requires rows that :meth:`fit` held out,
        with ``early_stopping`` or ``intervals=True``.
        """
        V.check_is_fitted(self, "model_")
        radius = D.like(X, self.model_.interval(level))
        F = self._scores(X)
        low, high = F - radius, F + radius
        return (low[:, 0], high[:, 0]) if self._task.flat else (low, high)


@params_doc
class KernelClassifier(ClassifierMixin, KernelEstimator):
    """Kernel least-squares classification on selected centers.

    f is fitted to one-hot labels, and the class with the largest output is predicted.

    %CLASSIFIER%
    classes_ : array
        Sorted classes.
    temperature_ : float
        Temperature T of :meth:`predict_proba`.

    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> KernelClassifier(ridge=1e-2, random_state=0).fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.9
    True
    """

    def __init__(
        self, kernel: str | Kernel = "auto", *, class_weight: Any = None, calibrate_to: str = "population", **parameters: Any
    ) -> None:
        super().__init__(kernel, **parameters)
        self.class_weight, self.calibrate_to = class_weight, calibrate_to

    _set_signature(__init__, {"class_weight": None, "calibrate_to": "population"})

    def _samples(self, X: Any, y: Any, sample_weight: Any) -> Any:
        X, y = self._validate_data(X, y)
        check_classification_targets(y)
        weights = self._weights(sample_weight, X)
        if weights is not None and not weights.all():  # drop samples of weight 0, which must not define classes
            X, y, weights = X[weights > 0], y[weights > 0], weights[weights > 0]
        classes, numbers = np.unique(y, return_inverse=True)
        if self._continues_last_fit() and not np.array_equal(classes, self.classes_):
            raise ValueError("warm_start: the classes of y differ from those of the last fit")
        task = Task(len(classes), classes, class_weight=self._class_weight(classes))
        return task, X, numbers.reshape(-1).astype(np.int32), weights

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Train on a batch, with one step or more. The first batch provides the centers and should have hundreds of rows.

        The first call requires ``classes``, all classes of all batches, unless y contains them all.
        """
        first = not hasattr(self, "model_")
        X, y = self._validate_data(X, y, reset=first)
        check_classification_targets(y)
        known = np.unique(y if classes is None else classes) if first else self.classes_
        if not first and classes is not None and not np.array_equal(np.unique(classes), known):
            raise ValueError("classes are not those of the first call of partial_fit, or of fit")
        unknown = np.setdiff1d(y, known)
        if len(unknown):
            raise ValueError(f"y has the class {unknown[0]!r}, which is not among classes")
        numbers = np.searchsorted(known, y).astype(np.int32)
        if not first:
            self._score_stream(X, numbers)
        return self._partial_fit(Task(len(known), known), X, numbers, sample_weight)

    def _class_weight(self, classes: Array) -> dict[int, float] | str | None:
        """Return the class weights by class number, or the given keyword."""
        given = self.class_weight
        if given is None or isinstance(given, str):
            return given
        if not isinstance(given, dict):
            raise ValueError(f"class_weight is {given!r}; valid: None, 'balanced', or a dict of weights by class")
        numbers = {name: k for k, name in enumerate(classes.tolist())}
        unknown = [name for name in given if name not in numbers]
        if unknown:
            raise ValueError(f"class_weight: {unknown[0]!r} is not a class of y")
        return {numbers[name]: float(weight) for name, weight in given.items()}

    def decision_function(self, X: Any) -> Array:
        """Return the outputs (m, c); for two classes f_1 - f_0 of shape (m,), positive for the second class."""
        F = self._scores(X)
        return F[:, 1] - F[:, 0] if F.shape[1] == 2 else F

    def predict(self, X: Any) -> Array:
        """Predict the class with the largest output for each row."""
        if D.device_of(X) is not None:
            names = self.classes_[D.to_host(self._call_model(X, "classify"))]
            return D.like(X, names) if names.dtype.kind in "biuf" else names
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]

    def predict_proba(self, X: Any) -> Array:
        """Predict class probabilities of shape (m, c): softmax(f(x) / T).

        The temperature T, ``temperature_``, minimizes the log loss on samples that the model was not trained on: the
        validation samples with ``early_stopping``; otherwise up to 5,000 samples by 3-fold cross-validation; for more
        samples, or with ``times``, held-out samples (5 %, at most 2,000); in :meth:`partial_fit` the latest samples,
        scored before training on them. With ``validation_fraction=0`` T is 1/4, and the probabilities are not
        calibrated: only their order is meaningful.
        """
        return self._call_model(X, "probabilities")

    def predict_log_proba(self, X: Any) -> Array:
        """Predict the logarithms of the class probabilities."""
        P = self.predict_proba(X)
        return P.log() if hasattr(P, "log") else np.log(P)

    def predict_set(self, X: Any, level: float = 0.9) -> Array:
        """Predict sets of classes, as booleans (m, c), that contain the true class with probability ``level``.

        Requires rows that :meth:`fit` held out, with ``early_stopping``, ``intervals=True`` or more than 5,000 samples.
        """
        return self._call_model(X, "class_sets", level)

    def _labeled(self, X: Array, y: Array, weights: Array | None) -> Dataset:
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(f"y has the class {unknown.tolist()[0]!r}, which the training data do not have")
        numbers, count = np.searchsorted(self.classes_, y).astype(np.int32), len(self.classes_)
        points = A.points(X, "X")
        return Dataset._of_arrays(self.model_.context, points, labels=numbers, classes=count, sample_weight=weights)

    def _score_stream(self, X: Array, numbers: Array) -> None:
        """Update the temperature from the latest samples of a stream, scored before training on them."""
        if not self.validation_fraction or len(self.classes_) < 2:
            return
        rows = slice(0, STREAM_ROWS)
        self._stream.append((self._scores(X[rows], checked=True), numbers[rows]))
        while sum(len(labels) for _, labels in self._stream[1:]) >= STREAM_SCORES:
            self._stream.pop(0)
        scores, labels = (np.concatenate(parts) for parts in zip(*self._stream, strict=True))
        context, found = self.model_.context, C.c_double()
        context.call("mercer_temperature", context.handle, found, A.view(scores), A.integers(labels), None)
        self.model_.temperature = self.temperature_ = found.value
