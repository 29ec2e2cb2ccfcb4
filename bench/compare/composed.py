#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""composed.py [--json] [--quick] [--program PATH]: compare the fused Y = K(X, Z) W with the same product made of NumPy or PyTorch calls.

The composed version computes distances from a matrix product, then kernel values in separate passes over the stored matrix, then a second
matrix product. The passes work in place, so only one matrix is allocated. Between the repeats, build/bench/bench_matmul times the fused
product (median of 3), so that other load on the machine affects both versions; ratios are medians. Missing packages are skipped; if both
are missing, the program says so and exits with status 0.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
DIMENSIONS = (4, 16, 64, 784, 3072)
TYPES = ("f32", "f64", "u8")
OUTPUTS = 10
REPEATS = 3


def sizes(kind, d, quick):
    """Return the numbers of rows and centers, the same as in bench_matmul."""
    if quick:
        return 64, 512
    return (2048, 4096) if d > 1000 or kind == "f64" else (4096, 8192)


def make_numpy(kind, m, p, d):
    import numpy as np

    random = np.random.default_rng(1)
    real = np.float64 if kind == "f64" else np.float32
    scale = 256 if kind == "u8" else 1  # BLAS needs floats, so bytes are converted first
    x, z = ((random.random((rows, d)) * scale).astype(real) for rows in (m, p))
    w = random.random((p, OUTPUTS)).astype(real)
    factor = real(-2 / ((d / 6) ** 0.5 * scale))

    def run():
        k = x @ z.T
        k *= -2
        k += (x * x).sum(1)[:, None]
        k += (z * z).sum(1)[None, :]
        np.maximum(k, 0, out=k)
        np.sqrt(k, out=k)
        k *= factor
        np.exp(k, out=k)
        return k @ w

    return run, np.__version__


def make_torch(kind, m, p, d):
    import torch

    real = torch.float64 if kind == "f64" else torch.float32
    scale = 256 if kind == "u8" else 1
    generator = torch.Generator().manual_seed(1)
    x, z = ((torch.rand((rows, d), generator=generator, dtype=real) * scale) for rows in (m, p))
    w = torch.rand((p, OUTPUTS), generator=generator, dtype=real)
    factor = -2 / ((d / 6) ** 0.5 * scale)

    def run():
        k = torch.addmm((z * z).sum(1)[None, :], x, z.T, alpha=-2)
        k.add_((x * x).sum(1)[:, None]).clamp_(min=0).sqrt_().mul_(factor).exp_()
        return k @ w

    return run, torch.__version__


def fused_seconds(program, kind, d, quick):
    command = [program, "--json", "--repeats", "3", "--filter", f"{kind} d={d}"] + (["--quick"] if quick else [])
    lines = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    for line in lines:
        entry = json.loads(line)
        if entry["case"] == f"{kind} d={d}":
            return entry["fused_s"], entry["threads"]
    raise RuntimeError(f"{program} has no case {kind} d={d}")


def time_once(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def compare(makers, kind, d, options):
    m, p = sizes(kind, d, options.quick)
    made = [(name, *make(kind, m, p, d)) for name, make in makers]
    fused, composed = [], {name: [] for name, _, _ in made}
    threads = 0
    for name, run, _ in made:
        run()
    for _ in range(1 if options.quick else REPEATS):
        ours, threads = fused_seconds(options.program, kind, d, options.quick)
        fused.append(ours)
        for name, run, _ in made:
            composed[name].append(time_once(run))
    for name, _, version in made:
        theirs = composed[name]
        entry = {
            "bench": "composed", "package": name, "package_version": version, "case": f"{kind} d={d}", "m": m, "p": p, "d": d,
            "c": OUTPUTS, "threads": threads, "composed_s": round(statistics.median(theirs), 6), "fused_s": statistics.median(fused),
            "times_composed": round(statistics.median(other / own for other, own in zip(theirs, fused)), 3),
        }
        if options.json:
            print(json.dumps(entry), flush=True)
        else:
            print(f"{entry['case']:<12} {name:<8} {m:>6} {p:>6} {1e3 * entry['composed_s']:>12.2f} {1e3 * entry['fused_s']:>10.2f}"
                  f" {entry['times_composed']:>8.2f}", flush=True)


def importable(name):
    try:
        __import__(name)
    except ImportError:
        return False
    return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--program", default=os.path.join(ROOT, "build", "bench", "bench_matmul"))
    options = parser.parse_args()
    makers = [(name, make) for name, make in (("numpy", make_numpy), ("torch", make_torch)) if importable(name)]
    if not makers:
        print("composed.py: neither numpy nor torch is here; `tools/setup compare` gets them", file=sys.stderr)
        return 0
    if not options.json:
        print(f"{'Y = K(X,Z)W':<12} {'by':<8} {'m':>6} {'p':>6} {'composed ms':>12} {'fused ms':>10} {'times':>8}")
    for kind in TYPES:
        for d in DIMENSIONS:
            compare(makers, kind, d, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
