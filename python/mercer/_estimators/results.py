# SPDX-License-Identifier: BSD-3-Clause
"""Results of a fit: hyperparameters as parameters of the constructor, and the importance of columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._arrays import Array
from .._model import Model
from . import held_out as H
from .parameters import Part
from .progress import progress_bar


class ResultsMixin(Part):
    """best_params_, search_once and feature_importances_."""

    best_params_: dict[str, Any]

    def _params_of(self, model: Model, ridge: float | None) -> dict[str, Any]:
        """Return the hyperparameters of a model as parameters of the constructor.

        For the mean of several models (efforts 4 and 5), these are the hyperparameters of the first model. They do not
        include statistics of the data, such as means of columns: each fit computes its own statistics.
        """
        centers = len(model.centers)
        advanced: dict[str, Any] = {**(self.advanced or {}), **model.fitted_preprocessing()}
        advanced.pop("learn_features", None)
        rows = self._rows
        found: dict[str, Any] = {
            "kernel": self.kernel if model.kernel._function is not None else model.unfolded_kernel(),
            "bandwidth": None, "ridge": ridge, "tune": "off", "advanced": advanced,
        }
        if self._given_centers() is None:
            found["centers"] = None if rows is not None and centers >= rows else centers
        return found

    def search_once(
        self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None, times: Any = None
    ) -> dict[str, Any]:
        """Search hyperparameters on X and y, without training, and return them as parameters of the constructor.

        ``cross_val_score(KernelRegressor(), X, y)`` repeats the search in every fold. To search only once::

            params = KernelRegressor().search_once(X, y)
            cross_val_score(KernelRegressor(**params), X, y)

        This search uses all rows, including those of each test fold, so the scores are slightly optimistic. The
        estimator itself is not changed.
        """
        copy = type(self)(**self.get_params(deep=False))
        copy.advanced = {**(self.advanced or {}), "warm_start": False}
        copy._check_parameters()
        task, samples = copy._all_samples(X, y, sample_weight, groups, times, None)
        with progress_bar(copy.verbose) as bar:
            fitting = copy._prepare(task, samples, None, bar)
        copy._rows = samples.X.shape[0]
        copy.advanced = self.advanced
        ridge, model = fitting.planned_ridge(), fitting.model()
        return copy._params_of(model, ridge)

    def _store_sample(self, samples: Any) -> None:
        """Store some rows for importances, plots and reports, which are computed when they are first used."""
        self._rows, self._sample, self._held_out = samples.X.shape[0], H.take_sample(samples), None
        self.best_params_ = self._params_of(self.model_, self.plan_.get("ridge"))

    def _held_out_results(self) -> H.HeldOut:
        """Return predictions of held-out rows, computed on first use."""
        check_is_fitted(self, "model_")
        if self._sample is None:
            raise AttributeError("there are no held-out predictions: partial_fit and mercer.load store no rows; use fit")
        if self._held_out is None:
            self._held_out = H.evaluate(self, self._task, self._sample)
        found: H.HeldOut = self._held_out
        return found

    @property
    def feature_importances_(self) -> Array:
        """Decrease of R2, or accuracy, if a column of X is permuted: an array (n_features_in_,), computed on first use.

        The decrease is measured on the rows of ``eval_set``. Without ``eval_set``, it is measured on up to 2,000
        training rows, by models that were trained without these rows. Columns that the model does not use have the
        importance 0. Negative values are noise. For other rows, use :meth:`permutation_importance`.
        """
        if self._held_out is None and self._describing:
            raise AttributeError("feature_importances_ is not computed yet")
        return H.by_input_column(self, self._held_out_results())

    _describing = False  # scikit-learn reads all attributes for its representation, which should not compute anything

    def held_out_score(self) -> tuple[float, str] | None:
        """Return R2 or accuracy on held-out rows and a description of the rows; None if the fit held out no rows."""
        try:
            found = self._held_out_results()
        except (AttributeError, ValueError):
            return None
        if self._task.classes is not None:
            return float((found.scores.argmax(axis=1) == found.targets).mean()), found.source
        y = found.targets.reshape(len(found.targets), -1)
        spread = ((y - y.mean(axis=0)) ** 2).sum(axis=0)
        error = ((y - found.scores) ** 2).sum(axis=0)
        return float(np.mean(1 - error / np.where(spread > 0, spread, 1))), found.source
