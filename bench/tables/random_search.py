#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""random_search.py [--rows N] [--tries N] [--tables LIST] [--seeds N]: Mercer's search beside as many random configurations of the same model.

Of each table N training rows are drawn. The search is that of the defaults. A random configuration has a kernel function and preprocessing of
those that the search tries, 0 to 4 rounds of learning a metric, a bandwidth of 1/4 to 32 times the median distance and a ridge of 1e-8 to
1e-3 a sample, both uniform in their logarithm, and is trained to the same rows with as many centers; a fifth of them judges it by squared
error, and the best is trained once more to all. Test rows are scored once for each of the two. Lines of JSON, one for each table and seed;
seconds are of the clock and of the processors.
"""
import argparse
import json
import os
import sys
import time

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "compare")]
import common  # noqa: E402
import packages  # noqa: E402
from run import measures, split_of  # noqa: E402

KERNELS = ["laplace", "laplace-l1", "exppower-l1:gamma=0.7", "gaussian"]


def draw(rng):
    """A configuration; the bandwidth is a multiple of the median distance."""
    return {"kernel": str(rng.choice(KERNELS)), "preprocess": str(rng.choice(["standardise", "rank"])), "rounds": int(rng.integers(0, 5)),
            "multiple": float(0.25 * 128 ** rng.random()), "ridge": float(1e-8 * 1e5 ** rng.random())}


def fit(drawn, X, y, options, seed):
    """The median distance is what a bandwidth that is left open becomes; in a metric that is learned, the bandwidth is learned with it."""
    from mercer import KernelRegressor as make

    common_options = {"tune": "off", "solver": "krr", "n_centers": "all", "random_state": seed, "n_jobs": options.jobs}
    own = {"kernel": drawn["kernel"], "preprocess": drawn["preprocess"], "ridge": drawn["ridge"] * len(y), "learn_features": drawn["rounds"]}
    if drawn["rounds"] == 0:
        median = make(**{**own, "solver": "direct", "tune": "off", "n_centers": 50, "random_state": seed}).fit(X, y)
        own["bandwidth"] = drawn["multiple"] * median.model_.kernel.struct.bandwidth
    return make(**own, **common_options).fit(X, y)


def error_of(model, X, y):
    import numpy as np

    return float(np.mean((model.predict(X) - y) ** 2))


def one(options, table, seed):
    import numpy as np
    from mercer import KernelRegressor

    train, test = split_of(options.data, table, seed + 1, False)
    rng = np.random.default_rng(seed)
    train = train.iloc[rng.permutation(len(train))[: options.rows]].reset_index(drop=True)
    X, test_X = packages.frames(train, test)
    y, test_y = train["target"].to_numpy(), test["target"].to_numpy()
    entry = {"bench": "random_search", "case": table, "seed": seed, "rows": len(y), "jobs": options.jobs, "tries": options.tries}
    start, own = time.perf_counter(), time.process_time()
    model = KernelRegressor(random_state=seed, n_jobs=options.jobs).fit(X, y)
    entry["search"] = {"seconds": time.perf_counter() - start, "processor": time.process_time() - own, **measures(model, test_X, test_y, True)}
    start, own = time.perf_counter(), time.process_time()
    order = rng.permutation(len(y))
    held, rest = order[: len(y) // 5], order[len(y) // 5 :]
    best, chosen, failed, tried = np.inf, None, 0, 0
    while tried < options.tries and time.perf_counter() - start < options.limit:
        drawn = draw(rng)
        tried += 1
        try:
            error = error_of(fit(drawn, X.iloc[rest], y[rest], options, seed), X.iloc[held], y[held])
        except Exception:  # equations that a small ridge leaves without a solution
            failed += 1
            continue
        if error < best:
            best, chosen = error, drawn
    model = fit(chosen, X, y, options, seed)
    entry["random"] = {"seconds": time.perf_counter() - start, "processor": time.process_time() - own, "tried": tried, "chosen": chosen, "failed": failed,
                       **measures(model, test_X, test_y, True)}
    return entry


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--tries", type=int, default=200)
    parser.add_argument("--tables", default="housing,kin40k", help="of values")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--limit", type=float, default=1e9, help="seconds after which no further configuration is tried")
    parser.add_argument("--build", default=os.path.join(common.ROOT, "build"))
    parser.add_argument("--data", default=os.environ.get("MERCER_DATA"))
    options = parser.parse_args()
    if common.missing("random_search.py", ("pandas", "sklearn"), options.data):
        return 0
    os.environ.setdefault("MERCER_LIBRARY", os.path.join(options.build, "libmercer.so"))
    sys.path.insert(0, os.path.join(common.ROOT, "python"))
    for seed in range(options.seeds):
        for table in options.tables.split(","):
            print(json.dumps(one(options, table, seed)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
