# SPDX-License-Identifier: BSD-3-Clause
"""Interrupted, killed and resumed runs end in the same bytes as one that was left alone."""
import json
import os
import random
import shutil
import signal
import subprocess
import time

from support import PROGRAM, Case, main, npy_bytes

# About a second of work on two cores, with a checkpoint as often as one can be written.
RUN = ["--synth", "digits", "--rows", "3000", "--validation-fraction", "0.05", "--centers", "500", "--center-method", "random"]
RUN += ["--kernel", "laplace:bandwidth=10", "--solver", "ep4", "--epochs", "4", "--batch", "500", "--seed", "3", "--memory", "1G"]
ENVIRONMENT = dict(os.environ, OMP_WAIT_POLICY="passive")


class Resume(Case):
    def start(self, *arguments):
        return subprocess.Popen(
            [PROGRAM, *arguments], cwd=self.folder, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def whole(self):
        """The bytes of a run that nothing disturbs, and how long it takes."""
        began = time.monotonic()
        self.good("train", *RUN, "-o", "whole.safetensors", "-q")
        return self.read("whole.safetensors"), time.monotonic() - began

    def train(self, *more):
        return ["train", *RUN, "-o", "m.safetensors", "--checkpoint", "run", "--checkpoint-every", "0.05s", "-q", *more]

    def test_checkpoints_change_nothing(self):
        whole, _ = self.whole()
        self.good(*self.train())
        self.assertEqual(self.read("m.safetensors"), whole)
        # A finished run has nothing to resume, and its folder may be used again.
        self.good("resume", "run", "-q")
        os.remove(self.path("m.safetensors"))
        self.good("resume", "run", "-q")
        self.assertEqual(self.read("m.safetensors"), whole)
        self.good(*self.train())
        self.assertEqual(self.answer("resume", "run")["stopped"], "finished")

    def test_killed_at_random_moments(self):
        whole, seconds = self.whole()
        rng = random.Random(7)
        resumed = with_checkpoint = 0
        kills = 20 if seconds < 3 else 6  # a build with sanitizers takes several times as long
        for number in range(kills):
            shutil.rmtree(self.path("run"), ignore_errors=True)
            if os.path.exists(self.path("m.safetensors")):
                os.remove(self.path("m.safetensors"))
            process = self.start(*self.train())
            time.sleep(rng.uniform(0.02, 1.1 * seconds))
            process.kill()
            process.communicate()
            if not os.path.exists(self.path("run", "config.json")):
                self.good(*self.train("--force"))
            else:
                with_checkpoint += os.path.exists(self.path("run", "checkpoint.safetensors"))
                resumed += 1
                # Some are killed a second time.
                if number % 4 == 0:
                    process = self.start("resume", "run", "-q")
                    time.sleep(rng.uniform(0.02, 0.5 * seconds))
                    process.kill()
                    process.communicate()
                self.good("resume", "run", "-q", "-t", str(1 + number % 2))
            self.assertEqual(self.read("m.safetensors"), whole, "killed for the %d. time" % (number + 1))
        self.assertGreater(resumed, kills // 2)
        self.assertGreater(with_checkpoint, kills // 5)

    def wait_for(self, process, *names):
        """Until a file is there, or the process has ended."""
        deadline = time.monotonic() + 60
        while not os.path.exists(self.path(*names)) and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)

    def test_signals(self):
        whole, _ = self.whole()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
            shutil.rmtree(self.path("run"), ignore_errors=True)
            process = self.start(*self.train("--log", "run.jsonl"))
            self.wait_for(process, "run", "checkpoint.safetensors")
            process.send_signal(number)
            _, errors = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 75, errors)
            self.assertEqual(errors.decode(), "mercer: interrupted; checkpoint written; continue with: mercer resume run\n")
            self.assertFalse(os.path.exists(self.path("m.safetensors")))
            self.assertEqual(self.answer("inspect", "run/checkpoint.safetensors")["centers"], 500)
            self.good("resume", "run", "-q")
            self.assertEqual(self.read("m.safetensors"), whole)
            os.remove(self.path("m.safetensors"))
            events = [json.loads(line)["event"] for line in self.read("run.jsonl").decode().splitlines()]
            self.assertEqual(events.count("start"), 2)
            self.assertEqual(events[-1], "summary")

    def test_signal_without_checkpoint(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            process = self.start("train", *RUN, "--epochs", "400", "-o", "m.safetensors", "--log", "run.jsonl", "-q")
            self.wait_for(process, "run.jsonl")
            time.sleep(0.3)
            process.send_signal(number)
            _, errors = process.communicate(timeout=60)
            self.assertEqual(process.returncode, code, errors)
            self.assertRegex(errors.decode(), r"^mercer: interrupted; nothing was written")
            self.assertFalse(os.path.exists(self.path("m.safetensors")))

    def test_second_interrupt_ends_at_once(self):
        process = self.start("train", *RUN, "--epochs", "400", "-o", "m.safetensors", "-q")
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


class Folder(Case):
    def interrupted(self):
        """A run on files that was stopped."""
        self.make_npy(400)
        arguments = ["train", "--x", "x.npy", "--y", "y.npy", "--centers", "100", "--solver", "ep4", "--epochs", "100000"]
        arguments += ["--batch", "50", "--checkpoint", "run", "--checkpoint-every", "0.05s", "-o", "m.safetensors", "-q"]
        process = subprocess.Popen([PROGRAM, *arguments], cwd=self.folder, env=ENVIRONMENT, stderr=subprocess.PIPE)
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
        self.bad(2, r"run: holds a run that is not finished: mercer resume run continues it, --force discards it", *arguments)
        self.assertEqual(self.read("run/checkpoint.safetensors"), before)

    def test_changed_data_are_refused(self):
        self.interrupted()
        self.make_npy(400, seed=1)
        self.bad(65, r"x\.npy: the training data changed since the run began; --force", "resume", "run", "-q")
        self.write("x.npy", npy_bytes("<f4", (400, 5), [0.5] * 2000))
        self.bad(65, r"checkpoint\.safetensors: belongs to other data", "resume", "run", "-q", "--force")

    def test_damaged_folder(self):
        self.interrupted()
        checkpoint = self.read("run/checkpoint.safetensors")
        self.write("run/checkpoint.safetensors", checkpoint[:-9])
        self.bad(65, r"checkpoint\.safetensors: ", "resume", "run", "-q")
        self.write("run/checkpoint.safetensors", checkpoint)
        config = json.loads(self.read("run/config.json"))
        for change, code, pattern in (
            ({"version": "9.9.9"}, 65, r"config\.json: written by version 9\.9\.9"),
            ({"options": 3}, 65, r"config\.json: is not what mercer train wrote"),
            ({"fingerprints": {}}, 65, r"config\.json: is not what mercer train wrote"),
            ({"options": dict(config["options"], centers=99)}, 65, r"checkpoint\.safetensors: belongs to other options: 100 centers"),
            ({"options": dict(config["options"], batch=51)}, 65, r"checkpoint"),
            ({"options": dict(config["options"], wrong=1)}, 2, r"wrong"),
        ):
            self.write("run/config.json", json.dumps(dict(config, **change)))
            self.bad(code, pattern, "resume", "run", "-q")
        self.write("run/config.json", "{")
        self.bad(65, r"config\.json: line 1: .*cannot be resumed", "resume", "run", "-q")
        os.remove(self.path("run/config.json"))
        self.bad(66, r"run/config\.json: does not exist: run is no folder of mercer train", "resume", "run", "-q")
        self.bad(66, r"none/config\.json: does not exist", "resume", "none", "-q")

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
