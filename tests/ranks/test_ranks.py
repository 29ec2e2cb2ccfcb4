# SPDX-License-Identifier: BSD-3-Clause
"""The program on several ranks: the same bytes for any number of ranks, communication costs, resuming, errors."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from job import COLLECTIVE, COMMON, DEFLATED, DIGITS, LONG, LONGER, PROGRAM, SHARED_MEMORY, SLOW, TCP, TRAININGS, Ranks, start  # noqa: E402


class SameBytes(Ranks):
    def test_every_solver(self):
        order = [2, 3, 4, 8, 1]
        # The short form omits most of the training runs that test_local.py makes with threads as ranks.
        names = list(TRAININGS) if LONG else ["direct", "ep4 bgs", "ep4 ep2", "ep3 bgs", "ep3-exact", "ep1", "pegasos", "nytro", "gd", "few", "krr"]
        for number, name in enumerate(names):
            wanted = self.alone(*DIGITS, *TRAININGS[name])
            for ranks in order if LONG else [8 if name == "few" else order[number % 3]]:
                self.same(name, ranks, wanted)

    def test_any_number_and_transport(self):
        wanted = self.alone(*DIGITS, *TRAININGS["ep4 bgs"])
        for ranks, flags in ((1, []), (8, []), (3, SHARED_MEMORY), (3, TCP)) if LONG else ((3, TCP),):
            self.same("ep4 bgs", ranks, wanted, flags)
        if LONG:
            for name in TRAININGS:
                wanted = self.alone(*DIGITS, *TRAININGS[name])
                for flags in (SHARED_MEMORY, TCP):
                    self.same(name, 4, wanted, flags)

    def test_data_in_several_files(self):
        self.good("synth", "digits", "--rows", "300", "-o", "x.npy", "--y-output", "y.npy", "-q")
        for number, (first, rows) in enumerate(((0, 110), (110, 40), (150, 150))):
            part = ["--x", "x.npy", "--y", "y.npy", "--first", str(first), "--rows", str(rows)]
            self.good("convert", *part, "-o", "part-%d.npy" % (number + 9), "--y-output", "labels-%d.npy" % (number + 9), "-q")
        training = [*COMMON, "--centers", "60", "--solver", "ep4", "--epochs", "2"]
        wanted = self.alone("--x", "x.npy", "--y", "y.npy", *training)
        self.job(2, "train", "--x", "part-*.npy", "--y", "labels-*.npy", *training, "-o", "m.safetensors")
        self.assertEqual(self.read("m.safetensors"), wanted)

    def test_temporary_centers(self):
        """Batches that are not divisible by the shards, short last batches, and batches with fewer rows than shards."""
        for name in ("ep4 uneven", "ep4 small"):
            wanted = self.alone(*DIGITS, *TRAININGS[name])
            for ranks in (1, 2, 3, 4, 8) if LONG else (3,):
                self.same(name, ranks, wanted)

    def test_conjugate_gradients(self):
        out = self.good("train", *DIGITS, *DEFLATED, "--epochs", "4", "--shards", "8", "-o", "alone.safetensors", "--json")
        self.assertEqual(json.loads(out)["plan"]["eigenpairs"], 150)
        exact = ["--rows", "400", "--centers", "60", "--solver", "cg", "--epochs", "6", "--lambda", "0.1"]
        for name, training in (("alone", [*DEFLATED, "--epochs", "4"]), ("exact", exact)):
            if name == "exact":
                self.good("train", *DIGITS, *training, "--shards", "8", "-o", "exact.safetensors")
            for ranks in (2, 3, 4, 8) if LONG else (3,):
                self.job(ranks, "train", *DIGITS, *training, "-o", "m.safetensors")
                self.assertEqual(self.read("m.safetensors"), self.read(name + ".safetensors"), "%s on %d ranks" % (name, ranks))

    def test_prediction_evaluation_centers(self):
        self.alone(*DIGITS, *TRAININGS["ep4 pcg"])
        data = ["--synth", "digits", "--rows", "300", "--first", "5000", "--model", "alone.safetensors"]
        self.good("predict", *data, "--scores", "--shards", "8", "-o", "one.npy")
        self.job(3, "predict", *data, "--scores", "-o", "three.npy")
        self.assertEqual(self.read("three.npy"), self.read("one.npy"))
        one = self.answer("eval", *data, "--shards", "8")
        out, _ = self.job(2, "eval", *data, "--json")
        self.assertEqual(out.count("\n"), 1, "one rank answers")
        two = json.loads(out)
        for key in ("accuracy", "mse", "rows"):
            self.assertEqual(one[key], two[key])
        centers = ["centers", "--synth", "digits", "--rows", "600", "--center-method", "kmeans", "-p", "40", "-q", "-o"]
        self.good(*centers, "one.npy")
        self.job(3, *centers, "three.npy")
        self.assertEqual(self.read("three.npy"), self.read("one.npy"))

    def test_collectives(self):
        for ranks in (1, 2, 3, 4, 5, 8) if LONG else (3, 4):
            process = self.launch(ranks, COLLECTIVE, "33" if LONG else "9")
            _, err = process.communicate(timeout=120 * SLOW)
            self.assertEqual(process.returncode, 0, err.decode())

    def test_rank_0_speaks_before_it_leaves(self):
        """Other ranks must not notice the end of rank 0 before its message is printed.

        A launcher ends a job when the first rank ends, so the message could be lost.
        """
        process = self.launch(4, COLLECTIVE, "9", "leave", self.path("spoken"))
        _, err = process.communicate(timeout=60 * SLOW)
        self.assertNotEqual(process.returncode, 3, err.decode())  # mpirun itself returns 1, because the ranks end without MPI_Finalize.
        self.assertTrue(os.path.exists(self.path("spoken")), err.decode())


class Costs(Ranks):
    """The bytes sent in an additional epoch agree with the cost model. Rank 0 counts them; all shares are equal here."""

    def epoch(self, ranks, options):
        sent = []
        for epochs in ("2", "3"):
            out, _ = self.job(ranks, "train", *COMMON, *options, "--epochs", epochs, "-o", "m.safetensors", "--json")
            sent.append(json.loads(out)["bytes_sent"])
        return sent[1] - sent[0]

    def test_bytes_of_an_epoch(self):
        base = ["--solver", "ep4", "--cache", "off", "--nystrom", "100", "--projector-nystrom", "100", "--average", "off"]
        cases = [
            (["--projector", "bgs", "--projector-block", "60", "--projector-eigenpairs", "20", "--projector-passes", "1", "--batch", "250", "--period", "2"], 4),
            (["--projector", "pcg", "--projector-eigenpairs", "20", "--projector-passes", "2", "--projector-tolerance", "1e-30", "--batch", "500", "--period", "1"], 4),
            (["--projector", "exact", "--lambda", "0.1", "--eigenpairs", "9", "--batch", "100", "--period", "5"], 2),
        ]
        for options, ranks in cases if LONG else cases[:2]:
            self.compare(240, 1000, [*base, *options], ranks)

    def test_bytes_of_a_step(self):
        """Conjugate gradients without and with a factorization; an epoch is one step."""
        self.compare(2400, 2500, DEFLATED[:4], 4)
        self.compare(240, 1000, ["--solver", "cg"], 2)
        self.compare(240, 1000, ["--solver", "cg", "--lambda", "0.1"], 8 if LONG else 4)
        if LONG:
            self.compare(2400, 2500, DEFLATED[:4], 8)

    def compare(self, centers, rows, options, ranks):
        if "--lambda" not in options:
            options = [*options, "--ridge", "none"]  # With a chosen ridge, the second step may end early.
        measured = self.epoch(ranks, ["--synth", "digits", "--rows", str(rows), "--centers", str(centers), *options])
        sizes = ["--rows", str(rows), "--features", "784", "--outputs", "10", "--data-type", "u8", "--centers", str(centers)]
        plan = [option for option in options if option != "--kernel" and not option.startswith("laplace")]
        planned = self.answer("plan", *sizes, *plan, "--epochs", "2", "--ranks", str(ranks), "--memory", "1G")["ranks"]
        self.assertLess(abs(measured / planned["epoch_bytes"] - 1), 0.03, (options, ranks, measured, planned))


class Resume(Ranks):
    def test_on_another_number_of_ranks(self):
        wanted = self.alone(*LONGER)
        for first, second in ((4, 2), (2, 0), (1, 3), (3, 8)) if LONG else ((3, 2), (2, 0)):
            shutil.rmtree(self.path("run"), ignore_errors=True)
            process = self.launch(first, PROGRAM, "train", *LONGER, "-o", "m.safetensors", "--checkpoint", "run", "--checkpoint-every", "0.05s")
            self.wait_for_checkpoint(process)
            process.send_signal(signal.SIGUSR1)  # writes a checkpoint and continues
            process.send_signal(signal.SIGUSR2)  # as from a scheduler that ends the job; mpirun forwards both signals
            _, err = process.communicate(timeout=60 * SLOW)
            self.assertEqual(process.returncode, 75, err.decode())
            self.assertIn("mercer resume run", err.decode())
            if second:
                self.job(second, "resume", "run", "-q")
            else:
                self.good("resume", "run", "-q")  # one process, no launcher
            self.assertEqual(self.read("m.safetensors"), wanted, "begun on %d, resumed on %d" % (first, second))

    def test_conjugate_gradients(self):
        """Vectors are divided among the ranks. A training run that is stopped after some steps resumes on other ranks."""
        training = [*DIGITS, *DEFLATED, "--epochs", "8", "--cache", "off"]
        wanted = self.alone(*training)
        for first, second in ((4, 2), (2, 0), (0, 3), (1, 8)) if LONG else ((4, 3),):
            shutil.rmtree(self.path("run"), ignore_errors=True)
            options = [*training, "-o", "m.safetensors", "--checkpoint", "run", "--checkpoint-every", "0.01s"]
            process = self.launch(max(first, 1), PROGRAM, "train", *options, *([] if first else ["--comm", "self", "--shards", "8"]))
            self.wait_for_step(process)
            process.send_signal(signal.SIGUSR2)
            _, err = process.communicate(timeout=60 * SLOW)
            self.assertEqual(process.returncode, 75, err.decode())
            if second:
                self.job(second, "resume", "run", "-q")
            else:
                self.good("resume", "run", "-q")
            self.assertEqual(self.read("m.safetensors"), wanted, "begun on %d, resumed on %d" % (first, second))

    def wait_for_step(self, process):
        """Wait until a second checkpoint has replaced the initial one."""
        limit, path, first = time.monotonic() + 30 * SLOW, self.path("run", "checkpoint.safetensors"), None
        while process.poll() is None and time.monotonic() < limit:
            now = os.stat(path).st_ino if os.path.exists(path) else None
            first = first or now
            if now and now != first:
                return
            time.sleep(0.01)

    def wait_for_checkpoint(self, process):
        limit = time.monotonic() + 30 * SLOW
        while process.poll() is None and time.monotonic() < limit:
            if os.path.exists(self.path("run", "checkpoint.safetensors")):
                time.sleep(0.2)
                return
            time.sleep(0.01)

    def test_a_run_of_one_shard_stays_in_one_process(self):
        process = subprocess.Popen(
            [PROGRAM, "train", *LONGER, "-o", "m.safetensors", "--checkpoint", "run", "--checkpoint-every", "0.05s"],
            cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        self.wait_for_checkpoint(process)
        process.terminate()
        process.communicate()
        _, err = self.job(2, "resume", "run", "-q", code=2)
        self.assertRegex(err, "2 ranks .* 1 shards")


class Refusals(Ranks):
    def test_ranks_that_were_started_differently(self):
        common = [*DIGITS, "--rows", "300", "--centers", "40", "--solver", "ep4", "--epochs", "1", "-o", "m.safetensors"]
        for other, words in ((["--seed", "5"], "rank 1 .*options"), (["--lambda", "2"], "rank 1 .*options")):
            process = self.launch(1, PROGRAM, "train", *common, ":", "-n", "1", PROGRAM, "train", *common, *other)
            _, err = process.communicate(timeout=60 * SLOW)
            self.assertEqual(process.returncode, 76, err.decode())
            self.assertRegex(err.decode(), words)
            self.assertEqual(err.decode().count("mercer: "), 1, err.decode())
            self.assertFalse(os.path.exists(self.path("m.safetensors")))

    def test_other_data(self):
        for name in ("one", "two"):
            os.mkdir(self.path(name))
            self.good("synth", "digits", "-n", "200", "-s", "1" if name == "one" else "2", "-o", name + "/x.npy", "--y-output", name + "/y.npy", "-q")
        common = ["train", "--x", "x.npy", "--y", "y.npy", "--centers", "40", "--solver", "ep4", "-q", "-o", "m.safetensors"]
        process = self.launch(1, "-wdir", self.path("one"), PROGRAM, *common, ":", "-n", "1", "-wdir", self.path("two"), PROGRAM, *common)
        _, err = process.communicate(timeout=60 * SLOW)
        self.assertEqual(process.returncode, 76, err.decode())
        self.assertRegex(err.decode(), "rank 1 .*data")

    def test_errors_are_printed_once(self):
        _, err = self.job(3, "train", "--x", "nothing.npy", "--y", "y.npy", "-o", "m.safetensors", code=66)
        self.assertEqual(err.count("nothing.npy"), 1, err)
        _, err = self.job(2, "train", *DIGITS, "--rows", "100", "--centers", "200", "-o", "m.safetensors", code=65)
        self.assertEqual(err.count("fewer than --centers"), 1, err)
        _, err = self.job(3, "train", *DIGITS, "--rows", "100", "--centers", "20", "--shards", "2", "-o", "m.safetensors", code=2)
        self.assertRegex(err, "3 ranks .* 2 shards")

    def test_without_the_module(self):
        result = self.run_program(
            "train", *DIGITS, "--rows", "100", "--centers", "10", "--comm", "mpi", "-o", "m.safetensors",
            environment={"MERCER_MODULES": self.folder},
        )
        if result.returncode != 0:  # The module may also be found next to the program.
            self.assertIn(b"mercer_mpi.so", result.stderr)

    def test_memory_falls(self):
        training = ["--rows", "600", "--centers", "all", "--solver", "ep4", "--projector", "bgs", "--epochs", "1", "--cache", "off", "--nystrom", "100", "--batch", "32", "--json"]
        cg = [*DEFLATED, "--epochs", "1", "--json"]
        for options, share in ((training, 1.0), (cg, 0.45)):
            peaks = {}
            for ranks in (1, 4):
                out, _ = self.job(ranks, "train", *DIGITS, *options, "-o", "m.safetensors")
                peaks[ranks] = json.loads(out)["peak_bytes"]
            self.assertLess(peaks[4], share * peaks[1])
        sizes = ["--rows", "2500", "--features", "784", "--outputs", "10", "--data-type", "u8", "--centers", "2400", "--solver", "cg"]
        planned = self.answer("plan", *sizes, "--epochs", "1", "--ranks", "4", "--memory", "1G")["ranks"]
        self.assertLess(abs((peaks[1] - peaks[4]) / (3 * planned["shared_bytes"]) - 1), 0.1, (peaks, planned))


if __name__ == "__main__":
    start()
