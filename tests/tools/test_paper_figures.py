# SPDX-License-Identifier: BSD-3-Clause
"""test_paper_figures.py BUILD: bench/paper/figure for a figure without data, after an interruption, and with missing data."""
import csv
import json
import os
import subprocess
import sys
import tempfile
import unittest

BUILD = sys.argv.pop(1)
FIGURE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "paper", "figure")


class Figures(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = folder.name

    def figure(self, *arguments, data=""):
        """Run bench/paper/figure, expect success and return its standard error."""
        environment = {**os.environ, "MERCER_DATA": data, "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, FIGURE, "--build", BUILD, "--out", self.out, *arguments]
        result = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stderr

    def read(self, name):
        with open(os.path.join(self.out, name), encoding="utf-8") as file:
            return file.read()

    def test_made_and_resumed(self):
        said = self.figure("lemma")
        self.assertEqual(said.count("s of processors"), 10)
        rows = list(csv.DictReader(self.read("lemma.csv").splitlines()))
        self.assertEqual([row["problem"] for row in rows], [str(problem) for problem in range(1, 11)])
        for row in rows:  # the statements of the lemma, for each problem
            self.assertLess(float(row["error_0.95"]), 0.1)
            self.assertLess(float(row["limit_error"]), 1e-9)
            self.assertGreater(float(row["error_1.05"]), 1e6)
            self.assertGreater(float(row["error_2"]), 1e6)
            # 20,000 draws of a sum of ten squares: its relative standard error is at most sqrt(2 / 20,000) = 0.01.
            self.assertAlmostEqual(float(row["variance_measured"]) / float(row["variance_formula"]), 1, delta=0.05)
            self.assertAlmostEqual(float(row["variance_mended"]) / float(row["variance_formula"]), 1, delta=1e-6)
        self.assertIn("<svg", self.read("lemma.html"))
        # Simulate a kill while the eighth line was written.
        lines = self.read("cells.jsonl").splitlines(keepends=True)
        with open(os.path.join(self.out, "cells.jsonl"), "w", encoding="utf-8") as file:
            file.write("".join(lines[:7]) + lines[7][:40])
        said = self.figure("lemma")
        self.assertEqual(said.count("s of processors"), 3)
        self.assertEqual(len(self.read("lemma.csv").splitlines()), 11)
        self.assertEqual(self.figure("lemma").count("s of processors"), 0)
        kept = [json.loads(line) for line in self.read("cells.jsonl").splitlines() if line.endswith("}")]
        self.assertEqual(sorted(row["problem"] for row in kept), list(range(1, 11)))

    def test_missing_data(self):
        said = self.figure("centers", "stream", data=self.out)
        self.assertIn("left out: mnist: not in MERCER_DATA", said)
        self.assertIn("left out: fashion-mnist: not in MERCER_DATA", said)
        self.assertIn("not in MERCER_DATA", self.read("centers.html"))
        self.assertIn("recorded", self.read("stream.html"))
        self.assertIn("MERCER_DATA is not set", self.figure("descent"))

    def test_unknown_names(self):
        command = [sys.executable, FIGURE, "--build", BUILD, "nonsense"]
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(result.returncode, 2)
        self.assertIn("no figure is called nonsense; there are lemma, costs", result.stderr)


if __name__ == "__main__":
    unittest.main()
