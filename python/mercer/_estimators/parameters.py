# SPDX-License-Identifier: BSD-3-Clause
"""Parameters of the estimators: their documentation, the options in ``advanced``, and checks of their values.

The constructors have the parameters that most users need. All other options are entries of ``advanced``, a dict.
"""

from __future__ import annotations

import functools
import inspect
import math
import numbers
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .. import _library as L
from .._context import as_integer, warn
from .._kernels import Kernel

DEFAULT_EFFORT, MOST_EFFORT = 3, 5
PATIENCE = 5  # epochs without a better result after which training stops
PRECISIONS = {"auto": 0, "float32": L.F32, "float64": L.F64}
REAL: Any = numbers.Real  # typed as Any, because mypy rejects comparisons with numbers.Real

# Documentation of the parameters and attributes. %TASK%: the parameter that only one of the estimators has.
PARAMETERS = """Parameters
    ----------
    kernel : str, Kernel or None
        Kernel function, such as "laplace", "gaussian" or "exppower:gamma=0.7"; None: found by the search.
    effort : int
        Effort of search and training, 1 (quick) to 5 (thorough); sets sizes, not times.
    budget : float or None
        Limit of the wall-clock time of the whole fit in seconds; None: no limit.
    tune : {"auto", "on", "off"} or bool
        Hyperparameter search; "auto": for tables; "off": of the ridge only.
    centers : int, "all", array or None
        Number of centers, or an array (p, d) of centers in the units of X; None: set by the effort.
    ridge : float or None
        lambda of the objective sum_i w_i |f(x_i) - y_i|^2 + lambda |f|^2; 0: no ridge; None: chosen by held-out error.
    bandwidth : float or None
        Bandwidth of the kernel for preprocessed samples; None: found by the search, else the median distance.
    solver : {"auto", "direct", "cg", "ep4", ...}
        Algorithm of training; "auto": chosen by size, time and memory.
    early_stopping : bool
        Stop after 5 epochs without a better result on held-out rows; only for solvers with epochs or steps.
    intervals : bool
        Hold out 10 % of the rows, at most 2,000, for prediction intervals or sets of classes.
    %TASK%
    columns : dict or None
        Kinds of columns of X by name: "number", "category", "boolean", "date", "date-dmy", "date-mdy" or "drop".
    missing : str, number, list or None
        Values that mean "missing" in X, in addition to NaN and None, such as "-" or -999.
    memory : int, str or None
        Memory limit of training, such as "8G", not including the data; None: half of the free memory.
    device : {"cpu", "cuda", "cuda:N", "auto"}
        Device that computes; "auto": a GPU if there is one.
    n_jobs : int or None
        Number of threads; None: OMP_NUM_THREADS, or one per processor. Results do not depend on the number.
    random_state : int, RandomState or None
        Seed of all random choices; with an integer, equal calls give equal models; None: a random seed.
    verbose : int or None
        0: silent; 1: a progress line; 2: also the plan; None: a progress line in notebooks after 3 seconds.
    advanced : dict or None
        Further options by name:

        %ADVANCED%

    See docs/python.md for details.

    Attributes
    ----------
    model_ : Model
        Trained model.
    best_params_ : dict
        Hyperparameters of the model, as parameters of the constructor; an estimator with them needs no search.
    feature_importances_ : array
        Drop of R2 or accuracy if a column is permuted, from predictions of held-out rows; computed on first use.
    history_, plan_, n_iter_
        Arrays by epoch (train_loss, validation_loss, seconds, ...); plan of the training with its reasons; number of
        epochs.
    summary_ : dict
        Report of the fit. ``wall_time``: seconds of the whole fit. ``held_out``: metrics of rows that the model was not
        trained on. These rows are ``eval_set``; without it, up to 5,000 training rows, predicted by cross-validation;
        if there are more, the rows that a classifier holds out for its probabilities (None for a regressor).
        ``summary_["search"]`` describes the search: effort, error (held-out squared error over the variance of the
        targets), r2 (1 - error), ridge per unit of sample weight, seconds, numbers of training rows and held-out rows,
        errors by number of centers, and steps; ``skipped`` is the reason for no search, or None.
    n_features_in_, feature_names_in_
        Number of columns of X, and their names if X was a data frame."""

TARGET_TRANSFORM = """target_transform : {"auto", "none", "center", "standardize", "log", "rank"}
        Transform of the targets, which predictions undo; "auto": "standardize"."""

CLASS_WEIGHT = """class_weight : None, "balanced" or dict
        Factors of the sample weights by class; "balanced": all classes have the same total weight."""

# Options of ``advanced`` that the constructors had as parameters before 0.3: default value and documentation.
OWN = {
    "preprocess": ("auto", "transform of the features: auto (searched), none, scale, standardize, minmax, unit, rank"),
    "center_method": ("random", "choice of the centers: random, kmeans, rpcholesky, balanced"),
    "metric": (None, "metric of the kernel on preprocessed samples: weights (d,), or a symmetric matrix (d, d)"),
    "blend": (None, "weights (2, d) of preprocess='blend': of the ranks, then of the standardized values; with tune='off'"),
    "learn_features": (False, "True: search a metric for the given kernel (None: laplace) and preprocessing"),
    "tol": (None, "stop if the loss has not decreased by this share for 5 epochs"),
    "validation_fraction": (0.1, "share of rows for early_stopping; 0: no rows are held out, not for calibration either"),
    "warm_start": (False, "True: the next fit keeps centers and kernel and starts from the weights of the last fit"),
    "precision": ("auto", "type of weights and training: float32, float64; auto: float64 for float64 samples"),
    "arithmetic": ("auto", "accurate or fast arithmetic on GPUs; see Context"),
}
TARGETS_ONLY = {"target_transform": ("auto", "transform of the targets: auto (center), none, center, standardize")}
CLASSES_ONLY = {"calibrate_to": ("population", "data that probabilities refer to: population, or weighted by class_weight")}


def _training_options() -> dict[str, str]:
    """Return the help of the library's training options by their names in Python."""
    found: dict[str, str] = {}
    while option := L.lib.mercer_train_option(len(found)):
        row = option.contents
        # Python uses the aliases (batch_size, ridge), but not "preset", the alias of solver in the program.
        name = row.alias if row.alias and row.name != b"solver" else row.name
        found[name.decode()] = " ".join(row.help.decode().split())
    return found


TRAIN = _training_options()
FURTHER = {name: (None, text) for name, text in TRAIN.items() if name not in ("solver", "ridge")}
ADVANCED: dict[str, tuple[Any, str]] = OWN | FURTHER

Init = TypeVar("Init", bound=Callable[..., None])


def _moved(cls: type, names: list[str]) -> str:
    """Return a message with the new names of parameters of earlier versions; "" if a parameter never existed."""
    known: dict[str, Any] = ADVANCED | cls._advanced_only  # type: ignore[attr-defined]
    if "n_centers" in names:
        return "n_centers is now centers: use centers=NUMBER or centers='all'"
    if any(name not in known for name in names):
        return ""
    entries = ", ".join(f"{name!r}: ..." for name in names)
    kind = "an entry" if len(names) == 1 else "entries"
    return f"{', '.join(names)}: now {kind} of the dict advanced; use {cls.__name__}(advanced={{{entries}}})"


def names_moved_parameters(init: Init) -> Init:
    """Wrap a constructor so that keywords from earlier versions raise a TypeError with their replacement."""
    accepted = set(inspect.signature(init).parameters)

    @functools.wraps(init)
    def checked(self: Any, *positional: Any, **named: Any) -> None:
        if unknown := [name for name in named if name not in accepted]:
            moved = _moved(type(self), unknown)
            raise TypeError(moved or f"{type(self).__name__} has no parameter {unknown[0]!r}")
        init(self, *positional, **named)

    return checked  # type: ignore[return-value]


def document(cls: type) -> type:
    """Insert the documentation of the parameters into the docstring of a class."""
    task = CLASS_WEIGHT if "class_weight" in inspect.signature(cls).parameters else TARGET_TRANSFORM
    options = ADVANCED | cls._advanced_only  # type: ignore[attr-defined]
    lines = [f"- ``{name}``: {text}" for name, (_, text) in options.items()]
    text = PARAMETERS.replace("%TASK%", task).replace("%ADVANCED%", "\n        ".join(lines))
    cls.__doc__ = (cls.__doc__ or "").replace("%PARAMETERS%", text)
    return cls


def _is_integer(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, REAL) and not isinstance(value, (bool, np.bool_))


class Part:
    """Base of the mixins of KernelEstimator, which declares for mypy the attributes that mixins share."""

    advanced: Any
    history_: Any
    plan_: Any
    summary_: Any
    spectrum_: Any
    _trainer: Any
    _seen: Any  # fingerprint of the training data
    _sample: Any
    _held_out: Any
    _rows: Any = None  # number of training rows

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


class ParametersMixin(Part):
    """Access to the options in ``advanced``, and checks of all parameters."""

    _advanced_only: dict[str, tuple[Any, str]] = {}  # options that only this estimator has

    def set_params(self, **params: Any) -> Any:
        """Set parameters, as in scikit-learn; names from earlier versions raise an error with their replacement."""
        names = [name for name in params if name not in self.get_params()]
        if names and (moved := _moved(type(self), [name.split("__")[0] for name in names])):
            raise ValueError(moved)
        return super().set_params(**params)  # type: ignore[misc]

    def _option(self, name: str) -> Any:
        """Return an option by name: a parameter of the constructor, an entry of ``advanced``, or its default."""
        if hasattr(self, name):
            return getattr(self, name)
        default = (ADVANCED | self._advanced_only)[name][0]
        return (self.advanced or {}).get(name, default)

    def _check_advanced(self) -> None:
        given, known = self.advanced, ADVANCED | self._advanced_only
        if given is None:
            return
        if not isinstance(given, dict):
            raise TypeError(f"advanced is {given!r}; it must be a dict of options, or None")
        for name in given:
            if name in known:
                continue
            if hasattr(self, str(name)) and not str(name).endswith("_"):
                raise ValueError(f"advanced: {name!r} is a parameter of {type(self).__name__}; pass it to the constructor")
            near = _nearest(str(name), known)
            raise ValueError(f"advanced has no option {name!r}" + (f"; did you mean {near!r}?" if near else ""))

    def _check_parameters(self) -> None:
        self._check_advanced()
        share, width, tol = self._option("validation_fraction"), self.bandwidth, self._option("tol")
        if not _is_number(share) or not 0 <= share < 1:
            raise ValueError(f"validation_fraction is {share!r}; it must be at least 0 and below 1")
        if self.early_stopping and L.lib.mercer_solver_kind_of(L.text(self.solver, "solver")) == L.SOLVER_DIRECT:
            raise ValueError(f"early_stopping has no effect with solver {self.solver!r}, which has no epochs")
        if self._option("precision") not in PRECISIONS:
            raise ValueError(f"precision is {self._option('precision')!r}; valid: {', '.join(PRECISIONS)}")
        if not isinstance(self._option("target_transform"), str):
            raise ValueError(f"target_transform is {self._option('target_transform')!r}; it must be a str")
        if isinstance(width, REAL) and not width > 0:
            raise ValueError(f"bandwidth is {width!r}; it must be above 0, or None")
        if self.ridge is not None and (not _is_number(self.ridge) or not self.ridge >= 0):
            raise ValueError(f"ridge is {self.ridge!r}; it must be a number >= 0, or None")
        if tol is not None and not (isinstance(tol, REAL) and tol >= 0):
            raise ValueError(f"tol is {tol!r}; it must be a number >= 0, or None")
        if self.verbose is not None and not _is_integer(self.verbose) and not isinstance(self.verbose, bool):
            raise ValueError(f"verbose is {self.verbose!r}; it must be 0, 1, 2 or None")

    def _given_kernel(self) -> str | Kernel | None:
        return None if isinstance(self.kernel, str) and self.kernel == "auto" else self.kernel

    def _given_centers(self) -> Any:
        """Return the array of centers; None if ``centers`` is a number of centers."""
        given = self.centers
        return None if given is None or isinstance(given, (str, numbers.Number)) else given

    def _center_count(self) -> int:
        """Return the number of centers; 0: chosen by the library, -1: all samples."""
        given = self.centers
        if given is None or not isinstance(given, (str, numbers.Number)):
            return 0
        if isinstance(given, str) and given == "all":
            return -1
        if as_integer(given, "centers", ", 'all', an array or None") < 1:
            raise ValueError(f"centers is {given}; it must be at least 1")
        return int(given)  # type: ignore[arg-type]

    def _sizes(self) -> dict[str, Any]:
        """Return effort and budget. With a budget, the default effort sets no limit: the library chooses up to 5."""
        effort, budget = self.effort, self.budget
        if effort is not None and not (_is_integer(effort) and 1 <= effort <= MOST_EFFORT):
            raise ValueError(f"effort is {effort!r}; it must be an integer from 1 to {MOST_EFFORT}, or None")
        if budget is None:
            return {"effort": effort}
        if not _is_number(budget) or not 0 < budget < math.inf:
            raise ValueError(f"budget is {budget!r}; it must be a number of seconds above 0, or None")
        return {"effort": None if effort == DEFAULT_EFFORT else effort, "budget": float(budget)}

    def _search(self) -> dict[str, Any]:
        """Return the options of the hyperparameter search."""
        tune, learn = self.tune, self._option("learn_features")
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

    def _train_options(self) -> dict[str, Any]:
        options = {name: self._option(name) for name in TRAIN}
        if self.ridge is not None and self.ridge == 0:
            options["ridge"] = -1.0  # no ridge; in the library, 0 means a ridge that is chosen from the data
        return options

    def _warn_unused_parameters(self, solver: str, steps: int, validated: bool) -> None:
        """Warn about parameters that had no effect in a fit by ``solver`` with ``steps`` steps."""
        kind = L.lib.mercer_solver_kind_of(solver.encode())
        if self._option("tol") is not None and kind in (L.SOLVER_DIRECT, L.SOLVER_ON_SAMPLES):
            warn([("tol", f"tol has no effect with solver {solver}, which has no epochs")])
        if self.early_stopping and steps <= 1:
            warn([("early_stopping", f"early_stopping had no effect: solver {solver} finished after 1 step")])
        if not (self.early_stopping and not validated) and self._option("validation_fraction") not in (0, 0.1):
            other = "with eval_set" if validated else "without early_stopping"
            warn([("validation_fraction", f"validation_fraction has no effect {other}, unless it is 0")])

    def _warn_unused_by_streams(self, solver: str) -> None:
        """Warn about given parameters that partial_fit does not use. ``solver``: the solver of partial_fit."""
        defaults = {"epochs": None, "tol": None, "early_stopping": False, "intervals": False, "solver": "auto"}
        given = [name for name, default in defaults.items() if self._option(name) != default]
        if solver == self.solver and "solver" in given:
            given.remove("solver")
        uses = {"solver": f", which uses {solver}"}
        warn([(name, f"{name} has no effect in partial_fit" + uses.get(name, "")) for name in given])


def _nearest(name: str, known: Any) -> str | None:
    import difflib

    found = difflib.get_close_matches(name, list(known), 1)
    return found[0] if found else None
