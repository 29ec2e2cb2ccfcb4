# SPDX-License-Identifier: BSD-3-Clause
"""bench/report.py --compare: new results are compared with the committed results of the same cases."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

BENCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench")


class Compare(unittest.TestCase):
    def compare(self, change):
        """Compare the committed results of bench_products, after `change` of each; return the exit status and the output."""
        with open(os.path.join(BENCH, "results", "products.jsonl"), encoding="utf-8") as file:
            runs = [json.loads(line) for line in file]
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "products.jsonl"), "w", encoding="utf-8") as file:
                for run in runs:
                    change(run)
                    file.write(json.dumps({"machine": "another", "commit": "0", **run}) + "\n")
            done = subprocess.run([sys.executable, os.path.join(BENCH, "report.py"), "--compare", folder], stdout=subprocess.PIPE, text=True,
                                  check=False)
        return done.returncode, done.stdout, len(runs)

    def test_equal(self):
        status, output, count = self.compare(lambda run: run.update(version="9.9.9", gflops=1.5))
        self.assertEqual(status, 0)
        self.assertIn(f"{2 * count} times compared, 0 slower", output)

    def test_slower(self):
        def slow(run):
            if run["case"] == "laplace f64 d=784":
                run["median_s"] *= 1.2

        status, output, _ = self.compare(slow)
        self.assertEqual(status, 1)
        self.assertIn("1.20 SLOWER", output)
        self.assertIn(", 1 slower", output)

    def test_another_case(self):
        status, output, _ = self.compare(lambda run: run.update(threads=77))
        self.assertEqual((status, output.split()[0]), (0, "0"))


if __name__ == "__main__":
    unittest.main()
