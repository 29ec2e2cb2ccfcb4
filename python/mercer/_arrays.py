# SPDX-License-Identifier: BSD-3-Clause
"""Arrays in and out: views of the caller's memory where its layout allows, one copy where it does not."""

from __future__ import annotations

import ctypes as C
from typing import Any

import numpy as np
from numpy import ma  # here and now: a process that forks while another thread imports it would wait for ever
from numpy.typing import NDArray

from . import _library as L
from ._context import warn

Array = NDArray[Any]
Type = np.dtype[Any]

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
NUMPY: dict[int, Type] = {L.F64: F64, L.F32: F32, L.F16: np.dtype(np.float16), L.U8: np.dtype(np.uint8)}
DTYPES: dict[Type, int] = {dtype: code for code, dtype in NUMPY.items()}


def unmasked(values: Any, name: str) -> Any:
    """The values; those of a masked array if none of them is hidden."""
    if not isinstance(values, ma.MaskedArray):
        return values
    if hidden := int(ma.count_masked(values)):
        raise ValueError(f"{name} is a masked array, {hidden} of its values are hidden: fill them, or leave the rows out")
    return ma.getdata(values)


def take(values: Any, name: str) -> Array:
    """Anything that is an array: NumPy, memory-maps, DLPack producers on the CPU, lists; a view where NumPy can."""
    values = unmasked(values, name)
    if isinstance(values, np.ndarray):
        return values
    if type(values).__module__.partition(".")[0] == "scipy" and hasattr(values, "toarray"):
        raise TypeError(f"{name} is sparse; a dense array is needed: {name}.toarray()")
    if hasattr(values, "__dlpack__") and not hasattr(values, "__array_interface__"):
        try:
            return np.from_dlpack(values)
        except (BufferError, TypeError, RuntimeError, ValueError) as error:
            if not hasattr(values, "__array__"):
                raise TypeError(f"{name}: {error}; a tensor in the memory of the CPU is needed") from error
    try:
        return np.asarray(values)
    except ValueError as error:  # ragged lists
        raise ValueError(f"{name} is no array: {error}") from error


def real_type(array: Array, name: str) -> Type:
    """The type among those of the library that holds the array's values."""
    dtype = array.dtype.newbyteorder("=")
    if dtype in DTYPES:
        return dtype
    if dtype.kind in "biu":
        return F64 if dtype.itemsize > 2 else F32
    if dtype.kind in "fO":  # long double, a half of another kind, Python's numbers
        return F64
    if dtype.kind == "c":
        raise ValueError(f"{name}: complex data not supported")
    raise TypeError(f"{name} has the type {array.dtype}; numbers are needed")


def warn_merged(values: Array, name: str) -> None:
    """Warns about different 64-bit integers that become equal in double precision: those beyond 2**53.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as found:
    ...     warn_merged(np.array([2**60, 2**60 + 1]), "X")
    >>> str(found[0].message)
    'X: 2 different whole numbers, such as 1152921504606846977, become 1 in double; subtract what they have in common'
    """
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 8 or values.size == 0:
        return
    if int(values.max()) <= 2**53 and int(values.min()) >= -(2**53):
        return
    different = np.unique(values)
    left = np.unique(different.astype(np.float64)).size
    if left < different.size:
        warn([
            f"{name}: {different.size} different whole numbers, such as {different[-1]}, become {left} in double; "
            "subtract what they have in common"
        ])


def points(values: Any, name: str, dtype: Type | None = None) -> Array:
    """A 2-d array of samples whose rows are contiguous, in a type of the library (or in ``dtype``)."""
    array = take(values, name)
    if array.ndim != 2:
        many = "s" if array.ndim != 1 else ""
        raise ValueError(f"{name} has {array.ndim} dimension{many}, a matrix of samples as rows is needed")
    if dtype is None:
        dtype = real_type(array, name)
    elif array.dtype.kind not in "biufO":
        real_type(array, name)
    if array.dtype.kind in "iu" and dtype.kind == "f":
        warn_columns(array, name)
    if array.dtype != dtype or not array.dtype.isnative:
        with np.errstate(over="ignore"):  # what does not fit becomes infinite, and is refused for that
            array = array.astype(dtype)
    return rows_contiguous(array)


def warn_columns(array: Array, name: str) -> None:
    """Warns about columns of 64-bit integers that double does not tell apart."""
    if array.ndim != 2 or array.dtype.itemsize < 8 or array.size == 0:
        return
    if int(array.max()) > 2**53 or int(array.min()) < -(2**53):
        for j in range(array.shape[1]):
            warn_merged(array[:, j], f"{name}, column {j}")


def rows_contiguous(array: Array) -> Array:
    """The array itself if each of its rows lies in one piece, in order; else a copy."""
    row, element = array.strides
    size = array.itemsize
    in_order = array.shape[1] <= 1 or element == size
    apart = array.shape[0] <= 1 or (row % size == 0 and row >= array.shape[1] * size and row > 0)
    aligned = array.flags.aligned and array.ctypes.data % size == 0
    return array if in_order and apart and aligned else np.array(array, order="C", copy=True)


def columns(values: Any, name: str, dtype: Type) -> Array:
    """Targets or weights of centers: 1-d becomes one column; f32 or f64.

    >>> columns([1, 2, 3], "y", F64).shape
    (3, 1)
    """
    array = take(values, name)
    return points(array[:, np.newaxis] if array.ndim == 1 else array, name, dtype)


def view(array: Any) -> L.mercer_matrix:
    """The library's view of a 2-d array that ``points`` made, here or on a GPU. The array must outlive it."""
    if not isinstance(array, np.ndarray):
        return array.view()
    rows, cols = array.shape
    ld = max(cols, 1) if rows <= 1 else array.strides[0] // array.itemsize
    return L.mercer_matrix(array.ctypes.data or None, rows, cols, max(ld, cols), DTYPES[array.dtype])


def result(out: Any, shape: tuple[int, ...]) -> Array:
    """An array of the caller's that a result goes to, if it fits."""
    if not isinstance(out, np.ndarray) or out.ndim != 2 or out.shape != shape:
        raise ValueError(f"out must be an array of shape {shape}")
    if out.dtype not in (F32, F64):
        raise TypeError(f"out has the type {out.dtype}; float32 or float64 is needed")
    if not out.flags.writeable or (out.size and rows_contiguous(out) is not out):
        raise ValueError("out must be writeable, with contiguous rows")
    return out


def borrowed(matrix: L.mercer_matrix, owner: Any) -> Array:
    """An array that shows a matrix of the library's own; it keeps the owner alive."""
    dtype = NUMPY[matrix.dtype]
    if matrix.rows == 0 or matrix.cols == 0 or not matrix.data:
        return np.zeros((matrix.rows, matrix.cols), dtype)
    count = (matrix.rows - 1) * matrix.ld + matrix.cols
    memory = (C.c_uint8 * (count * dtype.itemsize)).from_address(matrix.data)
    memory._mercer_owner = owner
    flat, strides = np.frombuffer(memory, dtype=dtype), (matrix.ld * dtype.itemsize, dtype.itemsize)
    return np.lib.stride_tricks.as_strided(flat, (matrix.rows, matrix.cols), strides)


def weights(values: Any, rows: int, name: str = "sample_weight") -> Array | None:
    """Sample weights as contiguous doubles, or None."""
    if values is None:
        return None
    array = take(values, name)
    real_type(array, name)
    return np.ascontiguousarray(_one_each(array, rows, name), dtype=np.float64)


def _one_each(array: Array, rows: int, name: str) -> Array:
    if array.shape != (rows,):
        raise ValueError(f"{name} has the shape {array.shape}, ({rows},) is needed")
    return array


def class_numbers(values: Any, rows: int, name: str = "labels") -> Array:
    """Numbers of classes, one for each row, as contiguous 32-bit integers."""
    array = take(values, name)
    if array.dtype.kind not in "iub":
        raise TypeError(f"{name} has the type {array.dtype}; whole numbers are needed")
    if _one_each(array, rows, name).size and not (0 <= array.min() and array.max() < 2**31 - 1):
        raise ValueError(f"{name} has numbers from {array.min()} to {array.max()}; classes are counted from 0")
    return np.ascontiguousarray(array, dtype=np.int32)


def doubles(array: Array | None) -> Any:
    """A pointer to contiguous doubles; None is NULL."""
    return None if array is None else array.ctypes.data_as(C.POINTER(C.c_double))


def integers(array: Array | None) -> Any:
    """A pointer to contiguous 32-bit integers; None is NULL."""
    return None if array is None else array.ctypes.data_as(C.POINTER(C.c_int32))


def weight_type(precision: str | None, dtype: Type) -> Type:
    """The arithmetic for points of a type: "float32", "float64", or "auto": double for doubles only.

    >>> weight_type("auto", np.dtype(np.uint8)), weight_type("auto", F64), weight_type("float32", F64)
    (dtype('float32'), dtype('float64'), dtype('float32'))
    """
    if precision is None or precision == "auto":
        return F64 if dtype == F64 else F32
    if precision not in ("float32", "float64"):
        raise ValueError(f"precision is {precision!r}; valid: 'auto', 'float32', 'float64'")
    return np.dtype(precision)
