# SPDX-License-Identifier: BSD-3-Clause
"""What happens to samples before the kernel sees them: the library's preprocessing, fitted to arrays."""

from __future__ import annotations

import ctypes as C
from typing import Any

import numpy as np

from . import _arrays as A
from . import _library as L
from ._arrays import Array
from ._context import Context, release_with, shared_context
from ._kernels import Kernel


def _free(handle: C.c_void_p, _context: Context) -> None:
    L.lib.mercer_preprocess_free(handle)


def is_identity(handle: Any) -> bool:
    """Whether samples pass as they are: no preprocessing, "none", or a factor that is in the kernel's bandwidth."""
    return not handle or L.lib.mercer_preprocess_spec(handle) == b"none" or bool(L.lib.mercer_preprocess_kernel(handle))


def apply(context: Context, handle: Any, X: Array, real: A.Type) -> Array:
    """X (n, d) as the kernel sees it: doubles become ``real``, after the preprocessing."""
    single = real == np.float32 and X.dtype == np.float64
    if is_identity(handle):
        return A.points(X, "X", real) if single else X
    dtype = np.dtype(np.float64 if X.dtype == np.float64 and not single else np.float32)
    x, out = A.points(X, "X"), np.empty(X.shape, dtype)
    context.call("mercer_preprocess_apply", handle, C.byref(A.view(out)), C.byref(A.view(x)))
    return out


class Preprocess:
    """A preprocessing, "auto", "standardise", "scale:factor=0.1", ..., fitted to X."""

    def __init__(self, spec: str | None, X: Array, n_jobs: int | None) -> None:
        self.context, self.handle = shared_context(n_jobs), C.c_void_p()
        text = L.text("none" if spec is None else spec, "preprocess")
        x = A.points(X, "X")
        view, context = A.view(x), self.context
        context.call("mercer_preprocess_fit_matrix", C.byref(self.handle), context.handle, text, C.byref(view))
        release_with(self, _free, self.handle, self.context)

    def fold(self, kernel: Kernel) -> Kernel:
        """The kernel with the factor of "scale" in its bandwidth, so that bytes stay bytes; else as it is."""
        struct, folded = L.mercer_kernel.from_buffer_copy(kernel.struct), C.c_int()
        self.context.call("mercer_preprocess_fold", self.handle, C.byref(struct), C.byref(folded))
        return Kernel._of_struct(struct) if folded.value else kernel

    def apply(self, X: Array, real: A.Type) -> Array:
        """X as the kernel sees it."""
        return apply(self.context, self.handle, X, real)
