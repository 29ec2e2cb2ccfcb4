#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_readme.py [ROOT]: the first C block of README.md is examples/readme.c, byte for byte.

The example is compiled and run as a test of its own, so what a reader copies from README.md works.
"""
import difflib
import os
import re
import sys

BLOCK = re.compile(rb"^```c\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def lines(text):
    return text.decode("utf-8", "backslashreplace").splitlines(keepends=True)


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "..", "..")
    found = BLOCK.search(read(os.path.join(root, "README.md")))
    if not found:
        print("README.md has no ```c block", file=sys.stderr)
        return 1
    example = read(os.path.join(root, "examples", "readme.c"))
    if found.group(1) == example:
        return 0
    difference = difflib.unified_diff(lines(example), lines(found.group(1)), "examples/readme.c", "README.md")
    sys.stderr.writelines(line if line.endswith("\n") else line + "\n" for line in difference)
    print("README.md and examples/readme.c differ: make them the same", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
