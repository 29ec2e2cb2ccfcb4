# SPDX-License-Identifier: BSD-3-Clause
"""test_shap.py MERCER: Shapley values of rows, the file with these values, backgrounds, and refused models."""
import csv
import io
import random

from support import Case, main

CITIES = ["Ulm", "Bonn", "Rom"]
COLUMNS = ["area", "city", "built"]


class Shap(Case):
    """mercer explain --shap."""

    def setUp(self):
        super().setUp()
        rng = random.Random(5)
        lines = []
        for i in range(150):
            area, city, built = rng.uniform(20, 120), rng.randrange(3), rng.randrange(1900, 2020)
            price = 3 * area + 50 * city + (built - 1960) / 4 + rng.gauss(0, 3)
            lines.append(f"{'' if i % 9 == 4 else f'{area:.1f}'},{CITIES[city]},{built},{price:.2f},{'low' if price < 250 else 'high'}")
        self.write("t.csv", "\n".join(["area,city,built,price,level", *lines[:120]]) + "\n")
        self.write("v.csv", "\n".join(["area,city,built,price,level", *lines[120:]]) + "\n")

    def train(self, target, *more):
        drop = "level" if target == "price" else "price"
        self.good("train", "--x", "t.csv", "--target", target, "--drop", drop, "--tune", "off", "--lambda", "1e-2", "-o", "m", "-q", *more)

    def table(self, *arguments):
        """Run explain --shap with a file and return its lines as dictionaries."""
        self.good("explain", "-m", "m", "--x", "v.csv", "--shap", "-o", "s.csv", "-q", *arguments)
        return list(csv.DictReader(io.StringIO(self.read("s.csv").decode())))

    def predictions(self, *arguments):
        self.good("predict", "-m", "m", "--x", "v.csv", "-o", "p.csv", "-q", *arguments)
        return list(csv.DictReader(io.StringIO(self.read("p.csv").decode())))

    def test_regression(self):
        for kernel in ("laplace-l1", "exppower:gamma=1.4"):
            self.train("price", "--kernel", kernel)
            found = self.table()
            self.assertEqual(list(found[0]), ["row", "base", "sum", *(name + "_shap" for name in COLUMNS)])
            self.assertEqual([line["row"] for line in found], [str(i) for i in range(30)])
            for line, predicted in zip(found, self.predictions()):
                total = float(line["base"]) + sum(float(line[name + "_shap"]) for name in COLUMNS)
                self.assertAlmostEqual(total, float(line["sum"]), delta=1e-9 * abs(total))
                value = float(predicted["price_predicted"])
                # predictions are in float: 2^-24 (4 features + centers) of the sum of |weights|, which is below 20 prices
                self.assertAlmostEqual(total, value, delta=2**-24 * 150 * 20 * abs(value))
            told = self.answer("explain", "-m", "m", "--x", "v.csv", "--shap")
            self.assertEqual((told["rows"], told["background_rows"]), (30, 100))
            self.assertIn("centers", told["background"])
            self.assertEqual([row["name"] for row in told["shap"]][0], "area")
            self.assertEqual(sorted(row["name"] for row in told["shap"]), sorted(COLUMNS))
            mean = sum(abs(float(line["city_shap"])) for line in found) / 30
            self.assertAlmostEqual({row["name"]: row["mean_absolute"] for row in told["shap"]}["city"], mean, delta=1e-9 * mean)
            self.assertEqual(told["terms"] > 1, kernel != "laplace-l1")
            self.assertEqual(told["error"] > 1e-9, kernel != "laplace-l1")

    def test_classes(self):
        self.train("level")
        found, scores = self.table(), self.predictions("--scores")
        self.assertEqual(len(found), 60)
        for i, line in enumerate(found):
            self.assertEqual((line["row"], line["target"]), (str(i // 2), ["high", "low"][i % 2]))
            self.assertAlmostEqual(float(line["sum"]), float(list(scores[i // 2].values())[i % 2]), delta=1e-3)

    def test_backgrounds(self):
        self.train("price", "--kernel", "laplace-l1")
        single = self.table("--background", "t.csv", "--background-rows", "1")
        first = float(self.answer("explain", "-m", "m", "--x", "t.csv", "--rows", "1", "--shap")["outputs"][0]["base"])
        self.assertNotEqual(float(single[0]["base"]), first)
        told = self.answer("explain", "-m", "m", "--x", "v.csv", "--shap", "--background", "t.csv")
        self.assertEqual((told["background"], told["background_rows"]), ("100 rows of t.csv", 100))
        self.assertEqual(self.answer("explain", "-m", "m", "--x", "v.csv", "--shap", "--background-rows", "7")["background_rows"], 7)
        self.assertEqual(self.table("--threads", "1"), self.table("--threads", "2"))
        some = self.table("--first", "5", "--rows", "3", "--background", "t.csv", "--background-rows", "4")
        self.assertEqual(len(some), 3)
        whole = self.table("--background", "t.csv", "--background-rows", "4")
        self.assertEqual([line["sum"] for line in some], [line["sum"] for line in whole[5:8]])
        self.assertEqual([line["row"] for line in some], ["5", "6", "7"])

    def test_interactions(self):
        self.train("price", "--kernel", "gaussian")
        values, lines = self.table(), self.table("--interactions")
        self.assertEqual(list(lines[0]), ["row", "column", *(name + "_interaction" for name in COLUMNS)])
        self.assertEqual([line["column"] for line in lines[:3]], COLUMNS)
        for i, line in enumerate(lines):
            total = sum(float(line[name + "_interaction"]) for name in COLUMNS)
            self.assertAlmostEqual(total, float(values[i // 3][line["column"] + "_shap"]), delta=1e-9)
            for j, name in enumerate(COLUMNS):
                self.assertEqual(line[name + "_interaction"], lines[i // 3 * 3 + j][line["column"] + "_interaction"])
        told = self.answer("explain", "-m", "m", "--x", "v.csv", "--shap", "--interactions")
        mean = sum(2 * abs(float(line["built_interaction"])) for line in lines if line["column"] == "area") / 30
        found = {(row["name"], row["other_name"]): row["mean_absolute"] for row in told["interactions"]}
        self.assertEqual(len(found), 3)
        self.assertAlmostEqual(found["area", "built"], mean, delta=1e-9)
        self.assertRegex(self.good("explain", "-m", "m", "--x", "v.csv", "--shap", "--interactions", "-q"), r"columns +.*interaction\n-+\n\w+, \w+ +")
        self.bad(2, "--interactions: .*--shap", "explain", "-m", "m", "--x", "v.csv", "--gradients", "--interactions")

    def test_output(self):
        self.train("price", "--kernel", "laplace-l1")
        shap = ("explain", "-m", "m", "--x", "v.csv", "--shap")
        result = self.run_program(*shap)
        self.assertRegex(result.stdout.decode(), r"column +.*Shapley.*\n-+\narea +\S+\n")
        self.assertRegex(result.stderr.decode(), r"background: 100 centers .*product")
        self.table()
        self.assertEqual(self.good(*shap, "-o", "-", "-q"), self.read("s.csv").decode())
        self.good(*shap, "-o", "s.tsv", "-q")
        self.assertEqual(self.read("s.tsv").decode().replace("\t", ","), self.read("s.csv").decode())

    def test_transformed(self):
        self.train("price", "--target-transform", "log")
        told = self.answer("explain", "-m", "m", "--x", "v.csv", "--shap")
        self.assertTrue(told["transformed"])
        self.assertLess(told["outputs"][0]["base"], 10)
        self.assertIn(b"transformed target", self.run_program("explain", "-m", "m", "--x", "v.csv", "--shap").stderr)

    def test_refusals(self):
        self.train("price", "--kernel", "linear")
        explain = ("explain", "-m", "m", "--x", "v.csv")
        self.bad(1, "kernel linear: .*Shapley", *explain, "--shap")
        self.bad(2, "--gradients.*--shap", *explain, "--shap", "--gradients")
        self.bad(2, "--output: .*--shap", *explain, "--permutation", "-o", "s.csv")
        self.bad(2, "--background: .*--shap", *explain, "--permutation", "--background", "t.csv")
        self.bad(2, "s.npy: unknown format", *explain, "--shap", "-o", "s.npy")
        self.bad(2, "--json .*stdout", *explain, "--shap", "-o", "-", "--json")
        self.bad(2, "--background-rows", *explain, "--shap", "--background-rows", "0")
        self.train("price", "--kernel", "gaussian")
        self.write("u.csv", "area,built\n50,1990\n")
        self.bad(65, "u.csv: .*city", *explain, "--shap", "--background", "u.csv")
        self.bad(66, "none.csv", *explain, "--shap", "--background", "none.csv")


if __name__ == "__main__":
    main()
