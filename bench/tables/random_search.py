#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""random_search.py [--rows N] [--tries N] [--tables LIST] [--seeds N] [--lanes LANES]: compare Mercer's search with random configurations.

From each table N random training rows are used (0: all). Mercer's search has its defaults. A random configuration has a
kernel function, a preprocessing, and a ridge of 1e-8 to 1e-3 per sample. With probability 1/2, it has learned features;
otherwise it has a bandwidth of 1/4 to 32 times the median distance. Bandwidth and ridge are log-uniform. It is trained
with all its rows as centers, on four fifths of the rows, and evaluated by squared error on the rest. The best
configuration is trained again on all rows. The test rows are scored once for each method.

--lanes 8x2: run 8 configurations at the same time, on 2 processors each. The search runs first, on the number of processors of one lane.
Prints JSON lines: one for the search, one per configuration, then one per table and seed with the results of both methods. Times are wall
and processor seconds. Times of the configurations are added up, as if the configurations had run one after the other.
"""
import argparse
import json
import os
import sys
import time

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "compare")]
import common  # noqa: E402
import lanes  # noqa: E402
import packages  # noqa: E402
from run import measures, split_of  # noqa: E402

KERNELS = ["laplace", "laplace-l1", "exppower-l1:gamma=0.7", "gaussian"]


def draw(rng):
    """Draw a random configuration. The bandwidth is in units of the median distance."""
    return {"kernel": str(rng.choice(KERNELS)), "preprocess": str(rng.choice(["standardize", "rank"])), "learned": bool(rng.integers(0, 2)),
            "multiple": float(0.25 * 128 ** rng.random()), "ridge": float(1e-8 * 1e5 ** rng.random())}


def fit(drawn, X, y, job, cores):
    """Fit a configuration. The default bandwidth of a small model is the median distance; learned features have no bandwidth."""
    from mercer import KernelRegressor as make

    shared = {"random_state": job["seed"], "n_jobs": cores, "device": job["device"]}
    own = {"kernel": drawn["kernel"], "advanced": {"preprocess": drawn["preprocess"]}, "ridge": drawn["ridge"] * len(y)}
    if drawn["learned"]:
        own["advanced"]["learn_features"] = True
    else:
        median = make(**own, **shared, tune="off", solver="direct", centers=50).fit(X, y)
        own["bandwidth"] = drawn["multiple"] * median.model_.kernel.struct.bandwidth
    return make(**own, **shared, solver="krr", centers="all").fit(X, y)


def data_of(job):
    """Return samples and targets for training and test, and the indices of the training rows in random order."""
    import numpy as np

    train, test = split_of(job["data"], job["table"], job["seed"] + 1, False)
    rng = np.random.default_rng(job["seed"])
    train = train.iloc[rng.permutation(len(train))[: job["rows"] or None]].reset_index(drop=True)
    X, test_X = packages.frames(train, test)
    return X, train["target"].to_numpy(), test_X, test["target"].to_numpy(), rng.permutation(len(train))


def work(job, cores):
    """Yield one line: for the search, for a configuration scored on a fifth of the rows, or for the best one trained on all rows."""
    import numpy as np

    os.environ.setdefault("MERCER_LIBRARY", job["library"])
    sys.path.insert(0, os.path.join(common.ROOT, "python"))
    from mercer import KernelRegressor

    X, y, test_X, test_y, order = data_of(job)
    held, rest = order[: len(y) // 5], order[len(y) // 5 :]
    start, own, found = time.perf_counter(), time.process_time(), {}
    if job["what"] == "search":
        model = KernelRegressor(random_state=job["seed"], n_jobs=cores, device=job["device"]).fit(X, y)
    elif job["what"] == "chosen":
        model = fit(job["drawn"], X, y, job, cores)
    else:
        try:
            model = fit(job["drawn"], X.iloc[rest], y[rest], job, cores)
            found["error"] = float(np.mean((model.predict(X.iloc[held]) - y[held]) ** 2))
        except Exception as error:  # a small ridge can make the system unsolvable
            found["failure"] = f"{type(error).__name__}: {error}"[:200]
    found |= {"seconds": time.perf_counter() - start, "processor": time.process_time() - own, "jobs": cores, "rows": len(y)}
    if job["what"] != "try":
        found |= measures(model, test_X, test_y, True)
    yield found


def say(line, options):
    print(json.dumps({"bench": "random_search", **line, "machine": options.machine}), flush=True)


def one(options, table, seed):
    """Run the search and the random configurations for one table and seed; print their lines."""
    import numpy as np

    end, rng = time.monotonic() + options.limit, np.random.default_rng(seed)
    job = {"data": options.data, "library": os.path.join(options.build, "libmercer.so"), "device": options.device, "table": table, "seed": seed,
           "rows": options.rows, "what": "search", "drawn": None}
    jobs = [{**job, "what": "try", "drawn": draw(rng), "number": k} for k in range(options.tries)]
    setting = lanes.lanes_of(options.lanes, (None,))
    known = {"case": table, "seed": seed, "device": options.device}

    def in_lanes(what, some, limit):
        for begun, line in lanes.run(some, what, lambda job: None, work, limit):
            say({**known, "what": begun["what"], "drawn": begun["drawn"], **line}, options)
            yield begun, line

    [(_, search)] = in_lanes([job], setting[:1], float("inf"))
    start = time.monotonic()
    tried = list(in_lanes(jobs, setting, end - time.monotonic()))
    judged = [(line["error"], begun["drawn"]) for begun, line in tried if "error" in line]
    if not judged or "failed" in search:
        return
    [(_, chosen)] = in_lanes([{**job, "what": "chosen", "drawn": min(judged, key=lambda pair: pair[0])[1]}], setting[:1], float("inf"))
    sums = {name: sum(line.get(name, 0) for _, line in tried) + chosen[name] for name in ("seconds", "processor")}
    say({**known, "what": "both", "rows": search["rows"], "jobs": search["jobs"], "tried": len(tried), "failures": len(tried) - len(judged),
         "search": search, "random": {**chosen, **sums, "elapsed": time.monotonic() - start},
         "times": {name: sums[name] / search[name] for name in sums}}, options)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--tries", type=int, default=200)
    parser.add_argument("--tables", default="housing,kin40k", help="of values")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--lanes", default=f"1x{len(os.sched_getaffinity(0))}")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--limit", type=float, default=1e9, help="seconds after which no further configuration is started for a table")
    parser.add_argument("--machine", default="", help="said in every line")
    parser.add_argument("--build", default=os.path.join(common.ROOT, "build"))
    parser.add_argument("--data", default=os.environ.get("MERCER_DATA"))
    options = parser.parse_args()
    if common.missing("random_search.py", ("pandas", "sklearn"), options.data):
        return 0
    for seed in range(options.seeds):
        for table in options.tables.split(","):
            one(options, table, seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
