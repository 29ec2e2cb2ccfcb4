# SPDX-License-Identifier: BSD-3-Clause
"""Contexts: threads, backend and memory of library calls, and a lock that allows one call at a time.

A process may exit or fork while other threads are inside the library. At exit, objects that such a thread may still use
are not released, and no new calls start. Calls that could call back into the finalized interpreter are stopped. The
child of a fork has none of these threads. It gets new locks, and can use all objects that no thread was modifying.
"""

from __future__ import annotations

import atexit
import ctypes as C
import numbers
import os
import signal
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from . import _library as L
from ._runtime import FIT_NAMES


class MercerWarning(UserWarning):
    """Warning about an input that was ignored, dropped, rounded, guessed or overridden.

    Its attribute ``field`` is the option (mercer_warning) or the column concerned, or "".
    """

    field = ""


def warn(found: Iterable[tuple[str, str]]) -> None:
    """Issue warnings, given as (field, text), attributed to the first caller outside this package."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "mercer":
        frame, level = frame.f_back, level + 1
    for field, text in found:
        warning = MercerWarning(text)
        warning.field = field
        warnings.warn(warning, stacklevel=level)


class Context:
    """Environment of library calls: threads, backend and arithmetic.

    The lock of a context ensures that only one thread at a time uses the context. All objects made from a context hold
    a reference to it.

    Parameters
    ----------
    n_jobs : int or None
        Number of threads. None: OMP_NUM_THREADS if it is set, else one per processor that this process may use.
        Negative: one per processor. Results do not depend on the number.
    device : {"cpu", "cuda", "cuda:N", "auto", "reference"}
        "auto": a GPU if there is one, else the CPU. "reference": slow scalar code in double precision, for comparisons.
    arithmetic : {"auto", "accurate", "fast"}
        Arithmetic of kernel products in float32. "fast": a GPU may round points and kernel values to half precision.
        "auto": accurate, except that the plan of a training run may choose fast if the samples do not justify higher
        precision and held-out rows confirm it.
    """

    def __init__(self, n_jobs: int | None = None, device: str | None = None, arithmetic: str | None = None) -> None:
        backend = None if device is None else L.text(device, "device")
        options = L.mercer_context_options(threads=thread_count(n_jobs), backend=backend)
        if arithmetic is not None:
            options.arithmetic = L.text(arithmetic, "arithmetic")
        self.handle, self.made_with, self.lock = C.c_void_p(), (n_jobs, device, arithmetic), threading.RLock()
        try:
            L.check(L.lib.mercer_context_create(self.handle, options), None)
        except NotImplementedError as error:
            raise ValueError(f"device: {error}") from None
        info = L.mercer_context_info()
        L.check(L.lib.mercer_context_query(self.handle, info), self.handle)
        self.stream: int | None = info.stream  # CUDA stream; None on the CPU
        self._inside: str | None = None  # name of the library function that is running, or None
        self._handler: Any = None  # during a library call, the SIGINT handler from before the call
        self._torn = False  # True in a forked child if another thread was modifying objects of this context
        self.interrupted = False
        release_with(self, L.lib.mercer_context_free, self.handle)
        _contexts[id(self)] = weakref.ref(self)
        release_with(self, _contexts.pop, id(self), None)

    def call(self, name: str, *arguments: Any) -> None:
        """Call a library function that returns a status; raise its error, and issue its warnings as MercerWarning."""
        with self.lock:
            over = _ending is not None and _ending != threading.get_ident()
            if not over:
                try:
                    self._call(name, *arguments)
                finally:
                    self._warn()
        while over:  # only daemon threads get here at exit; they end with the process
            time.sleep(3600)

    def _call(self, name: str, *arguments: Any) -> None:
        if self._inside:  # the lock is reentrant, so this call comes from a callback of the running call
            raise RuntimeError("a callback cannot use the model or context of the call that runs it")
        if self._torn:
            raise RuntimeError(
                "another thread was changing this model when the process was forked; "
                "load the model in the child, or start the child earlier"
            )
        self._inside, self.interrupted = name, False
        try:
            with self._deferred_interrupt():
                L.check(getattr(L.lib, name)(*arguments), self.handle)
        finally:
            self._inside = None

    def _warn(self) -> None:
        """Issue the warnings that the library recorded as Python warnings."""
        found, field = [], C.c_char_p()
        while text := L.lib.mercer_warning(self.handle, len(found), field):
            found.append(((field.value or b"").decode("utf-8", "replace"), text.decode("utf-8", "replace")))
        if found:
            L.lib.mercer_clear_warnings(self.handle)
            warn(found)

    @contextmanager
    def _deferred_interrupt(self) -> Iterator[None]:
        """Make Control-C set ``interrupted`` during a library call; callbacks check it and stop the call.

        An exception raised on entry to a callback, before its own code runs, would be lost. The original handler, which
        usually raises KeyboardInterrupt, is therefore called after the library call.
        """
        usual = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is not threading.main_thread() or not callable(usual):
            yield
            return

        def record_interrupt(_number: int, _frame: Any) -> None:
            self.interrupted = True

        self._handler = usual
        signal.signal(signal.SIGINT, record_interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, usual)
            self._handler = None
            if self.interrupted:
                usual(signal.SIGINT, None)

    def text(self, name: str, what: Any) -> str:
        """Return the text that a function (context, text, size, needed, what) writes; a first call returns the size."""
        needed = C.c_size_t(0)
        with self.lock:
            getattr(L.lib, name)(self.handle, None, 0, needed, what)
            buffer = C.create_string_buffer(max(1, needed.value))
            self.call(name, self.handle, buffer, len(buffer), needed, what)
        return buffer.value.decode("utf-8", "replace")

    def info(self) -> dict[str, Any]:
        """Return backend, instruction set, number of threads, and current and peak memory in bytes."""
        info = L.mercer_context_info()
        self.call("mercer_context_query", self.handle, info)
        return L.as_dict(info)


class Failure:
    """Exception of a callback: stored during the library call, and raised after it."""

    def __init__(self) -> None:
        self.error: BaseException | None = None

    def guard(self, function: Callable[..., Any]) -> Callable[..., int]:
        """Wrap a callback for the library: it returns 1 if the function returns a true value or raises, else 0."""

        def call(*arguments: Any) -> int:
            try:
                return 1 if function(*arguments) else 0
            except BaseException as error:
                self.error = self.error or error
                return 1

        return call

    def __enter__(self) -> None:
        self.error = None

    def __exit__(self, _kind: Any, value: BaseException | None, _trace: Any) -> None:
        if self.error is not None:
            raise self.error from value


_watched: dict[int, Any] = {}
_exiting: list[bool] = []  # not empty when the process is exiting; a list, to which release functions keep a reference


def release_with(owner: Any, function: Any, *arguments: Any) -> None:
    """Call a function when ``owner`` is deleted, but not at exit: other threads may then still use its resources.

    weakref.finalize is not used, because its exit handler fails if other threads create finalizers at the same time.
    """

    def release(reference: Any, watched: dict[int, Any] = _watched, over: list[bool] = _exiting) -> None:
        watched.pop(id(reference), None)
        if not over:
            function(*arguments)

    reference = weakref.ref(owner, release)
    _watched[id(reference)] = reference


# Not a WeakSet: iterating over one fails if another thread adds to it, while copying the values of a dict is atomic.
_contexts: dict[int, weakref.ref[Context]] = {}
_ending: int | None = None  # identifier of the thread that runs the exit handlers; None before exit
# Prefixes of functions that call back into Python, and the seconds that exit waits until a callback stops them.
_CALLS_BACK, _PATIENCE = ("mercer_trainer_", "mercer_fitting_", "mercer_choose_centers"), 10.0
# Prefixes of functions that modify their object. After a fork during such a call, the child has an inconsistent object.
_CHANGES = ("mercer_trainer_", "mercer_fitting_", "mercer_model_set_")


def _live_contexts() -> list[Context]:
    return [context for reference in list(_contexts.values()) if (context := reference()) is not None]


def _after_fork_in_child() -> None:
    for context in _live_contexts():
        if context.lock._is_owned():  # type: ignore[attr-defined]  # the thread that forks continues in the child
            continue
        context.lock = threading.RLock()
        if context._inside is not None:
            context._torn |= context._inside.startswith(_CHANGES)
            context._inside = None
        if context._handler is not None:
            signal.signal(signal.SIGINT, context._handler)
            context._handler = None


@atexit.register
def _at_exit() -> None:
    global _ending
    _ending = threading.get_ident()
    _exiting.append(True)
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        busy = [context for context in _live_contexts() if (context._inside or "").startswith(_CALLS_BACK)]
        for context in busy:
            context.interrupted = True  # makes the next callback stop the call
        if not busy:
            break
        time.sleep(0.001)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)

_local = threading.local()


def shared_context(n_jobs: int | None = None, device: str | None = None, arithmetic: str | None = None) -> Context:
    """Return a cached context of this thread, for calls whose results do not refer to a context."""
    kept: dict[Any, Context] = _local.__dict__.setdefault("contexts", {})
    key = (os.getpid(), thread_count(n_jobs), device or "cpu", arithmetic or "auto")
    if key not in kept:
        kept[key] = Context(n_jobs, device, arithmetic)
    return kept[key]


def as_integer(value: Any, name: str, also: str = "") -> int:
    """Return ``value`` as an int; other types raise a TypeError. ``also``: other valid values, for the message."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer{also}, not {value!r}")
    return int(value)


def thread_count(n_jobs: Any) -> int:
    """Return the number of threads for ``n_jobs``; 0: one per processor.

    joblib and similar packages set OMP_NUM_THREADS in their worker processes, so that the workers together do not start
    more threads than the machine has processors.
    """
    if n_jobs is None:
        said = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
        return int(said) if said.isdecimal() and 0 < int(said) < 2**31 else 0
    if as_integer(n_jobs, "n_jobs", " or None") == 0:
        raise ValueError("n_jobs is 0; use None or -1 for one thread per processor")
    return 0 if n_jobs < 0 else min(int(n_jobs), 2**31 - 1)


def byte_count(memory: int | float | str) -> int:
    """Return the number of bytes for 8000000, "500MB", "8G" or "16GiB", which are parsed as in the mercer program.

    >>> byte_count("16GiB"), byte_count("16G") == byte_count("16GiB"), byte_count("2.5MB")
    (17179869184, True, 2500000)
    """
    if isinstance(memory, bool) or not isinstance(memory, (str, numbers.Real)):
        raise TypeError(f"memory must be a number of bytes, a str or None, not {type(memory).__name__}")
    value = C.c_int64()
    if isinstance(memory, str):
        L.check(L.lib.mercer_parse_bytes(value, None, L.text(memory, "memory")), None)
    elif 1 <= memory < 2**63:
        value.value = int(memory)
    if value.value < 1:
        raise ValueError(f"memory is {memory!r}; it must be at least 1 byte, or None")
    return value.value


def seed_from(random_state: Any) -> int:
    """Return a seed from None (NumPy's global random state), an integer, or a NumPy RandomState or Generator."""
    if random_state is None:
        random_state = np.random.mtrand._rand
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(0, 2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(0, 2**63 - 1))
    seed = as_integer(random_state, "random_state", ", a RandomState, a Generator or None")
    if not 0 <= seed < 2**64:
        raise ValueError(f"random_state is {seed}; it must be between 0 and 2**64 - 1")
    return seed


_SWITCHES = {None: L.AUTO, "auto": L.AUTO, True: L.ON, False: L.OFF}
_FIELDS = {"batch_size": "batch", "ridge": "lambda", "preset": "solver", "random_state": "seed"}
_GROUPS = {name: kind for name, kind in L.mercer_fit_options._fields_ if hasattr(kind, "_fields_")}
# Flat names of the fields of mercer_fit_options, which are nested in groups: {name: (group, field)}.
FIT_FIELDS = {
    FIT_NAMES.get(f"{group}.{field}", field): (group, field)
    for group, kind in _GROUPS.items()
    for field in L.fields(kind)
    if field != "reserved"
}


def field_of(struct: Any, name: str) -> tuple[Any, str]:
    """Return the struct with the field of an option, which for a mercer_fit_options is a group, and the field name."""
    field = _FIELDS.get(name, name)
    if isinstance(struct, L.mercer_fit_options) and field in FIT_FIELDS:
        group, field = FIT_FIELDS[field]
        return getattr(struct, group), field
    return struct, field


def fill_options(struct: Any, options: dict[str, Any]) -> Any:
    """Set fields of an options struct. Values are converted to the types of the fields; None leaves the default.

    >>> options = fill_options(L.mercer_train_options(), {"epochs": 3, "ridge": 0.5, "average": True, "memory": "1kB"})
    >>> options.epochs, getattr(options, "lambda"), options.average == L.ON, options.memory
    (3, 0.5, True, 1000)
    """
    for name, value in options.items():
        owner, field = field_of(struct, name)
        kind = {entry[0]: entry[1] for entry in owner._fields_}.get(field)
        if field == "effort":
            value = 0 if value is None else as_integer(value, name, " or None")
        elif kind is C.c_int:  # mercer_switch
            if not (value is None or isinstance(value, (bool, np.bool_)) or value == "auto"):
                raise ValueError(f"{name} is {value!r}; valid: True, False, None")
            value = _SWITCHES[value if value is None or isinstance(value, str) else bool(value)]
        elif value is None:
            continue
        elif field in ("memory", "spill"):
            value = byte_count(value)
        elif field == "seed":
            value = seed_from(value)
        elif kind is C.c_int64:
            if not -(2**63) <= as_integer(value, name, " or None") < 2**63:
                raise ValueError(f"{name} is {value}: out of range")
        elif kind is C.c_double:
            if isinstance(value, bool) or not isinstance(value, numbers.Real):
                raise TypeError(f"{name} must be a number or None, not {value!r}")
        elif kind is C.c_char_p:
            value = L.text(value, name)
        else:
            raise TypeError(f"unknown option {name!r}")
        setattr(owner, field, value)
    return struct
