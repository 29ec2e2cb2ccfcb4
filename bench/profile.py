#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""profile.py [--json] [--filter TEXT]: profile products and training runs by function, with `perf record -e cpu-clock`.

The clock event also works in virtual machines without hardware counters. Samples in the operating system kernel are excluded. For products,
samples in BLAS are excluded too, because the benchmark runs BLAS for comparison. Shares are fractions of the remaining samples. If perf is
missing or not permitted, the program says so and exits with status 0.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
CASES = (
    ("fused f32 d=784", ["bench_ceilings", "--filter", "fused f32 d=784"], True),
    ("fused u8 d=784", ["bench_ceilings", "--filter", "fused u8 d=784"], True),
    ("fused f32 d=16", ["bench_products", "--filter", "laplace f32 d=16", "--repeats", "51"], True),
    ("one row, public call", ["bench_products", "--filter", "one row", "--repeats", "101"], True),
    ("mnist ep4 one epoch", ["bench_train", "--filter", "mnist ep4 one epoch"], False),
    ("mnist default", ["bench_train", "--filter", "mnist default"], False),
    ("tabular one epoch", ["bench_train", "--filter", "tabular one epoch"], False),
)
# Functions outside of the measured work: filling buffers, computing samples, and the reference results.
LEFT_OUT = ("fill", "bench_", "prepare", "main", "mrc_kernel_reference", "mrc_exact", "kernel_value", "laplace")
SHOWN, LEAST = 9, 0.01


def shares(command, without_blas):
    with tempfile.TemporaryDirectory() as scratch:
        record = os.path.join(scratch, "perf.data")
        subprocess.run(["perf", "record", "-q", "-e", "cpu-clock", "-F", "999", "-o", record, *command],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        text = subprocess.run(["perf", "report", "-i", record, "--stdio", "-F", "sample,dso,sym", "-t", "|"],
                              check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    counts = {}
    for line in text.splitlines():
        fields = [field.strip() for field in line.split("|")]
        if line.startswith("#") or len(fields) != 3:
            continue
        samples, dso, symbol = int(fields[0]), fields[1], fields[2][4:]
        blas = "blas" in dso
        if dso.startswith("[") or (without_blas and blas) or (not blas and symbol.startswith(LEFT_OUT)):
            continue
        key = f"BLAS: {symbol}" if blas else symbol
        counts[key] = counts.get(key, 0) + samples
    total = sum(counts.values())
    return total, sorted(((count / total, name) for name, count in counts.items()), reverse=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--filter", default="")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    options = parser.parse_args()
    if not shutil.which("perf"):
        print("profile.py: perf is not here (Debian: apt-get install linux-perf)", file=sys.stderr)
        return 0
    for name, (program, *arguments), without_blas in CASES:
        if options.filter not in name or ("mnist" in name and not os.environ.get("MERCER_DATA")):
            continue
        try:
            total, found = shares([os.path.join(options.build, "bench", program), *arguments], without_blas)
        except subprocess.CalledProcessError as error:
            print(f"profile.py: {name}: {error}", file=sys.stderr)
            continue
        top = [(share, symbol) for share, symbol in found[:SHOWN] if share >= LEAST]
        if options.json:
            print(json.dumps({"bench": "profile", "case": name, "samples": total,
                              "shares": {symbol: round(share, 4) for share, symbol in top}}), flush=True)
            continue
        print(f"{name} ({total} samples)")
        for share, symbol in top:
            print(f"  {100 * share:5.1f} %  {symbol}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
