# SPDX-License-Identifier: BSD-3-Clause
"""bench/tables: lanes with jobs that fail, crash or exceed the time limit; means, verdicts and the document of results."""
import json
import math
import os
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "tables"))
import lanes  # noqa: E402
import page  # noqa: E402
import table_docs  # noqa: E402
import table_results  # noqa: E402

CORE = min(os.sched_getaffinity(0))


def work(job, cores):
    """Simulate the work of a lane; the name of the job selects the outcome."""
    if job == "die":
        os._exit(3)
    if job == "fail":
        raise ValueError("no luck")
    if job == "long":
        yield {"begun": True}
        time.sleep(600)
    yield {"job": job, "cores": cores, "threads": os.environ["OMP_NUM_THREADS"], "there": sorted(os.sched_getaffinity(0))}


def line(case, split, package, how, measure, value, **others):
    return {"bench": "tables", "case": case, "split": split, "seed": split, "package": package, "how": how, "measure": measure, measure: value,
            "seconds": 2.0, "processor": 3.0, "bytes": 5000, "rows_per_second": 70000.0, "machine": "one", **others}


class Lanes(unittest.TestCase):
    def test_a_failed_job_affects_no_other(self):
        found = dict(lanes.run([(None, [CORE])], ["die", "fail", "good"], lambda job: None, work))
        self.assertEqual(found["die"], {"failed": "the process ended"})
        self.assertEqual(found["fail"], {"failed": "ValueError: no luck"})
        self.assertEqual(found["good"], {"job": "good", "cores": 1, "threads": "1", "there": [CORE]})

    def test_limit_keeps_finished_fits(self):
        start = time.monotonic()
        found = list(lanes.run([(None, [CORE])], ["long"], lambda job: None, work, limit=1.5))
        self.assertLess(time.monotonic() - start, 60)
        self.assertIn(found, ([("long", {"begun": True})], []))  # empty if the process takes longer than the limit to start

    def test_lanes(self):
        self.assertEqual(lanes.lanes_of("1x1", (None,)), [(None, [CORE])])
        with self.assertRaisesRegex(SystemExit, "are not enough"):
            lanes.lanes_of("1x100000", (None,))
        with self.assertRaisesRegex(SystemExit, "1 kinds"):
            lanes.lanes_of("1x1,1x1", (None,))


class Documents(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "results.jsonl")
        self.docs = os.path.join(folder.name, "docs.md")
        lines = []
        for split, (own, other) in enumerate([(0.9, 0.85), (0.91, 0.87), (0.92, 0.86)], start=1):
            lines += [line("homes", split, "mercer", "default", "r2", own), line("homes", split, "lightgbm", "default", "r2", other)]
            lines += [line("homes", split, "svm", "default", "r2", 0.99)] if split == 1 else []  # better, but only on one split
            lines += [line("people", split, "mercer", "default", "auc", 0.8 + split / 1000, accuracy=0.7, log_loss=0.5),
                      line("people", split, "xgboost", "search", "auc", 0.81 + split / 999, accuracy=0.75, log_loss=0.4, budget=5)]
        lines += [line("homes", 0, "mercer", "default", "r2", 0.95), {**line("homes", 0, "mercer", "default", "r2", 0.93), "seed": 1},
                  line("homes", 0, "lightgbm", "search", "r2", 0.9, budget=30), {"bench": "tables", "case": "homes", "split": 9, "failed": "why"}]
        with open(self.path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(entry) + "\n" for entry in lines)
        with open(self.docs, "w", encoding="utf-8") as file:
            file.write("above\n<!-- page.py writes from here -->\nstale\n<!-- page.py writes to here -->\nbelow\n")

    def test_means(self):
        entries = table_results.read([self.path, self.path])  # two results of the same fit count once
        self.assertEqual(len(entries), 16)
        values = table_results.differences(table_results.part(entries, False), "homes", "lightgbm", "default", "r2")
        mean, error = table_results.mean_of(values)
        self.assertAlmostEqual(mean, 0.05)
        self.assertAlmostEqual(error, 0.01 / math.sqrt(3))
        self.assertTrue(math.isnan(table_results.mean_of([1.0])[1]))

    def test_document(self):
        entries = table_results.read([self.path])
        for _ in range(2):  # The second call replaces the output of the first one.
            table_docs.write(self.docs, entries)
        with open(self.docs, encoding="utf-8") as file:
            text = file.read()
        self.assertTrue(text.startswith("above\n") and text.endswith("below\n"))
        self.assertNotIn("stale", text)
        self.assertEqual(text.count("**On the split of the files.**"), 1)
        self.assertIn("| homes | R2 | **.9400** | .9500, .9300 | 2.0 to 2.0 | .9000 |", text)
        self.assertIn("| Mercer | **.9100 ± .0058** | .8020 ± .0006 |", text)
        self.assertIn("| SVM | .9900 (1) |  |", text)
        self.assertIn("| homes | R2 | LightGBM | +0.0500 ± 0.0058 | 3 |", text)
        self.assertIn("standard errors on homes; worse on people; within two on none", " ".join(text.split()))
        self.assertIn("Log loss:\n\n|  | people |\n|---|---|\n| Mercer | .5000 ± .0000 |\n| XGBoost, searched | **.4000 ± .0000** |", text)

    def test_page(self):
        found = page.html(table_results.read([self.path]))
        self.assertEqual(found.count("<circle"), 4 + 5)  # the legend with 4 packages, and one mark per group
        self.assertIn("people: AUC", found)


if __name__ == "__main__":
    unittest.main()
