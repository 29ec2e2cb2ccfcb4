# SPDX-License-Identifier: BSD-3-Clause
"""Arrays of other libraries on a GPU: Mercer uses and returns them without copies to the host.

PyTorch, CuPy and JAX export arrays by DLPack, other libraries by ``__cuda_array_interface__``. The context's stream
waits for the pending work on the exporter's stream; a library call returns when its results are complete.
"""

from __future__ import annotations

import ctypes as C
import sys
from typing import Any

import numpy as np

from . import _library as L
from ._arrays import DTYPES, F32, F64, Type, check_output
from ._context import Context

DLPACK_CUDA, DLPACK_CUDA_MANAGED = 2, 13  # device types of dlpack.h
LETTERS = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool"}  # type codes of dlpack.h
DEFAULT_STREAM = 1  # CUDA's default stream, used if an interface does not name a stream


class _Tensor(C.Structure):  # DLTensor of dlpack.h
    _fields_ = [
        ("data", C.c_void_p), ("device_type", C.c_int32), ("device", C.c_int32), ("ndim", C.c_int32),
        ("code", C.c_uint8), ("bits", C.c_uint8), ("lanes", C.c_uint16), ("shape", C.POINTER(C.c_int64)),
        ("strides", C.POINTER(C.c_int64)), ("byte_offset", C.c_uint64),
    ]


_pointer_of = C.pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = C.c_void_p, [C.py_object, C.c_char_p]


def device_of(values: Any) -> int | None:
    """Return the number of the GPU that an array is on; None for other values.

    >>> print(device_of(np.zeros(3)))
    None
    """
    if isinstance(values, np.ndarray):
        return None
    if hasattr(type(values), "__dlpack_device__"):
        kind, number = values.__dlpack_device__()
        return int(number) if int(kind) in (DLPACK_CUDA, DLPACK_CUDA_MANAGED) else None
    # __cuda_array_interface__ has no device number; the library determines the device from the address.
    return 0 if hasattr(type(values), "__cuda_array_interface__") else None


def device_argument(*arrays: Any) -> str | None:
    """Return the device of the first array on a GPU, as text for :class:`Context`; None if no array is on a GPU."""
    found = [number for values in arrays if values is not None and (number := device_of(values)) is not None]
    return f"cuda:{found[0]}" if found else None


class DeviceArray:
    """Matrix on a GPU with contiguous rows and a supported type, and references that keep its memory alive.

    ``waited``: an array of the same library has already been synchronized with the context's stream.
    """

    def __init__(self, values: Any, name: str, context: Context, waited: bool = False) -> None:
        stream = context.stream
        if stream is None:
            raise ValueError(f"{name} is on a GPU, but the device is the CPU; use device='cuda'")
        self._kept: tuple[Any, ...] = (values,)
        self.shape: tuple[int, ...] = ()
        self.strides: tuple[int, ...] = ()  # in elements
        if hasattr(type(values), "__dlpack__"):
            # PyTorch and CuPy have one current stream, so synchronizing one array synchronizes all. -1: no
            # synchronization.
            self._read_tensor(values, name, -1 if waited and _library_of(values) in ("torch", "cupy") else stream)
        else:
            self._read_interface(values, name, context)
        if len(self.shape) == 1:  # a vector is a single column
            self.shape, self.strides = (self.shape[0], 1), (self.strides[0], 1)
        self._check(name)

    def _read_tensor(self, values: Any, name: str, stream: int) -> None:
        try:
            capsule = values.__dlpack__(stream=stream)
        except (BufferError, TypeError, RuntimeError, ValueError) as error:
            raise TypeError(f"{name}: {error}") from error
        tensor = _Tensor.from_address(_pointer_of(capsule, b"dltensor"))
        self._kept += (capsule,)  # the destructor of the capsule releases the memory
        dims = range(tensor.ndim)
        self.address = (tensor.data or 0) + tensor.byte_offset
        self.shape = tuple(tensor.shape[i] for i in dims)
        self.strides = tuple(tensor.strides[i] for i in dims) if tensor.strides else _dense(self.shape)
        type_name = f"{LETTERS.get(tensor.code, 'unknown')}{tensor.bits}"
        self.dtype = _type(type_name if tensor.lanes == 1 else f"{type_name}x{tensor.lanes}", name)

    def _read_interface(self, values: Any, name: str, context: Context) -> None:
        described = values.__cuda_array_interface__
        stream = described["stream"] if "stream" in described else DEFAULT_STREAM
        if stream is not None:
            if stream == 0:
                raise ValueError(f"{name}: its __cuda_array_interface__ has the stream 0, which the protocol forbids")
            context.call("mercer_context_wait", context.handle, stream)
        if described.get("mask") is not None:
            raise TypeError(f"{name} is a masked array; use values without a mask")
        self.address, self.shape = int(described["data"][0] or 0), tuple(described["shape"])
        self.dtype = _type(np.dtype(described["typestr"]).name, name)
        strides = described.get("strides")
        if strides is not None and any(step % self.dtype.itemsize for step in strides):
            raise ValueError(f"{name}: strides of {strides} bytes are not a multiple of the size of {self.dtype}")
        self.strides = _dense(self.shape) if strides is None else tuple(s // self.dtype.itemsize for s in strides)

    def _check(self, name: str) -> None:
        if len(self.shape) != 2:
            raise ValueError(f"{name} has {len(self.shape)} dimensions; use a matrix with one sample per row")
        rows, cols = self.shape
        row, element = self.strides
        if (cols > 1 and element != 1) or (rows > 1 and row < cols):
            raise ValueError(
                f"{name}: strides of {self.strides} elements are not supported on a GPU; "
                f"use contiguous rows, such as {name}.contiguous()"
            )

    @property
    def ndim(self) -> int:
        """Number of dimensions, always 2."""
        return len(self.shape)

    def view(self) -> L.mercer_matrix:
        """Return the library's view of the matrix; this object must outlive the view."""
        rows, cols = self.shape
        ld = max(cols, self.strides[0] if rows > 1 else cols, 1)
        return L.mercer_matrix(self.address or None, rows, cols, ld, DTYPES[self.dtype], L.CUDA)


def output_matrix(out: Any, shape: tuple[int, ...], context: Context, synchronized: Any = None) -> Any:
    """Return the matrix for a result, on the host or a GPU, after checking that ``out`` can hold it.

    ``synchronized``: an input array that is already synchronized with the context's stream.
    """
    if device_of(out) is None:
        return check_output(out, shape)
    there = DeviceArray(out, "out", context, type(out) is type(synchronized))
    if there.shape != shape:
        raise ValueError(f"out must be an array of shape {shape}")
    if there.dtype not in (F32, F64):
        raise TypeError(f"out has the type {there.dtype}; use float32 or float64")
    return there


def _dense(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def _type(name: str, array: str) -> Type:
    for dtype in DTYPES:
        if dtype.name == name:
            return dtype
    raise TypeError(f"{array} has the type {name}; on a GPU, use float64, float32, float16 or uint8")


def _library_of(values: Any) -> str:
    return type(values).__module__.partition(".")[0]


def empty_like(values: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Return a new array of the same array library, on the same GPU."""
    library, name = _library_of(values), np.dtype(dtype).name
    if library == "torch":
        torch = sys.modules["torch"]
        return torch.empty(shape, dtype=getattr(torch, name), device=values.device)
    if library == "cupy":
        with values.device:
            return sys.modules["cupy"].empty(shape, dtype=name)
    if library in ("jax", "jaxlib"):  # JAX arrays are immutable, but no other code refers to this new array yet
        import jax

        double = name == "float64" and not jax.config.jax_enable_x64
        return jax.device_put(jax.numpy.zeros(shape, "float32" if double else name), values.device)
    raise TypeError(
        f"results on a GPU are created for PyTorch, CuPy and JAX; for {type(values).__name__} of {library} pass an array as out="
    )


def like(values: Any, array: Any) -> Any:
    """Copy a NumPy array to the array library and GPU of ``values``; unchanged if ``values`` is not on a GPU."""
    if device_of(values) is None:
        return array
    library = _library_of(values)
    if library == "torch":
        return sys.modules["torch"].as_tensor(array, device=values.device)
    if library == "cupy":
        with values.device:
            return sys.modules["cupy"].asarray(array)
    if library in ("jax", "jaxlib"):
        import jax

        return jax.device_put(array, values.device)
    return array


def to_host(values: Any) -> Any:
    """Copy an array from a GPU to a NumPy array; return other values unchanged."""
    if device_of(values) is None:
        return values
    if hasattr(values, "detach"):  # PyTorch
        return values.detach().cpu().numpy()
    return values.get() if hasattr(values, "get") else np.asarray(values)
