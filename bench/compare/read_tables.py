#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""read_tables.py [--quick] [--json]: reading tables, by Mercer (one thread) and by pandas' C reader, in one run.

Tables of 20 columns are written to a temporary folder: short and long numbers, words among numbers, gaps. Each is read
with both, best of several runs; MB/s are those of the text, seconds those of the processor (both use one). Mercer finds the schema and makes features (float32); pandas
makes a frame with its own types. The two must agree in the numbers.
"""

import os
import sys
import tempfile
import time

import common


def tables(rows, rng):
    """Name and frame of each table."""
    import numpy as np
    import pandas

    short = {f"f{j}": rng.normal(0, 100, rows).round(2) for j in range(20)}
    long = {f"f{j}": rng.normal(0, 1, rows) for j in range(20)}
    whole = {f"f{j}": rng.integers(0, 10 ** (1 + j % 6), rows) for j in range(20)}
    words = np.array(["never", "married", "Adm-clerical", "Own-child", "United-States", "Bachelors", "White", "Private"])
    mixed = {f"f{j}": words[rng.integers(0, 8, rows)] if j % 2 else short[f"f{j}"] for j in range(20)}
    gaps = {name: np.where(rng.random(rows) < 0.1, np.nan, column) for name, column in short.items()}
    frames = {"short numbers": short, "long numbers": long, "whole numbers": whole, "numbers and words": mixed, "numbers with gaps": gaps}
    for name, columns in frames.items():
        yield name, pandas.DataFrame({**columns, "target": rng.normal(0, 1, rows).round(4)})


def best(read, repeats):
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        result = read()
        seconds.append(time.process_time() - start)
    return min(seconds), result


def main():
    options = common.options_of(__doc__)
    if common.missing("read_tables.py", ["numpy", "pandas"], "none is needed"):
        return 77
    os.environ.setdefault("MERCER_LIBRARY", os.path.join(options.build, "libmercer.so"))
    sys.path.insert(0, os.path.join(common.ROOT, "python"))
    import numpy as np
    import pandas
    from mercer import Dataset

    rows, repeats = (2000, 2) if options.quick else (200_000, 5)
    for name, frame in tables(rows, np.random.default_rng(0)):
        if options.filter not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "table.csv")
            frame.to_csv(path, index=False)
            size = os.path.getsize(path) / 1e6
            ours, data = best(lambda: Dataset(path, target="target", n_jobs=1), repeats)
            theirs, read = best(lambda: pandas.read_csv(path), repeats)
        x = data.read()[0]
        column = read["f0"].to_numpy(np.float32)
        known = ~np.isnan(column)
        assert x.shape[0] == rows and np.array_equal(x[known, 0], column[known]), name
        entry = {"name": name, "rows": rows, "megabytes": size, "features": x.shape[1], "mercer": size / ours, "pandas": size / theirs}
        entry["ratio"] = theirs / ours
        form = [("name", "<20"), ("megabytes", "8.1f"), ("features", "5d"), ("mercer", "8.0f"), ("pandas", "8.0f"), ("ratio", "6.2f")]
        common.report(options, entry, form)
    return 0


if __name__ == "__main__":
    sys.exit(main())
