# SPDX-License-Identifier: BSD-3-Clause
"""Tables with words, dates and gaps: trained on as they are, new ones read alike."""
import json
import os
import random
import unittest

from support import Case, main

REAL = os.path.join(os.environ.get("MERCER_DATA", ""), "tables")
SETS = {"housing": 0.7, "diamonds": 0.9, "kin40k": 0.5, "adult": 0.8, "bank": 0.88, "hr": 0.74, "credit": 0.75, "letter": 0.7}


class Tables(Case):
    def setUp(self):
        super().setUp()
        rng = random.Random(1)
        self.header = ["area", "city", "built", "garden", "id", "price"]
        self.rows = []
        for i in range(200):
            area = round(rng.uniform(30, 200), 1)
            city = rng.choice(["Ulm", "Bonn", "Köln, West"])
            year = rng.randrange(1950, 2024)
            garden = rng.choice(["true", "false"])
            price = area * (2 if city == "Bonn" else 1) + (year - 1950) + 20 * (garden == "true")
            cells = [str(area), city, "%d-03-01" % year, garden, "row%d" % i, "%.3f" % price]
            if i % 9 == 0:
                cells[rng.randrange(4)] = rng.choice(["", "NA"])
            self.rows.append(cells)

    def table(self, name, header, rows):
        quote = lambda cell: '"%s"' % cell if "," in cell else cell  # noqa: E731
        return self.write(name, "".join(",".join(map(quote, line)) + "\n" for line in [header, *rows]))

    def train(self, *more):
        self.table("t.csv", self.header, self.rows)
        return self.good("train", "--x", "t.csv", "--target", "price", "-o", "m", *more)

    def test_columns_in_any_order(self):
        self.train("-q")
        self.good("predict", "-m", "m", "--x", "t.csv", "--target", "price", "-o", "a.npy", "-q")
        order = [3, 0, 2, 1]
        rows = [["extra"] + [row[j] for j in order] for row in self.rows]
        self.table("n.csv", ["new"] + [self.header[j] for j in order], rows)
        self.good("predict", "-m", "m", "--x", "n.csv", "-o", "b.npy", "-q")
        self.assertEqual(self.read("a.npy"), self.read("b.npy"))
        result = json.loads(self.good("eval", "-m", "m", "--x", "t.csv", "--target", "price", "--json"))
        self.assertGreater(result["r2"], 0.9)
        self.table("n.csv", ["area", "town", "built", "garden"], [row[:4] for row in self.rows])
        self.bad(65, r"n\.csv: has no column 'city', which the model was trained on", "predict", "-m", "m", "--x", "n.csv", "-o", "c.npy")
        self.assertFalse(os.path.exists(self.path("c.npy")))

    def test_plan_and_inspect_show_the_schema(self):
        self.train("-q")
        plan = self.good("plan", "--x", "t.csv", "--target", "price")
        self.assertRegex(plan, r"columns +1 number, 1 boolean, 1 date, 1 category: \d+ features")
        self.assertRegex(plan, r"categories +city \(3 levels\)")
        self.assertRegex(plan, r"left out +id \(nearly every row has a word of its own\)")
        shown = json.loads(self.good("inspect", "m", "--json"))
        kinds = {column["name"]: column["kind"] for column in shown["schema"]["columns"]}
        self.assertEqual(kinds, {"area": "number", "city": "category", "built": "date", "garden": "boolean", "id": "drop"})
        self.assertRegex(self.good("inspect", "m"), r"categories +city")

    def test_options(self):
        self.train("-q", "--columns", "built:category", "--drop", "garden,id")
        shown = json.loads(self.good("inspect", "m", "--json"))
        kinds = {column["name"]: column["kind"] for column in shown["schema"]["columns"]}
        self.assertEqual(kinds, {"area": "number", "city": "category", "built": "category", "garden": "drop", "id": "drop"})
        self.train("-q", "--only", "area", "--missing", "NA,-1")
        shown = json.loads(self.good("inspect", "m", "--json"))
        self.assertEqual(shown["feature_names"][0], "area")
        self.bad(65, r"t\.csv: no column is named 'rooms'", "train", "--x", "t.csv", "--target", "price", "--drop", "rooms", "-o", "n")
        self.bad(2, r"'area:words' does not say what a column is", "train", "--x", "t.csv", "--target", "price", "--columns", "area:words", "-o", "n")

    def test_warnings_are_counted(self):
        self.train("-q")
        new = [list(row) for row in self.rows[:10]]
        new[1][1] = new[2][1] = "Rom"
        self.table("n.csv", self.header, new)
        result = self.run_program("predict", "-m", "m", "--x", "n.csv", "--target", "price", "-o", "p.csv")
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stderr.decode(), r"column 'city': 2 cells hold no level that the model knows")
        self.rows[3][5] = self.rows[7][5] = ""
        self.table("t.csv", self.header, self.rows)
        result = self.run_program("train", "--x", "t.csv", "--target", "price", "-o", "m", "-q")
        self.assertRegex(result.stderr.decode(), r"2 of 200 rows have no target and are left out, the first in line 5")
        self.bad(65, "every target is missing", "train", "--x", self.write("e.csv", "a,y\nu,\nv,NA\n"), "--target", "y", "-o", "m")


@unittest.skipUnless(os.path.isdir(REAL), "the tables are not here")
class Real(Case):
    def test_all_tables_as_they_are(self):
        for name, least in SETS.items():
            with self.subTest(name):
                train, test = (os.path.join(REAL, "%s_%s.csv.gz" % (name, part)) for part in ("train", "test"))
                self.good("train", "--x", train, "--target", "target", "-o", "m", "-p", "300", "--rows", "6000", "-q")
                result = json.loads(self.good("eval", "-m", "m", "--x", test, "--target", "target", "--json", "-q"))
                self.assertGreater(result.get("accuracy", result.get("r2")), least)


if __name__ == "__main__":
    main()
