# SPDX-License-Identifier: BSD-3-Clause
"""KernelRegressor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils import validation as V

from .. import _device as D
from .. import _table as T
from .._arrays import Array
from .._kernels import Kernel
from .base import KernelEstimator, Samples, Task
from .parameters import DEFAULT_EFFORT, document, names_moved_parameters

if TYPE_CHECKING:
    from typing_extensions import Self


@document
class KernelRegressor(MultiOutputMixin, RegressorMixin, KernelEstimator):
    """Kernel ridge regression on selected centers.

    The model f(x) = sum_j alpha_j K(x, z_j) minimizes the sum of squared errors plus the ridge term. Targets may have
    several columns, for which the kernel values are computed only once.

    %PARAMETERS%

    >>> X = np.linspace(0, 6, 200).reshape(-1, 1)
    >>> model = KernelRegressor("gaussian", bandwidth=0.5, ridge=1e-3, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> model.predict([[np.pi / 2]]).round(2)
    array([1.])
    """

    _targets_allowed = {"multi_output": True, "y_numeric": True}

    @names_moved_parameters
    def __init__(
        self, kernel: str | Kernel | None = None, *, effort: int | None = DEFAULT_EFFORT, budget: float | None = None,
        tune: str | bool = "auto", centers: Any = None, ridge: float | None = None, bandwidth: float | None = None,
        target_transform: str = "auto", solver: str = "auto", early_stopping: bool = False, intervals: bool = False,
        columns: dict[Any, str] | None = None, missing: Any = None, memory: int | str | None = None, device: str = "cpu",
        n_jobs: int | None = None, random_state: Any = None, verbose: int | None = None,
        advanced: dict[str, Any] | None = None,
    ) -> None:
        self.kernel, self.effort, self.budget, self.tune = kernel, effort, budget, tune
        self.centers, self.ridge, self.bandwidth = centers, ridge, bandwidth
        self.target_transform, self.solver = target_transform, solver
        self.early_stopping, self.intervals = early_stopping, intervals
        self.columns, self.missing = columns, missing
        self.memory, self.device, self.n_jobs, self.random_state = memory, device, n_jobs, random_state
        self.verbose, self.advanced = verbose, advanced

    def _samples(
        self, X: Any, y: Any, sample_weight: Any, reset: bool = True, *, keys: dict[str, Any] | None = None
    ) -> Any:
        X, y = self._validate_data(X, y, reset=reset, keys=keys, **self._targets_allowed)
        task = Task(outputs=1 if y.ndim == 1 else y.shape[1], flat=y.ndim == 1)
        return task, X, np.asarray(y, dtype=np.float64), self._weights(sample_weight, X)

    def _targets(self, y: Any, task: Task) -> Array:
        values = np.asarray(y, dtype=np.float64)
        if (1 if values.ndim == 1 else values.shape[1]) != task.outputs:
            raise ValueError(f"y has the shape {values.shape}, but the training targets have {task.outputs} columns")
        return values

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on a batch, with one step or more. The first batch provides the centers and should have hundreds of rows."""
        task, X, y, weights = self._samples(X, y, sample_weight, reset=not hasattr(self, "model_"))
        return self._partial_fit(task, Samples(X, y, weights, {}))

    def predict(self, X: Any) -> Array:
        """Predict values of shape (m,), or (m, c) if y was 2-d."""
        F = self._scores(X)
        return F[:, 0] if self._task.flat else F

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R2 of the predictions; targets of type timedelta are converted to days, as in :meth:`fit`."""
        return float(super().score(X, T.number_targets(y), sample_weight))

    def predict_interval(self, X: Any, level: float = 0.9) -> tuple[Array, Array]:
        """Predict intervals that contain a share ``level`` of new targets.

        Returns the lower and upper ends, each of the shape of :meth:`predict`. Requires rows that :meth:`fit` held out:
        ``intervals=True``, ``early_stopping`` or ``eval_set``. All intervals of a level have the same width.
        """
        V.check_is_fitted(self, "model_")
        radius = D.like(X, self.model_.interval(level))
        F = self._scores(X)
        low, high = F - radius, F + radius
        return (low[:, 0], high[:, 0]) if self._task.flat else (low, high)
