# SPDX-License-Identifier: BSD-3-Clause
"""Ranks that are killed or stopped or lack memory, and networks with delay, loss and partition (MERCER_TEST_LONG only)."""
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from job import COLLECTIVE, COMMON, DEADLINE, DIGITS, FLAGS, ENDLESS, LONG, LONGER, PROGRAM, SLOW, TRAININGS, Ranks, longer, start  # noqa: E402

MODULE = os.path.join(os.path.dirname(COLLECTIVE), "ranks_fail_memory.so")


class Faults(Ranks):
    def disturb(self, number, rng, with_signal, seconds):
        """Run a job on 4 ranks and send a signal to one rank at a random moment. Return whether the job was still running."""
        shutil.rmtree(self.path("run"), ignore_errors=True)
        for name in ("m.safetensors",):
            if os.path.exists(self.path(name)):
                os.remove(self.path(name))
        os.environ["MERCER_TEST_JOB"] = self.folder
        flags = ["-x", "MERCER_TEST_JOB"] + (["--enable-recovery"] if with_signal == signal.SIGKILL and number % 2 else [])
        process = self.launch(
            4, PROGRAM, "train", *LONGER, "-o", "m.safetensors", "--checkpoint", "run", "--checkpoint-every",
            "0.05s", "--deadline", str(DEADLINE), flags=flags,
        )
        if number % 4 < 3:  # the signal is sent during training; in every fourth job at any moment
            self.wait_for_folder(process)
        time.sleep(rng.uniform(0.0, 0.7) * seconds)
        ranks = self.ranks_of()
        victim = rng.randrange(4)
        began = time.monotonic()
        hit = victim in ranks
        if hit:
            try:
                os.kill(ranks[victim], with_signal)
            except ProcessLookupError:
                hit = False
        if not hit:
            process.communicate(timeout=60 * SLOW)
            return False
        while self.ranks_of() and time.monotonic() < began + (DEADLINE + 15) * SLOW:
            time.sleep(0.05)
        took, left = time.monotonic() - began, self.ranks_of()
        for pid in left.values():
            os.kill(pid, signal.SIGKILL)
        try:
            _, err = process.communicate(timeout=3)
        except subprocess.TimeoutExpired:
            # mpirun 4.1 may hang or crash if ranks end while they connect. This test is only about the ranks.
            process.kill()
            _, err = process.communicate()
        text = err.decode()
        self.assertEqual(left, {}, "the job did not end: " + text)
        if process.returncode == 0:
            return False  # The job had already finished.
        self.assertLess(took, (DEADLINE + 8) * SLOW, text)
        if process.returncode > 0:
            self.check(with_signal, victim, process.returncode, text, "--enable-recovery" in flags)
        return True

    def wait_for_folder(self, process):
        limit = time.monotonic() + 30 * SLOW
        while not os.path.exists(self.path("run", "config.json")) and process.poll() is None and time.monotonic() < limit:
            time.sleep(0.01)

    def check(self, with_signal, victim, code, text, recovers):
        if with_signal == signal.SIGSTOP or recovers:
            # The other ranks have noticed the loss. mpirun --enable-recovery returns the exit code of any rank, possibly
            # that of the killed one.
            if not recovers:
                self.assertEqual(code, 76, text)
            if " answer within " in text:
                return  # The rank was hit before the ranks were connected.
            if re.search(r"rank \d+ (\(.*\) )?.*stopped", text):
                self.assertRegex(text, r"rank %d (\(.*\) )?.*stopped" % victim)
            else:
                self.assertTrue(recovers or "rank %d" % victim in text, text)
        else:
            self.assertNotEqual(code, 0, text)
            self.assertRegex(text, r"rank %d|,1\],%d" % (victim, victim))  # a message of mpirun

    def many(self, with_signal, times):
        wanted = self.alone(*LONGER)
        process = self.launch(
            4, PROGRAM, "train", *LONGER, "-o", "m.safetensors", "--checkpoint", "run", "--checkpoint-every", "0.05s"
        )
        self.wait_for_folder(process)
        began = time.monotonic()
        _, err = process.communicate(timeout=60 * SLOW)
        seconds = time.monotonic() - began
        self.assertEqual(process.returncode, 0, err.decode())
        self.assertEqual(self.read("m.safetensors"), wanted)
        rng = random.Random(with_signal)
        hits, number = 0, -1
        while hits < times and number + 1 < 4 * times:
            number += 1
            hit = self.disturb(number, rng, with_signal, seconds)
            hits += hit
            if not hit:
                seconds *= 0.7  # The job had already finished, because the machine is less busy than when the job was timed.
            if not os.path.exists(self.path("run", "config.json")):
                continue  # The rank was hit before the folder of the run existed.
            ranks = (4, 2, 0)[number % 3]
            if ranks:
                self.job(ranks, "resume", "run", "-q")
            else:
                self.good("resume", "run", "-q")
            self.assertEqual(self.read("m.safetensors"), wanted, "signal %d, number %d" % (with_signal, number))
        self.assertEqual(hits, times, "%d disturbed jobs" % (number + 1))

    def test_messages_with_a_slow_launcher(self):
        """Messages of ranks are printed even if mpirun reads them late, and are also in errors.log of the run's folder."""
        os.environ["MERCER_TEST_JOB"] = self.folder
        process = self.launch(
            4, PROGRAM, "train", *ENDLESS, "-o", "m.safetensors", "--checkpoint", "run", "--deadline", str(DEADLINE),
            flags=["-x", "MERCER_TEST_JOB"],
        )
        self.wait_for_folder(process)
        victim = 2
        os.kill(self.ranks_of()[victim], signal.SIGSTOP)
        os.kill(process.pid, signal.SIGSTOP)
        limit = time.monotonic() + (DEADLINE + 8) * SLOW
        while not os.path.exists(self.path("run", "errors.log")) and time.monotonic() < limit:
            time.sleep(0.02)
        time.sleep(0.5)
        os.kill(process.pid, signal.SIGCONT)
        _, err = process.communicate(timeout=60 * SLOW)
        self.assertEqual(process.returncode, 76, err.decode())
        reason = r"rank %d \(.*\) .*stopped: .* %g s" % (victim, DEADLINE)
        self.assertRegex(err.decode(), r"mercer: .*" + reason)
        lines = self.read("run/errors.log").decode().splitlines()
        self.assertTrue(any(re.search(r"^\S+Z rank \d of 4 \(\S+, process \d+\): .*" + reason, line) for line in lines), lines)

    def test_killed(self):
        self.many(signal.SIGKILL, 20 if LONG else 3)

    def test_stopped(self):
        self.many(signal.SIGSTOP, 20 if LONG else 3)


class Memory(Ranks):
    """If an allocation of one rank fails, all ranks end soon with a message, and no incomplete or temporary file is left."""

    TRAINING = [*COMMON, "--synth", "spirals", "--rows", "300", "--centers", "40", "--solver", "ep4", "--projector", "bgs", "--batch", "50", "--epochs", "2"]

    def run_failing(self, rank, at):
        variables = {"LD_PRELOAD": MODULE, "MERCER_FAULT_RANK": str(rank), "MERCER_FAULT_AT": str(at), "MERCER_FAULT_COUNTS": self.path("counts")}
        passed = [word for name in variables if name != "LD_PRELOAD" for word in ("-x", name)]
        preload = "LD_PRELOAD=" + variables.pop("LD_PRELOAD")  # the environment of the ranks must not apply to mpirun itself
        process = self.launch(2, PROGRAM, "train", *self.TRAINING, "-o", "m.safetensors", "--checkpoint", "run", "--deadline", str(DEADLINE),
                              flags=[*passed, "-x", preload], variables=variables)  # fmt: skip
        began = time.monotonic()
        try:
            _, err = process.communicate(timeout=(DEADLINE + 30) * SLOW)
        except subprocess.TimeoutExpired:
            process.kill()
            _, err = process.communicate()
            self.fail("rank %d, allocation %d: the job did not end: %s" % (rank, at, err.decode()))
        return process.returncode, err.decode(), time.monotonic() - began

    def test_allocations(self):
        code, text, _ = self.run_failing(-1, -1)
        self.assertEqual(code, 0, text)
        wanted = self.read("m.safetensors")
        counts = [int(self.read("counts.%d" % rank)) for rank in range(2)]
        self.assertGreater(min(counts), 30)
        tried = refused = 0
        for rank, count in enumerate(counts):
            most = int(os.environ.get("MERCER_TEST_ALLOCATIONS", count if LONG else 2))
            for at in sorted({count * (2 * k + 1) // (2 * most) for k in range(min(most, count))}):
                shutil.rmtree(self.path("run"), ignore_errors=True)
                os.remove(self.path("m.safetensors")) if os.path.exists(self.path("m.safetensors")) else None
                code, text, seconds = self.run_failing(rank, at)
                what = (rank, at, code, text)
                tried += 1
                refused += code != 0
                if code == 0:
                    self.assertEqual(self.read("m.safetensors"), wanted, what)
                    continue
                self.assertIn(code, (1, 76), what)
                self.assertIn("memory", text, what)
                self.assertLess(seconds, (DEADLINE + 15) * SLOW, what)
                self.assertIn(self.read("m.safetensors") if os.path.exists(self.path("m.safetensors")) else wanted, (wanted,), what)
                left = [name for folder, _, names in os.walk(self.folder) for name in names if name.endswith(".tmp")]
                self.assertEqual(left, [], what)
        print("allocations of 2 ranks: %s, failed: %d, refused with a message: %d" % (counts, tried, refused))
        self.assertGreater(refused, tried // 2)


AGENT = """#!/bin/sh
# What mpirun starts its daemon on another host with: HOST COMMAND...
host=$1
shift
case $host in 10.77.0.1) space=%s ;; *) space=%s ;; esac
exec ip netns exec $space unshare --uts sh -c "hostname $space; exec sh -c \\"\\$0\\"" "$*"
"""


class Networks(Ranks):
    """Two simulated hosts with two ranks each; only with MERCER_TEST_LONG and if network namespaces are allowed."""

    def setUp(self):
        super().setUp()
        if not LONG:
            self.skipTest("MERCER_TEST_LONG is not set")
        relay = os.path.join(os.path.dirname(os.path.abspath(__file__)), "relay.py")
        self.network(0.0, 0.0, False)
        self.relay = subprocess.Popen(
            [sys.executable, relay, self.path("control")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.addCleanup(self.close)
        names = self.relay.stdout.readline().decode().split()
        if len(names) != 2:
            self.skipTest("network namespaces are not allowed here")
        self.names = names
        self.write("agent", AGENT % tuple(names))
        os.chmod(self.path("agent"), 0o755)

    def close(self):
        self.relay.stdin.close()
        self.relay.wait(20)
        self.relay.stdout.close()
        self.relay.stderr.close()

    def network(self, delay, loss, parted):
        self.write("control.new", "%g %g %d" % (delay, loss, parted))
        os.replace(self.path("control.new"), self.path("control"))

    def launch_there(self, *arguments):
        subnet = "10.77.0.0/24"
        command = ["ip", "netns", "exec", self.names[0], "unshare", "--uts", "sh", "-c", 'hostname "$0"; exec "$@"', self.names[0]]
        command += ["mpirun", *FLAGS, "--mca", "plm_rsh_agent", self.path("agent"), "--mca", "btl", "self,tcp"]
        command += ["--mca", "btl_tcp_if_include", subnet, "--mca", "oob_tcp_if_include", subnet, "--host", "10.77.0.1:2,10.77.0.2:2"]
        command += ["-x", "MERCER_MODULES", "-x", "MERCER_TEST_JOB", "-n", "4", PROGRAM, *arguments]
        environment = dict(os.environ, MERCER_MODULES=os.path.dirname(PROGRAM), MERCER_TEST_JOB=self.folder)
        with open(self.path("stderr"), "wb") as errors:  # a file, because leftover daemons would keep a pipe open
            return subprocess.Popen(
                command, cwd=self.folder, env=environment, stdout=subprocess.DEVNULL, stderr=errors, stdin=subprocess.DEVNULL
            )

    def test_delay_and_loss(self):
        training = [*DIGITS, *TRAININGS["ep4 pcg"]]
        wanted = self.alone(*training)
        for delay, loss in ((0.0, 0.0), (0.002, 0.0), (0.001, 0.01)):
            self.network(delay, loss, False)
            process = self.launch_there("train", *training, "-o", "m.safetensors")
            process.wait(180 * SLOW)
            self.assertEqual(process.returncode, 0, (delay, loss, self.read("stderr").decode()))
            self.assertEqual(self.read("m.safetensors"), wanted, (delay, loss))

    def test_partition(self):
        training = longer(60)
        wanted = self.alone(*training)
        self.network(0.001, 0.0, False)
        process = self.launch_there(
            "train", *training, "-o", "m.safetensors", "--checkpoint", "run", "--checkpoint-every", "0.2s", "--deadline", str(DEADLINE),
        )
        limit = time.monotonic() + 60 * SLOW
        while not os.path.exists(self.path("run", "checkpoint.safetensors")) and time.monotonic() < limit:
            self.assertIsNone(process.poll())
            time.sleep(0.05)
        time.sleep(0.5)
        self.assertEqual(len(self.ranks_of()), 4)
        self.network(0.0, 0.0, True)
        began = time.monotonic()
        while self.ranks_of() and time.monotonic() < began + 60 * SLOW:
            time.sleep(0.05)
        took = time.monotonic() - began
        self.assertEqual(self.ranks_of(), {}, "ranks on both sides must end")
        self.assertLess(took, (DEADLINE + 8) * SLOW)
        # mpirun and its daemon wait for each other forever, so the test kills them.
        for name in self.names:
            for pid in subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=True).stdout.split():
                os.kill(int(pid), signal.SIGKILL)
        process.wait(20)
        self.network(0.0, 0.0, False)
        self.assertRegex(self.read("stderr").decode(), r"rank [0-3] \(.*stopped")
        self.good("resume", "run", "-q")
        self.assertEqual(self.read("m.safetensors"), wanted)


if __name__ == "__main__":
    start()
