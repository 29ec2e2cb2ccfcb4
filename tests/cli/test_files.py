# SPDX-License-Identifier: BSD-3-Clause
"""test_files.py MERCER: inputs are never overwritten, and a run that does not start leaves all files unchanged."""
import json
import os
import unittest

from support import Case, main


class Clashes(Case):
    """An output that is also an input, under any name, is rejected before any file is opened."""

    def setUp(self):
        super().setUp()
        self.make_npy()
        self.make_csv("d.csv")
        self.good("train", "--x", "x.npy", "--y", "y.npy", "-o", "m.safetensors", "--log", "run.jsonl", "-q")
        os.symlink("x.npy", self.path("soft.npy"))
        os.link(self.path("x.npy"), self.path("hard.npy"))
        os.makedirs(self.path("sub"))

    def tree(self):
        return {name: self.read(name) for name in sorted(os.listdir(self.folder)) if os.path.isfile(self.path(name))}

    def refused(self, pattern, *arguments):
        before = self.tree()
        self.bad(2, pattern, *arguments)
        self.assertEqual(self.tree(), before, arguments)

    def test_predict_and_eval(self):
        for name in ("x.npy", "soft.npy", "hard.npy", "./x.npy", "sub/../x.npy", os.path.join(self.folder, "x.npy")):
            self.refused(r"--output: .* read as --x", "predict", "-m", "m.safetensors", "--x", "x.npy", "-o", name)
        self.refused(r"is also read as --x", "predict", "-m", "m.safetensors", "--x", "soft.npy", "-o", "x.npy")
        self.refused(r"is also read as --x", "predict", "-m", "m.safetensors", "--x", "[x].npy", "-o", "x.npy")
        os.symlink("m.safetensors", self.path("m.npy"))
        self.refused(r"is also read as --model", "predict", "-m", "m.safetensors", "--x", "x.npy", "-o", "m.npy")

    def test_train(self):
        train = ("train", "--x", "x.npy", "--y", "y.npy")
        self.refused(r"--output: x\.npy is also read as --x", *train, "-o", "x.npy")
        self.refused(r"--output: y\.npy is also read as --y", *train, "-o", "y.npy")
        self.refused(r"--log: x\.npy is also read as --x", *train, "-o", "m2", "--log", "x.npy")
        self.refused(r"--log: d\.csv is also read as --x", "train", "--x", "d.csv", "--target", "color", "-o", "m2", "--log", "d.csv")
        self.refused(r"--log: m2 is also written as --output", *train, "-o", "m2", "--log", "m2")
        self.refused(r"is also written as --", *train, "-o", "m2", "--log", "sub/../m2")
        self.write("c.json", json.dumps({"epochs": 1}))
        self.refused(r"--output: c\.json is also read as --config", *train, "--config", "c.json", "-o", "c.json")
        self.refused(r"is also read as --center-method", *train, "--center-method", "file:d.csv", "-o", "d.csv")
        self.write("run/config.json", json.dumps({"x": self.path("x.npy"), "y": self.path("y.npy")}))
        self.refused(r"--checkpoint: .* is also read as --config", "train", "--config", "run/config.json", "--checkpoint", "run", "--force", "-o", "m2")
        self.refused(r"--checkpoint: .* is also written as --output|--output: .* is also written as --checkpoint", *train, "--checkpoint", "sub", "-o", "sub/checkpoint.safetensors")

    def test_patterns(self):
        """An output that matches an input pattern is rejected, because the next command would read it as data."""
        os.makedirs(self.path("pt"))
        os.rename(self.path("x.npy"), self.path("pt/part-0.npy"))
        os.symlink("pt", self.path("link"))
        train = ("train", "--x", "pt/part-*.npy", "--y", "y.npy", "--tune", "off", "-q")
        before = sorted(os.listdir(self.path("pt")))
        matched = r"--x pt/part-\*\.npy"
        for name in ("pt/part-9.npy", "./pt/part-.npy", "link/part-9.npy", os.path.join(self.folder, "pt", "part-1.npy")):
            self.refused(r"--output: .*" + matched, *train, "-o", name)
            self.refused(r"--log: .*" + matched, *train, "-o", "m2", "--log", name)
            self.refused(r"--checkpoint: .*" + matched, *train, "-o", "m2", "--checkpoint", name)
        self.refused(r"--checkpoint: .*config\.json matches --x pt/\*", "train", "--x", "pt/*", "--y", "y.npy", "-o", "m2", "--checkpoint", "pt")
        self.refused(r"--output: pt/part-1\.npy matches --x", "predict", "-m", "m.safetensors", "--x", "pt/part-?.npy", "-o", "pt/part-1.npy")
        self.refused(r"--output: pt/part-1\.npy matches --x", "convert", "--x", "pt/part-[0-9].npy", "-o", "pt/part-1.npy")
        self.refused(r"--output: pt/part-1\.npy matches --x", "centers", "--x", "pt/part-*.npy", "--centers", "3", "-o", "pt/part-1.npy")
        self.refused(r"--output: pt/part-0\.npy is also read as --x", *train, "-o", "pt/part-0.npy")
        self.assertEqual(sorted(os.listdir(self.path("pt"))), before)
        # Allowed: other names, other folders, hidden names, and two digits for a pattern of one character.
        for name in ("pt/model", "part-9.npy", "pt/.part-9.npy"):
            self.good(*train, "-o", name)
        self.good("predict", "-m", "m.safetensors", "--x", "pt/part-?.npy", "-o", "pt/part-10.npy", "-q")

    def test_others(self):
        self.refused(r"--output: run\.jsonl is also read as LOG", "report", "run.jsonl", "-o", "run.jsonl")
        self.refused(r"--output: x\.npy is also read as --x", "convert", "--x", "x.npy", "-o", "x.npy")
        self.refused(r"--y-output: z\.npy is also written as --output|--output: z\.npy is also written as --y-output", "synth", "spirals", "-o", "z.npy", "--y-output", "z.npy")
        self.refused(r"--output: x\.npy is also read as --x", "centers", "--x", "x.npy", "--centers", "3", "-o", "x.npy")
        self.make_folder("images", zipped=False)
        os.symlink("nowhere", self.path("images/a-link-ubyte"))  # a dangling link, which is not an input
        self.refused(r"is also read as --data", "convert", "--data", "images", "-o", "t.npy", "--y-output", "images/train-labels-idx1-ubyte")

    def test_outputs_without_conflicts(self):
        os.makedirs(self.path("r"))
        self.good("train", "--x", "./x.npy", "--y", "y.npy", "--checkpoint", "r", "-o", "r/m.safetensors", "--log", "r/log.jsonl", "-q")
        self.good("resume", "r", "--log", "r/log.jsonl", "-q")
        self.good("predict", "-m", "m.safetensors", "--x", "x.npy", "-o", "p.npy", "-q")
        self.good("predict", "-m", "m.safetensors", "--x", "x.npy", "-o", "p.npy", "-q")  # overwrites an earlier output
        self.assertTrue(self.good("predict", "-m", "m.safetensors", "--x", "x.npy", "-o", "-", "-q").startswith("0\n1\n"))
        # Special files, folders and names in the root folder are not clashes; these commands fail for other reasons.
        self.bad(65, r"/proc/version", "predict", "-m", "m.safetensors", "--x", "/proc/version", "-o", "p.npy")
        self.bad(66, r"none", "predict", "-m", "none", "--x", "x.npy", "-o", "/p.npy")
        self.bad(66, r"none", "predict", "-m", "none", "--x", "x.npy", "-o", "none/", "--output-format", "csv")
        self.bad(74, r"folder", "predict", "-m", "none", "--x", "x.npy", "-o", ".", "--output-format", "csv")


class Logs(Case):
    """An existing log is continued, but only by a run that starts."""

    def test_a_run_that_does_not_begin(self):
        old = '{"event": "start"}\n'
        self.write("old.jsonl", old)
        self.make_npy()
        self.bad(66, r"typo\.npy", "train", "--x", "typo.npy", "--y", "y.npy", "-o", "m", "--log", "old.jsonl")
        self.assertEqual(self.read("old.jsonl").decode(), old)
        self.bad(66, r"typo\.npy", "train", "--x", "typo.npy", "--y", "y.npy", "-o", "m", "--log", "new.jsonl")
        self.assertFalse(os.path.exists(self.path("new.jsonl")))

    def test_a_second_run_is_added(self):
        self.make_npy()
        train = ("train", "--x", "x.npy", "--y", "y.npy", "-o", "m", "--log", "run.jsonl", "-q")
        self.good(*train)
        first = self.read("run.jsonl")
        self.good(*train, "--solver", "direct")
        both = self.read("run.jsonl")
        self.assertTrue(both.startswith(first))
        events = [json.loads(line)["event"] for line in both.decode().splitlines()]
        self.assertEqual(events.count("start"), 2)
        self.good("report", "run.jsonl", "-o", "page.html", "-q")

    def test_no_log(self):
        self.make_npy()
        self.write("notes.txt", "dear diary\n")
        self.bad(2, r"--log: notes\.txt", "train", "--x", "x.npy", "--y", "y.npy", "-o", "m", "--log", "notes.txt")
        self.assertEqual(self.read("notes.txt"), b"dear diary\n")


if __name__ == "__main__":
    main()
