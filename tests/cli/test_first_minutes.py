# SPDX-License-Identifier: BSD-3-Clause
"""test_first_minutes.py MERCER: what a new user types and sees: tables and models as positional arguments, default outputs, the
result of a training run, and its score on rows that the model was not trained on."""
import json
import os
import random
import re
import subprocess
import unittest

from support import PROGRAM, Case, main

QUICK = ["--effort", "1"]


def houses(n, seed=1):
    """Return the lines of a table of houses whose price depends on area, district and, less, on age."""
    rng = random.Random(seed)
    lines = []
    for i in range(n):
        area, age, district = rng.uniform(30, 200), rng.randrange(100), rng.choice(["north", "south", "west"])
        price = 2000 * area + 60000 * (district == "west") - 300 * age + rng.gauss(0, 8000)
        lines.append("%d,%.1f,%d,%s,%.0f" % (i + 1000 * rng.randrange(1000), area, age, district, price))
    return lines


def table(lines, head="code,area,age,district,price"):
    return "\n".join([head, *lines]) + "\n"


def noise(n, target, seed=2):
    """Return a table whose target is unrelated to its columns."""
    rng = random.Random(seed)
    return "a,b,c,y\n" + "".join("%.4f,%.4f,%.4f,%s\n" % (rng.gauss(0, 1), rng.gauss(0, 1), rng.gauss(0, 1), target(rng)) for _ in range(n))


class Walk(Case):
    """Train, evaluate and predict with as few words as possible."""

    def setUp(self):
        super().setUp()
        self.write("houses.csv", table(houses(240)))
        self.write("test.csv", table(houses(60, seed=7)))
        self.write("new.csv", "\n".join(line.rsplit(",", 1)[0] for line in table(houses(5, seed=9)).splitlines()) + "\n")

    def train(self, *arguments):
        """Train and return the lines on stderr."""
        result = self.run_program("train", *arguments, *QUICK)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout, b"")
        return result.stderr.decode().splitlines()

    def test_walk(self):
        lines = self.train("houses.csv", "--target", "price")
        self.assertLessEqual(len(lines), 15, lines)
        rows = {line.split()[0]: line for line in lines}
        self.assertEqual(list(rows), ["read", "target", "result", "columns", "model", "next"])
        self.assertRegex(rows["read"], r"houses\.csv: 240 rows; 3 numbers, 1 category: \d+ features$")
        self.assertRegex(rows["target"], r"price, \d+ .*: regression")
        found = re.search(r"R2 (0\.\d{3}) on 240 held-out rows, by cross-validation \(typical error (\d,\d{3})\); baseline 0$", rows["result"])
        self.assertIsNotNone(found, rows["result"])
        self.assertRegex(rows["columns"], r"columns +area \d\.\d{3}, district \d\.\d{3}.* \(.*R2.*training rows.*\)$")
        self.assertRegex(rows["model"], r"houses\.safetensors, [\d.]+ kB, in ")
        # The score agrees with that on other rows of the same distribution.
        test = self.answer("eval", "houses.safetensors", "test.csv")
        self.assertEqual(test["rows"], 60)
        self.assertLess(abs(test["r2"] - float(found.group(1))), 0.05)
        self.assertLess(abs(test["error_median"] / float(found.group(2).replace(",", "")) - 1), 0.5)
        # The next command can be copied.
        command = rows["next"].split(None, 1)[1]
        self.assertEqual(command, "mercer predict houses.safetensors new.csv > predictions.csv")
        subprocess.run(["sh", "-c", command.replace("mercer", PROGRAM, 1)], cwd=self.folder, check=True)
        predicted = self.read("predictions.csv").decode().splitlines()
        self.assertEqual((predicted[0], len(predicted)), ("price_predicted", 6))

    def test_predictions_on_stdout(self):
        self.train("houses.csv", "--target", "price")
        out = self.good("predict", "houses.safetensors", "new.csv", "--id-column", "code", "--keep", "area")
        self.assertEqual(out.splitlines()[0], "code,area,price_predicted")
        self.good("predict", "-m", "houses.safetensors", "--x", "new.csv", "--id-column", "code", "--keep", "area", "-o", "p.csv")
        self.assertEqual(self.read("p.csv").decode(), out)
        self.assertEqual(self.good("predict", "-m", "houses.safetensors", "new.csv", "--id-column", "code", "--keep", "area"), out)
        form = self.good("predict", "houses.safetensors", "new.csv", "--output-format", "jsonl").splitlines()
        self.assertEqual(list(json.loads(form[0])), ["price_predicted"])
        # --output - writes plain text without column names.
        self.assertRegex(self.good("predict", "houses.safetensors", "new.csv", "-o", "-"), r"^[\d.]+\n")
        self.bad(2, "--json and --output -: .*stdout", "predict", "houses.safetensors", "new.csv", "--json")

    def test_a_default_name_is_not_overwritten(self):
        self.train("houses.csv", "--target", "price")
        before = self.read("houses.safetensors")
        text = "houses.safetensors .*--force.*-o FILE"
        self.bad(2, text, "train", "houses.csv", "--target", "age", *QUICK)
        self.assertEqual(self.read("houses.safetensors"), before)
        self.train("houses.csv", "--target", "age", "--force")
        self.assertNotEqual(self.read("houses.safetensors"), before)
        self.train("houses.csv", "--target", "price", "-o", "houses.safetensors")  # a given column name is an error
        self.assertEqual(self.read("houses.safetensors"), before)

    def test_default_names(self):
        for name, model in (
            ("a.b.csv", "a.b.safetensors"),
            ("sub/part one.csv", "part one.safetensors"),
            ("none", "none.safetensors"),
        ):
            self.write(name, table(houses(60)))
            self.train(name, "--target", "price", "--tune", "off")
            self.assertTrue(os.path.exists(self.path(model)), name)
        lines = self.train("sub/part*.csv", "--target", "price", "--tune", "off")
        self.assertIn("part.safetensors", lines[-1])
        lines = self.train("sub/part one.csv", "--target", "price", "--tune", "off", "-f")
        self.assertTrue(lines[-1].endswith(" 'part one.safetensors' new.csv > predictions.csv"), lines)

    def test_table_from_a_pipe(self):
        command = [PROGRAM, "train", "-", "--target", "price", *QUICK]
        done = subprocess.run(command, cwd=self.folder, input=self.read("houses.csv"), stderr=subprocess.PIPE, check=True)
        text = done.stderr.decode()
        self.assertRegex(text, r"^read +standard input: 240 rows; ")
        self.assertIn("mercer predict model.safetensors new.csv", text)

    def test_several_tables(self):
        """Several tables, a pattern and one table with all rows give the same model."""
        lines = houses(150)
        self.write("part-1.csv", table(lines[:70]))
        self.write("part-2.csv", table(lines[70:]))
        self.write("whole.csv", table(lines))
        shown = self.train("part-1.csv", "part-2.csv", "--target", "price")
        self.assertRegex(shown[0], r"^read +part-1\.csv and 1 more: 150 rows; ")
        self.train("part-*.csv", "--target", "price")
        self.train("whole.csv", "--target", "price")
        self.assertEqual(self.read("part-1.safetensors"), self.read("whole.safetensors"))
        self.assertEqual(self.read("part.safetensors"), self.read("whole.safetensors"))
        both = self.good("predict", "whole.safetensors", "part-1.csv", "part-2.csv", "--id-column", "code")
        self.assertEqual(both, self.good("predict", "whole.safetensors", "whole.csv", "--id-column", "code"))
        self.bad(66, "none.csv: cannot open", "eval", "whole.safetensors", "part-1.csv", "none.csv")
        self.bad(2, "part-2.csv .*--x", "predict", "whole.safetensors", "part-1.csv", "part-2.csv", "-o", "part-2.csv")

    def test_resumed_runs_know_their_tables(self):
        lines = houses(80)
        self.write("part-1.csv", table(lines[:40]))
        self.write("part-2.csv", table(lines[40:]))
        self.train("part-1.csv", "part-2.csv", "--target", "price", "--checkpoint", "run", "--tune", "off")
        config = json.loads(self.read("run/config.json"))["options"]
        names = config["x"].split("\x1f")
        self.assertEqual(names, [os.path.join(os.path.realpath(self.folder), "part-%d.csv" % i) for i in (1, 2)])
        os.remove(self.path("part-1.safetensors"))
        self.good("resume", self.path("run"), cwd="/")
        self.assertTrue(os.path.exists(self.path("part-1.safetensors")))

    def test_order_and_conflicts(self):
        self.train("--target", "price", "houses.csv")
        self.bad(2, "eval: .*: mercer eval houses.safetensors test.csv", "eval", "test.csv", "houses.safetensors")
        self.bad(65, "test.csv: .*model", "eval", "test.csv", "test.csv")
        self.bad(2, "train: 'houses.csv' and --data ", "train", "houses.csv", "--data", "d")
        self.bad(65, "target .*columns: 'code', 'area', 'age', 'district', 'price'$", "train", "houses.csv", "-o", "m")
        self.bad(66, "house.csv: cannot open", "train", "house.csv", "--target", "price")

    def test_verbose_and_quiet(self):
        more = self.train("houses.csv", "--target", "price", "-v")
        text = "\n".join(more)
        for row in ("data", "kernel", "solver", "memory", "training loss", "result", "next"):
            self.assertRegex(text, r"(?m)^%s " % row)
        self.assertEqual(self.train("houses.csv", "--target", "price", "-q", "-f"), [])
        found = self.answer("train", "houses.csv", "--target", "price", "-q", "-f", *QUICK)
        self.assertEqual(found["held_out"]["how"], "cross-validation")
        self.assertEqual([one["name"] for one in found["importance"]][:2], ["area", "district"])
        self.assertEqual(len(found["importance"]), 4)

    def test_explain_by_default(self):
        self.train("houses.csv", "--target", "price")
        text = self.good("explain", "houses.safetensors", "test.csv")
        self.assertRegex(text, r"(?m)^area +1?\.?\d")
        self.assertEqual(text, self.good("explain", "houses.safetensors", "test.csv", "--permutation"))
        self.bad(2, "--permutation.*--gradients", "explain", "houses.safetensors", "test.csv", "--permutation", "--gradients")


class Score(Case):
    """The score is that of rows that the model was not trained on."""

    def score(self, *arguments):
        return self.answer("train", "t.csv", *arguments, "-q", "-f", *QUICK)["held_out"]

    def test_noise_of_values(self):
        self.write("t.csv", noise(300, lambda rng: "%.4f" % rng.gauss(5, 2)))
        found = self.score("--lambda", "0", "--tune", "off", "--kernel", "laplace:bandwidth=1")
        self.assertEqual((found["how"], found["rows"]), ("cross-validation", 300))
        self.assertLess(found["r2"], 0.2)

    def test_bandwidth_of_the_search(self):
        """A wide bandwidth is a warning if it is given, not if the search found it; the folds repeat no warning."""
        self.write("t.csv", "a,y\n" + "".join("%d,%d\n" % (i, i * i % 7) for i in range(60)))
        train = ["train", "t.csv", "--target", "y", "--task", "regression", "--effort", "1", "-q", "-f", "-o", "m"]
        self.assertEqual(self.answer(*train)["warnings"], [])
        given = self.answer(*train, "--bandwidth", "100000")["warnings"]
        self.assertEqual(sum("median distance" in text for text in given), 1, given)

    def test_noise_of_classes(self):
        self.write("t.csv", noise(300, lambda rng: rng.choice(["yes", "no", "no"])))
        found = self.score()
        self.assertEqual((found["how"], found["rows"]), ("cross-validation", 300))
        self.assertLess(abs(found["auc"] - 0.5), 0.15)
        self.assertLess(found["accuracy"], found["largest_class"] + 0.1)
        lines = self.run_program("train", "t.csv", "-f", *QUICK).stderr.decode()
        self.assertRegex(lines, r"accuracy \d+\.\d % on 300 held-out rows, by cross-validation; largest class 6\d\.\d %; AUC 0\.\d{3}; log loss 0\.\d{3}")

    def test_larger_tables_of_values_are_not_split(self):
        """Without a share of validation rows every row is a training row, and the score is that of the search."""
        self.write("t.csv", noise(5400, lambda rng: "%.4f" % rng.gauss(5, 2)))
        found = self.answer("train", "t.csv", "-q", "--centers", "100", "--tune", "off")
        self.assertEqual((found["held_out"], found["data"]["rows"]), (None, 5400))

    def test_share_of_validation_rows(self):
        self.write("t.csv", noise(5400, lambda rng: "%.4f" % rng.gauss(5, 2)))
        found = self.answer("train", "t.csv", "-q", "--centers", "100", "--tune", "off", "--validation-fraction", "0.05")
        self.assertEqual((found["held_out"]["how"], found["held_out"]["rows"]), ("held-out rows", 270))
        self.assertEqual(found["data"]["rows"], 5400 - 270)
        self.assertLess(found["held_out"]["r2"], 0.2)

    def test_without_rows_to_hold_out(self):
        """Without held-out rows the result is the score of the search, and the output says so."""
        self.write("t.csv", noise(200, lambda rng: "%.4f" % rng.gauss(5, 2)))
        text = self.run_program("train", "t.csv", "--validation-fraction", "0", *QUICK).stderr.decode()
        self.assertRegex(text, r"(?m)^result +R2 -?0\.\d+ on \d+ held-out rows .*mercer eval")
        text = self.run_program("train", "t.csv", "--validation-fraction", "0", "--tune", "off", "-f").stderr.decode()
        self.assertRegex(text, r"(?m)^result +[^\d]*training rows.*mercer eval")
        self.assertIsNone(self.score("--validation-fraction", "0"))

    def test_rows_in_time(self):
        """The latest rows are not held out for the score, because the model needs them."""
        rng = random.Random(6)
        rows = ((i, rng.gauss(0, 1)) for i in range(200))
        self.write("t.csv", "t,a,y\n" + "".join("%d,%.4f,%.4f\n" % (i, a, 3 * a + i / 100 + rng.gauss(0, 0.1)) for i, a in rows))
        found = self.answer("train", "t.csv", "--time-column", "t", "-q", *QUICK)
        self.assertEqual((found["held_out"], found["data"]["rows"]), (None, 200))
        text = self.run_program("train", "t.csv", "--time-column", "t", "-f", *QUICK).stderr.decode()
        self.assertRegex(text, r"(?m)^result +R2 -?\d\.\d+ on \d+ held-out rows .*search")

    def test_given_validation_rows(self):
        self.write("t.csv", table(houses(120)))
        self.write("v.csv", table(houses(50, seed=3)))
        text = self.run_program("train", "t.csv", "--target", "price", "--x-val", "v.csv", *QUICK).stderr.decode()
        self.assertRegex(text, r"(?m)^result +R2 0\.\d{3} on 50 validation rows \(typical error")
        self.assertRegex(text, r"(?m)^columns .*\(loss of R2 when shuffled\)$")

    def test_tables_of_numbers(self):
        self.write("t.csv", noise(120, lambda rng: "%.4f" % rng.gauss(5, 2)))
        text = self.run_program("train", "t.csv", *QUICK).stderr.decode()
        self.assertRegex(text, r"^read +t\.csv: 120 rows; 3 numbers\n")


class Columns(Case):
    """Every column that is dropped, or looks like an identifier, causes a warning that names a remedy."""

    def test_warnings(self):
        rng = random.Random(4)
        lines = ["%d,note %d,%s,%.2f,%s" % (i + 1, i * 17, "same", rng.gauss(0, 1), "") for i in range(100)]
        self.write("t.csv", "id,note,kind,a,empty,y\n" + "".join("%s,%.3f\n" % (line, float(line.split(",")[3]) * 2) for line in lines))
        result = self.run_program("train", "t.csv", *QUICK)
        self.assertEqual(result.returncode, 0, result.stderr)
        text = result.stderr.decode()
        self.assertLessEqual(len(text.splitlines()), 15)
        self.assertRegex(text, r"warning: t\.csv: column 'note' .*'note 0'; .*--columns 'note:category'")
        self.assertRegex(text, r"warning: t\.csv: column 'kind' .*'same'")
        self.assertRegex(text, r"warning: t\.csv: column 'empty' .*empty\n")
        self.assertRegex(text, r"warning: t\.csv: column 'id': .*100 .*--drop 'id'")

    def test_notations_and_missing_values_are_shown(self):
        rng = random.Random(5)
        amounts = [rng.randrange(100, 3000) for _ in range(90)]
        rows = ['%02d/%02d/2024,"$%s",%s,"$%s"' % (i % 28 + 1, i % 12 + 1, format(a, ","), "" if i % 9 == 0 else a % 7, format(2 * a, ",")) for i, a in enumerate(amounts)]
        self.write("t.csv", table(rows, head="when,amount,rest,price"))
        text = self.run_program("train", "t.csv", "--target", "price", *QUICK).stderr.decode()
        self.assertRegex(text, r"(?m)^notation +when \(d/m/Y\), amount \(\$1,234\.5\)")
        self.assertRegex(text, r"(?m)^missing +10 values in 1 column$")
        self.assertRegex(text, r"(?m)^result +R2 0\.9\d+ on 90 held-out rows")
        self.assertRegex(self.good("predict", "t.safetensors", "t.csv"), r"^price_predicted\n\d")


if __name__ == "__main__":
    unittest.TestCase.maxDiff = None
    main()
