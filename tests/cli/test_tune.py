# SPDX-License-Identifier: BSD-3-Clause
"""test_tune.py MERCER: the search for a model, alone and before a training."""
import json
import math
import os
import random

from support import Case, main

NAMES = ["a", "b", "c", "d", "e"]
OPTIONS = ["--x", "t.csv", "--target", "y", "--kernels", "laplace-l1,gaussian", "--learn-features", "1", "--centers", "150"]


def rows(n, seed):
    """y depends on two of five features."""
    rng = random.Random(seed)
    samples = [[rng.gauss(0, 1) for _ in NAMES] for _ in range(n)]
    return samples, [math.sin(2 * x[1]) + abs(x[3]) for x in samples]


class Tune(Case):
    """Searches."""

    def setUp(self):
        super().setUp()
        for name, n, seed in (("t.csv", 600, 1), ("v.csv", 200, 2)):
            samples, targets = rows(n, seed)
            lines = [",".join("%.6f" % v for v in x + [y]) + ",g%d" % (i // 20) for i, (x, y) in enumerate(zip(samples, targets))]
            self.write(name, "\n".join([",".join(NAMES + ["y", "group"])] + lines) + "\n")
        self.options = [*OPTIONS, "--drop", "group"]

    def test_search_and_training(self):
        told = self.answer("train", *self.options, "--tune", "on", "--log", "run.jsonl", "-o", "m.safetensors")
        search = told["search"]
        self.assertTrue(search["whole"])
        self.assertEqual(search["best"]["error"], min(t["error"] for t in search["tries"]))
        self.assertEqual({t["kernel"] for t in search["tries"]}, {"laplace-l1", "gaussian"})
        self.assertEqual({t["preprocess"] for t in search["tries"]}, {"standardise", "rank"})
        low, high = search["flat"]["multiple"]
        self.assertTrue(low <= search["best"]["multiple"] <= high)
        options = [one for one in self.options if one not in ("--kernels", "laplace-l1,gaussian")]
        self.good("train", *options, "--tune", "off", "-o", "plain.safetensors", "-q")
        r2 = [self.answer("eval", "-m", name, "--x", "v.csv")["r2"] for name in ("plain.safetensors", "m.safetensors")]
        self.assertGreater(r2[1], r2[0])
        self.good("report", "run.jsonl", "-o", "page.html")
        page = self.read("page.html").decode()
        for words in ("the best of each kernel and preprocessing", "Error over bandwidth and ridge"):
            self.assertIn(words, page)
        with open(os.path.join(self.folder, "run.jsonl")) as file:
            events = [json.loads(line) for line in file]
        self.assertIn("search", [event["event"] for event in events])
        self.assertIn("judged by kfold", [event for event in events if event["event"] == "plan"][0]["text"])

    def test_default(self):
        """A table is searched unless something of it is given."""
        table = ["--x", "t.csv", "--target", "y", "--drop", "group", "--centers", "60"]
        tuned = ["train", *table, "--budget", "0.02s", "-o", "m.safetensors"]
        self.assertIn("tuned: ", self.run_program(*tuned).stderr.decode())
        self.assertNotIn("\ntuned: ", self.run_program(*tuned, "--bandwidth", "2").stderr.decode())
        self.assertIn("\ntuned: before it", self.good("plan", *table))
        for given, why in ((["--bandwidth", "2"], "the bandwidth"), (["--tune", "off"], "it is off")):
            self.assertIn("\nnot tuned: " + why, self.good("plan", *table, *given))

    def test_options_that_were_found_give_the_same_bytes(self):
        self.good("train", *self.options, "--tune", "on", "--threads", "2", "-o", "m.safetensors", "-q")
        shown = self.good("tune", *self.options, "--threads", "1", "-o", "best.json")
        self.assertIn("laplace-l1", shown)
        self.assertIn("within 1 %", shown)
        found = json.loads(self.read("best.json"))
        self.assertTrue({"kernel", "preprocess", "lambda"} <= set(found))
        plain = ["--x", "t.csv", "--target", "y", "--drop", "group", "--centers", "150"]
        self.good("train", *plain, "--config", "best.json", "-o", "again.safetensors", "-q")
        self.assertEqual(self.read("again.safetensors"), self.read("m.safetensors"))

    def test_options_that_were_found_serve_in_any_folder(self):
        """The metric is looked for beside the options, wherever the program is started."""
        os.mkdir(self.path("found"))
        os.mkdir(self.path("jobs"))
        self.good("tune", *self.options, "-o", "found/best.json")
        self.assertEqual(json.loads(self.read("found/best.json"))["metric"], "file:best.json.metric.npy")
        plain = ["--target", "y", "--drop", "group", "--centers", "150", "-q"]
        self.good("train", "--x", "t.csv", *plain, "--config", "found/best.json", "-o", "a.safetensors")
        told = self.run_program("train", "--x", "../t.csv", *plain, "--config", "../found/best.json", "-o", "b.safetensors",
                                cwd=self.path("jobs"))
        self.assertEqual((told.returncode, told.stderr), (0, b""))
        self.assertEqual(self.read("jobs/b.safetensors"), self.read("a.safetensors"))
        # 0.2 wrote the path from the current folder
        options = json.loads(self.read("found/best.json"))
        self.write("found/old.json", json.dumps(dict(options, metric="file:found/best.json.metric.npy")))
        told = self.run_program("train", "--x", "t.csv", *plain, "--config", "found/old.json", "-o", "c.safetensors")
        self.assertEqual(told.returncode, 0)
        self.assertIn("using found/best.json.metric.npy of the current folder", told.stderr.decode())
        self.assertEqual(self.read("c.safetensors"), self.read("a.safetensors"))
        self.write("found/none.json", json.dumps(dict(options, metric="file:none.npy")))
        self.bad(66, r"found/none\.npy: ", "train", "--x", "t.csv", *plain, "--config", "found/none.json", "-o", "d")

    def test_average(self):
        """The mean of the best models: one file, which is used like any other."""
        train = ["train", "--x", "t.csv", "--target", "y", "--drop", "group", "--rows", "300", "--centers", "60", "--kernels", "laplace-l1,gaussian",
                 "--learn-features", "1", "--tune", "on", "-o", "m.safetensors"]
        told = self.run_program(*train, "--average-models", "3", "--threads", "2").stderr.decode()
        self.assertIn("averaged: 3 models", told)
        first = self.read("m.safetensors")
        self.good(*train, "--average-models", "3", "--threads", "1", "-q")
        self.assertEqual(self.read("m.safetensors"), first)
        found = self.answer("inspect", "m.safetensors")
        self.assertEqual((len(found["members"]), found["training"]["members"]), (3, 3))
        self.assertEqual(len({(m["kernel"].split(":")[0], m["preprocess"]) for m in found["members"]}), 3)
        self.assertIn("averaged with", self.good("inspect", "m.safetensors"))
        self.assertGreater(self.answer("eval", "-m", "m.safetensors", "--x", "v.csv")["r2"], 0.5)
        self.bad(2, r"--average-models: average_models is 9", *train, "--average-models", "9")
        self.bad(2, r"tune is off", "train", *self.options[:4], "--tune", "off", "--average-models", "2", "-o", "n.safetensors")

    def test_resumed_runs_end_in_the_same_bytes(self):
        few = ["--rows", "200", "--learn-features", "1", "--tune", "on"]
        for run, how in (("asked", few), ("auto", ["--rows", "500", "--budget", "0.02s", "--centers", "60"])):
            options = ["--x", "t.csv", *self.options[2:6], "--drop", "group", *how]
            self.good("train", *options, "-o", "whole.safetensors", "-q")
            self.good("train", *options, "--checkpoint", run, "-o", "m.safetensors", "-q")
            os.remove(self.path("m.safetensors"))
            if run == "auto":  # killed before there was a checkpoint: the search is made again
                os.remove(self.path(run, "checkpoint.safetensors"))
            self.good("resume", run, "-q")
            self.assertEqual(self.read("m.safetensors"), self.read("whole.safetensors"))

    def test_resumed_classifiers_have_the_same_temperature(self):
        """Probabilities are cross-validated before the training, with what the search found, and the checkpoint keeps it."""
        lines = self.read("t.csv").decode().splitlines()
        words = [line.split(",") for line in lines[1:301]]
        rows = [",".join(row[:5] + ["high" if float(row[5]) > 1 else "low"]) for row in words]
        self.write("c.csv", "\n".join([",".join(NAMES + ["y"])] + rows) + "\n")
        options = ["--x", "c.csv", "--target", "y", "--learn-features", "1", "--tune", "on", "--kernels", "laplace-l1,gaussian"]
        self.good("train", *options, "-o", "whole.safetensors", "-q")
        self.assertNotIn("(not calibrated)", self.good("eval", "-m", "whole.safetensors", "--x", "c.csv", "--target", "y"))
        self.good("train", *options, "--checkpoint", "run", "-o", "m.safetensors", "-q")
        self.assertEqual(self.read("m.safetensors"), self.read("whole.safetensors"))
        os.remove(self.path("m.safetensors"))
        self.good("resume", "run", "-q")
        self.assertEqual(self.read("m.safetensors"), self.read("whole.safetensors"))

    def test_groups_and_times(self):
        told = self.answer("tune", *OPTIONS, "--group-column", "group", "--criterion", "holdout")
        self.assertEqual(told["held"] % 20, 0)  # groups are whole
        self.bad(2, "groups together", "tune", *OPTIONS, "--group-column", "group", "--criterion", "loo")
        told = self.answer("tune", *OPTIONS, "--drop", "group", "--time-column", "a")
        self.assertEqual(told["held"], 120)
        self.bad(65, "neither a number nor a date", "tune", *OPTIONS, "--time-column", "group")

    def test_budget(self):
        text = self.good("tune", *self.options, "--budget", "1e-9")
        self.assertIn("too small for one candidate", text)
        self.bad(2, "--criterion", "tune", *self.options, "--criterion", "guess")
        self.bad(2, "tune asks for a search, but bandwidth is given", "train", *self.options, "--tune", "on", "--bandwidth", "3", "-o", "m")
        self.bad(2, "--kernels: .*ntk", "tune", "--x", "t.csv", "--target", "y", "--kernels", "laplace,ntk")


if __name__ == "__main__":
    main()
