# SPDX-License-Identifier: BSD-3-Clause
"""Plots, report page and HTML representation of estimators."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.utils.validation import check_is_fitted

from . import held_out as H
from .html import card
from .page import write
from .parameters import Part


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'mercer[plot]'") from error
    return plt.subplots()[1]


def _axes_with_text(ax: Any, text: str) -> Any:
    """Return axes that show a text instead of curves."""
    ax = _axes(ax)
    ax.text(0.5, 0.5, text, ha="center", va="center", transform=ax.transAxes)
    ax.set_axis_off()
    return ax


class ShowMixin(Part):
    """Plots, report page and HTML representation."""

    def plot_history(self, ax: Any = None) -> Any:
        """Plot the losses by epoch and return the matplotlib axes.

        Training in a single step, as by the default solver for small data, has no curve; the axes then show a text
        instead.
        """
        check_is_fitted(self, "model_")
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

        Not every solver computes eigenvalues. For other solvers, the axes show a text with the reason.
        """
        check_is_fitted(self, "model_")
        if len(self.spectrum_) == 0:
            who = f"solver {self.plan_['solver']} computes none" if self.plan_ else "partial_fit records none"
            what = f"no eigenvalues to plot: {who}\nuse a solver that computes them, such as solver='ep4'"
            return _axes_with_text(ax, what)
        ax = _axes(ax)
        ax.loglog(np.arange(1, len(self.spectrum_) + 1), self.spectrum_, marker=".")
        ax.set(xlabel="index", ylabel="eigenvalue")
        return ax

    def plot_residuals(self, ax: Any = None) -> Any:
        """Plot predictions of held-out rows, and return the matplotlib axes.

        A regressor plots the residuals (target minus prediction) over the predictions, a classifier the calibration:
        shares of correct predictions by predicted probability. The rows are the same as for
        :attr:`feature_importances_`.
        """
        found = self._held_out_results()
        ax = _axes(ax)
        if self._task.classes is None:
            y = found.targets.reshape(len(found.targets), -1)
            for j in range(y.shape[1]):
                label = f"output {j}" if y.shape[1] > 1 else None
                ax.plot(found.scores[:, j], y[:, j] - found.scores[:, j], ".", markersize=3, alpha=0.6, label=label)
            ax.axhline(0.0, color="gray", linewidth=1)
            ax.set(xlabel="prediction", ylabel="target - prediction")
        else:
            points = H.calibration(H.probabilities(self, found), found.targets, 10)
            ax.plot([0, 1], [0, 1], color="gray", linewidth=1)
            ax.plot(points["confidence"], points["accuracy"], marker="o", label=f"mean difference {points['error']:.3f}")
            ax.set(xlabel="probability of the predicted class", ylabel="share of correct predictions")
        if ax.get_legend_handles_labels()[0]:
            ax.legend()
        ax.set_title(found.source, fontsize="small")
        return ax

    def plot_importance(self, ax: Any = None, most: int = 20) -> Any:
        """Plot the importance of up to ``most`` columns (:attr:`feature_importances_`) and return the matplotlib axes."""
        found = self._held_out_results()
        order = np.argsort(found.drops, kind="stable")[-most:]
        ax = _axes(ax)
        ax.barh([found.names[j] for j in order], found.drops[order])
        ax.set(xlabel=f"decrease of {'R2' if self._task.classes is None else 'accuracy'} if the column is permuted")
        return ax

    def plot_dependence(self, column: Any, ax: Any = None) -> Any:
        """Plot the mean prediction by the value of a column, a name or an index, and return the matplotlib axes."""
        found = self._held_out_results()
        names = found.names
        j = names.index(column) if column in names else column
        if isinstance(j, bool) or not isinstance(j, (int, np.integer)) or not 0 <= j < len(names):
            raise ValueError(f"column {column!r} is not a column of the model; valid: {', '.join(names)}")
        values, F = H.dependence(self, self._task, self._sample, int(j))
        used, ax = H.used_columns(self), _axes(ax)
        levels = used[j].get("levels") if used else None
        classes = self._task.classes
        for k in range(1 if classes is not None and F.shape[1] == 2 else 0, F.shape[1]):
            label = None if classes is None and F.shape[1] == 1 else str(k if classes is None else classes[k])
            x = levels[: len(values)] if levels else values
            ax.plot(x, F[: len(x), k], marker="o" if levels else None, linestyle="" if levels else "-", label=label)
        if ax.get_legend_handles_labels()[0]:
            ax.legend()
        ax.set(xlabel=names[j], ylabel="mean prediction")
        return ax

    def report(self, path: str | os.PathLike[str] = "report.html") -> str:
        """Write an HTML page, as ``mercer report`` does, and return its path.

        The page shows the search, the training, and results on held-out rows: residuals or calibration, the importance
        of columns, and the partial dependence on the most important columns. The page is a single file without scripts.
        """
        check_is_fitted(self, "model_")
        write(self, os.fspath(path))
        return os.fspath(path)

    def _repr_mimebundle_(self, **_options: Any) -> dict[str, str]:
        found = {"text/plain": repr(self)}
        if get_config()["display"] == "diagram":
            found["text/html"] = self._repr_html_()
        return found

    def _get_fitted_attr_html(self, doc_link: str = "") -> Any:
        """Return scikit-learn's table of attributes, without importances that are not computed yet."""
        self._describing = True
        try:
            return super()._get_fitted_attr_html(doc_link)  # type: ignore[misc]
        finally:
            del self._describing

    def _repr_html_(self) -> str:
        """Return scikit-learn's diagram; for a fitted estimator, after a table with kernel, size, score and columns."""
        from sklearn.utils import estimator_html_repr

        diagram = str(estimator_html_repr(self))
        return card(self) + diagram if hasattr(self, "model_") else diagram
