# SPDX-License-Identifier: BSD-3-Clause
"""Kernel functions, kernel matrices and products with them."""

from __future__ import annotations

import ctypes as C
import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _arrays as A
from . import _device as D
from . import _library as L
from ._arrays import Array
from ._context import Context, Failure, seed_from, shared_context


class Kernel:
    """A kernel function K(x, z), by its name and parameters, in the text or beside it; docs/python.md lists them.

    >>> Kernel("gaussian", bandwidth=2.0)
    Kernel('gaussian:bandwidth=2')
    >>> Kernel("laplace:bandwidth=2")([[0.0, 0.0]], [[0.0, 0.0], [3.0, 4.0]]).round(4)
    array([[1.    , 0.0821]])
    """

    def __init__(self, spec: str, **parameters: float) -> None:
        if not isinstance(spec, str):
            raise TypeError(f"a kernel is named by a text like 'laplace:bandwidth=10', not by {type(spec).__name__}")
        for name, value in parameters.items():
            if isinstance(value, bool) or not isinstance(value, numbers.Real):
                raise TypeError(f"{name} of the kernel must be a number, not {value!r}")
            number = repr(int(value)) if float(value).is_integer() and abs(value) < 2**53 else repr(float(value))
            spec += (":" if ":" not in spec else ",") + f"{name}={number}"
        self._adopt(L.mercer_kernel())
        context = shared_context()
        context.call("mercer_kernel_parse", self.struct, context.handle, L.text(spec, "kernel"))

    def _adopt(self, struct: L.mercer_kernel) -> Kernel:
        self.struct = struct
        self._function: Any = None
        self.failure = Failure()  # what a Python function raised: calls that use the kernel stand in its ``with``
        return self

    @classmethod
    def from_function(cls, function: Callable[..., Array], on: str = "distance") -> Kernel:
        """A kernel given by a Python function, much slower than a built-in one.

        ``function(r)`` of a block of distances (on="distance"), or ``function(xz, xx, zz)`` of a block of inner
        products and the squared norms of its rows and columns (on="inner"), returns a block of kernel values. It must
        be symmetric in x and z.

        >>> Kernel.from_function(lambda r: np.exp(-r))([[0.0]], [[1.0]]).round(4)
        array([[0.3679]])
        """
        ids = {"distance": L.KERNEL_CALLBACK_DISTANCE, "inner": L.KERNEL_CALLBACK_INNER}
        if on not in ids:
            raise ValueError(f"on is {on!r}; valid: 'distance', 'inner'")
        if not callable(function):
            raise TypeError("function must be callable")
        self, context = cls.__new__(cls)._adopt(L.mercer_kernel()), shared_context()

        @self.failure.guard
        def call(_user: Any, pointer: Any) -> None:
            block = pointer.contents
            memory = np.ctypeslib.as_array(block.values, (block.rows, block.ld))[:, : block.cols]
            if on == "distance":
                memory[...] = function(memory.copy())
            else:
                xx = np.ctypeslib.as_array(block.x_sqnorms, (block.rows,)).copy()
                zz = np.ctypeslib.as_array(block.z_sqnorms, (block.cols,)).copy()
                memory[...] = function(memory.copy(), xx[:, np.newaxis], zz[np.newaxis, :])

        self._function = L.mercer_kernel_callback(call)
        context.call("mercer_kernel_from_callback", self.struct, context.handle, ids[on], self._function, None)
        return self

    @classmethod
    def _of_struct(cls, struct: L.mercer_kernel) -> Kernel:
        return cls.__new__(cls)._adopt(L.mercer_kernel.from_buffer_copy(struct))

    def __str__(self) -> str:
        return "callback" if self._function is not None else shared_context().text("mercer_kernel_print", self.struct)

    def __repr__(self) -> str:
        return "Kernel.from_function(...)" if self._function is not None else f"Kernel({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Kernel) and bytes(self.struct) == bytes(other.struct)

    def __hash__(self) -> int:
        return hash(bytes(self.struct))

    def __deepcopy__(self, _memo: Any) -> Kernel:
        return self  # it never changes

    def __reduce__(self) -> Any:
        if self._function is not None:
            raise TypeError("a kernel made from a Python function cannot be pickled")
        return Kernel, (str(self),)

    def __call__(self, X: Any, Z: Any = None, **options: Any) -> Array:
        """K(X, Z), or K(X, X); see :func:`kernel_matrix`."""
        return kernel_matrix(X, X if Z is None else Z, self, **options)

    def diagonal(self, X: Any, *, precision: str | None = None, n_jobs: int | None = None) -> Array:
        """K(x_i, x_i) for every row of X."""
        context = shared_context(n_jobs, D.where(X))
        operands, real = _operands(context, precision, X=X)
        shape = operands["X"].shape[0], 1
        return _run(self, context, "diagonal", _room(X, None, shape, real), shape, operands)[:, 0]


def as_kernel(kernel: Kernel | str) -> Kernel:
    """A kernel from itself or its text."""
    return kernel if isinstance(kernel, Kernel) else Kernel(kernel)


def distances_of(kernel: Kernel | str | None) -> tuple[str, list[Any]]:
    """The part of a function's name, and the argument, that make it one of the kernel's own distances."""
    return ("", []) if kernel is None else ("kernel_", [as_kernel(kernel).struct])


def _operands(context: Context, precision: str | None, **named: Any) -> tuple[dict[str, Any], np.dtype[Any]]:
    def taken(values: Any, name: str) -> Any:
        return A.points(values, name) if D.device_of(values) is None else D.DeviceArray(values, name, context)

    arrays = {name: taken(values, name) for name, values in named.items()}
    real = A.weight_type(precision, A.F64 if any(a.dtype == A.F64 for a in arrays.values()) else A.F32)
    for name, array in arrays.items():  # one double operand would make all arithmetic double; W is float or double
        if (real == A.F32 and array.dtype == A.F64) or (name == "W" and array.dtype not in (A.F32, A.F64)):
            if not isinstance(array, np.ndarray):
                raise TypeError(f"{name} is {array.dtype} on a GPU; {real} is needed: convert it there")
            arrays[name] = A.points(array, name, real)
    return arrays, real


def _room(X: Any, out: Any, shape: tuple[int, int], real: A.Type) -> Any:
    """Where a result goes: ``out`` if it is given, else a new array where X is."""
    if out is not None:
        return out
    return np.empty(shape, real) if D.device_of(X) is None else D.empty_like(X, shape, real)


def _run(
    kernel: Kernel | str, context: Context, name: str, out: Any, shape: tuple[int, int], arrays: dict[str, Any]
) -> Any:
    chosen, target = as_kernel(kernel), D.target(out, shape, context)
    with chosen.failure:
        views = [A.view(array) for array in arrays.values()]
        context.call("mercer_kernel_" + name, context.handle, A.view(target), chosen.struct, *views)
    return out


def kernel_matrix(
    X: Any, Z: Any, kernel: Kernel | str, *, out: Any = None, precision: str | None = None,
    n_jobs: int | None = None, device: str | None = None,
) -> Any:
    """K(X, Z) of shape (m, p), every pair of rows of X (m, d) and Z (p, d), written to ``out`` if it is given.

    float64, float32, float16 and uint8 are used as they are, without a copy if rows are contiguous; other types are
    converted. ``precision`` is "float32", "float64" or "auto": double if X or Z is. See :class:`Context` for the rest.
    Arrays of PyTorch, CuPy or JAX that lie on a GPU stay there, and so does the result; ``device`` is then theirs.

    >>> kernel_matrix([[0.0], [1.0]], [[0.0]], "laplace:bandwidth=1").round(4)
    array([[1.    ],
           [0.3679]])
    """
    context = shared_context(n_jobs, device or D.where(X, Z, out))
    arrays, real = _operands(context, precision, X=X, Z=Z)
    shape = arrays["X"].shape[0], arrays["Z"].shape[0]
    return _run(kernel, context, "eval", _room(X, out, shape, real), shape, arrays)


def kernel_matmul(
    X: Any, Z: Any, W: Any, kernel: Kernel | str, *, out: Any = None, precision: str | None = None,
    n_jobs: int | None = None, device: str | None = None, arithmetic: str | None = None,
) -> Any:
    """K(X, Z) W of shape (m, c), or (m,) if W is 1-d, without forming K(X, Z).

    W has the shape (p, c) or (p,); the rest is as for :func:`kernel_matrix`.

    >>> rng = np.random.default_rng(0)
    >>> X, Z, W = rng.normal(size=(500, 20)), rng.normal(size=(300, 20)), rng.normal(size=(300, 3))
    >>> kernel_matmul(X, Z, W, "gaussian:bandwidth=5").shape
    (500, 3)
    """
    context = shared_context(n_jobs, device or D.where(X, Z, W, out), arithmetic)
    given = A.take(W, "W") if D.device_of(W) is None else W
    flat = given.ndim == 1
    column = given[:, np.newaxis] if flat and isinstance(given, np.ndarray) else given
    arrays, real = _operands(context, precision, X=X, Z=Z, W=column)
    shape = arrays["X"].shape[0], arrays["W"].shape[1]
    result = _run(kernel, context, "matmul", _room(X, out, shape, real), shape, arrays)
    return result[:, 0] if flat and out is None else result


def median_distance(
    X: Any, *, kernel: Kernel | str | None = None, random_state: Any = 0, n_jobs: int | None = None
) -> float:
    """The median distance between rows of X (of at most 2000 random ones): a bandwidth to start from.

    Distances are Euclidean, or those that the ``kernel`` is a function of.

    >>> median_distance([[0.0, 0.0], [3.0, 4.0]])
    5.0
    >>> median_distance([[0.0, 0.0], [3.0, 4.0]], kernel="laplace-l1:bandwidth=1")
    7.0
    """
    x, context, result, seed = A.points(X, "X"), shared_context(n_jobs), C.c_double(), seed_from(random_state)
    name, struct = distances_of(kernel)
    context.call(f"mercer_{name}median_distance", context.handle, result, *struct, A.view(x), seed)
    return result.value
