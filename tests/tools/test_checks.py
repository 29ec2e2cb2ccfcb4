# SPDX-License-Identifier: BSD-3-Clause
"""The checks in tools/ pass on this tree and fail, with file and line, on every kind of violation.

Each case creates a small tree with one violation.
"""
import contextlib
import io
import os
import runpy
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
TOOLS = os.path.join(ROOT, "tools")
sys.path.insert(0, TOOLS)  # as for a program in that folder
sys.dont_write_bytecode = True


def read_text(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write_text(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


class Tree(unittest.TestCase):
    """Base class with an empty tree in self.root."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = self.folder.name
        os.makedirs(os.path.join(self.root, "src"))

    def tearDown(self):
        self.folder.cleanup()

    def write(self, path, text):
        full = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        write_text(full, text)

    def run_check(self, name, *arguments):
        """Run a check and return its exit status and output. It runs in this process, because there are about a hundred runs."""
        path, output, status = os.path.join(TOOLS, name), io.StringIO(), 0
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output), \
                unittest.mock.patch.object(sys, "argv", [path, *(arguments or (self.root,))]):
            try:
                runpy.run_path(path, run_name="__main__")
            except SystemExit as end:
                status = end.code or 0
        return status, output.getvalue()

    def assert_ok(self, name, *arguments):
        status, output = self.run_check(name, *arguments)
        self.assertEqual(status, 0, output)
        self.assertTrue(output.endswith(": ok\n"), output)

    def assert_wrong(self, name, where, *arguments):
        """Expect that the check fails and that its output contains `where`, usually file:line."""
        status, output = self.run_check(name, *arguments)
        self.assertEqual(status, 1, output)
        self.assertIn(where, output)


class Includes(Tree):
    def assert_forbidden(self, path, include):
        with self.subTest(path=path, include=include):
            self.write(path, f"/* a file */\n\n#include {include}\n")
            self.assert_wrong("check-includes", f"{path}:3: ")
            os.remove(os.path.join(self.root, path))

    def assert_allowed(self, path, include):
        with self.subTest(path=path, include=include):
            self.write(path, f"#include {include}\n")
            self.assert_ok("check-includes")
            os.remove(os.path.join(self.root, path))

    def test_tree_is_clean(self):
        self.assert_ok("check-includes", ROOT)

    def test_files_have_one_door(self):
        for call in ('fopen("x", "r");', 'int d = fsync(2);', 'rename ("a", "b");', "if (stat(path, &about) == 0) return;"):
            with self.subTest(call=call):
                self.write("src/data/probe.c", "/* a file */\n\n" + call + "\n")
                self.assert_wrong("check-includes", "src/data/probe.c:3: ")
                self.write("src/core/file/probe.c", call + "\n")
                self.write("src/data/probe.c", "mrc_sys." + call.replace("int d = ", "").replace("if (", "") + "\n")
        self.assert_forbidden("src/data/probe.c", "<fcntl.h>")

    def test_algorithms_know_no_device_and_no_network(self):
        self.assert_forbidden("src/solvers/probe.c", "<cuda_runtime.h>")
        self.assert_forbidden("src/solvers/probe.c", "<mpi.h>")
        self.assert_forbidden("src/solvers/probe.c", "<nccl.h>")
        self.assert_forbidden("src/solvers/probe.c", "<immintrin.h>")
        self.assert_forbidden("src/solvers/probe.c", "<cblas.h>")
        self.assert_forbidden("src/solvers/probe.c", '"backends/cpu/tile.h"')
        self.assert_forbidden("src/solvers/probe.c", '"backends/registry.h"')
        self.assert_forbidden("src/solvers/probe.c", '"api/api.h"')

    def test_every_folder_has_its_rules(self):
        self.assert_forbidden("src/core/probe.c", '"kernels/kernel.h"')
        self.assert_forbidden("src/kernels/probe.c", '"backends/backend.h"')
        self.assert_forbidden("src/backends/probe.c", '"backends/cpu/cpu.h"')
        self.assert_forbidden("src/backends/probe.c", '"backends/cuda/cuda.h"')
        self.assert_forbidden("src/backends/cpu/probe.c", '"training/trainer.h"')
        self.assert_forbidden("src/backends/cpu/probe.c", "<omp.h>")
        self.assert_forbidden("src/backends/cpu/probe.c", "<cublas_v2.h>")
        self.assert_forbidden("src/backends/cuda/probe.cu", "<lapacke.h>")
        self.assert_forbidden("src/comm/probe.c", "<mpi.h>")
        self.assert_forbidden("src/comm/comm_mpi.c", "<nccl.h>")
        self.assert_forbidden("src/comm/probe.c", '"kernels/kernel.h"')
        self.assert_forbidden("src/data/probe.c", '"model/model.h"')
        self.assert_forbidden("src/api/probe.c", '"backends/cpu/tile.h"')
        self.assert_forbidden("src/elsewhere/probe.c", "<math.h>")

    def test_form(self):
        self.assert_forbidden("src/backends/cpu/probe.c", '"tile.h"')
        self.assert_forbidden("src/backends/cpu/probe.c", '"../core/status.h"')
        self.assert_forbidden("src/backends/cpu/probe.c", "<core/status.h>")
        self.assert_forbidden("src/backends/cpu/probe.c", "HEADER")

    def test_users_see_the_public_header_only(self):
        self.assert_forbidden("examples/probe.c", '"core/status.h"')
        self.assert_forbidden("examples/probe.c", '"../src/core/status.h"')
        self.assert_forbidden("cli/probe.c", "<cuda_runtime.h>")
        self.assert_allowed("cli/probe.c", "<mercer/mercer.h>")

    def test_allowed(self):
        self.assert_allowed("src/solvers/probe.c", '"backends/backend.h"')
        self.assert_allowed("src/solvers/probe.c", '"comm/comm.h"')
        self.assert_allowed("src/backends/cpu/probe.c", "<immintrin.h>")
        self.assert_allowed("src/core/probe.c", "<pthread.h>")
        self.assert_allowed("src/backends/cuda/probe.cu", "<cuda_runtime.h>")
        self.assert_allowed("src/comm/comm_mpi.c", "<mpi.h>")
        self.assert_allowed("src/api/probe.c", '"training/trainer.h"')

    def test_comments_do_not_count(self):
        self.write("src/solvers/probe.c", "/*\n#include <mpi.h>\n*/\n// \\\n#include <mpi.h>\n")
        self.assert_ok("check-includes")

    def test_openmp_is_not_used(self):
        for path in ("src/solvers/probe.c", "src/core/probe.c"):
            self.write(path, "\n#pragma omp parallel for\n")
            self.assert_wrong("check-includes", path + ":2: ")
            os.remove(os.path.join(self.root, path))


class Sizes(Tree):
    def test_tree_is_clean(self):
        self.assert_ok("check-sizes", ROOT)

    def test_long_file(self):
        self.write("src/core/probe.c", "int x;\n" * 801)
        self.assert_wrong("check-sizes", "src/core/probe.c:801: ")

    def test_long_line(self):
        self.write("src/core/probe.c", "\n/* " + "é" * 114 + " */\n")
        self.assert_ok("check-sizes")
        for folder in ("src/core", "cli", "include/mercer"):
            self.write(folder + "/probe.h", "\n/* " + "x" * 115 + " */\n")
            self.assert_wrong("check-sizes", folder + "/probe.h:2: 121 columns")
            self.write(folder + "/probe.h", "\n")

    def test_long_function(self):
        body = "".join(f"    y += {i};\n" for i in range(99))
        self.write("src/core/probe.c", "\nint mrc_f(int y)\n{\n" + body + "}\n")
        self.assert_wrong("check-sizes", "src/core/probe.c:2: mrc_f() has 102 lines")

    def test_long_table_is_no_function(self):
        rows = "".join(f"    {{ {i} }},\n" for i in range(150))
        self.write("src/core/probe.c", "static const struct row { int x; } rows[] = {\n" + rows + "};\n")
        self.assert_ok("check-sizes")

    def test_dead_code_and_notes(self):
        self.write("src/core/probe.c", "\n#if 0\n#endif\n")
        self.assert_wrong("check-sizes", "src/core/probe.c:2: ")
        self.write("src/core/probe.c", "/* TO" + "DO later */\n")
        self.assert_wrong("check-sizes", "src/core/probe.c:1: ")


class Names(Tree):
    def test_tree_is_clean(self):
        self.assert_ok("check-names", ROOT)

    def test_prefix(self):
        self.write("src/core/probe.c", "\nvoid helper(void)\n{\n}\n")
        self.assert_wrong("check-names", "src/core/probe.c:2: helper()")
        self.write("src/core/probe.c", "static void helper(void)\n{\n}\nvoid mrc_helper(void)\n{\n}\n")
        self.assert_ok("check-names")

    def test_public_functions(self):
        self.write("src/core/probe.c", "\nvoid mercer_helper(void)\n{\n}\n")
        self.assert_wrong("check-names", "src/core/probe.c:2: mercer_helper()")
        self.write("src/core/probe.c", "void mrc_helper(void)\n{\n}\n")
        self.write("src/api/api_probe.c", "void mercer_helper(void)\n{\n}\n")
        self.assert_ok("check-names")

    def test_micro_kernels(self):
        self.write("src/backends/cpu/uk_probe_avx2.c", "void mrc_uk_dot_f32_8x8_avx2(void)\n{\n}\n")
        self.assert_ok("check-names")
        for name in ("mrc_uk_dot_f32_sse", "mrc_uk_Dot_avx2", "mrc_dot_avx2", "mrc_uk_dot_f32_avx512", "mrc_uk_avx2", "mrc_uk_dot_avx2", "mrc_uk_dot_f32_8by8_avx2"):
            with self.subTest(name=name):
                self.write("src/backends/cpu/uk_probe_avx2.c", f"\nvoid {name}(void)\n{{\n}}\n")
                self.assert_wrong("check-names", f"src/backends/cpu/uk_probe_avx2.c:2: {name}()")

    def test_list_of_micro_kernels(self):
        path = "src/backends/cpu/micro/ukernels.inc"
        self.write(path, "MRC_UK_GEMM_F32(AVX2, mrc_uk_gemm_f32_6x16_avx2, 6, 16)\nMRC_UK_PANEL(AVX2, mrc_uk_panel_ops_avx2)\n")
        self.assert_ok("check-names")
        for row in ("mrc_uk_gemm_f32_6x16_avx512, 6, 16", "mrc_uk_gemm_f32_6x16_avx2, 6, 8", "mrc_uk_gemm_f32_avx2, 6, 16"):
            with self.subTest(row=row):
                self.write(path, f"MRC_UK_GEMM_F32(AVX2, {row})\n")
                self.assert_wrong("check-names", f"{path}:1: {row.split(',')[0]}")

    def test_names_given_by_macros(self):
        self.write("src/backends/cpu/uk_probe_avx2.c", "\n#define UK_NAME mrc_uk_dot_f32_avx512\n#define UK_MR 4\n")
        self.assert_wrong("check-names", "src/backends/cpu/uk_probe_avx2.c:2: mrc_uk_dot_f32_avx512")
        self.write("src/backends/cpu/uk_probe_avx2.c", "#define UK_NAME mrc_uk_dot_f32_avx2\n")
        self.write("src/backends/cpu/uk_probe_body.h", "void UK_NAME(int x)\n{\n}\n")
        self.assert_ok("check-names")


class Folders(Tree):
    OPENING = "/* SPDX-License-Identifier: BSD-3-Clause */\n/*\n * probe: one line,\n * two lines,\n * three.\n */\n"

    def test_tree_is_clean(self):
        self.assert_ok("check-folders", ROOT)

    def test_folder_without_purpose(self):
        self.write("src/probe/probe.h", "/* SPDX-License-Identifier: BSD-3-Clause */\n/* Something. */\n")
        self.assert_wrong("check-folders", "src/probe: no file says what it is for")
        self.write("src/probe/probe.h", self.OPENING)
        self.assert_ok("check-folders")

    def test_length_and_place(self):
        self.write("src/probe/probe.h", "/* probe: short. */\n")
        self.assert_wrong("check-folders", "src/probe/probe.h: 1 lines")
        self.write("src/probe/probe.h", self.OPENING.replace("three", "\n * ".join("x" * 13)))
        self.assert_wrong("check-folders", "src/probe/probe.h: 15 lines")
        self.write("src/probe/probe.h", "/* Something. */\n")
        self.write("src/probe/purpose.c", self.OPENING)
        self.assert_wrong("check-folders", "src/probe/purpose.c: says what the folder is for: a header should")

    def test_one_opening(self):
        self.write("src/probe/probe.h", self.OPENING)
        self.write("src/probe/other_probe.h", self.OPENING)
        self.assert_wrong("check-folders", "one is enough")

    def test_many_files(self):
        self.write("src/probe/probe.h", self.OPENING)
        for i in range(15):
            self.write(f"src/probe/probe_{i}.c", "\n")
        self.assert_ok("check-folders")
        self.write("src/probe/probe_15.c", "\n")
        self.assert_wrong("check-folders", "src/probe: 17 files")

    def test_equal_names(self):
        for path in ("src/core/dataset.c", "src/data/dataset.c"):
            self.write(path, "\n")
        self.assert_wrong("check-folders", "src/data/dataset.c: src/core/dataset.c has the same name")


class Documents(unittest.TestCase):
    """tests/docs/check_docs.py on a copy of the source tree with changes."""

    CHANGES = (
        ("CONTRIBUTING.md", "# Contributing", "# Contributing `src/nowhere.c`", "CONTRIBUTING.md:1: no such file"),
        ("CONTRIBUTING.md", "# Contributing", "# Contributing [x](docs/nowhere.md)", "no file docs/nowhere.md"),
        ("README.md", "# ", "# [x](docs/math.md#nowhere) ", "docs/math.md has no heading #nowhere"),
        ("docs/architecture.md", "`choose_solver` (", "`choose_solvers` (", "hop 12, choose_solvers: not a function of"),
        ("docs/architecture.md", "calls `do_block`", "calls `do_blocks`", "mrc_product_run: does not mention do_blocks"),
        ("docs/architecture.md", "| `src/core`", "| `src/corn`", "no such file: src/corn"),
        ("docs/architecture.svg", ">core<", ">corn<", "docs/architecture.svg is not what the includes say"),
        ("docs/comparison.svg", "Mercer", "Mercier", "docs/comparison.svg: not what was measured"),
        ("docs/tutorial-table.md", "# Tutorial", "# A tutorial", "examples/notebooks/table.ipynb: not what the tutorial says"),
        ("tools/make-docs", '("C", "c.md")', '("C", "cc.md")', "c.md: not in the menu"),
        ("include/mercer/ranks.h", "mercer_comm_launched(", "mercer_comm_started(", "no mercer_comm_launched"),
    )
    INCLUDE = (("src/core/clock.c", '#include "core/', '#include "model/model.h"\n#include "core/', "make-graph"),)

    def problems(self, root):
        """Run check_docs.py on a tree; return its messages and exit status."""
        command = [sys.executable, os.path.join(root, "tests", "docs", "check_docs.py")]
        result = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
        return result.stderr, result.returncode

    def test_changes(self):
        with tempfile.TemporaryDirectory() as folder:
            root = os.path.join(folder, "mercer")
            names = ["build*", "dist", ".git", "__pycache__", "corpus"]
            shutil.copytree(ROOT, root, ignore=shutil.ignore_patterns(*names))
            self.assertEqual(self.problems(root), ("", 0))
            for changes in (self.CHANGES, self.INCLUDE):
                before = {name: read_text(os.path.join(root, name)) for name, *_ in changes}
                for name, old, new, _ in changes:
                    text = read_text(os.path.join(root, name))
                    self.assertIn(old, text)
                    write_text(os.path.join(root, name), text.replace(old, new, 1))
                said, status = self.problems(root)
                self.assertEqual(status, 1, said)
                for *_, problem in changes:
                    self.assertIn(problem, said)
                for name, text in before.items():
                    write_text(os.path.join(root, name), text)


class Symbols(Tree):
    HEADER = "#define MERCER_API\n/* MERCER_API int mercer_old(void); */\nMERCER_API int mercer_one(void);\n"
    SOURCE = "int mercer_one(void)\n{\n    return 1;\n}\n"

    def build(self, source):
        self.write("probe.c", source)
        self.write("probe.h", self.HEADER)
        library, code = os.path.join(self.root, "libmercer.so"), os.path.join(self.root, "probe.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, code], check=True)
        return self.root, os.path.join(self.root, "probe.h")

    def test_equal_sets(self):
        self.assert_ok("check-symbols", *self.build(self.SOURCE))

    def test_extra_export(self):
        self.assert_wrong("check-symbols", "exports helper", *self.build(self.SOURCE + "int helper;\n"))

    def test_missing_export(self):
        self.assert_wrong("check-symbols", "does not export mercer_one", *self.build("int mercer_two;\n"))

    def test_forbidden_imports(self):
        for header, call, name in (
            ("stdio.h", 'printf("%d", 1)', "printf"),
            ("stdio.h", 'puts("x")', "puts"),
            ("stdio.h", 'fprintf(stderr, "x")', "stderr"),
            ("stdlib.h", "exit(1)", "exit"),
            ("stdlib.h", "abort()", "abort"),
            ("unistd.h", "_exit(1)", "_exit"),
        ):
            with self.subTest(name=name):
                source = f"#include <{header}>\nint mercer_one(void)\n{{\n    {call};\n    return 1;\n}}\n"
                self.assert_wrong("check-symbols", f"imports {name}", *self.build(source))

    def test_static_library(self):
        folder, header = self.build(self.SOURCE)
        self.write("extra.c", "int NAME(void)\n{\n    return 1;\n}\n")
        archive, code = os.path.join(folder, "libmercer.a"), os.path.join(folder, "extra.c")
        for member, name, right in (
            ("extra.c.o", "mrc_helper", True),
            ("extra.c.o", "helper", False),
            ("uk_x_avx2.c.o", "mrc_uk_x_avx2", True),
            ("uk_x_avx2.c.o", "mrc_helper", False),
        ):
            with self.subTest(member=member, name=name):
                compiled = os.path.join(folder, member)
                subprocess.run(["cc", f"-DNAME={name}", "-c", "-o", compiled, code], check=True)
                if os.path.exists(archive):
                    os.remove(archive)
                subprocess.run(["ar", "rc", archive, compiled], check=True)
                if right:
                    self.assert_ok("check-symbols", folder, header)
                else:
                    self.assert_wrong("check-symbols", f"{member}: defines {name}", folder, header)


class Abi(Tree):
    ENUMS, FUNCTIONS = "dtype: F64=1 F32=2", "one=i(p) two=v()"
    STRUCTS = "a: struct_size=z x=i name=c16 b=b\nb: p=p n=i\ng: k=d reserved=q4"

    def declare(self, enums=ENUMS, structs=STRUCTS, functions=FUNCTIONS):
        text = "".join(f'{n} = """\n{t}\n"""\n' for n, t in (("ENUMS", enums), ("STRUCTS", structs), ("FUNCTIONS", functions)))
        self.write("python/mercer/_library.py", text)

    def setUp(self):
        super().setUp()
        self.declare()
        self.write("tests/headers/abi.txt", "")
        self.assertEqual(self.run_check("check-abi", "--write", self.root)[0], 0)

    def test_sizes(self):
        text = read_text(os.path.join(self.root, "tests/headers/abi.txt"))
        self.assertIn("struct a 48: struct_size=z@0 x=i@8 name=c16@12 b=b@32\nstruct b 16: p=p@0 n=i@8\n", text)
        self.assert_ok("check-abi", self.root)
        self.assert_ok("check-abi", ROOT)

    def test_allowed_additions(self):
        grown = self.STRUCTS.replace("b=b", "b=b more=d").replace("reserved=q4", "more=s i=i reserved=q2")
        self.declare(self.ENUMS + " F16=3", grown + "\nc: q=q", self.FUNCTIONS + " three=v()")
        self.assert_ok("check-abi", self.root)

    def test_forbidden_changes(self):
        for change, where in (
            ({"enums": "dtype: F64=2 F32=1"}, "enum dtype F64=1"),
            ({"functions": "one=i(p)"}, "function two=v()"),
            ({"functions": "one=i(p,p) two=v()"}, "function one=i(p)"),
            ({"structs": self.STRUCTS.replace("x=i", "x=q")}, "struct a: x=i@8 changed"),
            ({"structs": self.STRUCTS.replace("x=i", "y=i x=i")}, "struct a: x=i@8 changed"),
            ({"structs": self.STRUCTS.replace("n=i", "n=i m=i")}, "struct b: has no struct_size"),
            ({"structs": self.STRUCTS.replace("q4", "q5")}, "struct g: has no struct_size"),
            ({"structs": self.STRUCTS.replace("k=d", "k=s")}, "struct g: has no struct_size"),
            ({"structs": "a: struct_size=z x=i name=c16 b=p"}, "struct b: gone"),
        ):
            with self.subTest(where=where):
                self.declare(**change)
                self.assert_wrong("check-abi", where, self.root)

    @unittest.skipUnless(shutil.which("abidiff") and shutil.which("cc"), "needs abidiff")
    def test_libraries(self):
        """Between two versions of a library, functions may be added but not removed."""
        for name, text in (("one", "int a(int x) { return x; }"), ("two", "int a(int x) { return x; }\nint b(void) { return 1; }")):
            source = os.path.join(self.root, name + ".c")
            self.write(name + ".c", text + "\n")
            subprocess.run(["cc", "-g", "-shared", "-fPIC", "-o", os.path.join(self.root, name), source], check=True)
        one, two = (os.path.join(self.root, name) for name in ("one", "two"))
        self.assertEqual(self.run_check("check-abi", "--diff", one, two)[0], 0)
        self.assertEqual(self.run_check("check-abi", "--diff", two, one)[0], 1)


class Words(Tree):
    def assert_found(self, path, text, where):
        with self.subTest(text=text):
            self.write(path, text)
            self.assert_wrong("check-words", where)
            os.remove(os.path.join(self.root, path))

    def test_this_tree(self):
        self.assert_ok("check-words", ROOT)

    def test_comments_strings_and_markdown(self):
        self.assert_found("src/a.c", "int a;\n/* Two lines, and\n * this is\n * no sentence. */\n", "src/a.c:3: 'is no': say ")
        self.assert_found("cli/a.c", 'f("at most so "\n  "many rows");\n', "cli/a.c:1: 'so many': say ")
        self.assert_found("python/a.py", "x = 1\n# for bytes alone\n", "python/a.py:2: 'alone': say ")
        self.assert_found("python/a.py", 'x = f"{a} rows are held back"\n', "python/a.py:1: 'held back': say ")
        self.assert_found("docs/a.md", "It takes 2 ms a row.\n", "docs/a.md:1: '2 ms a row': say per row")
        self.assert_found("tools/a", "#!/bin/sh\n# The file beside it.\n", "tools/a:2: 'beside': say next to")
        self.assert_found("cmake/a.cmake", "# Whoever reads this\n", "cmake/a.cmake:1: 'Whoever': say ")

    def test_spelling_of_identifiers(self):
        self.assert_found("src/a.c", "int colour_map;\n", "src/a.c:1: 'colour': say -or")
        self.assert_found("src/a.c", "enum { KIND_LABELLED };\n", "src/a.c:1: 'LABELLED': say one l")

    def test_allowed_includes(self):
        self.write("src/a.c", "int told, room = behind(told);\nconst char *key = \"beside\";\n/* There is no row: 3 is no longer 2. */\n")
        self.write("python/a.py", 'x = f"{told} and {room}"\n')
        self.write("docs/a.md", "Nothing stand-alone is here; a second row exists.\n")
        self.assert_ok("check-words")

    def test_waivers(self):
        self.write("src/a.c", "int a; /* check-words: allow behind (a place) the door behind */\n"
                              "/* check-words: allow lies (geometry) */\n/* x lies in C. */\n")
        self.write("docs/a.md", "<!-- check-words: allow room (of a flat) -->\nIt is large,\nthis room.\n")
        self.assert_ok("check-words")
        self.assert_found("src/b.c", "/* check-words: allow behind */\n", "src/b.c:1: this waiver has no reason")
        self.assert_found("src/b.c", "/* check-words: allow behind (a place) */\n", "src/b.c:1: nothing to allow here: 'behind'")
        self.assert_found("src/b.c", "/* check-words: allow behind (a place) */\n\n/* behind */\n", "src/b.c:3: 'behind'")

    def test_count(self):
        self.write("docs/a.md", "behind\nbehind and beside\n")
        status, output = self.run_check("check-words", "--count", self.root)
        self.assertEqual(status, 0)
        self.assertRegex(output, r"(?m)^ +2  behind$")
        self.assertRegex(output, r"(?m)^ +3  in total$")


class Messages(Tree):
    """A test must not share three words in a row with a string of the library, the program or the package."""

    def setUp(self):
        super().setUp()
        self.write("src/a.c", 'fail("column \'%s\' is not "\n     "a number\\n", name);\n')
        self.write("python/mercer/a.py", 'def f():\n    """Reads all of it."""\n    raise ValueError(f"{name} has the wrong shape")\n')

    def test_this_tree(self):
        self.assert_ok("check-messages", ROOT)

    def test_wording(self):
        for path, text, line in (
            ("tests/unit/test_a.c", 'refuse(\n    "\'x\' is not a number");\n', 2),
            ("tests/unit/test_a.c", 'snprintf(part, 9, "\'%s\' is not a number", x);\n', 1),
            ("tests/cli/test_a.py", 'self.bad(2, r"--x: is not "\n            "a number", "train")\n', 1),
            ("python/tests/test_a.py", 'with pytest.raises(ValueError, match=f"{x} has the wrong shape"):\n    pass\n', 1),
        ):
            with self.subTest(path=path, text=text):
                self.write(path, text)
                self.assert_wrong("check-messages", f"{path}:{line}: ")
                os.remove(os.path.join(self.root, path))

    def test_allowed(self):
        self.write("tests/cli/test_messages.py", 'text = "is not a number"\n')
        self.write("tests/unit/test_a.c", 'print_error("is not a number");\nassert_that(x, "%d is not a number", x);\n'
                                          'refuse("line 2*number");\n')
        self.write("tests/cli/test_a.py", '"""It is not a number."""\nself.skipTest("is not a number")\n'
                                          'run("mercer is not a number", "reads all of it")\n')
        self.write("python/tests/test_a.py", 'x = "is not a number"  # check-messages: allow (a name)\n'
                                             'y = [  # check-messages: allow (a list)\n    "is not a number",\n]\n')
        self.assert_ok("check-messages")


class Promises(Tree):
    def list(self, text):
        self.write("tests/promises.txt", text)
        self.write("tests/test_a.c", "cmocka_unit_test(test_one),\nstatic void test_two(void)\n")
        self.write("tests/test_b.py", "    def test_three(self):\n")
        os.makedirs(os.path.join(self.root, "docs"), exist_ok=True)

    def test_this_tree(self):
        self.assert_ok("make-promises", "--check", ROOT)

    def test_written_and_mapped(self):
        self.list("# a\n1: First.\n  tests/test_a.c: test_one\n  tests/test_b.py\n2: Second.\n  tests/test_b.py: test_three\n")
        self.assertEqual(self.run_check("make-promises", self.root), (0, ""))
        self.assert_ok("make-promises", "--check", self.root)
        self.write("docs/promises.md", "other")
        self.assert_wrong("make-promises", "run tools/make-promises", "--check", self.root)

    def test_wrong_names(self):
        for text, where in (
            ("1: First.\n  tests/test_a.c: test_two\n", "promises.txt:2: tests/test_a.c has no test test_two"),
            ("1: First.\n  tests/test_b.py: test_four\n", "has no test test_four"),
            ("1: First.\n  tests/test_c.py\n", "no file tests/test_c.py"),
            ("1: First.\n", "promise 1 has no test"),
            ("2: First.\n  tests/test_a.c\n", "promise 2, expected 1"),
        ):
            with self.subTest(where=where):
                self.list(text)
                self.assert_wrong("make-promises", where, "--check", self.root)


class Hardening(Tree):
    GOOD = ["-fPIC", "-O2", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2", "-fstack-protector-strong"]
    LINKED = ["-shared", "-Wl,-z,relro,-z,now"]
    SOURCE = (
        "#include <stdio.h>\nint mercer_one(int n, const char *s);\nint mercer_one(int n, const char *s)\n{\n"
        "    char text[64];\n    snprintf(text, (unsigned)n, \"%s\", s);\n    return text[n / 2];\n}\n"
    )

    def build(self, flags, linked, level="2", protected=False):
        self.write("probe.c", self.SOURCE)
        code, compiled = os.path.join(self.root, "probe.c"), os.path.join(self.root, "probe.o")
        subprocess.run(["cc", *flags, "-c", "-o", compiled, code], check=True)
        subprocess.run(["cc", *linked, "-o", os.path.join(self.root, "libmercer.so"), compiled], check=True)
        archive = os.path.join(self.root, "libmercer.a")
        if os.path.exists(archive):
            os.remove(archive)
        subprocess.run(["ar", "rc", archive, compiled], check=True)
        cache = "CMAKE_BUILD_TYPE:STRING=Release\nMERCER_SANITIZE:STRING=\n"
        self.write("CMakeCache.txt", cache + ("MERCER_CF_PROTECTION:INTERNAL=1\n" if protected else ""))
        self.write("compile_commands.json", f'"cc -D_FORTIFY_SOURCE={level} -o mercer_objects/a.o /src/a.c"\n')
        return self.root

    def test_good(self):
        self.assert_ok("check-hardening", self.build(self.GOOD, self.LINKED))

    def test_each_is_missed(self):
        for flags, linked, level, protected, where in (
            (self.GOOD, ["-shared", "-Wl,-z,norelro,-z,now"], "2", False, "GNU_RELRO"),
            (self.GOOD, ["-shared", "-Wl,-z,relro,-z,lazy"], "2", False, "bound when called"),
            (self.GOOD, self.LINKED + ["-z", "execstack"], "2", False, "stack is executable"),
            (self.GOOD, self.LINKED + ["-Wl,-rpath,here"], "2", False, "RPATH"),
            (self.GOOD[:-1] + ["-fno-stack-protector"], self.LINKED, "2", False, "__stack_chk_fail"),
            (["-fPIC", "-O2", "-U_FORTIFY_SOURCE", "-fstack-protector-strong"], self.LINKED, "2", False, "checked function"),
            (self.GOOD, self.LINKED, "1", False, "wanted 2"),
            (self.GOOD + ["-fcf-protection=none"], self.LINKED, "2", True, "-fcf-protection"),
        ):
            with self.subTest(where=where):
                self.assert_wrong("check-hardening", where, self.build(flags, linked, level, protected))

    def test_another_kind_of_build(self):
        self.write("CMakeCache.txt", "CMAKE_BUILD_TYPE:STRING=Debug\n")
        self.assertEqual(self.run_check("check-hardening", self.root)[0], 77)


if __name__ == "__main__":
    unittest.main()
