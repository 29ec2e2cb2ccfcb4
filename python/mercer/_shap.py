# SPDX-License-Identifier: BSD-3-Clause
"""Exact Shapley values of models."""

from __future__ import annotations

import ctypes as C
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _arrays as A
from . import _library as L
from . import _table as T
from ._arrays import Array
from ._context import as_integer
from ._model import Model, texts_of

ROWS, VALUES = 64, 1 << 21  # rows and values per call of the library; Control-C is handled between calls


@dataclass
class Explanation:
    """Shapley values of the columns of a table, with the data needed to read and to plot them.

    ``values`` is (m, columns), or (m, columns, outputs) for models of several outputs or classes; ``base_values`` is
    (m,) or (m, outputs). Interactions have two axes of columns. The values of a row and its base value sum to the
    output of the model. The attributes have the same names and shapes as in ``shap.Explanation``, to which
    :meth:`to_shap` converts.
    """

    values: Array
    base_values: Array
    data: Any  #: (m, columns) values of the columns; None if X was an array of encoded features
    feature_names: list[str] | None
    output_names: list[str] | None
    background: str  #: "100 centers of the model", "20 rows"
    terms: int  #: number of products per center whose sum represents the kernel; 1: values are exact up to rounding
    error: float  #: bound of the error of a value, without rounding, in the units of the outputs
    transformed: bool  #: True: values and base values refer to the transformed target (``target_transform``)

    def to_shap(self) -> Any:
        """Return a ``shap.Explanation``, which the functions of ``shap.plots`` accept. Needs the package shap."""
        try:
            import shap
        except ImportError as error:
            raise ImportError("Explanation.to_shap needs the package shap: pip install shap") from error
        return shap.Explanation(
            values=self.values, base_values=self.base_values, data=self.data, feature_names=self.feature_names,
            output_names=self.output_names,
        )


def columns_of(X: Any, names: list[str] | None, count: int) -> Any:
    """Return the values of the model's columns in X: a frame with these names, or an array with as many columns."""
    frame = T.as_frame(X)
    if frame is not None and names and set(names) <= set(frame.columns):
        return np.asarray(frame[names])
    found = X if frame is None else frame
    return np.asarray(found) if np.ndim(found) == 2 and np.shape(found)[1] == count else None


def explain(model: Model, X: Any, background: Any, background_rows: int, interactions: bool) -> Explanation:
    """Compute the Shapley values of the rows of X, or their interactions; see :meth:`Model.shap_values`."""
    rows = as_integer(background_rows, "background_rows")
    if rows < 1:
        raise ValueError(f"background_rows is {rows}; it must be at least 1")
    x = A.points(model._features(X), "X")
    given = None if background is None else A.points(model._features(background), "background")
    if given is not None and given.shape[0] > rows:
        given = np.ascontiguousarray(given[np.arange(rows) * given.shape[0] // rows])
    handle, info = C.c_void_p(), L.mercer_shap_info()
    options = L.mercer_shap_options(rows=rows if given is None else 0)
    model.context.call("mercer_model_shap", handle, model.handle, None if given is None else A.view(given), options)
    try:
        model.context.call("mercer_shap_query", handle, info)
        outputs, columns = info.outputs, info.columns
        shape = (columns, columns) if interactions else (columns,)
        values = np.empty((x.shape[0], outputs * math.prod(shape)))
        most = max(1, min(ROWS, VALUES // values.shape[1]))
        for first in range(0, x.shape[0], most):
            part = slice(first, first + most)
            name = "mercer_shap_interactions" if interactions else "mercer_shap_values"
            model.context.call(name, handle, A.view(values[part]), A.view(x[part]))
        base, names = np.array(info.base[:outputs]), texts_of(info.names, columns)
        source = "centers of the model" if info.from_centers else "rows"
        found = Explanation(
            np.moveaxis(values.reshape(x.shape[0], outputs, *shape), 1, -1), np.tile(base, (x.shape[0], 1)),
            columns_of(X, names, columns), names, model.labels or model.target_names,
            f"{info.background_rows} {source}", info.terms, info.error, bool(info.transformed),
        )
    finally:
        L.lib.mercer_shap_free(handle)
    if outputs == 1:
        found.values, found.base_values = found.values[..., 0], found.base_values[:, 0]
    return found
