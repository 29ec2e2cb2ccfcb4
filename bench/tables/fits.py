#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""fits.py JOB: fit a package to a table and print seconds and test scores as a JSON object; JOB is the JSON object of a job of efforts.py.

efforts.py runs this file for each fit of a package, because a separate process can be ended after a time limit and starts with free
memory. A fit of Mercer is `mercer train`, then `mercer eval`.
"""
import importlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__))]
import packages  # noqa: E402
from splits import COUNTS, TABLES  # noqa: E402

SCORES = ("r2", "accuracy", "auc", "log_loss")
TIMES = ("seconds", "fit_seconds", "processor", "other_load", "planned", "search")


class Failed(Exception):
    """A fit that ended without scores; the message is the reason."""


def busy_seconds():
    """Return the processor seconds that all processes of the machine have used so far; 0 if unknown."""
    if not os.path.exists("/proc/stat"):
        return 0
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, irq, softirq, steal = map(int, file.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def own_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_json(command, timeout, environment=None):
    """Run a command whose last line is a JSON object; return the object and the costs of the command.

    The costs are `seconds`, `processor` (processor seconds) and `other_load`, the mean number of cores used by other processes.
    """
    start, own, busy = time.monotonic(), own_seconds(), busy_seconds()
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout, env=environment)
    except subprocess.TimeoutExpired:
        raise Failed(f"timed out after {timeout:g} s") from None
    seconds, processor, busy = time.monotonic() - start, own_seconds() - own, busy_seconds() - busy
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise Failed(f"exit status {done.returncode}: {last[:300]}")
    try:
        found = json.loads((done.stdout.splitlines() or [""])[-1])
    except ValueError:
        raise Failed("the last line of the output is not JSON") from None
    return found, {"seconds": seconds, "processor": processor, "other_load": max(0.0, busy - processor) / seconds}


def train_command(job, model):
    task = ["--task", "regression"] if job["table"] in COUNTS else []
    return [job["program"], "train", "--x", job["train"], "--target", "target", "-o", model, "--effort", str(job["effort"]), *task,
            "--seed", str(job["seed"]), "--threads", str(job["threads"]), "--quiet", "--json"]


def fit_mercer(job, timeout):
    """Train and score a model; seconds and processor time are measured for the whole command `mercer train`."""
    with tempfile.TemporaryDirectory() as place:
        model = os.path.join(place, "model.safetensors")
        train, costs = run_json(train_command(job, model), timeout)
        scores, _ = run_json([job["program"], "eval", "-m", model, "--x", job["test"], "--threads", str(job["threads"]), "--quiet", "--json"],
                             timeout)
    found = {name: scores[name] for name in SCORES if isinstance(scores.get(name), float)}
    return {**costs, "planned": train["predicted_seconds"],
            "search": (train.get("search") or {}).get("seconds", 0), "centers": train["centers"], "test_rows": scores["rows"], **found}


def scores_of(model, X, y, regression):
    """Return the test scores of a model; classes are numbers from 0."""
    import numpy as np
    from sklearn import metrics

    if regression:
        return {"r2": metrics.r2_score(y, model.predict(X))}
    shares = np.clip(np.asarray(model.predict_proba(X), dtype=float), 1e-7, 1)
    shares /= shares.sum(axis=1, keepdims=True)
    found = {"accuracy": metrics.accuracy_score(y, shares.argmax(axis=1)),
             "log_loss": metrics.log_loss(y, shares, labels=np.arange(shares.shape[1]))}
    return {**found, "auc": metrics.roc_auc_score(y, shares[:, 1])} if shares.shape[1] == 2 else found


def warm_up(name, threads):
    """Fit one tree to synthetic rows, so that the time of a fit does not include loading the package."""
    import numpy as np

    model = packages.make(name, True, [], threads, 0, {packages.TREES[name][0]: 1})
    model.fit(np.arange(200.0).reshape(100, 2), np.arange(100.0))


def fit_package(job):
    """Fit and score a package in this process; `seconds` covers reading the training rows and the fit."""
    import numpy as np
    import pandas

    package = importlib.import_module(packages.NEEDS[job["package"]])
    warm_up(job["package"], job["threads"])
    regression = TABLES[job["folder"]][job["table"]] == "r2"
    start, own = time.perf_counter(), time.process_time()
    train = pandas.read_csv(job["train"])
    reading, reading_own = time.perf_counter() - start, time.process_time() - own
    test = pandas.read_csv(job["test"])
    X, test_X = packages.frames(packages.dates(train), packages.dates(test))
    words = list(X.select_dtypes("category").columns)
    y, test_y = train["target"].to_numpy(), test["target"].to_numpy()
    if not regression:
        names, y = np.unique(y, return_inverse=True)
        if not np.isin(test_y, names).all():
            raise Failed("test rows have a class without training rows")
        test_y = np.searchsorted(names, test_y)
    if job["package"] == "catboost":
        X, test_X = packages.plain(X), packages.plain(test_X)
    model = packages.make(job["package"], regression, words, job["threads"], job["seed"], packages.trees(job["package"], job["trees"]))
    start, own = time.perf_counter(), time.process_time()
    model.fit(X, y)
    fitting, fitting_own = time.perf_counter() - start, time.process_time() - own
    scores = {name: float(value) for name, value in scores_of(model, test_X, test_y, regression).items()}
    return {"seconds": reading + fitting, "fit_seconds": fitting, "processor": reading_own + fitting_own, "test_rows": len(test_y), **scores,
            "version": package.__version__}


def fit(job, timeout):
    """Run the fit of a job and return its measurements; raise Failed if it fails."""
    if job["package"] == "mercer":
        return fit_mercer(job, timeout)
    # Threads that spin while waiting made LightGBM 25 times slower on two cores that another process also used.
    environment = {"OMP_WAIT_POLICY": "passive", **os.environ, "OMP_NUM_THREADS": str(job["threads"])}
    found, costs = run_json([sys.executable, os.path.abspath(__file__), json.dumps(job)], timeout, environment)
    return {**costs, **found}


def main():
    if len(sys.argv) != 2:
        print(__doc__.splitlines()[0], file=sys.stderr)
        return 2
    try:
        print(json.dumps(fit_package(json.loads(sys.argv[1]))))
    except Failed as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
