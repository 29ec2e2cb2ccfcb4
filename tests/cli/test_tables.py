# SPDX-License-Identifier: BSD-3-Clause
"""Tables with text, dates and missing values: training, and prediction on new tables with the model's schema."""
import datetime
import gzip
import json
import os
import random
import subprocess
import sys
import unittest

from support import PROGRAM, Case, main

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
        self.bad(65, r"n\.csv: .*'city'.*model", "predict", "-m", "m", "--x", "n.csv", "-o", "c.npy")
        self.assertFalse(os.path.exists(self.path("c.npy")))

    def test_levels_are_looked_up(self):
        """Products with many rows use lookup tables for categories. Few rows and the reference backend give the same values."""
        rng = random.Random(2)
        towns = ["town %d" % i for i in range(30)]
        rows = []
        for _ in range(260):
            town, size, color = rng.choice(towns), rng.gauss(0, 1), rng.choice("abcdefgh")
            rows.append(["%.4f" % size, town, color, "%.4f" % (size * size + towns.index(town) / 9 + ord(color) / 3)])
        self.table("t.csv", ["size", "town", "color", "price"], rows)
        self.table("few.csv", ["size", "town", "color", "price"], rows[:9])
        for kernel in ("laplace:bandwidth=4", "laplace-l1:bandwidth=9"):
            self.good("train", "--x", "t.csv", "--target", "price", "--tune", "off", "--kernel", kernel, "-o", "m", "-q")
            with open(self.path("m"), "rb") as file:
                size = int.from_bytes(file.read(8), "little")
                begin, end = json.loads(file.read(size))["origin"]["data_offsets"]
                file.seek(8 + size + begin)
                origin = memoryview(file.read(end - begin)).cast("d").tolist()
            self.assertEqual(len(origin), 1 + 30 + 8)
            self.assertEqual(origin[1:], [0] * 38)  # The lookup for the L2 norm needs this number of rows.
            self.good("predict", "-m", "m", "--x", "t.csv", "--target", "price", "-o", "all.csv", "-q")
            self.good("predict", "-m", "m", "--x", "few.csv", "--target", "price", "-o", "few-out.csv", "-q")
            self.good("predict", "-m", "m", "--x", "t.csv", "--target", "price", "-o", "slow.csv", "--device", "reference", "-q")
            text = self.read("all.csv").split()
            self.assertEqual(text[:10], self.read("few-out.csv").split())  # to the last digit
            for fast, slow in zip(text[1:], self.read("slow.csv").split()[1:]):
                self.assertAlmostEqual(float(fast), float(slow), delta=1e-4)

    def test_numbers_that_floats_merge(self):
        """An origin is subtracted from large numbers such as seconds since 1970 and stored with the model."""
        times = [1700000001, 1700000002, 1700000003, 1700000050, 1700000051, 1700000090]
        values = [1, 2, 3, 9, 8, 4]
        self.table("s.csv", ["t", "y"], [[str(t), str(y)] for t, y in zip(times, values)])
        train = ["train", "--x", "s.csv", "--target", "y", "--centers", "6", "--kernel", "gaussian:bandwidth=0.3", "--solver", "direct", "--ridge", "1e-9", "-q"]
        self.assertEqual(self.run_program(*train, "-o", "m").stderr, b"")
        self.table("n.csv", ["t"], [[str(t)] for t in reversed(times)])
        self.good("predict", "-m", "m", "--x", "n.csv", "-o", "p.csv", "-q")
        found = [float(line) for line in self.read("p.csv").decode().split()[-6:]]
        for one, value in zip(found, reversed(values)):
            self.assertLess(abs(one - value), 0.1, found)
        self.assertEqual(json.loads(self.good("inspect", "m", "--json"))["schema"]["columns"][0]["origin"], 1700000064)
        # An exported C file subtracts the same origin.
        self.good("export", "m", "-o", "m.c", "-q")
        self.assertIn(b"1700000064", self.read("m.c"))
        # A model without a schema gets numbers unchanged, with a warning if rounding to float merges them.
        self.write("plain.csv", "1,2\n3,4\n5,7\n")
        self.good("train", "--x", "plain.csv", "--target", "1", "--centers", "3", "-o", "plain", "-q")
        self.write("far.csv", "1700000001\n1700000003\n")
        result = self.run_program("predict", "-m", "plain", "--x", "far.csv", "-o", "q.csv", "-q")
        self.assertRegex(result.stderr.decode(), r"\Amercer: warning: \S*far\.csv: column 0 .*1700000003 .*float")

    def peak(self, *arguments):
        """Return the peak memory of the program in MiB.

        The program is started by a small Python process, because the peak of a child includes the memory of its parent
        at the fork.
        """
        script = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); " \
                 "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
        done = subprocess.run([sys.executable, "-S", "-c", script, PROGRAM, *arguments], check=True, stdout=subprocess.PIPE)
        return int(done.stdout) / 1024

    @unittest.skipIf("MERCER_TEST_SLOW" in os.environ, "sanitizers hold memory back")
    def test_memory_does_not_grow_with_the_rows(self):
        self.train("-q")
        self.table("b.csv", self.header + ["note"], [row + ["text of the note" * 10] for row in self.rows])
        head, _, body = self.read("b.csv").partition(b"\n")
        peaks = {}
        for count in (75, 750):
            text = head + b"\n" + body * count
            self.write("n%d.csv" % count, text)
            self.write("z%d.csv.gz" % count, gzip.compress(text, 1))
            for name in ("n%d.csv" % count, "z%d.csv.gz" % count):
                more = ("--x", self.path(name), "--target", "price", "-o", self.path(name + ".out.csv"), "-q", "--threads", "1")
                peaks[name] = self.peak("predict", "-m", self.path("m"), "--id-column", "id", *more)
        size = len(text) / 2**20
        self.assertGreater(size, 25)  # limit in MiB; features and predictions would take 10 MiB more
        self.assertLess(peaks["n750.csv"], peaks["n75.csv"] + size / 2, peaks)
        self.assertLess(peaks["z750.csv.gz"], peaks["z75.csv.gz"] + size / 2, peaks)
        rows = self.read("n750.csv.out.csv")
        self.assertEqual(rows, self.read("z750.csv.gz.out.csv"))
        first, _, predicted = self.read("n75.csv.out.csv").partition(b"\n")
        self.assertEqual(rows, first + b"\n" + predicted * 10)

    def test_training_beyond_memory(self):
        # Features that do not fit into memory go to a temporary file, which is an error if its folder does not exist.
        self.table("t.csv", self.header, self.rows * 500)
        self.bad(74, "nowhere: temporary file: cannot open", "train", "--x", "t.csv", "--target", "price", "-o", "s", "-q",
                 "--memory", "6M", environment={"TMPDIR": self.path("nowhere")})

    def test_targets_moved_and_scaled(self):
        self.table("t.csv", self.header, self.rows)
        found = []
        for name, change in (("a", float), ("b", lambda y: float(y) + 200), ("c", lambda y: float(y) * 1e6)):
            rows = [[*row[:5], repr(change(row[5]))] for row in self.rows]
            self.table(name + ".csv", self.header, rows)
            self.good("train", "--x", name + ".csv", "--target", "price", "-o", name, "-q", "--lambda", "1e-3")
            found.append(self.answer("eval", "-m", name, "--x", name + ".csv", "--target", "price")["r2"])
        self.assertLess(max(found) - min(found), 1e-6, found)

    def test_permutation(self):
        self.train("-q", "--lambda", "1e-3")
        more = ("--x", "t.csv", "--target", "price", "--permutation")
        told = self.answer("explain", "-m", "m", *more, "--repeats", "4")
        self.assertEqual((told["rows"], told["repeats"], told["measure"]), (200, 4, "r2"))
        drops = {row["name"]: row for row in told["permutation"]}
        self.assertEqual(set(drops), {"area", "city", "built", "garden"})
        self.assertEqual(list(drops)[0], "area")
        self.assertGreater(drops["city"]["drop"], 10 * drops["city"]["standard_error"])
        threads = self.answer("explain", "-m", "m", *more, "--repeats", "4", "--threads", "2")
        self.assertEqual(told, threads)
        other = self.answer("explain", "-m", "m", *more, "--repeats", "4", "--seed", "1")
        self.assertNotEqual(told["permutation"], other["permutation"])
        text = self.good("explain", "-m", "m", *more, "--repeats", "1")
        self.assertRegex(text, r"R2 0\.\d+ .*200 rows.*\n.*column +.*R2 +.*\n(.*\n)+.*city +\S+ +-")
        self.table("u.csv", self.header[:4], [row[:4] for row in self.rows])
        self.bad(65, "u.csv: .*'price'.*target", "explain", "-m", "m", "--x", "u.csv", "--permutation")

    def test_the_page_shows_importance(self):
        self.train("-q", "--log", "l.jsonl", "--validation-fraction", "0.2")
        self.good("report", "l.jsonl", "-o", "r.html")
        page = self.read("r.html").decode()
        self.assertIn("Importance of columns", page)
        self.assertIn("Partial dependence", page)
        self.assertIn("Partial dependence on city", page)
        self.assertIn("Köln, West", page)

    def test_plan_and_inspect_show_the_schema(self):
        self.train("-q")
        plan = self.good("plan", "--x", "t.csv", "--target", "price")
        self.assertRegex(plan, r"columns +1 number, 1 boolean, 1 date, 1 category: \d+ features")
        self.assertRegex(plan, r"categories +city \(3 levels\)")
        self.assertRegex(plan, r"left out +id \(")
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
        self.bad(65, r"t\.csv: .*'rooms'", "train", "--x", "t.csv", "--target", "price", "--drop", "rooms", "-o", "n")
        self.bad(2, r"'area:words'", "train", "--x", "t.csv", "--target", "price", "--columns", "area:words", "-o", "n")

    def test_few_wrong_dates_are_refused(self):
        """One invalid date in 400 is an error and does not turn the column into a category."""
        days = [(datetime.date(2020, 1, 1) + datetime.timedelta(i)).isoformat() for i in range(400)]
        days[59] = "2020-02-30"
        self.table("d.csv", ["when", "y"], [[day, "%d.5" % i] for i, day in enumerate(days)])
        train = ["train", "--x", "d.csv", "--target", "y", "--tune", "off", "-q", "-o", "m"]
        self.bad(65, r"d\.csv: line 61, column 'when': '2020-02-30' .*date, .*399 of 400 .*--missing='2020-02-30'; .*--columns 'when:category'", *train)
        self.good(*train, "--missing=2020-02-30")
        kinds = {column["name"]: column for column in json.loads(self.good("inspect", "m", "--json"))["schema"]["columns"]}
        self.assertEqual((kinds["when"]["kind"], kinds["when"]["missing"]), ("date", 1))
        self.good(*train, "--columns", "when:category")
        # The default words for missing values stay in effect, unless the list begins with an equals sign.
        self.table("d.csv", ["a", "y"], [["NA" if i == 3 else "-" if i == 5 else str(i % 7 + 0.5), "%d.5" % i] for i in range(80)])
        self.bad(65, r"line 7, column 'a': '-' .*number", *train)
        self.good(*train, "--missing=-")
        self.bad(65, r"line 5, column 'a': 'NA' .*number", *train, "--missing==-")

    def test_notations(self):
        """Amounts, percentages and dates are read in the same notation in training and in a new table."""
        rows = []
        for i in range(300):
            day = datetime.date(2023, 1, 1) + datetime.timedelta(i)
            rows.append(["$%s" % format(500 + 7.25 * i, ",.2f"), "%d %%" % (i * 37 % 101), day.strftime("%d/%m/%Y"), "%.3f" % (100 + 14.5 * i + i * 37 % 101)])
        header = ["amount", "share", "when", "y"]
        self.table("t.csv", header, rows)
        self.assertEqual(self.run_program("train", "--x", "t.csv", "--target", "y", "--effort", "1", "-o", "m", "-q").stderr, b"")
        self.assertRegex(self.good("inspect", "m"), r"notations +amount \(\$1,234\.5\), share \(1,234\.5%\), when \(d/m/Y\)")
        self.assertGreater(self.answer("eval", "-m", "m", "--x", "t.csv", "--target", "y")["r2"], 0.99)
        self.good("predict", "-m", "m", "--x", "t.csv", "--target", "y", "-o", "a.csv", "-q")
        # The first rows do not show whether the day or the month comes first, but the model stores it.
        self.table("n.csv", header[:3], [row[:3] for row in rows[:12]])
        self.good("predict", "-m", "m", "--x", "n.csv", "-o", "b.csv", "-q")
        self.assertEqual(self.read("a.csv").split()[:13], self.read("b.csv").split())
        self.table("n.csv", header[:3], [["€5", *rows[0][1:3]]])
        self.bad(65, r"line 2, column 'amount': '€5' .*number .* \$1,234\.5", "predict", "-m", "m", "--x", "n.csv", "-o", "c.csv")
        # The format version rises, so that readers without support for notations reject the file.
        with open(self.path("m"), "rb") as file:
            size = int.from_bytes(file.read(8), "little")
            self.assertEqual(json.loads(file.read(size))["__metadata__"]["format_version"], "7")

    def test_order_of_day_and_month(self):
        self.table("t.csv", ["when", "y"], [["01/%02d/%d" % (i % 12 + 1, 2000 + i // 12), "%d.5" % i] for i in range(60)])
        train = ["train", "--x", "t.csv", "--target", "y", "--tune", "off", "-q", "-o", "m"]
        self.bad(65, r"column 'when': .*'01/01/2000'.*--columns 'when:date-dmy' or 'when:date-mdy'", *train)
        for kind, notation in (("date-dmy", "d/m/Y"), ("date-mdy", "m/d/Y")):
            self.good(*train, "--columns", "when:" + kind)
            self.assertEqual(json.loads(self.good("inspect", "m", "--json"))["schema"]["columns"][0]["notation"], notation)

    def test_targets_as_text(self):
        rows = [[str(i), "$%s" % format(1000 + 3.37 * i, ",.2f")] for i in range(300)]
        self.table("t.csv", ["a", "price"], rows)
        self.good("train", "--x", "t.csv", "--target", "price", "--tune", "off", "-o", "m", "-q")
        found = self.answer("eval", "-m", "m", "--x", "t.csv", "--target", "price")
        self.assertGreater(found["r2"], 0.99)
        self.assertAlmostEqual(float(self.good("predict", "-m", "m", "--x", "t.csv", "--target", "price", "-o", "-", "-q").split()[-1]), 1000 + 3.37 * 299, delta=5)
        self.table("t.csv", ["a", "price"], [[row[0], "about " + row[1]] for row in rows])
        self.bad(65, r"t\.csv: .*target .*300 .*300 rows, .*'about \$1,000\.00'; .*1234\.5; .*--task classification",
                 "train", "--x", "t.csv", "--target", "price", "-o", "m")

    def test_columns_that_are_not_used(self):
        """Every unused column causes a warning, even with -q, except for columns in --drop."""
        self.train("-q", "--drop", "id")
        rows = [[str(i + 1), *row, "7", ""] for i, row in enumerate(self.rows)]
        self.table("t.csv", ["number", *self.header, "same", "none"], rows)
        train = ["train", "--x", "t.csv", "--target", "price", "--effort", "1", "-o", "m"]
        expected = [
            r"^t\.csv: column 'number': .* 200 .*--drop 'number'$",
            r"^t\.csv: column 'id' .*'row0'; .*--drop 'id', .*--columns 'id:category'",
            r"^t\.csv: column 'same' .*'7'$",
            r"^t\.csv: column 'none' .*empty$",
        ]
        result = self.run_program(*train, "-q")
        self.assertEqual(result.returncode, 0, result.stderr)
        found = json.loads(self.run_program(*train, "-q", "--json").stdout)["warnings"]
        self.assertEqual(result.stderr.decode().splitlines(), ["mercer: warning: " + text for text in found])
        self.assertEqual(len(found), len(expected), found)
        for text, pattern in zip(found, expected):
            self.assertRegex(text, pattern)
        self.assertIn("number", json.loads(self.good("inspect", "m", "--json"))["feature_names"])  # The column is still a feature.
        self.assertEqual(self.run_program(*train, "-q", "--drop", "number,id,same,none").stderr, b"")

    def test_warnings_are_counted(self):
        self.train("-q")
        new = [list(row) for row in self.rows[:10]]
        new[1][1] = new[2][1] = "Rom"
        self.table("n.csv", self.header, new)
        result = self.run_program("predict", "-m", "m", "--x", "n.csv", "--target", "price", "-o", "p.csv")
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stderr.decode(), r"column 'city': 2 .*category .*\(such as 'Rom'\)")
        self.rows[3][5] = self.rows[7][5] = ""
        self.table("t.csv", self.header, self.rows)
        result = self.run_program("train", "--x", "t.csv", "--target", "price", "-o", "m", "-q")
        self.assertRegex(result.stderr.decode(), r"2 of 200 rows.* line 5")
        self.bad(65, "e.csv: .*target.* missing", "train", "--x", self.write("e.csv", "a,y\nu,\nv,NA\n"), "--target", "y", "-o", "m")


@unittest.skipUnless(os.path.isdir(REAL) and "MERCER_TEST_SLOW" not in os.environ, "the tables are not here, or take too long")
class Real(Case):
    def test_all_tables_as_they_are(self):
        for name, least in SETS.items():
            with self.subTest(name):
                train, test = (os.path.join(REAL, "%s_%s.csv.gz" % (name, part)) for part in ("train", "test"))
                self.good("train", "--x", train, "--target", "target", "-o", "m", "-p", "300", "--rows", "6000", "--tune", "off", "-q")
                result = json.loads(self.good("eval", "-m", "m", "--x", test, "--target", "target", "--json", "-q"))
                self.assertGreater(result.get("accuracy", result.get("r2")), least)


if __name__ == "__main__":
    main()
