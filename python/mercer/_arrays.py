# SPDX-License-Identifier: BSD-3-Clause
"""Conversion of arrays: views of the caller's memory if its layout allows, otherwise one copy."""

from __future__ import annotations

import ctypes as C
from typing import Any

import numpy as np
from numpy import ma  # not imported lazily: a fork while another thread imports it would deadlock the child
from numpy.typing import NDArray

from . import _library as L
from ._context import warn

Array = NDArray[Any]
Type = np.dtype[Any]

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
NUMPY: dict[int, Type] = {L.F64: F64, L.F32: F32, L.F16: np.dtype(np.float16), L.U8: np.dtype(np.uint8)}
DTYPES: dict[Type, int] = {dtype: code for code, dtype in NUMPY.items()}


def unmasked(values: Any, name: str) -> Any:
    """Return the values; for a masked array without masked values, the array without its mask."""
    if not isinstance(values, ma.MaskedArray):
        return values
    if hidden := int(ma.count_masked(values)):
        raise ValueError(f"{name} is a masked array with {hidden} hidden values; fill them or remove the rows")
    return ma.getdata(values)


def as_array(values: Any, name: str) -> Array:
    """Convert an array-like (memory map, DLPack producer on the CPU, list) to a NumPy array, a view if possible."""
    values = unmasked(values, name)
    if isinstance(values, np.ndarray):
        return values
    if type(values).__module__.partition(".")[0] == "scipy" and hasattr(values, "toarray"):
        raise TypeError(f"{name} is sparse; use a dense array, {name}.toarray()")
    if hasattr(values, "__dlpack__") and not hasattr(values, "__array_interface__"):
        try:
            return np.from_dlpack(values)
        except (BufferError, TypeError, RuntimeError, ValueError) as error:
            if not hasattr(values, "__array__"):
                raise TypeError(f"{name}: {error}; use a tensor in CPU memory") from error
    try:
        return np.asarray(values)
    except ValueError as error:  # ragged lists
        raise ValueError(f"{name} is not an array: {error}") from error


def real_type(array: Array, name: str) -> Type:
    """Return the element type that the library uses for the values of the array."""
    dtype = array.dtype.newbyteorder("=")
    if dtype in DTYPES:
        return dtype
    if dtype.kind in "biu":
        return F64 if dtype.itemsize > 2 else F32
    if dtype.kind in "fO":  # long double, float types of NumPy extensions, Python numbers
        return F64
    if dtype.kind == "c":
        raise ValueError(f"{name}: complex data not supported")
    raise TypeError(f"{name} has the type {array.dtype}; use numbers")


def warn_merged(values: Array, name: str, column: str = "") -> None:
    """Warn if distinct integers (64-bit or Python objects) become equal in double precision, as is possible beyond 2**53.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as found:
    ...     warn_merged(np.array([2**60, 2**60 + 1]), "X")
    >>> str(found[0].message)
    'X: 2 distinct whole numbers, such as 1152921504606846977, become 1 in double; subtract a constant'
    """
    if values.dtype.kind not in "iuO" or values.dtype.itemsize < 8 or values.size == 0:
        return
    if int(values.max()) <= 2**53 and int(values.min()) >= -(2**53):
        return
    different = np.unique(values)
    left = np.unique(different.astype(np.float64)).size
    if left < different.size:
        text = f"{different.size} distinct whole numbers, such as {different[-1]}, become {left} in double"
        warn([(column, f"{name}: {text}; subtract a constant")])


def points(values: Any, name: str, dtype: Type | None = None) -> Array:
    """Return samples as a 2-d array with contiguous rows, of type ``dtype``; None: an element type of the library."""
    array = as_array(values, name)
    if array.ndim != 2:
        many = "s" if array.ndim != 1 else ""
        raise ValueError(f"{name} has {array.ndim} dimension{many}; use a matrix with one sample per row")
    if dtype is None:
        dtype = real_type(array, name)
    elif array.dtype.kind not in "biufO":
        real_type(array, name)  # raises the error if the type is not numeric
    if array.dtype.kind in "iu" and dtype.kind == "f":
        warn_columns(array, name)
    if array.dtype != dtype or not array.dtype.isnative:
        with np.errstate(over="ignore"):  # no warning: an overflow gives infinity, which the library rejects
            array = array.astype(dtype)
    return rows_contiguous(array)


def warn_columns(array: Array, name: str) -> None:
    """Warn about columns in which distinct 64-bit integers become equal in double precision."""
    if array.ndim != 2 or array.dtype.itemsize < 8 or array.size == 0:
        return
    if int(array.max()) > 2**53 or int(array.min()) < -(2**53):
        for j in range(array.shape[1]):
            warn_merged(array[:, j], f"{name}, column {j}")


def rows_contiguous(array: Array) -> Array:
    """Return the array if its rows are contiguous, aligned and do not overlap; otherwise a copy."""
    row, element = array.strides
    size = array.itemsize
    in_order = array.shape[1] <= 1 or element == size
    apart = array.shape[0] <= 1 or (row % size == 0 and row >= array.shape[1] * size and row > 0)
    aligned = array.flags.aligned and array.ctypes.data % size == 0
    return array if in_order and apart and aligned else np.array(array, order="C", copy=True)


def columns(values: Any, name: str, dtype: Type) -> Array:
    """Return targets or weights of centers as a 2-d array of type ``dtype``; a 1-d array becomes one column.

    >>> columns([1, 2, 3], "y", F64).shape
    (3, 1)
    """
    array = as_array(values, name)
    return points(array[:, np.newaxis] if array.ndim == 1 else array, name, dtype)


def view(array: Any) -> L.mercer_matrix:
    """Return the library's view of an array from :func:`points` or a DeviceArray, which must outlive the view."""
    if not isinstance(array, np.ndarray):
        return array.view()
    rows, cols = array.shape
    ld = max(cols, 1) if rows <= 1 else array.strides[0] // array.itemsize
    return L.mercer_matrix(array.ctypes.data or None, rows, cols, max(ld, cols), DTYPES[array.dtype])


def check_output(out: Any, shape: tuple[int, ...]) -> Array:
    """Return the caller's output array after checking that it can hold a result of this shape."""
    if not isinstance(out, np.ndarray) or out.ndim != 2 or out.shape != shape:
        raise ValueError(f"out must be an array of shape {shape}")
    if out.dtype not in (F32, F64):
        raise TypeError(f"out has the type {out.dtype}; use float32 or float64")
    if not out.flags.writeable or (out.size and rows_contiguous(out) is not out):
        raise ValueError("out must be writeable, with contiguous rows")
    return out


def borrowed(matrix: L.mercer_matrix, owner: Any) -> Array:
    """Return a view of a matrix of the library as an array, which keeps ``owner``, the owner of the matrix, alive."""
    dtype = NUMPY[matrix.dtype]
    if matrix.rows == 0 or matrix.cols == 0 or not matrix.data:
        return np.zeros((matrix.rows, matrix.cols), dtype)
    count = (matrix.rows - 1) * matrix.ld + matrix.cols
    memory = (C.c_uint8 * (count * dtype.itemsize)).from_address(matrix.data)
    memory._mercer_owner = owner
    flat, strides = np.frombuffer(memory, dtype=dtype), (matrix.ld * dtype.itemsize, dtype.itemsize)
    return np.lib.stride_tricks.as_strided(flat, (matrix.rows, matrix.cols), strides)


def weights(values: Any, rows: int, name: str = "sample_weight") -> Array | None:
    """Return sample weights as contiguous doubles; None stays None."""
    if values is None:
        return None
    array = as_array(values, name)
    real_type(array, name)
    return np.ascontiguousarray(_one_each(array, rows, name), dtype=np.float64)


def _one_each(array: Array, rows: int, name: str) -> Array:
    if array.shape != (rows,):
        raise ValueError(f"{name} has the shape {array.shape}; it must be ({rows},)")
    return array


def class_numbers(values: Any, rows: int, name: str = "labels") -> Array:
    """Return class numbers, one per row, as contiguous 32-bit integers."""
    array = as_array(values, name)
    if array.dtype.kind not in "iub":
        raise TypeError(f"{name} has the type {array.dtype}; use whole numbers")
    if _one_each(array, rows, name).size and not (0 <= array.min() and array.max() < 2**31 - 1):
        raise ValueError(f"{name} has numbers from {array.min()} to {array.max()}; classes are counted from 0")
    return np.ascontiguousarray(array, dtype=np.int32)


def doubles(array: Array | None) -> Any:
    """Return a pointer to contiguous doubles; NULL for None."""
    return None if array is None else array.ctypes.data_as(C.POINTER(C.c_double))


def integers(array: Array | None) -> Any:
    """Return a pointer to contiguous 32-bit integers; NULL for None."""
    return None if array is None else array.ctypes.data_as(C.POINTER(C.c_int32))


def weight_type(precision: str | None, dtype: Type) -> Type:
    """Return the type of weights and arithmetic for points of type ``dtype``; "auto": float64 only for float64 points.

    >>> weight_type("auto", np.dtype(np.uint8)), weight_type("auto", F64), weight_type("float32", F64)
    (dtype('float32'), dtype('float64'), dtype('float32'))
    """
    if precision is None or precision == "auto":
        return F64 if dtype == F64 else F32
    if precision not in ("float32", "float64"):
        raise ValueError(f"precision is {precision!r}; valid: 'auto', 'float32', 'float64'")
    return np.dtype(precision)
