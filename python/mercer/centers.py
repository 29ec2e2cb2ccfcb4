# SPDX-License-Identifier: BSD-3-Clause
"""Selection of centers from the rows of a matrix.

All functions except :func:`nearest` return an array of shape (n_centers, d) in the type of X: uint8 stays uint8, other
integers become floats.
"""

from __future__ import annotations

import ctypes as C
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _arrays as A
from . import _library as L
from ._arrays import Array
from ._context import Context, Failure, as_integer, fill_options, seed_from, shared_context
from ._kernels import Kernel, as_kernel, distances_of

__all__ = ["balanced", "choose", "kmeans", "nearest", "random", "rpcholesky"]


def choose(
    X: Any, n_centers: int, method: str = "random", *, kernel: Kernel | str | None = None, labels: Any = None,
    iterations: int = 0, batch: int = 0, memory: int | str | None = None, random_state: Any = None,
    n_jobs: int | None = None, callback: Callable[[int, int, float], Any] | None = None, context: Context | None = None,
) -> Array:
    """Choose centers from X (n, d) by the named method; this module has a function for each method.

    "rpcholesky" requires ``kernel``; "balanced" requires ``labels`` (n,), class numbers from 0. "kmeans" runs at most
    ``iterations`` rounds on batches of ``batch`` rows (-1: all rows, Lloyd's algorithm); 0: automatic.
    ``callback(done, total, error)`` reports progress. If it returns a true value, "kmeans" stops with the current
    centers and "rpcholesky" raises a RuntimeError.

    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> choose(X, 10, "kmeans", random_state=0).shape
    (10, 3)
    """
    x = A.points(X, "X")
    if not 1 <= as_integer(n_centers, "n_centers") <= x.shape[0]:
        raise ValueError(f"n_centers is {n_centers}; it must be between 1 and the {x.shape[0]} rows of X")
    numbers = {"iterations": iterations, "batch": batch, "memory": memory, "seed": seed_from(random_state)}
    options = fill_options(L.mercer_center_options(), {"method": method, **numbers})
    if kernel is not None:
        options.kernel = C.pointer(as_kernel(kernel).struct)
    if labels is not None:
        classes = A.class_numbers(labels, x.shape[0])
        options.labels, options.classes = A.integers(classes), int(classes.max(initial=0)) + 1
    own, failure = context or shared_context(n_jobs), Failure()

    @failure.guard
    def progress(_user: Any, pointer: Any) -> bool:
        now = pointer.contents
        return own.interrupted or (callback is not None and bool(callback(now.done, now.total, now.error)))

    options.progress = L.mercer_progress_callback(progress)
    result = np.empty((int(n_centers), x.shape[1]), x.dtype)
    with failure:
        own.call("mercer_choose_centers", own.handle, A.view(result), A.view(x), options, None)
    return result


def random(X: Any, n_centers: int, *, random_state: Any = None, **options: Any) -> Array:
    """Draw rows without replacement.

    >>> random(np.arange(10.0).reshape(5, 2), 2, random_state=0).shape
    (2, 2)
    """
    return choose(X, n_centers, "random", random_state=random_state, **options)


def kmeans(X: Any, n_centers: int, *, random_state: Any = None, **options: Any) -> Array:
    """Compute cluster means by mini-batch k-means with k-means++ initialization, rounded if X is uint8.

    >>> np.sort(kmeans([[0.0], [0.2], [10.0], [10.2]], 2, random_state=0), axis=0).round(3)
    array([[ 0.1],
           [10.1]])
    """
    return choose(X, n_centers, "kmeans", random_state=random_state, **options)


def rpcholesky(X: Any, n_centers: int, kernel: Kernel | str, *, random_state: Any = None, **options: Any) -> Array:
    """Choose rows by randomly pivoted Cholesky, which prefers rows that the rows chosen so far approximate badly.

    >>> rpcholesky(np.eye(6), 3, "laplace:bandwidth=1", random_state=0).shape
    (3, 6)
    """
    return choose(X, n_centers, "rpcholesky", kernel=kernel, random_state=random_state, **options)


def balanced(X: Any, labels: Any, n_centers: int, *, random_state: Any = None, **options: Any) -> Array:
    """Draw rows at random: the same number from each class, or all rows of a class that has fewer.

    ``labels`` may be of any type that can be sorted.

    >>> 7.0 in balanced(np.arange(8.0).reshape(8, 1), list("aaaaaaab"), 2, random_state=0)
    True
    """
    numbers = np.unique(A.as_array(labels, "labels"), return_inverse=True)[1].reshape(-1)
    return choose(X, n_centers, "balanced", labels=numbers, random_state=random_state, **options)


def nearest(
    X: Any, Z: Any, *, kernel: Kernel | str | None = None, n_jobs: int | None = None
) -> tuple[Array, Array]:
    """Find the nearest row of Z for every row of X, and return its index and its squared distance.

    If several rows are equally near, the first of them is returned. With ``kernel``, distances are those that the
    kernel depends on, and they are not squared.

    >>> nearest([[0.0], [9.0]], [[1.0], [10.0]])
    (array([0, 1], dtype=int32), array([1., 1.]))
    >>> nearest([[0.0, 0.0]], [[3.0, 3.0], [0.0, 5.0]], kernel="laplace-l1:bandwidth=1")
    (array([1], dtype=int32), array([5.]))
    """
    x, z, context = A.points(X, "X"), A.points(Z, "Z"), shared_context(n_jobs)
    index, distances = np.empty(x.shape[0], np.int32), np.empty(x.shape[0])
    out = context.handle, A.integers(index), A.doubles(distances)
    context.call("mercer_nearest_rows", *out, distances_of(kernel), A.view(x), A.view(z))
    return index, distances
