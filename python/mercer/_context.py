# SPDX-License-Identifier: BSD-3-Clause
"""Contexts: threads, backend and memory of calls into the library, and the lock that keeps two threads out of one.

A process may end, or fork, while other threads are inside the library. At its end nothing is released that such a
thread may still use, calls that would call back into an interpreter that is gone are stopped, and nobody begins a new
one. A child has none of those threads: it gets fresh locks, and can use what they only read.
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


class MercerWarning(UserWarning):
    """An input was ignored, dropped, rounded, guessed or overridden."""


def warn(texts: Iterable[str]) -> None:
    """Raises warnings that are attributed to the first caller outside this package."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "mercer":
        frame, level = frame.f_back, level + 1
    for text in texts:
        warnings.warn(text, MercerWarning, stacklevel=level)


class Context:
    """What calls into the library run with.

    A context may be used by one thread at a time; the lock sees to that. Everything that is made from a context
    holds a reference to it.

    Parameters
    ----------
    n_jobs : int or None
        Threads; None: OMP_NUM_THREADS, or one for each processor this process may run on; negative: one for each.
        Results do not depend on it.
    device : {"cpu", "cuda", "cuda:N", "auto", "reference"}
        "auto": a GPU if there is one, else the CPU; "reference": plain loops in double, slow, to compare others with.
    arithmetic : {"auto", "accurate", "fast"}
        Of kernel products in float; "fast": a GPU may round points and kernel values to half precision; "auto":
        accurate, but that the plan of a training may take fast where the samples do not justify more, and rows held
        back confirm it.
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
        self.stream: int | None = info.stream  # of a GPU
        self._inside: str | None = None  # the function that is under way
        self._handler: Any = None  # what Control-C usually does, while that waits for the call
        self._torn = False  # a call that changes what it works on was under way in another thread at a fork
        self.interrupted = False
        release_with(self, L.lib.mercer_context_free, self.handle)
        _contexts[id(self)] = weakref.ref(self)
        release_with(self, _contexts.pop, id(self), None)

    def call(self, name: str, *arguments: Any) -> None:
        """Calls a function that returns a status; raises its message, and its warnings as MercerWarning."""
        with self.lock:
            over = _ending is not None and _ending != threading.get_ident()
            if not over:
                try:
                    self._call(name, *arguments)
                finally:
                    self._warn()
        while over:  # a daemon thread: it ends with the process
            time.sleep(3600)

    def _call(self, name: str, *arguments: Any) -> None:
        if self._inside:  # the lock lets its own thread pass; only a callback can come this way
            raise RuntimeError("a callback of a call that is under way cannot use the same model or context")
        if self._torn:
            raise RuntimeError(
                "another thread was training or changing this model when the process was forked; "
                "the child has only a part of that work: load the model here, or start the child before"
            )
        self._inside, self.interrupted = name, False
        try:
            with self._deferred_interrupt():
                L.check(getattr(L.lib, name)(*arguments), self.handle)
        finally:
            self._inside = None

    def _warn(self) -> None:
        """Turns what the library recorded into Python warnings."""
        texts, field = [], C.c_char_p()
        while text := L.lib.mercer_warning(self.handle, len(texts), field):
            texts.append(text.decode("utf-8", "replace"))
        if texts:
            L.lib.mercer_clear_warnings(self.handle)
            warn(texts)

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

        self._handler = usual
        signal.signal(signal.SIGINT, note)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, usual)
            self._handler = None
            if self.interrupted:
                usual(signal.SIGINT, None)

    def text(self, name: str, what: Any) -> str:
        """A text of unknown length from a function (context, text, size, needed, what): its size first, then itself."""
        needed = C.c_size_t(0)
        with self.lock:
            getattr(L.lib, name)(self.handle, None, 0, needed, what)
            room = C.create_string_buffer(max(1, needed.value))
            self.call(name, self.handle, room, len(room), needed, what)
        return room.value.decode("utf-8", "replace")

    def info(self) -> dict[str, Any]:
        """Backend, instruction set, threads, and the bytes held now and at most."""
        info = L.mercer_context_info()
        self.call("mercer_context_query", self.handle, info)
        return L.as_dict(info)


class Failure:
    """What a callback raised: kept while the library is at work, and raised when the call is over."""

    def __init__(self) -> None:
        self.error: BaseException | None = None

    def guard(self, function: Callable[..., Any]) -> Callable[..., int]:
        """The function for the library: 1 if it says something true, or fails."""

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
_over: list[bool] = []  # not empty: the process ends


def release_with(owner: Any, function: Any, *arguments: Any) -> None:
    """Calls a function when ``owner`` is gone, but not at the end of the process: other threads may use it then.

    weakref.finalize does more at the end, and fails if other threads make such objects meanwhile.
    """

    def gone(reference: Any, watched: dict[int, Any] = _watched, over: list[bool] = _over) -> None:
        watched.pop(id(reference), None)
        if not over:
            function(*arguments)

    reference = weakref.ref(owner, gone)
    _watched[id(reference)] = reference


# A WeakSet cannot be gone through while other threads add to it; a list of a dict's values is made in one go.
_contexts: dict[int, weakref.ref[Context]] = {}
_ending: int | None = None  # the thread that ends the process, when it does
_CALLS_BACK, _PATIENCE = ("mercer_trainer_", "mercer_fitting_", "mercer_choose_centers"), 10.0  # functions; seconds
_CHANGES = ("mercer_trainer_", "mercer_fitting_", "mercer_model_set_")  # what they work on


def _living() -> list[Context]:
    return [context for reference in list(_contexts.values()) if (context := reference()) is not None]


def _after_fork_in_child() -> None:
    for context in _living():
        if context.lock._is_owned():  # type: ignore[attr-defined]  # the thread that forked, in a callback, goes on
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
    _over.append(True)
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        busy = [context for context in _living() if (context._inside or "").startswith(_CALLS_BACK)]
        for context in busy:
            context.interrupted = True  # their next callback stops them
        if not busy:
            break
        time.sleep(0.001)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)

_local = threading.local()


def shared_context(n_jobs: int | None = None, device: str | None = None, arithmetic: str | None = None) -> Context:
    """A context of this thread's for calls that leave nothing behind."""
    kept: dict[Any, Context] = _local.__dict__.setdefault("contexts", {})
    key = (os.getpid(), thread_count(n_jobs), device or "cpu", arithmetic or "auto")
    if key not in kept:
        kept[key] = Context(n_jobs, device, arithmetic)
    return kept[key]


def whole(value: Any, name: str, also: str = "") -> int:
    """A value that must be an integer; ``also`` says what else it might have been."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer{also}, not {value!r}")
    return int(value)


def thread_count(n_jobs: Any) -> int:
    """The threads that n_jobs stands for; 0: one for each processor.

    OMP_NUM_THREADS is how joblib and others tell the processes they start what each may use, so that all of them
    together do not start more threads than there are processors.
    """
    if n_jobs is None:
        said = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
        return int(said) if said.isdecimal() and 0 < int(said) < 2**31 else 0
    if whole(n_jobs, "n_jobs", " or None") == 0:
        raise ValueError("n_jobs is 0; use None or -1 for one thread for each processor")
    return 0 if n_jobs < 0 else min(int(n_jobs), 2**31 - 1)


def byte_count(memory: int | float | str) -> int:
    """Bytes from 8000000, "500MB", "8G" or "16GiB", as the program reads them.

    >>> byte_count("16GiB"), byte_count("16G") == byte_count("16GiB"), byte_count("2.5MB")
    (17179869184, True, 2500000)
    """
    if isinstance(memory, bool) or not isinstance(memory, (str, numbers.Real)):
        raise TypeError(f"memory must be a number of bytes, a text or None, not {type(memory).__name__}")
    value = C.c_int64()
    if isinstance(memory, str):
        L.check(L.lib.mercer_parse_bytes(value, None, L.text(memory, "memory")), None)
    elif 1 <= memory < 2**63:
        value.value = int(memory)
    if value.value < 1:
        raise ValueError(f"memory is {memory!r}; it must be at least 1 byte, or None to choose")
    return value.value


def seed_from(random_state: Any) -> int:
    """A seed from None (a fresh one), an integer, or a NumPy RandomState or Generator."""
    if random_state is None:
        random_state = np.random.mtrand._rand
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(0, 2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(0, 2**63 - 1))
    seed = whole(random_state, "random_state", ", a RandomState, a Generator or None")
    if not 0 <= seed < 2**64:
        raise ValueError(f"random_state is {seed}; it must be between 0 and 2**64 - 1")
    return seed


_SWITCHES = {None: L.AUTO, "auto": L.AUTO, True: L.ON, False: L.OFF}
_FIELDS = {"batch_size": "batch", "ridge": "lambda", "preset": "solver", "random_state": "seed"}


def fill(struct: Any, options: dict[str, Any]) -> Any:
    """Sets fields of a struct of options by their types; None is 0, which means: choose.

    >>> options = fill(L.mercer_train_options(), {"epochs": 3, "ridge": 0.5, "average": True, "memory": "1kB"})
    >>> options.epochs, getattr(options, "lambda"), options.average == L.ON, options.memory
    (3, 0.5, True, 1000)
    """
    kinds = {entry[0]: entry[1] for entry in struct._fields_[1:]}
    for name, value in options.items():
        field = _FIELDS.get(name, name)
        kind = kinds.get(field)
        if field == "effort":
            value = 0 if value is None else whole(value, name, " or None")
        elif kind is C.c_int:  # a mercer_switch
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
            if not -(2**63) <= whole(value, name, " or None") < 2**63:
                raise ValueError(f"{name} is {value}: out of range")
        elif kind is C.c_double:
            if isinstance(value, bool) or not isinstance(value, numbers.Real):
                raise TypeError(f"{name} must be a number or None, not {value!r}")
        elif kind is C.c_char_p:
            value = L.text(value, name)
        else:
            raise TypeError(f"unknown option {name!r}")
        setattr(struct, field, value)
    return struct
