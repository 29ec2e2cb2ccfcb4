# SPDX-License-Identifier: BSD-3-Clause
"""Datasets; models f(x) = sum_j alpha_j K(x, z_j), their predictions and files."""

from __future__ import annotations

import ctypes as C
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _arrays as A
from . import _device as D
from . import _library as L
from ._arrays import Array
from ._context import Context, as_integer, byte_count, fill_options, release_with, seed_from, shared_context
from ._kernels import Kernel, as_kernel

if TYPE_CHECKING:
    from ._shap import Explanation

_TASKS = {"auto": 0, "classification": 1, "regression": 2, "unlabeled": 3}
_TABLES = ("csv", "tsv", "parquet")  # formats whose columns may have a schema
CONVERT_ROWS = 65536  # rows per block, if rows of X must be converted or read from a dataset


def release(function: str, handle: C.c_void_p, _keep: Any) -> None:
    """Release a handle; ``_keep`` holds references to the objects that must outlive it."""
    getattr(L.lib, function)(handle)


def texts_of(names: Any, count: int) -> list[str] | None:
    """Return a C array of ``count`` texts as strings; None for NULL."""
    return [names[i].decode("utf-8", "replace") for i in range(count)] if names else None


def _texts(names: Sequence[str], what: str) -> Any:
    """Return names as an array of C strings."""
    raw = [L.text(str(name), what) for name in names]
    return (C.c_char_p * max(1, len(raw)))(*raw)


def _has_other_schema(info: dict[str, Any], model: Model) -> bool:
    """Return whether a dataset was encoded by a schema other than the model's. Only tables have a schema."""
    if info["schema"] is None and info["format"] not in _TABLES:
        return False
    return bool(info["schema"] != model.schema)


class Dataset:
    """Samples from files: NumPy, IDX, CSV, TSV, LIBSVM, CIFAR or raw.

    NumPy, IDX and raw files are memory-mapped if possible; other files are read into memory.

    Parameters
    ----------
    x, y : path
        File of the samples, and file of the targets, which csv, libsvm and cifar files of samples may include. A
        pattern such as ``"part-*.npy"`` stands for all matching files, concatenated in the order of their names;
        numbers in names are compared as numbers.
    columns : sequence of str, optional
        CSV: names of the columns to read, in this order, such as ``model.feature_names``; a missing column is an error.
    labels : sequence of str, optional
        All class names, in the order of the outputs, such as ``model.labels``. None: the classes in the data, sorted.
    task : {"auto", "classification", "regression", "unlabeled"}
        Kind of the targets; "auto" detects it.
    **options
        Fields of ``mercer_dataset_options`` in the C header mercer.h: ``format, y_format, raw, target, header,
        features, first, rows, memory, spill, mapping``, and for CSV ``kinds, only, weight_column, id_column, missing``
        and ``schema``, the encoding of the columns in training (``model.schema``).

    >>> digits = Dataset.synthesize("digits", 100)
    >>> X, y = digits.read(0, 5)
    >>> X.shape, X.dtype, len(digits)
    ((5, 784), dtype('uint8'), 100)
    """

    _kept: Any = None  # arrays that the dataset borrows
    _opened: dict[str, Any] | None = None  # arguments of __init__; None if the dataset is not from files

    def __init__(
        self, x: str | os.PathLike[str], y: str | os.PathLike[str] | None = None, *, task: str = "auto",
        columns: Sequence[str] | None = None, labels: Sequence[str] | None = None, n_jobs: int | None = None,
        **options: Any,
    ) -> None:
        if task not in _TASKS:
            raise ValueError(f"task is {task!r}; valid: {', '.join(_TASKS)}")
        if isinstance(options.get("target"), int):
            options["target"] = str(options["target"])
        struct = fill_options(L.mercer_dataset_options(task=_TASKS[task]), {"x": x, "y": y, **options})
        if columns:
            struct.columns, struct.column_count = _texts(columns, "columns"), len(columns)
        if labels:
            struct.labels, struct.label_count = _texts(labels, "labels"), len(labels)
        self._make("mercer_dataset_open", Context(n_jobs), struct)
        paths = {"x": os.path.abspath(x), "y": None if y is None else os.path.abspath(y)}
        self._opened = options | paths | {"task": task, "columns": columns, "labels": labels, "n_jobs": n_jobs}

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
        """Create a dataset of synthetic samples, which are generated when they are read.

        ``spec`` is "digits", "spirals", "clusters" or "teacher", optionally with parameters ("teacher:noise=0.5").
        """
        self = cls.__new__(cls)
        what = L.text(spec, "spec"), first, rows, seed_from(random_state)
        self._make("mercer_dataset_synthesize", Context(n_jobs), *what)
        return self

    @classmethod
    def _of_arrays(
        cls, context: Context, X: Any, *, Y: Any = None, labels: Any = None, classes: int = 0,
        names: Sequence[str] | None = None, columns: Sequence[str] | None = None, sample_weight: Any = None,
        schema: str | None = None, groups: Array | None = None, times: Array | None = None,
    ) -> Dataset:
        """Create a dataset of samples in memory, with values Y or class numbers ``labels``, and class names ``names``.

        >>> Dataset._of_arrays(Context(), np.eye(3), labels=[0, 1, 1], classes=2)
        <mercer.Dataset array: 3 rows, 3 features, classification>
        """
        weights = A.weights(sample_weight, X.shape[0])
        numbers = None if labels is None else A.class_numbers(labels, X.shape[0])
        struct = L.mercer_dataset_arrays(X=C.pointer(A.view(X)), weights=A.doubles(weights), classes=classes)
        struct.labels, struct.Y = A.integers(numbers), None if Y is None else C.pointer(A.view(Y))
        struct.label_names = None if names is None else _texts(names, "classes")
        struct.feature_names = None if columns is None else _texts(columns, "columns")
        struct.schema = None if schema is None else L.text(schema, "schema")
        struct.groups, struct.times = A.doubles(groups), A.doubles(times)
        self = cls.__new__(cls)
        self._kept = X, Y, weights, numbers, groups, times
        self._make("mercer_dataset_from_arrays", context, struct)
        return self

    def info(self) -> dict[str, Any]:
        """Return sizes, element type, task, format, and the names of classes and columns."""
        info = L.mercer_dataset_info()
        self.context.call("mercer_dataset_query", self.handle, info)
        task = [name for name, number in _TASKS.items() if number == info.task][0]
        counts = {"labels": info.outputs, "feature_names": info.features, "unused_names": info.unused}
        counts["target_names"] = 1 if task == "classification" else info.outputs
        names = {name: texts_of(getattr(info, name), count) for name, count in counts.items()}
        return L.as_dict(info) | names | {"dtype": A.NUMPY[info.dtype], "mapped": bool(info.mapped), "task": task}

    def _fingerprint(self) -> int:
        """Return a hash of the values. If X is larger than 1 GiB, only some of its blocks are hashed."""
        found = C.c_uint64()
        self.context.call("mercer_dataset_fingerprint", self.handle, found)
        return found.value

    def __repr__(self) -> str:
        info = self.info()
        return f"<mercer.Dataset {info['format']}: {info['rows']} rows, {info['features']} features, {info['task']}>"

    def least_error(self, rows: int = 1000) -> float:
        """Compute the smallest error that any model can reach on synthetic samples, as a mean over the first ``rows``.

        The error is the share of wrong classes for "clusters", and the mean squared error for "teacher".

        >>> Dataset.synthesize("teacher:noise=0.5", 10).least_error()
        0.25
        """
        error = C.c_double()
        self.context.call("mercer_dataset_least_error", self.handle, error, as_integer(rows, "rows"))
        return error.value

    def read(self, first: int = 0, count: int | None = None, *, rows: Any = None) -> tuple[Array, Array | None]:
        """Read samples and their targets, which are class numbers, values, or None if there are no targets.

        Reads ``count`` rows from row ``first`` (by default all remaining rows), or the rows with the indices ``rows``.
        """
        info, index = self.info(), None if rows is None else np.ascontiguousarray(rows, dtype=np.int64)
        if index is not None and index.ndim != 1:
            raise ValueError("rows must be a list of row numbers")
        m = len(index) if index is not None else info["rows"] - first if count is None else count
        if m < 0:
            raise ValueError(f"first is {first}, count {count}, but the dataset has {info['rows']} rows")
        x = np.empty((m, info["features"]), info["dtype"])
        labels = np.empty(m, np.int32) if info["task"] == "classification" else None
        y = np.empty((m, info["outputs"]), np.float64) if info["task"] == "regression" else None
        numbers = None if index is None else index.ctypes.data_as(C.POINTER(C.c_int64))
        views = A.view(x), None if y is None else A.view(y), A.integers(labels)
        self.context.call("mercer_dataset_read", self.handle, *views, None, numbers, first)
        return x, labels if labels is not None else y

    def _opened_for(self, model: Model, targets: bool) -> Dataset:
        """Return the dataset if it fits a model, otherwise its files opened again with the model's schema or columns.

        A table that was opened without the model's schema has its own schema, which may give other features. With
        ``targets``, the classes must also be those of the model.
        """
        info, labels = self.info(), model.labels
        outputs = model.weights.shape[1]
        classes = labels is not None and len(labels) == outputs
        same = not _has_other_schema(info, model)
        same = same and info["feature_names"] in (None, model.feature_names or info["feature_names"])
        if targets:
            same = same and info["outputs"] == outputs and (not classes or info["labels"] in (None, labels))
        if same or self._opened is None:
            return self
        given = {name: value for name, value in self._opened.items() if name not in ("kinds", "only", "columns", "schema")}
        if model.schema is not None:
            given |= {"schema": model.schema, "missing": None}  # the schema has the words for missing values
        elif model.feature_names is not None:
            given["columns"] = model.feature_names
        elif info["format"] in _TABLES:
            given["kinds"] = "numbers"
        if targets and classes:
            given |= {"labels": labels, "task": "classification"}
        elif targets and info["outputs"] != outputs:
            given["task"] = "regression"
        return Dataset(**given)

    def _source(self, *, random_state: Any = 0, **stream: Any) -> L.mercer_source:
        """Return a source of batches for the library, which the caller must release."""
        options = fill_options(L.mercer_stream_options(), {"random_state": random_state, **stream})
        source = L.mercer_source()
        self.context.call("mercer_source_from_dataset", source, self.handle, options)
        return source


def _names(what: str, count: str, which: int, says: str) -> Any:
    """Return a property for a list of names that is stored in the model; None if the list does not exist.

    ``what`` and ``count`` are the fields of ``mercer_model_info`` for the list and its length; ``which`` is a constant
    such as NAMES_LABELS.
    """

    def get(self: Model) -> list[str] | None:
        info = self._info()
        return texts_of(getattr(info, what), getattr(info, count))

    def put(self: Model, names: Sequence[str] | None) -> None:
        self.context.call("mercer_model_set_names", self.handle, which, _texts(names or [], what), len(names or []))

    return property(get, put, doc=says)


def _text(what: str, says: str) -> Any:
    """Return a property for a text that is stored in the model."""

    def get(self: Model) -> str | None:
        text = getattr(self._info(), what)
        return None if text is None else text.decode("utf-8", "replace")

    def put(self: Model, text: str | None) -> None:
        self.context.call("mercer_model_set_" + what, self.handle, None if text is None else L.text(text, what))

    return property(get, put, doc=says)


class Model:
    """Kernel model: a kernel function, p centers and their weights (p, c).

    The centers (p, d) are copied; float64, float32, float16 and uint8 keep their type. ``precision`` is the type of
    the weights and of training; "auto": float64 for float64 centers, otherwise float32. See :class:`Context` for
    ``n_jobs``, ``device`` and ``arithmetic``.

    >>> model = Model("gaussian:bandwidth=1", np.eye(3), outputs=2)
    >>> model.weights[...] = 1.0
    >>> model.predict(np.zeros((1, 3))).round(4)
    array([[1.8196, 1.8196]])
    """

    def __init__(
        self, kernel: Kernel | str, centers: Any, outputs: int = 1, *, precision: str | None = None,
        n_jobs: int | None = None, device: str | None = None, arithmetic: str | None = None,
    ) -> None:
        chosen, z = as_kernel(kernel), A.points(D.to_host(centers), "centers")
        real = A.DTYPES[A.weight_type(precision, z.dtype)]
        context, handle = Context(n_jobs, device or D.device_argument(centers), arithmetic), C.c_void_p()
        context.call("mercer_model_create", handle, context.handle, None, chosen.struct, A.view(z), outputs, real)
        self._adopt(context, handle, chosen)

    def _adopt(self, context: Context, handle: C.c_void_p, kernel: Kernel | None) -> None:
        self.context, self.handle = context, handle
        # A kernel made from a Python function must live as long as the model that calls it.
        self.kernel = kernel or Kernel._of_struct(self._info().kernel.contents)
        release_with(self, release, "mercer_model_free", handle, (context, self.kernel))

    def _info(self) -> Any:
        info = L.mercer_model_info()
        L.check(L.lib.mercer_model_query(self.handle, info), self.context.handle)
        return info

    def _preprocess_info(self) -> Any:
        info = L.mercer_preprocess_info()
        L.check(L.lib.mercer_preprocess_query(self._info().preprocess, info), self.context.handle)
        return info

    # ---- Properties ----

    @property
    def centers(self) -> Array:
        """Centers (p, d), as a read-only view."""
        array = A.borrowed(self._info().centers, self)
        array.flags.writeable = False
        return array

    @property
    def weights(self) -> Array:
        """Weights (p, c), as a writable view: writing to the array changes the model."""
        return A.borrowed(self._info().weights, self)

    @property
    def members(self) -> int:
        """Number of models whose predictions are averaged: 3 after a search with effort 4 or 5, usually 1."""
        return int(self._info().member_count)

    @property
    def targets(self) -> tuple[Array, Array] | None:
        """Offset and scale (c,) of the targets; training fits (y - offset) / scale. None: 0 and 1."""
        info = self._info()
        if not info.target_offset:
            return None
        return np.array(info.target_offset[: info.outputs]), np.array(info.target_scale[: info.outputs])

    @targets.setter
    def targets(self, pair: tuple[Any, Any] | None) -> None:
        outputs = self._info().outputs
        both = [np.ascontiguousarray(np.broadcast_to(values, outputs), dtype=np.float64) for values in pair or (0, 1)]
        self.context.call("mercer_model_set_targets", self.handle, A.doubles(both[0]), A.doubles(both[1]))

    @property
    def temperature(self) -> float:
        """Temperature T of :meth:`probabilities`; 0.25 if T is unknown. Setting T to 0 makes it unknown.

        Setting T to 0 also removes the :attr:`curvature`; setting any other value keeps it.
        """
        return float(self._info().temperature)

    @temperature.setter
    def temperature(self, temperature: float) -> None:
        curvature = self.curvature if temperature else 0.0
        self.context.call("mercer_model_set_calibration", self.handle, float(temperature), curvature)

    @property
    def curvature(self) -> float:
        """Curvature k of the scores in :meth:`probabilities`, asinh(k f) / asinh(k); 0: none. Setting k keeps T."""
        return float(self._info().curvature)

    @curvature.setter
    def curvature(self, curvature: float) -> None:
        info = self._info()
        temperature = info.temperature if info.calibrated else 0.0
        self.context.call("mercer_model_set_calibration", self.handle, float(temperature), float(curvature))

    def _calibrate(self, scores: Any, labels: Any) -> None:
        """Fit temperature and curvature to the scores of samples that the model was not trained on."""
        temperature, curvature = C.c_double(), C.c_double()
        numbers = A.view(scores), A.integers(labels), None
        self.context.call("mercer_calibrate", self.context.handle, temperature, curvature, *numbers)
        self.context.call("mercer_model_set_calibration", self.handle, temperature.value, curvature.value)

    labels = _names("labels", "label_count", L.NAMES_LABELS, "Names of the classes, or None.")
    feature_names = _names(
        "feature_names", "features", L.NAMES_FEATURES, "Names of the columns of samples; None: matched by position."
    )
    target_names = _names("target_names", "target_count", L.NAMES_TARGETS, "Names of the target columns, or None.")

    note = _text("note", "Text of the caller that is saved in the model file.")
    schema = _text("schema", "Encoding of table columns as features, as JSON; None: samples are features already.")

    def match(self, names: Sequence[str]) -> Array:
        """Return the index among ``names`` of the column of each feature of the model; a missing column is an error."""
        places = np.empty(self._info().features, np.int64)
        pointer = places.ctypes.data_as(C.POINTER(C.c_int64))
        self.context.call("mercer_model_match", self.handle, pointer, _texts(names, "names"), len(names))
        return places

    @property
    def preprocess(self) -> str | None:
        """Preprocessing of samples before the kernel is applied, as text, or None."""
        return self._preprocess_info().spec.decode() if self._info().preprocess else None

    @property
    def metric(self) -> Array | None:
        """Metric of the kernel on preprocessed samples: weights (d,) if diagonal, else M (d, d); None: identity."""
        matrix = self._preprocess_info().metric
        if matrix.rows == 0:
            return None
        factor = A.borrowed(matrix, self)
        return factor[0] ** 2 if matrix.rows == 1 else factor @ factor.T

    def unfolded_kernel(self) -> str:
        """Return the kernel function for preprocessed samples, even if a scale factor was folded into its bandwidth."""
        folded = self._preprocess_info().kernel if self._info().preprocess else None
        return str(Kernel._of_struct(folded.contents) if folded else self.kernel)

    def fitted_preprocessing(self) -> dict[str, Any]:
        """Return the hyperparameters of the preprocessing, as options of a fit: preprocess, blend and metric."""
        found: dict[str, Any] = {"preprocess": self.preprocess or "none"}
        blend, metric = self._preprocess_info().blend, self.metric
        if blend.rows:
            found["blend"] = A.borrowed(blend, self).copy()
        if metric is None:
            return found
        # The option metric has factors of |x_k - z_k|^p; Model.metric has the squares of the scales of the features.
        norm = self.kernel.norm()
        return found | {"metric": metric if metric.ndim == 2 or norm == 2 else metric ** (norm / 2)}

    def preprocessed(self, X: Any) -> Array:
        """Return the preprocessed X, which a :class:`Trainer` requires; :meth:`predict` preprocesses X itself."""
        own, how, x = self._info().preprocess, self._preprocess_info(), A.points(self._features(X), "X")
        if not own:
            return x
        dtype = x.dtype if how.identity or x.dtype == np.float64 else np.dtype(np.float32)
        out = np.empty((x.shape[0], how.width or x.shape[1]), dtype)
        self.context.call("mercer_preprocess_apply", own, A.view(out), A.view(x))
        return out

    def __repr__(self) -> str:
        info = self._info()
        return f"<mercer.Model {self.kernel}: {info.centers.rows} centers, {info.features} features, {info.outputs} outputs>"

    # ---- Predictions ----

    def _features(self, X: Any) -> Any:
        """Encode a data frame by the model's schema, or reorder its columns for the model; other data are unchanged."""
        from . import _table as T  # not at the top, because _table imports this module

        frame = None if D.device_of(X) is not None or isinstance(X, (Dataset, np.ndarray)) else T.as_frame(X)
        if frame is None:
            return X
        if self.schema is not None:
            return T.encode(shared_context(), frame, self.schema)[0]
        known = self.feature_names
        if not known or not all(isinstance(name, str) for name in frame.columns):
            return frame
        T.warn_ignored([name for name in frame.columns if name not in known])
        return frame.iloc[:, self.match(list(frame.columns))]

    def _apply(self, name: str, X: Any, columns: tuple[int, ...], dtype: Any, out: Any = None) -> Any:
        """Apply a function of the library to the rows of X, which are converted or read block by block."""
        X = self._features(X)
        if D.device_of(X) is not None or (out is not None and not isinstance(out, np.ndarray)):
            return self._apply_on_device(name, X, columns, dtype, out)
        x = X if isinstance(X, Dataset) else A.as_array(X, "X")
        blocks = self._read_blocks(x) if isinstance(x, Dataset) else self._blocks(x)
        shape = (len(x) if isinstance(x, Dataset) or x.ndim else 0, *columns)
        result = np.empty(shape, dtype) if out is None else A.check_output(out, shape)
        for rows, block in blocks:
            self._compute(name, A.view(result[rows]) if columns else A.integers(result[rows]), A.view(block))
        return result

    def _apply_on_device(self, name: str, X: Any, columns: tuple[int, ...], dtype: Any, out: Any) -> Any:
        """Do the same as _apply if X or ``out`` is on a GPU; arrays on a GPU stay there."""
        x = A.points(X, "X") if D.device_of(X) is None else D.DeviceArray(X, "X", self.context)
        if not columns:
            numbers = np.empty(x.shape[0], dtype)
            self._compute(name, A.integers(numbers), A.view(x))
            return D.like(X, numbers)
        result = D.empty_like(X, (x.shape[0], *columns), dtype) if out is None else out
        there = D.output_matrix(result, (x.shape[0], *columns), self.context, X)
        self._compute(name, A.view(there), A.view(x))
        return result

    def _blocks(self, x: Array) -> Iterator[tuple[slice, Array]]:
        """Yield slices of row numbers, with the rows; a single slice if x needs no conversion."""
        if x.ndim != 2:
            A.points(x, "X")
        dtype, info = A.real_type(x, "X"), self._info()
        single = L.F64 not in (info.weights.dtype, info.centers.dtype)
        if dtype == np.float64 and single and self._preprocess_info().identity:
            dtype = np.dtype(np.float32)  # a float64 X would make all arithmetic double
        most = x.shape[0] if x.dtype == dtype and x.dtype.isnative else CONVERT_ROWS
        for first in range(0, max(1, x.shape[0]), max(1, most)):
            rows = slice(first, min(first + most, x.shape[0]))
            yield rows, A.points(x[rows], "X", dtype)

    def _read_blocks(self, data: Dataset) -> Iterator[tuple[slice, Array]]:
        """Yield slices of row numbers and the rows of a dataset; columns are matched by name if both have names."""
        data = data._opened_for(self, targets=False)
        info = data.info()
        order = self.match(info["feature_names"]) if self.feature_names and info["feature_names"] else None
        for first in range(0, info["rows"], CONVERT_ROWS):
            x, _ = data.read(first, min(CONVERT_ROWS, info["rows"] - first))
            for part, block in self._blocks(x if order is None else x[:, order]):
                yield slice(first + part.start, first + part.stop), block

    def predict(self, X: Any, *, out: Any = None) -> Any:
        """Compute f(X), of shape (m, c). The result of a row does not depend on the other rows.

        X may be a data frame with the columns of training, or a :class:`Dataset`: columns are then matched by name, and
        text, dates and missing values are encoded by the model's :attr:`schema`. An array X must contain encoded
        features. If X is an array of PyTorch, CuPy or JAX on the model's GPU, the result is on this GPU, too.

        The result has the type of the weights, but float64 for values with a target offset, for which float32 may have
        too few digits. If ``out`` is given, an array on the host or a GPU, the result is written to it.
        """
        info = self._info()
        wide = info.target_offset and not info.labels
        return self._apply("predict", X, (info.outputs,), np.float64 if wide else A.NUMPY[info.weights.dtype], out)

    def probabilities(self, X: Any) -> Any:
        """Compute class probabilities (m, c): softmax(g(f(X)) / T), where T is the :attr:`temperature`.

        g(f) = asinh(k f) / asinh(k), where k is the :attr:`curvature`; without curvature, g(f) = f. If the model was
        fitted with class weights, g(f) also has an offset per class.
        """
        return self._apply("probabilities", X, (self._info().outputs,), np.float64)

    def classify(self, X: Any) -> Any:
        """Compute the index of the largest output for every row of X; the smallest index if several are equal."""
        return self._apply("classify", X, (), np.int32)

    def interval(self, level: float = 0.9) -> Array:
        """Compute half widths (c,) of intervals that contain a share ``level`` of targets; for classes a threshold.

        They are computed from errors on rows that were held out in training. If the model has no such rows, or too few
        for the level, this method raises a ValueError. The threshold, of shape (1,), is used by :meth:`class_sets`.
        """
        info = self._info()
        if info.interval_task == L.TASK_UNLABELED:
            raise ValueError("the model has no intervals: no rows were held out in training; fit with intervals=True")
        classes = info.interval_task == L.TASK_CLASSIFICATION
        radius = np.empty(1 if classes else info.outputs)
        self.context.call("mercer_model_interval", self.handle, A.doubles(radius), float(level))
        return radius

    def class_sets(self, X: Any, level: float = 0.9) -> Array:
        """Compute sets of classes, as booleans (m, c), that contain the true class with probability ``level``.

        A set consists of the most probable classes: as few as are needed to make their total probability exceed the
        threshold of :meth:`interval`.
        """
        P, radius = self.probabilities(X), self.interval(level)
        members = np.empty(P.shape, np.int32)
        arguments = A.integers(members.reshape(-1)), A.view(P), float(radius[0])
        self.context.call("mercer_class_sets", self.context.handle, *arguments)
        result = np.zeros((P.shape[0], P.shape[1] + 1), bool)
        np.put_along_axis(result, np.where(members < 0, P.shape[1], members).astype(np.int64), True, axis=1)
        return result[:, :-1]

    def gradients(self, X: Any) -> Array:
        """Compute the gradients of the outputs at the rows of X, of shape (m, c, d), in the units of X and the targets.

        Only for built-in kernels that are functions of the distance.
        """
        x, outputs = A.points(self._features(X), "X"), self._info().outputs
        result = np.empty((x.shape[0], outputs * x.shape[1]))
        self._compute("gradient", A.view(result), A.view(x))
        return result.reshape(x.shape[0], outputs, x.shape[1])

    def shap_values(self, X: Any, background: Any = None, background_rows: int = 100) -> Explanation:
        """Compute exact Shapley values of the columns of X, an array of features or a data frame.

        The values of a row and the base value sum to the output; the base value is the mean output over the background
        rows. If ``background`` has more than ``background_rows`` rows, evenly spaced rows are used; None: centers of
        the model. Only for built-in kernels that are functions of the distance, without a metric that combines columns.
        """
        from ._shap import explain  # not at the top, because _shap imports this module

        return explain(self, X, background, background_rows, False)

    def shap_interaction_values(self, X: Any, background: Any = None, background_rows: int = 100) -> Explanation:
        """Compute the interactions of pairs of columns, ``values`` of shape (m, columns, columns[, outputs]).

        An off-diagonal entry is half the interaction of two columns; each row of the matrix sums to the value of its
        column.
        """
        from ._shap import explain

        return explain(self, X, background, background_rows, True)

    def _compute(self, name: str, *arguments: Any) -> None:
        with self.kernel.failure:
            self.context.call("mercer_model_" + name, self.handle, *arguments)

    # ---- Files ----

    def save(self, path: str | os.PathLike[str], *, centers: str | None = None, weights: str | None = None) -> None:
        """Write a model file (safetensors layout) atomically; ``centers`` and ``weights``: types in the file."""
        options = L.mercer_save_options()
        for field, name in (("centers", centers), ("weights", weights)):
            try:
                setattr(options, field, 0 if name is None else A.DTYPES[np.dtype(name)])
            except (KeyError, TypeError):
                raise ValueError(f"{field} is {name!r}; valid: float64, float32, float16, uint8") from None
        self.context.call("mercer_model_save", self.handle, L.text(path, "path"), options)

    def export(self, path: str | os.PathLike[str], *, format: str | None = None, name: str | None = None) -> None:
        """Export the model, atomically, as a file that predicts without Mercer.

        ``format`` is ``"c99"`` (a C file; ``name``, by default ``"model"``, is the prefix of its function names) or
        ``"onnx"`` (a graph); None: by the ending of ``path``, .c or .onnx. See docs/export.md.
        """
        options = L.mercer_export_options()
        options.format = None if format is None else L.text(format, "format")
        options.name = None if name is None else L.text(name, "name")
        self.context.call("mercer_model_export", self.handle, L.text(path, "path"), options)

    @classmethod
    def load(cls, path: str | os.PathLike[str], **context_options: Any) -> Model:
        """Load a model file or checkpoint, and verify every size, offset and checksum. Options: see :class:`Context`.

        The file is mapped: it must not be modified while the model exists, but may be replaced by another file.
        """
        context, handle = Context(**context_options), C.c_void_p()
        context.call("mercer_model_load", handle, context.handle, None, L.text(path, "path"))
        self = cls.__new__(cls)
        self._adopt(context, handle, None)
        return self

    def to_bytes(self) -> bytes:
        """Return the contents of a model file."""
        with tempfile.TemporaryDirectory(prefix="mercer-") as folder:
            path = os.path.join(folder, "model")
            self.save(path)
            with open(path, "rb") as file:
                return file.read()

    @classmethod
    def from_bytes(cls, data: bytes, **context_options: Any) -> Model:
        """Load a model from the contents of a model file, which are verified as in :meth:`load`."""
        with tempfile.TemporaryDirectory(prefix="mercer-") as folder:
            path = os.path.join(folder, "model")
            with open(path, "wb") as file:
                file.write(data)
            # The mapping stays valid after the file is deleted.
            return cls.load(path, **context_options)

    def __reduce__(self) -> Any:
        if self.kernel._function is not None:
            raise TypeError("a model whose kernel is a Python function cannot be pickled")
        return _restore, (self.to_bytes(), *self.context.made_with)


def _restore(data: bytes, n_jobs: int | None, device: str | None, arithmetic: str | None = None) -> Model:
    """Restore a model from a pickle."""
    return Model.from_bytes(data, n_jobs=n_jobs, device=device, arithmetic=arithmetic)


def target_moments(Y: Any, sample_weight: Any = None) -> tuple[Array, Array]:
    """Compute mean and standard deviation of the columns of Y: an offset and a scale for :attr:`Model.targets`.

    The deviation of a constant column is set to 1.
    """
    y, context = A.columns(Y, "Y", np.dtype(np.float64)), shared_context()
    weights = A.weights(sample_weight, y.shape[0])
    mean, deviation = np.empty(y.shape[1]), np.empty(y.shape[1])
    moments = A.doubles(mean), A.doubles(deviation)
    context.call("mercer_target_moments", context.handle, *moments, A.view(y), A.doubles(weights))
    return mean, deviation


def file_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the header of a model file or checkpoint without loading the model."""
    header: dict[str, Any] = json.loads(shared_context().text("mercer_model_file_header", L.text(path, "path")))
    return header
