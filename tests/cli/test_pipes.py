# SPDX-License-Identifier: BSD-3-Clause
"""test_pipes.py MERCER: data from standard input, pipes, compressed files and Parquet files."""

import gzip
import json
import lzma
import os
import subprocess
import unittest

from support import PROGRAM, Case, main

try:
    import pyarrow
    import pyarrow.csv
    import pyarrow.parquet
except ImportError:
    pyarrow = None

CORPUS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fuzz", "corpus", "parquet")
TRAIN = ("--tune", "off", "--kernel", "gaussian", "--centers", "10", "-q")


class Pipes(Case):
    """A pipe gives the results of the file."""

    def setUp(self):
        super().setUp()
        with open(os.path.join(CORPUS, "table.csv"), "rb") as file:
            self.table = file.read()
        with open(os.path.join(CORPUS, "delta.parquet"), "rb") as file:
            self.parquet = file.read()
        self.write("t.csv", self.table)
        self.write("t.parquet", self.parquet)
        self.good("train", "--x", "t.csv", "--target", "label", "-o", "m", *TRAIN)
        self.good("predict", "-m", "m", "--x", "t.csv", "--keep", "code", "-o", "p.csv", "-q")

    def same_predictions(self, *arguments, **options):
        self.good("predict", "-m", "m", "--keep", "code", "-o", "q.csv", "-q", *arguments, **options)
        self.assertEqual(self.read("q.csv"), self.read("p.csv"))

    def shell(self, line):
        return subprocess.run(["bash", "-c", line % PROGRAM], cwd=self.folder, capture_output=True, text=True, timeout=60)

    def test_standard_input(self):
        for data in (self.table, self.parquet, gzip.compress(self.table)):
            self.write("in", data)
            with open(self.path("in"), "rb") as file:  # a file
                self.same_predictions("--x", "-", stdin=file)
            result = self.shell("cat in | '%s' predict -m m --x - --keep code -o q.csv -q")  # a pipe
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(self.read("q.csv"), self.read("p.csv"))

    def test_train_and_eval(self):
        result = self.shell("cat t.csv | '%s' train --x - --target label -o n " + " ".join(TRAIN))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.read("n"), self.read("m"))
        result = self.shell("cat t.csv | '%s' eval -m m --x - --json")
        from_pipe, from_file = json.loads(result.stdout), self.answer("eval", "-m", "m", "--x", "t.csv")
        self.assertTrue(all(text.startswith("standard input: ") for text in from_pipe.pop("warnings")))
        self.assertTrue(from_file.pop("warnings"))
        self.assertEqual({**from_pipe, "seconds": 0}, {**from_file, "seconds": 0})

    def test_process_substitution(self):
        result = self.shell("'%s' predict -m m --x <(sleep 0.2; cat t.csv) --keep code -o q.csv -q")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.read("q.csv"), self.read("p.csv"))

    def test_named_pipe(self):
        os.mkfifo(self.path("fifo"))
        writer = subprocess.Popen(["bash", "-c", "sleep 0.2; cat t.csv > fifo"], cwd=self.folder)
        self.same_predictions("--x", "fifo")
        self.assertEqual(writer.wait(), 0)

    def test_several(self):
        """Positional tables may be pipes, and the default model has a name."""
        result = self.shell("'%s' train - <(cat t.csv) --target label --drop code " + " ".join(TRAIN) + " < t.csv")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.answer("inspect", "model.safetensors")["centers"], 10)
        result = self.shell("'%s' predict m <(cat t.csv) <(cat t.csv) -q | wc -l")
        self.assertEqual(result.stdout.split(), ["81"], result.stderr)

    def test_messages(self):
        """Messages have the name that the user gave, never that of the temporary file."""
        for text, pattern in ((b"a,label\n1,2,3\n", r"^mercer: standard input: line 2 .*columns"),
                              (b"", r"^mercer: standard input: .*empty")):  # fmt: skip
            self.write("in", text)
            result = self.shell("cat in | '%s' train --x - --target label -o n")
            self.assertEqual(result.returncode, 65, result.stderr)
            self.assertRegex(result.stderr, pattern)
        self.bad(2, r"--y: standard input .*once", "train", "--x", "-", "--y", "-", "-o", "n")
        with open("/dev/null", "rb") as file:
            self.bad(74, r"standard input: .*pipe", "train", "--x", "-", "-o", "n", stdin=file)
        result = self.shell("cat t.csv | '%s' train --x - --target label -o n --checkpoint run")
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr, r"--checkpoint: standard input .*pipe")

    def test_xz(self):
        self.write("t.csv.xz", lzma.compress(self.table))
        result = self.run_program("predict", "-m", "m", "--x", "t.csv.xz", "--keep", "code", "-o", "q.csv", "-q")
        if result.returncode != 0:  # liblzma is optional
            self.assertRegex(result.stderr.decode(), r"t\.csv\.xz: .*liblzma")
            return
        self.assertEqual(self.read("q.csv"), self.read("p.csv"))


class Parquet(Case):
    def setUp(self):
        super().setUp()
        for name in ("table.csv", "delta.parquet"):
            with open(os.path.join(CORPUS, name), "rb") as file:
                self.write(name, file.read())

    def test_the_same_model(self):
        for options in (["--target", "label"], ["--target", "real", "--columns", "whole:category", "--drop", "code"],
                        ["--target", "single,cents", "--missing", "Rome"]):  # fmt: skip
            for name in ("table.csv", "delta.parquet"):
                self.good("train", "--x", name, "-o", "m-" + name, "--force", *options, *TRAIN)
            self.assertEqual(self.read("m-table.csv"), self.read("m-delta.parquet"), options)

    def test_messages(self):
        self.bad(65, r"delta\.parquet: row 1, column 'word': 'Rome' .*number", "train", "--x", "delta.parquet",
                 "--target", "label", "--columns", "word:number", "-o", "m")  # fmt: skip
        self.bad(65, r"'price'.* 11 columns, .*'whole' .*'natural'", "train", "--x",
                 "delta.parquet", "--target", "price", "-o", "m")  # fmt: skip

    @unittest.skipUnless(pyarrow, "pyarrow is not installed")
    def test_pyarrow(self):
        """Tables written by pyarrow with every codec, page version and several types."""
        numbers = list(range(300))
        table = pyarrow.table({
            "small": pyarrow.array([i % 100 for i in numbers], pyarrow.int8()),
            "unsigned": pyarrow.array([2**32 - 1 - i for i in numbers], pyarrow.uint32()),
            "half": pyarrow.array([i / 8 for i in numbers], pyarrow.float16()),
            "time": pyarrow.array([i * 1000 for i in numbers], pyarrow.time32("ms")),
            "zone": pyarrow.array([i * 86400 for i in numbers], pyarrow.timestamp("s", "UTC")),
            "large": pyarrow.array([str(i % 7) + "a" for i in numbers], pyarrow.large_string()),
            "level": pyarrow.array(["low", "high", None] * 100).dictionary_encode(),
            "nothing": pyarrow.nulls(300),
            "y": [float(i * i % 17) for i in numbers],
        })  # fmt: skip
        pyarrow.csv.write_csv(table.set_column(2, "half", table["half"].cast(pyarrow.float32())), self.path("a.csv"))
        self.good("train", "--x", "a.csv", "--target", "y", "-o", "m", "--task", "regression", *TRAIN)
        for codec in ("none", "snappy", "gzip", "lz4", "zstd"):
            for version in ("1.0", "2.0"):
                pyarrow.parquet.write_table(table, self.path("a.parquet"), compression=codec, data_page_version=version, row_group_size=128)
                result = self.run_program("train", "--x", "a.parquet", "--target", "y", "-o", "n", "--force", "--task", "regression", *TRAIN)
                if codec == "zstd" and b"libzstd" in result.stderr:
                    continue
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual(self.read("n"), self.read("m"), (codec, version))

    @unittest.skipUnless(pyarrow, "pyarrow is not installed")
    def test_many_columns(self):
        table = pyarrow.table({f"c{i}": [float(i + k * k) for k in range(60)] for i in range(10000)})
        pyarrow.parquet.write_table(table, self.path("wide.parquet"))
        self.good("train", "--x", "wide.parquet", "--target", "c0", "-o", "m", "--task", "regression", *TRAIN)


if __name__ == "__main__":
    main()
