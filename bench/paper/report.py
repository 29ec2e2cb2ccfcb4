#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""report.py FILE.jsonl ...: print the output of `paper_table --json` as a Markdown table with one row per group of seeds.

Runs that differ only in the seed are merged into one row with the mean accuracy and the median seconds.
"""
import json
import statistics
import sys

KEY = ("data", "p", "solver", "projector", "epochs", "carry", "average")


def load(paths):
    """Return the groups of runs that differ only in the seed, and for cg also in the number of epochs, in file order."""
    groups = {}
    for path in paths:
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                run = json.loads(line)
                key = tuple(run[name] for name in KEY if not (name == "epochs" and run["solver"] == "cg"))
                key += (run.get("centers", "random"),)
                groups.setdefault(key, []).append(run)
    return groups.values()


def describe(runs):
    """Describe the solver and its settings, with all values of T, which depends on the data and may differ between seeds."""
    run = runs[0]
    parts = [run["solver"]]
    if run.get("centers", "random") != "random":
        parts.insert(0, run["centers"] + " centers")
    if run["projector"] != "none":
        parts.append(run["projector"] + (" carried" if run["carry"] else ""))
        parts.append("T = " + "/".join(sorted({str(other["T"]) for other in runs})))
        parts.append("averaged" if run["average"] else "last iterate")
    return ", ".join(parts)


def main():
    print("| data | p | solver | test accuracy, % (mean; each seed) | epochs | seconds | residual | peak MB |")
    print("|---|---|---|---|---|---|---|---|")
    for runs in load(sys.argv[1:]):
        first = runs[0]
        each = ", ".join(f"{run['test_accuracy']:.2f}" for run in runs)
        mean = statistics.mean(run["test_accuracy"] for run in runs)
        epochs = "/".join(sorted({str(run["epochs"]) for run in runs}))
        seconds = statistics.median(run["seconds"] for run in runs)
        residual = statistics.mean(run["residual_mean"] for run in runs)
        peak = max(run["peak_bytes"] for run in runs) / 1e6
        accuracy = f"**{mean:.2f}** ({each})" if len(runs) > 1 else f"**{mean:.2f}**"
        print(f"| {first['data'].rstrip('/').split('/')[-1]} | {first['p']:,} | {describe(runs)} | {accuracy} | {epochs} | "
              f"{seconds:.1f} | {residual:.3f} | {peak:,.0f} |")


if __name__ == "__main__":
    main()
