# SPDX-License-Identifier: BSD-3-Clause
"""A new file format touches three files: its reader, the list of formats and the reference of the program.

The test adds a format to a copy of the tree: a line "MATRIX rows columns", followed by little-endian floats. `mercer
convert` detects it by its first bytes and its file name ending, accepts it as --format, and lists it in messages.
"""
import os
import struct
import unittest

import extend

READER, LIST, DOCUMENT = "src/data/files/matrix_file.c", "src/data/files/formats.c", "docs/cli.md"

SOURCE = r"""/* SPDX-License-Identifier: BSD-3-Clause */
/* Matrices after a line of text: "MATRIX rows columns", then the elements as little-endian floats. */
#include "data/files/readers.h"

#include <stdio.h>
#include <string.h>

static bool is_marked(const mrc_input *input)
{
    return mrc_input_begins(input, "MATRIX ", 7);
}

static mercer_status parse(mrc_array *out, const mrc_input *input, const char *shape)
{
    char line[64] = "";
    long long rows = 0, cols = 0;
    const uint8_t *end = memchr(input->data, '\n', (size_t)input->bytes);
    (void)shape;
    if (end && end - input->data < (long)sizeof line) memcpy(line, input->data, (size_t)(end - input->data));
    if (sscanf(line, "MATRIX %lld %lld", &rows, &cols) != 2 || rows < 0 || cols < 1)
        return mrc_fail(input->context, MERCER_ERROR_FORMAT, "%s: does not begin with MATRIX rows columns", input->path);
    *out = (mrc_array){.element = MRC_ELEMENT_F32, .item = 4, .dims = 2, .shape = {rows, cols}};
    return mrc_array_locate(out, input, end + 1 - input->data);
}

const mrc_format mrc_format_matrix = {
    .name = "matrix", .endings = {".mat"}, .has_header = true, .is_marked = is_marked, .parse = parse};
"""
VALUES = (1.5, -2.0, 3.25, 4.0, 0.5, 6.0)


class Format(extend.Extended):
    def convert(self, *arguments, status=0):
        return self.run_command(os.path.join("build", "mercer"), "convert", *arguments, status=status)

    def test_three_files(self):
        self.write(READER, SOURCE)
        self.insert(LIST, " X(npy) X(idx)", " X(matrix)")
        self.build("mercer_program", "unit_formats", CLI="ON", TESTS="ON")
        self.run_command("tools/make-cli-docs", os.path.join("build", "mercer"))
        self.touched.add(DOCUMENT)
        self.assertLessEqual(len(self.touched), 3)
        self.run_command(os.path.join("build", "tests", "unit_formats"))
        content = b"MATRIX 3 2\n" + struct.pack("<6f", *VALUES)
        for name in ("data.mat", "data"):
            with open(self.path(name), "wb") as file:
                file.write(content)
            for format_name in ("auto", "matrix"):
                self.convert("--x", name, "--format", format_name, "-o", "out.npy")
                with open(self.path("out.npy"), "rb") as file:
                    self.assertEqual(struct.unpack("<6f", file.read()[-24:]), VALUES)
        with open(self.path("data.mat"), "wb") as file:
            file.write(content[:-1])
        self.assertIn("data.mat: ", self.convert("--x", "data.mat", "-o", "out.npy", status=65))
        self.assertIn("npy, idx, matrix, csv", self.convert("--x", "data", "--format", "x", "-o", "out.npy", status=2))
        with open(self.path(DOCUMENT), encoding="utf-8") as file:
            self.assertIn("npy, idx, matrix, csv", " ".join(file.read().split()))


if __name__ == "__main__":
    unittest.main()
