# SPDX-License-Identifier: BSD-3-Clause
"""Kernel functions, kernel matrices and products with them."""

from __future__ import annotations

import ctypes as C
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _arrays as A
from . import _library as L
from ._arrays import Array
from ._context import seed_from, shared_context


class Kernel:
    """A kernel function K(x, z).

    Parameters
    ----------
    spec : str
        Name and parameters: ``"laplace:bandwidth=10"``. The functions and their parameters are listed in
        docs/python.md.
    **parameters : float
        Parameters that the text does not have.

    Examples
    --------
    >>> from mercer import Kernel
    >>> Kernel("gaussian", bandwidth=2.0)
    Kernel('gaussian:bandwidth=2')
    >>> Kernel("laplace:bandwidth=2")([[0.0, 0.0]], [[0.0, 0.0], [3.0, 4.0]]).round(4)
    array([[1.    , 0.0821]])
    """

    def __init__(self, spec: str, **parameters: float) -> None:
        if not isinstance(spec, str):
            raise TypeError(f"a kernel is named by a text like 'laplace:bandwidth=10', not by {type(spec).__name__}")
        for name, value in parameters.items():
            if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
                raise TypeError(f"{name} of the kernel must be a number, not {value!r}")
            number = repr(int(value)) if float(value).is_integer() and abs(value) < 2**53 else repr(float(value))
            spec += (":" if ":" not in spec else ",") + f"{name}={number}"
        self.struct = L.mercer_kernel()
        self._function: Any = None
        self._failure: list[BaseException] = []  # what a Python function raised
        with shared_context().lock:
            context = shared_context().handle
            L.check(L.lib.mercer_kernel_parse(C.byref(self.struct), context, L.text(spec, "kernel")), context)

    @classmethod
    def from_function(cls, function: Callable[..., Array], on: str = "distance") -> Kernel:
        """A kernel given by a Python function.

        Parameters
        ----------
        function : callable
            ``function(r)`` of a block of distances, or ``function(xz, xx, zz)`` of a block of inner products and
            the squared norms of its rows and columns; returns a block of kernel values. It must be symmetric in
            x and z. Such a kernel is much slower than a built-in one.
        on : {"distance", "inner"}

        Examples
        --------
        >>> import numpy as np
        >>> from mercer import Kernel
        >>> Kernel.from_function(lambda r: np.exp(-r))([[0.0]], [[1.0]]).round(4)
        array([[0.3679]])
        """
        ids = {"distance": L.KERNEL_CALLBACK_DISTANCE, "inner": L.KERNEL_CALLBACK_INNER}
        if on not in ids:
            raise ValueError(f"on is {on!r}; valid: 'distance', 'inner'")
        if not callable(function):
            raise TypeError("function must be callable")
        self = cls.__new__(cls)
        self.struct, self._failure = L.mercer_kernel(), []

        def call(_user: Any, pointer: Any) -> int:
            try:
                block = pointer.contents
                memory = np.ctypeslib.as_array(block.values, (block.rows, block.ld))[:, : block.cols]
                if on == "distance":
                    memory[...] = function(memory.copy())
                else:
                    xx = np.ctypeslib.as_array(block.x_sqnorms, (block.rows,)).copy()
                    zz = np.ctypeslib.as_array(block.z_sqnorms, (block.cols,)).copy()
                    memory[...] = function(memory.copy(), xx[:, np.newaxis], zz[np.newaxis, :])
                return 0
            except BaseException as error:
                self._failure.append(error)
                return 1

        self._function = L.mercer_kernel_callback(call)
        context = shared_context()
        context.call(
            "mercer_kernel_from_callback",
            C.byref(self.struct),
            context.handle,
            ids[on],
            self._function,
            None,
        )
        return self

    @classmethod
    def _of_struct(cls, struct: L.mercer_kernel) -> Kernel:
        self = cls.__new__(cls)
        self.struct, self._function, self._failure = L.mercer_kernel(), None, []
        C.memmove(C.byref(self.struct), C.byref(struct), C.sizeof(struct))
        return self

    def reraise(self, error: Exception) -> None:
        """Raises what the kernel's own Python function raised, if it did, instead of the library's message."""
        if self._failure:
            cause = self._failure[0]
            self._failure.clear()
            raise cause from error

    def __str__(self) -> str:
        if self._function is not None:
            return "callback"
        context = shared_context()
        with context.lock:
            return L.read_text(
                lambda room, size, needed: L.lib.mercer_kernel_print(
                    context.handle, room, size, needed, C.byref(self.struct)
                ),
                context.handle,
            )

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
        context = shared_context(n_jobs)
        x, real = _operands(precision, X=X)
        out = np.empty((x["X"].shape[0], 1), real)
        _run(self, context, "mercer_kernel_diagonal", out, x["X"])
        return out[:, 0]


def as_kernel(kernel: Kernel | str) -> Kernel:
    """A kernel from itself or its text."""
    return kernel if isinstance(kernel, Kernel) else Kernel(kernel)


def _operands(precision: str | None, **named: Any) -> tuple[dict[str, Array], np.dtype[Any]]:
    arrays = {name: A.points(values, name) for name, values in named.items()}
    widest = np.dtype(np.float64 if any(a.dtype == np.float64 for a in arrays.values()) else np.float32)
    real = A.weight_type(precision, widest)
    if real == np.float32:  # one double operand would make all arithmetic double
        for name, array in arrays.items():
            if array.dtype == np.float64:
                arrays[name] = A.points(array, name, real)
    return arrays, real


def _run(kernel: Kernel, context: Any, name: str, out: Array, *operands: Array) -> None:
    views = [A.view(array) for array in operands]
    try:
        context.call(
            name, context.handle, C.byref(A.view(out)), C.byref(kernel.struct), *(C.byref(one) for one in views)
        )
    except Exception as error:
        kernel.reraise(error)
        raise


def _output(out: Array | None, shape: tuple[int, int], real: np.dtype[Any]) -> Array:
    if out is None:
        return np.empty(shape, real)
    if not isinstance(out, np.ndarray) or out.ndim != 2 or out.shape != shape:
        raise ValueError(f"out must be an array of shape {shape}")
    if out.dtype not in (np.float32, np.float64):
        raise TypeError(f"out has the type {out.dtype}; float32 or float64 is needed")
    if not out.flags.writeable or A.rows_contiguous(out) is not out:
        raise ValueError("out must be writeable, with contiguous rows")
    return out


def kernel_matrix(
    X: Any,
    Z: Any,
    kernel: Kernel | str,
    *,
    out: Array | None = None,
    precision: str | None = None,
    n_jobs: int | None = None,
    device: str | None = None,
) -> Array:
    """K(X, Z), every pair of rows.

    Parameters
    ----------
    X : array of shape (m, d)
        float64, float32, float16 and uint8 are used as they are, without a copy if rows are contiguous; other
        types are converted.
    Z : array of shape (p, d)
    kernel : Kernel or str
    out : array of shape (m, p), optional
        Where to write the result.
    precision : {"auto", "float32", "float64"}
        "auto": double if X or Z is float64.
    n_jobs, device
        See :class:`Context`.

    Returns
    -------
    K : array of shape (m, p)

    Examples
    --------
    >>> from mercer import kernel_matrix
    >>> kernel_matrix([[0.0], [1.0]], [[0.0]], "laplace:bandwidth=1").round(4)
    array([[1.    ],
           [0.3679]])
    """
    chosen = as_kernel(kernel)
    arrays, real = _operands(precision, X=X, Z=Z)
    result = _output(out, (arrays["X"].shape[0], arrays["Z"].shape[0]), real)
    _run(chosen, shared_context(n_jobs, device), "mercer_kernel_eval", result, arrays["X"], arrays["Z"])
    return result


def kernel_matmul(
    X: Any,
    Z: Any,
    W: Any,
    kernel: Kernel | str,
    *,
    out: Array | None = None,
    precision: str | None = None,
    n_jobs: int | None = None,
    device: str | None = None,
) -> Array:
    """K(X, Z) W without forming K(X, Z).

    Parameters
    ----------
    X : array of shape (m, d)
    Z : array of shape (p, d)
    W : array of shape (p, c) or (p,)
    kernel : Kernel or str
    out, precision, n_jobs, device
        As for :func:`kernel_matrix`.

    Returns
    -------
    Y : array of shape (m, c), or (m,) if W is 1-d

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import kernel_matmul
    >>> rng = np.random.default_rng(0)
    >>> X, Z, W = rng.normal(size=(500, 20)), rng.normal(size=(300, 20)), rng.normal(size=(300, 3))
    >>> kernel_matmul(X, Z, W, "gaussian:bandwidth=5").shape
    (500, 3)
    """
    chosen = as_kernel(kernel)
    flat = A.take(W, "W").ndim == 1
    W = A.take(W, "W")[:, np.newaxis] if flat else W
    arrays, real = _operands(precision, X=X, Z=Z, W=W)
    if arrays["W"].dtype not in (np.float32, np.float64):
        arrays["W"] = A.points(arrays["W"], "W", real)
    result = _output(out, (arrays["X"].shape[0], arrays["W"].shape[1]), real)
    _run(chosen, shared_context(n_jobs, device), "mercer_kernel_matmul", result, *(arrays[k] for k in "XZW"))
    return result[:, 0] if flat and out is None else result


def median_distance(X: Any, *, random_state: Any = 0, n_jobs: int | None = None) -> float:
    """The median distance between rows of X (of at most 2000 random ones): a bandwidth to start from.

    Examples
    --------
    >>> from mercer import median_distance
    >>> median_distance([[0.0], [1.0], [3.0]])
    2.0
    """
    x, context, result = A.points(X, "X"), shared_context(n_jobs), C.c_double()
    context.call("mercer_median_distance", context.handle, C.byref(result), C.byref(A.view(x)), seed_from(random_state))
    return result.value
