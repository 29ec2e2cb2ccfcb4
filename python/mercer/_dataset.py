# SPDX-License-Identifier: BSD-3-Clause
"""Datasets: samples and targets from files of any size, or computed when they are read."""

from __future__ import annotations

import ctypes as C
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _arrays as A
from . import _library as L
from ._arrays import Array
from ._context import Context, fill, release_with, seed_from
from ._model import _texts, release, texts_of

_TASKS = {"auto": 0, "classification": 1, "regression": 2, "unlabelled": 3}


class Dataset:
    """Samples from files: NumPy, IDX, CSV, TSV, LIBSVM or raw. Large ones are mapped, not read.

    Parameters
    ----------
    x, y : path
        Samples (with their targets, for csv and libsvm); targets. A pattern such as ``"part-*.npy"`` means all files
        that match, one after the other, numbers in their names compared as numbers, as if they were one.
    format, y_format, raw, target : str, optional
        As the options of ``mercer train``; several targets with commas between them.
    columns : sequence of str, optional
        CSV: the columns that are wanted, in this order, such as ``model.feature_names``; others are not read, a missing
        one is an error. Data without names go by position.
    task : {"auto", "classification", "regression", "unlabelled"}
    header, first, rows, memory
        CSV: the first line names the columns; only so many rows from ``first`` on; refuse to hold more bytes.

    >>> digits = Dataset.synthesize("digits", 100)
    >>> X, y = digits.read(0, 5)
    >>> X.shape, X.dtype, len(digits)
    ((5, 784), dtype('uint8'), 100)
    """

    _kept: Any = None  # arrays that it shows

    def __init__(
        self, x: str | os.PathLike[str], y: str | os.PathLike[str] | None = None, *, format: str | None = None,
        y_format: str | None = None, raw: str | None = None, target: str | int | None = None,
        columns: Sequence[str] | None = None, header: bool | None = None, task: str = "auto", features: int = 0,
        first: int = 0, rows: int = 0, memory: int | str | None = None, n_jobs: int | None = None,
    ) -> None:
        if task not in _TASKS:
            raise ValueError(f"task is {task!r}; valid: {', '.join(_TASKS)}")
        texts = {"x": x, "y": y, "format": format, "y_format": y_format, "raw": raw}
        texts["target"] = str(target) if isinstance(target, int) else target
        sizes = {"header": header, "features": features, "first": first, "rows": rows, "memory": memory}
        options = fill(L.mercer_dataset_options(task=_TASKS[task]), {**texts, **sizes})
        if columns:
            options.columns, options.column_count = _texts(columns, "columns"), len(columns)
        self._make("mercer_dataset_open", Context(n_jobs), options)

    def _make(self, name: str, context: Context, *arguments: Any) -> None:
        self.context, self.handle = context, C.c_void_p()
        context.call(name, self.handle, context.handle, *arguments)
        release_with(self, release, "mercer_dataset_free", self.handle, context)

    def __len__(self) -> int:
        return int(self.info()["rows"])

    @classmethod
    def synthesize(
        cls, spec: str, rows: int, *, first: int = 0, random_state: Any = 0, n_jobs: int | None = None
    ) -> Dataset:
        """Samples that are computed when they are read: "digits", "spirals" or "teacher", with parameters."""
        self = cls.__new__(cls)
        what = L.text(spec, "spec"), first, rows, seed_from(random_state)
        self._make("mercer_dataset_synthesize", Context(n_jobs), *what)
        return self

    @classmethod
    def _of_arrays(
        cls, context: Context, X: Array, *, Y: Array | None = None, labels: Any = None, classes: int = 0,
        names: Sequence[str] | None = None, columns: Sequence[str] | None = None, sample_weight: Any = None,
    ) -> Dataset:
        """Samples in memory, with values Y or numbers of classes, of which ``names`` are the texts.

        >>> Dataset._of_arrays(Context(), np.eye(3), labels=[0, 1, 1], classes=2)
        <mercer.Dataset array: 3 rows, 3 features, classification>
        """
        weights = A.weights(sample_weight, X.shape[0])
        numbers = None if labels is None else A.class_numbers(labels, X.shape[0])
        struct = L.mercer_dataset_arrays(X=C.pointer(A.view(X)), weights=A.doubles(weights), classes=classes)
        struct.labels, struct.Y = A.integers(numbers), None if Y is None else C.pointer(A.view(Y))
        struct.label_names = None if names is None else _texts(names, "classes")
        struct.feature_names = None if columns is None else _texts(columns, "columns")
        self = cls.__new__(cls)
        self._kept = X, Y, weights, numbers
        self._make("mercer_dataset_from_arrays", context, struct)
        return self

    def info(self) -> dict[str, Any]:
        """Sizes, type, task, format, names of classes and columns."""
        info = L.mercer_dataset_info()
        self.context.call("mercer_dataset_query", self.handle, info)
        result = {name: value for name, value in L.as_dict(info).items() if not name.endswith("_names")}
        result["dtype"], result["mapped"] = A.NUMPY[info.dtype], bool(info.mapped)
        result["task"] = {number: name for name, number in _TASKS.items()}[info.task]
        lists = {"labels": (info.labels, info.outputs), "features_named": (info.feature_names, info.features)}
        lists["targets_named"] = info.target_names, 1 if result["task"] == "classification" else info.outputs
        lists["unused_named"] = info.unused_names, info.unused
        return result | {name: texts_of(*given) for name, given in lists.items()}

    def __repr__(self) -> str:
        info = self.info()
        return f"<mercer.Dataset {info['format']}: {info['rows']} rows, {info['features']} features, {info['task']}>"

    def read(self, first: int = 0, count: int | None = None, *, rows: Any = None) -> tuple[Array, Array | None]:
        """Samples and their targets (class numbers, or values; None if unlabelled) as arrays."""
        info = self.info()
        index = None
        if rows is not None:
            index = np.ascontiguousarray(rows, dtype=np.int64)
            if index.ndim != 1:
                raise ValueError("rows must be a list of row numbers")
        m = len(index) if index is not None else info["rows"] - first if count is None else count
        if m < 0:
            raise ValueError(f"first is {first}, count {count}: the dataset has {info['rows']} rows")
        x = np.empty((m, info["features"]), info["dtype"])
        labels = np.empty(m, np.int32) if info["task"] == "classification" else None
        y = np.empty((m, info["outputs"]), np.float64) if info["task"] == "regression" else None
        numbers = None if index is None else index.ctypes.data_as(C.POINTER(C.c_int64))
        views = A.view(x), None if y is None else A.view(y), A.integers(labels)
        self.context.call("mercer_dataset_read", self.handle, *views, None, numbers, first)
        return x, labels if labels is not None else y

    def _source(self, *, random_state: Any = 0, **stream: Any) -> L.mercer_source:
        """A stream of batches for the library; the caller releases it."""
        options = fill(L.mercer_stream_options(), {"random_state": random_state, **stream})
        source = L.mercer_source()
        self.context.call("mercer_source_from_dataset", source, self.handle, options)
        return source
