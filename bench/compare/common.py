# SPDX-License-Identifier: BSD-3-Clause
"""Shared functions of the comparisons: load MNIST as NumPy arrays, train with Mercer's programs, and print results as text or JSON."""
import argparse
import gzip
import importlib.util
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))


def options_of(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="small sizes, to check that the program runs")
    parser.add_argument("--filter", default="", help="run only cases whose name contains FILTER")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--data", default=os.environ.get("MERCER_DATA"), help="folder that contains mnist/ (default: MERCER_DATA)")
    return parser.parse_args()


def missing(program, packages, data):
    """Report missing packages or data; return True if anything is missing."""
    absent = [name for name in packages if importlib.util.find_spec(name) is None]
    if absent:
        print(f"{program}: left out, {' and '.join(absent)} not found; `tools/setup compare` gets them", file=sys.stderr)
    elif not data:
        print(f"{program}: left out, MERCER_DATA is not set", file=sys.stderr)
    return bool(absent or not data)


def load_mnist(folder, part):
    """Return pixels (n, 784) and labels (n), both uint8."""
    import numpy as np

    arrays = []
    for kind, skip in (("images-idx3", 16), ("labels-idx1", 8)):
        with gzip.open(os.path.join(folder, "mnist", f"{part}-{kind}-ubyte.gz")) as file:
            arrays.append(np.frombuffer(file.read(), dtype=np.uint8, offset=skip))
    return arrays[0].reshape(len(arrays[1]), -1), arrays[1]


def load_mnist_floats(folder):
    """Return training samples and labels, test samples and labels; pixels are float32 from 0 to 1."""
    data = []
    for part in ("train", "t10k"):
        pixels, labels = load_mnist(folder, part)
        data += [pixels.astype("float32") / 255, labels]
    return data


def mercer_train(options, *arguments):
    """Run `mercer train` on MNIST; return its seconds without validation, its test accuracy in %, and its plan."""
    with tempfile.TemporaryDirectory() as scratch:
        command = [os.path.join(options.build, "mercer"), "train", "--data", os.path.join(options.data, "mnist"), "--json", "-q"]
        command += [*map(str, arguments), "-o", os.path.join(scratch, "model.safetensors")]
        summary = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
    return summary["seconds"] - summary["phases"]["validation"], 100 * summary["accuracy"], summary["plan"]


def mercer_case(options, name):
    """Run one case of bench_train; return its JSON line."""
    command = [os.path.join(options.build, "bench", "bench_train"), "--json", "--filter", name]
    environment = {**os.environ, "MERCER_DATA": options.data}
    lines = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment).stdout.splitlines()
    return json.loads(lines[0])


def report(options, entry, columns):
    """Print one entry, as JSON or as text; columns are the (name, format) pairs of the text."""
    if options.json:
        print(json.dumps({name: round(value, 4) if isinstance(value, float) else value for name, value in entry.items()}), flush=True)
    else:
        print(" ".join(format(entry[name] if entry[name] is not None else "", form if entry[name] is not None else ">8")
                       for name, form in columns), flush=True)
