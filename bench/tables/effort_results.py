# SPDX-License-Identifier: BSD-3-Clause
"""Read the lines of efforts.py, group fits that differ only in split and seed, and compare two groups."""
import json
import math
import statistics

from splits import FILES, TABLES
from table_results import NAMES, mean_of

RIVALS = ("catboost", "lightgbm")
DEFAULT_EFFORT = 3


def key_of(entry):
    """Return the key that identifies a fit in a file."""
    return tuple(entry.get(name) for name in ("folder", "table", "split", "seed", "package", "effort", "trees"))


def read(paths):
    """Return the lines of files, for each fit only the last line, so that a repeated fit replaces a failed fit."""
    found = {}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for entry in map(json.loads, file):
                if entry.get("bench") == "efforts":
                    found[key_of(entry)] = entry
    return list(found.values())


def scored(entries):
    return [entry for entry in entries if "failed" not in entry]


def part(entries, folder, files):
    """Return the lines of a folder: those for the split of the files if `files`, otherwise those for random splits."""
    return [entry for entry in entries if entry["folder"] == folder and (entry["split"] == FILES) == files]


def way_of(entry):
    """Return (package, effort), or (package, multiple of the default number of trees)."""
    return entry["package"], entry.get("effort", entry.get("trees"))


def rank_of(way):
    """Return a sort key: Mercer first, then the other packages, each ordered by effort or number of trees."""
    return ["mercer", *RIVALS, *NAMES].index(way[0]), way[1]


def is_default(way):
    return way[1] == (DEFAULT_EFFORT if way[0] == "mercer" else 1)


def title(way):
    if way[0] == "mercer":
        return f"Mercer, effort {way[1]}"
    return NAMES[way[0]] + ("" if way[1] == 1 else f", {way[1]}x trees")


def groups_of(entries):
    """Return the lines of scored fits by (table, way): tables in the order of TABLES, Mercer first."""
    found = {}
    for entry in scored(entries):
        found.setdefault((entry["table"], way_of(entry)), []).append(entry)
    order = [table for tables in TABLES.values() for table in tables]
    return dict(sorted(found.items(), key=lambda item: (order.index(item[0][0]), rank_of(item[0][1]))))


def ways_of(groups):
    return sorted({way for _, way in groups}, key=rank_of)


def tables_of(groups):
    return list(dict.fromkeys(table for table, _ in groups))


def measure_of(entry):
    return TABLES[entry["folder"]][entry["table"]]


def compare(own, rival):
    """Compare the lines of two ways on the same table, on the splits and seeds that both ways have.

    Returns the mean and standard error of the difference of scores (positive if `own` is better), and the ratio of the median seconds, which
    is None for lines without times. Returns None without common fits.
    """
    others = {(entry["split"], entry["seed"]): entry for entry in rival}
    pairs = [(entry, others[entry["split"], entry["seed"]]) for entry in own if (entry["split"], entry["seed"]) in others]
    if not pairs:
        return None
    difference, error = mean_of([first[measure_of(first)] - second[measure_of(second)] for first, second in pairs])
    if any("seconds" not in entry for pair in pairs for entry in pair):
        return difference, error, None
    times = [statistics.median(pair[i]["seconds"] for pair in pairs) for i in (0, 1)]
    return difference, error, times[0] / times[1]


def verdict(difference, error):
    """Return "better" or "worse", and whether the difference exceeds two standard errors (False for a single fit)."""
    return "better" if difference > 0 else "worse", not math.isnan(error) and abs(difference) > 2 * error


def geometric_mean(values):
    return math.exp(statistics.fmean(map(math.log, values)))
