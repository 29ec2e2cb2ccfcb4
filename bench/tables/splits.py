# SPDX-License-Identifier: BSD-3-Clause
"""Tables of MERCER_DATA: the measure and the files of each table, and random splits of the rows."""
import contextlib
import gzip
import os
import random
import tempfile

TABLES = {
    "tables": {"housing": "r2", "diamonds": "r2", "kin40k": "r2", "adult": "auc", "bank": "auc", "hr": "auc", "credit": "auc",
               "letter": "accuracy"},
    "large": {"airline": "auc", "rain": "auc", "accel": "accuracy", "motor": "r2", "sgemm": "r2", "fares": "r2", "heart": "auc", "air": "r2",
              "kdd99": "accuracy"},
}
COUNTS = ("motor",)  # regression tables with so few distinct whole numbers that Mercer would treat them as classes
FILES = "files"  # name of the split of the files; other splits are numbers
TEST_SHARE = 0.2


def paths_of(data, folder, table):
    return [os.path.join(data, folder, f"{table}_{part}.csv.gz") for part in ("train", "test")]


def random_split(rows, number):
    """Return the training and test rows of a random 80/20 split, which depends only on the number of the split."""
    rows = list(rows)
    random.Random(number).shuffle(rows)
    held = round(TEST_SHARE * len(rows))
    return rows[held:], rows[:held]


def read_lines(path):
    """Return the header and the rows of a CSV file as text; every row must be one line."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        header, *rows = file.read().rstrip("\n").split("\n")
    if any(row.count('"') % 2 for row in rows):
        raise ValueError(f"{path}: has line breaks within quotes; only the split of the files can be used")
    return header, rows


def write_split(paths, number, place):
    """Write a random split of the rows of both files into the folder `place`; return the paths of the new files."""
    (header, rows), (_, more) = (read_lines(path) for path in paths)
    written = [os.path.join(place, os.path.basename(path)) for path in paths]
    for path, part in zip(written, random_split(rows + more, number)):
        with gzip.open(path, "wt", compresslevel=6, encoding="utf-8") as file:
            file.write("\n".join([header, *part]) + "\n")
    return written


@contextlib.contextmanager
def split_files(data, folder, table, split):
    """Yield the paths of the training and test rows of a split. The files of a random split exist only within the context."""
    paths = paths_of(data, folder, table)
    if split == FILES:
        yield paths
        return
    with tempfile.TemporaryDirectory() as place:
        yield write_split(paths, split, place)
