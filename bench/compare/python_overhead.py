#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""python_overhead.py DATA [CENTERS] [REPEATS]: time training on MNIST by KernelClassifier and by the mercer program.

DATA is a folder with files named like those of MNIST (train-images-idx3-ubyte, with or without .gz, ...). KernelClassifier and the program
train alternately, REPEATS times each (default 3), on the same bytes with the same kernel, number of centers (default 10,000), solver,
epochs and seed. The output is the best and median seconds of the whole run (reading files, choosing centers, training) and the ratio of the
medians. The program is the program in the package, which is built with the same flags as the library of the package.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from mercer import Dataset, KernelClassifier, _program

BANDWIDTH, EPOCHS, SOLVER = 2500.0, 2, "ep4"


def name(folder, stem):
    for ending in ("", ".gz"):
        if os.path.exists(os.path.join(folder, stem + ending)):
            return os.path.join(folder, stem + ending)
    sys.exit(f"{folder} has no {stem}")


def by_package(x, y, centers):
    start = time.perf_counter()
    X, labels = Dataset(x, y).read()
    model = KernelClassifier(
        "laplace",
        bandwidth=BANDWIDTH,
        centers=centers,
        solver=SOLVER,
        random_state=0,
        advanced={"epochs": EPOCHS, "validation_fraction": 0},
    )
    model.fit(X, labels)
    return time.perf_counter() - start, model.summary_["seconds"], model


def by_program(x, y, centers, output):
    command = [
        _program.program(),
        "train",
        "--x",
        x,
        "--y",
        y,
        "--preprocess",
        "none",
        "--kernel",
        "laplace",
        "--json",
        "-q",
    ]
    command += ["--bandwidth", str(BANDWIDTH), "--centers", str(centers), "--solver", SOLVER, "--epochs", str(EPOCHS)]
    start = time.perf_counter()
    done = subprocess.run([*command, "-o", output], check=True, capture_output=True, text=True)
    return time.perf_counter() - start, json.loads(done.stdout)


def main():
    folder, centers, repeats = sys.argv[1], int((*sys.argv, "10000")[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 3
    x, y = name(folder, "train-images-idx3-ubyte"), name(folder, "train-labels-idx1-ubyte")
    package, program = [], []
    with tempfile.TemporaryDirectory() as scratch:
        for _ in range(repeats):
            program.append(by_program(x, y, centers, os.path.join(scratch, "model"))[0])
            package.append(by_package(x, y, centers)[0])
            print(f"program {program[-1]:.2f} s, package {package[-1]:.2f} s", flush=True)
    for what, seconds in (("program", program), ("package", package)):
        print(f"{what}: best {min(seconds):.2f} s, median {statistics.median(seconds):.2f} s")
    print(f"ratio of the medians, package / program: {statistics.median(package) / statistics.median(program):.3f}")


if __name__ == "__main__":
    main()
