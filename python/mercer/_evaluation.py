# SPDX-License-Identifier: BSD-3-Clause
"""Metrics of predictions, permutation importance and partial dependence."""

from __future__ import annotations

import ctypes as C
import math
from typing import Any

import numpy as np

from . import _arrays as A
from . import _library as L
from ._context import Context, shared_context
from ._model import Dataset, Model, texts_of


def _applicable_metrics(struct: Any) -> dict[str, Any]:
    """Return the metrics of a struct that apply to the task, which are those that are not NaN."""
    values = L.as_dict(struct)
    return {name: value for name, value in values.items() if not (isinstance(value, float) and math.isnan(value))}


def metrics_of(context: Context, handle: Any, each: bool = False) -> dict[str, Any]:
    """Return the metrics of an evaluation as a dict."""
    metrics = L.mercer_metrics()
    context.call("mercer_evaluation_query", handle, metrics)
    result = _applicable_metrics(metrics)
    result["task"] = "classification" if metrics.task == L.TASK_CLASSIFICATION else "regression"
    if each:
        result["each"] = []
        for index in range(metrics.outputs):
            one = L.mercer_output_metrics()
            context.call("mercer_evaluation_output", handle, one, index)
            result["each"].append(_applicable_metrics(one))
    if metrics.task == L.TASK_CLASSIFICATION:
        size = metrics.outputs
        flat = L.lib.mercer_evaluation_confusion(handle)[: size * size]
        result["confusion"] = np.array(flat).reshape(size, size)
    return result


def _results(context: Context, handle: C.c_void_p, each: bool) -> dict[str, Any]:
    """Return the metrics of an evaluation, and release the evaluation."""
    try:
        return metrics_of(context, handle, each)
    finally:
        L.lib.mercer_evaluation_free(handle)


def evaluate_handle(model: Model, dataset: Any) -> dict[str, Any]:
    """Return the metrics of a model on a dataset of the library."""
    handle = C.c_void_p()
    with model.kernel.failure:
        model.context.call("mercer_evaluate", handle, model.handle, dataset, L.mercer_evaluation_options())
    return _results(model.context, handle, False)


def measure(
    F: Any, y: Any, *, classification: bool = False, sample_weight: Any = None, temperature: float = 1.0,
    curvature: float = 0.0, each: bool = False,
) -> dict[str, Any]:
    """Compute metrics of predictions F (m, c) for targets y.

    y has values (m,) or (m, c), or class numbers (m,) if ``classification``. For classes, F contains scores, and the
    probabilities are softmax(F / temperature). To measure known probabilities p, pass F = log p and temperature 1. A
    curvature k replaces F by asinh(k F) / asinh(k), as :attr:`Model.curvature` does. The C header
    ``mercer/evaluation.h`` defines the metrics. ``each`` adds the metrics of each class or output.

    >>> found = measure([[0.0, 1.0], [1.0, 0.0], [0.2, 0.4]], [1, 0, 0], classification=True)
    >>> round(found["accuracy"], 3), found["auc"]
    (0.667, 1.0)
    """
    context, handle = shared_context(), C.c_void_p()
    scores = A.columns(F, "F", np.dtype(np.float64))
    options = L.mercer_evaluation_options(outputs=scores.shape[1], rows=scores.shape[0], temperature=temperature)
    options.task, options.curvature = L.TASK_CLASSIFICATION if classification else L.TASK_REGRESSION, curvature
    weights = A.weights(sample_weight, scores.shape[0])
    targets = None if classification else A.columns(y, "y", np.dtype(np.float64))
    labels = np.ascontiguousarray(y, np.int32) if classification else None
    if len(y) != scores.shape[0]:
        raise ValueError(f"y has {len(y)} rows, but F has {scores.shape[0]}")
    context.call("mercer_evaluation_create", handle, context.handle, options)
    parts = None if targets is None else A.view(targets), None if labels is None else A.integers(labels)
    try:
        context.call("mercer_evaluation_add", handle, A.view(scores), *parts, A.doubles(weights))
    except Exception:
        L.lib.mercer_evaluation_free(handle)
        raise
    return _results(context, handle, each)


def evaluate(model: Model, data: Dataset, *, interval: float | None = None, each: bool = False) -> dict[str, Any]:
    """Compute metrics of a model on a dataset with targets, weighted by its sample weights.

    If the dataset was opened from files with a schema, columns or classes other than the model's, the files are opened
    again with the schema, columns and classes of the model. ``interval`` is the level of the model's intervals, or sets
    of classes, whose coverage is computed. ``each`` adds the metrics of each class or output.
    """
    handle = C.c_void_p()
    options = L.mercer_evaluation_options(interval=interval or 0.0)
    data = data._opened_for(model, targets=True)
    with model.kernel.failure:
        model.context.call("mercer_evaluate", handle, model.handle, data.handle, options)
    return _results(model.context, handle, each)


def permutation_importance(
    model: Model, data: Dataset, *, n_repeats: int = 5, random_state: int = 0
) -> dict[str, Any]:
    """Measure how much the score (R2 or accuracy) drops when one column of the table is permuted among the rows.

    All features of a category are permuted together. The result has ``names`` of the columns, their ``drops`` as means
    over ``n_repeats`` permutations, ``standard_errors`` of these means, and ``score``, the score without permutation.
    """
    handle, info = C.c_void_p(), L.mercer_importance_info()
    options = L.mercer_permutation_options(repeats=n_repeats, seed=random_state)
    data = data._opened_for(model, targets=True)
    with model.kernel.failure:
        model.context.call("mercer_permutation_importance", handle, model.handle, data.handle, options)
    try:
        model.context.call("mercer_importance_query", handle, info)
        count = info.columns
        return {
            "names": texts_of(info.names, count), "drops": np.array(info.drops[:count]),
            "standard_errors": np.array(info.errors[:count]), "score": info.score, "repeats": info.repeats,
        }
    finally:
        L.lib.mercer_importance_free(handle)


def partial_dependence(model: Model, data: Dataset, column: int, points: int = 20) -> tuple[Any, Any]:
    """Compute mean predictions over up to 512 rows after a table column is set to the same value in all rows.

    Returns up to ``points`` values (k,) of the column and the mean predictions (k, c). Values are numbers, days since
    2000-01-01 for dates, or indices of levels for categories. ``column`` is the index among the table columns that the
    model uses, or among its features if it has no schema.
    """
    values, F, count = np.zeros(points), np.zeros((points, model.weights.shape[1])), C.c_int64()
    data = data._opened_for(model, targets=False)
    with model.kernel.failure:
        parts = column, A.doubles(values), A.view(F), count
        model.context.call("mercer_partial_dependence", model.handle, data.handle, *parts)
    return values[: count.value], F[: count.value]
