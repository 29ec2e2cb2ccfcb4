#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""boosting.py [--json] [--quick] [--filter TEXT] [--part tables|gaps]: compare Mercer without search with boosted trees on raw tables.

The data folder contains tables/NAME_train.csv.gz and tables/NAME_test.csv.gz with a header and the last column `target`. Text columns and
missing values are kept. All packages use their defaults, except that Mercer's hyperparameter search is off (bench/tables measures Mercer
with the search). XGBoost and LightGBM get a data frame with text columns as categories; Mercer gets the files.

tables  test R2, or accuracy and AUC, and processor seconds of training
`gaps`  the same, after a random 10 % of the cells of training and test rows (not of the target) were emptied

For regressions, the output also has the share of test targets within Mercer's 90 % intervals (--intervals on).
"""
import json
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tables"))
import common  # noqa: E402
import packages  # noqa: E402

TABLES = (("housing", "r2"), ("diamonds", "r2"), ("kin40k", "r2"), ("adult", "auc"), ("bank", "auc"), ("hr", "auc"), ("credit", "auc"),
          ("letter", "accuracy"))
COLUMNS = (("case", "<10"), ("part", "<8"), ("package", "<10"), ("n", ">7"), ("measure", ">10"), ("score", ">8.4f"), ("accuracy", ">8.4f"),
           ("coverage", ">8.4f"), ("seconds", ">9.1f"))


def run_trees(make, measure, train, test):
    import numpy as np
    from sklearn.metrics import accuracy_score, r2_score, roc_auc_score

    X, test_X = packages.frames(train, test)
    y, test_y = train["target"], test["target"]
    if measure != "r2":
        names, y = np.unique(y, return_inverse=True)
        test_y = np.searchsorted(names, test_y)
    model = make()
    start = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - start
    if measure == "r2":
        return {"score": r2_score(test_y, model.predict(test_X)), "accuracy": None, "seconds": seconds}
    shares = model.predict_proba(test_X)
    accuracy = accuracy_score(test_y, shares.argmax(axis=1))
    return {"score": roc_auc_score(test_y, shares[:, 1]) if measure == "auc" else accuracy, "accuracy": accuracy, "seconds": seconds}


def run_mercer(options, measure, train, test):
    program = os.path.join(options.build, "mercer")
    task = "regression" if measure == "r2" else "classification"
    with tempfile.TemporaryDirectory() as folder:
        model, more = os.path.join(folder, "model.safetensors"), ["--centers", "300"] if options.quick else []
        if measure == "r2":
            more += ["--intervals", "on"]
        before = os.times()
        subprocess.run([program, "train", "--x", train, "--target", "target", "--task", task, "--tune", "off", "-q", "-o", model, *more],
                       check=True)
        after = os.times()
        done = subprocess.run([program, "eval", "-m", model, "--x", test, "--target", "target", "--json"], check=True, capture_output=True)
    told = json.loads(done.stdout)
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    return {"score": told[measure], "accuracy": told.get("accuracy"), "coverage": told.get("coverage"), "seconds": seconds}


def emptied(frame, rng):
    """Return a copy of a frame in which a tenth of the cells, except in the target, are missing."""
    frame = frame.copy()
    for name in frame.columns:
        if name != "target":
            frame[name] = frame[name].where(rng.random(len(frame)) >= 0.1)
    return frame


def compare(options, part, name, measure):
    import lightgbm
    import numpy as np
    import pandas
    import xgboost

    paths = [os.path.join(options.data, "tables", f"{name}_{kind}.csv.gz") for kind in ("train", "test")]
    train, test = map(pandas.read_csv, paths)
    regression = measure == "r2"
    trees = {
        "lightgbm": lambda: (lightgbm.LGBMRegressor if regression else lightgbm.LGBMClassifier)(verbose=-1, n_jobs=2),
        "xgboost": lambda: (xgboost.XGBRegressor if regression else xgboost.XGBClassifier)(enable_categorical=True, n_jobs=2),
    }
    with tempfile.TemporaryDirectory() as folder:
        if part == "gaps":
            rng = np.random.default_rng(0)
            train, test = emptied(train, rng), emptied(test, rng)
            paths = [os.path.join(folder, kind + ".csv") for kind in ("train", "test")]
            for frame, path in zip((train, test), paths):
                frame.to_csv(path, index=False)
        results = {package: run_trees(make, measure, train, test) for package, make in trees.items()}
        results["mercer"] = run_mercer(options, measure, *paths)
    for package, found in results.items():
        entry = {"bench": "boosting", "part": part, "case": name, "package": package, "n": len(train), "measure": measure}
        entry |= {"coverage": None, **found}
        common.report(options, {key: float(value) if isinstance(value, np.floating) else value for key, value in entry.items()}, COLUMNS)


def main():
    parts = ["tables", "gaps"]
    if "--part" in sys.argv:
        at = sys.argv.index("--part")
        parts = [sys.argv[at + 1]]
        del sys.argv[at : at + 2]
    options = common.options_of(__doc__.splitlines()[0])
    if common.missing("boosting.py", ("pandas", "sklearn", "lightgbm", "xgboost"), options.data):
        return 0
    if not os.path.isdir(os.path.join(options.data, "tables")):
        print("boosting.py: left out, MERCER_DATA has no folder tables", file=sys.stderr)
        return 0
    for part in parts:
        for name, measure in TABLES:
            if options.filter in name:
                compare(options, part, name, measure)
    return 0


if __name__ == "__main__":
    sys.exit(main())
