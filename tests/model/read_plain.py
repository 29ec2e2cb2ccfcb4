#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""read_plain.py WRITE_MODELS: reads and evaluates model files using only Python's standard library.

WRITE_MODELS is the program of tests/model/write_models.c. This script has its own implementation of all formulas in double.

Tolerance: samples and centers have |x|^2, |z|^2 <= 54 (6 features within -3 .. 3). A squared distance from inner
products has an error below (6 + 4) u 4 54 < 2200 u, u = 2^-53. No two rows are closer than 1/2, and bandwidths are at
least 1, so the error of a kernel of the distance is below 2200 u. The error of a kernel of the inner product, whose
largest value is `top`, is below 2200 u top. Preprocessing adds a few rounding errors, so |f - f'| <= 4000 u top sum |alpha|.
"""
import json
import math
import os
import struct
import subprocess
import sys
import tempfile

LETTERS = {"F64": ("d", 8), "F32": ("f", 4), "F16": ("e", 2), "U8": ("B", 1)}


def read(path):
    """Return the metadata and the tensors; matrices are lists of rows."""
    with open(path, "rb") as file:
        raw = file.read()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + length])
    assert (8 + length) % 64 == 0 and raw[8:9] == b"{"
    metadata = header.pop("__metadata__")
    tensors, end = {}, 0
    for name, about in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        letter, size = LETTERS[about["dtype"]]
        begin, stop = about["data_offsets"]
        assert begin == end and (8 + length + begin) % size == 0, name
        end = stop
        values = struct.unpack(f"<{(stop - begin) // size}{letter}", raw[8 + length + begin : 8 + length + stop])
        assert len(values) == math.prod(about["shape"]), name
        columns = about["shape"][-1]
        rows = [list(values[i : i + columns]) for i in range(0, len(values), columns)]
        tensors[name] = rows if len(about["shape"]) == 2 else rows[0]
    assert 8 + length + end == len(raw)
    return metadata, tensors


def parameters(text):
    name, _, rest = text.partition(":")
    return name, {key: float(value) for key, value in (word.split("=") for word in rest.split(",") if word)}


def kernel(text, x, z):
    name, given = parameters(text)
    inner = math.fsum(a * b for a, b in zip(x, z))
    if name == "linear":
        return inner
    if name == "polynomial":
        return (given["scale"] * inner + given["offset"]) ** given["degree"]
    p = given.get("p", 1 if name.endswith("-l1") else 2)
    r = math.fsum(abs(a - b) ** p for a, b in zip(x, z)) ** (1 / p) / given["bandwidth"]
    return {
        "laplace-l1": lambda: math.exp(-r),
        "exppower-l1": lambda: math.exp(-(r ** given["gamma"])),
        "lpq": lambda: math.exp(-(r ** given["q"])),
        "laplace": lambda: math.exp(-r),
        "gaussian": lambda: math.exp(-r * r / 2),
        "matern32": lambda: (1 + math.sqrt(3) * r) * math.exp(-math.sqrt(3) * r),
        "matern52": lambda: (1 + math.sqrt(5) * r + 5 / 3 * r * r) * math.exp(-math.sqrt(5) * r),
        "exppower": lambda: math.exp(-(r ** given["gamma"])),
        "cauchy": lambda: 1 / (1 + r * r),
        "rational-quadratic": lambda: (1 + r * r / (2 * given["alpha"])) ** -given["alpha"],
    }[name]()


def preprocess(metadata, tensors, x):
    if "preprocess" not in metadata or metadata["preprocess_folded"] == "true":
        return x
    name, given = parameters(metadata["preprocess"])
    if name == "scale":
        return [value * given["factor"] for value in x]
    if name == "unit":
        norm = math.sqrt(math.fsum(value * value for value in x))
        return [value / norm for value in x]
    if name == "none":
        return x
    return [(v - s) * f for v, s, f in zip(x, tensors["preprocess.shift"], tensors["preprocess.factor"])]


def check(folder, case):
    metadata, tensors = read(os.path.join(folder, case["file"]))
    assert metadata["format"] == "mercer-model"
    assert metadata["format_version"] == ("2" if "targets.scale" in tensors else "1")
    assert json.loads(metadata["labels"]) == ["größer", '"kleiner"'] and metadata["note"] == "a note\nof two lines"
    outputs, worst = len(case["f"][0]), 0.0
    offset, scale = tensors.get("targets.offset", [0] * outputs), tensors.get("targets.scale", [1] * outputs)
    for sample, expected in zip(case["x"], case["f"]):
        x = preprocess(metadata, tensors, sample)
        values = [kernel(metadata["kernel"], x, z) for z in tensors["centers"]]
        for j, wanted in enumerate(expected):
            column = [row[j] for row in tensors["weights"]]
            got = offset[j] + scale[j] * math.fsum(a * k for a, k in zip(column, values))
            bound = 4000 * 2.0**-53 * max(1.0, max(map(abs, values))) * math.fsum(map(abs, column)) * scale[j]
            bound += 4 * 2.0**-53 * abs(offset[j])  # rounding of the result
            assert abs(got - wanted) <= bound, (case["file"], metadata["kernel"], got, wanted, bound)
            worst = max(worst, abs(got - wanted) / bound)
    return metadata["kernel"], worst


def check_folded(folder, case):
    """Check that the kernel before folding, on scaled rows, gives the same values. Return 1 if the factor is folded, else 0."""
    metadata, tensors = read(os.path.join(folder, case["file"]))
    if metadata.get("preprocess_folded") != "true":
        return 0
    factor = parameters(metadata["preprocess"])[1]["factor"]
    for z in tensors["centers"]:
        before = kernel(metadata["kernel_before_preprocess"], [factor * v for v in case["x"][0]], [factor * v for v in z])
        assert math.isclose(before, kernel(metadata["kernel"], case["x"][0], z), rel_tol=1e-12)
    return 1


def main():
    folded = 0
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.argv[1], folder], check=True)
        with open(os.path.join(folder, "cases.json"), encoding="utf-8") as file:
            cases = json.load(file)
        for case in cases:
            print("%-45s error %.3f of the bound" % check(folder, case))
            folded += check_folded(folder, case)
    assert len(cases) >= 9 and folded > 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
