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
    """Kernel function K(x, z), specified by a name, and by parameters in the same text or as keyword arguments.

    docs/math.md, section 3, defines all kernel functions.

    >>> Kernel("gaussian", bandwidth=2.0)
    Kernel('gaussian:bandwidth=2')
    >>> Kernel("laplace:bandwidth=2")([[0.0, 0.0]], [[0.0, 0.0], [3.0, 4.0]]).round(4)
    array([[1.    , 0.0821]])
    """

    def __init__(self, spec: str, **parameters: float) -> None:
        if not isinstance(spec, str):
            raise TypeError(f"a kernel must be a str such as 'laplace:bandwidth=10', not {type(spec).__name__}")
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
        self.failure = Failure()  # exception of the Python function; calls run inside ``with self.failure``
        return self

    def norm(self) -> float:
        """Return p for a kernel that is a function of the p-norm; 2 for functions of the inner product."""
        name = str(self).partition(":")[0]
        return float(self.struct.p) if name == "lpq" else 1.0 if name.endswith("-l1") else 2.0

    @classmethod
    def from_function(cls, function: Callable[..., Array], on: str = "distance") -> Kernel:
        """Create a kernel from a Python function, which is much slower than a built-in kernel.

        With on="distance", ``function(r)`` gets a matrix of distances. With on="inner", ``function(xz, xx, zz)`` gets a
        matrix of inner products x'z, and the squared norms of its x (rows) and z (columns). The function returns the
        matrix of kernel values, and must be symmetric in x and z.

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
        return self  # kernels are immutable

    def __reduce__(self) -> Any:
        if self._function is not None:
            raise TypeError("a kernel made from a Python function cannot be pickled")
        return Kernel, (str(self),)

    def __call__(self, X: Any, Z: Any = None, **options: Any) -> Array:
        """Compute K(X, Z), or K(X, X) if Z is None; see :func:`kernel_matrix`."""
        return kernel_matrix(X, X if Z is None else Z, self, **options)

    def diagonal(self, X: Any, *, precision: str | None = None, n_jobs: int | None = None) -> Array:
        """Compute K(x_i, x_i) for every row of X."""
        context = shared_context(n_jobs, D.device_argument(X))
        operands, real = _operands(context, precision, X=X)
        shape = operands["X"].shape[0], 1
        return _call_product(self, context, "diagonal", _output_for(X, None, shape, real), shape, operands)[:, 0]


def as_kernel(kernel: Kernel | str) -> Kernel:
    """Return a kernel; a text is parsed."""
    return kernel if isinstance(kernel, Kernel) else Kernel(kernel)


def distances_of(kernel: Kernel | str | None) -> Any:
    """Return the kernel argument of library functions that use the distance of a kernel; None: Euclidean distance."""
    return None if kernel is None else as_kernel(kernel).struct


def _operands(context: Context, precision: str | None, **named: Any) -> tuple[dict[str, Any], np.dtype[Any]]:
    def as_operand(values: Any, name: str) -> Any:
        return A.points(values, name) if D.device_of(values) is None else D.DeviceArray(values, name, context)

    arrays = {name: as_operand(values, name) for name, values in named.items()}
    real = A.weight_type(precision, A.F64 if any(a.dtype == A.F64 for a in arrays.values()) else A.F32)
    for name, array in arrays.items():  # one float64 operand makes all arithmetic float64; W is float32 or float64
        if (real == A.F32 and array.dtype == A.F64) or (name == "W" and array.dtype not in (A.F32, A.F64)):
            if not isinstance(array, np.ndarray):
                raise TypeError(f"{name} is {array.dtype} on a GPU; convert it to {real}")
            arrays[name] = A.points(array, name, real)
    return arrays, real


def _output_for(X: Any, out: Any, shape: tuple[int, int], real: A.Type) -> Any:
    """Return the array for a result: ``out`` if it is given, else a new array on the device of X."""
    if out is not None:
        return out
    return np.empty(shape, real) if D.device_of(X) is None else D.empty_like(X, shape, real)


def _call_product(
    kernel: Kernel | str, context: Context, name: str, out: Any, shape: tuple[int, int], arrays: dict[str, Any]
) -> Any:
    chosen, target = as_kernel(kernel), D.output_matrix(out, shape, context)
    with chosen.failure:
        views = [A.view(array) for array in arrays.values()]
        context.call("mercer_kernel_" + name, context.handle, A.view(target), chosen.struct, *views)
    return out


def kernel_matrix(
    X: Any, Z: Any, kernel: Kernel | str, *, out: Any = None, precision: str | None = None,
    n_jobs: int | None = None, device: str | None = None,
) -> Any:
    """Compute the kernel matrix K(X, Z) of shape (m, p) for the rows of X (m, d) and Z (p, d).

    The result is written to ``out`` if it is given. float64, float32, float16 and uint8 arrays with contiguous rows are
    not copied; other types are converted. ``precision`` is "float32", "float64" or "auto": float64 if X or Z is
    float64. Arrays of PyTorch, CuPy or JAX on a GPU are used in place, and the result is on the same GPU. The default
    ``device`` is the device of the arrays. See :class:`Context` for the other parameters.

    >>> kernel_matrix([[0.0], [1.0]], [[0.0]], "laplace:bandwidth=1").round(4)
    array([[1.    ],
           [0.3679]])
    """
    context = shared_context(n_jobs, device or D.device_argument(X, Z, out))
    arrays, real = _operands(context, precision, X=X, Z=Z)
    shape = arrays["X"].shape[0], arrays["Z"].shape[0]
    return _call_product(kernel, context, "eval", _output_for(X, out, shape, real), shape, arrays)


def kernel_matmul(
    X: Any, Z: Any, W: Any, kernel: Kernel | str, *, out: Any = None, precision: str | None = None,
    n_jobs: int | None = None, device: str | None = None, arithmetic: str | None = None,
) -> Any:
    """Compute K(X, Z) W of shape (m, c), or (m,) if W is 1-d, without forming K(X, Z).

    W has the shape (p, c) or (p,). See :func:`kernel_matrix` and :class:`Context` for the other parameters.

    >>> rng = np.random.default_rng(0)
    >>> X, Z, W = rng.normal(size=(500, 20)), rng.normal(size=(300, 20)), rng.normal(size=(300, 3))
    >>> kernel_matmul(X, Z, W, "gaussian:bandwidth=5").shape
    (500, 3)
    """
    context = shared_context(n_jobs, device or D.device_argument(X, Z, W, out), arithmetic)
    given = A.as_array(W, "W") if D.device_of(W) is None else W
    flat = given.ndim == 1
    column = given[:, np.newaxis] if flat and isinstance(given, np.ndarray) else given
    arrays, real = _operands(context, precision, X=X, Z=Z, W=column)
    shape = arrays["X"].shape[0], arrays["W"].shape[1]
    result = _call_product(kernel, context, "matmul", _output_for(X, out, shape, real), shape, arrays)
    return result[:, 0] if flat and out is None else result


def median_distance(
    X: Any, *, kernel: Kernel | str | None = None, random_state: Any = 0, n_jobs: int | None = None
) -> float:
    """Compute the median distance between rows of X, a starting value for the bandwidth.

    At most 2000 random rows are used. Distances are Euclidean; with ``kernel``, they are the distances that the kernel
    depends on.

    >>> median_distance([[0.0, 0.0], [3.0, 4.0]])
    5.0
    >>> median_distance([[0.0, 0.0], [3.0, 4.0]], kernel="laplace-l1:bandwidth=1")
    7.0
    """
    x, context, result, seed = A.points(X, "X"), shared_context(n_jobs), C.c_double(), seed_from(random_state)
    context.call("mercer_median_distance", context.handle, result, distances_of(kernel), A.view(x), seed)
    return result.value
