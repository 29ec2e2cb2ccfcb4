# SPDX-License-Identifier: BSD-3-Clause
"""Plots, report page and HTML representation of estimators."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .._arrays import Array
from .._runtime import run
from .parameters import Part


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'mercer[plot]'") from error
    return plt.subplots()[1]


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
    if search["centers"]:
        curve = [(math.log2(int(p)), error) for p, error in search["centers"].items()]
        series, axis = [_curve("small fits", curve)], "centers, as a power of 2"
        yield {**common, "title": "Held-out error by number of centers", "x": axis, "series": series}


def _curve(name: str, points: Sequence[tuple[float, Any]]) -> dict[str, Any]:
    return {"name": name, "x": [x for x, _ in points], "y": [y for _, y in points]}


def _axes_with_text(ax: Any, text: str) -> Any:
    """Return axes that show a text instead of curves."""
    ax = _axes(ax)
    ax.text(0.5, 0.5, text, ha="center", va="center", transform=ax.transAxes)
    ax.set_axis_off()
    return ax


class ShowMixin(Part):
    """Plot and report methods of estimators with history_, spectrum_, plan_ and summary_."""

    def plot_history(self, ax: Any = None) -> Any:
        """Plot the losses by epoch and return the matplotlib axes.

        Training in a single step, as by the default solver for small data, has no curve; the axes then show the reason.
        """
        self._check_fitted()
        curves = {name: v for name, v in self.history_.items() if name.endswith("_loss") and len(v) > 1}
        if not curves:
            who = f"solver {self.plan_['solver']} took one step" if self.plan_ else "partial_fit records no losses"
            what = f"no history to plot: {who}\nuse report(path), or a solver with epochs such as solver='ep4'"
            return _axes_with_text(ax, what)
        ax = _axes(ax)
        for name, values in curves.items():
            ax.plot(self.history_["epoch"], values, marker=".", label=name.replace("_", " "))
        ax.set(xlabel="epoch", ylabel="mean squared error", yscale="log")
        ax.legend()
        return ax

    def plot_spectrum(self, ax: Any = None) -> Any:
        """Plot the eigenvalues of the kernel matrix of the preconditioner's sample and return the matplotlib axes.

        Not every solver computes eigenvalues; without them the axes show the reason.
        """
        self._check_fitted()
        if len(self.spectrum_) == 0:
            who = f"solver {self.plan_['solver']} computes none" if self.plan_ else "partial_fit records none"
            what = f"no eigenvalues to plot: {who}\nuse a solver that computes them, such as solver='ep4'"
            return _axes_with_text(ax, what)
        ax = _axes(ax)
        ax.loglog(np.arange(1, len(self.spectrum_) + 1), self.spectrum_, marker=".")
        ax.set(xlabel="index", ylabel="eigenvalue")
        return ax

    def report(self, path: str | os.PathLike[str] = "report.html") -> str:
        """Write an HTML page about the training, as ``mercer report`` does, and return its path.

        The page is a single file without scripts.
        """
        self._check_fitted()
        with tempfile.TemporaryDirectory(prefix="mercer-") as folder:
            log = os.path.join(folder, "run.jsonl")
            with open(log, "w", encoding="utf-8") as file:
                file.writelines(json.dumps(event) + "\n" for event in self._events())
            run(["report", log, "-o", os.fspath(path), "--quiet"])
        return os.fspath(path)

    def _check_fitted(self) -> None:
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self, "model_")

    def _events(self) -> Iterator[dict[str, Any]]:
        from .. import __version__

        Z, W = self.model_.centers, self.model_.weights
        data = {"features": Z.shape[1], "outputs": W.shape[1], "dtype": str(Z.dtype)}
        start = {"version": __version__, "command": type(self).__name__, "kernel": str(self.model_.kernel)}
        yield {"event": "start", **start, "data": data, "centers": {"count": Z.shape[0]}}
        if self.plan_:
            plan = _json_value(self.plan_)
            yield {"event": "plan", **plan, "lambda": plan["ridge"], "batch": plan["batch_size"]}
        for i in range(len(self.history_.get("epoch", []))):
            yield {"event": "epoch", **{name: _json_value(v[i]) for name, v in self.history_.items()}}
        if len(self.spectrum_):
            values = [float(v) for v in self.spectrum_]
            yield {"event": "spectrum", "values": values, "eigenpairs": len(values) - 1, "tail": values[-1]}
        if self.summary_:
            summary = _json_value(self.summary_)
            if search := summary.pop("search", None):
                yield from _search_charts(search)
            phases = {name[:-8]: summary[name] for name in summary if name.endswith("_seconds")}
            yield {"event": "summary", **summary, "phases": phases}
