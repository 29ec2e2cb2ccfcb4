# SPDX-License-Identifier: BSD-3-Clause
"""test_features.py MERCER: given and learned metrics, and gradients with respect to features."""
import math
import os
import random

from support import Case, main, npy_bytes

NAMES = ["a", "b", "c", "d", "e", "f"]


def rows(n, seed):
    """Return n rows of six features and targets that depend on b and on the product of d and e."""
    rng = random.Random(seed)
    samples = [[rng.gauss(0, 1) for _ in NAMES] for _ in range(n)]
    return samples, [math.sin(2 * x[1]) + x[3] * x[4] for x in samples]


class Features(Case):
    """Metrics and gradients."""

    def setUp(self):
        super().setUp()
        for name, n, seed in (("t.csv", 800, 1), ("v.csv", 300, 2)):
            samples, targets = rows(n, seed)
            lines = [",".join("%.6f" % v for v in x + [y]) for x, y in zip(samples, targets)]
            self.write(name, "\n".join([",".join(NAMES + ["y"])] + lines) + "\n")
        self.common = ["--x", "t.csv", "--centers", "200", "--lambda", "1e-3", "--tune", "off"]
        self.learned = ["--x", "t.csv", "--centers", "200", "--effort", "2", "--learn-features", "on"]

    def test_inspect_counts_features(self):
        """The number of features is reported correctly if a full metric has fewer directions than features."""
        lines = ["%.3f,%.3f,%s,%.3f" % (i % 7, i % 11, "uvw"[i % 3], i % 7 + i % 5) for i in range(80)]
        self.write("t.csv", "a,b,c,y\n" + "\n".join(lines) + "\n")
        metric = [1.0 if i == j and i < 4 else 0.5 if {i, j} == {0, 1} else 0.0 for i in range(5) for j in range(5)]
        self.write("metric.npy", npy_bytes("<f8", (5, 5), metric))
        self.good("train", "--x", "t.csv", "--target", "y", "--metric", "file:metric.npy", "-o", "m", "-q")
        self.assertEqual(self.answer("inspect", "m")["metric"], {"kind": "full", "directions": 4})
        text = self.good("inspect", "m")
        self.assertRegex(text, r"full, 5 features to 4 directions")
        self.assertRegex(text, r"2 numbers, 1 category: 5 features")

    def test_learning(self):
        """A learned metric with the default kernel and preprocessing lowers the error."""
        self.good("train", *self.common, "-o", "plain.safetensors", "-q")
        told = self.answer("train", *self.learned, "--log", "run.jsonl", "-o", "m.safetensors")
        errors = [step["error"] for step in told["search"]["steps"]]
        self.assertLess(errors[-1], 0.7 * errors[0])
        self.assertRegex(told["kernel"], "^laplace:")
        r2 = [self.answer("eval", "-m", name, "--x", "v.csv")["r2"] for name in ("plain.safetensors", "m.safetensors")]
        self.assertGreater(r2[1], r2[0])
        for threads in ("1", "2"):
            self.good("train", *self.learned, "--threads", threads, "-o", "again.safetensors", "-q")
            self.assertEqual(self.read("again.safetensors"), self.read("m.safetensors"))
        shown = self.answer("inspect", "m.safetensors")
        self.assertEqual((shown["features"], shown["metric"]["kind"]), (6, "full"))
        self.assertIn("metric", self.good("inspect", "m.safetensors"))
        self.good("report", "run.jsonl", "-o", "page.html")
        page = self.read("page.html").decode()
        for words in ("Held-out error", "Eigenvalues", "map", "largest weights"):
            self.assertIn(words, page)

    def test_given_kernels_and_preprocessings(self):
        """Given kernels and preprocessings are not changed; the metric is diagonal for a kernel of the L1 norm."""
        for kernel, preprocess, kind in (("laplace-l1", "auto", "diagonal"), ("matern32", "rank", "full")):
            told = self.answer("train", *self.learned, "--kernel", kernel, "--preprocess", preprocess, "-o", "m.safetensors")
            self.assertTrue(told["kernel"].startswith(kernel + ":"))
            shown = self.answer("inspect", "m.safetensors")
            self.assertEqual((shown["metric"]["kind"], shown["preprocess"]), (kind, preprocess.replace("auto", "standardize")))

    def test_resumed_runs_end_in_the_same_bytes(self):
        options = [*self.learned, "--solver", "ep4", "--epochs", "3", "--memory", "1G"]
        self.good("train", *options, "-o", "whole.safetensors", "-q")
        self.good("train", *options, "--checkpoint", "run", "-o", "m.safetensors", "-q")
        self.assertEqual(self.read("m.safetensors"), self.read("whole.safetensors"))

    def test_the_value_may_be_left_out(self):
        self.good("train", *self.learned[:-1], "-o", "m.safetensors", "-q")
        self.assertIn("metric", self.answer("inspect", "m.safetensors"))
        self.assertIn("\nsearch: before training", self.good("plan", "--x", "t.csv", "--learn-features", "on"))

    def test_explain(self):
        self.good("train", *self.learned, "-o", "m.safetensors", "-q")
        told = self.answer("explain", "-m", "m.safetensors", "--x", "v.csv", "--gradients")
        self.assertEqual(told["rows"], 300)
        order = [row["name"] for row in told["gradients"]]
        self.assertEqual(sorted(order[:3]), ["b", "d", "e"])
        self.assertEqual(sorted(order), NAMES)
        first, last = told["gradients"][0], told["gradients"][-1]
        self.assertGreater(first["effect_root_mean_squared"], 3 * last["effect_root_mean_squared"])
        for row in told["gradients"]:
            self.assertGreaterEqual(row["root_mean_squared"], row["mean_absolute"])
            self.assertAlmostEqual(row["effect_mean_absolute"], row["mean_absolute"] * row["deviation"], delta=1e-9)
        self.assertIn("feature", self.good("explain", "-m", "m.safetensors", "--x", "v.csv", "--gradients"))
        self.good("train", *self.common, "--kernel", "linear", "-o", "linear.safetensors", "-q")
        self.bad(1, r"kernel linear", "explain", "-m", "linear.safetensors", "--x", "v.csv", "--gradients")

    def test_given_metrics(self):
        self.write("w.csv", "0,4,0,4,4,0\n")
        self.write("w.npy", npy_bytes("<f8", (1, 6), [0, 4, 0, 4, 4, 0]))
        full = [4.0 if i == j and i in (1, 3, 4) else 0.0 for i in range(6) for j in range(6)]
        self.write("m.npy", npy_bytes("<f8", (6, 6), full))
        scores = []
        for metric in (None, "w.csv", "w.npy", "m.npy"):
            given = [] if metric is None else ["--metric", "file:" + metric]
            self.good("train", *self.common, *given, "-o", "m.safetensors", "-q")
            scores.append(self.answer("eval", "-m", "m.safetensors", "--x", "v.csv")["r2"])
        self.assertGreater(scores[1], scores[0])
        self.assertEqual(scores[1], scores[2])
        self.assertAlmostEqual(scores[1], scores[3], delta=1e-3)

    def test_rejected_metrics(self):
        for text, words in (("1,1,-3,1,1,1\n", r"weight 2 .* is -3"), ("1,1\n", r"metric is 1 x 2"), ("1,nan,1,1,1,1\n", r"nan|NaN")):
            self.write("w.csv", text)
            self.bad(65, words, "train", *self.common, "--metric", "file:w.csv", "-o", "m.safetensors")
        self.bad(66, r"none\.csv", "train", *self.common, "--metric", "file:none.csv", "-o", "m.safetensors")
        self.bad(2, r"--metric: 'w\.csv' ", "train", *self.common, "--metric", "w.csv", "-o", "m.safetensors")
        self.bad(2, r"--learn-features: .*ntk", "train", *self.learned, "--kernel", "ntk", "-o", "m.safetensors")
        self.bad(2, r"--learn-features: '3'.* on, off, auto", "train", *self.common, "--learn-features", "3", "-o", "m.safetensors")
        for other in (["--tune", "off"], ["--metric", "file:w.csv"]):
            self.bad(2, r"learn.features .*" + other[0][2:], "train", *self.learned, *other, "-o", "m.safetensors")
        self.assertFalse(os.path.exists(self.path("m.safetensors")))

    def test_a_constant_target(self):
        self.write("c.csv", "x,z,y\n" + "\n".join("%d,%d,5.5" % (i, i * i % 17) for i in range(60)) + "\n")
        self.good("train", "--x", "c.csv", "--target", "y", "--task", "regression", "--learn-features", "on", "-o", "m.safetensors", "-q")
        self.assertEqual(set(self.good("predict", "-m", "m.safetensors", "--x", "c.csv", "--target", "y", "-o", "-", "-q").split()), {"5.5"})


if __name__ == "__main__":
    main()
