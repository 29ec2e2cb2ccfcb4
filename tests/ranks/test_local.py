# SPDX-License-Identifier: BSD-3-Clause
"""The program with several ranks in one process (--device cpu,cpu): the same bytes as one rank, interruptions, errors.

usage: test_local.py PROGRAM. Needs no launcher and no GPU. MERCER_TEST_DEVICES sets other devices (cuda:0,cuda:0,...); each
test uses the first ones. MERCER_TEST_SLOW is a factor of time limits, for sanitizers.
"""
import json
import math
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from support import PROGRAM, Case, main  # noqa: E402

SLOW = float(os.environ.get("MERCER_TEST_SLOW", "1"))
DEVICES = os.environ.get("MERCER_TEST_DEVICES", ",".join(["cpu"] * 8)).split(",")
COMMON = ["--threads", "1", "--memory", "1G", "-q"]
DIGITS = ["--synth", "digits", *COMMON]
TRAININGS = {
    "direct": ["--rows", "300", "--centers", "60", "--solver", "direct"],
    "cg": ["--rows", "300", "--centers", "60", "--solver", "cg", "--epochs", "3"],
    "ep4 bgs": ["--rows", "400", "--centers", "150", "--solver", "ep4", "--projector", "bgs", "--projector-block", "40", "--epochs", "2"],
    "ep4 pcg": ["--rows", "400", "--centers", "120", "--solver", "ep4", "--projector", "pcg", "--epochs", "1", "--cache", "off"],
    "ep2": ["--rows", "150", "--centers", "all", "--solver", "ep2", "--epochs", "2"],
    "kmeans": ["--rows", "400", "--centers", "50", "--center-method", "kmeans", "--solver", "ep4", "--epochs", "1"],
    "validated": ["--rows", "400", "--centers", "60", "--solver", "ep4", "--validation-fraction", "0.1", "--patience", "1", "--epochs", "3"],
    "few": ["--rows", "60", "--centers", "3", "--solver", "ep4", "--epochs", "1"],
}


def longer(epochs):
    """Return the options of a training run that is long enough to be interrupted."""
    rows, centers, batch = ("2000", "300", "200") if SLOW == 1 else ("500", "120", "50")
    training = [*COMMON, "--synth", "spirals", "--rows", rows, "--centers", centers, "--solver", "ep4", "--projector", "bgs", "--batch", batch]
    return [*training, "--epochs", str(epochs), "--cache", "off", "--nystrom", "200", "--projector-nystrom", "150"]


LONGER = longer(12)


def on(ranks):
    return ["--device", ",".join(DEVICES[i % len(DEVICES)] for i in range(ranks))]


ALONE = ["--device", DEVICES[0], "--shards", "8"]


class Local(Case):
    def start(self, *arguments, **options):
        return subprocess.Popen(
            [PROGRAM, *arguments], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, **options
        )

    def finish(self, process):
        try:
            out, err = process.communicate(timeout=60 * SLOW)
        except subprocess.TimeoutExpired:
            process.kill()
            self.fail("the ranks did not end: " + process.communicate()[1].decode())
        return process.returncode, out.decode(), err.decode()

    def wait_for_checkpoint(self, process):
        limit = time.monotonic() + 30 * SLOW
        while process.poll() is None and time.monotonic() < limit:
            if os.path.exists(self.path("run", "checkpoint.safetensors")):
                return
            time.sleep(0.005)


class SameBytes(Local):
    def test_training(self):
        for number, (name, training) in enumerate(TRAININGS.items()):
            self.good("train", *DIGITS, *training, *ALONE, "-o", "alone.safetensors")
            for ranks in (2 + number % 2, 8) if name in ("ep4 bgs", "few") else (2 + number % 3,):
                out = self.good("train", *DIGITS, *training, *on(ranks), "-o", "m.safetensors")
                self.assertEqual(out, "")
                self.assertEqual(self.read("m.safetensors"), self.read("alone.safetensors"), "%s on %d ranks" % (name, ranks))

    def test_fewer_centers_than_shards(self):
        """Some ranks have no center; one has all of them."""
        for solver in ("direct", "cg", "ep4 --projector exact", "ep4 --projector bgs", "ep4 --projector pcg", "gd"):
            training = [*DIGITS, "--rows", "60", "--centers", "3", "--epochs", "1", "--solver", *solver.split()]
            self.good("train", *training, *ALONE, "-o", "alone.safetensors")
            self.good("train", *training, *on(3), "-o", "m.safetensors")
            self.assertEqual(self.read("m.safetensors"), self.read("alone.safetensors"), solver)

    def test_files(self):
        self.make_csv(n=90)
        training = ["--x", "data.csv", "--target", "color", "--centers", "20", "--memory", "1G", "--threads", "1"]
        self.good("train", *training, *ALONE, "-o", "alone.safetensors", "-q")
        self.good("train", *training, *on(2), "-o", "m.safetensors", "--log", "log.jsonl")
        self.assertEqual(self.read("m.safetensors"), self.read("alone.safetensors"))
        events = [json.loads(line)["event"] for line in self.read("log.jsonl").decode().splitlines()]
        self.assertEqual(events.count("start"), 1, "one rank writes the log")
        self.assertEqual(events.count("summary"), 1)

    def test_values_far_from_zero(self):
        """All ranks find the same units of the targets and predict in them."""
        rng = random.Random(1)
        rows = [[rng.gauss(0, 1) for _ in range(3)] for _ in range(300)]
        lines = ["a,b,c,y"] + ["%.6f,%.6f,%.6f,%.9f" % (*row, 2e4 + 0.01 * (row[0] + row[1] ** 2)) for row in rows]
        self.write("data.csv", "\n".join(lines) + "\n")
        data = ["--x", "data.csv", "--target", "y", *COMMON]
        for solver in ("direct", "cg", "ep4"):
            training = ["--task", "regression", "--centers", "60", "--solver", solver, "--validation-fraction", "0.1"]
            self.good("train", *data, *training, *ALONE, "-o", "alone.safetensors")
            for ranks in (2, 4):
                self.good("train", *data, *training, *on(ranks), "-o", "m.safetensors")
                self.assertEqual(self.read("m.safetensors"), self.read("alone.safetensors"), (solver, ranks))
                self.assertGreater(self.answer("eval", *data, *on(ranks), "-m", "m.safetensors")["r2"], 0.8, solver)

    def test_learned_features(self):
        """All ranks learn the same metric and model as one process."""
        rng = random.Random(3)
        rows = [[rng.gauss(0, 1) for _ in range(5)] for _ in range(240)]
        lines = ["a,b,c,d,e,y"] + [",".join("%.6f" % v for v in (*row, math.sin(3 * row[1]) + row[2])) for row in rows]
        self.write("data.csv", "\n".join(lines) + "\n")
        common = ["--x", "data.csv", "--target", "y", "--task", "regression", "--centers", "60", *COMMON]
        for kernel in ("matern32", "laplace-l1"):
            training = [*common, "--kernel", kernel, "--learn-features", "on", "--effort", "1"]
            self.good("train", *training, *ALONE, "-o", "alone.safetensors")
            self.assertIn("metric", self.answer("inspect", "alone.safetensors"))
            for ranks in (2, 4):
                self.good("train", *training, *on(ranks), "-o", "m.safetensors")
                self.assertEqual(self.read("m.safetensors"), self.read("alone.safetensors"), (kernel, ranks))

    def test_prediction_evaluation_centers(self):
        self.good("train", *DIGITS, *TRAININGS["ep4 pcg"], *ALONE, "-o", "m.safetensors")
        data = ["--synth", "digits", "--rows", "300", "--first", "5000", "--model", "m.safetensors"]
        self.good("predict", *data, "--scores", *ALONE, "-o", "one.npy")
        one = self.answer("eval", *data, *ALONE)
        lines = self.good("predict", *data, *ALONE, "-o", "-")
        centers = ["centers", "--synth", "digits", "--rows", "600", "--center-method", "kmeans", "-p", "40", "-q", "-o"]
        self.good(*centers, "centers.npy", "--device", DEVICES[0])
        for ranks in (2, 3):
            self.good("predict", *data, "--scores", *on(ranks), "-o", "more.npy")
            self.assertEqual(self.read("more.npy"), self.read("one.npy"))
            self.assertEqual(self.good("predict", *data, *on(ranks), "-o", "-"), lines)
            more = self.answer("eval", *data, *on(ranks))
            self.assertEqual([one[key] for key in ("accuracy", "mse", "rows")], [more[key] for key in ("accuracy", "mse", "rows")])
            self.assertEqual(self.good("eval", *data, *on(ranks)).count("accuracy"), 1)
            self.good(*centers, "more.npy", *on(ranks))
            self.assertEqual(self.read("more.npy"), self.read("centers.npy"))

    def test_summary_counts_ranks(self):
        answer = self.answer("train", *DIGITS, *TRAININGS["ep4 bgs"], *on(3), "-o", "m.safetensors")
        self.assertEqual(answer["ranks"], 3)
        self.assertGreater(answer["bytes_sent"], 0)


class Interrupted(Local):
    def interrupt(self, ranks, number):
        shutil.rmtree(self.path("run"), ignore_errors=True)
        process = self.start("train", *LONGER, *on(ranks), "-o", "m.safetensors", "--checkpoint", "run", "--checkpoint-every", "0.05s")
        self.wait_for_checkpoint(process)
        process.send_signal(number)
        code, _, err = self.finish(process)
        self.assertEqual(code, 75, err)
        self.assertEqual(err.count("mercer: "), 1, err)
        self.assertIn("mercer resume run", err)

    def test_resumed_on_another_number(self):
        self.good("train", *LONGER, *ALONE, "-o", "alone.safetensors")
        wanted = self.read("alone.safetensors")
        cases = [
            (2, signal.SIGINT, on(3)),
            (3, signal.SIGTERM, ["--device", DEVICES[0]]),
            (3, signal.SIGUSR2, []),  # the devices of the interrupted run
        ]
        for ranks, number, device in cases if SLOW == 1 else cases[::2]:
            self.interrupt(ranks, number)
            self.good("resume", "run", "-q", *device)
            self.assertEqual(self.read("m.safetensors"), wanted, (ranks, device))

    def test_started_as_one_process(self):
        self.good("train", *LONGER, *ALONE, "-o", "alone.safetensors")
        process = self.start("train", *LONGER, *ALONE, "-o", "m.safetensors", "--checkpoint", "run", "--checkpoint-every", "0.05s")
        self.wait_for_checkpoint(process)
        process.terminate()
        self.assertEqual(self.finish(process)[0], 75)
        self.good("resume", "run", "-q", *on(2))
        self.assertEqual(self.read("m.safetensors"), self.read("alone.safetensors"))

    def test_one_shard_stays_one_rank(self):
        process = self.start("train", *LONGER, "--device", DEVICES[0], "-o", "m.safetensors", "--checkpoint", "run", "--checkpoint-every", "0.05s")
        self.wait_for_checkpoint(process)
        process.terminate()
        self.assertEqual(self.finish(process)[0], 75)
        self.bad(2, "2 ranks .* 1 shards", "resume", "run", *on(2))
        self.good("resume", "run", "-q")

    def test_without_a_checkpoint(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            process = self.start("train", *longer(2000), *on(3), "-o", "m.safetensors", "--log", "log.jsonl")
            limit = time.monotonic() + 30 * SLOW
            while not (os.path.exists(self.path("log.jsonl")) and b"epoch" in self.read("log.jsonl")) and time.monotonic() < limit:
                time.sleep(0.01)
            process.send_signal(number)
            found, _, err = self.finish(process)
            self.assertEqual(found, code, err)
            self.assertEqual(err.count("mercer: "), 1, err)
            self.assertFalse(os.path.exists(self.path("m.safetensors")))
            os.remove(self.path("log.jsonl"))

    def test_at_any_moment(self):
        self.good("train", *LONGER, *ALONE, "-o", "alone.safetensors")
        rng = random.Random(1)
        for number in range(8 if os.environ.get("MERCER_TEST_LONG") else 4):
            shutil.rmtree(self.path("run"), ignore_errors=True)
            process = self.start("train", *LONGER, *on(2 + number % 2), "-o", "m.safetensors", "--checkpoint", "run", "--checkpoint-every", "0.05s")
            time.sleep(rng.uniform(0.0, 0.8))
            process.send_signal((signal.SIGINT, signal.SIGKILL)[number % 2])
            code, _, err = self.finish(process)
            self.assertIn(code, (0, 75, -signal.SIGINT, -signal.SIGKILL), err)
            if not os.path.exists(self.path("run", "config.json")):
                continue  # the signal arrived before the folder of the run existed
            self.good("resume", "run", "-q", *on(3 - number % 2))
            self.assertEqual(self.read("m.safetensors"), self.read("alone.safetensors"), number)


class Failures(Local):
    TRAIN = ["train", *DIGITS, "--rows", "200", "--centers", "40", "--solver", "ep4", "--epochs", "1", "-o", "m.safetensors"]

    def test_every_rank_meets_the_same(self):
        self.bad(66, "^mercer: nothing.npy", "train", "--x", "nothing.npy", "--y", "y.npy", "-o", "m.safetensors", *on(3))
        self.bad(65, "fewer than --centers", "train", *DIGITS, "--rows", "100", "--centers", "200", "-o", "m.safetensors", *on(2))
        self.bad(74, "/nowhere", "train", *DIGITS, "--rows", "100", "-o", "/nowhere/m.safetensors", *on(2))
        self.bad(66, "nothing.safetensors", "predict", "-m", "nothing.safetensors", "--synth", "digits", "-o", "p.npy", *on(2))
        self.bad(66, "nothing", "resume", "nothing", *on(2))
        self.assertFalse(os.path.exists(self.path("m.safetensors")))

    def test_files_that_end_early(self):
        """If any rank cannot open a file, all ranks end, and exactly one of them prints the reason."""
        bad = 0
        for most in range(3, 16):
            result = self.run_program(*self.TRAIN, *on(3), preexec_fn=lambda n=most: resource.setrlimit(resource.RLIMIT_NOFILE, (n, n)))
            text = result.stderr.decode()
            if result.returncode != 0 and "shared librar" not in text:  # otherwise the program itself could not be loaded
                bad += 1
                self.assertEqual(len([line for line in text.splitlines() if line.startswith("mercer: ")]), 1, text)
        if not os.environ.get("MERCER_TEST_DEVICES"):
            self.assertGreater(bad, 0)
        self.good(*self.TRAIN, *on(3))

    def test_a_full_disk(self):
        def little_memory():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))

        result = self.run_program(*self.TRAIN, *on(2), preexec_fn=little_memory, restore_signals=False)
        self.assertEqual(result.returncode, 74, result.stderr)
        self.assertEqual(result.stderr.count(b"mercer: "), 1, result.stderr)
        self.assertEqual([name for name in os.listdir(self.folder) if "m.safetensors" in name], [])

    def test_output_that_is_never_read(self):
        self.good(*self.TRAIN, *ALONE)
        with open("/dev/full", "wb") as full:
            self.bad(74, "stdout", "predict", "-m", "m.safetensors", "--synth", "digits", "--rows", "20000", "-o", "-", *on(2), stdout=full)
            self.bad(74, "stdout", "eval", "-m", "m.safetensors", "--synth", "digits", "--rows", "100", "--json", *on(2), stdout=full)

    def test_lists(self):
        for text, words in (
            ("cpu,gpu", "'gpu' .*cpu, cuda, cuda:N, cuda:all"),
            ("cpu,", "'' "),
            (",cpu", "'' "),
            ("cpu,auto", "auto cannot"),
            ("cpu,reference", "kind"),
            ("cpu,cuda:0", "kind"),
            ("cuda:x,cuda:0", "'cuda:x' "),
        ):
            self.bad(2, words, *self.TRAIN, "--device", text)
        self.bad(2, "3 ranks .* 2 shards", *self.TRAIN, "--shards", "2", *on(3))
        self.bad(2, "9 ranks .* 8 shards", *self.TRAIN, *on(9))
        self.bad(2, "mercer plan .*device", "plan", "--rows", "100", "--features", "3", *on(2))
        self.bad(2, "mercer bench .*device", "bench", "--quick", *on(2))

    def test_not_under_a_launcher(self):
        words = "device"
        self.bad(2, words, *self.TRAIN, "--comm", "mpi", *on(2))
        self.bad(2, words, *self.TRAIN, *on(2), environment={"OMPI_COMM_WORLD_SIZE": "1", "OMPI_COMM_WORLD_RANK": "0"})

    def test_reference(self):
        """Ranks work with any backend."""
        training = [*self.TRAIN[:-1], "m.safetensors"]
        self.good(*training, "--device", "reference", "--shards", "8")
        wanted = self.read("m.safetensors")
        self.good(*training, "--device", "reference,reference")
        self.assertEqual(self.read("m.safetensors"), wanted)


if __name__ == "__main__":
    main()
