#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""efforts.py [--efforts LIST] [--packages LIST] [--tables LIST] [--seeds N] [--output FILE]: score and time of `mercer train`.

Trains every table of MERCER_DATA/tables with `mercer train` at each effort, and with other packages at their defaults, and scores the test
rows of the files. The time of Mercer is that of the whole command, file reading included; the time of the others is that of their fit, on
two threads. Prints a table; FILE gets one JSON line per fit, with machine and commit.
"""
import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__))]
import packages  # noqa: E402

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
TABLES = {"housing": "r2", "diamonds": "r2", "kin40k": "r2", "adult": "auc", "bank": "auc", "hr": "auc", "credit": "auc", "letter": "accuracy"}


def run_json(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def fit_mercer(program, folder, table, effort, seed):
    path = os.path.join(folder, "tables", table)
    with tempfile.TemporaryDirectory() as place:
        model = os.path.join(place, "model.safetensors")
        start = time.monotonic()
        train = run_json(program, "train", "--x", f"{path}_train.csv.gz", "--target", "target", "-o", model, "--effort", str(effort),
                         "--seed", str(seed), "--quiet", "--json")
        seconds = time.monotonic() - start
        scores = run_json(program, "eval", "-m", model, "--x", f"{path}_test.csv.gz", "--json")
    return seconds, scores, {"planned": train["plan"]["seconds"], "search": train["search"]["seconds"], "centers": train["centers"]}


def fit_other(name, folder, table, seed):
    import pandas
    from sklearn import metrics

    train, test = (pandas.read_csv(os.path.join(folder, "tables", f"{table}_{part}.csv.gz")) for part in ("train", "test"))
    y, wanted = train["target"], test["target"]
    X, Xt = packages.frames(train, test)
    words = list(X.select_dtypes("category").columns)
    regression = TABLES[table] == "r2"
    if name == "catboost":
        X, Xt = packages.plain(X), packages.plain(Xt)
    model = packages.make(name, regression, words, 2, seed, {})
    start = time.monotonic()
    model.fit(X, y)
    seconds = time.monotonic() - start
    if regression:
        return seconds, {"r2": metrics.r2_score(wanted, model.predict(Xt))}, {}
    P = model.predict_proba(Xt)
    scores = {"accuracy": metrics.accuracy_score(wanted, model.classes_[P.argmax(1)]),
              "log_loss": metrics.log_loss(wanted, P, labels=list(model.classes_))}
    if len(model.classes_) == 2:
        scores["auc"] = metrics.roc_auc_score(wanted == model.classes_[1], P[:, 1])
    return seconds, scores, {}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--efforts", default="1,2,3,4,5")
    parser.add_argument("--packages", default="catboost,lightgbm")
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--program", default=os.path.join(ROOT, "build", "mercer"))
    parser.add_argument("--output")
    options = parser.parse_args()
    folder = os.environ.get("MERCER_DATA") or sys.exit("MERCER_DATA is not set")
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    efforts = [int(effort) for effort in options.efforts.split(",") if effort]
    others = [name for name in options.packages.split(",") if name and packages.here(name)]
    for table in options.tables.split(","):
        for seed in range(options.seeds):
            cases = [(f"mercer, effort {effort}", lambda effort=effort: fit_mercer(options.program, folder, table, effort, seed)) for effort in efforts]
            cases += [(name, lambda name=name: fit_other(name, folder, table, seed)) for name in others]
            for name, fit in cases:
                seconds, scores, more = fit()
                kept = {key: round(scores[key], 5) for key in ("r2", "accuracy", "auc", "log_loss") if isinstance(scores.get(key), float)}
                entry = {"table": table, "seed": seed, "package": name, "seconds": round(seconds, 2), **kept, **more, "commit": commit,
                         "machine": f"{platform.machine()}, {os.cpu_count()} cores"}
                print(f"{table:10} {seed} {name:18} {seconds:7.1f} s  {TABLES[table]} {scores[TABLES[table]]:.4f}", flush=True)
                if options.output:
                    with open(options.output, "a", encoding="utf-8") as file:
                        file.write(json.dumps(entry) + "\n")


if __name__ == "__main__":
    main()
