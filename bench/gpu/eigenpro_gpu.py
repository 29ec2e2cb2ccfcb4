#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""eigenpro_gpu.py: time EigenPro 3 and 4 as plain PyTorch loops (bench/compare/eigenpro.py) on a GPU, to compare with times.sh.

Samples have the same distribution as in gpu_epoch (40 clusters per class). They are on the GPU, in float32, before the
timing starts. Matrix products are PyTorch's float32, or TF32 in the lines with "tf32": true. Each case consists of
set-up and one epoch. EigenPro 3 runs only at the smallest size, where it takes seconds. Prints one line of JSON per
case.
"""
import json
import math
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "compare"))
import eigenpro  # noqa: E402

FEATURES, CLUSTERS, NOISE, TEST = 1280, 40, 1.5, 10_000
#        solver, samples, centers, outputs, TF32
CASES = [("ep4", 500_000, 131_072, 10, False), ("ep4", 500_000, 131_072, 10, True), ("ep4", 200_000, 65_536, 1000, False),
         ("ep4", 200_000, 65_536, 1000, True), ("ep3", 200_000, 65_536, 10, True)]


def draw(torch, rows, outputs):
    means = torch.randn(outputs * CLUSTERS, FEATURES)
    cluster = torch.randint(len(means), (rows,))
    samples = means[cluster].add_(torch.randn(rows, FEATURES), alpha=NOISE).mul_(0.5 / math.sqrt(1 + NOISE**2))
    return samples, cluster % outputs


def measure(torch, solver, n, p, outputs, tf32):
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.manual_seed(1)
    eigenpro.CLASSES, eigenpro.BANDWIDTH = outputs, 0.4 * math.sqrt(FEATURES)
    eigenpro.laplace.__defaults__ = (eigenpro.BANDWIDTH,)
    samples, labels = draw(torch, n + TEST, outputs)
    targets = torch.nn.functional.one_hot(labels[:n], outputs).float()
    torch.cuda.synchronize()
    start = time.perf_counter()
    loop = eigenpro.Loop(samples[:n], targets, p, solver, False)
    torch.cuda.synchronize()
    ready = time.perf_counter()
    loop.epoch()
    torch.cuda.synchronize()
    end = time.perf_counter()
    return {"bench": "eigenpro_gpu", "package": "torch", "package_version": torch.__version__, "device": torch.cuda.get_device_name(), "solver": solver,
            "tf32": tf32, "n": n, "p": p, "d": FEATURES, "c": outputs, "batch": loop.pre.batch, "setup_s": round(ready - start, 3),
            "epoch_s": round(end - ready, 3), "test_accuracy": round(loop.accuracy(samples[n:], labels[n:]), 2),
            "peak_gib": round(torch.cuda.max_memory_allocated() / 2**30, 2)}


def main():
    try:
        import torch
    except ImportError:
        print("eigenpro_gpu.py: left out, there is no PyTorch")
        return 0
    if not torch.cuda.is_available():
        print("eigenpro_gpu.py: left out, there is no GPU")
        return 0
    eigenpro.torch = torch
    torch.set_default_device("cuda")
    for case in CASES:
        print(json.dumps(measure(torch, *case)), flush=True)
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    return 0


if __name__ == "__main__":
    sys.exit(main())
