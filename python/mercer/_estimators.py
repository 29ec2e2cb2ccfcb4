# SPDX-License-Identifier: BSD-3-Clause
"""Estimators in the manner of scikit-learn."""

from __future__ import annotations

import ctypes as C
from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets

from . import _arrays as A
from ._arrays import Array
from ._base import KernelEstimator, Task
from ._training import Callback

STREAM_SCORES, STREAM_ROWS = 2000, 200  # of a stream: scores kept, and rows scored of each batch


PARAMETERS = """Parameters
    ----------
    kernel : str or Kernel
        "laplace", "gaussian", "matern32", ..., or with parameters, "exppower:gamma=0.7".
    bandwidth : float or None
        In units of preprocessed samples; None: their median distance.
    preprocess : {"auto", "none", "scale", "standardise", "minmax", "unit"}
        What happens to samples before the kernel sees them. "auto": scale (x / 255) for uint8, none for float16,
        standardise for float32 and float64.
    n_centers, centers, center_method
        How many centers ("all"; None: all samples, but at most 10,000); or centers of one's own, (p, d) in the units of
        X; "random", "kmeans", "rpcholesky", or "balanced", as many of each class.
    solver, epochs, batch_size, average
        "auto", "direct", "cg", "ep4", ... (docs/python.md); passes over the samples, or most steps of "cg"; samples in
        a step; whether to return the average of the later iterates.
    ridge : float
        lambda of the objective sum_i w_i |f(x_i) - y_i|^2 + lambda |f|^2.
    target_transform : {"auto", "none", "center", "standardise"}
        What is taken away from targets before they are learned, and put back by predictions: the mean, and they are
        divided by their deviation. "auto": standardise for values, center for classes, which begin at their shares.
    tol, early_stopping, validation_fraction
        Stop when the loss has not fallen by the share ``tol``, or validation has not got better, for 5 epochs; the
        share of samples held back for that. 0: nothing is held back, for calibration neither.
    memory : int, str or None
        Bytes that training may hold beside the data: 8000000000, "8G", "16GiB"; None: half of what is free.
    device, arithmetic, n_jobs
        See :class:`Context`.
    precision : {"auto", "float32", "float64"}
        "auto": double if X is float64.
    random_state : int, RandomState or None
    verbose : int
        1: a line of progress on stderr; 2: the plan as well.
    warm_start : bool
        The next fit keeps centers and kernel and begins with the weights of the last.
    metric : array or None
        Of the kernel, in preprocessed samples: weights (d,), or a symmetric M (d, d), r^2 = (x - z) M (x - z)'.
    learn_features : bool or int
        Learn that metric first, in so many rounds of small fits (True: 4): docs/features.md.

    Attributes
    ----------
    model_ : Model
    history_, plan_, n_iter_
        By epoch: train_loss, validation_loss, seconds, ...; what training did and why; epochs done.
    n_features_in_, feature_names_in_
        Columns of X, and their names if it was a frame."""


def params_doc(cls: type) -> type:
    """Puts the parameters that estimators share into a docstring."""
    cls.__doc__ = (cls.__doc__ or "").replace("%PARAMETERS%", PARAMETERS)
    return cls


def _task_of(y: Array) -> Task:
    return Task(outputs=1 if y.ndim == 1 else y.shape[1], flat=y.ndim == 1)


@params_doc
class KernelRegressor(MultiOutputMixin, RegressorMixin, KernelEstimator):
    """Kernel ridge regression on chosen centers: minimises the sum of squared errors over f(x) = sum_j a_j K(x, z_j).

    Targets may have several columns; they share every kernel value.

    %PARAMETERS%

    >>> X = np.linspace(0, 6, 200).reshape(-1, 1)
    >>> model = KernelRegressor("gaussian", bandwidth=0.5, ridge=1e-3, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> model.predict([[np.pi / 2]]).round(2)
    array([1.])
    """

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, callbacks: Iterable[Callback] | None = None
    ) -> KernelRegressor:
        """Trains on X of shape (n, d) and y of shape (n,) or (n, c).

        A sample of weight 2 counts as two. Each of ``callbacks`` gets a dict of the progress; something true stops
        cleanly. Returns the estimator itself.
        """
        X, y = self._validate(X, y)
        self._fit(_task_of(y), X, y, sample_weight, callbacks)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelRegressor:
        """Takes one or more steps on a batch; the first batch, of some hundred rows or more, decides the centers."""
        X, y = self._validate(X, y, reset=not hasattr(self, "model_"))
        self._partial_fit(_task_of(y), X, y, sample_weight)
        return self

    def predict(self, X: Any) -> Array:
        """Values of shape (m,), or (m, c) if y had columns."""
        F = self._scores(X)
        return F[:, 0] if self._task.flat else F

    def _validate(self, X: Any, y: Any, reset: bool = True) -> tuple[Array, Array]:
        X, y = self._validate_data(X, y, reset=reset, multi_output=True, y_numeric=True)
        return X, np.asarray(y, dtype=np.float64)


@params_doc
class KernelClassifier(ClassifierMixin, KernelEstimator):
    """Kernel least-squares classification on chosen centers: f is fitted to one-hot labels, the largest output wins.

    %PARAMETERS%
    classes_ : array
        The classes, sorted.
    temperature_ : float
        T of :meth:`predict_proba`.

    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> KernelClassifier(ridge=1e-2, random_state=0).fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.9
    True
    """

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, callbacks: Iterable[Callback] | None = None
    ) -> KernelClassifier:
        """Trains on X of shape (n, d) and labels y of shape (n,), numbers or texts.

        A sample of weight 2 counts as two. Each of ``callbacks`` gets a dict of the progress; something true stops
        cleanly. Returns the estimator itself.
        """
        X, y = self._validate_data(X, y)
        check_classification_targets(y)
        weights = self._weights(sample_weight, X)
        if weights is not None and not weights.all():  # a class of which nothing counts is none
            X, y, weights = X[weights > 0], y[weights > 0], weights[weights > 0]
        classes, numbers = np.unique(y, return_inverse=True)
        if self._warm() and not np.array_equal(classes, self.classes_):
            raise ValueError("warm_start: the classes of y are not those of the last fit")
        task = Task(len(classes), classes)
        self._fit(task, X, numbers.reshape(-1).astype(np.int32), weights, callbacks)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> KernelClassifier:
        """Takes one or more steps on a batch; the first batch, of some hundred rows or more, decides the centers.

        The first call needs ``classes``, all that will occur, unless they are all in y.
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
        self._partial_fit(Task(len(known), known), X, numbers, sample_weight)
        return self

    def decision_function(self, X: Any) -> Array:
        """The model's outputs (m, c); for two classes f_1 - f_0, of shape (m,): above 0 is the second class."""
        F = self._scores(X)
        return F[:, 1] - F[:, 0] if F.shape[1] == 2 else F

    def predict(self, X: Any) -> Array:
        """The class with the largest output for each row."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, of shape (m, c): softmax(f(x) / T).

        T, the attribute ``temperature_``, minimises the log loss on samples that the model was not trained on: those
        that ``early_stopping`` holds back; up to 5,000 samples all of them, by 3-fold cross-validation; above, one in
        twenty but at most 2,000, which are held back for that; in :meth:`partial_fit` the latest, scored before they
        were trained on. With ``validation_fraction=0`` T is a constant, 1/4: the order of the probabilities is then
        right, their size is not.
        """
        shifted = self._scores(X).astype(np.float64) / self.temperature_
        powers = np.exp(shifted - shifted.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of the probabilities."""
        return np.log(self.predict_proba(X))

    def _score_stream(self, X: Array, numbers: Array) -> None:
        """The temperature of a stream is that of its latest samples, scored before they were trained on."""
        if not self.validation_fraction or len(self.classes_) < 2:
            return
        rows = slice(0, STREAM_ROWS)
        self._stream.append((self._scores(X[rows], checked=True), numbers[rows]))
        while sum(len(labels) for _, labels in self._stream[1:]) >= STREAM_SCORES:
            self._stream.pop(0)
        scores, labels = (np.concatenate(parts) for parts in zip(*self._stream, strict=True))
        context, found = self.model_.context, C.c_double()
        context.call("mercer_temperature", context.handle, found, A.view(scores), A.integers(labels), None)
        self.temperature_ = found.value
