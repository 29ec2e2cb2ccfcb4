# SPDX-License-Identifier: BSD-3-Clause
"""Shapley values of estimators."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._shap import Explanation, columns_of
from .parameters import Part


class ShapMixin(Part):
    """Shapley values of estimators."""

    def shap_values(self, X: Any, background: Any = None, *, background_rows: int = 100) -> Explanation:
        """Compute exact Shapley values: the contribution of each column of X to each prediction.

        The base value is the mean output over the background rows. The values of a row are the contributions of the
        columns to the difference between the output of the row and the base value. For classes, the outputs are the
        scores of ``decision_function``, before the softmax. All features of a category count as one column, and so do a
        number and the flag of its missing values.

        ``background`` has the columns of X; if it has more than ``background_rows`` rows, evenly spaced rows are used.
        By default, the background rows are centers of the model, which for most center methods are training rows.
        Kernels of the inner product and metrics that combine columns raise an error. docs/explain.md has the
        definition.

        >>> import mercer
        >>> X = np.random.default_rng(0).normal(size=(200, 3))
        >>> model = mercer.KernelRegressor("laplace-l1", tune="off").fit(X, X[:, 0] + X[:, 1] ** 2)
        >>> found = model.shap_values(X[:5])
        >>> np.allclose(found.base_values + found.values.sum(1), model.predict(X[:5]), atol=1e-3)
        True
        """
        return self._explanation("shap_values", X, background, background_rows)

    def shap_interaction_values(self, X: Any, background: Any = None, *, background_rows: int = 100) -> Explanation:
        """Split the values of :meth:`shap_values` into a part of each column and interactions of pairs of columns.

        ``values`` is (m, columns, columns), with a further axis for several outputs. An off-diagonal entry is half the
        interaction of two columns; each row of the matrix sums to the value of its column.
        """
        return self._explanation("shap_interaction_values", X, background, background_rows)

    def _explanation(self, method: str, X: Any, background: Any, background_rows: int) -> Explanation:
        if background is not None and hasattr(self, "model_"):
            background = self._validate_data(background, reset=False)
        found: Explanation = self._call_model(X, method, background, background_rows)
        found.data = columns_of(X, found.feature_names, found.values.shape[1])
        return found
