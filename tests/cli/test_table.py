# SPDX-License-Identifier: BSD-3-Clause
"""Output generated from the table of options: help, manual pages, completions, suggestions, configuration."""
import json
import os
import re
import shutil
import subprocess
import sys
import unittest

from support import PROGRAM, Case, main

COMMANDS = ["train", "resume", "predict", "eval", "plan", "inspect", "centers", "synth", "convert", "bench", "demo"]
COMMANDS += ["report", "completions", "help"]


class Help(Case):
    def options(self, command):
        """Return the long option names in the full help of a command, in order."""
        return self.names(self.good(command, "--help", "all"))

    def names(self, text):
        return re.findall(r"^(?:  -\w, |      )--([a-z-]+)", text, re.M)

    def test_common_options(self):
        """The help of train shows 12 options and an example on one screen; --help all shows all."""
        text = self.good("train", "--help", environment={"COLUMNS": "80"})
        self.assertEqual(len(self.names(text)), 12)
        self.assertLessEqual(len(text.splitlines()), 24)
        self.assertLessEqual(max(map(len, text.splitlines())), 80)
        self.assertIn("mercer train houses.csv --target price\n", text)
        self.assertIn("All options: mercer train --help all", text)
        everything = self.good("train", "--help", "all")
        self.assertLess(set(self.names(text)), set(self.names(everything)))
        for same in (["train", "--help=all"], ["help", "train", "all"], ["train", "-h", "all"]):
            self.assertEqual(self.good(*same), everything)
        self.assertEqual(self.good("help", "train", environment={"COLUMNS": "80"}), text)
        self.bad(2, "help: .*'more'.*mercer help train all", "help", "train", "more")
        for command in ("predict", "eval", "explain", "plan"):
            text = self.good(command, "--help", environment={"COLUMNS": "80"})
            self.assertLessEqual(len(text.splitlines()), 24, command)
            self.assertLess(set(self.names(text)), set(self.options(command)))

    def test_overview_names_every_command_and_code(self):
        text = self.good("--help")
        for command in COMMANDS:
            self.assertRegex(text, r"(?m)^  %s +\w" % command)
        for code in ("0", "1", "2", "65", "66", "70", "74", "75", "129, 130, 143"):
            self.assertRegex(text, r"(?m)^  %s +\w" % code)
        self.assertEqual(text, self.good("help"))

    def test_no_command_is_usage(self):
        result = self.run_program()
        self.assertEqual(result.returncode, 2)
        self.assertIn(b"usage: mercer COMMAND", result.stderr)

    def test_names_people_type(self):
        train = self.options("train")
        for name in "x y x-val y-val data kernel bandwidth centers center-method solver epochs seed threads".split():
            self.assertIn(name, train)
        for name in "device precision memory output log config checkpoint checkpoint-every json quiet".split():
            self.assertIn(name, train)
        self.assertLess({"model", "x", "y", "data", "json"}, set(self.options("eval")))
        self.assertLess({"model", "x", "output", "scores"}, set(self.options("predict")))

    def test_man_pages_and_completions_have_the_same_options(self):
        bash, fish, zsh = (self.good("completions", shell) for shell in ("bash", "fish", "zsh"))
        for command in COMMANDS:
            names = self.options(command)
            self.assertEqual(len(names), len(set(names)))
            page = self.good("man", command).replace("\\-", "-")
            self.assertEqual(sorted(set(re.findall(r"(?m)^\.B (?:-\w, )?--([a-z-]+)", page))), sorted(names), command)
            block = re.search(r"(?ms)^    %s\)$(.*?)esac ;;" % command, bash).group(1)
            words = re.search(r"\*\) words='([^']*)'", block).group(1).split()
            self.assertEqual([word[2:] for word in words], names)
            found = re.findall(r"(?m)^complete -c mercer -n '__fish_seen_subcommand_from %s' -l ([a-z-]+)" % command, fish)
            self.assertEqual(found, names)
            block = re.search(r"(?ms)^    %s\)$(.*?);;" % command, zsh).group(1)
            self.assertEqual(re.findall(r"(?m)^ +'(?:\([^)]*\)'\{-\w,)?--([a-z-]+)", block), names)

    def test_bash_completes(self):
        script = self.write("complete.bash", self.good("completions", "bash"))

        def complete(*words):
            line = "source %s; COMP_WORDS=(mercer %s); COMP_CWORD=%d; _mercer; echo ${COMPREPLY[@]}"
            quoted = " ".join("'%s'" % word for word in words)
            out = subprocess.run(
                ["bash", "-c", line % (script, quoted, len(words))], stdout=subprocess.PIPE, check=True, cwd=self.folder
            )
            return out.stdout.decode().split()

        self.assertEqual(complete("tr"), ["train"])
        self.assertEqual(complete("train", "--center-m"), ["--center-method"])
        self.assertEqual(complete("train", "--solver", "ep3"), ["ep3", "ep3-exact"])
        self.assertEqual(complete("train", "--x", "comp"), ["complete.bash"])
        self.assertEqual(complete("train", "comp"), ["complete.bash"])
        self.assertEqual(complete("predict", "m.safetensors", "comp"), ["complete.bash"])
        self.assertEqual(complete("synth", "di"), ["digits"])

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not here")
    def test_zsh_reads_its_completions(self):
        script = self.write("_mercer", self.good("completions", "zsh"))
        subprocess.run(["zsh", "-n", script], check=True)

    @unittest.skipUnless(shutil.which("man"), "man is not here")
    def test_man_reads_its_pages(self):
        for command in COMMANDS:
            page = self.write("page.1", self.good("man", command))
            out = subprocess.run(["man", "--warnings", "-l", page], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
            self.assertEqual(out.stderr, b"")
            self.assertIn(b"EXIT STATUS", out.stdout)

    def test_docs_are_up_to_date(self):
        root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
        subprocess.run([sys.executable, os.path.join(root, "tools", "make-cli-docs"), PROGRAM, "--check"], check=True)
        with open(os.path.join(root, "docs", "cli.md"), encoding="utf-8") as file:
            page = file.read().replace("`", "")
        codes = re.findall(r"(?m)^  (\d[\d, ]*\d|\d) +(.*)$", self.good("--help").split("Exit codes:")[1])
        self.assertEqual(len(codes), 10)
        for code, meaning in codes:
            self.assertIn("| %s | %s |" % (code, meaning), page)

    def test_all_pages_into_a_folder(self):
        self.write("man/keep", "")
        self.good("man", "--directory", "man")
        self.assertIn(b"mercer\\-train", self.read("man/mercer.1"))
        for command in COMMANDS:
            self.assertIn(command.encode(), self.read("man/mercer-%s.1" % command))


class Mistakes(Case):
    def test_suggestions(self):
        self.bad(2, r"'tarin'.*'train'\?", "tarin")
        self.bad(2, r"no command 'zebra'; see mercer --help", "zebra")
        self.bad(2, r"--epoch\b.*--epochs\?", "train", "--epoch", "3")
        self.bad(2, r"--center-methd\b.*--center-method\?", "train", "--center-methd=kmeans")
        self.bad(2, r"unknown option --zzz; see mercer train --help", "train", "--zzz")
        self.bad(2, r"unknown option -z; see mercer train --help", "train", "-z")
        self.bad(2, r"--x: .*mercer train --x", "--x", "file")

    def test_values(self):
        self.bad(2, r"--epochs: 'x' .*whole number", "train", "--epochs", "x")
        self.bad(2, r"--epochs: '-3' .*whole number", "train", "--epochs", "-3")
        self.bad(2, r"--memory: '8X' .*size", "train", "--memory", "8X")
        self.bad(2, r"--solver: 'magic'.* auto, krr, direct", "train", "--solver=magic")
        self.bad(2, r"--average: 'maybe'.* on, off, auto", "train", "--average", "maybe")
        self.bad(2, r"--checkpoint-every: '5 days' .*time", "train", "--checkpoint-every", "5 days")
        self.bad(2, r"--lambda: 'nan' .*number", "train", "--lambda", "nan")
        self.bad(2, r"--ridge: '-1' .*>= 0", "train", "--ridge", "-1")
        self.bad(2, r"--json: unexpected value '1'", "train", "--json=1")
        self.bad(2, r"train: --epochs .*value", "train", "--epochs")
        self.bad(2, r"--x: .*empty", "train", "--x", "")

    def test_numbers_with_suffixes(self):
        values = json.loads(
            self.good("train", "--print-config", "--centers", "20k", "--rows", "1.5M", "--memory", "8GiB", "--epochs=3")
        )
        self.assertEqual((values["centers"], values["rows"], values["epochs"]), (20000, 1500000, 3))
        self.bad(2, "--centers: .*whole number", "train", "--centers", "1.5")
        self.bad(2, "--centers: .*whole number", "train", "--centers", "1e400")
        self.bad(2, "--centers: .*whole number", "train", "--centers", "99999999999999999999")

    def test_positional(self):
        self.bad(2, r"inspect: FILE is missing: mercer inspect FILE", "inspect")
        self.bad(2, r"convert: unexpected argument 'data.csv'", "convert", "data.csv")
        self.bad(2, r"completions: 'tcsh'.* bash, zsh, fish", "completions", "tcsh")
        self.bad(66, r"--x", "inspect", "--", "--x")

    def test_missing_options_before_data_are_read(self):
        # The files do not exist either, but missing options are reported first.
        self.bad(2, r"centers: -o, --output FILE is missing", "centers", "--x", "none.npy", "--centers", "5")
        self.bad(2, r"mercer train TABLE.*--data DIR.*--synth SPEC", "train", "-o", "m")
        self.bad(2, r"eval: .*model.*mercer eval MODEL TABLE", "eval", "--x", "none.npy")
        self.bad(2, r"--x, --data and --synth", "train", "--x", "a", "--data", "b", "-o", "m")
        self.bad(2, r"--y: .*--x FILE", "train", "--data", "a", "--y", "b", "-o", "m")
        self.bad(2, r"--y-val: .*--x-val FILE", "train", "--x", "a", "--y-val", "b", "-o", "m")
        self.bad(2, r"--patience: .*--x-val FILE", "train", "--x", "a", "--patience", "2", "-o", "m")
        self.bad(2, r"--validation-fraction: 1 ", "train", "--x", "a", "--validation-fraction=1", "-o", "m")
        self.bad(2, r"--kernel: .*laplac", "train", "--x", "a", "--kernel", "laplac", "-o", "m")
        self.bad(2, r"--bandwidth: .*bandwidth", "train", "--x", "a", "--kernel", "laplace:bandwidth=1", "--bandwidth", "2", "-o", "m")
        self.bad(2, r"--bandwidth: kernel linear", "train", "--x", "a", "--kernel", "linear", "--bandwidth", "2", "-o", "m")
        self.bad(2, r"--center-method: 'x'.* random", "train", "--x", "a", "--center-method", "x", "-o", "m")
        self.bad(2, r"--format raw: .*--raw", "train", "--x", "a", "--format", "raw", "-o", "m")
        self.bad(2, r"--output: out.xls: .*.npy, .csv", "predict", "-m", "m", "--x", "a", "-o", "out.xls")
        self.bad(2, r"--json and --output -", "predict", "-m", "m", "--x", "a", "-o", "-", "--json")


class Configuration(Case):
    def show(self, *arguments, **options):
        return json.loads(self.good("train", "--print-config", *arguments, **options))

    def test_precedence(self):
        config = self.write("c.json", json.dumps({"epochs": 7, "center_method": "kmeans", "threads": 1, "average": True}))
        environment = {"MERCER_THREADS": "3"}
        self.assertEqual(self.show()["epochs"], "auto")
        found = self.show("--config", config)
        self.assertEqual((found["epochs"], found["center-method"], found["threads"], found["average"]), (7, "kmeans", 1, "on"))
        found = self.show("--config", config, "--epochs", "2", environment=environment)
        self.assertEqual((found["epochs"], found["threads"]), (2, 3))
        self.assertEqual(found["_sources"]["epochs"], "command line")
        self.assertEqual(found["_sources"]["threads"], "environment")
        self.assertEqual(found["_sources"]["center-method"], "config")
        self.assertEqual(found["_sources"]["batch"], "default")
        self.assertEqual(self.show("--threads", "2", environment=environment)["threads"], 2)

    def test_printed_configuration_can_be_read(self):
        first = self.good("train", "--print-config", "--centers", "5", "--lambda", "1e-3", "--x", "a b.npy", "-q")
        path = self.write("c.json", first)
        second, first = json.loads(self.good("train", "--print-config", "--config", path)), json.loads(first)
        del first["_sources"], second["_sources"]
        self.assertEqual(first, second)

    def test_mistakes(self):
        def expect(pattern, text, code=2):
            self.bad(code, pattern, "train", "--config", self.write("c.json", text), "--print-config")

        expect(r"c.json: .*'epoch'.*'epochs'\?", '{"epoch": 3}')
        expect(r"c.json: 'zzzz'.* mercer train --help", '{"zzzz": 3}')
        expect(r"c.json: 'config' ", '{"config": "d.json"}')
        expect(r"c.json: epochs: 'x' .*whole number", '{"epochs": "x"}')
        expect(r"c.json: epochs: .*string", '{"epochs": [1]}')
        expect(r"c.json: line 1: ", '{"epochs": ')
        expect(r"c.json: .*JSON object", "[]")
        expect(r"c.json: line 1: duplicate", '{"epochs": 1, "epochs": 2}')
        self.bad(66, r"none.json: ", "train", "--config", "none.json")
        self.bad(2, r"MERCER_THREADS: 'many' is not", "train", "--print-config", environment={"MERCER_THREADS": "many"})

    def test_version(self):
        self.assertRegex(self.good("--version"), r"^mercer \d+\.\d+\.\d+\n$")
        self.assertTrue(PROGRAM)


if __name__ == "__main__":
    main()
