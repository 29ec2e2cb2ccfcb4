# SPDX-License-Identifier: BSD-3-Clause
"""test_tune.py MERCER: the hyperparameter search of mercer train, its effort and budget, and resumed searches."""
import json
import math
import os
import random
import re
import shutil
import signal
import subprocess
import time

from support import PROGRAM, Case, main

NAMES = ["a", "b", "c", "d", "e"]
TABLE = ["--x", "t.csv", "--target", "y"]
QUICK = [*TABLE, "--effort", "1", "--centers", "150"]


def samples(n, seed):
    """Return n rows of five features and targets that depend on two of them."""
    rng = random.Random(seed)
    rows = [[rng.gauss(0, 1) for _ in NAMES] for _ in range(n)]
    return rows, [math.sin(2 * x[1]) + abs(x[3]) for x in rows]


class Search(Case):
    """Base class with tables and the JSON summaries of training runs."""

    def setUp(self):
        super().setUp()
        for name, n, seed in (("t.csv", 600, 1), ("v.csv", 200, 2), ("many.csv", 2000, 3)):
            rows, targets = samples(n, seed)
            self.table(name, [*NAMES, "y"], [[*x, y] for x, y in zip(rows, targets)])

    def table(self, name, head, rows):
        lines = [",".join(v if isinstance(v, str) else "%.6f" % v for v in row) for row in rows]
        self.write(name, "\n".join([",".join(head), *lines]) + "\n")

    def score(self, model="m.safetensors", x="v.csv"):
        return self.answer("eval", "-m", model, "--x", x)["r2"]

    def train(self, *options, **more):
        """Train a model and return the JSON summary."""
        return self.answer("train", *options, "-q", "-o", "m.safetensors", **more)


class Tune(Search):
    """Searched and given hyperparameters."""

    def test_search_and_training(self):
        told = self.train(*QUICK, "--log", "run.jsonl")
        search = told["search"]
        self.assertEqual(set(search), {"effort", "error", "ridge", "seconds", "rows", "held", "cut", "sizes", "twice_the_centers", "steps"})
        self.assertEqual((search["effort"], search["cut"], search["rows"]), (1, False, 600))
        self.assertTrue(0 < search["error"] < 0.5)
        stages = {step["stage"] for step in search["steps"]}
        self.assertLess({1, 2}, stages)  # stages 1 and 2 for the two norms, and at least one continuation
        self.assertLessEqual(stages, {1, 2, 3, 4})
        for step in search["steps"]:
            self.assertEqual(set(step), {"stage", "error", "exponent", "ridge"})
            self.assertGreater(step["ridge"], 0)
        self.assertEqual(search["sizes"], [{"centers": 600, "error": search["error"]}])  # Cross-validation trains on all rows.
        self.assertAlmostEqual(told["plan"]["lambda"], 600 * search["ridge"], delta=1e-9 * told["plan"]["lambda"])
        self.assertEqual(told["centers"], 150)
        found = self.score()
        self.assertNotIn("search", self.train(*QUICK, "--tune", "off"))
        self.assertGreater(found, self.score())

    def test_log_and_page(self):
        """The page has a section Search with a chart of the steps and a chart of the errors by number of centers."""
        told = self.train("--x", "many.csv", "--target", "y", "--effort", "1", "--log", "run.jsonl")["search"]
        sizes = [size["centers"] for size in told["sizes"]]
        self.assertEqual(sizes, sorted(sizes))
        self.assertEqual(len(sizes), 3)
        self.assertEqual(told["error"], told["sizes"][-1]["error"])
        events = [json.loads(line) for line in self.read("run.jsonl").decode().splitlines()]
        search = [event for event in events if event["event"] == "search"]
        charts = [event for event in events if event["event"] == "chart" and event.get("section") == "Search"]
        self.assertEqual((len(search), len(charts)), (1, 2))
        drawn = sum(len(series["y"]) for series in charts[0]["series"])
        self.assertEqual(drawn, len(search[0]["steps"]))
        plans = [event["text"] for event in events if event["event"] == "plan"]
        self.assertEqual([text.count("search: effort 1") for text in plans], [1] * len(plans))
        self.good("report", "run.jsonl", "-o", "page.html")
        page = self.read("page.html").decode()
        for chart in charts:
            self.assertIn(chart["title"], page)
        self.assertIn(">Search<", page)

    def test_default(self):
        """Hyperparameters of a table are searched by default, unless the search is off or the table has too few rows."""
        tuned = ["train", *QUICK, "-o", "m.safetensors", "--verbose"]
        self.assertIn("search: ", self.run_program(*tuned).stderr.decode())
        self.assertNotIn("\nsearch: ", self.run_program(*tuned, "--tune", "off").stderr.decode())
        self.assertRegex(self.good("plan", *QUICK), "\nsearch: .*effort 1")
        few = ["--x", "t.csv", "--target", "y", "--rows", "40"]
        for given, why in ((QUICK + ["--tune", "off"], "tune"), (few, "50")):
            self.assertRegex(self.good("plan", *given), "\nsearch: none, .*" + why)

    def test_given_hyperparameters_are_unchanged(self):
        told = self.train(*QUICK, "--kernel", "gaussian", "--lambda", "0.5", "--preprocess", "rank")
        self.assertRegex(told["kernel"], "^gaussian:")
        self.assertEqual(told["plan"]["lambda"], 0.5)
        self.assertEqual({step["exponent"] for step in told["search"]["steps"]}, {0})
        self.assertAlmostEqual(told["search"]["ridge"], 0.5 / 600, delta=1e-12)
        self.assertEqual(self.answer("inspect", "m.safetensors")["preprocess"], "rank")
        told = self.train(*QUICK, "--kernel", "laplace-l1")
        self.assertRegex(told["kernel"], "^laplace-l1:")
        self.assertEqual(self.train(*QUICK, "--ridge", "none")["plan"]["lambda"], 0)
        told = self.train(*QUICK, "--tune", "on", "--bandwidth", "3")
        self.assertRegex(told["kernel"], ":bandwidth=3,")
        self.assertIn("search", told)

    def test_off(self):
        """Without a search, kernel and preprocessing are the defaults, but the ridge is still chosen."""
        told = self.train(*QUICK, "--tune", "off")
        self.assertRegex(told["kernel"], "^laplace:")
        self.assertGreater(told["plan"]["lambda"], 0)
        self.assertEqual(self.answer("inspect", "m.safetensors")["preprocess"], "standardize")

    def test_on(self):
        """Samples that are not a table are searched only on request; --tune without a value means on."""
        digits = ["--synth", "digits", "--rows", "300", "--effort", "1", "--centers", "60", "-o", "m"]
        self.assertNotIn("search", self.answer("train", *digits))
        self.assertIn("search", self.answer("train", *digits, "--tune"))
        self.bad(2, "--tune: 'maybe' ", "train", *QUICK, "--tune", "maybe", "-o", "m")

    def test_removed(self):
        self.bad(2, "no command 'tune'", "tune", *TABLE)
        for option in ("--criterion", "--kernels", "--average-models"):
            self.bad(2, "train: .*" + option, "train", *TABLE, option, "1", "-o", "m")

    def test_threads_and_repetitions_give_the_same_bytes(self):
        models = []
        for threads in ("1", "2", "2"):
            self.good("train", *QUICK, "--threads", threads, "-o", "m.safetensors", "-q")
            models.append(self.read("m.safetensors"))
        self.assertEqual(models[0], models[1])
        self.assertEqual(models[1], models[2])
        self.good("train", *QUICK, "--seed", "5", "-o", "m.safetensors", "-q")
        self.assertNotEqual(self.read("m.safetensors"), models[0])

    def test_metric_relative_to_a_configuration(self):
        """The path of a metric in a configuration file is relative to the folder of that file, or else to the current folder."""
        for folder in ("found", "jobs"):
            os.mkdir(self.path(folder))
        self.write("found/w.csv", "0.1,2,0.1,2,0.1\n")
        self.write("found/best.json", json.dumps({"metric": "file:w.csv", "target": "y", "effort": 1, "centers": 150, "quiet": True}))
        self.good("train", "--x", "t.csv", "--config", "found/best.json", "-o", "a.safetensors")
        self.assertIn("metric", self.answer("inspect", "a.safetensors"))
        told = self.run_program("train", "--x", "../t.csv", "--config", "../found/best.json", "-o", "b.safetensors", cwd=self.path("jobs"))
        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertRegex(told.stderr.decode(), r"^mercer: warning: metric .*\n$")
        self.assertEqual(self.read("jobs/b.safetensors"), self.read("a.safetensors"))
        # Version 0.2 wrote paths relative to the current folder.
        options = json.loads(self.read("found/best.json"))
        self.write("found/old.json", json.dumps(dict(options, metric="file:found/w.csv")))
        told = self.run_program("train", "--x", "t.csv", "--config", "found/old.json", "-o", "c.safetensors")
        self.assertEqual(told.returncode, 0)
        self.assertIn("found/w.csv", told.stderr.decode())
        self.assertEqual(self.read("c.safetensors"), self.read("a.safetensors"))
        self.write("found/none.json", json.dumps(dict(options, metric="file:none.npy")))
        self.bad(66, r"found/none\.npy: ", "train", "--x", "t.csv", "--config", "found/none.json", "-o", "d")


class Rows(Search):
    """Groups, times and weights of rows."""

    def test_groups_do_not_leak(self):
        """Whole groups are held out, so a feature that identifies the offset of a group does not lower the error."""
        rng = random.Random(3)
        rows = []
        for group in range(70):
            mark, offset = rng.gauss(0, 1), rng.gauss(0, 1)
            for _ in range(30):
                x = rng.gauss(0, 1)
                rows.append([x, mark, x + 2 * offset, "g%d" % group])
        self.table("g.csv", ["x", "mark", "y", "group"], rows)
        table = ["--x", "g.csv", "--target", "y", "--effort", "1", "--centers", "200"]
        alone = self.train(*table, "--drop", "group")["search"]
        groups = self.train(*table, "--group-column", "group")["search"]
        self.assertEqual((groups["rows"] + groups["held"], groups["held"] % 30), (2100, 0))
        self.assertGreater(groups["error"], 3 * alone["error"])
        # 20 groups are too few for a search.
        self.table("few.csv", ["x", "mark", "y", "group"], [row[:3] + ["g%d" % (i % 20)] for i, row in enumerate(rows)])
        self.assertNotIn("search", self.train("--x", "few.csv", "--target", "y", "--group-column", "group", "--centers", "100"))

    def test_times(self):
        """With times, the latest fifth of the rows is held out."""
        rows, targets = samples(600, 4)
        dates = ["20%02d-%02d-01" % (i // 12, i % 12 + 1) for i in range(600)]
        drifting = [[*x, y + 0.02 * i, dates[i]] for i, (x, y) in enumerate(zip(rows, targets))]
        self.table("d.csv", [*NAMES, "y", "when"], drifting)
        table = ["--x", "d.csv", "--target", "y", "--effort", "1", "--centers", "150"]
        told = self.train(*table, "--time-column", "when")["search"]
        self.assertEqual((told["rows"], told["held"]), (480, 120))
        self.assertGreater(told["error"], 2 * self.train(*table, "--drop", "when")["search"]["error"])
        self.table("w.csv", [*NAMES, "y", "word"], [[*row[:-1], "w%d" % i] for i, row in enumerate(drifting)])
        self.bad(65, "'word'.*number.*date", "train", "--x", "w.csv", "--target", "y", "--time-column", "word", "-o", "m")

    def test_weights(self):
        """Noisy rows with tiny weights hardly affect the search."""
        rng = random.Random(8)
        rows, targets = samples(600, 1)
        weighted = [[*x, y if i % 3 else rng.gauss(0, 9), 1 if i % 3 else 1e-6] for i, (x, y) in enumerate(zip(rows, targets))]
        self.table("s.csv", [*NAMES, "y", "w"], weighted)
        table = ["--x", "s.csv", "--target", "y", "--effort", "1", "--centers", "150"]
        spoiled = self.train(*table, "--drop", "w")["search"]["error"]
        told = self.train(*table, "--weight-column", "w")["search"]["error"]
        self.assertLess(told, 0.5 * spoiled)
        self.assertGreater(self.score(), 0.8)


class Effort(Search):
    """Steps and centers by effort, and time budgets."""

    def test_effort(self):
        """A larger effort takes more steps and more centers."""
        rows, targets = samples(4500, 5)
        self.table("b.csv", [*NAMES, "y"], [[*x, y] for x, y in zip(rows, targets)])
        steps = []
        for effort in ("1", "2"):
            told = self.train("--x", "b.csv", "--target", "y", "--effort", effort)
            self.assertEqual(told["search"]["effort"], int(effort))
            steps.append((len(told["search"]["steps"]), told["centers"]))
        for small, large in zip(*steps):
            self.assertLess(small, large)
        self.assertIn("before training, effort 3", self.good("plan", *TABLE))
        sizes = ["--rows", "100k", "--features", "8", "--memory", "4G"]  # plans from sizes, without a search
        texts = [self.good("plan", *sizes, "--effort", effort) for effort in "123"]
        counts = [int(re.search(r"(?m)^centers +([\d,]+)", text).group(1).replace(",", "")) for text in texts]
        self.assertEqual(counts, sorted(set(counts)))

    def test_values_that_are_refused(self):
        for effort in ("0", "6", "x", "2.5", "-1"):
            self.bad(2, "--effort: ", "train", *TABLE, "--effort", effort, "-o", "m")
            self.bad(2, "--effort: ", "plan", *TABLE, "--effort", effort)
        for budget in ("0s", "0", "-1s", "abc", "1parsec", ""):
            self.bad(2, "--budget: ", "train", *TABLE, "--budget", budget, "-o", "m")
        self.assertFalse(os.path.exists(self.path("m")))

    def test_a_budget_selects_the_effort(self):
        """A budget of an hour selects the largest effort, unless an effort is given."""
        few = [*TABLE, "--rows", "100", "--budget", "1h"]
        for given, effort in ((["--effort", "2"], 2), ([], 5)):
            result = self.run_program("train", *few, *given, "--json", "-q", "-o", "m.safetensors")
            self.assertEqual((result.returncode, result.stderr), (0, b""))
            told = json.loads(result.stdout)
            self.assertEqual((told["search"]["effort"], told["search"]["cut"], told["stopped"]), (effort, False, "finished"))
        for given, origin in (([], "default"), (["--effort", "3"], "given"), (["--budget", "1h", "--effort", "2"], "budget")):
            decisions = self.train(*TABLE, "--rows", "100", *given)["decisions"]
            self.assertEqual([one["origin"] for one in decisions if one["name"] == "effort"], [origin])
            # Every decision is made once, and the number of centers by the stage that chooses them.
            names = [(one["stage"], one["name"]) for one in decisions]
            self.assertEqual(len(names), len(set(names)))
            self.assertEqual([stage for stage, name in names if name == "centers"], ["centers"])
        # The default effort in a printed configuration does not count as given.
        self.write("c.json", self.good("train", *few, "--print-config", "-o", "m.safetensors"))
        self.assertEqual(self.answer("train", "--config", "c.json", "-q")["search"]["effort"], 5)

    def test_a_budget_that_is_too_small(self):
        """A budget that is too small causes a warning and effort 1, but training succeeds with any solver."""
        for solver in ("auto", "cg", "ep4"):
            result = self.run_program("train", *TABLE, "--budget", "1ms", "--solver", solver, "--json", "-q", "-o", "m.safetensors")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertRegex(result.stderr.decode(), "^mercer: warning: budget .*effort 1")
            told = json.loads(result.stdout)
            self.assertEqual((told["search"]["effort"], told["search"]["cut"]), (1, True))
            self.assertGreater(self.score(), 0.5, solver)

    def test_a_budget_counts_from_the_start(self):
        """The budget includes the time before data are read, such as the wait for a configuration from a slow pipe."""
        script = '"$0" train --config <(sleep 1.2; echo "{}") --x t.csv --target y --rows 60 --budget 1s -q -o m.safetensors'
        result = subprocess.run(["bash", "-c", script, PROGRAM], cwd=self.folder, capture_output=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr.decode(), "warning: budget .*effort 1")


class Resumed(Search):
    """Interrupted and resumed searches."""

    long = ["--x", "l.csv", "--target", "y", "--effort", "3", "--centers", "150", "--memory", "1G"]
    mean = [*long[:5], "4", *long[6:]]

    def setUp(self):
        super().setUp()
        rows, targets = samples(2500, 6)
        self.table("l.csv", [*NAMES, "y"], [[*x, y] for x, y in zip(rows, targets)])

    def in_search(self):
        """Return whether the checkpoint belongs to a search."""
        data = self.read("run/checkpoint.safetensors")
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        return "search.memory" in header and "centers" not in header

    def until_checkpoint(self, *arguments):
        """Start a command and wait for the next checkpoint that it writes."""
        path = self.path("run", "checkpoint.safetensors")
        before = os.stat(path).st_ino if os.path.exists(path) else None
        process = subprocess.Popen([PROGRAM, *arguments], cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            if os.path.exists(path) and os.stat(path).st_ino != before:
                break
            time.sleep(0.001)
        return process

    def test_interrupted_searches_end_in_the_same_bytes(self):
        self.good("train", *self.long, "-o", "whole.safetensors", "-q")
        whole = self.read("whole.safetensors")
        train = ["train", *self.long, "--checkpoint", "run", "--checkpoint-every", "0s", "-o", "m.safetensors", "-q"]
        for number in (signal.SIGINT, signal.SIGKILL):
            shutil.rmtree(self.path("run"), ignore_errors=True)
            for command in (train, ["resume", "run", "-q"]):  # interrupted twice
                process = self.until_checkpoint(*command)
                process.send_signal(number)
                _, errors = process.communicate(timeout=60)
                if number == signal.SIGINT:
                    self.assertEqual(process.returncode, 75, errors)
                    self.assertRegex(errors.decode(), r"^mercer: .*: mercer resume run\n$")
                self.assertTrue(self.in_search())
                self.assertFalse(os.path.exists(self.path("m.safetensors")))
            told = self.answer("resume", "run", "--threads", "1")
            self.assertEqual((told["search"]["effort"], told["search"]["cut"]), (3, False))
            self.assertEqual(self.read("m.safetensors"), whole)
            os.remove(self.path("m.safetensors"))

    def test_interrupted_while_a_member_is_fitted(self):
        """The checkpoint stores the first model of the mean and the result of its search; other members are retrained."""
        first = self.answer("train", *self.mean, "-o", "whole.safetensors", "-q")
        train = ["train", *self.mean, "--checkpoint", "run", "--checkpoint-every", "0s", "-o", "m.safetensors", "-q"]
        process = self.until_checkpoint(*train)
        while process.poll() is None and self.in_search():
            time.sleep(0.01)
        time.sleep(0.5)  # a member's search takes seconds
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 75, errors)
        self.assertFalse(os.path.exists(self.path("m.safetensors")))
        told = self.answer("resume", "run", "--threads", "1")
        self.assertEqual(len(told["members"]), 3)
        for name in ("effort", "error", "ridge", "rows", "held", "cut", "sizes", "twice_the_centers", "steps"):
            self.assertEqual(told["search"][name], first["search"][name], name)
        origins = {one["name"]: one["origin"] for one in told["decisions"] if one["stage"] == "search"}
        self.assertEqual(origins["search"], "resumed")
        self.assertEqual(self.read("m.safetensors"), self.read("whole.safetensors"))

    def test_interrupted_without_a_folder(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            train = [PROGRAM, "train", *self.long[:4], "--effort", "5", "-o", "m.safetensors", "-q"]
            process = subprocess.Popen(train, cwd=self.folder, stderr=subprocess.PIPE)
            time.sleep(0.3)
            process.send_signal(number)
            _, errors = process.communicate(timeout=60)
            self.assertEqual(process.returncode, code, errors)
            self.assertRegex(errors.decode(), r"^mercer: interrupted; nothing ")
            self.assertFalse(os.path.exists(self.path("m.safetensors")))

    def test_searches_that_cannot_be_resumed(self):
        train = ["train", *self.long, "--checkpoint", "run", "--checkpoint-every", "0s", "-o", "m.safetensors", "-q"]
        process = self.until_checkpoint(*train)
        process.kill()
        process.communicate()
        self.assertTrue(self.in_search())
        config = json.loads(self.read("run/config.json"))
        for change, pattern in (({"seed": 9}, "checkpoint.*seed 9"),
                                ({"preprocess": "rank"}, "checkpoint.*preprocess rank"),
                                ({"tune": "off"}, "checkpoint.*tune")):
            self.write("run/config.json", json.dumps(dict(config, options=dict(config["options"], **change))))
            self.bad(65, pattern, "resume", "run", "-q")
        self.write("run/config.json", json.dumps(config))
        data = self.read("run/checkpoint.safetensors")
        self.write("run/checkpoint.safetensors", data[:-9])
        self.bad(65, r"checkpoint\.safetensors: ", "resume", "run", "-q")

    def test_a_resumed_run_has_the_full_budget(self):
        """A resumed run has the full budget."""
        train = ["train", *self.long[:4], "--centers", "150", "--effort", "1", "--budget", "1h", "--checkpoint", "run", "-o", "m.safetensors", "-q"]
        self.good(*train)
        os.remove(self.path("m.safetensors"))
        os.remove(self.path("run", "checkpoint.safetensors"))  # as if killed before the first checkpoint: the search is repeated
        config = json.loads(self.read("run/config.json"))
        self.assertEqual(config["options"]["budget"], "1h")
        self.write("run/config.json", json.dumps(dict(config, finished=False)))
        result = self.run_program("resume", "run", "-q", "--json")
        self.assertEqual((result.returncode, result.stderr), (0, b""))
        self.assertEqual(json.loads(result.stdout)["stopped"], "finished")

    def test_finished_runs_end_in_the_same_bytes(self):
        for name, killed in (("kept", False), ("lost", True)):
            self.good("train", *QUICK, "-o", "whole.safetensors", "-q")
            self.good("train", *QUICK, "--checkpoint", name, "-o", "m.safetensors", "-q")
            self.assertEqual(self.read("m.safetensors"), self.read("whole.safetensors"))
            os.remove(self.path("m.safetensors"))
            if killed:  # as if stopped before the first checkpoint: the search is repeated
                os.remove(self.path(name, "checkpoint.safetensors"))
            self.good("resume", name, "-q")
            self.assertEqual(self.read("m.safetensors"), self.read("whole.safetensors"))

    def test_resumed_classifiers_have_the_same_temperature(self):
        """The checkpoint stores the result of the search, which the cross-validated calibration needs."""
        rows, targets = samples(300, 1)
        self.table("c.csv", [*NAMES, "y"], [[*x, "high" if y > 1 else "low"] for x, y in zip(rows, targets)])
        options = ["--x", "c.csv", "--target", "y", "--effort", "1"]
        self.good("train", *options, "-o", "whole.safetensors", "-q")
        self.assertNotIn("(not calibrated)", self.good("eval", "-m", "whole.safetensors", "--x", "c.csv", "--target", "y"))
        self.good("train", *options, "--checkpoint", "run", "-o", "m.safetensors", "-q")
        self.assertEqual(self.read("m.safetensors"), self.read("whole.safetensors"))
        os.remove(self.path("m.safetensors"))
        self.good("resume", "run", "-q")
        self.assertEqual(self.read("m.safetensors"), self.read("whole.safetensors"))


if __name__ == "__main__":
    main()
