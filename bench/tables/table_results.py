# SPDX-License-Identifier: BSD-3-Clause
"""Read the lines of run.py, and compute means with standard errors over splits (on the split of the files: over seeds)."""
import json
import math
import statistics

NAMES = {"mercer": "Mercer", "lightgbm": "LightGBM", "xgboost": "XGBoost", "catboost": "CatBoost", "histgb": "HistGradientBoosting",
         "kernelridge": "KernelRidge", "svm": "SVM"}


def read(paths):
    """Return the lines of successful fits; of several lines for the same fit, the first is used."""
    found = {}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for entry in map(json.loads, file):
                if entry.get("bench") == "tables" and "how" in entry:
                    key = (entry["case"], entry["split"], entry.get("seed", entry["split"]), entry["package"], entry["how"])
                    found.setdefault(key, entry)
    return list(found.values())


def read_random(paths):
    """Return the lines of random_search.py that contain both the search and the random configurations."""
    found = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            found += [entry for entry in map(json.loads, file) if entry.get("bench") == "random_search" and entry.get("what") == "both"]
    return found


def part(entries, files):
    """Return the lines of the split of the files if `files`, otherwise the lines of all random splits."""
    return [entry for entry in entries if (entry["split"] == 0) == files]


def groups_of(entries):
    """Group lines by table, package and way; within a table the group with the best mean comes first."""
    found = {}
    for entry in entries:
        found.setdefault((entry["case"], entry["package"], entry["how"]), []).append(entry)
    cases = list(dict.fromkeys(case for case, _, _ in found))
    return sorted(found.items(), key=lambda item: (cases.index(item[0][0]), -mean(item[1], item[1][0]["measure"])[0]))


def mean(lines, name):
    """Return a mean and its standard error (NaN for a single line), or None if no line has the value."""
    return mean_of([line[name] for line in lines if line.get(name) is not None])


def mean_of(values):
    if not values:
        return None
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return statistics.fmean(values), error


def title(package, how):
    return NAMES[package] + ("" if how == "default" else ", searched" if how == "search" else f", {how}")


def differences(entries, case, rival, how, measure):
    """Return the scores of Mercer with its defaults minus the scores of a package, on the splits that both have."""
    score = {(entry["package"], entry["how"], entry["split"]): entry[measure] for entry in entries if entry["case"] == case and measure in entry}
    pairs = [(value, score.get((rival, how, split))) for (package, way, split), value in score.items() if (package, way) == ("mercer", "default")]
    return [own - other for own, other in pairs if other is not None]
