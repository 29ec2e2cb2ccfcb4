# SPDX-License-Identifier: BSD-3-Clause
"""tools/sample-text: the samples that it draws from a small tree and from this tree."""
import csv
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
TREE = {
    "src/core/sum.c": """/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sums the rows of a matrix.
 *
 * Rows are added in pairs for accuracy.
 */
double sum(void)
{
    // A comment that continues
    // on the next line.
    say("%s: row %" PRId64 " has no "
        "finite sum");
    pack("{ss ss}", "a", /* short */ "b/c/d.h");
}
""",
    "python/mercer/_sum.py": '''"""Sums of matrices for use in Python."""
def sum(x):
    # Sums of integers are exact, of floats not.
    raise ValueError(f"x has {x} rows, but one is needed")
''',
    "tools/count": "#!/bin/sh\n# Count the lines of all files.\necho 'this text is not a message'\n",
    "README.md": "# Title of a page\n\nThe first sentence is here. The second one\nis longer by some words.\n\n"
    "| a table is not a sentence |\n\n```sh\na command is not one either\n```\n- An item of a list is one.\n",
}
WANTED = {
    ("comment", "src/core/sum.c:3", "Sums the rows of a matrix."),
    ("comment", "src/core/sum.c:5", "Rows are added in pairs for accuracy."),
    ("comment", "src/core/sum.c:9", "A comment that continues on the next line."),
    ("message", "src/core/sum.c:11", "%s: row %PRId64 has no finite sum"),
    ("comment", "python/mercer/_sum.py:1", "Sums of matrices for use in Python."),
    ("comment", "python/mercer/_sum.py:3", "Sums of integers are exact, of floats not."),
    ("message", "python/mercer/_sum.py:4", "x has {} rows, but one is needed"),
    ("comment", "tools/count:2", "Count the lines of all files."),
    ("sentence", "README.md:3", "The first sentence is here."),
    ("sentence", "README.md:3", "The second one is longer by some words."),
    ("sentence", "README.md:11", "An item of a list is one."),
}


def sample(*arguments):
    """Return the rows that the tool prints, as dictionaries."""
    command = [sys.executable, os.path.join(ROOT, "tools", "sample-text"), *arguments]
    found = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return list(csv.DictReader(found.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE))


class SampleText(unittest.TestCase):
    def test_small_tree(self):
        """If a tree has fewer texts than requested, the sample has all texts, with the lines on which they begin."""
        with tempfile.TemporaryDirectory() as folder:
            for path, text in TREE.items():
                os.makedirs(os.path.join(folder, os.path.dirname(path)), exist_ok=True)
                with open(os.path.join(folder, path), "w", encoding="utf-8") as file:
                    file.write(text)
            found = sample(folder)
        self.assertEqual({(row["kind"], row["place"], row["text"]) for row in found}, WANTED)
        self.assertEqual([row["number"] for row in found], [str(k + 1) for k in range(len(WANTED))])

    def test_this_tree(self):
        """The sizes of the sample; the seed determines it."""
        found = sample("--seed", "3")
        kinds = [row["kind"] for row in found]
        self.assertEqual([kinds.count(kind) for kind in ("comment", "message", "sentence")], [150, 80, 60])
        self.assertEqual(len({(row["kind"], row["text"]) for row in found}), 290)
        self.assertEqual(sample("--seed", "3"), found)
        self.assertNotEqual(sample("--seed", "4"), found)


if __name__ == "__main__":
    unittest.main()
