# SPDX-License-Identifier: BSD-3-Clause
"""Data in several files: every command gives the same bytes as with one file of all rows."""
import os
import signal
import subprocess
import time

from support import PROGRAM, Case, blobs, main, npy_bytes, read_npy

N, D = 120, 4
CUTS = [[120], [50, 70], [31, 0, 60, 29], [0, 7, 113], [1] * 11 + [109]]
REST = ["--epochs", "3", "--batch", "40", "--threads", "1", "--memory", "1G", "-q"]
FEW = ["--centers", "30", "--solver", "ep4", *REST]


class Parts(Case):
    def setUp(self):
        super().setUp()
        self.rows, self.labels = blobs(N, D)
        self.make_npy(N, D)

    def cut(self, sizes, stem="part", rows=None, labels=None, kind="<f4"):
        """Write the samples to STEM-1.npy, ... and the labels, cut at another row, to STEMlabels-0.npy and STEMlabels-1.npy."""
        rows, labels = rows or self.rows, labels or self.labels
        for name in os.listdir(self.folder):
            if name.startswith((stem + "-", stem + "labels-")):
                os.remove(self.path(name))
        first = 0
        for number, size in enumerate(sizes):
            some = rows[first : first + size]
            self.write("%s-%d.npy" % (stem, number + 1), npy_bytes(kind, (size, D), [v for row in some for v in row]))
            first += size
        half = len(labels) // 3
        for number, some in enumerate((labels[:half], labels[half:])):
            self.write("%slabels-%d.npy" % (stem, number), npy_bytes("<i8", (len(some),), some))

    PATTERNS = ["--x", "part-*.npy", "--y", "partlabels-*.npy"]
    WHOLE = ["--x", "x.npy", "--y", "y.npy"]


class SameBytes(Parts):
    def test_training(self):
        for number, more in enumerate(
            (
                ["--center-method", "kmeans"],
                ["--center-method", "rpcholesky", "--preprocess", "standardize"],
                ["--validation-fraction", "0.2", "--patience", "2"],
                ["--center-method", "balanced", "--first", "10", "--rows", "90"],
                ["--centers", "all", "--solver", "ep2"],
            )
        ):
            more += REST if "--centers" in more else FEW
            self.good("train", *self.WHOLE, *more, "-o", "whole")
            self.cut(CUTS[number])
            self.good("train", *self.PATTERNS, *more, "-o", "parts")
            self.assertEqual(self.read("parts"), self.read("whole"), more)

    def test_validation_files(self):
        rows, labels = blobs(50, D, seed=3)
        self.make_npy(50, D, seed=3, prefix="v")
        self.cut([20, 0, 30], "val", rows, labels)
        self.cut(CUTS[1])
        whole = self.answer("train", *self.WHOLE, *FEW, "--x-val", "vx.npy", "--y-val", "vy.npy", "-o", "whole")
        parts = self.answer(
            "train", *self.PATTERNS, *FEW, "--x-val", "val-*.npy", "--y-val", "vallabels-*.npy", "-o", "parts"
        )
        self.assertEqual(self.read("parts"), self.read("whole"))
        for key in whole:
            if "validation" in key:
                self.assertEqual(parts[key], whole[key])

    def test_other_commands(self):
        self.good("train", *self.WHOLE, *FEW, "-o", "model")
        self.cut(CUTS[2])
        x, pattern = ["--x", "x.npy"], ["--x", "part-*.npy"]
        for command, more in (
            ("predict", ["-m", "model", "--scores"]),
            ("centers", ["--center-method", "kmeans", "--centers", "10", "-q"]),
            ("centers", ["--center-method", "random", "--centers", "10", "-q"]),
            ("convert", []),
        ):
            self.good(command, *x, *more, "-o", "one.npy")
            self.good(command, *pattern, *more, "-o", "several.npy")
            self.assertEqual(self.read("several.npy"), self.read("one.npy"), command)
        self.good("convert", *self.PATTERNS, "-o", "back.npy", "--y-output", "backy.npy")
        self.assertEqual(read_npy(self.path("backy.npy"))[2], self.labels)
        one, several = self.answer("eval", "-m", "model", *self.WHOLE), self.answer("eval", "-m", "model", *self.PATTERNS)
        for key in ("accuracy", "mse", "rows"):
            self.assertEqual(several[key], one[key])
        self.assertIn("120", self.good("plan", *self.PATTERNS, "--centers", "30"))

    def test_text(self):
        lines = self.read(os.path.basename(self.make_csv(n=N))).decode().splitlines()
        self.write("t-1.csv", "\n".join(lines[:40]) + "\n")
        self.write("t-2.csv", "")
        self.write("t-10.csv", "\n".join([lines[0], *lines[90:]]) + "\n")
        self.write("t-9.csv", "\n".join(lines[40:90]) + "\n")
        self.good("train", "--x", "data.csv", "--target", "color", *FEW, "-o", "whole")
        self.good("train", "--x", "t-*.csv", "--target", "color", *FEW, "-o", "parts")
        self.assertEqual(self.read("parts"), self.read("whole"))

    def test_literal_name_and_folder(self):
        self.cut(CUTS[1])
        self.write("part-*.npy", self.read("x.npy"))  # A file with exactly this name takes precedence over the pattern.
        self.assertEqual(self.answer("convert", "--x", "part-*.npy", "-o", "o.npy")["rows"], N)
        os.remove(self.path("part-*.npy"))
        os.makedirs(self.path("odd [1]*"))
        self.good("train", *self.WHOLE, *FEW, "-o", "whole")
        for name in os.listdir(self.folder):
            if name.startswith("part"):
                os.rename(self.path(name), self.path("odd [1]*", name))
        self.good("train", *self.PATTERNS, *FEW, "-o", "parts", cwd=self.path("odd [1]*"))
        self.assertEqual(self.read("odd [1]*/parts"), self.read("whole"))


class Refused(Parts):
    def refuse(self, code, pattern, x="part-*.npy"):
        self.bad(code, pattern, "train", "--x", x, "--y", "y.npy", *FEW, "-o", "m")
        self.assertFalse(os.path.exists(self.path("m")))

    def test_files_that_do_not_fit(self):
        self.refuse(66, r"part-\*\.npy: .*pattern")
        self.refuse(66, r"none/part-\*\.npy: .*folder", "none/part-*.npy")
        self.bad(2, r"'part-2\.npy' and --x .*patterns", "train", "--x", "part-1.npy", "part-2.npy")
        self.cut([60, 60])
        self.write("part-2.npy", npy_bytes("<f8", (60, D), [0.5] * 240))
        self.refuse(65, r"part-2\.npy: .* 4 f64, .*part-1\.npy .* 4 f32")
        self.write("part-2.npy", npy_bytes("<f4", (60, 3), [0.5] * 180))
        self.refuse(65, r"part-2\.npy: .* 3 f32, .*part-1\.npy .* 4 f32")
        self.write("part-2.npy", npy_bytes("<f4", (60, D), [0.5] * 240)[:-7])
        self.refuse(65, r"part-2\.npy: .*960 bytes .*truncated")
        self.write("part-2.npy", npy_bytes("<f4", (59, D), [0.5] * 236))
        self.refuse(65, r"y\.npy has 120 targets, but part-\*\.npy has 119 samples")
        self.write("part-2.npy", npy_bytes("<f4", (60, D), [0.5] * 239 + [float("nan")]))
        self.refuse(65, r"part-\*\.npy: row 119, column 3 \(from 0\) is NaN")

    def test_order_matters(self):
        """Files are ordered by their names only, so renamed files are different data."""
        self.good("train", *self.WHOLE, *FEW, "-o", "whole")
        self.cut([50, 70])
        os.rename(self.path("part-1.npy"), self.path("part-10.npy"))
        self.good("train", *self.PATTERNS, *FEW, "-o", "parts")
        self.assertNotEqual(self.read("parts"), self.read("whole"))


class Resume(Parts):
    LONG = ["--centers", "60", "--solver", "ep4", "--epochs", "100000", "--batch", "20", "--threads", "1", "--memory", "1G", "-q"]

    def interrupted(self):
        arguments = ["train", *self.PATTERNS, *self.LONG, "--checkpoint", "run", "--checkpoint-every", "0.05s", "-o", "m"]
        process = subprocess.Popen([PROGRAM, *arguments], cwd=self.folder, stderr=subprocess.PIPE)
        deadline = time.monotonic() + 60
        while not os.path.exists(self.path("run", "checkpoint.safetensors")) and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 75, errors)

    def test_changed_or_deleted_files(self):
        self.cut([50, 30, 40])
        self.interrupted()
        os.rename(self.path("part-2.npy"), self.path("gone"))
        self.bad(65, r"partlabels-\*\.npy has 120 targets, .*part-\*\.npy has 90 samples", "resume", "run", "-q")
        self.write("part-2.npy", npy_bytes("<f4", (30, D), [0.5] * 120))
        self.bad(65, r"part-\*\.npy: .*data changed.*--force", "resume", "run", "-q")
        os.rename(self.path("part-2.npy"), self.path("part-9.npy"))
        self.bad(65, r"part-\*\.npy: .*data changed", "resume", "run", "-q")
        for name in ("part-1.npy", "part-3.npy", "part-9.npy"):
            os.remove(self.path(name))
        self.bad(66, r"part-\*\.npy: .*file", "resume", "run", "-q")

    def test_split_at_other_rows(self):
        """A run that is resumed from another folder, with the same rows in other files, gives the same bytes."""
        run = ["--centers", "30", "--solver", "ep4", "--epochs", "4", "--batch", "40", "--threads", "1", "--memory", "1G", "-q"]
        self.good("train", *self.WHOLE, *run, "-o", "whole")
        self.cut([50, 70])
        self.good("train", *self.PATTERNS, *run, "--checkpoint", "run", "-o", "m")
        self.assertEqual(self.read("m"), self.read("whole"))
        os.remove(self.path("m"))
        self.cut([0, 100, 20])
        self.good("resume", self.path("run"), "-q", cwd="/")
        self.assertEqual(self.read("m"), self.read("whole"))


if __name__ == "__main__":
    main()
