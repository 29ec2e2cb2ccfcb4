#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""run.py [--splits N] [--packages LIST] [--filter TEXT] [--quick] [--output FOLDER]: Mercer beside others on the tables of MERCER_DATA.

One command for all of it. The folder of data holds tables/NAME_train.csv.gz and NAME_test.csv.gz, a header each, the last column `target`.
Split 0 is that of the files; split k joins both and draws test rows of the same number at random, with seed k. On each split every package
is fitted with its defaults, then with the best of as many random configurations as the seconds of Mercer's own fit allow (judged by
squared error, or log loss where there are probabilities, on a fifth of the training rows, then fitted once more to all). Test rows are
scored once, after all choices. Seconds are of the clock: run it on an idle machine.

FOLDER gets results.jsonl (one line for each fit) and page.html with plots; a summary with standard errors over the splits is printed.
"""
import argparse
import json
import os
import pickle
import sys
import time

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "compare")]
import common  # noqa: E402
import packages  # noqa: E402
import page  # noqa: E402

TABLES = {"housing": "r2", "diamonds": "r2", "kin40k": "r2", "adult": "auc", "bank": "auc", "hr": "auc", "credit": "auc", "letter": "accuracy"}


def split_of(folder, name, number, quick):
    import numpy as np
    import pandas

    parts = [pandas.read_csv(os.path.join(folder, "tables", f"{name}_{part}.csv.gz")) for part in ("train", "test")]
    if number > 0:
        both = pandas.concat(parts, ignore_index=True)
        order = np.random.default_rng(number).permutation(len(both))
        held = len(parts[1])
        parts = [both.iloc[order[held:]], both.iloc[order[:held]]]
    if quick:
        parts = [part.iloc[:1500] for part in parts]
    return [part.reset_index(drop=True) for part in parts]


def outputs_of(model, X, regression):
    """Values; or probabilities (None if there are none) and scores of the classes."""
    if regression:
        return model.predict(X), None
    if hasattr(model, "predict_proba"):
        shares = model.predict_proba(X)
        return shares, shares
    return None, model.scores(X)


def measures(model, X, y, regression):
    """What a model reaches on rows, and how many of them it predicts a second."""
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
        found["log_loss"] = metrics.log_loss(y, np.clip(first, 1e-7, 1), labels=np.arange(first.shape[1]))
    return found


def worth(found):
    """Larger is better: what configurations are chosen by."""
    return found["r2"] if "r2" in found else -found["log_loss"] if "log_loss" in found else found.get("auc", found["accuracy"])


def search(name, make, X, y, regression, seconds, seed):
    """The best configuration of as many as there is time for, and how many that were; the defaults are the first."""
    import numpy as np

    rng, end = np.random.default_rng(seed), time.perf_counter() + seconds
    order = rng.permutation(len(y))
    held, rest = order[: len(y) // 5], order[len(y) // 5 :]
    best, parameters, tried = -np.inf, {}, 0
    while tried == 0 or time.perf_counter() < end:
        one = packages.draw(name, rng) if tried > 0 else {}
        found = measures(make(one).fit(X.iloc[rest], y[rest]), X.iloc[held], y[held], regression)
        tried += 1
        if worth(found) > best:
            best, parameters = worth(found), one
    return parameters, tried


def size_of(model):
    """Bytes of the model as it is kept."""
    if hasattr(model, "model_"):  # Mercer's
        return len(pickle.dumps(model.model_))
    return len(pickle.dumps(model.model if isinstance(model, packages.Few) else model))


def fit_all(options, table, number):
    import numpy as np

    measure = TABLES[table]
    regression = measure == "r2"
    train, test = split_of(options.data, table, number, options.quick)
    X, test_X = packages.frames(train, test)
    y, test_y = train["target"].to_numpy(), test["target"].to_numpy()
    if not regression:
        names, y = np.unique(y, return_inverse=True)
        test_y = np.searchsorted(names, test_y)
    words = [i for i, kind in enumerate(X.dtypes) if kind == "category"]
    allowed = None
    for package in sorted(options.packages, key=lambda name: name != "mercer"):  # whose seconds the others get
        ways = ("default", "search") if package != "mercer" else ("default", f"mean of {options.average}")[: 2 if options.average > 1 else 1]
        for how in ways:
            if package == "catboost":
                X_own, test_own = (frame.astype({X.columns[i]: "str" for i in words}) for frame in (X, test_X))
            else:
                X_own, test_own = X, test_X

            def make(parameters, package=package):
                own = {"device": options.device, **parameters} if package == "mercer" else parameters
                return packages.make(package, regression, words, options.jobs, number, own)

            start, parameters, tried = time.perf_counter(), {}, 1
            if package == "mercer" and options.quick:
                parameters = {"tune": 0.5}
            if how.startswith("mean"):
                parameters["average_models"] = options.average
            if how == "search":
                parameters, tried = search(package, make, X_own, y, regression, options.budget or allowed or 30, number)
            model = make(parameters).fit(X_own, y)
            seconds = time.perf_counter() - start
            allowed = seconds if package == "mercer" and how == "default" else allowed
            entry = {"bench": "tables", "case": table, "split": number, "package": package, "how": how, "n": len(y), "measure": measure,
                     "device": options.device if package == "mercer" else "cpu", "jobs": options.jobs, "seconds": seconds, "tried": tried, "bytes": size_of(model)}
            entry |= {key: float(value) for key, value in measures(model, test_own, test_y, regression).items()}
            yield entry


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="number of the first split; 0 is that of the files")
    parser.add_argument("--packages", default=",".join(packages.NAMES), help="default: all that are installed")
    parser.add_argument("--filter", default="", help="only tables whose name contains one of these, with commas between them")
    parser.add_argument("--budget", type=float, default=0, help="seconds of each random search; default: those of Mercer's fit")
    parser.add_argument("--average", type=int, default=1, help="of Mercer also the mean of its so many best models")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--device", default="cpu", help="where Mercer computes; the others compute on the processor")
    parser.add_argument("--quick", action="store_true", help="1,500 rows of each, to see that it runs")
    parser.add_argument("--output", default="tables-results")
    parser.add_argument("--build", default=os.path.join(common.ROOT, "build"))
    parser.add_argument("--data", default=os.environ.get("MERCER_DATA"))
    options = parser.parse_args()
    if common.missing("run.py", ("pandas", "sklearn"), options.data):
        return 0
    os.environ.setdefault("MERCER_LIBRARY", os.path.join(options.build, "libmercer.so"))
    sys.path.insert(0, os.path.join(common.ROOT, "python"))
    asked = options.packages.split(",")
    options.packages = [name for name in asked if packages.here(name)]
    for name in sorted(set(asked) - set(options.packages)):
        print(f"run.py: {name} is not installed, and left out", file=sys.stderr)
    os.makedirs(options.output, exist_ok=True)
    with open(os.path.join(options.output, "results.jsonl"), "a", encoding="utf-8") as file:
        for number in range(options.first, options.first + options.splits):
            for table in TABLES:
                if any(part in table for part in options.filter.split(",")):
                    for entry in fit_all(options, table, number):
                        print(json.dumps(entry), file=file, flush=True)
    with open(os.path.join(options.output, "results.jsonl"), encoding="utf-8") as file:
        entries = [json.loads(line) for line in file]
    print(page.text(entries))
    with open(os.path.join(options.output, "page.html"), "w", encoding="utf-8") as file:
        file.write(page.html(entries))
    return 0


if __name__ == "__main__":
    sys.exit(main())
