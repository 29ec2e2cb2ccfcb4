# SPDX-License-Identifier: BSD-3-Clause
"""Contexts: threads, backend and memory of calls into the library, and the lock that keeps two threads out of one."""

from __future__ import annotations

import ctypes as C
import numbers
import os
import re
import signal
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from . import _library as L


class Context:
    """What calls into the library run with.

    A context may be used by one thread at a time; the lock sees to that. Everything that is made from a context
    holds a reference to it.

    Parameters
    ----------
    n_jobs : int or None
        Threads; None or a negative number: one for each processor this process may run on. Results do not depend
        on it.
    device : {"auto", "cpu", "reference"}
        Where to compute. "reference" is plain loops in double, slow, to judge the others by.
    """

    def __init__(self, n_jobs: int | None = None, device: str | None = None) -> None:
        options = L.mercer_context_options()
        L.lib.mercer_context_options_init(C.byref(options), C.sizeof(options))
        options.threads = thread_count(n_jobs)
        if device is not None and device != "auto":
            options.backend = L.text(device, "device")
        handle = C.c_void_p()
        try:
            L.check(L.lib.mercer_context_create(C.byref(handle), C.byref(options)), None)
        except NotImplementedError as error:
            raise ValueError(f"device: {error}") from None
        self.handle = handle
        self.made_with = (n_jobs, device)
        self.lock = threading.RLock()
        self._inside = False
        self.interrupted = False
        self._free = weakref.finalize(self, L.lib.mercer_context_free, handle)
        self._free.atexit = False  # other handles may still need it; the process ends anyway

    def call(self, name: str, *arguments: Any) -> None:
        """Calls a function that returns a status; raises its message."""
        with self.lock:
            if self._inside:  # the lock lets its own thread pass; only a callback can come this way
                raise RuntimeError("a callback of a call that is under way cannot use the same model or context")
            self._inside, self.interrupted = True, False
            try:
                with self._deferred_interrupt():
                    L.check(getattr(L.lib, name)(*arguments), self.handle)
            finally:
                self._inside = False

    @contextmanager
    def _deferred_interrupt(self) -> Iterator[None]:
        """Control-C sets ``interrupted`` while the library is at work; callbacks see it and stop the call.

        An exception that began inside a callback, before the callback's own code, would be lost. What the signal
        usually does, KeyboardInterrupt, happens when the call has ended.
        """
        usual = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is not threading.main_thread() or not callable(usual):
            yield
            return

        def note(_number: int, _frame: Any) -> None:
            self.interrupted = True

        signal.signal(signal.SIGINT, note)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, usual)
            if self.interrupted:
                usual(signal.SIGINT, None)

    def info(self) -> dict[str, Any]:
        """Backend, instruction set, threads, and the bytes held now and at most."""
        info = L.mercer_context_info(struct_size=C.sizeof(L.mercer_context_info))
        self.call("mercer_context_query", self.handle, C.byref(info))
        return {
            "backend": info.backend.decode(),
            "isa": info.isa.decode(),
            "threads": info.threads,
            "bytes_now": info.bytes_now,
            "bytes_peak": info.bytes_peak,
        }


_local = threading.local()


def shared_context(n_jobs: int | None = None, device: str | None = None) -> Context:
    """A context of this thread's for calls that leave nothing behind."""
    kept: dict[Any, Context] = _local.__dict__.setdefault("contexts", {})
    key = (os.getpid(), thread_count(n_jobs), device or "auto")
    if key not in kept:
        kept[key] = Context(n_jobs, device)
    return kept[key]


def thread_count(n_jobs: Any) -> int:
    """The threads that n_jobs stands for; 0: one for each processor."""
    if n_jobs is None:
        return 0
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, numbers.Integral):
        raise TypeError(f"n_jobs must be an integer or None, not {type(n_jobs).__name__}")
    if n_jobs == 0:
        raise ValueError("n_jobs is 0; use None or -1 for one thread for each processor")
    return 0 if n_jobs < 0 else min(int(n_jobs), 2**31 - 1)


_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


def byte_count(memory: int | float | str | None) -> int:
    """Bytes from 8000000, "8G" or "16GiB"; None is 0: choose.

    >>> byte_count("16GiB"), byte_count("2.5M"), byte_count(None)
    (17179869184, 2500000, 0)
    """
    if memory is None:
        return 0
    if isinstance(memory, str):
        match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]*)?)\s*([kmgt]?i?)b?\s*", memory.lower())
        if match is None or match.group(2) not in _UNITS:
            raise ValueError(f"memory is {memory!r}; give a number of bytes or a text like '8G' or '16GiB'")
        value = float(match.group(1)) * _UNITS[match.group(2)]
    elif isinstance(memory, numbers.Real) and not isinstance(memory, bool):
        value = float(memory)
    else:
        raise TypeError(f"memory must be a number of bytes, a text or None, not {type(memory).__name__}")
    if not 1 <= value < 2**63:
        raise ValueError(f"memory is {memory!r}; it must be at least 1 byte, or None to choose")
    return int(value)


def seed_from(random_state: Any) -> int:
    """A seed from None (a fresh one), an integer, or a NumPy RandomState or Generator."""
    if random_state is None:
        return int(np.random.mtrand._rand.randint(0, 2**31 - 1))
    if isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool):
        seed = int(random_state)
        if not 0 <= seed < 2**64:
            raise ValueError(f"random_state is {seed}; it must be between 0 and 2**64 - 1")
        return seed
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(0, 2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(0, 2**63 - 1))
    raise TypeError(f"random_state must be None, an integer, a RandomState or a Generator, not {random_state!r}")
