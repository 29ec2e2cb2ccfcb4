# SPDX-License-Identifier: BSD-3-Clause
"""Targets with any offset and unit are learned equally well, and models store the units of their predictions."""
import csv
import math
import os
import random
import struct

from support import Case, main, npy_bytes, read_npy

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "model", "data")
N, TEST = 600, 200
SHIFTS = {"plain": (0, 1), "far": (200, 1), "large": (0, 1e6), "small": (-3e4, 1e-3)}


class Targets(Case):
    def make_data(self, kind):
        rng = random.Random(3)
        rows = [[rng.gauss(0, 1) for _ in range(3)] for _ in range(N + TEST)]
        values = [math.sin(row[0]) + row[1] for row in rows]
        for part, some in (("train", slice(0, N)), ("test", slice(N, None))):
            flat = [v for row in rows[some] for v in row]
            self.write("x-%s.npy" % part, npy_bytes(kind, (len(flat) // 3, 3), flat))
            for name, (offset, scale) in SHIFTS.items():
                shifted = [offset + scale * v for v in values[some]]
                self.write("y-%s-%s.npy" % (name, part), npy_bytes("<f8", (len(shifted),), shifted))

    def train(self, name, *options):
        model = "model-%s.safetensors" % name
        files = ["--x", "x-train.npy", "--y", "y-%s-train.npy" % name]
        return model, self.answer("train", *files, "--centers", "80", "-o", model, *options)

    def r2(self, name, model):
        return self.answer("eval", "-m", model, "--x", "x-test.npy", "--y", "y-%s-test.npy" % name)["r2"]

    def test_offset_and_unit_have_no_effect(self):
        for kind in ("<f4", "<f8"):
            self.make_data(kind)
            for solver in ("direct", "cg", "ep4"):
                found = {}
                for name in SHIFTS:
                    model, _ = self.train(name, "--solver", solver, "--tune", "off", "--ridge", "none")
                    found[name] = self.r2(name, model)
                    self.assertGreater(found[name], 0.9, (kind, solver, found))
                    # Rounding of the shifted targets to double is at most 2e-9 of their standard deviation.
                    self.assertLess(abs(found[name] - found["plain"]), 1e-6, (kind, solver, found))

    def test_losses_are_in_the_units_of_the_targets(self):
        self.make_data("<f8")
        losses = {}
        for name in SHIFTS:
            files = ["--x-val", "x-test.npy", "--y-val", "y-%s-test.npy" % name]
            model, told = self.train(name, "--solver", "cg", "--tune", "off", "--ridge", "none", *files)
            losses[name] = dict(self.answer("inspect", model)["training"], mse=told["mse"])
        for name, (_, scale) in SHIFTS.items():
            for key in ("train_loss", "validation_loss", "mse"):
                wanted = losses["plain"][key] * scale**2
                self.assertLess(abs(losses[name][key] - wanted), 1e-6 * wanted, (name, key))

    def test_inspect_output(self):
        self.make_data("<f4")
        model, _ = self.train("far", "--tune", "off")  # A learned metric would need a later format version.
        targets = self.answer("inspect", model)["targets"]
        with open(self.path("y-far-train.npy"), "rb") as file:
            values = struct.unpack("<%dd" % N, file.read()[-8 * N :])
        mean = math.fsum(values) / N
        deviation = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / N)
        self.assertAlmostEqual(targets["offset"][0], mean, places=10)
        self.assertAlmostEqual(targets["scale"][0], deviation, places=10)
        self.assertIn("offset %.6g, scale %.6g" % (mean, deviation), self.good("inspect", model))
        self.good("predict", "-m", model, "--x", "x-test.npy", "-o", "f.npy")
        kind, shape, f = read_npy(self.path("f.npy"))
        self.assertEqual((kind, shape[0]), ("<f8", TEST))
        self.assertLess(max(abs(v - 200) for v in f), 6)
        header = self.answer("inspect", model)["header"]
        self.assertEqual(header["__metadata__"]["format_version"], "2")

    def test_transforms(self):
        self.make_data("<f8")
        model, _ = self.train("far", "--target-transform", "center")
        targets = self.answer("inspect", model)["targets"]
        self.assertEqual(targets["scale"], [1])
        self.assertGreater(self.r2("far", model), 0.9)
        model, _ = self.train("plain", "--target-transform", "none", "--tune", "off")
        told = self.answer("inspect", model)
        self.assertNotIn("targets", told)
        self.assertEqual(told["header"]["__metadata__"]["format_version"], "1")
        self.bad(2, "target-transform", "train", "--x", "x-train.npy", "-o", "m", "--target-transform", "square")

    def test_classes_begin_at_their_shares(self):
        self.make_npy(n=60)
        self.good("train", "--x", "x.npy", "--y", "y.npy", "--centers", "20", "-o", "model.safetensors", "-q")
        targets = self.answer("inspect", "model.safetensors")["targets"]
        for share in targets["offset"]:
            self.assertAlmostEqual(share, 1 / 3, places=15)
        self.assertEqual(targets["scale"], [1, 1, 1])
        self.assertEqual(self.answer("eval", "-m", "model.safetensors", "--x", "x.npy", "--y", "y.npy")["accuracy"], 1)

    def test_targets_too_small_to_be_squared(self):
        """Targets whose variance underflows to 0 are an error, because they would be taken for a constant."""
        for exponent, code in ((-300, 65), (-140, 0)):
            lines = ["%d,%d.%de%d" % (i % 37, i % 23, i % 7, exponent) for i in range(80)]
            self.write("small.csv", "a,price\n" + "\n".join(lines) + "\n")
            train = ["train", "--x", "small.csv", "--target", "price", "-o", "m", "-q"]
            if code == 0:
                self.good(*train)
            else:
                self.bad(code, r"small.csv: target 'price' ranges from 0 to 2\.\d+e-299.* multiply", *train)

    def test_target_too_large_to_be_squared(self):
        self.write("t.csv", "a,price\n" + "".join("%d,%d\n" % (i * i % 13, i) for i in range(60)) + "3,1e300\n")
        self.bad(65, "target 'price'", "train", "--x", "t.csv", "--target", "price", "-o", "m", "-q")

    def test_single_class(self):
        self.write("t.csv", "a,y\n" + "".join("%d,cat\n" % (i * i % 13) for i in range(60)))
        told = self.answer("train", "--x", "t.csv", "--target", "y", "-o", "m.safetensors")
        self.assertTrue(any("'cat'" in warning for warning in told["warnings"]), told["warnings"])

    def test_constant_target(self):
        self.make_data("<f8")
        self.write("y.npy", npy_bytes("<f8", (N,), [7.25] * N))
        self.good("train", "--x", "x-train.npy", "--y", "y.npy", "--centers", "20", "-o", "model.safetensors", "-q")
        self.good("predict", "-m", "model.safetensors", "--x", "x-test.npy", "-o", "f.npy")
        self.assertEqual(set(read_npy(self.path("f.npy"))[2]), {7.25})


class Versions(Case):
    def test_model_of_version_0_1(self):
        """A model file of Mercer 0.1.0 has no units and gives the recorded predictions."""
        with open(os.path.join(DATA, "version-0.1.csv"), encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        self.write("x.csv", "a,b\n" + "".join("%s,%s\n" % (row["a"], row["b"]) for row in rows))
        model = os.path.join(DATA, "version-0.1.safetensors")
        self.good("predict", "-m", model, "--x", "x.csv", "-o", "f.npy")
        kind, _, found = read_npy(self.path("f.npy"))
        self.assertEqual(kind, "<f4")
        for row, value in zip(rows, found):
            # Error bound: a distance in float has an error of at most 32 (2 d + 7) 2^-24 sqrt(20). It is divided by the
            # bandwidth, 1.769, and multiplied by the sum of the absolute weights, 33.
            self.assertLess(abs(float(row["f"]) - value), 2e-3)
        self.assertNotIn("targets", self.answer("inspect", model))


if __name__ == "__main__":
    main()
