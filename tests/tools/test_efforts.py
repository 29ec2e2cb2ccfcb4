# SPDX-License-Identifier: BSD-3-Clause
"""bench/tables: random splits, runs of efforts.py with a substitute for the program, and tables, chart and section of results."""
import contextlib
import gzip
import importlib.util
import io
import json
import math
import os
import re
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "tables"))
import effort_chart  # noqa: E402
import effort_results  # noqa: E402
import efforts  # noqa: E402
import fits  # noqa: E402
import packages  # noqa: E402
import splits  # noqa: E402
import summarize  # noqa: E402

PROGRAM = """#!/bin/sh
case "$1 $*" in
*--effort?2*) echo "no memory" >&2; exit 3;;
*--effort?4*) exec sleep 60;;
train*) echo '{"predicted_seconds": 1.5, "search": {"seconds": 0.5}, "centers": 7}';;
eval*) echo '{"rows": 2, "accuracy": 0.5, "auc": 0.75, "log_loss": 0.25, "r2": null}';;
esac
"""


def write_table(folder, name, train, test):
    for part, rows in (("train", train), ("test", test)):
        with gzip.open(os.path.join(folder, f"{name}_{part}.csv.gz"), "wt", encoding="utf-8") as file:
            file.write("\n".join(["a,target", *rows]) + "\n")


def line(package, size, value, seconds, table="housing", split="files", seed=0, **others):
    name = "effort" if package == "mercer" else "trees"
    costs = {"planned": 1.0} if package == "mercer" else {"fit_seconds": seconds, "version": "9.9"}
    return {"bench": "efforts", "folder": "tables", "table": table, "split": split, "seed": seed, "package": package, name: size, "threads": 2,
            "seconds": seconds, splits.TABLES["tables"][table]: value, "commit": "abc", "machine": "one", **costs, **others}


def lines():
    """Return results of two tables and three seeds: Mercer is clearly better on housing and insignificantly worse on letter."""
    found = []
    for seed in range(3):
        found += [line("mercer", 1, 0.80, 1.0, seed=seed), line("mercer", 3, 0.85 + seed / 1000, 4.0, seed=seed),
                  line("catboost", 1, 0.83, 8.0, seed=seed), line("catboost", 3, 0.84, 24.0, seed=seed),
                  line("mercer", 3, 0.95 + (seed - 1) / 100, 6.0, "letter", seed=seed, log_loss=0.2),
                  line("catboost", 1, 0.951, 3.0, "letter", seed=seed, log_loss=0.1)]
    failed = {key: value for key, value in line("catboost", 10, 0, 0, "letter").items() if key not in ("accuracy", "seconds")}
    return found + [{**failed, "failed": "timed out after 9 s"}]


class Splits(unittest.TestCase):
    def test_random_splits(self):
        train, test = splits.random_split(range(50), 3)
        self.assertEqual((len(train), len(test)), (40, 10))
        self.assertEqual(sorted(train + test), list(range(50)))
        self.assertEqual((train, test), splits.random_split(range(50), 3))
        self.assertNotEqual(test, splits.random_split(range(50), 4)[1])

    def test_files(self):
        with tempfile.TemporaryDirectory() as data:
            os.mkdir(os.path.join(data, "tables"))
            write_table(os.path.join(data, "tables"), "hr", [f"{k},1" for k in range(7)], [f"{k},0" for k in range(7, 10)])
            with splits.split_files(data, "tables", "hr", "files") as paths:
                self.assertEqual(paths, splits.paths_of(data, "tables", "hr"))
            with splits.split_files(data, "tables", "hr", 0) as paths:
                (header, train), (_, test) = map(splits.read_lines, paths)
            self.assertEqual((header, len(train), len(test)), ("a,target", 8, 2))
            self.assertEqual(sorted(row[0] for row in train + test), list("0123456789"))
            self.assertFalse(os.path.exists(paths[0]))
            write_table(os.path.join(data, "tables"), "hr", ['"line', 'break",1'], [])
            with self.assertRaisesRegex(ValueError, "line breaks within quotes"):
                splits.read_lines(splits.paths_of(data, "tables", "hr")[0])

    @unittest.skipUnless(importlib.util.find_spec("pandas"), "pandas is not installed")
    def test_dates(self):
        import pandas

        found = packages.dates(pandas.DataFrame({"when": ["2000-01-02 12:00:00", None], "size": ["1000-4999", "50-99"], "x": [1, 2]}))
        self.assertEqual(list(found), ["when", "when day of the year", "when hour", "size", "x"])
        self.assertEqual(list(found.iloc[0]), [1.5, 2, 12, "1000-4999", 1])
        self.assertTrue(math.isnan(found["when"][1]))


class Runs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.output, self.program = (os.path.join(folder.name, name) for name in ("out.jsonl", "mercer"))
        os.mkdir(os.path.join(folder.name, "tables"))
        for table in ("hr", "bank"):
            write_table(os.path.join(folder.name, "tables"), table, ["1,1"] * 8, ["2,1"] * (2 if table == "hr" else 3))
        with open(self.program, "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        os.chmod(self.program, 0o755)
        self.options = ["--packages", "", "--program", self.program, "--data", folder.name, "--output", self.output, "--machine", "here"]

    def run_program(self, *more):
        with mock.patch.object(sys, "argv", ["efforts.py", *self.options, *more]), contextlib.redirect_stdout(io.StringIO()) as printed, \
                contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(efforts.main(), 0)
        with open(self.output, encoding="utf-8") as file:
            return [json.loads(text) for text in file], printed.getvalue()

    def test_fits_are_recorded_once(self):
        found, printed = self.run_program("--tables", "hr", "--efforts", "1,2")
        self.assertEqual([found[0][name] for name in ("split", "effort", "auc", "planned", "search", "centers", "machine")],
                         ["files", 1, 0.75, 1.5, 0.5, 7, "here"])
        self.assertEqual(found[1]["failed"], "exit status 3: no memory")
        self.assertIn("| Mercer, effort 1 | **.7500** |", printed)
        self.assertIn("- hr, split files, seed 0, Mercer, effort 2: exit status 3: no memory", printed)
        self.assertEqual(len(self.run_program("--tables", "hr", "--efforts", "1,2,3")[0]), 3)
        self.assertEqual(len(self.run_program("--tables", "hr", "--efforts", "1,2", "--retry")[0]), 4)

    def test_time_limit_and_rows(self):
        found, _ = self.run_program("--tables", "hr,bank", "--efforts", "4,5", "--timeout", "0.5")
        self.assertEqual([entry.get("failed") for entry in found],
                         ["timed out after 0.5 s", None, "timed out after 0.5 s", "scored 2 of 3 test rows"])

    def test_random_splits(self):
        found, _ = self.run_program("--tables", "hr", "--splits", "2", "--seeds", "2", "--efforts", "3")
        self.assertEqual([(entry["split"], entry["seed"]) for entry in found], [(0, 0), (0, 1), (1, 0), (1, 1)])

    def test_fits_at_once_have_no_times(self):
        found, _ = self.run_program("--tables", "hr", "--splits", "3", "--efforts", "1", "--jobs", "3")
        self.assertEqual(sorted(entry["split"] for entry in found), [0, 1, 2])
        self.assertEqual([entry["auc"] for entry in found], [0.75] * 3)
        self.assertFalse(set(fits.TIMES) & set(found[0]))

    def test_scores_are_finite(self):
        self.assertEqual(efforts.problem_of({"test_rows": 2, "r2": math.nan}, "r2", 2), "r2 is not finite")
        self.assertEqual(efforts.problem_of({"test_rows": 2, "accuracy": 1.0}, "auc", 2), "has no auc")
        self.assertIsNone(efforts.problem_of({"test_rows": 2, "auc": 1.0}, "auc", 2))


class Results(unittest.TestCase):
    def test_last_line_of_a_fit_counts(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "lines.jsonl")
            with open(path, "w", encoding="utf-8") as file:
                for entry in (line("mercer", 3, 0.1, 1), line("mercer", 3, 0.2, 1), {"bench": "tables"}):
                    file.write(json.dumps(entry) + "\n")
            self.assertEqual([entry["r2"] for entry in effort_results.read([path])], [0.2])

    def test_comparisons(self):
        groups = effort_results.groups_of(lines())
        difference, error, ratio = effort_results.compare(groups["housing", ("mercer", 3)], groups["housing", ("catboost", 1)])
        self.assertAlmostEqual(difference, 0.021)
        self.assertAlmostEqual(error, 0.001 / math.sqrt(3))
        self.assertEqual(ratio, 0.5)
        self.assertEqual(effort_results.verdict(difference, error), ("better", True))
        self.assertEqual(effort_results.verdict(-0.001, 0.005), ("worse", False))
        self.assertEqual(effort_results.verdict(0.5, math.nan), ("better", False))
        self.assertIsNone(effort_results.compare(groups["housing", ("mercer", 3)], [line("catboost", 1, 0.5, 1, seed=9)]))

    def test_summary(self):
        text = "\n".join(summarize.sections(lines()))
        self.assertIn("| Mercer, effort 3 | **.8510 ± .0006** | .9500 ± .0058 |", text)
        self.assertIn("Log loss:\n\n|  | letter |", text)
        self.assertIn("| CatBoost, 3x trees | 24.0 [24.0] |  |", text)
        self.assertIn("| Mercer, effort 3 | 1 of 2 (1) | 1 of 1 (0.17) |", text)
        self.assertIn("| housing | +.0210 ± .0006 | 0.50 |", text)
        self.assertIn("better on 1 of 2 tables (housing) and worse on 1 (letter). The difference exceeds two standard errors on housing.",
                      " ".join(text.split()))
        self.assertIn("- letter, split files, seed 0, CatBoost, 10x trees: timed out after 9 s", text)

    def test_summary_without_times(self):
        untimed = [{name: value for name, value in entry.items() if name not in fits.TIMES} for entry in lines() if "failed" not in entry]
        text = "\n".join(summarize.sections(untimed))
        self.assertIn("| housing | +.0210 ± .0006 |", text)
        self.assertIn("| Mercer, effort 3 | 1 of 2 | 1 of 1 |", text)
        self.assertNotIn("times as long", text)
        self.assertNotIn("Seconds, median", text)

    def test_section(self):
        first = summarize.with_section("above\n\n## Comparison with boosted trees\n\nbelow\n", "old\n")
        self.assertEqual(re.sub("<!--.*?-->", "#", first), "above\n\n#\n\nold\n\n#\n\n## Comparison with boosted trees\n\nbelow\n")
        self.assertEqual(summarize.with_section(first, "new\n"), first.replace("old", "new"))
        self.assertTrue(summarize.with_section("above\n", "old\n").startswith("above\n\n<!--"))


class Charts(unittest.TestCase):
    def test_ticks(self):
        self.assertEqual(effort_chart.ticks(0.5, 500), [1, 10, 100])
        self.assertEqual([round(value, 6) for value in effort_chart.ticks(0.0552, 0.0598)], [0.056, 0.057, 0.058, 0.059])
        for low, high in ((0.0100, 0.0101), (1, 2), (0.3, 0.9), (0.001, 0.2)):
            self.assertIn(len(effort_chart.ticks(low, high)), range(3, 10))

    def test_chart(self):
        drawn = xml.fromstring(effort_chart.draw(lines()))
        texts = ["".join(node.itertext()) for node in drawn.iter("{http://www.w3.org/2000/svg}text")]
        self.assertEqual([texts.count(name) for name in ("housing", "letter", "1 − R²", "1 − accuracy")], [1, 1, 1, 1])
        self.assertEqual([texts.count(name) for name in ("Mercer", "CatBoost")], [3, 3])  # in the legend and in each panel
        marks = [node.text for node in drawn.iter("{http://www.w3.org/2000/svg}title")]
        self.assertIn("Mercer, effort 3: 0.1490 after 4.0 s", marks)
        self.assertEqual(len(marks), 1 + 4 + 2)

    def test_names_stay_clear(self):
        own, others = [(50.0, 50.0), (60.0, 60.0)], [(70.0, 50.0), (70.0, 40.0)]
        left, top, right, bottom = effort_chart.place_label(40, own, others, (0, 0, 200, 200))
        self.assertFalse(any(left <= x <= right and top <= y <= bottom for x, y in own + others))
        self.assertTrue(left >= 0 and top >= 0 and right <= 200 and bottom <= 200)


if __name__ == "__main__":
    unittest.main()
