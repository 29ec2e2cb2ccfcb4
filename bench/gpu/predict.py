# SPDX-License-Identifier: BSD-3-Clause
"""Time predictions of one row and of a million rows by a model on a GPU, with 60,000 centers of 784 bytes and 10 outputs.

Prints one line of JSON per measurement. With PyTorch, also times tensors that are on the GPU, and the product K(X, Z) W
without a model.
"""

import json
import time

import mercer
import numpy as np

try:
    import torch
except ImportError:
    torch = None

CENTERS, FEATURES, OUTPUTS, ROWS, KERNEL = 60_000, 784, 10, 1_000_000, "laplace:bandwidth=2000"


def median(call, times):
    """Return the median, best and worst seconds of `times` calls, after one warm-up call."""
    taken = []
    for _ in range(times + 1):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    ordered = sorted(taken[1:])
    return ordered[len(ordered) // 2], ordered[0], ordered[-1]


def tell(bench, seconds, rows, **more):
    size = {"rows": rows, "p": CENTERS, "d": FEATURES, "c": OUTPUTS}
    rate = 2e-12 * rows * CENTERS * (FEATURES + OUTPUTS) / seconds[0]
    times = {"median_ms": 1e3 * seconds[0], "best_ms": 1e3 * seconds[1], "worst_ms": 1e3 * seconds[2], "tops": rate}
    print(json.dumps({"bench": bench, **more, **size, **{name: round(t, 4) for name, t in times.items()}}), flush=True)


def measure(arithmetic, Z, X, W):
    model = mercer.Model(KERNEL, Z, OUTPUTS, device="cuda", arithmetic=arithmetic)
    model.weights[...] = W
    one, cases, bulk = X[:1].copy(), {}, {"host": lambda: model.predict(X)}
    cases["host"] = lambda: model.predict(one)
    if torch:
        row, out = torch.as_tensor(one, device="cuda"), torch.empty((1, OUTPUTS), device="cuda")
        there, out = torch.as_tensor(X, device="cuda"), torch.empty((ROWS, OUTPUTS), device="cuda")
        cases["device"] = lambda: model.predict(row)
        cases["device_out"] = lambda: model.predict(row, out=out)
        bulk["device_out"] = lambda: model.predict(there, out=out)
    for name, call in cases.items():
        tell("predict_latency", median(call, 200), 1, arithmetic=arithmetic, where=name)
    if arithmetic == "accurate":
        return
    for name, call in bulk.items():
        tell("predict_bulk", median(call, 5), ROWS, arithmetic=arithmetic, where=name)
    if torch:
        z, w = torch.as_tensor(Z, device="cuda"), torch.as_tensor(W, device="cuda")
        some, to = there[:65536], out[:65536]
        product = median(lambda: mercer.kernel_matmul(some, z, w, KERNEL, out=to, arithmetic="fast"), 5)
        tell("product_api", product, 65536, arithmetic=arithmetic, where="device_out")


def main():
    rng = np.random.default_rng(0)
    Z = rng.integers(0, 256, (CENTERS, FEATURES), dtype=np.uint8)
    X = np.concatenate([rng.permutation(Z)[:50_000]] * (ROWS // 50_000))
    W = rng.normal(size=(CENTERS, OUTPUTS)).astype(np.float32)
    for arithmetic in ("fast", "accurate"):
        measure(arithmetic, Z, X, W)


if __name__ == "__main__":
    main()
