# SPDX-License-Identifier: BSD-3-Clause
"""test_program_failure.py MERCER MODULE: system calls of every command fail, one at a time.

Each command first runs once to count its calls on files of its folder. In each further run one of these calls fails
(tests/fault/fail_calls.c). The command succeeds or ends with a documented exit code and one line of error; an existing
file is the old or the new one; no temporary file is left. By default the first, the last and some other calls of each
kind fail; with MERCER_TEST_LONG=1 all of them.
"""
import errno
import os
import shutil
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
import support  # noqa: E402

MODULE = os.path.abspath(sys.argv.pop(1))
KINDS = ["open", "read", "write", "fsync", "rename", "mmap"]
ERRORS = {"open": [errno.EIO, errno.EMFILE], "read": [errno.EIO, errno.EINTR], "write": [errno.ENOSPC, errno.EINTR], "fsync": [errno.EIO],
          "rename": [errno.EIO], "mmap": [errno.ENOMEM]}  # fmt: skip
MOST = 10**9 if os.environ.get("MERCER_TEST_LONG") else 3  # If a command makes more calls of a kind, only some of them fail.


class Commands(support.Case):
    def setUp(self):
        super().setUp()
        self.make_npy(60)
        self.make_csv("d.csv")
        train = ["train", "--x", "x.npy", "--y", "y.npy", "--centers", "20", "--solver", "ep4", "--epochs", "2", "-q"]
        self.good(*train, "-o", "in.m", "--log", "in.jsonl", "--checkpoint", "in.run")
        self.commands = [
            ([*train, "-o", "m", "--log", "log.jsonl", "--checkpoint", "run"], ["m"]),
            (["train", "--x", "d.csv", "--target", "color", "--centers", "20", "-q", "-o", "t"], ["t"]),
            (["resume", "in.run", "-q"], ["in.m"]),
            (["predict", "-m", "in.m", "--x", "x.npy", "-o", "p.csv", "-q"], ["p.csv"]),
            (["eval", "-m", "in.m", "--x", "x.npy", "--y", "y.npy", "-q"], []),
            (["convert", "--x", "d.csv", "--target", "color", "-o", "c.npy", "--y-output", "cy.npy", "-q"], ["c.npy", "cy.npy"]),
            (["synth", "spirals", "--rows", "50", "-o", "s.npy", "-q"], ["s.npy"]),
            (["centers", "--x", "x.npy", "--centers", "5", "--center-method", "kmeans", "-o", "z.npy", "-q"], ["z.npy"]),
            (["inspect", "in.m"], []),
            (["report", "in.jsonl", "-o", "r.html", "-q"], ["r.html"]),
        ]

    def paths(self, arguments):
        """Make file names absolute, because the module recognizes files by absolute names."""
        names = {"m", "t", "in.m", "x.npy", "y.npy", "d.csv", "c.npy", "cy.npy", "s.npy", "z.npy", "p.csv", "r.html", "in.run", "run", "log.jsonl", "in.jsonl"}
        return [self.path(word) if word in names else word for word in arguments]

    def run_failing(self, arguments, kind, at, error):
        counts = self.path("counts")
        with open(counts, "wb") as file:
            file.write(bytes(8 * len(KINDS)))
        environment = {"LD_PRELOAD": MODULE, "MERCER_FAULT_FOLDER": self.folder, "MERCER_FAULT_COUNTS": counts, "MERCER_FAULT_KIND": kind,
                       "MERCER_FAULT_AT": str(at), "MERCER_FAULT_ERROR": str(error)}  # fmt: skip
        result = self.run_program(*self.paths(arguments), environment=environment)
        with open(counts, "rb") as file:
            found = dict(zip(KINDS, struct.unpack("<%dq" % len(KINDS), file.read())))
        os.remove(counts)
        return result, found

    def restore(self, kept):
        for name in os.listdir(self.folder):
            if name not in kept:
                path = self.path(name)
                shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
        for name, data in kept.items():
            if isinstance(data, dict):
                shutil.rmtree(self.path(name), ignore_errors=True)
                os.makedirs(self.path(name))
                for inner, bytes_ in data.items():
                    self.write(os.path.join(name, inner), bytes_)
            else:
                self.write(name, data)

    def tree(self):
        found = {}
        for name in os.listdir(self.folder):
            if os.path.isdir(self.path(name)):
                found[name] = {inner: self.read(os.path.join(name, inner)) for inner in os.listdir(self.path(name))}
            else:
                found[name] = self.read(name)
        return found

    def check(self, what, result, outputs, made, kept):
        text = result.stderr.decode(errors="replace")
        what = (*what, result.returncode, text)
        self.assertIn(result.returncode, (0, 1, 65, 66, 74), what)
        if result.returncode != 0:
            lines = [line for line in text.splitlines() if line.startswith("mercer: ") and not line.startswith("mercer: warning")]
            self.assertEqual(len(lines), 1, what)
        for name in outputs:
            there = self.read(name) if os.path.exists(self.path(name)) else None
            self.assertIn(there, [kept.get(name), made[name]], what)
            if result.returncode == 0:
                self.assertEqual(there, made[name], what)
        for folder, _, names in os.walk(self.folder):
            self.assertEqual([name for name in names if name.endswith(".tmp") or name == "lock"], [], (folder, what))

    def test_every_command(self):
        runs = refused = 0
        first = self.tree()
        for arguments, outputs in self.commands:
            kept = dict(first, **{name: b"old" for name in outputs if name != "in.m"})
            if arguments[0] == "resume":
                kept = {name: data for name, data in first.items() if name != "in.m"}
            self.restore(kept)
            result, counts = self.run_failing(arguments, "none", -1, 0)
            self.assertEqual(result.returncode, 0, (arguments, result.stderr))
            self.assertTrue(any(counts.values()), arguments)
            made = {name: self.read(name) for name in outputs}
            for kind in KINDS:
                count = counts[kind]
                picked = range(count) if count <= MOST else sorted({0, count - 1, *(count * i // MOST for i in range(1, MOST))})
                for at in picked:
                    for error in ERRORS[kind][:: 1 if MOST > 3 else 1 + at % 2]:
                        self.restore(kept)
                        result, _ = self.run_failing(arguments, kind, at, error)
                        self.check((arguments[0], kind, at, errno.errorcode[error]), result, outputs, made, kept)
                        runs += 1
                        refused += result.returncode != 0
        print("commands: %d, runs with a call that failed: %d, refused with a message: %d" % (len(self.commands), runs, refused))
        self.assertGreater(refused, 40)

    def test_truncated_files(self):
        """A mapped file that is truncated before its first block is read is an error with its name, not a SIGBUS."""
        self.make_npy(600, d=200)
        first, runs = self.tree(), 0
        for arguments, outputs in self.commands[:6]:
            kept = dict(first, **{name: b"old" for name in outputs if name != "in.m"})
            self.restore(kept)
            mapped = self.run_failing(arguments, "none", -1, 0)[1]["mmap"]
            for at in range(mapped):
                self.restore(kept)
                result, _ = self.run_failing(arguments, "mmap", at, -1)
                text = result.stderr.decode()
                self.assertEqual(result.returncode, 74, (arguments, at, text))
                self.assertRegex(text, r"\Amercer: \S+/(x\.npy|y\.npy|d\.csv): .*truncated[^\n]*\n\Z")
                for name in outputs:
                    self.assertEqual(self.read(name) if os.path.exists(self.path(name)) else None, kept.get(name))
                runs += 1
        print("mapped files that were cut: %d" % runs)
        self.assertGreater(runs, 3)


if __name__ == "__main__":
    support.main()
