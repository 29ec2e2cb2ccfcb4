# SPDX-License-Identifier: BSD-3-Clause
"""A new training option touches three files: the header, the list of options and the code that uses it.

The test adds `most_epochs`, an upper limit for the epochs of a plan, to a copy of the tree. C, the program (help,
configuration, messages), Python and docs/cli.md must then have it. Tools write the declarations of Python and the page.
"""
import json
import os
import subprocess
import sys
import unittest

import extend

HEADER, LIST, USE = "include/mercer/mercer.h", "src/plan/plan_options.c", "src/plan/plan.c"

FIELD = "    int64_t most_epochs; /* the plan has no more epochs; 0: any number */\n"
ROW = """    ROW(most_epochs, NULL, INTEGER, NULL, 0, MRC_USES_EPOCHS, MENTIONED,
        "plan no more epochs than this; 0: any number"),
"""
CODE = """    int64_t limit = request->options->most_epochs;
    if (status == MERCER_OK && limit > 0 && out->public_plan.epochs > limit) out->public_plan.epochs = limit;
"""
PROGRAM = r"""
#include <mercer/advanced.h>
#include <stdio.h>

int main(void)
{
    mercer_context *context;
    mercer_train_options options = MERCER_INIT(mercer_train_options);
    mercer_shape shape = {.struct_size = sizeof shape, .samples = 5000, .centers = 300, .features = 9, .outputs = 1};
    mercer_plan plan = MERCER_INIT(mercer_plan);
    if (mercer_context_create(&context, NULL) != MERCER_OK) return 1;
    options.solver = "ep4";
    options.epochs = 8;
    options.most_epochs = 2;
    if (mercer_plan_shape(context, &plan, &shape, &options) != MERCER_OK) return 2;
    printf("epochs %d\n", (int)plan.epochs);
    options.most_epochs = -1;
    printf("%d %s\n", mercer_plan_shape(context, &plan, &shape, &options), mercer_last_error(context));
    mercer_context_free(context);
    return 0;
}
"""
SIZES = ["--rows", "5000", "--features", "9", "--centers", "300", "--solver", "ep4", "--epochs", "8"]
PYTHON = """
import mercer
print(mercer.plan(5000, 300, 9, solver="ep4", epochs=8, most_epochs=2)["epochs"])
print(mercer.plan(5000, 300, 9, solver="ep4", epochs=8)["epochs"])
"""


def find_python():
    """Return a Python with NumPy and scikit-learn: this one or that of the package's tests; None if neither has them."""
    for python in (sys.executable, os.path.join(extend.ROOT, "build", "python", "venv", "bin", "python")):
        try:
            if subprocess.run([python, "-c", "import numpy, sklearn"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
                return python
        except OSError:
            pass
    return None


class Option(extend.Extended):
    def test_three_files(self):
        self.insert(HEADER, "    const double *validation_weights;", FIELD)
        self.insert(LIST, '"cache K(X,Z) if it fits into memory"),\n', ROW)
        self.insert(USE, "    mercer_status status = make_plan(out, request, &first);\n", CODE)
        self.assertLessEqual(len(self.touched), 3)
        self.build("all", optimization="-O0", CLI="ON", TESTS="OFF", VECTORS="OFF", WERROR="OFF")
        self.run_command(sys.executable, "tools/make-python-library")
        self.run_command(sys.executable, "tools/make-cli-docs", "build/mercer")

        with self.subTest("C"):
            self.write("most_epochs.c", PROGRAM)
            self.run_command("cc", "-Iinclude", "most_epochs.c", "-o", "most_epochs", "-Lbuild", "-lmercer", "-Wl,-rpath,build")
            output = self.run_command("./most_epochs")
            self.assertRegex(output, r"^epochs 2\n1 .*most_epochs is -1")
        with self.subTest("the program"):
            self.assertIn("--most-epochs N", self.run_command("build/mercer", "train", "--help", "all"))
            plan = json.loads(self.run_command("build/mercer", "plan", *SIZES, "--most-epochs", "2", "--json", "--quiet"))
            self.assertEqual(plan["epochs"], 2)
            plan = json.loads(self.run_command("build/mercer", "plan", *SIZES, "--json", "--quiet"))
            self.assertEqual(plan["epochs"], 8)
            with open(self.path("run.json"), "w", encoding="utf-8") as file:
                json.dump({"most_epochs": 3}, file)
            output = self.run_command("build/mercer", "plan", *SIZES, "--config", "run.json", "--print-config")
            self.assertEqual(json.loads(output)["most-epochs"], 3)
            output = self.run_command("build/mercer", "plan", *SIZES, "--most-epochs", "few", status=2)
            self.assertIn("--most-epochs: 'few' ", output)
        with self.subTest("Python"):
            with open(self.path("python/mercer/_library.py"), encoding="utf-8") as file:
                self.assertIn("most_epochs", file.read())
            python = find_python()
            if python:
                self.environment.update(MERCER_LIBRARY=self.path("build/libmercer.so"), PYTHONPATH=self.path("python"))
                self.assertEqual(self.run_command(python, "-c", PYTHON).split(), ["2", "8"])
        with self.subTest("documents"):
            with open(self.path("docs/cli.md"), encoding="utf-8") as file:
                self.assertEqual(file.read().count("--most-epochs N"), 2)  # train and plan


if __name__ == "__main__":
    unittest.main()
