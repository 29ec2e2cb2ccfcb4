# SPDX-License-Identifier: BSD-3-Clause
"""bench/report.py --compare: new results are compared with the committed results of the same cases on the same machine."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

BENCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench")
# Results of bench_products on a made-up machine: fields that identify a case, times, and measured numbers, one of them integral.
RUNS = [{"machine": "A", "commit": "1", "version": "0.1.0", "bench": "products", "case": case, "kernel": "laplace:bandwidth=10", "m": 4096,
         "p": 8192, "d": 784, "c": 10, "backend": "cpu", "isa": "avx2", "threads": 2, "best_s": 0.25, "median_s": 0.27, "gflops": 127}
        for case in ("laplace f32", "laplace f64")]


def write(folder, runs):
    with open(os.path.join(folder, "products.jsonl"), "w", encoding="utf-8") as file:
        file.writelines(json.dumps(run) + "\n" for run in runs)


class Compare(unittest.TestCase):
    def compare(self, change, committed=None):
        """Compare `committed` (default: RUNS) with RUNS after `change` of each; return the exit status and the output."""
        runs = [dict(run) for run in RUNS]
        for run in runs:
            change(run)
        with tempfile.TemporaryDirectory() as old, tempfile.TemporaryDirectory() as new:
            write(old, committed or RUNS)
            write(new, runs)
            done = subprocess.run([sys.executable, os.path.join(BENCH, "report.py"), "--compare", new, "--committed", old],
                                  stdout=subprocess.PIPE, text=True, check=False)
        return done.returncode, done.stdout

    def test_equal(self):
        status, output = self.compare(lambda run: run.update(version="9.9.9", commit="2", gflops=128))
        self.assertEqual(status, 0, output)
        self.assertIn("4 times compared, 0 slower", output)

    def test_slower(self):
        def slow(run):
            if run["case"] == "laplace f64":
                run["median_s"] *= 1.2

        status, output = self.compare(slow)
        self.assertEqual(status, 1)
        self.assertIn("1.20 SLOWER", output)
        self.assertIn("4 times compared, 1 slower", output)

    def test_nothing_to_compare(self):
        for change in ({"threads": 77}, {"machine": "B"}, {"d": 785}):
            status, output = self.compare(lambda run, change=change: run.update(change))
            self.assertEqual(status, 1, change)
            self.assertIn("products: 2 cases ", output)
            self.assertIn("0 times compared", output)

    def test_unknown_machine(self):
        """Results without a machine, as those of version 0.1.0, are compared with nothing."""
        old = [{key: value for key, value in run.items() if key != "machine"} for run in RUNS]
        self.assertEqual(self.compare(lambda run: run.pop("machine"), old)[0], 1)


if __name__ == "__main__":
    unittest.main()
