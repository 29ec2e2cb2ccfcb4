# SPDX-License-Identifier: BSD-3-Clause
"""Predictions of rows that a model was not trained on, and results from them: residuals, calibration, importance.

After a fit, an estimator stores up to SAMPLE_ROWS rows. With eval_set, the rows are held-out rows, which the model
predicts. Otherwise they are training rows, which are predicted by 3-fold cross-validation: copies of the estimator,
with the hyperparameters of the model, are fitted to two thirds of the rows and predict the remaining third. With times,
only the latest third is predicted.
"""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _device as D
from .._arrays import Array
from .._evaluation import partial_dependence, permutation_importance

if TYPE_CHECKING:
    from .base import Samples, Task

SAMPLE_ROWS, SAMPLE_BYTES = 2000, 32 << 20  # maximum number and total size of the rows that an estimator stores
FOLDS = 3
DEPENDENCE_ROWS = 512  # rows whose predictions are averaged in a partial dependence


@dataclass
class HeldOut:
    """Predictions of held-out rows."""

    kind: str  # kind of the rows, for messages: "eval_set" or "cross-validated training"
    source: str  # description of the rows, for titles
    scores: Array  # (m, c) outputs of the model
    targets: Array  # (m,) class numbers, or (m, c) values
    names: list[str]  # columns of the table that the model uses
    drops: Array  # (columns,) decrease of R2 or accuracy if a column is permuted


def take_sample(samples: Samples) -> Samples | None:
    """Return the rows that an estimator stores: rows of eval_set, or evenly spaced training rows; None if none fit."""
    from .base import Samples

    X, y, weights = samples.held_out or (samples.X, samples.y, samples.weights)
    if len(X.shape) != 2 or X.shape[0] < 1 or X.shape[1] < 1:
        return None
    most = min(SAMPLE_ROWS, SAMPLE_BYTES // max(1, X.shape[1] * 8))
    if most < 1:
        return None
    rows = np.unique(np.linspace(0, X.shape[0] - 1, min(most, X.shape[0])).astype(np.int64))
    chosen = D.to_host(X[rows] if D.device_of(X) is None else D.to_host(X)[rows])
    keys = {} if samples.held_out else {name: None if key is None else key[rows] for name, key in samples.keys.items()}
    held = (chosen, y[rows], None) if samples.held_out else None
    return Samples(np.array(chosen), y[rows].copy(), None if weights is None else weights[rows], keys, held)


def evaluate(estimator: Any, task: Task, sample: Samples) -> HeldOut:
    """Predict the stored rows by models that were not trained on them, and measure the importance of columns."""
    if sample.held_out is not None:
        scores, (names, drops, _) = estimator.model_.predict(sample.X), _importance(estimator, task, sample, slice(None))
        return HeldOut("eval_set", f"{len(sample.X):,} rows of eval_set", scores, sample.y, names, drops)
    fold = _folds(sample, task)
    scores, names, rows = np.full((len(fold), task.outputs), np.nan), list[str](), 0
    total: Any = 0.0
    for k in range(FOLDS):
        test = fold == k
        if not test.any() or test.all():
            continue
        model = _fitted_copy(estimator, task, sample, ~test if sample.keys.get("times") is None else fold < k)
        if model is None:
            continue
        scores[test] = model.model_.predict(sample.X[test])
        names, drops, _ = _importance(model, task, sample, test)
        total, rows = total + drops * test.sum(), rows + int(test.sum())
    known = ~np.isnan(scores).any(axis=1)
    if not rows:
        raise ValueError("the training data have too few rows to hold some out; pass eval_set to fit()")
    source = f"{int(known.sum()):,} training rows, predicted by models that were trained without them"
    return HeldOut("cross-validated training", source, scores[known], sample.y[known], names, total / rows)


def _folds(sample: Samples, task: Task) -> Array:
    """Return the fold of each row; rows of a group, or equal rows, share a fold, and classes are spread over folds."""
    times, groups = sample.keys.get("times"), sample.keys.get("groups")
    if times is not None:  # only the last fold is predicted, by a model fitted to the earlier folds
        late = np.quantile(times, 1 - 1 / FOLDS)
        return np.where(times > late, FOLDS - 1, -1)
    key = groups if groups is not None else np.unique(sample.X, axis=0, return_inverse=True)[1].reshape(-1)
    first, number = np.unique(key, return_index=True, return_inverse=True)[1:]
    order = np.random.default_rng(0).permutation(len(first))
    if task.classes is not None:
        order = order[np.argsort(sample.y[first[order]], kind="stable")]
    fold = np.empty(len(first), np.int64)
    fold[order] = np.arange(len(first)) % FOLDS
    return fold[number.reshape(-1)]


def _fitted_copy(estimator: Any, task: Task, sample: Samples, rows: Array) -> Any:
    """Fit a copy with the hyperparameters of the model to some of the stored rows; None if they cannot be fitted."""
    from .base import Samples

    advanced = {**estimator.best_params_["advanced"], "warm_start": False, "validation_fraction": 0, "tol": None}
    advanced |= {"patience": None}
    own: dict[str, Any] = {**estimator.get_params(deep=False), **estimator.best_params_, "advanced": advanced}
    own |= {"verbose": 0, "early_stopping": False, "intervals": False, "budget": None, "random_state": 0}
    count = own["centers"]
    if isinstance(count, (int, np.integer)) and count > rows.sum():
        own["centers"] = None
    copy = type(estimator)(**own)
    copy._table = getattr(estimator, "_table", None)
    if hasattr(estimator, "feature_names_in_"):
        copy.feature_names_in_ = estimator.feature_names_in_
    weights = None if sample.weights is None else sample.weights[rows]
    with warnings.catch_warnings():  # the estimator's own fit has already issued these warnings
        warnings.simplefilter("ignore")
        try:
            copy._fit(task, Samples(sample.X[rows], sample.y[rows], weights, {}), None)
        except (ValueError, FloatingPointError):  # too few rows, or none of a class
            return None
    return copy


def _importance(estimator: Any, task: Task, sample: Samples, rows: Any) -> tuple[list[str], Array, float]:
    """Return the names of the columns, the decreases of the score if a column is permuted, and the score."""
    y = sample.y[rows]
    data = estimator._dataset(estimator.model_.context, task, sample.X[rows], y, None)
    found = permutation_importance(estimator.model_, data, n_repeats=3, random_state=0)
    return found["names"] or [str(j) for j in range(len(found["drops"]))], np.nan_to_num(found["drops"]), found["score"]


def used_columns(estimator: Any) -> list[dict[str, Any]]:
    """Return the columns of the schema that the model uses; without a schema, an empty list."""
    table = getattr(estimator, "_table", None)
    columns = json.loads(table[0])["columns"] if table else []
    return [dict(column, index=j) for j, column in enumerate(columns) if column["kind"] != "drop"]


def by_input_column(estimator: Any, found: HeldOut) -> Array:
    """Return the decreases for all columns of X: 0 for columns that the model does not use."""
    result = np.zeros(estimator.n_features_in_)
    used = used_columns(estimator)
    places = [column["index"] for column in used] if used else range(len(found.drops))
    for place, drop in zip(places, found.drops):
        result[place] = drop
    return result


def dependence(estimator: Any, task: Task, sample: Samples, column: int) -> tuple[Array, Array]:
    """Return k values of a column, and the mean predictions (k, c) if all stored rows have this value."""
    rows = np.unique(np.linspace(0, len(sample.X) - 1, min(DEPENDENCE_ROWS, len(sample.X))).astype(np.int64))
    data = estimator._dataset(estimator.model_.context, task, sample.X[rows], sample.y[rows], None)
    return partial_dependence(estimator.model_, data, column)


def probabilities(estimator: Any, found: HeldOut) -> Array:
    """Return class probabilities (m, c) of held-out scores, calibrated as by the model."""
    info = estimator.model_._info()
    shift = np.array(info.class_shift[: info.outputs]) if info.class_shift else 0.0
    curved = np.arcsinh(info.curvature * found.scores) / np.arcsinh(info.curvature) if info.curvature else found.scores
    scores = (curved + shift) / info.temperature
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    return scores / scores.sum(axis=1, keepdims=True)


def calibration(P: Array, labels: Array, bins: int) -> dict[str, Any]:
    """Return mean probability and share of correct predictions by bins of equal counts, and their mean difference."""
    confidence, hit = P.max(axis=1), P.argmax(axis=1) == labels
    groups = np.array_split(np.argsort(confidence, kind="stable"), max(1, min(bins, len(labels) // 20)))
    points = [(float(confidence[rows].mean()), float(hit[rows].mean())) for rows in groups]
    error = float(np.average([abs(a - b) for a, b in points], weights=[len(rows) for rows in groups]))
    return {"confidence": [a for a, _ in points], "accuracy": [b for _, b in points], "error": error}
