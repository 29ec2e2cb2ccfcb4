# SPDX-License-Identifier: BSD-3-Clause
"""Models: f(x) = sum_j alpha_j K(x, z_j), their predictions and their files."""

from __future__ import annotations

import ctypes as C
import json
import os
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _arrays as A
from . import _library as L
from ._arrays import Array
from ._context import Context, release_with, shared_context
from ._kernels import Kernel, as_kernel

CONVERT_ROWS = 65536  # rows that are converted at a time when X is not of a type the library takes


def release(function: str, handle: C.c_void_p, _keep: Any) -> None:
    """Releases a handle; ``_keep`` is what had to outlive it."""
    getattr(L.lib, function)(handle)


def texts_of(names: Any, count: int) -> list[str] | None:
    """A list of texts of the library's; None if there is none."""
    return [names[i].decode("utf-8", "replace") for i in range(count)] if names else None


def _is_dataset(X: Any) -> bool:
    """A :class:`Dataset`, whose module knows this one."""
    return hasattr(X, "read") and hasattr(X, "info")


def _names(what: str, says: str) -> Any:
    """A property: names that a model keeps, or None."""

    def get(self: Model) -> list[str] | None:
        count = C.c_int64()
        names = getattr(L.lib, "mercer_model_" + what)(self.handle, count)
        return texts_of(names, count.value)

    def put(self: Model, names: Sequence[str] | None) -> None:
        self.context.call("mercer_model_set_" + what, self.handle, _texts(names or [], what), len(names or []))

    return property(get, put, doc=says)


class Model:
    """A kernel function, p centers and their weights (p, c).

    The centers (p, d) are copied; float64, float32, float16 and uint8 keep their type. ``precision`` is the type of
    the weights and of training; "auto": double for float64 centers. See :class:`Context` for the rest.

    >>> model = Model("gaussian:bandwidth=1", np.eye(3), outputs=2)
    >>> model.weights[...] = 1.0
    >>> model.predict(np.zeros((1, 3))).round(4)
    array([[1.8196, 1.8196]])
    """

    def __init__(
        self, kernel: Kernel | str, centers: Any, outputs: int = 1, *, precision: str | None = None,
        n_jobs: int | None = None, device: str | None = None, arithmetic: str | None = None,
    ) -> None:
        chosen, z = as_kernel(kernel), A.points(centers, "centers")
        real = A.DTYPES[A.weight_type(precision, z.dtype)]
        context, handle = Context(n_jobs, device, arithmetic), C.c_void_p()
        context.call("mercer_model_create", handle, context.handle, chosen.struct, A.view(z), outputs, real)
        self._adopt(context, handle, chosen)

    def _adopt(self, context: Context, handle: C.c_void_p, kernel: Kernel | None) -> None:
        self.context, self.handle = context, handle
        # A kernel made from a Python function must live as long as the model that calls it.
        self.kernel = kernel or Kernel._of_struct(L.lib.mercer_model_kernel(handle).contents)
        release_with(self, release, "mercer_model_free", handle, (context, self.kernel))

    # ---- Parts ----

    @property
    def centers(self) -> Array:
        """The centers (p, d), a view that cannot be written."""
        array = A.borrowed(L.lib.mercer_model_centers(self.handle), self)
        array.flags.writeable = False
        return array

    @property
    def weights(self) -> Array:
        """The weights (p, c), a view: what is written there is what the model computes with."""
        return A.borrowed(L.lib.mercer_model_weights(self.handle), self)

    @property
    def targets(self) -> tuple[Array, Array] | None:
        """Offset and scale (c,) of the targets, for training to fit (y - offset) / scale. None: 0 and 1."""
        offset, scale = L.lib.mercer_model_target_offset(self.handle), L.lib.mercer_model_target_scale(self.handle)
        if not offset:
            return None
        outputs = L.lib.mercer_model_weights(self.handle).cols
        return np.array(offset[:outputs]), np.array(scale[:outputs])

    @targets.setter
    def targets(self, pair: tuple[Any, Any] | None) -> None:
        outputs = L.lib.mercer_model_weights(self.handle).cols
        both = [np.ascontiguousarray(np.broadcast_to(values, outputs), dtype=np.float64) for values in pair or (0, 1)]
        self.context.call("mercer_model_set_targets", self.handle, A.doubles(both[0]), A.doubles(both[1]))

    labels = _names("labels", "The names of the classes, or None.")
    feature_names = _names("feature_names", "The names of the columns that samples had, or None: they go by position.")
    target_names = _names("target_names", "The names of the columns that targets had, or None.")

    def match(self, names: Sequence[str]) -> Array:
        """For each feature of the model, which of the columns with these names it is; a missing one is an error."""
        places = np.empty(L.lib.mercer_model_features(self.handle), np.int64)
        pointer = places.ctypes.data_as(C.POINTER(C.c_int64))
        self.context.call("mercer_model_match", self.handle, pointer, _texts(names, "names"), len(names))
        return places

    @property
    def note(self) -> str:
        """A text that the model file carries."""
        return str(L.lib.mercer_model_note(self.handle).decode("utf-8", "replace"))

    @note.setter
    def note(self, note: str) -> None:
        self.context.call("mercer_model_set_note", self.handle, L.text(note, "note"))

    @property
    def preprocess(self) -> str | None:
        """What happens to samples before the kernel sees them, as text, or None."""
        own = L.lib.mercer_model_preprocess(self.handle)
        return L.lib.mercer_preprocess_spec(own).decode() if own else None

    @property
    def metric(self) -> Array | None:
        """The metric of the kernel in preprocessed samples: weights (d,) of a diagonal one, or M (d, d); None: none."""
        matrix = L.lib.mercer_preprocess_metric(L.lib.mercer_model_preprocess(self.handle))
        if matrix.rows == 0:
            return None
        factor = A.borrowed(matrix, self)
        return factor[0] ** 2 if matrix.rows == 1 else factor @ factor.T

    def preprocessed(self, X: Any) -> Array:
        """X as the kernel sees it, and as a :class:`Trainer` wants it; ``predict`` does this by itself."""
        own, x = L.lib.mercer_model_preprocess(self.handle), A.points(X, "X")
        width = L.lib.mercer_preprocess_width(own, x.shape[1])
        out = np.empty((x.shape[0], width), A.NUMPY[L.lib.mercer_preprocess_dtype(own, A.DTYPES[x.dtype])])
        if not own:
            return x
        self.context.call("mercer_preprocess_apply", own, A.view(out), A.view(x))
        return out

    def __repr__(self) -> str:
        z, w = L.lib.mercer_model_centers(self.handle), L.lib.mercer_model_weights(self.handle)
        features = L.lib.mercer_model_features(self.handle)
        return f"<mercer.Model {self.kernel}: {z.rows} centers, {features} features, {w.cols} outputs>"

    # ---- Predictions ----

    def _blocks(self, X: Any) -> Any:
        """Pairs of (rows, block): X itself where it can be used as it is, else converted piece by piece."""
        if _is_dataset(X):
            yield from self._read_blocks(X)
            return
        x = A.take(X, "X")
        if x.ndim != 2:
            A.points(x, "X")
        dtype = A.real_type(x, "X")
        own = L.lib.mercer_model_preprocess(self.handle)
        parts = L.lib.mercer_model_weights, L.lib.mercer_model_centers
        as_is = L.lib.mercer_preprocess_spec(own) == b"none" or L.lib.mercer_preprocess_kernel(own)
        as_is = as_is and L.lib.mercer_preprocess_metric(own).rows == 0
        if dtype == np.float64 and as_is and all(part(self.handle).dtype != L.F64 for part in parts):
            dtype = np.dtype(np.float32)  # a double X would make all arithmetic double
        if x.dtype == dtype and x.dtype.isnative:
            yield slice(0, x.shape[0]), A.rows_contiguous(x)
            return
        for first in range(0, max(1, x.shape[0]), CONVERT_ROWS):
            rows = slice(first, min(first + CONVERT_ROWS, x.shape[0]))
            yield rows, A.points(x[rows], "X", dtype)

    def _read_blocks(self, data: Any) -> Any:
        """The same for a dataset, whose columns go by their names where both have them."""
        info = data.info()
        order = self.match(info["features_named"]) if self.feature_names and info["features_named"] else None
        for first in range(0, info["rows"], CONVERT_ROWS):
            count = min(CONVERT_ROWS, info["rows"] - first)
            x, _ = data.read(first, count)
            for part, block in self._blocks(x if order is None else x[:, order]):
                yield slice(first + part.start, first + part.stop), block

    def predict(self, X: Any) -> Array:
        """f(X), of shape (m, c). A row's result does not depend on the other rows.

        The type is that of the weights; double for values with an offset, whose digits float might not have. X may be
        a :class:`Dataset`: its columns are then found by their names, where it and the model have any.
        """
        weights, rows = L.lib.mercer_model_weights(self.handle), _row_count(X)
        wide = self.targets is not None and not self.labels
        result = np.empty((rows[0] if rows else 0, weights.cols), np.float64 if wide else A.NUMPY[weights.dtype])
        for part, block in self._blocks(X):
            self._compute("predict", A.view(result[part]), A.view(block))
        return result

    def classify(self, X: Any) -> Array:
        """The number of the largest output, the first of equals, for every row of X."""
        rows = _row_count(X)
        result = np.empty(rows[0] if rows else 0, np.int32)
        for part, block in self._blocks(X):
            self._compute("classify", A.integers(result[part]), A.view(block))
        return result

    def gradients(self, X: Any) -> Array:
        """The gradients of the outputs in X, of shape (m, c, d): how f changes with each feature, in the units of X.

        For kernels of the distance that have a name.
        """
        x, outputs = A.points(X, "X"), L.lib.mercer_model_weights(self.handle).cols
        result = np.empty((x.shape[0], outputs * x.shape[1]))
        self._compute("gradient", A.view(result), A.view(x))
        return result.reshape(x.shape[0], outputs, x.shape[1])

    def _compute(self, name: str, *arguments: Any) -> None:
        with self.kernel.failure:
            self.context.call("mercer_model_" + name, self.handle, *arguments)

    # ---- Files ----

    def save(self, path: str | os.PathLike[str], *, centers: str | None = None, weights: str | None = None) -> None:
        """Writes a model file (safetensors layout), atomically; ``centers`` and ``weights`` are types in the file."""
        options = L.mercer_save_options()
        for field, name in (("centers", centers), ("weights", weights)):
            try:
                setattr(options, field, 0 if name is None else A.DTYPES[np.dtype(name)])
            except (KeyError, TypeError):
                raise ValueError(f"{field} is {name!r}; valid: float64, float32, float16, uint8") from None
        self.context.call("mercer_model_save", self.handle, L.text(path, "path"), options)

    @classmethod
    def load(cls, path: str | os.PathLike[str], **context_options: Any) -> Model:
        """Reads a model file or checkpoint; every size, offset and checksum is verified. Options: see :class:`Context`.

        The file is mapped: it must not be changed in place while the model exists. Replacing it is fine.
        """
        context, handle = Context(**context_options), C.c_void_p()
        context.call("mercer_model_load", handle, context.handle, L.text(path, "path"))
        self = cls.__new__(cls)
        self._adopt(context, handle, None)
        return self

    def to_bytes(self) -> bytes:
        """The bytes of a model file."""
        with tempfile.TemporaryDirectory(prefix="mercer-") as folder:
            path = os.path.join(folder, "model")
            self.save(path)
            with open(path, "rb") as file:
                return file.read()

    @classmethod
    def from_bytes(cls, data: bytes, **context_options: Any) -> Model:
        """A model from the bytes of a model file, checked like a file."""
        with tempfile.TemporaryDirectory(prefix="mercer-") as folder:
            path = os.path.join(folder, "model")
            with open(path, "wb") as file:
                file.write(data)
            # It stays mapped when the name is gone.
            return cls.load(path, **context_options)

    def __reduce__(self) -> Any:
        if self.kernel._function is not None:
            raise TypeError("a model whose kernel is a Python function cannot be pickled")
        return _restore, (self.to_bytes(), *self.context.made_with)


def _texts(names: Sequence[str], what: str) -> Any:
    """Names as the library takes them."""
    raw = [L.text(str(name), what) for name in names]
    return (C.c_char_p * max(1, len(raw)))(*raw)


def _row_count(X: Any) -> tuple[int, ...]:
    return (len(X),) if _is_dataset(X) else A.take(X, "X").shape[:1]


def _restore(data: bytes, n_jobs: int | None, device: str | None, arithmetic: str | None = None) -> Model:
    """What a pickle calls."""
    return Model.from_bytes(data, n_jobs=n_jobs, device=device, arithmetic=arithmetic)


def target_moments(Y: Any, sample_weight: Any = None) -> tuple[Array, Array]:
    """Mean and standard deviation of the columns of Y: an offset and a scale for :attr:`Model.targets`.

    The deviation of a constant column is given as 1.
    """
    y, context = A.columns(Y, "Y", np.dtype(np.float64)), shared_context()
    weights = A.weights(sample_weight, y.shape[0])
    mean, deviation = np.empty(y.shape[1]), np.empty(y.shape[1])
    moments = A.doubles(mean), A.doubles(deviation)
    context.call("mercer_target_moments", context.handle, *moments, A.view(y), A.doubles(weights))
    return mean, deviation


def file_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The header of a model file or checkpoint, without loading it."""
    header: dict[str, Any] = json.loads(shared_context().text("mercer_model_file_header", L.text(path, "path")))
    return header
