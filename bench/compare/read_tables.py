#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""read_tables.py [--quick] [--json]: time reading tables with Mercer, pandas' C reader and polars, one thread each, in one run.

Tables of 20 columns (short and long numbers, text and numbers, missing values) are written to a temporary folder. The raw tables of
MERCER_DATA, if present, are unpacked into the same folder. The readers take turns on each table. MB/s is the size of the uncompressed text
divided by the median of the processor seconds. Mercer infers the schema and makes features (float32; one 0/1 column per level of a
category); pandas and polars make frames with their own types. If the first column is numeric, Mercer and pandas must read the same values.
"""

import glob
import gzip
import os
import shutil
import statistics
import sys
import tempfile
import time

import common

os.environ.setdefault("POLARS_MAX_THREADS", "1")


def tables(rows, rng):
    """Yield the name and the frame of each synthetic table."""
    import numpy as np
    import pandas

    short = {f"f{j}": rng.normal(0, 100, rows).round(2) for j in range(20)}
    long = {f"f{j}": rng.normal(0, 1, rows) for j in range(20)}
    whole = {f"f{j}": rng.integers(0, 10 ** (1 + j % 6), rows) for j in range(20)}
    words = np.array(["never", "married", "Adm-clerical", "Own-child", "United-States", "Bachelors", "White", "Private"])
    mixed = {f"f{j}": words[rng.integers(0, 8, rows)] if j % 2 else short[f"f{j}"] for j in range(20)}
    gaps = {name: np.where(rng.random(rows) < 0.1, np.nan, column) for name, column in short.items()}
    frames = {"short numbers": short, "long numbers": long, "whole numbers": whole, "numbers and words": mixed, "numbers with missing values": gaps}
    for name, columns in frames.items():
        yield name, pandas.DataFrame({**columns, "target": rng.normal(0, 1, rows).round(4)})


def write_all(options, rows, folder):
    """Write the tables one after another; yield the name and the path of each table."""
    import numpy as np

    for name, frame in tables(rows, np.random.default_rng(0)):
        if options.filter in name:
            path = os.path.join(folder, "table.csv")
            frame.to_csv(path, index=False)
            yield name, path
    for packed in sorted(glob.glob(os.path.join(options.data or "", "tables", "*_train.csv.gz"))):
        name = os.path.basename(packed).split("_train")[0]
        if options.filter in name:
            path = os.path.join(folder, f"{name}.csv")
            with gzip.open(packed) as source, open(path, "wb") as to:
                shutil.copyfileobj(source, to)
            yield name, path


def rounds(readers, repeats):
    """Run the readers alternately; return the median processor seconds and the last result of each reader."""
    seconds, results = {name: [] for name in readers}, {}
    for _ in range(repeats):
        for name, read in readers.items():
            results[name] = None
            start = time.process_time()
            results[name] = read()
            seconds[name].append(time.process_time() - start)
    return {name: statistics.median(list_) for name, list_ in seconds.items()}, results


def check(name, samples, frame):
    """Check that the first column, if it is numeric, is the same in both results."""
    import numpy as np

    first = frame.columns[0]
    if frame[first].dtype.kind not in "if":
        return
    column = frame[first].to_numpy(np.float32)
    known = ~np.isnan(column)
    assert samples.shape[0] == len(frame) and np.array_equal(samples[known, 0], column[known]), name


def main():
    options = common.options_of(__doc__)
    if common.missing("read_tables.py", ["numpy", "pandas"], "none is needed"):
        return 77
    os.environ.setdefault("MERCER_LIBRARY", os.path.join(options.build, "libmercer.so"))
    sys.path.insert(0, os.path.join(common.ROOT, "python"))
    import pandas
    from mercer import Dataset

    try:
        import polars
    except ImportError:
        polars = None
    rows, repeats = (2000, 3) if options.quick else (200_000, 9)
    with tempfile.TemporaryDirectory() as folder:
        for name, path in write_all(options, rows, folder):
            size = os.path.getsize(path) / 1e6
            readers = {"mercer": lambda: Dataset(path, target="target", n_jobs=1), "pandas": lambda: pandas.read_csv(path)}
            if polars:
                readers["polars"] = lambda: polars.read_csv(path)
            seconds, read = rounds(readers, repeats)
            samples = read["mercer"].read()[0]
            check(name, samples, read["pandas"])
            entry = {"bench": "read_tables", "case": name, "megabytes": size, "features": samples.shape[1]}
            entry.update({reader: size / seconds[reader] if reader in seconds else None for reader in ("mercer", "pandas", "polars")})
            entry.update({"over_pandas": seconds["pandas"] / seconds["mercer"]})
            entry.update({"over_polars": seconds["polars"] / seconds["mercer"] if polars else None})
            form = [("case", "<20"), ("megabytes", "8.1f"), ("features", "5d"), ("mercer", "8.0f"), ("pandas", "8.0f"), ("polars", "8.0f")]
            common.report(options, entry, form + [("over_pandas", "8.2f"), ("over_polars", "8.2f")])
    return 0


if __name__ == "__main__":
    sys.exit(main())
