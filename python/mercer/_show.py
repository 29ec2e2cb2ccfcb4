# SPDX-License-Identifier: BSD-3-Clause
"""What a fitted estimator can show: curves, the spectrum, and the report page."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np

from ._arrays import Array
from ._program import run


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'mercer[plot]'") from error
    return plt.subplots()[1]


def _plain(value: Any) -> Any:
    """JSON knows no NaN and no NumPy numbers."""
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


class ShowMixin:
    """Methods of estimators with history_, spectrum_, plan_ and summary_."""

    history_: dict[str, Array]
    spectrum_: Array
    plan_: dict[str, Any]
    summary_: dict[str, Any]
    model_: Any

    def plot_history(self, ax: Any = None) -> Any:
        """Losses by epoch; returns matplotlib's axes."""
        self._need()
        curves = {name: v for name, v in self.history_.items() if name.endswith("_loss") and len(v) > 1}
        if not curves:
            raise ValueError(f"a history needs two steps or epochs; solver {self.plan_.get('solver')} had fewer")
        ax = _axes(ax)
        for name, values in curves.items():
            ax.plot(self.history_["epoch"], values, marker=".", label=name.replace("_", " "))
        ax.set(xlabel="epoch", ylabel="mean squared error", yscale="log")
        ax.legend()
        return ax

    def plot_spectrum(self, ax: Any = None) -> Any:
        """Eigenvalues of the kernel matrix of the preconditioner's sample; returns matplotlib's axes."""
        self._need()
        if len(self.spectrum_) == 0:
            raise ValueError(f"solver {self.plan_.get('solver')} has no spectrum; ep4 has one")
        ax = _axes(ax)
        ax.loglog(np.arange(1, len(self.spectrum_) + 1), self.spectrum_, marker=".")
        ax.set(xlabel="index", ylabel="eigenvalue")
        return ax

    def report(self, path: str | os.PathLike[str] = "report.html") -> str:
        """Writes a page about the training, as ``mercer report`` does: one file, without scripts. Returns its path."""
        self._need()
        with tempfile.TemporaryDirectory(prefix="mercer-") as folder:
            log = os.path.join(folder, "run.jsonl")
            with open(log, "w", encoding="utf-8") as file:
                file.writelines(json.dumps(event) + "\n" for event in self._events())
            run(["report", log, "-o", os.fspath(path), "--quiet"])
        return os.fspath(path)

    def _need(self) -> None:
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self, "model_")

    def _events(self) -> Iterator[dict[str, Any]]:
        from . import __version__

        Z, W = self.model_.centers, self.model_.weights
        data = {"features": Z.shape[1], "outputs": W.shape[1], "dtype": str(Z.dtype)}
        start = {"version": __version__, "command": type(self).__name__, "kernel": str(self.model_.kernel)}
        yield {"event": "start", **start, "data": data, "centers": {"count": Z.shape[0]}}
        if self.plan_:
            plan = {name: _plain(value) for name, value in self.plan_.items()}
            yield {"event": "plan", **plan, "lambda": plan["ridge"], "batch": plan["batch_size"]}
        for i in range(len(self.history_.get("epoch", []))):
            yield {"event": "epoch", **{name: _plain(v[i]) for name, v in self.history_.items()}}
        if len(self.spectrum_):
            values = [float(v) for v in self.spectrum_]
            yield {"event": "spectrum", "values": values, "eigenpairs": len(values) - 1, "tail": values[-1]}
        if self.summary_:
            summary = {name: _plain(value) for name, value in self.summary_.items()}
            phases = {name[:-8]: summary[name] for name in summary if name.endswith("_seconds")}
            yield {"event": "summary", **summary, "phases": phases}
