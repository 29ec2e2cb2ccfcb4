#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""read_with_safetensors.py WRITE_MODELS: the safetensors package reads model files.

Exits with 77 (skipped) if numpy or safetensors is not installed.
"""
import json
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import read_plain  # noqa: E402 (the line above must come first)

try:
    import numpy
    import safetensors
    import safetensors.numpy
except ImportError as error:
    print(f"skipped: {error}; pip install safetensors numpy")
    sys.exit(77)


def check(path):
    metadata, tensors = read_plain.read(path)
    with safetensors.safe_open(path, framework="np") as file:
        assert file.metadata() == metadata
        assert set(file.keys()) == set(tensors)
        for name, values in tensors.items():
            assert numpy.array_equal(file.get_tensor(name), numpy.array(values)), name
    assert set(safetensors.numpy.load_file(path)) == set(tensors)


def main():
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.argv[1], folder], check=True)
        with open(os.path.join(folder, "cases.json"), encoding="utf-8") as file:
            cases = json.load(file)
        for case in cases:
            check(os.path.join(folder, case["file"]))
    print(f"{len(cases)} files read with safetensors {safetensors.__version__}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
