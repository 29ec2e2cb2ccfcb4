# SPDX-License-Identifier: BSD-3-Clause
"""KernelClassifier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from .. import _device as D
from .._arrays import Array
from .._kernels import Kernel
from . import refusals
from .base import KernelEstimator, Samples, Task
from .parameters import CLASSES_ONLY, DEFAULT_EFFORT, TARGETS_ONLY, document, names_moved_parameters

if TYPE_CHECKING:
    from typing_extensions import Self

STREAM_SCORES, STREAM_ROWS = 2000, 200  # partial_fit: number of scores saved for calibration; rows scored per batch


@document
class KernelClassifier(ClassifierMixin, KernelEstimator):
    """Kernel least-squares classification on selected centers.

    The model f(x) is fitted to one-hot labels and predicts the class with the largest output.

    %PARAMETERS%
    classes_ : array
        Sorted classes.
    temperature_ : float
        Temperature T of :meth:`predict_proba`.
    curvature_ : float
        Curvature k of :meth:`predict_proba`; 0: none.

    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> KernelClassifier(ridge=1e-2, random_state=0).fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.9
    True
    """

    _advanced_only = TARGETS_ONLY | CLASSES_ONLY

    @names_moved_parameters
    def __init__(
        self, kernel: str | Kernel | None = None, *, effort: int | None = DEFAULT_EFFORT, budget: float | None = None,
        tune: str | bool = "auto", centers: Any = None, ridge: float | None = None, bandwidth: float | None = None,
        class_weight: Any = None, solver: str = "auto", early_stopping: bool = False, intervals: bool = False,
        columns: dict[Any, str] | None = None, missing: Any = None, memory: int | str | None = None, device: str = "cpu",
        n_jobs: int | None = None, random_state: Any = None, verbose: int | None = None,
        advanced: dict[str, Any] | None = None,
    ) -> None:
        self.kernel, self.effort, self.budget, self.tune = kernel, effort, budget, tune
        self.centers, self.ridge, self.bandwidth = centers, ridge, bandwidth
        self.class_weight, self.solver = class_weight, solver
        self.early_stopping, self.intervals = early_stopping, intervals
        self.columns, self.missing = columns, missing
        self.memory, self.device, self.n_jobs, self.random_state = memory, device, n_jobs, random_state
        self.verbose, self.advanced = verbose, advanced

    def _samples(self, X: Any, y: Any, sample_weight: Any, *, keys: dict[str, Any] | None = None) -> Any:
        X, y = self._validate_data(X, y, keys=keys)
        check_classification_targets(y)
        weights = self._weights(sample_weight, X)
        if weights is not None and not weights.all():  # drop samples of weight 0: their classes do not count
            X, y, weights = X[weights > 0], y[weights > 0], weights[weights > 0]
        classes, numbers = np.unique(y, return_inverse=True)
        if self._continues_last_fit() and not np.array_equal(classes, self.classes_):
            raise ValueError("warm_start: the classes of y differ from those of the last fit")
        refusals.check_class_count(classes, len(numbers))
        task = Task(len(classes), classes, class_weight=self._class_weight(classes))
        return task, X, numbers.reshape(-1).astype(np.int32), weights

    def _targets(self, y: Any, task: Task) -> Array:
        classes = np.asarray(task.classes)
        unknown = np.setdiff1d(y, classes)
        if len(unknown):
            raise ValueError(f"y has the class {unknown.tolist()[0]!r}, which the training data do not have")
        return np.asarray(np.searchsorted(classes, y), np.int32)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Train on a batch, with one step or more. The first batch provides the centers and should have hundreds of rows.

        The first call requires ``classes``, the classes of all batches, unless y of the first batch contains all of
        them.
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
        return self._partial_fit(Task(len(known), known), Samples(X, numbers, self._weights(sample_weight, X), {}))

    def _class_weight(self, classes: Array) -> dict[int, float] | str | None:
        """Return the class weights by class number, or the keyword "balanced"."""
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
        """Predict class probabilities of shape (m, c): softmax(g(f(x)) / T), g(f) = asinh(k f) / asinh(k).

        T is ``temperature_`` and k is ``curvature_`` (0: g(f) = f). They minimize the log loss on samples that the
        model was not trained on. With ``early_stopping`` or ``eval_set``, these are the validation samples; otherwise
        all samples by 3-fold cross-validation (up to 5,000 samples), or held-out samples (5 %, at most 2,000, for more
        samples or with ``times``); in :meth:`partial_fit` the latest samples, scored before training on them. With
        ``validation_fraction=0``, T is 1/4, and the probabilities are not calibrated: only their order is meaningful.
        """
        return self._call_model(X, "probabilities")

    def predict_log_proba(self, X: Any) -> Array:
        """Predict the logarithms of the class probabilities."""
        P = self.predict_proba(X)
        return P.log() if hasattr(P, "log") else np.log(P)

    def predict_set(self, X: Any, level: float = 0.9) -> Array:
        """Predict sets of classes, as booleans (m, c), that contain the true class with probability ``level``.

        Requires rows that :meth:`fit` held out, which is the case with ``intervals=True``, ``early_stopping``,
        ``eval_set`` or more than 5,000 samples.
        """
        return self._call_model(X, "class_sets", level)

    def _score_stream(self, X: Array, numbers: Array) -> None:
        """Calibrate on the latest samples of partial_fit, which were scored before training on them."""
        if not self._option("validation_fraction") or len(self.classes_) < 2:
            return
        rows = slice(0, STREAM_ROWS)
        self._stream.append((self._scores(X[rows], checked=True), numbers[rows]))
        while sum(len(labels) for _, labels in self._stream[1:]) >= STREAM_SCORES:
            self._stream.pop(0)
        scores, labels = (np.concatenate(parts) for parts in zip(*self._stream, strict=True))
        self.model_._calibrate(scores, labels)
        self.temperature_, self.curvature_ = self.model_.temperature, self.model_.curvature
