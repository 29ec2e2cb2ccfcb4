#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tables.py [--json] [--quick] [--filter TEXT]: boosted trees (scikit-learn's) beside Mercer, on tables.

The folder of data holds tables/NAME_train.csv.gz and tables/NAME_test.csv.gz, a header each, the last column `target`: 80 % and 20 % of
kin40k, UCI Letter Recognition, UCI Default of Credit Card Clients and California housing (StatLib), drawn at random once. Both sides
have everything at its default. Mercer reads the files themselves (`mercer train`, `mercer eval`), but of housing the numbers alone,
with the mean where a value is missing; trees get its column of words too. Seconds are of the whole command, and of fit.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

import common

TABLES = (("kin40k", "r2"), ("letter", "accuracy"), ("credit", "accuracy"), ("housing", "r2"))
COLUMNS = (("case", "<10"), ("n", ">7"), ("d", ">4"), ("measure", ">10"), ("trees", ">8.4f"), ("trees_s", ">9.1f"), ("mercer", ">8.4f"),
           ("mercer_s", ">9.1f"), ("mercer_solver", ">7"))


def numbers_only(frame):
    """The columns that are numbers, and the target; a value that is missing becomes the mean."""
    kept = frame.select_dtypes("number").columns.union(["target"], sort=False)
    return frame[kept].fillna(frame[kept].select_dtypes("number").mean())


def run_trees(measure, train, test):
    """(R2 or accuracy, seconds)."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    make = HistGradientBoostingRegressor if measure == "r2" else HistGradientBoostingClassifier
    X, test_X = (frame.drop(columns="target").astype({name: "category" for name in frame.select_dtypes(exclude="number").columns
                                                      if name != "target"}) for frame in (train, test))
    model = make(random_state=0, categorical_features="from_dtype")
    start = time.perf_counter()
    model.fit(X, train["target"])
    seconds = time.perf_counter() - start
    return float(model.score(test_X, test["target"])), seconds


def run_mercer(options, measure, train, test, quick):
    """(R2 or accuracy, seconds, plan)."""
    program = os.path.join(options.build, "mercer")
    task = "regression" if measure == "r2" else "classification"
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, "model.safetensors")
        more = ["--centers", "500"] if quick else []
        start = time.perf_counter()
        done = subprocess.run([program, "train", "--x", train, "--target", "target", "--task", task, "--json", "-q", "-o", model, *more],
                              check=True, capture_output=True)
        seconds = time.perf_counter() - start
        evaluated = subprocess.run([program, "eval", "-m", model, "--x", test, "--target", "target", "--json"], check=True, capture_output=True)
    return json.loads(evaluated.stdout)[measure], seconds, json.loads(done.stdout)["plan"]


def compare(options, name, measure):
    import pandas
    import sklearn

    paths = [os.path.join(options.data, "tables", f"{name}_{part}.csv.gz") for part in ("train", "test")]
    train, test = map(pandas.read_csv, paths)
    with tempfile.TemporaryDirectory() as folder:
        if train.drop(columns="target").select_dtypes(exclude="number").shape[1] > 0 or train.isna().any(axis=None):
            paths = [os.path.join(folder, os.path.basename(path)[:-3]) for path in paths]
            for frame, path in zip((train, test), paths):
                numbers_only(frame).to_csv(path, index=False)
        ours, our_seconds, plan = run_mercer(options, measure, *paths, options.quick)
    theirs, their_seconds = run_trees(measure, train, test)
    common.report(options, {
        "bench": "tables", "package": "sklearn", "package_version": sklearn.__version__, "case": name, "n": len(train), "d": train.shape[1] - 1,
        "measure": measure, "trees": theirs, "trees_s": their_seconds, "mercer": ours, "mercer_s": our_seconds,
        "mercer_solver": plan["solver"],
    }, COLUMNS)


def main():
    options = common.options_of(__doc__.splitlines()[0])
    if common.missing("tables.py", ("pandas", "sklearn"), options.data):
        return 0
    if not os.path.isdir(os.path.join(options.data, "tables")):
        print("tables.py: left out, MERCER_DATA has no folder tables", file=sys.stderr)
        return 0
    for name, measure in TABLES:
        if options.filter in name:
            compare(options, name, measure)
    return 0


if __name__ == "__main__":
    sys.exit(main())
