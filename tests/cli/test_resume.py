# SPDX-License-Identifier: BSD-3-Clause
"""Interrupted, killed and resumed runs give the same bytes as undisturbed runs."""
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import time

from support import PROGRAM, Case, main, npy_bytes


SANITIZED = bool(os.environ.get("MERCER_TEST_SLOW"))  # true for a build with sanitizers, which is several times slower
CENTERS, BATCH = (150, 150) if SANITIZED else (300, 300)


def lasting(epochs, rows=900 if SANITIZED else 2000):
    """Return the options of a training run that is long enough to be interrupted."""
    run = ["--synth", "digits", "--rows", str(rows), "--validation-fraction", "0.05", "--centers", str(CENTERS), "--center-method", "random"]
    run += ["--kernel", "laplace:bandwidth=10", "--solver", "ep4", "--epochs", str(epochs), "--batch", str(BATCH), "--seed", "3"]
    return [*run, "--memory", "1G"]


RUN, LONG = lasting(4), lasting(1000)  # less than a second and about a minute on two cores


class Run(Case):
    """Base class for tests of runs in a folder."""

    def start(self, *arguments):
        return subprocess.Popen(
            [PROGRAM, *arguments], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def train(self, *more, run=RUN):
        return ["train", *run, "-o", "m.safetensors", "--checkpoint", "run", "--checkpoint-every", "0.05s", "-q", *more]


class Resume(Run):
    undisturbed = None

    def whole(self):
        """Return the model of an undisturbed run and its duration in seconds; it is trained once for all tests."""
        if Resume.undisturbed is None:
            began = time.monotonic()
            self.good("train", *RUN, "-o", "whole.safetensors", "-q")
            Resume.undisturbed = self.read("whole.safetensors"), time.monotonic() - began
        return Resume.undisturbed

    def test_checkpoints_change_nothing(self):
        whole, _ = self.whole()
        self.good(*self.train())
        self.assertEqual(self.read("m.safetensors"), whole)
        # A finished run has nothing to resume, and its folder may be used again.
        self.write("run/lock", "process 1")  # a lock file, as left by a process that was killed just after its run had finished
        self.good("resume", "run", "-q")
        self.assertEqual(sorted(os.listdir(self.path("run"))), ["checkpoint.safetensors", "config.json"])
        os.remove(self.path("m.safetensors"))
        self.good("resume", "run", "-q")
        self.assertEqual(self.read("m.safetensors"), whole)
        self.good(*self.train())
        self.assertEqual(self.answer("resume", "run")["stopped"], "finished")

    def test_killed_at_random_moments(self):
        whole, seconds = self.whole()
        rng = random.Random(7)
        resumed = with_checkpoint = 0
        kills = 4 if SANITIZED else 12
        for number in range(kills):
            shutil.rmtree(self.path("run"), ignore_errors=True)
            if os.path.exists(self.path("m.safetensors")):
                os.remove(self.path("m.safetensors"))
            process = self.start(*self.train())
            # Every second run is killed only after its first checkpoint. If the machine has become slower, the delays,
            # which are derived from the measured duration, could all be too short for a checkpoint.
            late = number % 2 == 1
            if late:
                self.wait_for(process, "run", "checkpoint.safetensors")
            time.sleep(rng.uniform(0.02, (0.5 if late else 1.1) * seconds))
            process.kill()
            process.communicate()
            if not os.path.exists(self.path("run", "config.json")):
                self.good(*self.train("--force"))
            else:
                with_checkpoint += os.path.exists(self.path("run", "checkpoint.safetensors"))
                resumed += 1
                # Some runs are killed a second time.
                if number % 4 == 0:
                    process = self.start("resume", "run", "-q")
                    time.sleep(rng.uniform(0.02, 0.5 * seconds))
                    process.kill()
                    process.communicate()
                self.good("resume", "run", "-q", "-t", str(1 + number // 2 % 2))
            self.assertEqual(self.read("m.safetensors"), whole, "killed for the %d. time" % (number + 1))
        self.assertGreaterEqual(resumed, kills // 2)
        self.assertGreaterEqual(with_checkpoint, kills // 2)

    def wait_for(self, process, *names):
        """Wait until a file exists or the process has ended."""
        deadline = time.monotonic() + 60
        while not os.path.exists(self.path(*names)) and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)

    def test_killed_while_features_are_learned(self):
        """A run on images that is killed while it learns features gives the same bytes."""
        run = ["--synth", "digits", "--rows", "500", "--centers", "100", "--kernel", "laplace-l1", "--learn-features", "on", "--effort", "1", "--memory", "1G"]
        self.good("train", *run, "-o", "learned.safetensors", "-q")
        process = self.start(*self.train(run=run))
        checkpoint = self.path("run", "checkpoint.safetensors")
        while not os.path.exists(checkpoint) and process.poll() is None:
            time.sleep(0.001)
        process.kill()
        process.communicate()
        with open(checkpoint, "rb") as file:
            self.assertIn(b"search.memory", file.read(4096))
        self.good("resume", "run", "-q")
        self.assertEqual(self.read("m.safetensors"), self.read("learned.safetensors"))

    def test_signals(self):
        whole, _ = self.whole()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR2, signal.SIGHUP, signal.SIGXCPU)[:: 2 if SANITIZED else 1]:
            shutil.rmtree(self.path("run"), ignore_errors=True)
            process = self.start(*self.train("--log", "run.jsonl"))
            self.wait_for(process, "run", "checkpoint.safetensors")
            process.send_signal(number)
            _, errors = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 75, errors)
            self.assertRegex(errors.decode(), r"^mercer: .*: mercer resume run\n$")
            self.assertFalse(os.path.exists(self.path("m.safetensors")))
            self.assertEqual(self.answer("inspect", "run/checkpoint.safetensors")["centers"], CENTERS)
            self.good("resume", "run", "-q")
            self.assertEqual(self.read("m.safetensors"), whole)
            os.remove(self.path("m.safetensors"))
            events = [json.loads(line)["event"] for line in self.read("run.jsonl").decode().splitlines()]
            os.remove(self.path("run.jsonl"))
            self.assertEqual(events.count("start"), 2)
            self.assertEqual(events[-1], "summary")

    def test_checkpoint_on_request(self):
        """SIGUSR1 causes a checkpoint in the middle of an epoch, and the run continues to the same bytes."""
        run = ["50" if word == str(BATCH) else word for word in lasting(1, rows=4000 if SANITIZED else 10000)]
        self.good("train", *run, "-o", "whole.safetensors", "-q")
        process = self.start("train", *run, "-o", "m.safetensors", "--checkpoint", "run", "--checkpoint-every", "1h")
        self.wait_for(process, "run", "checkpoint.safetensors")
        first = os.stat(self.path("run", "checkpoint.safetensors")).st_ino
        process.send_signal(signal.SIGUSR1)
        deadline, found = time.monotonic() + 60, first
        while found == first and process.poll() is None and time.monotonic() < deadline:
            found = os.stat(self.path("run", "checkpoint.safetensors")).st_ino
        self.assertIsNone(process.poll(), "it ended")
        self.assertNotEqual(found, first)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, errors)
        self.assertEqual(errors.count(b"SIGUSR1: "), 1, errors)
        self.assertEqual(self.read("m.safetensors"), self.read("whole.safetensors"))
        process = self.start("train", *run, "-o", "m.safetensors", "--log", "run.jsonl", "-q")
        self.wait_for(process, "run.jsonl")
        process.send_signal(signal.SIGUSR1)
        _, errors = process.communicate(timeout=60)
        self.assertEqual((process.returncode, self.read("m.safetensors")), (0, self.read("whole.safetensors")))
        self.assertRegex(errors.decode(), r"^mercer: warning: SIGUSR1: .*--checkpoint.*\n$")

    def test_signal_without_checkpoint(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
            process = self.start("train", *LONG, "-o", "m.safetensors", "--log", "run.jsonl", "-q")
            self.wait_for(process, "run.jsonl")
            time.sleep(0.3)
            process.send_signal(number)
            _, errors = process.communicate(timeout=60)
            os.remove(self.path("run.jsonl"))
            self.assertEqual(process.returncode, code, errors)
            self.assertRegex(errors.decode(), r"^mercer: interrupted; nothing ")
            self.assertFalse(os.path.exists(self.path("m.safetensors")))

    def test_without_a_terminal(self):
        """A run that is started with SIGHUP ignored, as by nohup, keeps ignoring it."""
        whole, _ = self.whole()
        ignore = lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)  # noqa: E731
        process = subprocess.Popen([PROGRAM, *self.train()], cwd=self.folder, stderr=subprocess.PIPE, preexec_fn=ignore)
        self.wait_for(process, "run", "checkpoint.safetensors")
        process.send_signal(signal.SIGHUP)
        _, errors = process.communicate(timeout=120)
        self.assertEqual((process.returncode, errors), (0, b""))
        self.assertEqual(self.read("m.safetensors"), whole)

    def test_reader_that_closes_the_pipe(self):
        """The model is written even if the reader of the messages closes the pipe."""
        whole, _ = self.whole()
        arguments = " ".join(["train", *RUN, "-o", "m.safetensors"])
        line = "'%s' %s 2>&1 | head -n 1; exit ${PIPESTATUS[0]}" % (PROGRAM, arguments)
        result = subprocess.run(["bash", "-c", line], cwd=self.folder, stdout=subprocess.PIPE, check=False)
        self.assertEqual((result.returncode, result.stdout.count(b"\n")), (0, 1))
        self.assertEqual(self.read("m.safetensors"), whole)

    def events(self, name, kind):
        if not os.path.exists(self.path(name)):
            return []
        lines = [line for line in self.read(name).decode().splitlines(keepends=True) if line.endswith("\n")]
        return [event for event in map(json.loads, lines) if event["event"] == kind]

    def test_killed_run_loses_no_epoch(self):
        """Regardless of --checkpoint-every, a checkpoint is written at the end of an epoch, unless the last one is recent."""
        run = lasting(12, rows=1500 if SANITIZED else 8000)
        self.good("train", *run, "-o", "whole.safetensors", "-q")
        process = self.start("train", *run, "-o", "m.safetensors", "--checkpoint", "run", "--log", "run.jsonl", "-q")
        deadline = time.monotonic() + 120
        while len(self.events("run.jsonl", "epoch")) < 10 and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        process.kill()
        process.communicate()
        ends = [0.0] + [event["seconds"] for event in self.events("run.jsonl", "epoch")]
        self.assertGreater(len(ends), 10)
        self.good("resume", "run", "-q", "--log", "rest.jsonl")
        kept = int(self.events("rest.jsonl", "epoch")[0]["epoch"]) - 1
        # The checkpoint of the last logged epoch may not have been written yet.
        self.assertLess(ends[-2] - ends[min(kept, len(ends) - 2)], 1.5, (kept, ends))
        self.assertEqual(self.read("m.safetensors"), self.read("whole.safetensors"))

    def test_failing_checkpoints_cause_warnings(self):
        """One warning when checkpoints begin to fail and one when they succeed later, even with --quiet."""
        process = self.start(*self.train(run=lasting(100000)))
        self.wait_for(process, "run", "checkpoint.safetensors")
        os.rename(self.path("run"), self.path("away"))
        first = process.stderr.readline().decode()
        self.assertRegex(first, r"^mercer: warning: no checkpoint .* \d+ samples; .*run/checkpoint\.safetensors: ")
        time.sleep(0.5)
        os.rename(self.path("away"), self.path("run"))
        second = process.stderr.readline().decode()
        self.assertRegex(second, r"^mercer: warning: checkpoints .*again.* \d+ samples$")
        process.terminate()
        _, rest = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 75)
        self.assertRegex(rest.decode(), r"^mercer: interrupted; checkpoint written; [^\n]*\n$")

    def test_second_interrupt_ends_at_once(self):
        process = self.start("train", *LONG, "-o", "m.safetensors", "-q")
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        self.assertLess(time.monotonic() - began, 2)

    def test_before_the_first_checkpoint(self):
        whole, _ = self.whole()
        process = self.start(*self.train())
        self.wait_for(process, "run", "config.json")
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 75, errors)
        self.good("resume", "run", "-q")
        self.assertEqual(self.read("m.safetensors"), whole)


class Phases(Run):
    """Runs with a search before the training."""

    searched = ["--x", "t.csv", "--target", "y", "--effort", "3", "--centers", "120", "--solver", "ep4", "--batch", "50",
                "--memory", "1G", "--threads", "1"]  # fmt: skip

    def setUp(self):
        super().setUp()
        rng = random.Random(1)
        lines = ["a,b,c,y"]
        for _ in range(600):
            a, b, c = (rng.gauss(0, 1) for _ in range(3))
            lines.append("%.6f,%.6f,%.6f,%.6f" % (a, b, c, abs(a) + b * b))
        self.write("t.csv", "\n".join(lines) + "\n")

    def header(self):
        """Return header and bytes of the checkpoint; (None, b"") if it does not exist."""
        try:
            data = self.read("run/checkpoint.safetensors")
        except OSError:
            return None, b""
        size = int.from_bytes(data[:8], "little")
        return json.loads(data[8 : 8 + size]), data

    def phase(self):
        """Return the phase of the checkpoint: "search", "training" or None."""
        header, _ = self.header()
        return "search" if "search.memory" in (header or {}) else "training" if "state.plan" in (header or {}) else None

    def until(self, process, phase):
        while self.phase() != phase and process.poll() is None:
            time.sleep(0.002)

    def test_killed_in_every_phase(self):
        run = [*self.searched, "--epochs", "200" if SANITIZED else "800"]
        whole = self.run_program("train", *run, "-o", "whole.safetensors", "-q")
        self.assertEqual(whole.returncode, 0, whole.stderr)
        process = self.start(*self.train(run=run))
        for phase in ("search", "training"):
            self.until(process, phase)
            process.kill()
            process.communicate()
            self.assertEqual(self.phase(), phase)
            process = self.start("resume", "run", "-q")
        time.sleep(0.2)  # Ctrl-C during the resumed run
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 75, errors)
        self.assertIn(b"checkpoint written", errors)
        self.assertIn("kernel", self.answer("inspect", "run/checkpoint.safetensors"))  # It is also a model file.
        self.assertEqual(self.run_program("resume", "run", "-q").stderr, whole.stderr)  # the same warnings
        self.assertEqual(self.read("m.safetensors"), self.read("whole.safetensors"))

    def test_disk_full(self):
        """A full disk during a checkpoint is an error, and the resumed run gives the same bytes."""
        run = [*self.searched, "--epochs", "2"]
        self.good("train", *run, "-o", "whole.safetensors", "-q")
        every = ["0s" if text == "0.05s" else text for text in self.train(run=run)]  # Training is too short for an interval of 0.05 s.
        self.good(*every)
        sizes = [os.path.getsize(self.path(name)) for name in ("whole.safetensors", "run/checkpoint.safetensors")]
        self.assertLess(sizes[0], sizes[1])
        for limit in (sizes[0] // 2, sizes[1] - 100):
            shutil.rmtree(self.path("run"))
            self.bad(74, r"checkpoint\.safetensors: .*", *every, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
            self.good("resume", "run", "-q")
            self.assertEqual(self.read("m.safetensors"), self.read("whole.safetensors"))

    def test_search_that_cannot_be_read(self):
        process = self.start(*self.train(run=[*self.searched, "--epochs", "2"]))
        self.until(process, "search")
        process.kill()
        process.communicate()
        header, data = self.header()
        at = 8 + int.from_bytes(data[:8], "little") + header["search.stages"]["data_offsets"][0]
        self.write("run/checkpoint.safetensors", data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        self.bad(65, r"run/checkpoint\.safetensors: .*search\.stages", "resume", "run", "-q")


class Folder(Case):
    def interrupted(self):
        """Start a run on files, interrupt it and return its arguments."""
        self.make_npy(400)
        arguments = ["train", "--x", "x.npy", "--y", "y.npy", "--centers", "100", "--solver", "ep4", "--epochs", "100000", "--tune", "off"]
        arguments += ["--batch", "50", "--checkpoint", "run", "--checkpoint-every", "0.05s", "-o", "m.safetensors", "-q"]
        process = subprocess.Popen([PROGRAM, *arguments], cwd=self.folder, stderr=subprocess.PIPE)
        deadline = time.monotonic() + 60
        while not os.path.exists(self.path("run", "checkpoint.safetensors")) and time.monotonic() < deadline:
            time.sleep(0.01)
        process.terminate()
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 75, errors)
        return arguments

    def test_unfinished_run_is_not_overwritten(self):
        arguments = self.interrupted()
        before = self.read("run/checkpoint.safetensors")
        self.bad(2, r"run: .*mercer resume run .*--force", *arguments)
        self.assertEqual(self.read("run/checkpoint.safetensors"), before)

    def test_one_run_at_a_time(self):
        """A folder belongs to one process at a time, and the next one removes the temporary files of a killed one."""
        arguments = self.interrupted()
        before = self.read("run/config.json")
        process = subprocess.Popen([PROGRAM, "resume", "run", "-q"], cwd=self.folder, stderr=subprocess.PIPE)
        deadline = time.monotonic() + 60
        first = os.stat(self.path("run/checkpoint.safetensors")).st_ino
        while os.stat(self.path("run/checkpoint.safetensors")).st_ino == first and time.monotonic() < deadline:
            time.sleep(0.01)
        for other in (["resume", "run", "-q"], [*arguments, "--force"]):
            self.bad(2, r"run: .*\(process \d+ on ", *other)
        self.assertEqual(self.read("run/config.json"), before)
        process.kill()
        process.communicate()
        remains = [".checkpoint.safetensors.0123456789abcdef.tmp", ".checkpoint.safetensors.77.tmp"]
        for name in [*remains, ".other.tmp"]:
            self.write("run/" + name, b"half")
        self.good(*("2" if word == "100000" else word for word in arguments), "--force")
        self.assertEqual(sorted(os.listdir(self.path("run"))), [".other.tmp", "checkpoint.safetensors", "config.json"])

    def test_force_discards_nothing_before_it_is_sure(self):
        arguments = self.interrupted()
        before = self.read("run/checkpoint.safetensors"), self.read("run/config.json")
        typo = ["none.npy" if word == "x.npy" else word for word in arguments]
        many = ["500" if word == "100" else word for word in arguments]
        short = ["2" if word == "100000" else word for word in arguments]
        for wrong, code in ((typo, 66), ([*arguments, "--memory", "1k"], 1), (many, 65)):
            result = self.run_program(*wrong, "--force")
            self.assertEqual(result.returncode, code, result.stderr)
            self.assertEqual((self.read("run/checkpoint.safetensors"), self.read("run/config.json")), before)
        self.good(*short, "--force")
        self.assertEqual(self.answer("resume", "run")["stopped"], "finished")

    def test_changed_data_are_refused(self):
        self.interrupted()
        self.make_npy(400, seed=1)
        self.bad(65, r"x\.npy: .*data changed.*--force", "resume", "run", "-q")
        self.write("x.npy", npy_bytes("<f4", (400, 5), [0.5] * 2000))
        self.bad(65, r"checkpoint\.safetensors: ", "resume", "run", "-q", "--force")

    def test_damaged_folder(self):
        self.interrupted()
        checkpoint = self.read("run/checkpoint.safetensors")
        self.write("run/checkpoint.safetensors", checkpoint[:-9])
        self.bad(65, r"checkpoint\.safetensors: ", "resume", "run", "-q")
        self.write("run/checkpoint.safetensors", checkpoint)
        config = json.loads(self.read("run/config.json"))
        for change, code, pattern in (
            ({"version": "9.9.9"}, 65, r"config\.json: .*version 9\.9\.9"),
            ({"options": 3}, 65, r"config\.json: .*run configuration"),
            ({"fingerprints": {}}, 65, r"config\.json: .*run configuration"),
            ({"options": dict(config["options"], centers=99)}, 65, r"checkpoint\.safetensors: .*100 centers"),
            ({"options": dict(config["options"], batch=51)}, 65, r"checkpoint"),
            ({"options": dict(config["options"], wrong=1)}, 2, r"wrong"),
        ):
            self.write("run/config.json", json.dumps(dict(config, **change)))
            self.bad(code, pattern, "resume", "run", "-q")
        self.write("run/config.json", "{")
        self.bad(65, r"config\.json: line 1: .*resumed", "resume", "run", "-q")
        os.remove(self.path("run/config.json"))
        self.bad(66, r"run/config\.json: ", "resume", "run", "-q")
        self.bad(66, r"none/config\.json: ", "resume", "none", "-q")

    def test_moved_folder_and_other_place(self):
        self.make_npy(100)
        arguments = ["train", "--x", "x.npy", "--y", "y.npy", "--centers", "50", "--solver", "ep4", "-o", "m", "-q"]
        self.good(*arguments, "--checkpoint", "run")
        whole = self.read("m")
        os.remove(self.path("m"))
        os.rename(self.path("run"), self.path("moved"))
        os.makedirs(self.path("elsewhere"))
        self.good("resume", self.path("moved"), "-q", cwd=self.path("elsewhere"))
        self.assertEqual(self.read("m"), whole)


if __name__ == "__main__":
    main()
