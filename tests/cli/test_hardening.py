# SPDX-License-Identifier: BSD-3-Clause
"""test_hardening.py MERCER: tests for former bugs: lost files, control sequences, endless waits (docs/reliability.md)."""
import json
import os
import re
import resource
import signal
import struct
import subprocess
import time
import unittest

from support import PROGRAM, Case, main, npy_bytes

SANITIZED = bool(os.environ.get("MERCER_TEST_SLOW"))
ESCAPE = "\x1b[31m"


class Terminal(Case):
    """Control sequences in the text of files are shown escaped."""

    def test_escapes(self):
        names = [ESCAPE + "red", "\u009b31mblue", "green"]
        self.make_csv("d.csv", names=names)
        text = self.read("d.csv").decode().replace("a,b,c,d", "a" + ESCAPE + ",b,c,d", 1)
        self.write("d.csv", text)
        result = self.run_program("train", "--x", "d.csv", "--target", "color", "--centers", "20", "-o", "m")
        self.assertEqual(result.returncode, 0, result.stderr)
        shown = [result.stderr, result.stdout]
        for command in (["inspect", "m"], ["eval", "-m", "m", "--x", "d.csv", "--target", "color", "--each"], ["explain", "-m", "m", "--x", "d.csv", "--target", "color", "--gradients"]):
            result = self.run_program(*command)
            self.assertEqual(result.returncode, 0, (command, result.stderr))
            shown += [result.stdout, result.stderr]
        for text in shown:
            self.assertIsNone(re.search(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]", text), text)
        self.assertIn(b"\\x1b[31mred", b"".join(shown))

    def test_predictions(self):
        """Class names are written unchanged to a file and with escaped control characters to a terminal."""
        self.make_csv("d.csv", names=[ESCAPE + "red", "blue"])
        self.good("train", "--x", "d.csv", "--target", "color", "--centers", "20", "-o", "m", "-q")
        predict = ["predict", "-m", "m", "--x", "d.csv", "-o", "-", "-q"]
        self.assertIn(ESCAPE, self.good(*predict))
        try:
            ours, theirs = os.openpty()
        except OSError as error:
            self.skipTest(f"no terminals here: {error}")
        process = subprocess.Popen([PROGRAM, *predict], cwd=self.folder, stdout=theirs, stderr=subprocess.PIPE)
        os.close(theirs)
        seen = b""
        while True:
            try:
                some = os.read(ours, 65536)
            except OSError:
                break
            if not some:
                break
            seen += some
        os.close(ours)
        self.assertEqual(process.wait(), 0, process.stderr.read())
        process.stderr.close()
        self.assertIn(b"\\x1b[31mred", seen)
        self.assertNotIn(b"\x1b", seen)


class Streams(Case):
    def test_closed(self):
        """If a standard stream is closed, no file that is opened later gets its descriptor."""
        self.make_npy()
        train = "'%s' train --x x.npy --y y.npy --centers 20 -o m --log run.jsonl" % PROGRAM
        for closed in ("2>&-", ">&- 2>&-", "<&- >&- 2>&-"):
            subprocess.run(["bash", "-c", "%s %s" % (train, closed)], cwd=self.folder, check=True)
            lines = self.read("run.jsonl").decode().splitlines()
            self.assertTrue(all(line.startswith('{"event"') for line in lines), lines)
            self.good("inspect", "m")
        result = subprocess.run(["bash", "-c", "'%s' inspect m >&-" % PROGRAM], cwd=self.folder, stderr=subprocess.PIPE, check=False)
        self.assertEqual((result.returncode, b"stdout: " in result.stderr), (74, True), result.stderr)


class Waiting(Case):
    """No command waits forever."""

    def test_pipes_and_devices(self):
        self.make_npy()
        os.mkfifo(self.path("fifo"))
        train = ["train", "--x", "x.npy", "--y", "y.npy", "-o", "m", "-q"]
        self.bad(2, r"--log: fifo .*pipe", *train, "--log", "fifo")
        self.bad(74, r"fifo: .*pipe", *train, "--config", "fifo", timeout=60)
        self.bad(74, r"fifo: .*pipe", "report", "fifo", "-o", "r.html", timeout=60)
        self.bad(74, r"/dev/zero: .*device", "report", "/dev/zero", "-o", "r.html", timeout=60)
        self.bad(74, r"/dev/zero: .*device", *train, "--config", "/dev/zero", timeout=60)
        self.bad(74, r": .*folder", *train, "--config", self.folder)
        os.makedirs(self.path("run"))
        os.mkfifo(self.path("run", "config.json"))
        self.bad(74, r"config.json: .*pipe", "resume", "run", timeout=60)
        self.bad(74, r"fifo: .*regular file", "predict", "-m", "fifo", "--x", "x.npy", "-o", "p.npy", timeout=60)
        self.bad(74, r"fifo: .*regular file", "train", "--x", "fifo", "-o", "m", timeout=60)

    def test_a_kernel_of_zeros(self):
        """A shift relative to a zero diagonal never makes a matrix positive definite, so attempts must be limited."""
        self.write("z.csv", "a,b,y\n" + "".join("0,0,%d\n" % i for i in range(40)))
        train = ["train", "--x", "z.csv", "--target", "y", "--kernel", "linear", "--tune", "off", "--ridge", "none", "-o", "m", "-q"]
        self.bad(1, r"K\(Z, Z\) .*definite", *train, "--solver", "krr", timeout=60)

    def test_a_pipe_that_delivers(self):
        self.make_npy()
        line = "'%s' train --config <(sleep 0.3; echo '{\"centers\": 7}') --x x.npy --y y.npy -o m -q" % PROGRAM
        subprocess.run(["bash", "-c", line], cwd=self.folder, check=True)
        self.assertEqual(json.loads(self.good("inspect", "m", "--json"))["centers"], 7)

    @unittest.skipIf(SANITIZED, "a sanitizer needs more address space")
    def test_little_address_space(self):
        """If the threads of a BLAS library get no memory, they retry forever, but the process ends."""
        self.make_model("m")
        ends = []
        for kib in (80000, 120000, 160000, 180000, 300000):
            limit = lambda kib=kib: resource.setrlimit(resource.RLIMIT_AS, (kib * 1024, kib * 1024))  # noqa: E731
            for command in (["inspect", "m"], ["train", "--x", "x.npy", "--y", "y.npy", "--centers", "20", "-o", "n", "-q"]):
                result = self.run_program(*command, preexec_fn=limit, timeout=60)
                ends.append(result.returncode)
        self.assertEqual(ends[-2:], [0, 0])
        self.assertTrue(all(code in (0, 1, 127, 130, 134) for code in ends), ends)


class Names(Case):
    def test_long(self):
        self.make_npy()
        train = ["train", "--x", "x.npy", "--y", "y.npy", "--centers", "20", "-q", "-o"]
        self.good(*train, "a" * 255)
        self.bad(74, r"a: .*: File name too long", "train", "--x", "none.npy", "--y", "y.npy", "-o", "a" * 256)
        self.good("predict", "-m", "a" * 255, "--x", "x.npy", "-q", "-o", "p" * 251 + ".csv")
        self.bad(74, r"File name too long", "predict", "-m", "a" * 255, "--x", "x.npy", "-q", "-o", "p" * 252 + ".csv")
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith(".")], [])

    def test_links(self):
        """An output that is a link replaces the target of the link, not the link."""
        self.make_npy()
        os.makedirs(self.path("there"))
        self.write("there/m", b"old")
        self.write("there/p.csv", b"old")
        os.symlink("there/m", self.path("m"))
        os.symlink("m", self.path("twice"))
        os.symlink("there/p.csv", self.path("p.csv"))
        os.symlink("there/none", self.path("lost"))
        self.good("train", "--x", "x.npy", "--y", "y.npy", "--centers", "20", "-q", "-o", "twice")
        self.good("predict", "-m", "m", "--x", "x.npy", "-o", "p.csv", "-q")
        self.assertTrue(all(os.path.islink(self.path(name)) for name in ("m", "twice", "p.csv")))
        self.assertNotEqual(self.read("there/m"), b"old")
        self.assertNotEqual(self.read("there/p.csv"), b"old")
        for command in (["train", "--x", "x.npy", "--y", "y.npy"], ["predict", "-m", "m", "--x", "x.npy", "--output-format", "csv"]):
            self.bad(74, r"lost: ", *command, "-q", "-o", "lost")
        self.assertEqual(sorted(os.listdir(self.path("there"))), ["m", "p.csv"])


class Remains(Case):
    def test_of_killed_programs(self):
        """A writer removes temporary files of killed writers of the same name, but not those in use or of other names."""
        self.make_model("m")
        remains = [".m.0123456789abcdef.tmp", ".p.csv.AbC123.tmp"]
        others = [".m.tmp", ".mm.0123456789abcdef.tmp", ".m.0123456789abcdeg.tmp", ".p.csv.12345.tmp", ".q.csv.AbC123.tmp", ".m.fedcba9876543210.tmp"]
        for name in [*remains, *others]:
            self.write(name, b"half")
        holder = subprocess.Popen(["flock", ".m.fedcba9876543210.tmp", "sleep", "60"], cwd=self.folder)
        try:
            time.sleep(0.3)
            self.good("train", "--x", "x.npy", "--y", "y.npy", "--centers", "20", "-q", "-o", "m")
            self.good("predict", "-m", "m", "--x", "x.npy", "-o", "p.csv", "-q")
        finally:
            holder.terminate()
            holder.wait()
        self.assertEqual(sorted(name for name in os.listdir(self.folder) if name.startswith(".")), sorted(others))

    @unittest.skipIf(SANITIZED, "takes long")
    def test_of_a_run(self):
        """A run that was killed repeatedly while it wrote checkpoints leaves no temporary files in its folder."""
        run = ["train", "--synth", "digits", "--rows", "500", "--centers", "400", "--solver", "ep4", "--epochs", "100000", "-o", "m", "-q",
               "--checkpoint", "run", "--checkpoint-every", "0"]  # fmt: skip
        for kill in range(6):
            process = subprocess.Popen([PROGRAM, *(run if kill == 0 else ["resume", "run", "-q", "--checkpoint-every", "0"])], cwd=self.folder)
            deadline = time.monotonic() + 30
            while time.monotonic() < deadline and process.poll() is None:
                if os.path.isdir(self.path("run")) and any(name.startswith(".checkpoint") for name in os.listdir(self.path("run"))):
                    break
            process.kill()
            process.wait()
        self.good(*[word if word != "100000" else "1" for word in run], "--force")
        self.assertEqual(sorted(os.listdir(self.path("run"))), ["checkpoint.safetensors", "config.json"])


class Folders(Case):
    def test_the_holder_is_named(self):
        self.make_npy(200)
        run = ["train", "--x", "x.npy", "--y", "y.npy", "--centers", "50", "--solver", "ep4", "--epochs", "1000000", "-o", "m", "-q", "--checkpoint", "run"]
        process = subprocess.Popen([PROGRAM, *run], cwd=self.folder, stderr=subprocess.PIPE)
        try:
            deadline = time.monotonic() + 60
            while not os.path.exists(self.path("run/checkpoint.safetensors")) and time.monotonic() < deadline:
                time.sleep(0.01)
            pattern = r"run: .*\(process %d on .*, since 20\d\d-.* UTC\)" % process.pid
            self.bad(2, pattern, *run, "--force")
            self.bad(2, pattern, "resume", "run", "-q")
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate()
        self.assertEqual(process.returncode, 75)
        self.assertEqual(sorted(os.listdir(self.path("run"))), ["checkpoint.safetensors", "config.json"])

    def test_any_byte_counts(self):
        """A run is not resumed if a single byte of the data has changed."""
        rows, width = 60000, 8
        values = bytearray(struct.pack("<%df" % (4 * width), *range(4 * width)) * (rows // 4))
        head = npy_bytes("<f4", (rows, width), [])
        self.write("x.npy", head + bytes(values))
        self.write("y.npy", npy_bytes("<f4", (rows,), [float(i % 7) for i in range(rows)]))
        run = ["train", "--x", "x.npy", "--y", "y.npy", "--centers", "20", "--epochs", "1", "--solver", "ep4", "-o", "m", "-q", "--checkpoint", "run"]
        self.good(*run)
        os.remove(self.path("m"))
        place = (4 * width * rows - 65536) // 63 * 20 + 100000  # between the blocks that former fingerprints covered
        values[place] ^= 1
        self.write("x.npy", head + bytes(values))
        self.bad(65, r"x\.npy: .*data changed", "resume", "run", "-q")
        values[place] ^= 1
        self.write("x.npy", head + bytes(values))  # the same bytes with a new modification time
        self.good("resume", "run", "-q")
        # --verify is stored in the folder of the run and also applies to resume.
        self.good(*run, "--verify", "--force")
        os.remove(self.path("m"))
        self.assertIs(json.loads(self.read("run/config.json"))["options"]["verify"], True)
        self.good("resume", "run", "-q")


class Shrinking(Case):
    """Files that are truncated or overwritten while they are in use."""

    def disturb(self, name, how, *arguments):
        """Start the program, call how(path) for a file while it runs, and return exit code and stderr."""
        process = subprocess.Popen([PROGRAM, *arguments], cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        time.sleep(0.4 if not SANITIZED else 2)
        how(self.path(name))
        text = process.communicate(timeout=120)[1].decode()
        return process.returncode, text

    def test_models(self):
        """A model is read into memory, so later changes of its file have no effect."""
        self.make_npy(3000, d=20)
        self.good("train", "--x", "x.npy", "--y", "y.npy", "--centers", "2000", "--solver", "ep4", "--epochs", "1", "-o", "m", "-q")
        predict = ["predict", "-m", "m", "--synth", "teacher:d=20", "--rows", "20k" if SANITIZED else "150k", "-q", "-o"]
        self.good(*predict, "whole.npy")
        code, text = self.disturb("m", lambda path: os.truncate(path, 100), *predict, "cut.npy")
        self.assertEqual((code, text), (0, ""))
        self.assertEqual(self.read("cut.npy"), self.read("whole.npy"))

    def test_samples(self):
        """Samples are mapped, so a file that changes during training is an error that names the file."""
        self.make_npy(4000, d=20)
        train = ["train", "--x", "x.npy", "--y", "y.npy", "--centers", "1000", "--solver", "ep4", "--epochs", "100000", "--batch", "500", "--device", "cpu",
                 "--memory", "30M", "-o", "m", "-q"]  # fmt: skip
        code, text = self.disturb("x.npy", lambda path: os.utime(path), *train)
        self.assertEqual(code, 74, text)
        self.assertRegex(text, r"x\.npy: .*in use")

    def test_no_map(self):
        self.make_npy(2000, d=20)
        train = ["train", "--x", "x.npy", "--y", "y.npy", "--centers", "500", "--solver", "ep4", "--batch", "500", "--no-map", "-q"]
        self.good(*train, "--epochs", "1", "-o", "one")
        self.good(*[word for word in train if word != "--no-map"], "--epochs", "1", "-o", "two")
        self.assertEqual(self.read("one"), self.read("two"))
        code, text = self.disturb("x.npy", lambda path: os.truncate(path, 100), *train, "--epochs", "200", "-o", "m")
        self.assertEqual(code, 0, text)
        self.make_npy(2000, d=20)
        self.bad(1, r"x\.npy: .*\d+ .*memory", *train, "--memory", "10k", "-o", "m")


class Sizes(Case):
    def test_a_large_index(self):
        """Memory is allocated by the contents of a file, not by the sizes that it claims."""
        self.write("d.svm", "1 300000000:2\n2 1:3\n3 2:3\n")
        limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))  # noqa: E731
        self.bad(1, r"d\.svm: index 300000000 .* 300000000 features, .* \d+ bytes .*26", "train",
                 "--x", "d.svm", "-o", "m", "-q", preexec_fn=None if SANITIZED else limit)  # fmt: skip

    def test_plans_without_end(self):
        for rows, centers, memory in (("5G", "1G", "100G"), ("5G", "1G", "8000000G"), ("1G", "1G", "8000000G"), ("900000G", "900000G", "8000000G")):
            for more in ([], ["--solver", "direct"], ["--solver", "ep4"], ["--ranks", "1000"]):
                result = self.run_program("plan", "--rows", rows, "--features", "784", "--outputs", "1000", "--centers", centers, "--memory", memory, *more)
                self.assertIn(result.returncode, (0, 1, 2), result.stderr)
                self.assertIsNone(re.search(rb"[ :]-\d", result.stdout + result.stderr), (result.stdout, result.stderr))


if __name__ == "__main__":
    main()
