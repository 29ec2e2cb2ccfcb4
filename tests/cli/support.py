# SPDX-License-Identifier: BSD-3-Clause
"""Shared helpers for the tests of the program: they run it and write input files. Standard library only."""
import ast
import gzip
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
PROGRAM = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else "mercer"

TYPES = {"<f8": "d", "<f4": "f", "|u1": "B", "<i8": "q", "<i4": "i"}


def npy_bytes(kind, shape, values):
    """Return the bytes of an NPY file (version 1.0)."""
    text = repr({"descr": kind, "fortran_order": False, "shape": tuple(shape)})
    text += " " * (-(10 + len(text) + 1) % 64) + "\n"
    head = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode("latin1")
    return head + struct.pack("<%d%s" % (len(values), TYPES[kind]), *values)


def read_npy(path):
    """Return (kind, shape, values) of an NPY file; text values are strings."""
    with open(path, "rb") as file:
        data = file.read()
    assert data[:8] == b"\x93NUMPY\x01\x00", data[:8]
    size = struct.unpack("<H", data[8:10])[0]
    head = ast.literal_eval(data[10 : 10 + size].decode("latin1"))
    body = data[10 + size :]
    assert (10 + size) % 64 == 0
    if head["descr"].startswith("<U"):
        width = int(head["descr"][2:])
        count = head["shape"][0]
        assert len(body) == 4 * width * count
        texts = [body[4 * width * i : 4 * width * (i + 1)].decode("utf-32-le").rstrip("\0") for i in range(count)]
        return head["descr"], head["shape"], texts
    code = TYPES[head["descr"]]
    return head["descr"], head["shape"], list(struct.unpack("<%d%s" % (len(body) // struct.calcsize(code), code), body))


def idx_bytes(shape, values):
    """Return an IDX file with elements of one byte."""
    return struct.pack(">BBBB", 0, 0, 8, len(shape)) + struct.pack(">%dI" % len(shape), *shape) + bytes(values)


def blobs(n, d=4, classes=3, seed=0):
    """Return n rows in one cluster per class, and their classes, which are easy to learn."""
    rng = random.Random(seed)
    rows, labels = [], []
    for i in range(n):
        label = i % classes
        rows.append([rng.gauss(3.0 if j % classes == label else 0.0, 0.5) for j in range(d)])
        labels.append(label)
    return rows, labels


def read_tensors(path):
    """Return the header of a safetensors file and the bytes of its tensors by name."""
    with open(path, "rb") as file:
        data = file.read()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    places = {name: entry["data_offsets"] for name, entry in header.items() if name != "__metadata__"}
    return header, {name: data[start + begin : start + end] for name, (begin, end) in places.items()}


def write_mean(paths, out, xxh3, **added):
    """Write the mean of several models in the format of version 0.2 (docs/model-file.md). xxh3: checksum function of bytes.

    added: more texts of the metadata; a curvature raises the version to 9.
    """
    own = ("kernel", "preprocess", "preprocess_folded", "kernel_before_preprocess")
    points = ("centers", "weights", "origin", "metric")
    header, parts = read_tensors(paths[0])
    texts = header.pop("__metadata__")
    for number, path in enumerate(paths[1:], 1):
        other, data = read_tensors(path)
        texts.update({"member%d.%s" % (number, key): other["__metadata__"][key] for key in own if key in other["__metadata__"]})
        for name in data:
            if name in points or name.startswith("preprocess."):
                header["member%d.%s" % (number, name)] = other[name]
                parts["member%d.%s" % (number, name)] = data[name]
    texts.update(members=str(len(paths)), format_version=str(max(9 if "curvature" in added else 6, int(texts["format_version"]))))
    texts.update(added)
    texts = {key: value for key, value in texts.items() if not key.startswith("xxh3.")}
    # Sort by decreasing size of the type, so that every tensor is aligned.
    order = sorted(parts, key=lambda name: -int(header[name]["dtype"][1:]))
    at = 0
    for name in order:
        header[name] = dict(header[name], data_offsets=[at, at + len(parts[name])])
        at += len(parts[name])
        texts["xxh3." + name] = "%016x" % xxh3(parts[name])
    whole = {"__metadata__": {"xxh3.header": "0" * 16, **texts}, **{name: header[name] for name in order}}
    text = json.dumps(whole, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-(8 + len(text)) % 64)
    text = text.replace(b"0" * 16, b"%016x" % xxh3(text), 1)
    with open(out, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(parts[name] for name in order))


class Case(unittest.TestCase):
    """Base class of tests; each test has its own temporary folder."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="mercer-cli-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, data):
        mode = "wb" if isinstance(data, bytes) else "w"
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), mode, **({} if mode == "wb" else {"encoding": "utf-8", "newline": ""})) as file:
            file.write(data)
        return self.path(name)

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def run_program(self, *arguments, **options):
        environment = dict(os.environ, **options.pop("environment", {}))
        return subprocess.run(
            [PROGRAM, *arguments],
            cwd=options.pop("cwd", self.folder),
            env=environment,
            stdout=options.pop("stdout", subprocess.PIPE),
            stderr=subprocess.PIPE,
            stdin=options.pop("stdin", subprocess.DEVNULL),
            timeout=options.pop("timeout", 900) * float(os.environ.get("MERCER_TEST_SLOW", "1")),
            check=False,
            **options,
        )

    def good(self, *arguments, **options):
        """Run the program, expect success and return stdout as text."""
        result = self.run_program(*arguments, **options)
        self.assertEqual(result.returncode, 0, (arguments, result.stderr))
        return result.stdout.decode() if result.stdout is not None else ""

    def answer(self, *arguments, **options):
        """Run the program with --json and return the JSON object on stdout."""
        out = self.good(*arguments, "--json", **options)
        self.assertEqual(out.count("\n"), 1, out)
        return json.loads(out)

    def bad(self, code, pattern, *arguments, **options):
        """Run the program and expect this exit code and exactly one error line, which matches the pattern."""
        result = self.run_program(*arguments, **options)
        text = result.stderr.decode(errors="replace")
        self.assertEqual(result.returncode, code, (arguments, text))
        lines = [line for line in text.splitlines() if line.startswith("mercer: ") and not line.startswith("mercer: warning: ")]
        self.assertEqual(len(lines), 1, (arguments, text))
        self.assertEqual(text.splitlines()[-1], lines[0], (arguments, text))
        self.assertRegex(lines[0], pattern)
        return result

    # Input files.

    def make_npy(self, n=60, d=4, classes=3, seed=0, prefix=""):
        rows, labels = blobs(n, d, classes, seed)
        self.write(prefix + "x.npy", npy_bytes("<f4", (n, d), [v for row in rows for v in row]))
        self.write(prefix + "y.npy", npy_bytes("<i8", (n,), labels))

    def make_csv(self, name="data.csv", n=60, names=("red", "green", "blue"), seed=0):
        rows, labels = blobs(n, 4, len(names), seed)
        lines = ["a,b,c,d,color"]
        lines += [",".join("%.6f" % v for v in row) + "," + names[label] for row, label in zip(rows, labels)]
        return self.write(name, "\n".join(lines) + "\n")

    def make_folder(self, name="images", n=40, zipped=True, side=4):
        rng = random.Random(1)
        for part, count in (("train", n), ("t10k", n // 2)):
            labels = [i % 2 for i in range(count)]
            pixels = [min(255, 180 * (label == (j % side < side // 2)) + rng.randrange(60)) for label in labels for j in range(side * side)]
            for what, data in (
                ("images-idx3-ubyte", idx_bytes((count, side, side), pixels)),
                ("labels-idx1-ubyte", idx_bytes((count,), labels)),
            ):
                file = "%s/%s-%s%s" % (name, part, what, ".gz" if zipped else "")
                self.write(file, gzip.compress(data) if zipped else data)
        return self.path(name)

    def make_records(self, name, files, labels, seed=0):
        """Write CIFAR files: records of `labels` label bytes and 3,072 pixels, brighter in records with odd numbers."""
        rng = random.Random(seed)
        for file, count in files.items():
            data = b"".join(bytes([i % 4] * labels) + bytes(120 * (i % 2) + rng.randrange(90) for _ in range(3072)) for i in range(count))
            self.write("%s/%s" % (name, file), data)

    def make_model(self, name="model.safetensors", *arguments):
        self.make_npy()
        self.good("train", "--x", "x.npy", "--y", "y.npy", "--centers", "20", "-o", name, "-q", *arguments)
        return self.path(name)


def main():
    unittest.main(verbosity=1)
