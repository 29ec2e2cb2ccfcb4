#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""levels.py PROGRAM WAY [--rows N] [--data FOLDER]: fit tables with large categories and print a JSON line per fit.

`effect` and `no effect` are generated tables with two numbers and a category of 4,571 levels. In `effect`, the target depends on the
numbers and on a random effect of each level; in `no effect`, the target is only noise. The 10,000 test rows are generated, too. With
--data, real tables NAME_train.csv[.gz] of the folder are used instead: a random fifth of the rows are the test rows. PROGRAM is a mercer
program, and WAY is a text that describes it in the results.
"""
import argparse
import csv
import gzip
import itertools
import json
import os
import random
import resource
import subprocess
import sys
import tempfile

LEVELS, TEST = 4571, 10000
REAL = {"adult": "classification", "bank": "classification", "hr": "classification"}


def generate(folder, rows, effect, seed):
    """Write a table whose level frequencies have a heavy tail; return its two files."""
    rng = random.Random(seed)
    effects = [rng.gauss(0, 1) for _ in range(LEVELS)]
    frequencies = list(itertools.accumulate(rng.paretovariate(1.2) for _ in range(LEVELS)))
    paths = []
    for name, count in (("train.csv", rows), ("test.csv", TEST)):
        paths.append(os.path.join(folder, name))
        with open(paths[-1], "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["code", "a", "b", "target"])
            for level in rng.choices(range(LEVELS), cum_weights=frequencies, k=count):
                a, b = rng.gauss(0, 1), rng.gauss(0, 1)
                mean = effects[level] + a * b / 2 if effect else 0
                writer.writerow([f"K{level}", f"{a:.4f}", f"{b:.4f}", f"{mean + rng.gauss(0, 0.5):.5f}"])
    return paths


def divide(folder, path, seed):
    """Divide a table into a test file with a random fifth of the rows and a file with the rest; return both paths."""
    opened = gzip.open(path, "rt", newline="", encoding="utf-8") if path.endswith(".gz") else open(path, newline="", encoding="utf-8")
    with opened as file:
        head, *rows = csv.reader(file)
    random.Random(seed).shuffle(rows)
    paths, end = [os.path.join(folder, name) for name in ("train.csv", "test.csv")], len(rows) // 5
    for name, part in zip(paths, (rows[end:], rows[:end])):
        with open(name, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([head, *part])
    return paths


def measure(program, folder, files, task):
    """Train on the first file and evaluate on the second; return scores and processor seconds."""
    model = os.path.join(folder, "m.safetensors")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    options = ["--target", "target", "--task", task, "-q"]
    subprocess.run([program, "train", "--x", files[0], *options, "-o", model], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    told = subprocess.run([program, "eval", "-m", model, "--x", files[1], "--target", "target", "--json", "-q"], check=True, capture_output=True)
    found = json.loads(told.stdout)
    scores = {key: round(found[key], 5) for key in ("r2", "accuracy", "auc", "log_loss") if isinstance(found.get(key), float)}
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {**scores, "processor_seconds": round(seconds, 1)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("way")
    parser.add_argument("--rows", type=int, default=40000)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--data")
    given = parser.parse_args()
    for seed in range(given.seeds):
        for case in REAL if given.data else ("effect", "no effect"):
            with tempfile.TemporaryDirectory() as folder:
                if given.data:
                    path = os.path.join(given.data, f"{case}_train.csv")
                    files = divide(folder, path if os.path.exists(path) else path + ".gz", seed)
                else:
                    files = generate(folder, given.rows, case == "effect", seed)
                found = measure(given.program, folder, files, REAL.get(case, "regression"))
            line = {"bench": "levels", "case": case, "seed": seed, "way": given.way, "rows": given.rows if not given.data else None, **found}
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    sys.exit(main())
