#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""run.py [--splits LIST] [--packages LIST] [--tables LIST] [--lanes LANES] [--output FOLDER]: compare Mercer with other packages on tables.

The data folder (MERCER_DATA) contains tables/NAME_train.csv.gz and tables/NAME_test.csv.gz with a header and the last
column `target`. Split 0 is the split of the files; split k draws the same number of test rows at random from both
files, with seed k. On each split, every package is fitted with its defaults. The other packages are then also fitted
with the best of several random configurations. Configurations are started until a time budget is used up, by default
the seconds of Mercer's fit. They are compared on a fifth of the training rows, by R2, log loss, or without
probabilities AUC or accuracy. The best configuration is fitted again to all training rows. If the fit with the defaults
already uses up the budget, its result is used. The test rows are scored once, after all choices.

--lanes 1x4,6x2: Mercer runs in one process on 4 processors, and at the same time the other packages run in 6 processes on 2 processors
each. --stage "OPTIONS" may be repeated: the stages run in order, each with its own --splits, --seeds, --packages, --ways or --budget.
--limit is the number of seconds after which the run ends.

Writes results.jsonl (one line per fit) and page.html (plots) to FOLDER, and prints a summary with standard errors over the splits. page.py
makes the page and the summary from result files, and also the tables of docs/tables.md.
"""
import argparse
import functools
import json
import os
import pickle
import shlex
import sys
import time

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "compare")]
import common  # noqa: E402
import lanes  # noqa: E402
import packages  # noqa: E402
import page  # noqa: E402
import table_results  # noqa: E402

TABLES = {"housing": "r2", "diamonds": "r2", "kin40k": "r2", "adult": "auc", "bank": "auc", "hr": "auc", "credit": "auc", "letter": "accuracy"}
BUDGET = 30  # seconds of a random search if neither --budget nor the seconds of a fit of Mercer are known


@functools.lru_cache(maxsize=2 * len(TABLES))
def part_of(folder, name, part):
    import pandas

    return pandas.read_csv(os.path.join(folder, "tables", f"{name}_{part}.csv.gz"))


def split_of(folder, name, number, quick):
    import numpy as np
    import pandas

    parts = [part_of(folder, name, part) for part in ("train", "test")]
    if number > 0:
        both = pandas.concat(parts, ignore_index=True)
        order = np.random.default_rng(number).permutation(len(both))
        held = len(parts[1])
        parts = [both.iloc[order[held:]], both.iloc[order[:held]]]
    if quick:
        parts = [part.iloc[:1500] for part in parts]
    return [part.reset_index(drop=True) for part in parts]


def outputs_of(model, X, regression):
    """For regression, return predicted values and None; for classes, return probabilities (None if unavailable) and scores."""
    if regression:
        return model.predict(X), None
    if hasattr(model, "predict_proba"):
        shares = model.predict_proba(X)
        return shares, shares
    return None, model.scores(X)


def measures(model, X, y, regression):
    """Return the scores of a model on rows, and the number of rows predicted per second."""
    import numpy as np
    from sklearn import metrics

    start = time.perf_counter()
    first, scores = outputs_of(model, X, regression)
    found = {"rows_per_second": len(X) / (time.perf_counter() - start)}
    if regression:
        return {**found, "r2": metrics.r2_score(y, first)}
    two = scores.ndim == 1 or scores.shape[1] == 2
    chosen = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
    found["accuracy"] = metrics.accuracy_score(y, chosen)
    if two:
        found["auc"] = metrics.roc_auc_score(y, scores if scores.ndim == 1 else scores[:, 1] - scores[:, 0])
    if first is not None:
        shares = np.clip(np.asarray(first, dtype=float), 1e-7, 1)
        found["log_loss"] = metrics.log_loss(y, shares / shares.sum(axis=1, keepdims=True), labels=np.arange(shares.shape[1]))
    return found


def worth(found):
    """Return the criterion by which configurations are chosen; larger is better."""
    return found["r2"] if "r2" in found else -found["log_loss"] if "log_loss" in found else found.get("auc", found["accuracy"])


def search(name, make, X, y, regression, spent, seconds, seed):
    """Return the best of the configurations that start within `seconds`, and their number; the first has the defaults."""
    import numpy as np

    rng, end = np.random.default_rng(seed), spent() + seconds
    order = rng.permutation(len(y))
    held, rest = order[: len(y) // 5], order[len(y) // 5 :]
    best, parameters, tried = -np.inf, {}, 0
    while tried == 0 or spent() < end:
        one = packages.draw(name, rng) if tried > 0 else {}
        found = measures(make(one).fit(X.iloc[rest], y[rest]), X.iloc[held], y[held], regression)
        tried += 1
        if worth(found) > best:
            best, parameters = worth(found), one
    return parameters, tried


def size_of(model):
    """Return the size of a pickled model in bytes."""
    if hasattr(model, "model_"):  # Mercer's
        return len(pickle.dumps(model.model_))
    return len(pickle.dumps(model.model if isinstance(model, packages.Few) else model))


def data_of(job):
    """Return samples and targets for training and test, with classes as numbers, and the indices of the text columns."""
    import numpy as np

    train, test = split_of(job["data"], job["table"], job["split"], job["quick"])
    X, test_X = packages.frames(train, test)
    y, test_y = train["target"].to_numpy(), test["target"].to_numpy()
    if TABLES[job["table"]] != "r2":
        names, y = np.unique(y, return_inverse=True)
        test_y = np.searchsorted(names, test_y)
    words = [i for i, kind in enumerate(X.dtypes) if kind == "category"]
    if job["package"] == "catboost":
        X, test_X = packages.plain(X), packages.plain(test_X)
    return X, y, test_X, test_y, words


def fit(job, cores):
    """Fit a package to a table; yield one line per way (defaults, search)."""
    if job["package"] == "mercer":
        os.environ.setdefault("MERCER_LIBRARY", job["library"])
        sys.path.insert(0, os.path.join(common.ROOT, "python"))
    package, measure = job["package"], TABLES[job["table"]]
    regression, default, taken = measure == "r2", None, 0
    X, y, test_X, test_y, words = data_of(job)

    def make(parameters):
        own = {"device": job["device"], **parameters} if package == "mercer" else parameters
        return packages.make(package, regression, words, cores, job["seed"], own)

    def spent():  # seconds that count against the budget
        return time.process_time() / cores if job["clock"] == "processor" else time.perf_counter()

    make({})  # loads the package before the timing starts
    for how in job["ways"]:
        if how == "search" and default and taken >= job["budget"]:  # the defaults used up the budget
            yield {**default, "how": how, "budget": job["budget"]}
            continue
        start, own, counted, parameters, tried = time.perf_counter(), time.process_time(), spent(), {}, 1
        if package == "mercer" and job["quick"]:
            parameters = {"effort": 1}
        if how == "search":
            parameters, tried = search(package, make, X, y, regression, spent, job["budget"], job["seed"])
        model = make(parameters).fit(X, y)
        taken = spent() - counted
        seconds = {"seconds": time.perf_counter() - start, "processor": time.process_time() - own}
        entry = {"bench": "tables", "case": job["table"], "split": job["split"], "seed": job["seed"], "package": package, "how": how,
                 "n": len(y), "fitted": len(model.rows) if isinstance(model, packages.Few) else len(y), "measure": measure,
                 "device": job["device"] if package == "mercer" else "cpu", "jobs": cores, **seconds, "tried": tried, "bytes": size_of(model)}
        if how == "search":
            entry |= {"budget": job["budget"], "parameters": parameters}
        entry |= {key: float(value) for key, value in measures(model, test_X, test_y, regression).items()}
        default = entry if how == "default" else default
        yield entry


def numbers_of(text):
    """Return the numbers of a list with ranges; "0,101-103": 0, 101, 102 and 103."""
    found = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def jobs_of(stage, options):
    """Yield the jobs of a stage, split by split, on each table first Mercer, whose seconds may become the budget of the others."""
    common_part = {"data": options.data, "library": os.path.join(options.build, "libmercer.so"), "device": options.device,
                   "quick": options.quick, "clock": options.clock}
    asked = stage.packages.split(",")
    for name in sorted(name for name in asked if not packages.here(name)):
        print(f"run.py: {name} is not installed, and left out", file=sys.stderr)
    for split in numbers_of(stage.splits):
        for seed in [split] if split > 0 else range(stage.seeds):
            for table in options.tables.split(","):
                for package in sorted(filter(packages.here, asked), key=lambda name: name != "mercer"):
                    ways = ["default"] if package == "mercer" else stage.ways.split(",")
                    yield {**common_part, "table": table, "split": split, "seed": seed, "package": package, "ways": ways,
                           "budget": stage.budget or BUDGET, "given": stage.budget > 0}


def lines_of(jobs, options):
    """Run the jobs; yield the lines of all fits, including failed fits, when they end."""
    start = time.monotonic()
    setting = lanes.lanes_of(options.lanes, ("mercer", "others") if "," in options.lanes else (None,))
    whole = " ".join(["run.py", *map(shlex.quote, sys.argv[1:])])
    for job, line in lanes.run(setting, jobs, lambda job: "mercer" if job["package"] == "mercer" else "others", fit, options.limit):
        if "failed" in line:
            line = {"bench": "tables", "case": job["table"], "split": job["split"], "seed": job["seed"], "package": job["package"], **line}
        elif job["package"] == "mercer":
            for other in jobs:
                if (other["table"], other["split"]) == (job["table"], job["split"]) and not other["given"]:
                    other["budget"] = line["seconds"]
        yield {**line, "at": round(time.monotonic() - start, 1), "machine": options.machine, "command": whole}


def options_of():
    stage = argparse.ArgumentParser(add_help=False)
    stage.add_argument("--splits", default="1-10", help="0 is the split of the files (default: %(default)s)")
    stage.add_argument("--seeds", type=int, default=1, help="number of seeds on split 0; split k has seed k")
    stage.add_argument("--packages", default=",".join(packages.NAMES), help="default: all that are installed")
    stage.add_argument("--ways", default="default,search", help="ways of fitting the other packages (default: %(default)s)")
    stage.add_argument("--budget", type=float, default=0, help="seconds of each random search (default: the seconds of Mercer's fit)")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], parents=[stage])
    parser.add_argument("--stage", action="append", help="options of a stage; they override the options above")
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--lanes", default=f"1x{len(os.sched_getaffinity(0))}", help="default: all packages in turn on all processors")
    parser.add_argument("--limit", type=float, default=float("inf"), help="seconds after which the run ends")
    parser.add_argument("--clock", choices=["wall", "processor"], default="wall", help="clock of the budget; processor: processor seconds divided by the number of processors")
    parser.add_argument("--device", default="cpu", help="device of Mercer; the other packages use the CPU")
    parser.add_argument("--machine", default="", help="said in every line")
    parser.add_argument("--quick", action="store_true", help="1,500 rows of each table, to check that the program runs")
    parser.add_argument("--output", default="tables-results")
    parser.add_argument("--build", default=os.path.join(common.ROOT, "build"))
    parser.add_argument("--data", default=os.environ.get("MERCER_DATA"))
    options = parser.parse_args()
    kept = argparse.Namespace(**{action.dest: getattr(options, action.dest) for action in stage._actions})
    options.stages = [stage.parse_args(shlex.split(text), argparse.Namespace(**vars(kept))) for text in options.stage or [""]]
    return options


def main():
    options = options_of()
    if common.missing("run.py", ("pandas", "sklearn"), options.data):
        return 0
    jobs = [job for stage in options.stages for job in jobs_of(stage, options)]
    os.makedirs(options.output, exist_ok=True)
    results = os.path.join(options.output, "results.jsonl")
    with open(results, "a", encoding="utf-8") as file:
        for line in lines_of(jobs, options):
            print(json.dumps(line), file=file, flush=True)
    entries = table_results.read([results])
    print(page.text(entries))
    with open(os.path.join(options.output, "page.html"), "w", encoding="utf-8") as file:
        file.write(page.html(entries))
    return 0


if __name__ == "__main__":
    sys.exit(main())
