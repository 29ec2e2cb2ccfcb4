# SPDX-License-Identifier: BSD-3-Clause
"""mercer/_library.py agrees with the public headers, and ctypes and the compiler use the same struct layouts."""

import ctypes as C
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mercer import _library as L

ROOT = Path(__file__).parents[2]
TOOL = ROOT / "tools" / "make-python-library"
if not TOOL.exists():
    pytest.skip("the C headers are not next to these tests", allow_module_level=True)

STRUCTS = sorted(name for name, kind in vars(L).items() if hasattr(kind, "_fields_"))


def test_the_declarations_are_up_to_date():
    done = subprocess.run([sys.executable, str(TOOL), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_headers_were_read():
    assert len(STRUCTS) >= 24 and len(L.FUNCTIONS.split()) >= 80
    assert L.ERROR_COMM == 16 and L.AUTO == 0 and L.U8 == 4 and L.PLAN_TEXT == 4096
    assert L.lib.mercer_model_predict.argtypes == [C.c_void_p, C.POINTER(L.mercer_matrix), C.POINTER(L.mercer_matrix)]


def test_sizes_and_offsets_agree_with_the_compiler(tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler here")
    headers = '#include "mercer/evaluation.h"', '#include "mercer/ranks.h"', "#include <stdio.h>", "#include <stddef.h>"
    lines = [*headers, "int main(void) {"]
    wanted = []
    for name in STRUCTS:
        struct = getattr(L, name)
        lines.append(f'printf("%zu\\n", sizeof({name}));')
        wanted.append((name, C.sizeof(struct)))
        for field, _ in struct._fields_:
            lines.append(f'printf("%zu\\n", offsetof({name}, {field}));')
            wanted.append((f"{name}.{field}", getattr(struct, field).offset))
    source = tmp_path / "layout.c"
    source.write_text("\n".join([*lines, "return 0; }"]))
    program = tmp_path / "layout"
    subprocess.run([compiler, "-I", str(ROOT / "include"), str(source), "-o", str(program)], check=True)
    printed = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout.split()
    assert [(name, int(value)) for (name, _), value in zip(wanted, printed, strict=True)] == wanted
