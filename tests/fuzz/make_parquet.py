#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""make_parquet.py: write one small table as Parquet files to corpus/parquet, by every encoding, page version and codec.

The files are seeds of fuzz_parquet and golden files of tests/unit/test_parquet.c, which compares them with table.csv. Needs
pyarrow, polars and duckdb; the files are kept in the repository, so tests need none of them.
"""
import datetime
import decimal
import os

import duckdb
import polars
import pyarrow
import pyarrow.csv
import pyarrow.parquet

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "parquet")
ROWS = 40


def table():
    day = datetime.date(1999, 12, 25)
    moment = datetime.datetime(2024, 2, 28, 23, 59, 58)
    columns = {
        "whole": [None if i % 7 == 3 else (-1) ** i * i * 10**9 for i in range(ROWS)],
        "real": [None if i % 5 == 1 else i / 3 - 2 for i in range(ROWS)],
        "word": [None if i % 9 == 4 else ["Rome", 'a "b", c', "Łódź", " x"][i * i % 4] for i in range(ROWS)],
        "code": [f"code-{i * 37 % ROWS:03d}" for i in range(ROWS)],
        "truth": [None if i % 8 == 0 else i % 3 == 0 for i in range(ROWS)],
        "day": [None if i % 11 == 2 else day + datetime.timedelta(days=97 * i) for i in range(ROWS)],
        "moment": [moment + datetime.timedelta(microseconds=1234567 * i) for i in range(ROWS)],
        "cents": [decimal.Decimal(i * i - 300).scaleb(-2) for i in range(ROWS)],
        "label": ["yes" if i % 3 else "no" for i in range(ROWS)],
    }
    types = {"cents": pyarrow.decimal128(9, 2)}
    result = pyarrow.table({name: pyarrow.array(values, types.get(name)) for name, values in columns.items()})
    result = result.append_column("single", pyarrow.array([i / 10 for i in range(ROWS)], pyarrow.float32()))
    return result.append_column("natural", pyarrow.array([2**63 + i * 2**40 for i in range(ROWS)], pyarrow.uint64()))


def main():
    data = table()
    os.makedirs(HERE, exist_ok=True)
    delta = {"whole": "DELTA_BINARY_PACKED", "word": "DELTA_BYTE_ARRAY", "code": "DELTA_BYTE_ARRAY", "truth": "RLE",
             "label": "DELTA_LENGTH_BYTE_ARRAY", "moment": "DELTA_BINARY_PACKED", "day": "DELTA_BINARY_PACKED"}  # fmt: skip
    split = {"real": "BYTE_STREAM_SPLIT", "whole": "BYTE_STREAM_SPLIT", "single": "BYTE_STREAM_SPLIT",
             "cents": "BYTE_STREAM_SPLIT", "natural": "BYTE_STREAM_SPLIT"}  # fmt: skip
    variants = {
        "plain": {"compression": "none", "use_dictionary": False},
        "dictionary": {"compression": "snappy", "row_group_size": 17},
        "dictionary-2": {"compression": "zstd", "data_page_version": "2.0"},
        "delta": {"compression": "gzip", "use_dictionary": False, "column_encoding": delta},
        "delta-2": {"compression": "lz4", "use_dictionary": False, "column_encoding": delta, "data_page_version": "2.0"},
        "split": {"compression": "none", "use_dictionary": False, "column_encoding": split, "write_page_checksum": True},
        "pages": {"compression": "snappy", "use_dictionary": ["word"], "data_page_size": 1, "write_batch_size": 7},
        "times": {"compression": "snappy", "use_deprecated_int96_timestamps": True},
    }
    for name, options in variants.items():
        path = os.path.join(HERE, name + ".parquet")
        pyarrow.parquet.write_table(data, path, write_statistics=False, store_schema=False, **options)
    polars.from_arrow(data).write_parquet(os.path.join(HERE, "polars.parquet"), statistics=False)
    for version in "V1", "V2":
        path = os.path.join(HERE, f"duckdb-{version}.parquet")
        duckdb.sql(f"copy data to '{path}' (format parquet, parquet_version {version}, compression snappy)")
    nested = pyarrow.table({"pair": [[1, 2], []], "x": [1, 2], "point": [{"u": 1, "v": 2}] * 2, "label": [0, 1]})
    pyarrow.parquet.write_table(nested, os.path.join(HERE, "nested.parquet"), write_statistics=False, store_schema=False)
    pyarrow.csv.write_csv(data, os.path.join(HERE, "table.csv"))


main()
