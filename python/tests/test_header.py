# SPDX-License-Identifier: BSD-3-Clause
"""The declarations in mercer/_library.py say what include/mercer/mercer.h says: names, types, sizes, offsets."""

import ctypes as C
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from mercer import _library as L

HEADER = Path(__file__).parents[2] / "include" / "mercer" / "mercer.h"
if not HEADER.exists():
    pytest.skip("the C header is not beside these tests", allow_module_level=True)

SOURCE = "".join(HEADER.with_name(name).read_text() for name in ("mercer.h", "advanced.h", "ranks.h"))
WHOLE = re.sub(r"/\*.*?\*/", " ", SOURCE, flags=re.S).replace("\\\n", " ")
TEXT = re.sub(r"^#.*$", " ", WHOLE, flags=re.M)
STRUCTS = dict(re.findall(r"typedef struct (\w+) \{(.*?)\} \1;", TEXT, re.S))
OPAQUE = set(re.findall(r"typedef struct (\w+) \1;", TEXT)) - set(STRUCTS)
ENUMS = dict(re.findall(r"typedef enum (\w+) \{(.*?)\} \1;", TEXT, re.S))
FUNCTIONS = re.findall(r"MERCER_API\s+([\w\s*]+?)(\w+)\s*\(([^;]*)\);", TEXT)

SCALARS = {
    "int": C.c_int,
    "int32_t": C.c_int32,
    "int64_t": C.c_int64,
    "uint64_t": C.c_uint64,
    "size_t": C.c_size_t,
    "double": C.c_double,
}
CALLBACKS = {"mercer_kernel_callback", "mercer_progress_callback", "mercer_log_sink"}


def ctype(declared):
    """The ctypes type that stands for a C type."""
    constant = declared.startswith("const ")
    words = declared.replace("const", " ").split("*")
    base, stars = " ".join(words[0].split()), len(words) - 1
    if base in CALLBACKS:
        return getattr(L, base)
    if base in OPAQUE or base == "void":
        return None if base == "void" and stars == 0 else C.POINTER(C.c_void_p) if stars == 2 else C.c_void_p
    if base == "char":  # what the library writes into is no Python text
        return C.POINTER(C.c_char_p) if stars == 2 else C.c_char_p if constant else C.c_void_p
    inner = SCALARS.get(base) or (C.c_int if base in ENUMS else getattr(L, base))
    return C.POINTER(inner) if stars else inner


def declarations(body):
    """(C type, name, array length) of every field of a struct; function pointers have the type 'function'."""
    for line in (part.strip() for part in body.split(";")):
        if not line:
            continue
        pointer = re.match(r".*\(\*(\w+)\)\(", line, re.S)
        if pointer:
            yield "function", pointer.group(1), None
            continue
        kind, names = re.match(r"((?:const\s+)?\w+(?:\s*\*\s*const)?)\s*(.*)", line, re.S).groups()
        for name in names.split(","):
            stars, word, length = re.match(r"\s*((?:\*|\s|const\b)*)(\w+)(?:\[(\w+)\])?\s*$", name).groups()
            yield kind + " " + stars, word, length


def test_the_header_was_read():
    assert len(STRUCTS) >= 19 and len(FUNCTIONS) >= 70 and len(ENUMS) >= 7
    assert len(FUNCTIONS) == TEXT.count("MERCER_API")


def test_every_struct_is_declared():
    ours = {name for name in vars(L) if name.startswith("mercer_") and hasattr(getattr(L, name), "_fields_")}
    assert ours == set(STRUCTS)


@pytest.mark.parametrize("name", sorted(STRUCTS))
def test_struct_fields(name):
    ours = getattr(L, name)._fields_
    theirs = list(declarations(STRUCTS[name]))
    assert [field for field, _ in ours] == [word for _, word, _ in theirs]
    for (field, kind), (declared, _, length) in zip(ours, theirs, strict=True):
        if declared == "function":
            assert kind is C.c_void_p or issubclass(kind, C._CFuncPtr), field
            continue
        wanted = C.c_char if length and declared.strip() == "char" else ctype(declared.strip())
        if length:
            number = int(length) if length.isdigit() else {"MERCER_PLAN_TEXT": L.PLAN_TEXT}[length]
            assert kind is wanted * number or (kind._type_, kind._length_) == (wanted, number), field
        else:
            assert kind is wanted, (field, declared)


def test_constants():
    listed = re.findall(r"X\((MERCER_\w+), (\d+),", WHOLE)
    assert {name: int(value) for name, value in listed} == L.STATUS
    for name, body in ENUMS.items():
        if name != "mercer_status":
            values = {word: int(number) for word, number in re.findall(r"(MERCER_\w+) = (\d+)", body)}
            assert values == L.ENUMS[name], name
    assert int(re.search(r"MERCER_PLAN_TEXT = (\d+)", TEXT).group(1)) == L.PLAN_TEXT


@pytest.mark.parametrize("result, name, arguments", FUNCTIONS, ids=[name for _, name, _ in FUNCTIONS])
def test_function(result, name, arguments):
    ours_result, ours_arguments = L.FUNCTIONS[name]
    assert ours_result is ctype(result.strip())
    declared = [] if arguments.strip() == "void" else arguments.split(",")
    kinds = [re.match(r"(.*?[\s*])\w+$", argument.strip(), re.S).group(1).strip() for argument in declared]
    assert ours_arguments == [ctype(kind) for kind in kinds]


def test_no_function_is_missing():
    assert {name for _, name, _ in FUNCTIONS} == set(L.FUNCTIONS)


def test_sizes_and_offsets_are_those_of_the_compiler(tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler here")
    lines = ['#include "mercer/ranks.h"', "#include <stdio.h>", "#include <stddef.h>", "int main(void) {"]
    wanted = []
    for name in sorted(STRUCTS):
        struct = getattr(L, name)
        lines.append(f'printf("%zu\\n", sizeof({name}));')
        wanted.append((name, C.sizeof(struct)))
        for field, _ in struct._fields_:
            lines.append(f'printf("%zu\\n", offsetof({name}, {field}));')
            wanted.append((f"{name}.{field}", getattr(struct, field).offset))
    source = tmp_path / "layout.c"
    source.write_text("\n".join([*lines, "return 0; }"]))
    program = tmp_path / "layout"
    subprocess.run([compiler, "-I", str(HEADER.parents[1]), str(source), "-o", str(program)], check=True)
    printed = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout.split()
    assert [(name, int(value)) for (name, _), value in zip(wanted, printed, strict=True)] == wanted
