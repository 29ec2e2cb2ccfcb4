#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_docs.py WRITE_MODELS: the Python program in docs/model-file.md gives the predictions of Mercer.

Exits with 77 (skipped) if numpy is not installed.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

try:
    import numpy
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "model-file.md")


def main():
    with open(DOCS, encoding="utf-8") as file:
        blocks = re.findall(r"```python\n(.*?)```", file.read(), re.S)
    assert len(blocks) == 1, "docs/model-file.md has one Python program"
    program = {}
    exec(blocks[0], program)  # defines predict(path, x)
    checked = 0
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.argv[1], folder], check=True)
        with open(os.path.join(folder, "cases.json"), encoding="utf-8") as file:
            cases = json.load(file)
        for case in cases:
            path = os.path.join(folder, case["file"])
            try:
                got = program["predict"](path, numpy.array(case["x"]))
            except NotImplementedError:
                continue  # The short program supports only some kernels and transforms.
            assert numpy.allclose(got, case["f"], rtol=1e-11, atol=1e-11), path
            checked += 1
    assert checked > 0
    print(f"{checked} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
