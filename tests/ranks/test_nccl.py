# SPDX-License-Identifier: BSD-3-Clause
"""Ranks whose GPUs exchange data through NCCL: the same bytes, and ranks that are killed or stopped.

usage: test_nccl.py PROGRAM. Needs a GPU, mpirun and mercer_nccl.so next to the program. NCCL allows only one rank per GPU of
a host. Every rank gets its own NCCL_HOSTID, so that ranks can share a GPU and NCCL connects them by sockets.
"""
import json
import os
import shutil
import signal
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from job import LONG, PROGRAM, Ranks, have, start  # noqa: E402

MACHINE = """#!/bin/sh
export NCCL_HOSTID=machine$OMPI_COMM_WORLD_RANK NCCL_SOCKET_IFNAME=lo
exec "$@"
"""
COMMON = ["--synth", "digits", "--rows", "20000", "--centers", "3000", "--kernel", "laplace:bandwidth=10"]
COMMON += ["--threads", "2", "--memory", "8G", "-q"]
TRAININGS = {
    "bgs": ["--solver", "ep4", "--projector", "bgs", "--epochs", "2"],
    "pcg": ["--solver", "ep4", "--projector", "pcg", "--epochs", "1"],
    "cg": ["--solver", "cg", "--epochs", "4"],
}
DEADLINE = 4.0


class Nccl(Ranks):
    def setUp(self):
        super().setUp()
        self.write("machine", MACHINE)
        os.chmod(self.path("machine"), 0o755)

    def launch(self, ranks, *arguments, **options):
        return super().launch(ranks, self.path("machine"), *arguments, **options)

    def test_same_bytes(self):
        for name, training in TRAININGS.items():
            for arithmetic in ("accurate", "fast"):
                options = [*COMMON, *training, "--device", "cuda", "--arithmetic", arithmetic]
                wanted = self.alone(*options)
                for ranks in (2, 3, 4, 8) if LONG else (2, 3):
                    out, _ = self.job(ranks, "train", *options, "--exchange", "nccl", "--json", "-o", "m.safetensors")
                    self.assertTrue(json.loads(out)["direct"])
                    self.assertEqual(self.read("m.safetensors"), wanted, "%s, %s, %d ranks" % (name, arithmetic, ranks))

    def test_a_rank_is_lost(self):
        training = [*COMMON, "--device", "cuda", "--solver", "ep4", "--projector", "bgs", "--epochs", "12"]
        wanted = self.alone(*training)
        os.environ["MERCER_TEST_JOB"] = self.folder
        for with_signal in (signal.SIGSTOP, signal.SIGKILL):
            shutil.rmtree(self.path("run"), ignore_errors=True)
            process = self.launch(
                3, PROGRAM, "train", *training, "--exchange", "nccl", "--deadline", str(DEADLINE), "--checkpoint", "run",
                "--checkpoint-every", "0.2s", "-o", "m.safetensors", flags=["-x", "MERCER_TEST_JOB", "--enable-recovery"],
            )
            limit = time.monotonic() + 60
            while not os.path.exists(self.path("run", "checkpoint.safetensors")) and time.monotonic() < limit:
                time.sleep(0.01)
            victim = self.ranks_of()[1]
            began = time.monotonic()
            os.kill(victim, with_signal)
            while set(self.ranks_of().values()) - {victim} and time.monotonic() < began + 30:
                time.sleep(0.05)
            took = time.monotonic() - began
            if with_signal == signal.SIGSTOP:
                os.kill(victim, signal.SIGKILL)
            _, err = process.communicate(timeout=30)
            self.assertLess(took, DEADLINE + 4, err.decode())
            self.assertRegex(err.decode(), r"rank 1 \(.*\) .*stopped")
            self.good("resume", "run", "-q")
            self.assertEqual(self.read("m.safetensors"), wanted, with_signal)

    def test_ranks_that_share_a_gpu(self):
        process = super().launch(2, PROGRAM, "train", *COMMON, *TRAININGS["pcg"], "--device", "cuda:0", "--exchange", "nccl", "-o", "m.safetensors")
        _, err = process.communicate(timeout=60)
        self.assertNotEqual(process.returncode, 0)
        self.assertIn("ranks 0 and 1 ", err.decode())


if __name__ == "__main__":
    if not os.path.exists(os.path.join(os.path.dirname(PROGRAM), "mercer_nccl.so")):
        print("Mercer was built without NCCL")
        sys.exit(77)
    if not have("nvidia-smi", "-L"):
        print("no GPU")
        sys.exit(77)
    start()
