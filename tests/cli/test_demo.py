#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_demo.py MERCER: mercer demo --quick: table, conclusion, page and log, and the accuracies that it must show."""
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "browser"))
import page  # noqa: E402 (found by the line above)

MERCER = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else "build/mercer"
ROW = re.compile(r"^ +([\d,]+) \|((?: +(?:[\d.]+ %|-))+) +[\d.]+$", re.MULTILINE)


def number(text):
    return int(text.replace(",", ""))


class Demo(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.html = os.path.join(cls.folder.name, "report.html")
        command = [MERCER, "demo", "--quick", "--json", "-o", cls.html]
        cls.run_ = subprocess.run(command, capture_output=True, text=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def setUp(self):
        self.assertEqual(self.run_.returncode, 0, self.run_.stderr)
        self.result = json.loads(self.run_.stdout)
        self.accuracy = {(cell["centers"], cell["samples"]): cell["accuracy"] for cell in self.result["cells"]}
        self.sizes = sorted({centers for centers, _ in self.accuracy})

    def error(self, share):
        """Return three standard errors of the difference of two accuracies on the test samples. Larger differences are significant."""
        return 3 * math.sqrt(2 * share * (1 - share) / self.result["tests"])

    def row(self, centers):
        return [self.accuracy[key] for key in sorted(self.accuracy) if key[0] == centers]

    def test_more_data_helps_a_model_of_fixed_size(self):
        for centers in self.sizes:
            row = self.row(centers)
            self.assertGreaterEqual(len(row), 3)
            self.assertIn((centers, centers), self.accuracy, "the centers' own labels are among them")
            for less, more in zip(row, row[1:]):
                self.assertGreater(more, less - self.error(less))
            self.assertGreater(row[-1], row[0] + self.error(row[0]), "own labels against all data")

    def test_more_centers_help(self):
        last = [self.row(centers)[-1] for centers in self.sizes]
        for fewer, more in zip(last, last[1:]):
            self.assertGreater(more, fewer + self.error(fewer))
        self.assertGreater(last[-1], 0.8)

    def test_table(self):
        rows = ROW.findall(self.run_.stderr)
        self.assertEqual([number(centers) for centers, _ in rows], self.sizes)
        for centers, cells in rows:
            shown = [float(cell) / 100 for cell in re.findall(r"([\d.]+) %", cells)]
            first = self.accuracy[number(centers), number(centers)]
            self.assertAlmostEqual(shown[0], first, places=4)
            self.assertAlmostEqual(shown[-1], self.row(number(centers))[-1], places=4)
        heads = [line for line in self.run_.stderr.split("\n") if "|" in line or "+" in line]
        self.assertEqual(len({line.find("|") for line in heads if "|" in line}), 1, "columns are aligned")

    def test_conclusion_agrees_with_the_table(self):
        words = " ".join(self.result["conclusion"])
        middle = self.row(self.sizes[len(self.sizes) // 2])
        for share in [middle[0], middle[-1], self.row(self.sizes[0])[-1], self.row(self.sizes[-1])[-1]]:
            self.assertIn(f"{100 * share:.2f} %", words)
        self.assertIn("grew", words)
        flat = " ".join(self.run_.stderr.split())
        for sentence in self.result["conclusion"]:
            self.assertIn(sentence, flat)

    def test_page_and_log(self):
        with open(self.html, encoding="utf-8") as file:
            read = page.Page(file.read())
        self.assertEqual(read.problems, [])
        self.assertLessEqual({"curves", "plan", "confusion", "phases"}, read.ids)
        self.assertEqual(read.counts["img"], 20)
        for share in self.accuracy.values():
            self.assertIn(f"{100 * share:.2f} %", read.text())
        log = os.path.join(self.folder.name, "demo.jsonl")
        self.assertEqual(self.result["log"], log)
        with open(log, encoding="utf-8") as file:
            events = [json.loads(line) for line in file]
        self.assertEqual(events[0]["event"], "start")
        best = self.accuracy[max(self.accuracy)]
        matrix = next(event["matrix"] for event in events if event["event"] == "confusion")
        right = sum(matrix[i][i] for i in range(10))
        self.assertEqual(sum(map(sum, matrix)), self.result["tests"])
        self.assertAlmostEqual(right / self.result["tests"], best)

    def test_outputs_that_cannot_be_written(self):
        for path, code in [(os.path.join(self.folder.name, "none", "page.html"), 74), ("-", 2)]:
            run = subprocess.run([MERCER, "demo", "--quick", "-o", path], capture_output=True, text=True, timeout=20)
            self.assertEqual((run.returncode, run.stdout), (code, ""), run.stderr)
            self.assertEqual(run.stderr.count("\n"), 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
