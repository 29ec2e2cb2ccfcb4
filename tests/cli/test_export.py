# SPDX-License-Identifier: BSD-3-Clause
"""test_export.py MERCER: exported models are compiled or run by onnxruntime and give the predictions of Mercer.

C files must give the same bits as `mercer predict` with the scalar instruction set. ONNX graphs are run if onnxruntime is
installed.
"""
import ctypes
import ctypes.util
import json
import math
import os
import random
import re
import shutil
import struct
import subprocess
import unittest

from support import Case, blobs, main, npy_bytes, read_npy, write_mean

try:
    import numpy
    import onnxruntime
except ImportError:
    onnxruntime = None

COMPILER = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
FLAGS = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O2", "-fPIC", "-shared"]
SCALAR = {"MERCER_ISA": "scalar"}
KERNELS = {
    "laplace": "laplace:bandwidth=3",
    "gaussian": "gaussian:bandwidth=2",
    "matern32": "matern32:bandwidth=3",
    "matern52": "matern52:bandwidth=3",
    "exppower": "exppower:bandwidth=3,gamma=0.7",
    "cauchy": "cauchy:bandwidth=3",
    "rational-quadratic": "rational-quadratic:bandwidth=3,alpha=0.5",
    "polynomial": "polynomial:degree=3,scale=0.1,offset=1",
    "linear": "linear",
    "ntk": "ntk:depth=2,bias=0.1",
    "nngp": "nngp:depth=3,bias=0.2",
    "laplace-l1": "laplace-l1:bandwidth=5",
    "exppower-l1": "exppower-l1:bandwidth=5,gamma=0.7",
    "lpq": "lpq:p=1.5,q=0.8,bandwidth=4",
}


XXHASH = ctypes.util.find_library("xxhash")  # the module xxhash computes the checksums of model files
MEMBERS = [  # options of models with kernels of both norms and several preprocessings
    ["--kernel", "laplace:bandwidth=3", "--preprocess", "standardize"],
    ["--kernel", "exppower-l1:bandwidth=5,gamma=0.7", "--preprocess", "rank", "--centers", "90"],
    ["--kernel", "gaussian:bandwidth=2", "--preprocess", "minmax", "--metric", "file:w.npy"],
    ["--effort", "1"],
]


def bits(values):
    return struct.pack("<%dd" % len(values), *values)


def xxh3(data):
    function = ctypes.CDLL(XXHASH).XXH3_64bits
    function.restype, function.argtypes = ctypes.c_uint64, [ctypes.c_char_p, ctypes.c_size_t]
    return function(data, len(data))


class Exports(Case):
    """Base class with small training data and comparisons of exported models."""

    def setUp(self):
        super().setUp()
        self.count = 0
        rng = random.Random(3)
        self.rows = [[rng.gauss(0, 1) for _ in range(5)] for _ in range(320)]
        self.rows[300] = [v * (1 + 1e-6) for v in self.rows[0]]  # too close for accurate distances from inner products
        self.values = [v for row in self.rows for v in row]
        targets = [[math.sin(x[0]) + x[1] * x[2] + 100, x[3]] for x in self.rows]
        self.write("x.npy", npy_bytes("<f4", (320, 5), self.values))
        self.write("y.npy", npy_bytes("<f8", (320, 2), [v for y in targets for v in y]))
        self.write("x64.npy", npy_bytes("<f8", (320, 5), self.values))
        self.singles = read_npy(self.path("x.npy"))[2]

    def train(self, *options, x="x.npy", y="y.npy"):
        self.good("train", "--x", x, "--y", y, "--centers", "260", "-q", "-o", "m.safetensors", *options)

    def train_mean(self, data, members, *options, **added):
        """Train models, which differ more than the members of a fit, and write their mean. added: metadata texts of the file."""
        self.write("w.npy", npy_bytes("<f8", (1, 5), [1, 2, 0.5, 1, 0.1]))
        for number, own in enumerate(members):
            centers = [] if "--centers" in own else ["--centers", "100"]
            self.good("train", *data, *own, *centers, *options, "-q", "-o", "member%d" % number)
        write_mean([self.path("member%d" % number) for number in range(len(members))], self.path("m.safetensors"), xxh3, **added)
        self.assertEqual(len(self.answer("inspect", "m.safetensors")["members"]), len(members))

    def compiled(self, *options):
        """Export the model, compile it without warnings and return the loaded library."""
        self.good("export", "m.safetensors", "-q", "-o", "m.c", *options)
        result = subprocess.run([COMPILER, *FLAGS, "m.c", "-o", "m.so", "-lm"], cwd=self.folder, capture_output=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr.decode())
        self.count += 1  # a new name, because dlopen does not reload a library of the same name
        os.replace(self.path("m.so"), self.path("m%d.so" % self.count))
        return ctypes.CDLL(self.path("m%d.so" % self.count))

    def same(self, values=None, x="x.npy", outputs=2, sample=ctypes.c_double):
        """Compare the compiled model with mercer predict on all rows and on the first row; return the loaded library."""
        self.good("predict", "-m", "m.safetensors", "--x", x, "--scores", "-q", "-o", "f.npy", environment=SCALAR)
        expected = read_npy(self.path("f.npy"))[2]
        values = self.singles if values is None else values
        library, rows = self.compiled(), len(expected) // outputs
        out = (ctypes.c_double * len(expected))()
        given = (sample * len(values))(*values)
        self.assertEqual(library.model_predict_rows(ctypes.c_long(rows), given, out), 0)
        self.assertEqual(bits(out), bits(expected))
        one = (ctypes.c_double * outputs)()
        self.assertEqual(library.model_predict(given, one), 0)
        self.assertEqual(bits(one), bits(expected[:outputs]))
        return library


@unittest.skipUnless(COMPILER, "no C compiler")
class C99(Exports):
    """C files."""

    def test_every_kernel(self):
        told = self.run_program("train", "--x", "x.npy", "--y", "y.npy", "--kernel", "none", "-o", "m").stderr.decode()
        for name in re.findall(r"[a-z0-9-]+", told.split("names:")[1]):
            self.assertIn(name, KERNELS)
        for name in KERNELS:
            with self.subTest(name):
                self.train("--kernel", KERNELS[name])
                self.same()

    def test_double(self):
        for name in ("laplace", "matern52", "ntk", "lpq"):
            with self.subTest(name):
                self.train("--kernel", KERNELS[name], x="x64.npy")
                self.same(self.values, x="x64.npy")
        self.train("--precision", "f64")  # float centers, double weights
        self.same()
        for transform in ("none", "standardise"):  # double samples, float weights; check-words: allow spelling -ise (old name)
            self.train("--precision", "f32", "--target-transform", transform, x="x64.npy")
            self.same(self.values, x="x64.npy")

    def test_norms(self):
        for spec in ("lpq:p=0.5,q=0.5,bandwidth=9", "lpq:p=1.3,q=1,bandwidth=4", "lpq:p=2,q=1.2,bandwidth=3"):
            with self.subTest(spec):
                self.train("--kernel", spec)
                self.same()

    def test_preprocessing_and_targets(self):
        self.write("w.npy", npy_bytes("<f8", (1, 5), [1, 2, 0.5, 1, 0.1]))
        rng = random.Random(5)
        a = [[rng.gauss(0, 1) for _ in range(5)] for _ in range(5)]
        full = [sum(a[k][i] * a[k][j] for k in range(5)) for i in range(5) for j in range(5)]
        self.write("metric.npy", npy_bytes("<f8", (5, 5), full))
        for options in (
            ["--preprocess", "none", "--target-transform", "none"],
            ["--preprocess", "scale:factor=0.3", "--kernel", "polynomial:degree=2", "--target-transform", "center"],
            ["--preprocess", "minmax", "--target-transform", "rank"],
            ["--preprocess", "unit", "--kernel", "ntk", "--target-transform", "standardize"],
            ["--preprocess", "rank", "--metric", "file:w.npy"],
            ["--preprocess", "blend", "--metric", "file:w.npy"],
            ["--metric", "file:metric.npy"],
        ):
            with self.subTest(options):
                self.train(*options)
                self.same()
        self.write("positive.npy", npy_bytes("<f8", (320, 1), [math.exp(x[0]) for x in self.rows]))
        self.train("--target-transform", "log", y="positive.npy")
        self.same(outputs=1)

    def test_bytes(self):
        rng = random.Random(4)
        values = [rng.randrange(256) for _ in range(320 * 7)]
        self.write("b.npy", npy_bytes("|u1", (320, 7), values))
        for name in ("laplace", "laplace-l1", "exppower", "lpq"):
            with self.subTest(name):
                kernel = name + (":gamma=0.7" if name == "exppower" else ":p=1.5,q=1" if name == "lpq" else "")
                self.train("--kernel", kernel, "--tune", "off", x="b.npy")
                self.same(values, x="b.npy", sample=ctypes.c_ubyte)
        self.train("--kernel", "ntk", "--preprocess", "none", x="b.npy")
        self.same(values, x="b.npy", sample=ctypes.c_ubyte)
        self.train("--kernel", "linear", x="b.npy")  # Scaled bytes are not bytes, so the exported functions take doubles.
        self.same(values, x="b.npy")

    def test_classes(self):
        rows, labels = blobs(330, d=4)
        names = ['cat "?', "d\u00f6g", "x\\y"]
        text = "a,b,c,d,class\n" + "".join(
            ",".join("%.4f" % v for v in row) + ',"%s"\n' % names[k].replace('"', '""') for row, k in zip(rows, labels)
        )
        self.write("t.csv", text)
        values = [struct.unpack("f", struct.pack("f", float("%.4f" % v)))[0] for row in rows for v in row]
        for weights in ([], ["--class-weight", "d\u00f6g=20"]):  # Class weights shift the scores before the softmax.
            self.good("train", "--x", "t.csv", "--centers", "220", "--calibrate", "on", *weights, "-q", "-o", "m.safetensors")
            self.same_classes(values)

    def same_classes(self, values):
        library = self.same(values, x="t.csv", outputs=3)
        self.good("predict", "-m", "m.safetensors", "--x", "t.csv", "--probabilities", "-q", "-o", "p.npy", environment=SCALAR)
        self.good("predict", "-m", "m.safetensors", "--x", "t.csv", "-q", "-o", "c.npy", environment=SCALAR)
        expected, classes = read_npy(self.path("p.npy"))[2], read_npy(self.path("c.npy"))[2]
        texts = (ctypes.c_char_p * 4).in_dll(library, "model_labels")
        self.assertIsNone(texts[3])
        out = (ctypes.c_double * 3)()
        for i in range(0, 330, 7):
            row = (ctypes.c_double * 4)(*values[4 * i : 4 * i + 4])
            self.assertEqual(library.model_probabilities(row, out), 0)
            self.assertEqual(bits(out), bits(expected[3 * i : 3 * i + 3]))
            self.assertEqual(texts[library.model_classify(row)].decode(), classes[i])

    @unittest.skipUnless(XXHASH, "no libxxhash")
    def test_means(self):
        """Means of models with different kernels and preprocessing: identifiers of members differ, sums keep their order."""
        others = [["--kernel", KERNELS[name]] for name in ("matern52", "cauchy", "rational-quadratic", "exppower")]
        for x, members, options, values in (
            ("x.npy", MEMBERS, [], None),
            ("x.npy", MEMBERS, ["--target-transform", "rank"], None),
            ("x64.npy", MEMBERS, ["--precision", "f64", "--target-transform", "none"], self.values),
            ("x.npy", others, [], None),
        ):
            with self.subTest(options):
                self.train_mean(["--x", x, "--y", "y.npy"], members, *options)
                self.same(values, x=x)
        self.train_mean(["--x", "x.npy", "--y", "y.npy"], MEMBERS, "--target-transform", "none")
        self.bad(1, "format c99: ", "export", "m.safetensors", "-o", "m.c")

    def test_fitted_means(self):
        """Means from fits with effort 4: a regression, and a classification with probabilities."""
        self.train("--effort", "4")
        self.same()
        rows, labels = blobs(330, d=4)
        self.write("t.csv", "a,b,c,d,class\n" + "".join(",".join("%.4f" % v for v in row) + ",k%d\n" % k for row, k in zip(rows, labels)))
        told = self.answer("train", "--x", "t.csv", "--effort", "4", "--calibrate", "on", "--centers", "60", "-q", "-o", "m.safetensors")
        self.assertEqual([member["centers"] for member in told["members"]], [60] * 3)
        self.same_classes([struct.unpack("f", struct.pack("f", float("%.4f" % v)))[0] for row in rows for v in row])

    @unittest.skipUnless(XXHASH, "no libxxhash")
    def test_mean_of_classes(self):
        rows, labels = blobs(300, d=4)
        self.write("t.csv", "a,b,c,d,class\n" + "".join(",".join("%.4f" % v for v in row) + ",k%d\n" % k for row, k in zip(rows, labels)))
        found = []
        for added in ({}, {"temperature": "0.3", "curvature": "20"}):
            with self.subTest(added):
                self.train_mean(["--x", "t.csv"], MEMBERS[:2] + MEMBERS[3:], **added)
                found.append(self.same_mean_of_classes(rows))
        self.assertNotEqual(bits(found[0]), bits(found[1]))

    def same_mean_of_classes(self, rows):
        self.assertIn("averaged with", self.good("inspect", "m.safetensors"))
        self.assertGreater(self.answer("eval", "-m", "m.safetensors", "--x", "t.csv")["accuracy"], 0.9)
        values = [struct.unpack("f", struct.pack("f", float("%.4f" % v)))[0] for row in rows for v in row]
        library = self.same(values, x="t.csv", outputs=3)
        self.good("predict", "-m", "m.safetensors", "--x", "t.csv", "--probabilities", "-q", "-o", "p.npy", environment=SCALAR)
        expected = read_npy(self.path("p.npy"))[2]
        for i in (0, 7, 299):
            sample, shares = (ctypes.c_double * 4)(*values[4 * i : 4 * i + 4]), (ctypes.c_double * 3)()
            self.assertEqual(library.model_probabilities(sample, shares), 0)
            self.assertEqual(bits(shares), bits(expected[3 * i : 3 * i + 3]))
            self.assertEqual(library.model_classify(sample), max(range(3), key=lambda c: expected[3 * i + c]))
        return expected

    def test_tables(self):
        rng = random.Random(6)
        lines, zones = [], ["", "T12:30Z", "T12:30", " 12:30:05.25Z", "T23:59+02:00"]
        for i in range(300):
            lines.append(
                [
                    rng.choice(["", "NA", "n/a", "-999", " 5.5 ", "1e3", "-0.25", "+7", "%.17g" % rng.gauss(0, 9)]),
                    rng.choice(["red", "green", "", "blue, dark", "caf\u00e9", "?"]),
                    rng.choice(["true", "FALSE", "True"]),
                    "%04d-%02d-%02d%s" % (rng.randrange(1900, 2100), rng.randrange(1, 13), rng.randrange(1, 29), rng.choice(zones)),
                    "k%d" % rng.randrange(290),
                    str(rng.random()),
                ]
            )
        quoted = ["\"%s\"" % cell if "," in cell else cell for row in lines for cell in row]
        rows = [",".join(quoted[6 * i : 6 * i + 6]) + ",%g\n" % (i % 17) for i in range(300)]
        self.write("t.csv", "num,color,flag,day,key,other,y\n" + "".join(rows))
        columns = ["--columns", "key:category", "--missing", "NA,N/A,?,-999"]
        self.good("train", "--x", "t.csv", "--target", "y", "--task", "regression", "--centers", "250", "-q", *columns, "-o", "m.safetensors")
        lines[0][1], lines[1][4] = "violet", "never seen"
        quoted = ["\"%s\"" % cell if "," in cell else cell for row in lines for cell in row]
        self.write("t.csv", "num,color,flag,day,key,other\n" + "".join(",".join(quoted[6 * i : 6 * i + 6]) + "\n" for i in range(300)))
        self.good("predict", "-m", "m.safetensors", "--x", "t.csv", "-q", "-o", "f.npy", environment=SCALAR)
        expected = read_npy(self.path("f.npy"))[2]
        library = self.compiled("--name", "prices")
        names = (ctypes.c_char_p * 7).in_dll(library, "prices_columns")
        self.assertEqual([name and name.decode() for name in names], ["num", "color", "flag", "day", "key", "other", None])
        out = (ctypes.c_double * 1)()
        for i, row in enumerate(lines):
            cells = (ctypes.c_char_p * 6)(*(cell.encode() or None for cell in row))
            self.assertEqual(library.prices_predict_cells(cells, out), 0, row)
            self.assertEqual(bits(out), bits(expected[i : i + 1]), row)
        for column, text in ((0, "five"), (0, "inf"), (0, "0x10"), (0, "1e60"), (2, "maybe"), (3, "2023-02-29"), (5, "1,5")):
            row = list(lines[2])
            row[column] = text
            cells = (ctypes.c_char_p * 6)(*(cell.encode() for cell in row))
            self.assertEqual(library.prices_predict_cells(cells, out), column + 1, text)

    def test_statistics_of_levels(self):
        """An exported file encodes categories with many levels by their statistics and their other features."""
        rng = random.Random(9)
        effects = [rng.gauss(0, 1) for _ in range(320)]
        for classes in (0, 3):
            lines = []
            for i in range(1200):
                level = 300 + i if i < 20 else rng.randrange(300)
                y = effects[level] + rng.gauss(0, 0.2)
                word = rng.choice(["", "K%d" % level]) if i % 40 == 39 else "K%d" % level
                lines.append([word, "%.4g" % rng.gauss(0, 1), "abc"[int(3 * math.erf(abs(y)))] if classes else "%.6g" % y])
            self.write("t.csv", "code,a,y\n" + "".join(",".join(line) + "\n" for line in lines))
            self.good("train", "--x", "t.csv", "--target", "y", "--centers", "300", "--tune", "off", "-q", "-o", "m.safetensors")
            shown = json.loads(self.good("inspect", "m.safetensors", "--json"))
            column = shown["schema"]["columns"][0]
            self.assertEqual((column["statistics"], len(column["levels"])), (classes or 1, 255))
            self.assertGreater(len(column["rare"]), 10)
            self.assertEqual(shown["feature_names"][257:], ["code target 1", "code target 2", "code target 3", "a"] if classes else ["code target", "a"])
            lines = lines[:80] + [["new", "1", "0"], ["K301", "2", "0"]]
            self.write("t.csv", "code,a\n" + "".join(",".join(line[:2]) + "\n" for line in lines))
            self.good("predict", "-m", "m.safetensors", "--x", "t.csv", "-q", "-o", "f.npy", environment=SCALAR, *(["--scores"] if classes else []))
            shape, expected = read_npy(self.path("f.npy"))[1:]
            library = self.compiled("--name", "prices")
            width = classes or 1
            out = (ctypes.c_double * width)()
            for i, line in enumerate(lines):
                cells = (ctypes.c_char_p * 2)(*(cell.encode() or None for cell in line[:2]))
                self.assertEqual(library.prices_predict_cells(cells, out), 0, line)
                self.assertEqual(bits(out), bits(expected[width * i : width * (i + 1)]), line)

    def test_norms_that_overflow(self):
        """Squared norms of centers overflow float, but the exported file compiles."""
        large = [v * 1e38 for v in self.singles]
        self.write("x.npy", npy_bytes("<f4", (320, 5), [max(-3e38, min(3e38, v)) for v in large]))
        self.train("--preprocess", "none", "--kernel", "laplace:bandwidth=1", "--solver", "ep4", "--epochs", "1")
        self.compiled()
        self.assertTrue(b"INFINITY" in self.read("m.c"))

    def test_notations(self):
        """An exported file parses notations of amounts and dates like the program."""
        rng = random.Random(7)
        lines = []
        for _ in range(200):
            amount, share = rng.choice([rng.uniform(-5, 5), rng.uniform(0, 1e6)]), rng.uniform(0, 100)
            grouped = "{:,.2f}".format(abs(amount)).replace(",", "\u00a0").replace(".", ",")
            lines.append([
                rng.choice(["", "NA", ("-" if amount < 0 else "") + rng.choice(["€", "€ "]) + grouped, grouped + " €", grouped]),
                rng.choice(["%.1f%%" % share, "%d %%" % share]).replace(".", ","),
                "%d.%d.%04d%s" % (rng.randrange(1, 29), rng.randrange(1, 13), rng.randrange(1900, 2100), rng.choice(["", " 12:30"])),
                "%d/%02d/%04d" % (rng.randrange(1, 13), rng.randrange(1, 29), rng.randrange(1900, 2100)),
                "%.6g" % rng.gauss(0, 1),
            ])
        self.write("t.csv", "amount;share;day;us;plain;y\n" + "".join(";".join(row) + ";%d\n" % (i % 17) for i, row in enumerate(lines)))
        self.good("train", "--x", "t.csv", "--target", "y", "--task", "regression", "-q", "-o", "m.safetensors")
        shown = json.loads(self.good("inspect", "m.safetensors", "--json"))
        found = [column.get("notation") for column in shown["schema"]["columns"]]
        self.assertEqual(found, ["€1.234,5", "1.234,5%", "d.m.Y", "m/d/Y", None])
        self.write("t.csv", "amount;share;day;us;plain\n" + "".join(";".join(row) + "\n" for row in lines))
        self.good("predict", "-m", "m.safetensors", "--x", "t.csv", "-q", "-o", "f.npy", environment=SCALAR)
        expected = read_npy(self.path("f.npy"))[2]
        library, out = self.compiled("--name", "prices"), (ctypes.c_double * 1)()
        for i, row in enumerate(lines):
            cells = (ctypes.c_char_p * 5)(*(cell.encode() or None for cell in row))
            self.assertEqual(library.prices_predict_cells(cells, out), 0, row)
            self.assertEqual(bits(out), bits(expected[i : i + 1]), row)
        for column, text in ((0, "$5"), (0, "1.23"), (0, "007"), (1, "12"), (2, "31.2.2000"), (2, "2000-01-01"), (3, "13/1/2000"), (4, "1 000")):
            cells = (ctypes.c_char_p * 5)(*((text if j == column else cell).encode() for j, cell in enumerate(lines[2])))
            self.assertEqual(library.prices_predict_cells(cells, out), column + 1, text)

    def test_values_that_are_not_finite(self):
        self.train()
        library, out = self.compiled(), (ctypes.c_double * 2)()
        for value in (math.nan, math.inf, 1e300):
            self.assertEqual(library.model_predict((ctypes.c_double * 5)(0, 0, value, 0, 0), out), -1)


@unittest.skipUnless(onnxruntime, "no onnxruntime")
class Onnx(Exports):
    """ONNX graphs compute in double, so they differ from Mercer by its rounding to float and by that of the output."""

    def agrees(self, values=None, x="x.npy", outputs=2, device="cpu"):
        """Compare the graph with mercer predict, to 1e-5 of the largest output, the documented tolerance.

        Arithmetic in float adds an error of at most about 2^-22 sum_j |w_j| for kernel values up to 1. If the weights
        are so large that this matters, pass device="reference", which computes in double.
        """
        self.good("predict", "-m", "m.safetensors", "--x", x, "--scores", "-q", "-o", "f.npy", "--device", device)
        self.good("export", "m.safetensors", "-q", "-o", "m.onnx")
        expected = numpy.array(read_npy(self.path("f.npy"))[2]).reshape(-1, outputs)
        session = onnxruntime.InferenceSession(self.path("m.onnx"), providers=["CPUExecutionProvider"])
        kind = numpy.float64 if session.get_inputs()[0].type == "tensor(double)" else numpy.float32
        given = numpy.array(self.singles if values is None else values, kind).reshape(len(expected), -1)
        found = dict(zip((o.name for o in session.get_outputs()), session.run(None, {"x": given})))
        error = abs(found["predictions"] - expected).max() / max(1, abs(expected).max())
        self.assertLess(error, 1e-5)
        return session, found

    def test_every_kernel(self):
        for name in KERNELS:
            with self.subTest(name):
                self.train("--kernel", KERNELS[name])
                self.agrees()

    def test_preprocessing_and_targets(self):
        self.write("w.npy", npy_bytes("<f8", (1, 5), [1, 2, 0.5, 1, 0.1]))
        for options in (
            ["--preprocess", "none", "--target-transform", "none"],
            ["--preprocess", "scale:factor=0.3", "--kernel", "polynomial:degree=2", "--target-transform", "center"],
            ["--preprocess", "minmax", "--target-transform", "rank"],
            ["--preprocess", "unit", "--kernel", "gaussian"],
            ["--preprocess", "rank", "--metric", "file:w.npy"],
            ["--preprocess", "blend", "--metric", "file:w.npy"],
            ["--learn-features", "on", "--effort", "1"],
        ):
            with self.subTest(options):
                self.train(*options)
                self.agrees(device="reference")
        self.write("positive.npy", npy_bytes("<f8", (320, 1), [math.exp(x[0]) for x in self.rows]))
        self.train("--target-transform", "log", y="positive.npy")
        self.agrees(outputs=1)
        self.train(x="x64.npy")
        self.agrees(self.values, x="x64.npy")

    @unittest.skipUnless(XXHASH, "no libxxhash")
    def test_means(self):
        self.train_mean(["--x", "x.npy", "--y", "y.npy"], MEMBERS)
        self.agrees(device="reference")

    def test_fitted_mean(self):
        self.train("--effort", "4")
        self.assertEqual(len(self.answer("inspect", "m.safetensors")["members"]), 3)
        self.agrees(device="reference")

    def test_classes(self):
        rows, labels = blobs(300, d=4)
        self.write("t.csv", "a,b,c,d,class\n" + "".join(",".join("%.4f" % v for v in row) + ",k%d\n" % k for row, k in zip(rows, labels)))
        self.good("train", "--x", "t.csv", "--centers", "100", "-q", "-o", "m.safetensors")
        session, found = self.agrees([float("%.4f" % v) for row in rows for v in row], x="t.csv", outputs=3)
        self.good("predict", "-m", "m.safetensors", "--x", "t.csv", "--probabilities", "-q", "-o", "p.npy")
        expected = numpy.array(read_npy(self.path("p.npy"))[2]).reshape(-1, 3)
        self.assertLess(abs(found["probabilities"] - expected).max(), 1e-4)  # four times the error of the scores, because the temperature is 0.25
        self.assertEqual(list(found["class"]), list(expected.argmax(axis=1)))
        about = session.get_modelmeta().custom_metadata_map
        self.assertEqual(about["labels"], '["k0","k1","k2"]')
        self.assertEqual(about["feature_names"], '["a","b","c","d"]')

    @unittest.skipUnless(XXHASH, "no libxxhash")
    def test_curvature(self):
        rows, labels = blobs(300, d=4)
        self.write("t.csv", "a,b,c,d,class\n" + "".join(",".join("%.4f" % v for v in row) + ",k%d\n" % k for row, k in zip(rows, labels)))
        self.train_mean(["--x", "t.csv"], MEMBERS[:2], temperature="0.3", curvature="20")
        _, found = self.agrees([float("%.4f" % v) for row in rows for v in row], x="t.csv", outputs=3)
        self.good("predict", "-m", "m.safetensors", "--x", "t.csv", "--probabilities", "-q", "-o", "p.npy")
        expected = numpy.array(read_npy(self.path("p.npy"))[2]).reshape(-1, 3)
        # The curve magnifies errors of scores, 1e-5, at most by 20 / asinh(20) = 5.4, and the softmax by 1 / (2 T) = 1.7.
        self.assertLess(abs(found["probabilities"] - expected).max(), 1e-4)


class Refusals(Exports):
    """Errors of mercer export."""

    def test_names_and_files(self):
        self.train()
        self.bad(2, "neither .c nor .onnx", "export", "m.safetensors", "-o", "m.txt")
        self.bad(2, "2x", "export", "m.safetensors", "-o", "m.c", "--name", "2x")
        self.bad(2, "stdout", "export", "m.safetensors", "-o", "-")
        self.bad(66, "none", "export", "none", "-o", "m.c")
        self.bad(2, "format", "export", "m.safetensors", "--format", "f77", "-o", "m.c")
        self.assertEqual(sorted(name for name in os.listdir(self.folder) if name.startswith("m.")), ["m.safetensors"])
        told = self.answer("export", "m.safetensors", "--format", "c99", "-o", "m.txt")
        self.assertEqual(told, {"output": "m.txt", "centers": 260, "warnings": []})


if __name__ == "__main__":
    main()
