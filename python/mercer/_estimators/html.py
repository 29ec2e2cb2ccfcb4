# SPDX-License-Identifier: BSD-3-Clause
"""HTML representation of fitted estimators in notebooks: kernel, size, held-out score and columns."""

from __future__ import annotations

import html
from typing import Any

from .held_out import used_columns

SHOWN_COLUMNS = 12  # names of columns that are shown
STYLE = (
    "border-collapse:collapse;font-family:system-ui,sans-serif;font-size:13px;border:1px solid #8888;margin:4px 0",
    "text-align:left;font-weight:normal;opacity:.7;padding:2px 12px 2px 8px;vertical-align:top",
    "text-align:left;padding:2px 8px",
)


def card(estimator: Any) -> str:
    """Return an HTML table that describes a fitted estimator; no results are computed for it."""
    name = type(estimator).__name__
    rows = "".join(
        f'<tr><th style="{STYLE[1]}">{html.escape(label)}</th><td style="{STYLE[2]}">{html.escape(text)}</td></tr>'
        for label, text in facts(estimator)
    )
    return f'<table class="mercer" style="{STYLE[0]}"><caption style="text-align:left"><b>{name}</b></caption>{rows}</table>'


def facts(estimator: Any) -> list[tuple[str, str]]:
    """Return labels and texts that describe a fitted estimator."""
    model, summary, plan = estimator.model_, estimator.summary_, estimator.plan_
    found = [("kernel", _kernel(model))]
    size = f"{len(model.centers):,} centers, {model._info().features:,} features"
    if model.members > 1:
        size += f", mean of {model.members} models"
    found.append(("size", size + (f"; {estimator._rows:,} training rows" if estimator._rows else "")))
    if plan:
        found.append(("training", f"solver {plan['solver']}, ridge {plan['ridge']:.3g}" + _time(summary)))
    found.append(("held-out score", _score(estimator, summary)))
    if estimator._task.classes is not None:
        found.append(("classes", _names([str(name) for name in estimator.classes_])))
    found.append(("columns", _columns(estimator)))
    return found


def _kernel(model: Any) -> str:
    text = str(model.kernel)
    name, _, parameters = text.partition(":")
    values = [part.partition("=") for part in parameters.split(",") if part]
    short = ", ".join(f"{key} {float(value):.4g}" for key, _, value in values)
    learned = "" if model.metric is None else ", learned metric"
    return name + (f" ({short})" if short else "") + f", columns: {model.preprocess or 'none'}{learned}"


def _time(summary: dict[str, Any]) -> str:
    return f"; fitted in {summary['wall_time']:.1f} s" if "wall_time" in summary else ""


def _score(estimator: Any, summary: dict[str, Any]) -> str:
    """Return the score on held-out rows if it has already been computed, otherwise how to compute it."""
    classes = estimator._task.classes is not None
    if estimator._held_out is not None:
        score, source = estimator.held_out_score()
        return f"{'accuracy' if classes else 'R2'} {score:.4f} on {source}"
    found = summary.get("held_out")
    if found and found.get("rows"):
        score = found.get("accuracy" if classes else "r2")
        if score is not None:
            return f"{'accuracy' if classes else 'R2'} {score:.4f} on {int(found['rows']):,} held-out rows"
    search = summary.get("search", {})
    if search.get("steps"):
        what = "R2 of the class outputs" if classes else "R2"
        return f"{what} {search['r2']:.4f} on {search['held']:,} held-out rows of the search"
    return "not measured; feature_importances_ or report() computes it" if estimator._sample is not None else "not measured"


def _columns(estimator: Any) -> str:
    used = used_columns(estimator)
    named = getattr(estimator, "feature_names_in_", None)
    if not used:
        return f"{estimator.n_features_in_:,}" if named is None else f"{len(named):,}: {_names(list(named))}"
    names = [f"{one.get('name') or one['index']} ({one['kind']})" for one in used]
    dropped = estimator.n_features_in_ - len(used)
    return f"{len(used):,}: {_names(names)}" + (f"; {dropped:,} not used" if dropped else "")


def _names(names: list[str]) -> str:
    more = f", ... ({len(names) - SHOWN_COLUMNS:,} more)" if len(names) > SHOWN_COLUMNS else ""
    return ", ".join(map(str, names[:SHOWN_COLUMNS])) + more
