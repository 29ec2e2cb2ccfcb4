# SPDX-License-Identifier: BSD-3-Clause
"""Events of the report page of an estimator, in the format of docs/run-log.md."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .._runtime import run
from . import held_out as H

CALIBRATION_BINS, CURVE_POINTS, SHOWN_COLUMNS, SHOWN_CLASSES = 10, 200, 6, 4
SHOWN_PAIRS, SHOWN_OUTPUTS, CURVE_CLASSES = 2000, 4, 6


def _json_value(value: Any) -> Any:
    """Return a value that JSON can represent: NumPy arrays become lists, NaN and infinity become None.

    >>> _json_value({"ridges": np.array([0.5, np.nan]), "centers": {np.int64(3): (1.0,)}})
    {'ridges': [0.5, None], 'centers': {'3': [1.0]}}
    """
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(name): _json_value(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json_value(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


STAGES = "norm 1", "norm 2", "norm 1, larger samples", "norm 2, larger samples"  # stages 1 to 4 of the search


def _search_charts(search: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield charts of the held-out error by search step and by number of centers, as in ``mercer train --log``."""
    common = {"event": "chart", "section": "Search", "y": "squared error over the variance", "log_y": True}
    steps = list(enumerate(search["steps"], start=1))
    curves = [[(i, step["error"]) for i, step in steps if step["stage"] == k + 1] for k in range(len(STAGES))]
    series = [_curve(name, curve) for name, curve in zip(STAGES, curves) if curve]
    if series:
        yield {**common, "title": "Held-out error of the search", "x": "step", "series": series}
    if len(search["centers"]) > 1:
        curve = [(math.log2(int(p)), error) for p, error in search["centers"].items()]
        series, axis = [_curve("small fits", curve)], "centers, as a power of 2"
        yield {**common, "title": "Held-out error by number of centers", "x": axis, "series": series}


def _curve(name: str, points: Sequence[tuple[float, Any]]) -> dict[str, Any]:
    return {"name": name, "x": [x for x, _ in points], "y": [y for _, y in points]}


def write(estimator: Any, path: str) -> None:
    """Write the page of an estimator."""
    with tempfile.TemporaryDirectory(prefix="mercer-") as folder:
        log = os.path.join(folder, "run.jsonl")
        with open(log, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(_json_value(event)) + "\n" for event in events(estimator))
        run(["report", log, "-o", path, "--quiet"])


def events(estimator: Any) -> Iterator[dict[str, Any]]:
    """Yield the events of the page: start, plan, search, training, and results on held-out rows."""
    from .. import __version__

    model, plan, history = estimator.model_, estimator.plan_, estimator.history_
    Z, W = model.centers, model.weights
    data = {"features": Z.shape[1], "outputs": W.shape[1], "dtype": str(Z.dtype)}
    start = {"version": __version__, "command": type(estimator).__name__, "kernel": str(model.kernel)}
    yield {"event": "start", **start, "data": data, "centers": {"count": Z.shape[0]}}
    if plan:
        yield {"event": "plan", **plan, "lambda": plan["ridge"], "batch": plan["batch_size"]}
    for i in range(len(history.get("epoch", []))):
        yield {"event": "epoch", **{name: v[i] for name, v in history.items()}}
    if len(estimator.spectrum_):
        values = [float(v) for v in estimator.spectrum_]
        yield {"event": "spectrum", "values": values, "eigenpairs": len(values) - 1, "tail": values[-1]}
    summary = dict(estimator.summary_)
    if search := summary.pop("search", None):
        yield from _search_charts(search)
    scores: dict[str, Any] = {}
    try:
        found = estimator._held_out_results()
    except (AttributeError, ValueError) as error:
        yield {"event": "table", "title": "Held-out rows", "text": str(error), "columns": [], "rows": []}
    else:
        for event in _quality(estimator, found):
            scores |= event.pop("scores", {})
            yield event
        yield from _explanation(estimator, found)
    if summary:
        phases = {name[:-8]: summary[name] for name in summary if name.endswith("_seconds")}
        yield {"event": "summary", **summary, **scores, "phases": phases}


# ---- Quality of held-out predictions ----


def _quality(estimator: Any, found: H.HeldOut) -> Iterator[dict[str, Any]]:
    if estimator._task.classes is None:
        yield _predictions(found)
        return
    names = [str(name) for name in estimator._task.classes]
    P = H.probabilities(estimator, found)
    hit = P.argmax(axis=1) == found.targets
    calibration = H.calibration(P, found.targets, CALIBRATION_BINS)
    curves = [_roc(names[k], P[:, k], found.targets == k) for k in _curve_classes(len(names))]
    yield {
        "event": "curves", "data": found.kind, "scores": {"accuracy": float(hit.mean())},
        "calibration": calibration, "roc": [curve for curve in curves if curve],
    }
    matrix = np.zeros((len(names), len(names)), np.int64)
    np.add.at(matrix, (found.targets, P.argmax(axis=1)), 1)
    yield {"event": "confusion", "data": found.kind, "labels": names, "matrix": matrix}


def _predictions(found: H.HeldOut) -> dict[str, Any]:
    y = found.targets.reshape(len(found.targets), -1)
    outputs = []
    for j in range(min(y.shape[1], SHOWN_OUTPUTS)):
        error, spread = y[:, j] - found.scores[:, j], float(((y[:, j] - y[:, j].mean()) ** 2).mean())
        mse = float((error**2).mean())
        score = {"r2": 1 - mse / spread if spread > 0 else math.nan, "rmse": math.sqrt(mse), "mae": float(abs(error).mean())}
        rows = slice(0, SHOWN_PAIRS)
        outputs.append({"name": f"output {j}", **score, "true": y[rows, j], "predicted": found.scores[rows, j]})
    if len(outputs) == 1:
        outputs[0].pop("name")
    scores = {name: outputs[0][name] for name in ("r2", "rmse", "mae")} if len(outputs) == 1 else {}
    return {"event": "predictions", "data": found.kind, "rows": len(y), "outputs": outputs, "scores": scores}


def _curve_classes(count: int) -> list[int]:
    return [1] if count == 2 else list(range(min(count, CURVE_CLASSES)))


def _roc(name: str, probability: Any, is_class: Any) -> dict[str, Any] | None:
    from sklearn.metrics import roc_auc_score, roc_curve

    if is_class.all() or not is_class.any():
        return None
    false, true, _ = roc_curve(is_class, probability)
    keep = np.unique(np.linspace(0, len(false) - 1, min(len(false), CURVE_POINTS)).astype(int))
    auc = float(roc_auc_score(is_class, probability))
    return {"class": name, "auc": auc, "false_positive": false[keep], "true_positive": true[keep]}


# ---- Importance and partial dependence ----


def _explanation(estimator: Any, found: H.HeldOut) -> Iterator[dict[str, Any]]:
    score = "R2" if estimator._task.classes is None else "accuracy"
    order = np.argsort(-found.drops, kind="stable")
    yield {
        "event": "table", "title": "Importance of columns", "columns": ["column", f"decrease of {score}"],
        "text": f"Decrease of {score} when a column is permuted among the rows: {found.source}.",
        "rows": [[found.names[j], float(found.drops[j])] for j in order],
    }
    if estimator._sample is None:
        return
    shown = [j for j in order[:SHOWN_COLUMNS] if found.drops[j] > 0]
    used = H.used_columns(estimator)
    levels = {j: used[j].get("levels") if used else None for j in shown}
    for j in sorted(shown, key=lambda j: levels[j] is not None):  # charts before tables
        values, F = H.dependence(estimator, estimator._task, estimator._sample, int(j))
        if len(values) > 1:
            yield _dependence(estimator, found.names[j], values, F, levels[j])


def _dependence(estimator: Any, name: str, values: Any, F: Any, levels: list[str] | None) -> dict[str, Any]:
    classes = estimator._task.classes
    first = 1 if classes is not None and F.shape[1] == 2 else 0
    shown = range(first, min(F.shape[1], first + SHOWN_CLASSES))
    heads = ["mean prediction" if classes is None else str(classes[k]) for k in shown]
    if levels is not None:
        rows = [[*levels[i : i + 1], *(float(F[i, k]) for k in shown)] for i in range(min(len(values), len(levels)))]
        return {"event": "table", "title": f"Partial dependence on {name}", "columns": [name, *heads], "rows": rows}
    series = [{"name": head, "x": values, "y": F[:, k]} for head, k in zip(heads, shown)]
    text = "The mean prediction when one column has the same value in all rows and the other columns are unchanged."
    return {
        "event": "chart", "title": name, "section": "Partial dependence", "text": text, "x": name,
        "y": "mean prediction", "series": series,
    }
