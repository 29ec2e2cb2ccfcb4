# SPDX-License-Identifier: BSD-3-Clause
"""Model files of estimators: the method save, and the function load, which returns an estimator."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._arrays import Array
from .._kinds import DEFAULT_WORDS
from .._model import Model
from .parameters import Part

KEY = "python"  # entry of the model's note for data that only Python needs


def _guess_classes(names: list[str]) -> Array:
    """Return classes for their names in a model file: integers if all names are integers, else text.

    >>> _guess_classes(["0", "10", "2"]).tolist(), _guess_classes(["no", "yes"]).tolist()
    ([0, 10, 2], ['no', 'yes'])
    """
    try:
        numbers = [int(name) for name in names]
    except ValueError:
        return np.array(names)
    return np.array(numbers) if [str(number) for number in numbers] == names else np.array(names)


def class_names(classes: Any) -> list[str] | None:
    """Return the class names for a model file; None if they are not distinct and printable."""
    names = [str(name) for name in classes]
    usable = all(name and name.isprintable() for name in names) and len(set(names)) == len(names)
    return names if usable else None


def _described_classes(classes: Array) -> dict[str, Any] | None:
    """Return an entry that restores the classes; None if _guess_classes restores them from their names."""
    guess = _guess_classes([str(name) for name in classes])
    same = guess.dtype.kind == classes.dtype.kind and guess.tolist() == classes.tolist()
    if same and class_names(classes) is not None:
        return None
    return {"classes": classes.tolist(), "dtype": classes.dtype.str if classes.dtype != object else "object"}


class FileMixin(Part):
    """Model files of estimators."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a model file, atomically, as ``mercer train`` does; :func:`mercer.load` reads the file.

        The file has everything that predictions need: kernel, centers, weights, classes, and kinds, levels and missing
        values of columns. Unlike a pickle, the file has no other parameters of the constructor, and no training rows
        for ``feature_importances_``.
        """
        check_is_fitted(self, "model_")
        self._sync()
        extra = self._note()
        if not extra:
            self.model_.save(path)
            return
        before = self.model_.note
        try:
            known = json.loads(before) if before else {}
            self.model_.note = json.dumps({**known, KEY: extra}, ensure_ascii=False)
            self.model_.save(path)
        finally:
            self.model_.note = before

    def _note(self) -> dict[str, Any]:
        """Return the note for the model file: data that only Python needs; usually empty."""
        extra: dict[str, Any] = {}
        if self._task.classes is not None:
            try:
                extra |= _described_classes(self._task.classes) or {}
                json.dumps(extra)
            except TypeError:
                kind = type(self._task.classes[0]).__name__
                raise ValueError(f"classes of type {kind} cannot be saved; use text or numbers as classes") from None
        elif not self._task.flat and self._task.outputs == 1:
            extra["flat"] = False
        if self.columns is not None:
            extra["columns"] = [[name, kind] for name, kind in self.columns.items()]
        return extra


def load(path: str | os.PathLike[str], *, n_jobs: int | None = None, device: str = "cpu") -> Any:
    """Load a model file as a fitted KernelClassifier or KernelRegressor, which accepts data frames.

    The file may be from :meth:`KernelRegressor.save`, from ``mercer train``, or from :meth:`Model.save` of a fitted
    model. The parameters of the constructor have their defaults, except ``n_jobs``, ``device``, ``columns`` and
    ``missing``.
    """
    from .base import Task
    from .classifier import KernelClassifier
    from .regressor import KernelRegressor

    try:
        model = Model.load(path, n_jobs=n_jobs, device=device)
    except ValueError as error:
        if "not a Mercer model" not in str(error):
            raise
        raise ValueError(
            f"{os.fspath(path)} is damaged or not a Mercer model; load reads files that save, or mercer train, wrote"
        ) from error
    try:
        note = json.loads(model.note or "{}")
    except ValueError:
        note = {}
    extra = note.get(KEY, {}) if isinstance(note, dict) else {}
    outputs, labels = model.weights.shape[1], model.labels
    is_classifier = "classes" in extra or (labels is not None and len(labels) == outputs)
    estimator: Any = (KernelClassifier if is_classifier else KernelRegressor)(n_jobs=n_jobs, device=device)
    if is_classifier:
        classes = np.array(extra["classes"], dtype=extra["dtype"]) if "classes" in extra else _guess_classes(labels or [])
        task = Task(outputs, classes)
    else:
        task = Task(outputs, flat=bool(extra.get("flat", outputs == 1)))
    estimator._store_model(model, task)
    estimator._seen, estimator._rows = None, None
    estimator.history_, estimator.plan_, estimator.summary_ = {}, {}, {}
    estimator.spectrum_, estimator.n_iter_ = np.zeros(0), 1
    _describe_columns(estimator, model, extra)
    return estimator


def _describe_columns(estimator: Any, model: Model, extra: dict[str, Any]) -> None:
    """Set the attributes of a loaded estimator that describe the columns of X."""
    names = model.feature_names
    if model.schema is None:
        estimator._table, estimator.n_features_in_ = None, int(model._info().features)
    else:
        schema = json.loads(model.schema)
        estimator._table, estimator.n_features_in_ = (model.schema, names), len(schema["columns"])
        own = [column.get("name") for column in schema["columns"]]
        names = None if any(name is None for name in own) else own
        if words := [word for word in schema.get("missing", []) if word not in DEFAULT_WORDS]:
            estimator.missing = words
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    if extra.get("columns"):
        estimator.columns = {name: kind for name, kind in extra["columns"]}
