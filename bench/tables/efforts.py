#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""efforts.py [OPTIONS] --output FILE: measure score and time of `mercer train` at each effort, compared with other packages.

Fits every table of a folder of MERCER_DATA with Mercer and with other packages, and scores the test rows. FILE gets one JSON line per fit.
Fits already in FILE are skipped, so that a run can be interrupted and continued. The time of Mercer is the time of the whole command. The
time of another package includes reading the training rows and the fit; `fit_seconds` is the time of the fit only. A fit that fails or
exceeds --timeout is recorded with the reason. With --jobs above 1, fits of several tables or splits run at the same time. Their lines
contain no times, because such fits slow each other down. At the end, the tables of summarize.py are printed.
"""
import argparse
import concurrent.futures
import json
import math
import os
import platform
import shlex
import subprocess
import sys

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__))]
import fits  # noqa: E402
import packages  # noqa: E402
import summarize  # noqa: E402
from effort_results import key_of, read  # noqa: E402
from splits import FILES, TABLES, read_lines, split_files  # noqa: E402

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))


def numbers(text):
    return [int(part) for part in text.split(",") if part]


def names(text):
    return [part for part in text.split(",") if part]


def jobs_of(options):
    """Return the jobs of a run, table by table and split by split: first the fits of Mercer, then the fits of the packages."""
    jobs = []
    for table in options.tables or TABLES[options.folder]:
        for split in range(options.splits) if options.splits else [FILES]:
            for seed in range(options.seeds):
                job = {"folder": options.folder, "table": table, "split": split, "seed": seed, "threads": options.threads}
                jobs += [{**job, "package": "mercer", "effort": effort} for effort in options.efforts]
                jobs += [{**job, "package": name, "trees": multiple} for name in options.packages for multiple in options.trees]
    return jobs


def problem_of(found, measure, rows):
    """Return the problem with the scores of a fit; None if the scores are valid."""
    if found["test_rows"] != rows:
        return f"scored {found['test_rows']} of {rows} test rows"
    if measure not in found:
        return f"has no {measure}"
    wrong = [name for name in fits.SCORES if name in found and not math.isfinite(found[name])]
    return f"{wrong[0]} is not finite" if wrong else None


def fit(job, rows, timeout):
    """Run a fit; return its measurements, or {"failed": reason}."""
    try:
        found = fits.fit(job, timeout)
    except fits.Failed as error:
        return {"failed": str(error)}
    problem = problem_of(found, TABLES[job["folder"]][job["table"]], rows)
    return {"failed": problem} if problem else {name: round(value, 5) if isinstance(value, float) else value for name, value in found.items()}


def machine_of():
    """Return the name of the processor and the number of cores."""
    model = platform.machine()
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            model = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), model)
    return f"{model}, {os.cpu_count()} cores"


def commit_of(program):
    """Return the commit of the repository that contains the program; "" if the program is not in a repository."""
    command = ["git", "-C", os.path.dirname(os.path.abspath(program)), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def batches(jobs):
    """Split the jobs into lists of consecutive jobs with the same table and split, which share files."""
    found = []
    for job in jobs:
        if not found or (found[-1][0]["table"], found[-1][0]["split"]) != (job["table"], job["split"]):
            found.append([])
        found[-1].append(job)
    return found


def run_batch(batch, options, write):
    """Run jobs of the same table and split, and pass the line of each job to write()."""
    facts = {"commit": commit_of(options.program), "machine": options.machine or machine_of(), "command": shlex.join(["efforts.py", *sys.argv[1:]])}
    with split_files(options.data, options.folder, batch[0]["table"], batch[0]["split"]) as (train, test):
        rows = len(read_lines(test)[1])
        for job in batch:
            found = fit({**job, "train": train, "test": test, "program": options.program}, rows, options.timeout)
            if options.jobs > 1:
                found = {name: value for name, value in found.items() if name not in fits.TIMES}
            write({"bench": "efforts", **job, **found, **facts})


def options_of():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", choices=list(TABLES), default="tables", help="folder of MERCER_DATA")
    parser.add_argument("--tables", type=names, help="tables of the folder (default: all)")
    parser.add_argument("--splits", type=int, default=0, help="number of random 80/20 splits (default: the split of the files)")
    parser.add_argument("--seeds", type=int, default=1, help="number of seeds on each split")
    parser.add_argument("--efforts", type=numbers, default=[1, 2, 3, 4, 5], help="efforts of Mercer; '' for none")
    parser.add_argument("--packages", type=names, default=["catboost", "lightgbm"], help=f"of {', '.join(packages.TREES)}; '' for none")
    parser.add_argument("--trees", type=numbers, default=[1], help="multiples of a package's default number of trees, as 1,3,10")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--jobs", type=int, default=1, help="number of fits at once; above 1, times are not recorded")
    parser.add_argument("--timeout", type=float, default=3600, help="seconds after which a fit has failed")
    parser.add_argument("--retry", action="store_true", help="repeat the fits that failed")
    parser.add_argument("--machine", default="", help="name of the machine (default: its processor)")
    parser.add_argument("--program", default=os.path.join(ROOT, "build", "mercer"))
    parser.add_argument("--data", default=os.environ.get("MERCER_DATA"), help="default: MERCER_DATA")
    parser.add_argument("--output", required=True)
    options = parser.parse_args()
    if not options.data:
        parser.error("MERCER_DATA is not set; set it or use --data")
    unknown = [name for name in options.tables or () if name not in TABLES[options.folder]]
    if unknown:
        parser.error(f"--tables: folder '{options.folder}' has no table '{unknown[0]}'; use some of {', '.join(TABLES[options.folder])}")
    missing = [name for name in options.packages if name not in packages.TREES or not packages.here(name)]
    if missing:
        parser.error(f"--packages: '{missing[0]}' is unknown or not installed; use some of {', '.join(packages.TREES)}")
    return options


def main():
    options = options_of()
    known = read([options.output]) if os.path.exists(options.output) else []
    done = {key_of(entry) for entry in known if not (options.retry and "failed" in entry)}
    jobs = [job for job in jobs_of(options) if key_of(job) not in done]
    with open(options.output, "a", encoding="utf-8") as file, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        def write(entry):
            print(json.dumps(entry), file=file, flush=True)
            print(summarize.line_of(entry), file=sys.stderr, flush=True)

        for done in [pool.submit(run_batch, batch, options, write) for batch in batches(jobs)]:
            done.result()
    print("\n".join(summarize.sections(read([options.output]))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
