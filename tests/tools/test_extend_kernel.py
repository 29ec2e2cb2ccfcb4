# SPDX-License-Identifier: BSD-3-Clause
"""A new kernel function touches three files: the header of formulas, the tests' table of kernels and the documentation.

The test adds the inverse multiquadric 1 / sqrt(1 + r^2/b^2) to a copy of the tree. The conformance tests then run it on the
reference backend and with every instruction set of the CPU, and nvcc, if present, compiles the CUDA code with it.
"""
import os
import re
import shutil
import unittest

import extend

FORMULAS, TABLE, DOCUMENT = "src/kernels/formulas.h", "tests/support/kernel_table.h", "docs/math.md"

DEFINITION = """MRC_HD double mrc_inverse_multiquadric(const mercer_kernel *kernel, double s)
{
    return 1 / sqrt(1 + s / kernel->bandwidth / kernel->bandwidth);
}

MRC_HD double mrc_inverse_multiquadric_slope(const mercer_kernel *kernel, double s)
{
    return pow(mrc_inverse_multiquadric(kernel, s), 3) / kernel->bandwidth / kernel->bandwidth;
}

"""
ROW = """ \\
    X(INVERSE_MULTIQUADRIC, mrc_inverse_multiquadric, DISTANCE, "inverse-multiquadric", \\
      "inverse-multiquadric:bandwidth=10", MRC_BANDWIDTH)"""
TEST_ROW = """ \\
    X(INVERSE_MULTIQUADRIC, b / sqrtl(b * b + s), 2 / (3 * sqrt(3)), FALLS_TO(value), 3, 1, 2)"""
DOCUMENT_ROW = "| `inverse-multiquadric` | `bandwidth` | 1 / sqrt(1 + r^2/b^2) | 0.3849 / b |\n"


class Kernel(extend.Extended):
    def test_three_files(self):
        self.insert(FORMULAS, "squared distance s >= 0 " + "-" * 65 + " */\n\n", DEFINITION)
        self.insert(FORMULAS, 'MRC_P, MRC_Q, MRC_BANDWIDTH)', ROW)
        self.insert(TABLE, "value > 0 ? -log(value) : 746, 3, 1, 7.2)", TEST_ROW)
        self.insert(DOCUMENT, "| (1 + r^2 / (2 alpha b^2))^-alpha | at most 0.6066 / b |\n", DOCUMENT_ROW)
        self.assertLessEqual(len(self.touched), 3)
        names = ("unit_kernel_values", "unit_kernel_spec", "unit_backend_kernels", "unit_gradient")
        self.build("conformance", *names, TESTS="ON")
        for name in names:
            self.run_command(os.path.join("build", "tests", name))
        output = self.run_command(os.path.join("build", "tests", "conformance"), "--filter", "inverse-multiquadric")
        self.assertRegex(output, r"cpu/scalar.*reference")
        self.assertRegex(output, r"(?m)^[1-9]\d* passed, 0 failed$")
        nvcc = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
        if nvcc:
            self.run_command(nvcc, "-std=c++17", "-gencode=arch=compute_90,code=sm_90", "-Iinclude", "-Isrc", "-c",
                             "src/backends/cuda/device/profile.cu", "-o", "profile.o")

    def test_documents(self):
        """docs/math.md describes every kernel of the list."""
        with open(os.path.join(extend.ROOT, FORMULAS), encoding="utf-8") as file:
            names = re.findall(r'^    X\(\w+, \w+, (?:DISTANCE|DIFFERENCES|INNER|ANGLE), "([^"]+)"', file.read(), re.MULTILINE)
        with open(os.path.join(extend.ROOT, DOCUMENT), encoding="utf-8") as file:
            rows = re.findall(r"^\| `([^`]+)` \|", file.read(), re.MULTILINE)
        self.assertGreater(len(names), 10)
        self.assertEqual([name for name in names if name not in rows], [])


if __name__ == "__main__":
    unittest.main()
