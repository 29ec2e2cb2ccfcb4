# SPDX-License-Identifier: BSD-3-Clause
"""ctypes bindings from the tables in _library.py, loading of the library, its errors as exceptions, and the program.

tools/make-python-library explains the type codes of the tables.
"""

from __future__ import annotations

import ctypes as C
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_KINDS = [None, C.c_int, C.c_int32, C.c_int64, C.c_uint64, C.c_size_t, C.c_double, C.c_char, C.c_char_p, C.c_void_p]
_SCALARS: dict[str, Any] = dict(zip("vilqQzdcsp", _KINDS, strict=True))
_module: dict[str, Any] = {}  # namespace of _library.py, set by bind


class _Struct(C.Structure):
    """Struct of the C headers. The constructor sets struct_size; all other fields are 0 unless given."""

    def __init__(self, *values: Any, **named: Any) -> None:
        super().__init__(*values, **named)
        if not values and self._fields_[0][0] == "struct_size":
            self.struct_size = named.get("struct_size", C.sizeof(self))


def _type(code: str) -> Any:
    if code in _SCALARS:
        return _SCALARS[code]
    if code.startswith("*"):
        return C.POINTER(_type(code[1:]))
    if code.endswith(")"):
        result, arguments = _call(code)
        return C.CFUNCTYPE(C.c_void_p if result is C.c_char_p else result, *arguments)
    array = re.fullmatch(r"([a-z])(\d+)", code)
    return _SCALARS[array.group(1)] * int(array.group(2)) if array else _module["mercer_" + code]


def _call(code: str) -> tuple[Any, list[Any]]:
    result, _, arguments = code[:-1].partition("(")
    return _type(result), [_type(part) for part in arguments.split(",") if part]


def _entries(text: str) -> list[list[str]]:
    return [entry.split("=", 1) for entry in text.split()]


def _lines(text: str) -> list[tuple[str, list[list[str]]]]:
    parts = re.split(r"(?m)^(\w+): ", text)[1:]
    return [(name, _entries(body)) for name, body in zip(parts[::2], parts[1::2], strict=True)]


def bind(module: dict[str, Any]) -> None:
    """Add constants, types and the library (as ``lib``) to the namespace of _library.py, which has the four tables."""
    global _module
    _module = module
    for _name, values in _lines(module["ENUMS"]):
        module.update((key, int(value)) for key, value in values)
    structs = _lines(module["STRUCTS"])
    module.update(("mercer_" + name, type("mercer_" + name, (_Struct,), {})) for name, _fields in structs)
    module.update(("mercer_" + name, _type(code)) for name, code in _entries(module["CALLBACKS"]))
    for name, entries in structs:
        module["mercer_" + name]._fields_ = [(field, _type(code)) for field, code in entries]
    module["lib"] = _load(_entries(module["FUNCTIONS"]))


def _load(functions: list[list[str]]) -> C.CDLL:
    """Load the library of the package, or the system library if the package has none, as in Debian.

    MERCER_LIBRARY overrides the path, for work on Mercer itself.
    """
    name = "libmercer.dylib" if sys.platform == "darwin" else "libmercer.so"
    inside = Path(__file__).parent / "lib"
    path = os.environ.get("MERCER_LIBRARY") or (str(inside / name) if inside.exists() else "libmercer.so.0")
    try:
        library = C.CDLL(path)
    except OSError as error:
        raise ImportError(f"Mercer's library cannot be loaded from {path}: {error}") from error
    for function, code in functions:
        try:
            entry = getattr(library, "mercer_" + function)
        except AttributeError:
            raise ImportError(f"{path} has no mercer_{function}; it is from a different version than this package") from None
        entry.restype, entry.argtypes = _call(code)
    return library


_EXCEPTIONS: dict[str, type[Exception]] = {
    "DTYPE": TypeError, "MEMORY": MemoryError, "UNSUPPORTED": NotImplementedError, "NUMERIC": FloatingPointError,
    "CALLBACK": RuntimeError, "INTERNAL": RuntimeError, "IO": OSError, "MISSING": FileNotFoundError,
}


# Names of options for fields of mercer_fit_options, where they differ from the names of the fields.
FIT_NAMES = {
    "validation.data": "validation", "validation.fraction": "validation_fraction", "kernel.spec": "kernel",
    "kernel.function": "kernel_function", "centers.count": "centers", "centers.method": "center_method",
    "centers.given": "given_centers", "centers.type": "center_type", "centers.iterations": "center_iterations",
    "centers.batch": "center_batch",
}
# Fields of the C structs that have other names in Python.
_RENAMED = {
    **FIT_NAMES, "centers.given": "centers", "kernel.function": "kernel", "data.samples": "samples", "run.memory": "memory",
    "lambda": "ridge", "validation_X": "validation",
}
_NAMES = re.compile(rf"\b(?:{'|'.join(map(re.escape, _RENAMED))})\b")


def translate_message(message: str) -> str:
    """Rewrite a message of the library for Python: without the name of the C struct, with Python's names.

    >>> translate_message("options: lambda is -1, it must be >= 0")
    'ridge is -1, it must be >= 0'
    """
    message = re.sub(r"^(?:options|arrays|source)(?:: train)?: ", "", message)
    message = re.sub(r"^batch is ", "batch_size is ", message)
    return _NAMES.sub(lambda found: _RENAMED[found.group()], message)


def check(status: int, context: Any) -> None:
    """Raise an exception with the library's message if ``status`` is not OK; the type is ValueError by default.

    The attribute ``field`` of the exception is the name of the invalid option (mercer_last_error_field), or "".
    """
    if status != 0:
        lib, kinds = _module["lib"], {_module["ERROR_" + name]: kind for name, kind in _EXCEPTIONS.items()}
        message = lib.mercer_last_error(context) or lib.mercer_status_string(status)
        error = kinds.get(status, ValueError)(translate_message(message.decode("utf-8", "replace")))
        error.field = lib.mercer_last_error_field(context).decode()
        raise error


def fields(struct: Any) -> list[str]:
    """Return the names of a struct's fields, except struct_size."""
    return [entry[0] for entry in struct._fields_ if entry[0] != "struct_size"]


def as_dict(struct: Any) -> dict[str, Any]:
    """Return the fields of a struct, except struct_size, with decoded texts."""
    values = {name: getattr(struct, name) for name in fields(struct)}
    return {name: v.decode("utf-8", "replace") if isinstance(v, bytes) else v for name, v in values.items()}


def text(value: str | os.PathLike[str], name: str) -> bytes:
    """Encode a text or path for C, where a zero byte would end it."""
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"{name} must be a str, not {type(value).__name__}")
    raw = os.fsencode(value)
    if b"\0" in raw:
        raise ValueError(f"{name} contains a zero byte")
    return raw


def program() -> str:
    """Return the path of the mercer program in the package; if the package has none, the path of the installed program.

    MERCER_PROGRAM overrides the path, for work on Mercer itself.
    """
    inside = Path(__file__).parent / "bin" / "mercer"
    path = os.environ.get("MERCER_PROGRAM") or (str(inside) if inside.parent.exists() else shutil.which("mercer") or str(inside))
    if not os.access(path, os.X_OK):
        raise FileNotFoundError(f"the mercer program is missing: {path}")
    return path


def run(arguments: Sequence[str]) -> None:
    """Run the mercer program; if it fails, raise an OSError with the last line of its stderr."""
    done = subprocess.run([program(), *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"mercer {arguments[0]} exited with {done.returncode}"]
        raise OSError(lines[-1])
