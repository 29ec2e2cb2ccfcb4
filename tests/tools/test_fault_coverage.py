# SPDX-License-Identifier: BSD-3-Clause
"""Every public function that can fail is called by a test of tests/fault, where allocations fail."""
import glob
import os
import re
import unittest

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))


def read(*patterns):
    text = ""
    for path in (path for pattern in patterns for path in glob.glob(os.path.join(ROOT, pattern))):
        with open(path, encoding="utf-8") as file:
            text += file.read()
    return text


class Coverage(unittest.TestCase):
    def test_every_function(self):
        functions = set(re.findall(r"^MERCER_API mercer_status (mercer_\w+)\(", read("include/mercer/*.h"), re.MULTILINE))
        self.assertGreater(len(functions), 80)
        self.assertEqual(functions - set(re.findall(r"\bmercer_\w+", read("tests/fault/*.c"))), set())


if __name__ == "__main__":
    unittest.main()
