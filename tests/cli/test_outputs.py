# SPDX-License-Identifier: BSD-3-Clause
"""Outputs of a model: formats of predictions, additional columns, probabilities, intervals and metrics."""
import csv
import io
import json
import math
import random
import re

from support import Case, main, read_npy

N = 400


class Outputs(Case):
    def make_tables(self):
        """Write values.csv and classes.csv with two features, a target and two text columns, and *-plain.csv without the text."""
        rng = random.Random(5)
        rows = [(rng.gauss(0, 1), rng.gauss(3, 2)) for _ in range(N)]
        values = [a * b + 0.3 * rng.gauss(0, 1) + 50 for a, b in rows]
        names = ["one", "two, or more", 'th"ree']
        classes = [names[0 if v < 49 else 1 if v < 51 else 2] for v in values]
        for name, targets in (("values", ["%.6f" % v for v in values]), ("classes", classes)):
            for plain in (True, False):
                text = io.StringIO()
                writer = csv.writer(text, lineterminator="\n")
                writer.writerow(["a", "b", "t"] if plain else ["id", "note", "a", "b", "t"])
                for i, ((a, b), t) in enumerate(zip(rows, targets)):
                    own = ["%.6f" % a, "%.6f" % b, t]
                    writer.writerow(own if plain else ["r%d" % i, "x, %d" % i, *own])
                self.write(name + ("-plain.csv" if plain else ".csv"), text.getvalue().encode())
        self.names, self.targets = sorted(names), {"values": values, "classes": classes}

    def make_models(self):
        self.make_tables()
        for name in ("values", "classes"):
            options = ["--target", "t", "--centers", "60", "--lambda", "0.1", "--validation-fraction", "0.25"]
            self.good("train", "--x", name + "-plain.csv", *options, "-o", name + ".model", "-q")

    def predict(self, name, output, *options):
        self.good("predict", "-m", name + ".model", "--x", name + ".csv", "-o", output, *options)
        return self.read(output).decode()

    def table(self, text, delimiter=","):
        rows = list(csv.reader(io.StringIO(text), delimiter=delimiter))
        return rows[0], rows[1:]

    def test_columns_next_to_predictions(self):
        self.make_models()
        options = ["--id-column", "id", "--keep", "note,t", "--interval", "0.9"]
        head, rows = self.table(self.predict("values", "p.csv", *options))
        self.assertEqual(head, ["id", "note", "t", "t_predicted", "t_low", "t_high"])
        self.assertEqual([row[:2] for row in rows], [["r%d" % i, "x, %d" % i] for i in range(N)])
        self.assertEqual([float(row[2]) for row in rows], [float("%.6f" % v) for v in self.targets["values"]])
        self.assertEqual(self.table(self.predict("values", "p.tsv", *options), "\t"), (head, rows))
        half = [(float(row[5]) - float(row[4])) / 2 for row in rows]
        self.assertLess(max(half) - min(half), 1e-12 * max(half) + 1e-13 * 60)  # The ends, which are at most about 60, are rounded.
        lines = [json.loads(line) for line in self.predict("values", "p.jsonl", "--id-column", "id", "--interval", "0.9").splitlines()]
        self.assertEqual([(line["id"], line["t_predicted"], line["t_low"]) for line in lines], [(r[0], float(r[3]), float(r[4])) for r in rows])
        kind, shape, flat = read_npy(self.path(self.npy("values", "--interval", "0.9")))
        self.assertEqual((kind, shape), ("<f8", (N, 3)))
        self.assertEqual([flat[3 * i : 3 * i + 3] for i in range(N)], [[float(v) for v in row[3:]] for row in rows])
        text = self.good("predict", "-m", "values.model", "--x", "values.csv", "-o", "-", "--rows", "2", "--first", "3", "-q")
        self.assertEqual(text.split(), [row[3] for row in rows[3:5]])
        text = self.good("predict", "-m", "values.model", "--x", "values.csv", "--keep", "id", "-o", "-", "--output-format", "csv", "--rows", "1", "-q")
        self.assertEqual(text.splitlines(), ["id,t_predicted", "r0," + rows[0][3]])

    def test_no_two_columns_have_one_name(self):
        """An output column is renamed if a kept input column has the same name."""
        self.make_models()
        for line, text in (("id,note", "set,probability_one"), ("set,probability_one", "t_predicted,probabilities")):
            table = self.read("classes.csv" if line == "id,note" else "same.csv").decode()
            self.write("same.csv", table.replace(line, text, 1))
            for form in ("csv", "jsonl"):
                options = ["--keep", text, "--probabilities", "--interval", "0.9", "-o", "p." + form]
                told = self.run_program("predict", "-m", "classes.model", "--x", "same.csv", *options)
                self.assertEqual(told.returncode, 0, told.stderr)
                if form == "csv":
                    head, rows = self.table(self.read("p.csv").decode())
                else:
                    pairs = [json.loads(line, object_pairs_hook=list) for line in self.read("p.jsonl").decode().splitlines()]
                    head, rows = [name for name, _ in pairs[0]], pairs
                self.assertEqual(len(set(head)), len(head))
                self.assertEqual(len(rows), N)
                renamed = [name for name in head if name.endswith("_2")]
                self.assertEqual(len(re.findall(r"warning: .*columns.*_2", told.stderr.decode())), len(renamed))
                self.assertEqual(renamed, {
                    ("set,probability_one", "csv"): ["probability_one_2", "set_2"],
                    ("set,probability_one", "jsonl"): ["set_2"],
                    ("t_predicted,probabilities", "csv"): ["t_predicted_2"],
                    ("t_predicted,probabilities", "jsonl"): ["t_predicted_2", "probabilities_2"],
                }[text, form])  # fmt: skip

    def npy(self, name, *options):
        self.good("predict", "-m", name + ".model", "--x", name + ".csv", "-o", "p.npy", *options)
        return "p.npy"

    def test_probabilities_and_sets(self):
        self.make_models()
        options = ["--id-column", "id", "--probabilities", "--interval", "0.9"]
        head, rows = self.table(self.predict("classes", "p.csv", *options))
        self.assertEqual(head, ["id", "t_predicted", *("probability_" + name for name in self.names), "set"])
        for row in rows:
            p = [float(v) for v in row[2:5]]
            self.assertAlmostEqual(sum(p), 1, delta=1e-12)
            self.assertEqual(row[1], self.names[p.index(max(p))])
            self.assertEqual(row[5].split("|")[0], row[1])
        lines = [json.loads(line) for line in self.predict("classes", "p.jsonl", *options).splitlines()]
        for line, row in zip(lines, rows, strict=True):
            self.assertEqual([line["id"], line["t_predicted"], *map(str, line["set"])], [row[0], row[1], *row[5].split("|")])
            self.assertEqual(list(line["probabilities"].values()), [float(v) for v in row[2:5]])
        told = self.answer("eval", "-m", "classes.model", "--x", "classes-plain.csv", "--target", "t", "--each")
        right = [float(row[2 + self.names.index(t)]) for row, t in zip(rows, self.targets["classes"])]
        self.assertAlmostEqual(told["log_loss"], -sum(map(math.log, right)) / N, delta=1e-12 * N)
        covered = sum(t in row[5].split("|") for row, t in zip(rows, self.targets["classes"]))
        self.assertEqual((told["coverage"], told["interval"]), (covered / N, 0.9))
        self.assertEqual([one["name"] for one in told["each"]], self.names)
        self.assertEqual(sum(one["count"] for one in told["each"]), N)
        kind, shape, flat = read_npy(self.path(self.npy("classes", "--probabilities")))
        self.assertEqual((kind, shape, flat[:3]), ("<f8", (N, 3), [float(v) for v in rows[0][2:5]]))

    def test_probabilities_are_calibrated_by_default(self):
        self.make_tables()
        losses = []
        for options, calibrated in (([], True), (["--calibrate", "off"], False), (["--validation-fraction", "0"], False),
                                    (["--centers", "390"], True)):  # fmt: skip
            self.good("train", "--x", "classes-plain.csv", "--target", "t", "--tune", "off", "--lambda", "1", *options, "-o", "m", "-q")
            told = self.run_program("predict", "-m", "m", "--x", "classes.csv", "--probabilities", "-o", "p.csv")
            self.assertEqual((told.returncode, b"not calibrated" in told.stderr), (0, not calibrated), options)
            shown = self.good("eval", "-m", "m", "--x", "classes-plain.csv", "--target", "t")
            self.assertEqual("(not calibrated)" in shown, not calibrated, options)
            losses.append(self.answer("eval", "-m", "m", "--x", "classes-plain.csv", "--target", "t")["log_loss"])
        self.assertEqual(losses[1], losses[2])
        self.assertNotEqual(losses[0], losses[1])

    def test_eval_output(self):
        self.make_models()
        text = self.good("eval", "-m", "classes.model", "--x", "classes-plain.csv", "--target", "t", "--each")
        for pattern in (r"(?m)^auc +0\.\d+$", r"(?m)^log loss +", r"(?m)^brier +", r"(?m)^f1 +", r"(?m)^calibration error +",
                        r"(?m)^coverage +\d+\.\d\d % .*90 % set", r"(?m)^class +count +precision +recall +f1 +auc$"):
            self.assertRegex(text, pattern)
        text = self.good("eval", "-m", "values.model", "--x", "values-plain.csv", "--target", "t")
        for pattern in (r"(?m)^r2 +0\.\d+$", r"(?m)^\|error\|, 90 % +", r"(?m)^interval score +",
                        r"coverage +\d+\.\d\d % .*90 % interval"):
            self.assertRegex(text, pattern)
        self.assertNotIn("auc", text)

    def test_weights_of_classes(self):
        self.make_tables()
        counts = {}
        for how in ("none", "balanced", 'th"ree=0,one=3'):
            options = ["--target", "t", "--centers", "40", "--lambda", "1", "--class-weight", how]
            self.good("train", "--x", "classes-plain.csv", *options, "-o", "m", "-q")
            self.good("predict", "-m", "m", "--x", "classes.csv", "-o", "p.txt")
            found = self.read("p.txt").decode().splitlines()
            counts[how] = [found.count(name) for name in self.names]
        self.assertGreater(counts['th"ree=0,one=3'][0], counts["none"][0])  # "one" has weight 3
        self.assertEqual(counts['th"ree=0,one=3'][1], 0)
        self.bad(2, r"class_weight: 'four=1' ", "train", "--x", "classes-plain.csv",
                 "--target", "t", "--class-weight", "four=1", "-o", "m")  # fmt: skip
        self.bad(2, r"class_weight.*regression", "train", "--x", "values-plain.csv", "--target", "t", "--class-weight", "balanced", "-o", "m")

    def test_transforms_of_targets(self):
        self.make_tables()
        for how in ("log", "rank"):
            options = ["--target", "t", "--centers", "60", "--lambda", "0.1", "--target-transform", how]
            self.good("train", "--x", "values-plain.csv", *options, "-o", "m", "-q")
            self.assertIn(how, self.good("inspect", "m"))
            self.assertGreater(self.answer("eval", "-m", "m", "--x", "values-plain.csv", "--target", "t")["r2"], 0.9)
        self.write("below.csv", b"a,t\n1,2.5\n2,-3.5\n3,1.5\n4,0.25\n")
        self.bad(65, r"sample 1 \(from 0\) is -3.5", "train", "--x", "below.csv", "--target", "t", "--target-transform", "log", "-o", "m")

    def test_report(self):
        self.make_tables()
        options = ["--target", "t", "--centers", "40", "--validation-fraction", "0.25", "--log", "run.jsonl"]
        self.good("train", "--x", "classes-plain.csv", *options, "-o", "m", "-q")
        events = [json.loads(line) for line in self.read("run.jsonl").decode().splitlines()]
        curves = next(event for event in events if event["event"] == "curves")
        self.assertEqual([curve["class"] for curve in curves["roc"]], self.names)
        for curve in curves["roc"]:
            self.assertEqual((curve["false_positive"][0], curve["true_positive"][-1]), (0, 1))
        self.assertEqual(len(curves["calibration"]["confidence"]), len(curves["calibration"]["accuracy"]))
        self.good("report", "run.jsonl", "-o", "page.html")
        page = self.read("page.html").decode()
        for text in ('id="probabilities"', "Calibration", "ROC", "true positive"):
            self.assertIn(text, page)

    def test_refused(self):
        self.make_models()
        on = ["predict", "-m", "values.model", "--x", "values.csv"]
        self.bad(65, r"values.csv: .*'nothing'", *on, "--keep", "nothing", "-o", "p.csv")
        self.bad(2, r"--keep and --id-column: an array", *on, "--keep", "id", "-o", "p.npy")
        self.bad(2, r"--keep and --id-column: plain text", *on, "--keep", "id", "-o", "-")
        self.bad(2, r"--interval: 1 ", *on, "--interval", "1", "-o", "p.csv")
        self.bad(2, r"--interval: .*100 .*0.990099", *on, "--interval", "0.999", "-o", "p.csv")
        self.bad(2, r"--probabilities: values.model", *on, "--probabilities", "-o", "p.csv")
        self.bad(2, r".npy, .csv, .tsv, .jsonl or .txt", *on, "-o", "p.dat")
        self.good("train", "--x", "values-plain.csv", "--target", "t", "--centers", "20", "-o", "plain.model", "-q")
        self.bad(2, r"--interval: plain.model .*--intervals on or --validation-fraction 0.1",
                 "predict", "-m", "plain.model", "--x", "values.csv", "--interval", "0.9", "-o", "p.csv")  # fmt: skip
        self.bad(2, r"--interval: .*intervals", "eval", "-m", "plain.model", "--x", "values-plain.csv", "--target", "t", "--interval", "0.5")
        self.assertNotIn("coverage", self.answer("eval", "-m", "plain.model", "--x", "values-plain.csv", "--target", "t"))
        self.good("train", "--x", "values-plain.csv", "--target", "t", "--centers", "20", "--intervals", "on", "-o", "plain.model", "-q")
        self.good("predict", "-m", "plain.model", "--x", "values.csv", "--interval", "0.9", "-o", "p.csv")


if __name__ == "__main__":
    main()
