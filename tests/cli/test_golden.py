#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_golden.py MERCER: models and checkpoints of every version (tests/model/golden) give the recorded predictions, and commands
print the recorded texts (tests/cli/golden).

Predictions are compared byte by byte: kernel products have the same bits on every machine (docs/architecture.md).
MERCER_GOLDEN=write replaces the recorded texts by those of this program; check the difference before you commit it.
"""
import os
import re
import shutil

from support import Case, main

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "model", "golden")
PREDICTIONS = [
    ("classes.safetensors", "classes.csv", [], "classes.npy"),
    ("classes.safetensors", "classes.csv", ["--scores"], "scores.npy"),
    ("values.safetensors", "values.csv", [], "values.npy"),
    ("run/checkpoint.safetensors", "classes.csv", ["--scores"], "checkpoint.npy"),
    ("gaps.safetensors", "gaps.csv", [], "gaps.npy"),
    ("means.safetensors", "means.csv", ["--scores"], "means.npy"),
]
TEXTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden")
COMMANDS = {
    "overview": ["--help"],
    "eval-classes": ["eval", "-m", "classes.safetensors", "--x", "classes.csv"],
    "eval-values": ["eval", "-m", "values.safetensors", "--x", "values.csv"],
    "inspect": ["inspect", "classes.safetensors"],
    "inspect-means": ["inspect", "means.safetensors"],
    "plan": ["plan", "--rows", "50000", "--features", "20", "--centers", "2000", "--memory", "1G", "--threads", "2", "--solver", "ep4"],
    "predict": ["predict", "-m", "classes.safetensors", "--x", "classes.csv", "-o", "-"],
}
UNSTEADY = re.compile(r"(?<=^time) .*$| in [\d.]+ s$", re.MULTILINE)  # measured times
FEWER = {"0.1": 4, "0.2": 5}  # 0.1 did not support missing values, and 0.2 did not support prices


class Golden(Case):
    def setUp(self):
        super().setUp()
        self.versions = sorted(os.listdir(GOLDEN))
        for version in self.versions:
            shutil.copytree(os.path.join(GOLDEN, version), self.path(version))

    def test_versions(self):
        own = self.good("--version").split()[1]
        self.assertIn("0.1", self.versions)
        self.assertIn(".".join(own.split(".")[:2]), self.versions, "tests/model/make_golden.py makes those of a version")

    def test_predictions(self):
        for version in self.versions:
            for model, data, more, wanted in PREDICTIONS[: FEWER.get(version)]:
                with self.subTest(version=version, model=model, more=more):
                    self.good("predict", "-m", model, "--x", data, *more, "-o", "found.npy", "-q", cwd=self.path(version))
                    self.assertEqual(self.read(version + "/found.npy"), self.read(version + "/" + wanted))

    def test_inspect(self):
        for version in self.versions:
            found = self.answer("inspect", self.path(version, "classes.safetensors"))
            self.assertEqual(found["labels"], ["cat", "dog", "élan"])
            self.assertEqual(found["feature_names"], ["a", "b", "c"])
            self.assertTrue(found["header"]["__metadata__"]["mercer_version"].startswith(version + "."))

    def test_texts(self):
        """The texts that commands print for a model of this version. A plan depends on the instruction set."""
        own = ".".join(self.good("--version").split()[1].split(".")[:2])
        for name, arguments in COMMANDS.items():
            with self.subTest(name=name):
                found = UNSTEADY.sub(" ...", self.good(*arguments, cwd=self.path(own), environment={"MERCER_ISA": "scalar"}))
                path = os.path.join(TEXTS, name + ".txt")
                if os.environ.get("MERCER_GOLDEN") == "write":
                    with open(path, "w", encoding="utf-8") as file:
                        file.write(found)
                with open(path, encoding="utf-8") as file:
                    self.assertEqual(found, file.read())
        self.assertEqual({name[: -len(".txt")] for name in os.listdir(TEXTS)}, set(COMMANDS))

    def test_a_changed_byte_is_detected(self):
        folder = self.path(self.versions[0])
        with open(os.path.join(folder, "values.safetensors"), "r+b") as file:
            file.seek(-3, os.SEEK_END)
            byte = file.read(1)
            file.seek(-3, os.SEEK_END)
            file.write(bytes([byte[0] ^ 1]))
        self.bad(65, "values.safetensors: .*checksum", "predict", "-m", "values.safetensors", "--x", "values.csv", "-o", "f.npy", cwd=folder)

    def test_interrupted_runs_go_on_or_are_refused(self):
        """Interrupted runs of this version are resumed. Other runs are rejected with their version, and their files are not changed."""
        own = ".".join(self.good("--version").split()[1].split(".")[:2])
        for version in self.versions:
            with self.subTest(version=version):
                folder = self.path(version)
                config = self.read(version + "/run/config.json").decode().replace("@FOLDER@", folder)
                self.write(version + "/run/config.json", config)
                before = self.read(version + "/run/checkpoint.safetensors")
                if version != own:
                    self.bad(65, "config.json: .*version " + re.escape(version), "resume", "run", cwd=folder)
                    self.assertEqual(self.read(version + "/run/checkpoint.safetensors"), before)
                    continue
                self.good("resume", "run", cwd=folder)
                found = self.answer("eval", "-m", "resumed.safetensors", "--x", "classes.csv", "--target", "kind", cwd=folder)
                self.assertGreater(found["accuracy"], 0.9)


if __name__ == "__main__":
    main()
