# SPDX-License-Identifier: BSD-3-Clause
"""test_columns.py MERCER: columns are matched by name, tables may have several targets, file name endings select formats."""
import csv
import json
import struct
import unittest

from support import Case, blobs, main, npy_bytes, read_npy


def table(names, rows, separator=","):
    return "\n".join([separator.join(names)] + [separator.join(str(v) for v in row) for row in rows]) + "\n"


class Columns(Case):
    """A model stores the names of its columns."""

    def setUp(self):
        super().setUp()
        rows, labels = blobs(60, 4, 3)
        self.names = ["a", "b", "c", "d"]
        self.rows = [[round(v, 6) for v in row] for row in rows]
        self.labels = labels
        self.write("t.csv", table(self.names + ["y"], [r + ["k%d" % k] for r, k in zip(self.rows, labels)]))
        self.write("x.csv", table(self.names, self.rows))
        self.good("train", "--x", "t.csv", "-o", "m.safetensors", "-q")
        self.good("predict", "-m", "m.safetensors", "--x", "x.csv", "-o", "p.csv", "-q")
        self.expected = self.read("p.csv")

    def predicts(self, names, order, extra=lambda i: []):
        self.write("new.csv", table(names, [[row[j] for j in order] + extra(i) for i, row in enumerate(self.rows)]))
        result = self.run_program("predict", "-m", "m.safetensors", "--x", "new.csv", "-o", "q.csv")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.read("q.csv"), self.expected)
        return result.stderr.decode()

    def test_any_order(self):
        self.predicts(["d", "c", "b", "a"], [3, 2, 1, 0])
        self.predicts(["c", "a", "d", "b"], [2, 0, 3, 1])

    def test_columns_that_the_model_does_not_know(self):
        said = self.predicts(["b", "a", "c", "d", "id"], [1, 0, 2, 3], lambda i: ["row %d" % i])
        self.assertRegex(said, r"^note: new\.csv: .*'id'.*\n$")
        said = self.predicts(["b", "a", "c", "d", "id", "e"], [1, 0, 2, 3], lambda i: ["row %d" % i, 1])
        self.assertRegex(said, r"^note: new\.csv: .*2 columns.*'id'.*\n$")
        said = self.predicts(["a", "b", "c", "d", "y"], [0, 1, 2, 3], lambda i: ["k%d" % self.labels[i]])
        self.assertEqual(said, "")  # A target column is ignored without a note.
        told = self.run_program("predict", "-m", "m.safetensors", "--x", "new.csv", "--keep", "y", "-o", "q.csv")
        self.assertEqual((told.returncode, told.stderr), (0, b""))

    def test_the_target_of_the_model(self):
        """Commands that need targets read the model's target columns by name."""
        rows = [row + ["k%d" % k] for row, k in zip(self.rows, self.labels)]
        self.write("r.csv", table(self.names + ["sort"], rows))
        self.good("train", "--x", "r.csv", "--target", "sort", "-o", "r.safetensors", "-q")
        for command in (["eval"], ["explain", "--permutation", "--repeats", "1"]):
            on = [*command, "-m", "r.safetensors"]
            named = self.answer(*on, "--x", "r.csv", "--target", "sort")
            found = self.answer(*on, "--x", "r.csv")
            for answer in (named, found):
                answer.pop("seconds", None)
            self.assertEqual(found, named)
            self.bad(65, r"x\.csv: .*'sort'.*target", *on, "--x", "x.csv")
            self.write("u.csv", table(["a", "B", "c", "d", "sort"], rows))
            self.bad(65, r"u\.csv: .*'b'.*'B'", *on, "--x", "u.csv")
        self.write("k.csv", table(["sort"], [["k%d" % k] for k in self.labels]))
        self.assertEqual(self.answer("eval", "-m", "r.safetensors", "--x", "x.csv", "--y", "k.csv")["mse"],
                         self.answer("eval", "-m", "r.safetensors", "--x", "r.csv")["mse"])  # fmt: skip
        self.write("two.csv", table(["u", "a", "b", "c", "v", "d"], [[r[0], r[0], r[1], r[2], r[1] - r[2], r[3]] for r in self.rows]))
        self.good("train", "--x", "two.csv", "--target", "v,u", "-o", "two.safetensors", "-q")
        self.assertEqual(self.answer("eval", "-m", "two.safetensors", "--x", "two.csv")["mse"],
                         self.answer("eval", "-m", "two.safetensors", "--x", "two.csv", "--target", "v,u")["mse"])  # fmt: skip

    def test_a_missing_column_is_named(self):
        self.write("new.csv", table(["a", "b", "C", "d"], self.rows))
        self.bad(65, r"new\.csv: .*'c'.*'C'", "predict", "-m", "m.safetensors", "--x", "new.csv", "-o", "q.csv")
        self.write("new.csv", table(["a", "b", "d"], [row[:3] for row in self.rows]))
        self.bad(65, r"new\.csv: .*column 'c'", "predict", "-m", "m.safetensors", "--x", "new.csv", "-o", "q.csv")
        self.write("new.csv", table(["a", "b", "c", "d", "c"], [row + [0] for row in self.rows]))
        self.bad(65, r"new\.csv: .*2 columns.*'c'", "predict", "-m", "m.safetensors", "--x", "new.csv", "-o", "q.csv")

    def test_without_names_by_position(self):
        self.write("bare.csv", "\n".join(",".join(str(v) for v in row) for row in self.rows) + "\n")
        self.good("predict", "-m", "m.safetensors", "--x", "bare.csv", "-o", "q.csv", "-q")
        self.assertEqual(self.read("q.csv"), self.expected)
        self.write("x.npy", npy_bytes("<f4", (60, 4), [v for row in self.rows for v in row]))
        self.good("predict", "-m", "m.safetensors", "--x", "x.npy", "-o", "q.csv", "-q")
        self.assertEqual(self.read("q.csv"), self.expected)
        self.write("x.npy", npy_bytes("<f4", (60, 3), [v for row in self.rows for v in row[:3]]))
        self.bad(65, r"x\.npy: 3 features.* 4$", "predict", "-m", "m.safetensors", "--x", "x.npy", "-o", "q.csv")

    def test_eval_and_validation(self):
        rows = [[row[2], "k%d" % k, row[0], row[3], row[1]] for row, k in zip(self.rows, self.labels)]
        self.write("v.csv", table(["c", "y", "a", "d", "b"], rows))
        plain = self.answer("eval", "-m", "m.safetensors", "--x", "t.csv")
        mixed = self.answer("eval", "-m", "m.safetensors", "--x", "v.csv")
        self.assertEqual((plain["mse"], plain["accuracy"]), (mixed["mse"], mixed["accuracy"]))
        one = self.answer("train", "--x", "t.csv", "--x-val", "t.csv", "-o", "m1.safetensors")
        two = self.answer("train", "--x", "t.csv", "--x-val", "v.csv", "-o", "m2.safetensors")
        self.assertEqual(one["mse"], two["mse"])

    def test_checkpoints_and_inspect(self):
        self.good("train", "--x", "t.csv", "--checkpoint", "run", "--solver", "ep4", "--epochs", "2", "-o", "m3.safetensors", "-q")
        for path in ("m3.safetensors", "run/checkpoint.safetensors"):
            shown = self.answer("inspect", path)
            self.assertEqual(shown["feature_names"], self.names)
            self.assertEqual(shown["target_names"], ["y"])
        self.assertIn("feature names", self.good("inspect", "m3.safetensors"))

    def test_files_without_names_still_load(self):
        self.write("x.npy", npy_bytes("<f4", (60, 4), [v for row in self.rows for v in row]))
        self.write("y.npy", npy_bytes("<i8", (60,), self.labels))
        self.good("train", "--x", "x.npy", "--y", "y.npy", "-o", "old.safetensors", "-q")
        self.assertEqual(self.answer("inspect", "old.safetensors")["feature_names"], [])
        self.write("new.csv", table(["d", "c", "b", "a"], self.rows))
        self.good("predict", "-m", "old.safetensors", "--x", "new.csv", "-o", "q.csv", "-q")


class Targets(Case):
    """Several target columns, and the task that is detected from one column."""

    def setUp(self):
        super().setUp()
        rows, _ = blobs(90, 3, 3)
        self.rows = [[round(v, 6) for v in row] for row in rows]
        self.values = [[round(a + b, 6), round(b - c, 6), round(a * c, 6)] for a, b, c in self.rows]
        self.write("px.csv", table("abc", self.rows))
        self.write("py.csv", table("uvw", self.values))
        self.write("all.csv", table("uavbcw", [[y[0], x[0], y[1], x[1], x[2], y[2]] for x, y in zip(self.rows, self.values)]))

    def trained(self, *arguments):
        answer = self.answer("train", *arguments, "-o", "m.safetensors")
        self.good("predict", "-m", "m.safetensors", "--x", "px.csv", "--format", "csv", "-o", "p.npy", "-q")
        return answer["data"]["outputs"], read_npy(self.path("p.npy"))[2]

    def test_all_columns_of_a_table_of_targets(self):
        x = npy_bytes("<f4", (90, 3), [v for row in self.rows for v in row])
        self.write("y.npy", npy_bytes("<f8", (90, 3), [v for row in self.values for v in row]))
        outputs, text = self.trained("--x", "px.csv", "--y", "py.csv")
        self.assertEqual(outputs, 3)
        self.assertEqual(self.trained("--x", "px.csv", "--y", "y.npy"), (3, text))
        self.write("x.npy", x)
        self.assertEqual(self.trained("--x", "px.csv", "--y", "py.csv", "--target", "v")[0], 1)
        self.bad(65, r"py\.csv: .*3 columns.*targets", "train", "--x", "px.csv", "--y", "py.csv", "--task", "classification", "-o", "m")

    def test_a_list_of_targets(self):
        outputs, both = self.trained("--x", "all.csv", "--target", "u,v,w")
        self.assertEqual(outputs, 3)
        self.assertEqual(self.answer("inspect", "m.safetensors")["feature_names"], ["a", "b", "c"])
        self.assertEqual(self.answer("inspect", "m.safetensors")["target_names"], ["u", "v", "w"])
        self.assertEqual(self.trained("--x", "all.csv", "--target", "u", "--target", "v", "--target", "w"), (3, both))
        self.assertEqual(self.trained("--x", "px.csv", "--y", "py.csv"), (3, both))
        self.assertEqual(self.trained("--x", "all.csv", "--target", "0, 2,-1"), (3, both))
        self.write("c.json", json.dumps({"target": ["u", "v", "w"]}))
        self.assertEqual(self.trained("--x", "all.csv", "--config", "c.json"), (3, both))
        self.bad(2, r"column 'u'", "train", "--x", "all.csv", "--target", "u,u", "-o", "m")
        self.bad(65, r"all\.csv: .*'zz'", "train", "--x", "all.csv", "--target", "u,zz", "-o", "m")
        answer = self.answer("eval", "-m", "m.safetensors", "--x", "all.csv", "--target", "u,v,w")
        self.assertGreater(answer["r2"], 0.9)

    def test_a_name_with_a_comma(self):
        self.write("k.csv", table(['"u,v"', "a"], [[y[0], x[0]] for x, y in zip(self.rows, self.values)]))
        answer = self.answer("train", "--x", "k.csv", "--target", "u,v", "-o", "m.safetensors")
        self.assertEqual((answer["data"]["outputs"], answer["data"]["features"]), (1, 1))

    def test_names_among_several(self):
        self.write("n.csv", table("ua", [["red" if i == 5 else y[0], x[0]] for i, (x, y) in enumerate(zip(self.rows, self.values))]))
        self.bad(65, r"n\.csv: line 7, column 'u': 'red'", "train", "--x", "px.csv", "--y", "n.csv", "-o", "m")

    def test_whole_numbers_are_classes_up_to_twenty(self):
        for count, task in ((20, "classification"), (21, "regression")):
            text = table(["x", "age"], [[0.25 * (i % 50), 30 + i % count] for i in range(60 * count)])
            self.write("age.csv", text)
            shown = self.good("plan", "--x", "age.csv", "--target", "age")
            other = "regression" if task == "classification" else "classification"
            self.assertRegex(shown, r"target +age, %d .*: %s .*--task %s" % (count, task, other))
            self.write("age.npy", npy_bytes("<i8", (60 * count,), [30 + i % count for i in range(60 * count)]))
            self.write("x.npy", npy_bytes("<f4", (60 * count, 1), [0.25 * (i % 50) for i in range(60 * count)]))
            self.assertEqual(self.answer("plan", "--x", "x.npy", "--y", "age.npy")["data"]["task"], task)
            self.assertEqual(self.answer("plan", "--x", "age.csv", "--target", "age", "--task", other)["data"]["task"], other)
        self.write("kind.csv", table(["x", "kind"], [[0.25 * i, "k%d" % (i % 30)] for i in range(90)]))
        self.assertRegex(self.good("plan", "--x", "kind.csv", "--target", "kind"), r"target +kind, 30 names: classification\n")


class Endings(Case):
    """The ending of a file name selects the format."""

    def test_convert(self):
        values = [0.1, 1e-7, 16777217.0, 123456.789, -3.0, 1e30]
        self.write("d.csv", 'a,"b ""q"", c",t\n' + "".join("%r,%r,%s\n" % (v, -v, "red, blue") for v in values).replace("red, blue", '"red, blue"'))
        self.good("convert", "--x", "d.csv", "--target", "t", "-o", "x.csv", "--y-output", "y.tsv", "-q")
        self.good("convert", "--x", "d.csv", "--target", "t", "-o", "x.npy", "--y-output", "y.npy", "-q")
        with open(self.path("x.csv"), encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))
        self.assertEqual(rows[0], ["a", 'b "q", c'])
        self.assertEqual(rows[1], ["0.1", "-0.1"])  # the fewest digits that identify the float
        found = [struct.unpack("<f", struct.pack("<f", float(v)))[0] for row in rows[1:] for v in row]
        self.assertEqual(found, read_npy(self.path("x.npy"))[2])
        self.assertEqual(self.read("y.tsv").decode().splitlines(), ["t"] + ["red, blue"] * len(values))
        self.good("convert", "--x", "x.csv", "-o", "again.npy", "-q")
        self.assertEqual(self.read("again.npy"), self.read("x.npy"))

    def test_other_names_are_refused(self):
        self.write("d.csv", "a,y\n1,2\n3,4\n")
        for name in ("x.parquet", "x", "x.txt"):
            self.bad(2, r"--output: %s: .*\.npy, \.csv or \.tsv" % name, "convert", "--x", "d.csv", "-o", name)
            self.bad(2, r"--y-output: %s: " % name, "synth", "spirals", "-n", "5", "-o", "x.npy", "--y-output", name)
        self.bad(2, r"--output: c\.csv: .*\.npy", "centers", "--x", "d.csv", "--centers", "1", "-o", "c.csv")

    def test_synth(self):
        self.good("synth", "teacher:d=2,c=2,centers=5", "-n", "7", "-o", "x.csv", "--y-output", "y.csv", "-q")
        self.good("synth", "teacher:d=2,c=2,centers=5", "-n", "7", "-o", "x.npy", "--y-output", "y.npy", "-q")
        for name in "xy":
            values = [float(v) for line in self.read(name + ".csv").decode().split() for v in line.split(",")]
            single = [struct.unpack("<f", struct.pack("<f", v))[0] for v in values]
            self.assertEqual(single, read_npy(self.path(name + ".npy"))[2])

    def test_predictions(self):
        self.write("d.csv", table(["x", "price", "tax"], [[i / 8, i * 0.3, 1 - i] for i in range(40)]))
        self.good("train", "--x", "d.csv", "--target", "price,tax", "-o", "m.safetensors", "-q")
        for name in ("p.csv", "p.npy", "p.txt"):
            self.good("predict", "-m", "m.safetensors", "--x", "d.csv", "-o", name, "-q")
        lines = self.read("p.csv").decode().splitlines()
        self.assertEqual(lines[0], "price_predicted,tax_predicted")
        kind, _, stored = read_npy(self.path("p.npy"))
        code = {"<f4": "<f", "<f8": "<d"}[kind]
        values = [struct.unpack(code, struct.pack(code, float(v)))[0] for line in lines[1:] for v in line.split(",")]
        self.assertEqual(values, stored)
        self.assertEqual(len(self.read("p.txt").decode().splitlines()), 40)
        self.write("k.csv", table(["x", "kind"], [[i % 2 + i / 100, "ab"[i % 2]] for i in range(40)]))
        self.good("train", "--x", "k.csv", "--target", "kind", "-o", "k.safetensors", "-q")
        self.good("predict", "-m", "k.safetensors", "--x", "k.csv", "-o", "k1.csv", "-q")
        self.good("predict", "-m", "k.safetensors", "--x", "k.csv", "--scores", "-o", "k2.csv", "-q")
        self.assertEqual(self.read("k1.csv").decode().splitlines()[:3], ["kind_predicted", "a", "b"])
        self.assertEqual(self.read("k2.csv").decode().splitlines()[0], "a,b")


class Twice(Case):
    """A repeated option is an error instead of overriding the first value."""

    def test_refused(self):
        self.bad(2, r"train: --epochs .*twice", "train", "--epochs", "3", "--epochs", "5")
        self.bad(2, r"train: -e .*twice", "train", "--epochs", "3", "-e", "5")
        self.bad(2, r"train: --ridge .*twice", "train", "--lambda", "3", "--ridge=5")
        self.bad(2, r"train: -q .*twice", "train", "-qq")

    def test_the_command_line_still_wins(self):
        self.write("c.json", json.dumps({"epochs": 3}))
        shown = json.loads(self.good("train", "--config", "c.json", "--epochs", "5", "--print-config"))
        self.assertEqual(shown["epochs"], 5)


if __name__ == "__main__":
    main()
