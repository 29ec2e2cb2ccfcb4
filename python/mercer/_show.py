# SPDX-License-Identifier: BSD-3-Clause
"""Progress line, plots and report page of estimators."""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import Any, TextIO

import numpy as np

from ._arrays import Array
from ._runtime import run


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


class ShowMixin:
    """Plot and report methods of estimators with history_, spectrum_, plan_ and summary_."""

    history_: dict[str, Array]
    spectrum_: Array
    plan_: dict[str, Any]
    summary_: dict[str, Any]
    model_: Any

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
        from . import __version__

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


WIDTH, REDRAW_SECONDS = 20, 0.1  # characters of the bar; shortest time between two redraws


def _passes_done(p: dict[str, Any]) -> float:
    """Return the number of passes done, including the fraction of the current pass."""
    within = p["pass_samples"] / p["pass_total"] if p["pass_total"] > 0 else 0.0
    return float(p["epoch"] + min(1.0, within))


class Bar:
    """Progress line on stderr: redrawn on a terminal or in a notebook, elsewhere one line per epoch."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stderr
        self.redraws = "ipykernel" in sys.modules or bool(getattr(self.stream, "isatty", lambda: False)())
        self.last, self.length, self.validation = 0.0, 0, math.nan
        self.start = 0.0, 0.0, 0.0  # seconds, samples and epochs at the end of set-up

    def __call__(self, p: dict[str, Any]) -> None:
        """Show progress.

        Speed and remaining time count from the end of set-up, which excludes set-up and the epochs before a resume.
        """
        if "error" in p:
            if p["phase"] != "calibration":  # calibration follows training, whose last line must stay visible
                self._write(self._phase(p), False)
            return
        if p["phase"] is not None:
            self.start = p["seconds"], p["samples"], _passes_done(p)
            share = f"{p['phase_share'] * 100:3.0f}% " if p["phase_share"] >= 0 else ""
            self._write(f"setting up: {share}{p['phase']}, {p['seconds']:.1f} s", False)
            return
        ended, now = p["pass_samples"] == 0, time.monotonic()
        if not math.isnan(p["validation_loss"]):
            accuracy = p["validation_accuracy"]
            self.validation = p["validation_loss"] if math.isnan(accuracy) else accuracy
        if ended or now - self.last >= REDRAW_SECONDS:
            self.last = now
            self._write(self._line(p), ended)

    def _phase(self, p: dict[str, Any]) -> str:
        error = f", held-out error {p['error']:.4f}" if p["phase"] == "search" and p["error"] > 0 else ""
        return f"{p['phase']}: {max(0.0, p['phase_share']) * 100:3.0f}%{error}, {p['seconds']:.1f} s"

    def _line(self, p: dict[str, Any]) -> str:
        epochs, passes, (began, before, first) = max(1, p["epochs"]), _passes_done(p), self.start
        seconds, samples, done = p["seconds"] - began, p["samples"] - before, min(1.0, passes / epochs)
        left = seconds / (passes - first) * (epochs - passes) if passes > first else math.nan
        loss = "-" if math.isnan(p["train_loss"]) else f"{p['train_loss']:.4g}"
        parts = [f"epoch {p['epoch']}/{epochs}", f"loss {loss}"]
        if not math.isnan(p["train_accuracy"]):
            parts.append(f"accuracy {p['train_accuracy']:.4f}")
        if not math.isnan(self.validation):
            parts.append(f"validation {self.validation:.4f}")
        if seconds > 0 and samples > 0:
            parts.append(f"{samples / seconds:,.0f} rows/s")
        parts.append(f"{p['seconds']:.1f} s" + (f", {left:.0f} s left" if done < 1 and left >= 1 else ""))
        return f"{done * 100:3.0f}% |{('#' * round(done * WIDTH)).ljust(WIDTH)}| " + ", ".join(parts)

    def _write(self, line: str, ended: bool) -> None:
        if self.redraws or ended:
            self.stream.write("\r" + line.ljust(self.length) if self.redraws else line + "\n")
            self.stream.flush()
            self.length = len(line)

    def close(self) -> None:
        """End the line, so that later output begins on a new line."""
        if self.length and self.redraws:
            self.stream.write("\n")
            self.stream.flush()
