#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""report.py [--write PAGE | --compare FOLDER]: make the tables of docs/performance.md from bench/results/*.jsonl, or compare new results.

Without an option, print the tables. With --write, replace the text of PAGE between "<!-- table NAME -->" and "<!-- end -->"; a table
without results does not change. With --compare, compare the times in FOLDER/*.jsonl with the committed results of the same cases on the
same machine. The exit status is 1 if a new time is more than --slower times the committed time (default 1.1), or if no times can be
compared.
"""
import argparse
import json
import os
import re
import sys

RESULTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "results")


def load(name, folder=RESULTS):
    path = os.path.join(folder, name + ".jsonl")
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def number(value, digits=3):
    """Format a number with three digits, thousands separators and no exponent; numbers below 1 have two decimals."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    decimals = 0 if value == 0 else max(0, digits - len(str(int(abs(value)))))
    return f"{value:,.{decimals}f}"


def table(head, rows):
    if not rows:
        return None
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows])


def ceilings():
    runs = {}
    for run in load("ceilings"):
        runs.setdefault((run["case"], run["unit"]), {})[run["threads"]] = run
    most = max((threads for entry in runs.values() for threads in entry), default=1)
    return table(["what", "unit", "1 thread", f"{most} threads", "speed-up"],
                 [[case, unit, number(entry[1]["rate"]), number(entry[most]["rate"]), f"{entry[most]['speed_up']:.2f}"]
                  for (case, unit), entry in runs.items()])


def matmul():
    beside = {(run["package"], run["case"]): run["times_composed"] for run in load("composed")}
    rows = []
    for run in load("matmul"):
        case = run["case"]
        rows.append([case, f"{run['m']:,} x {run['p']:,}", number(1e3 * run["fused_s"]), number(run["gflops"]), number(run["gemm_gflops"]),
                     f"{run['ratio_to_gemm']:.2f}", f"{run['times_composed']:.1f}",
                     *(f"{beside[name, case]:.1f}" if (name, case) in beside else "" for name in ("numpy", "torch"))])
    return table(["case", "m x p", "ms", "GFLOP/s", "GEMM GFLOP/s", "of GEMM", "x composed, BLAS", "x NumPy", "x PyTorch"], rows)


def predict():
    rows = [[run["case"], run["rows"], f"{run['p']:,}", number(1e3 * run["median_s"]), number(run["gbytes_s"]), number(1e3 * run["copy_s"])]
            for run in load("predict")]
    return table(["model", "rows", "p", "ms", "centers read, GB/s", "copy of the centers, ms"], rows)


def accuracy(run):
    return f"{run['test_accuracy']:.2f} %" if "test_accuracy" in run else f"{100 * run['test_variance_left']:.1f} % of variance left"


def solver(run):
    return run["solver"] + ("" if run["projector"] == "none" else f", {run['projector']}")


def train():
    rows = [[run["case"], solver(run), run["epochs"], number(run["median_s"]), number(run["setup_s"]), number(run["forward_s"]),
             number(run["gradient_s"]), number(run["projection_s"]), number(run["flops"] / 1e9 / run["median_s"]), accuracy(run)]
            for run in load("train")]
    return table(["case", "solver", "epochs or steps", "seconds", "set-up", "forward", "gradient", "projection", "GFLOP/s", "test"], rows)


def memory():
    rows = [[run["case"], solver(run), number(run["plan_bytes"] / 1e6), number(run["peak_bytes"] / 1e6),
             f"{100 * (run['peak_bytes'] / run['plan_bytes'] - 1):+.1f} %", number(run["rss_before_bytes"] / 1e6), number(run["rss_bytes"] / 1e6)]
            for run in load("train")]
    return table(["case", "solver", "planned MB", "held MB", "difference", "resident before, MB", "resident at most, MB"], rows)


def parallel():
    rows = [[run["case"], run["threads"], number(1e6 * run["best_s"]), number(1e6 * run["median_s"]),
             f"{run['speed_up']:.2f}" if run["speed_up"] else ""] for run in load("parallel")]
    return table(["loop", "threads", "best us", "median us", "speed-up"], rows)


def eigenpro():
    rows = []
    for run in load("eigenpro"):
        short = "" if run["reached"] or "one epoch" in run["case"] else " (not reached)"
        rows.append([run["case"] + short, run["epochs"], number(run["setup_s"]), number(run["epoch_s"]), number(run["seconds"]),
                     f"{run['accuracy']:.2f}", run["mercer_case"], number(run["mercer_s"]), f"{run['mercer_accuracy']:.2f}",
                     f"{run['times']:.1f}"])
    return table(["PyTorch loop", "epochs", "set-up s", "epoch s", "all s", "test %", "Mercer", "all s", "test %", "times"], rows)


def sklearn():
    rows = [[run["case"], run["dtype"], f"{run['n']:,}", f"{run['p']:,}", f"{run['seconds']:.2f}", f"{run['accuracy']:.2f}", run["mercer_solver"],
             f"{run['mercer_s']:.2f}", f"{run['mercer_accuracy']:.2f}", f"{run['times']:.2f}", run["difference"] or ""] for run in load("sklearn_models")]
    return table(["scikit-learn", "samples", "n", "p", "seconds", "test %", "Mercer's solver", "seconds", "test %", "times", "largest difference"], rows)


def profile():
    rows = []
    for run in load("profile"):
        rows.append([run["case"], ", ".join(f"`{name}` {100 * share:.0f} %" for name, share in run["shares"].items() if share >= 0.02)])
    return table(["case", "where the samples fell"], rows)


TABLES = {make.__name__: make for make in (ceilings, matmul, predict, train, memory, parallel, eigenpro, sklearn, profile)}


# Fields that identify a case: names and sizes that the benchmark sets. All other fields are measured or chosen by the library.
IDENTITY = ("machine", "bench", "case", "kernel", "unit", "backend", "isa", "threads", "rows", "n", "m", "p", "d", "c")


def identity(run):
    return tuple(run.get(key) for key in IDENTITY)


def compare(folder, slower, committed):
    """Print the ratio of each new time to the committed time; return whether times were compared and no ratio exceeds `slower`."""
    worse = found = 0
    lonely = {}  # number of cases without a committed result, by benchmark
    for file in sorted(name for name in os.listdir(folder) if name.endswith(".jsonl")):
        name = file[: -len(".jsonl")]
        old = {identity(run): run for run in load(name, committed) if run.get("machine")}
        for run in load(name, folder):
            if identity(run) not in old:
                lonely[name] = lonely.get(name, 0) + 1
                continue
            for key in [key for key in run if key.endswith("_s") and key != "gbytes_s"]:
                before, after = old[identity(run)].get(key), run[key]
                if not before or not after:
                    continue
                found += 1
                is_worse = after > slower * before
                worse += is_worse
                print(f"{run.get('bench', name)}: {run.get('case', '')}, {key}: {number(1e3 * before)} ms, now {number(1e3 * after)} ms, "
                      f"{after / before:.2f}{' SLOWER' if is_worse else ''}")
    for name, count in lonely.items():
        print(f"{name}: {count} cases have no committed result of the same machine and sizes")
    print(f"{found} times compared, {worse} slower by more than a factor of {slower}")
    return found > 0 and worse == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", metavar="PAGE")
    parser.add_argument("--compare", metavar="FOLDER")
    parser.add_argument("--committed", metavar="FOLDER", default=RESULTS, help="results to compare with (default bench/results)")
    parser.add_argument("--slower", type=float, default=1.1, metavar="FACTOR")
    options = parser.parse_args()
    if options.compare:
        return 0 if compare(options.compare, options.slower, options.committed) else 1
    made = {name: make() for name, make in TABLES.items()}
    if not options.write:
        for name, text in made.items():
            print(f"<!-- table {name} -->\n{text or 'no results'}\n<!-- end -->\n")
        return 0
    with open(options.write, encoding="utf-8") as file:
        page = file.read()
    for name, text in made.items():
        pattern = re.compile(rf"(<!-- table {name} -->\n).*?(<!-- end -->)", re.S)
        if text and not pattern.search(page):
            sys.exit(f"{options.write}: there is no table {name}")
        if text:
            page = pattern.sub(lambda match, text=text: f"{match.group(1)}\n{text}\n\n{match.group(2)}", page)
    with open(options.write, "w", encoding="utf-8") as file:
        file.write(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
