# SPDX-License-Identifier: BSD-3-Clause
"""Shared helpers for the tests of ranks: jobs under mpirun, and training runs that are fast on two processors.

The arguments of a test file are PROGRAM COLLECTIVE. MERCER_TEST_LONG runs all combinations; every run has a time limit.
"""
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
COLLECTIVE = os.path.abspath(sys.argv.pop(2)) if len(sys.argv) > 2 else ""
from support import PROGRAM, Case, main  # noqa: E402

LONG = bool(os.environ.get("MERCER_TEST_LONG"))
SLOW = float(os.environ.get("MERCER_TEST_SLOW", "1"))  # factor of time limits, for sanitizers
FLAGS = ["--oversubscribe", "--allow-run-as-root", "--bind-to", "none"]
SHARED_MEMORY = ["--mca", "btl", "self,vader"]
TCP = ["--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", "lo"]
DEADLINE = 4.0  # seconds; long enough for a rank that is not scheduled for a while

COMMON = ["--threads", "1", "--memory", "1G", "-q"]
DIGITS = ["--synth", "digits", *COMMON]
# Quick training runs with every solver, projector and center method.
TRAININGS = {
    "direct": ["--rows", "400", "--centers", "60", "--solver", "direct"],
    "krr": ["--rows", "200", "--centers", "all", "--solver", "krr", "--lambda", "0.1"],
    "cg": ["--rows", "400", "--centers", "60", "--solver", "cg", "--epochs", "3"],
    "ep4 bgs": ["--rows", "500", "--centers", "150", "--solver", "ep4", "--projector", "bgs", "--projector-block", "40", "--epochs", "2"],
    "ep4 pcg": ["--rows", "500", "--centers", "120", "--solver", "ep4", "--projector", "pcg", "--epochs", "2"],
    "ep4 uneven": ["--rows", "501", "--centers", "120", "--solver", "ep4", "--projector", "bgs", "--projector-block", "40", "--batch", "37", "--period", "6", "--epochs", "2", "--cache", "off"],
    "ep4 small": ["--rows", "203", "--centers", "60", "--solver", "ep4", "--projector", "pcg", "--batch", "5", "--period", "7", "--lambda", "0.1", "--epochs", "1"],
    "ep4 ep2": ["--rows", "400", "--centers", "100", "--solver", "ep4", "--projector", "ep2", "--epochs", "1", "--cache", "off"],
    "ep3 bgs": ["--rows", "400", "--centers", "100", "--solver", "ep3", "--projector", "bgs", "--epochs", "1", "--lambda", "0.1"],
    "ep3-exact": ["--rows", "400", "--centers", "80", "--solver", "ep3-exact", "--epochs", "1"],
    "ep2": ["--rows", "200", "--centers", "all", "--solver", "ep2", "--epochs", "2"],
    "ep1": ["--rows", "200", "--centers", "all", "--solver", "ep1", "--epochs", "2"],
    "richardson": ["--rows", "150", "--centers", "all", "--solver", "richardson", "--epochs", "2"],
    "pegasos": ["--rows", "150", "--centers", "all", "--solver", "pegasos", "--epochs", "2"],
    "nytro": ["--rows", "300", "--centers", "60", "--solver", "nytro", "--epochs", "2"],
    "gd": ["--rows", "300", "--centers", "60", "--solver", "gd", "--epochs", "2"],
    "kmeans f64": ["--rows", "500", "--centers", "50", "--center-method", "kmeans", "--precision", "f64", "--solver", "ep4", "--epochs", "1"],
    "rpcholesky": ["--rows", "400", "--centers", "50", "--center-method", "rpcholesky", "--solver", "ep4", "--epochs", "1", "--polish", "2"],
    "balanced": ["--rows", "400", "--centers", "60", "--center-method", "balanced", "--solver", "ep4", "--validation-fraction", "0.1", "--patience", "1", "--epochs", "3"],
    "standardize": ["--rows", "400", "--centers", "60", "--preprocess", "standardize", "--kernel", "gaussian", "--solver", "ep4", "--epochs", "1"],
    "other norm": ["--rows", "400", "--centers", "60", "--kernel", "laplace-l1", "--center-method", "rpcholesky", "--solver", "ep4", "--epochs", "1"],
    "few": ["--rows", "60", "--centers", "3", "--solver", "ep4", "--epochs", "1"],
}
# Conjugate gradients without a factorization of K(Z,Z), which needs more than 2000 centers in shards and a rough kernel.
# With 2400 centers, the polynomial preconditioner has degree 3.
DEFLATED = ["--solver", "cg", "--kernel", "laplace:bandwidth=8", "--rows", "2500", "--centers", "2400"]


def longer(epochs):
    """Return the options of a training run with many exchanges."""
    training = [*COMMON, "--synth", "spirals", "--rows", "2000", "--centers", "300", "--solver", "ep4", "--projector", "bgs", "--batch", "170"]
    return [*training, "--period", "5", "--epochs", str(epochs), "--cache", "off", "--nystrom", "200", "--projector-nystrom", "150"]


LONGER = longer(12)  # about a second on four ranks that share two cores
ENDLESS = longer(100000)


class Ranks(Case):
    def launch(self, ranks, *arguments, flags=(), variables=(), **options):
        environment = dict(os.environ, MERCER_MODULES=os.path.dirname(PROGRAM), OMPI_MCA_rmaps_base_oversubscribe="1",
                           OMPI_MCA_mpi_yield_when_idle="1")
        # In containers a process may not be allowed to read the memory of another one, and Open MPI would warn about it.
        environment["OMPI_MCA_btl_vader_single_copy_mechanism"] = "none"
        environment.update(variables)
        return subprocess.Popen(
            ["mpirun", *FLAGS, *flags, "-n", str(ranks), *arguments],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            **options,
        )

    def job(self, ranks, *arguments, code=0, flags=()):
        """Run the program on `ranks` ranks and return its stdout and stderr."""
        process = self.launch(ranks, PROGRAM, *arguments, flags=flags)
        try:
            out, err = process.communicate(timeout=60 * SLOW)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            self.fail("%d ranks did not end: %s %s" % (ranks, arguments, err.decode()))
        self.assertEqual(process.returncode, code, (ranks, arguments, err.decode()))
        return out.decode(), err.decode()

    def ranks_of(self):
        """Return the process of the program for each rank that this test's mpirun has started (with -x MERCER_TEST_JOB)."""
        found = {}
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            try:
                with open("/proc/%s/environ" % name, "rb") as file:
                    environ = file.read()
                with open("/proc/%s/cmdline" % name, "rb") as file:
                    command = file.read()
            except OSError:
                continue
            rank = re.search(rb"OMPI_COMM_WORLD_RANK=(\d+)", environ)
            if rank and command.startswith(PROGRAM.encode()) and ("MERCER_TEST_JOB=%s" % self.folder).encode() in environ:
                found[int(rank.group(1))] = int(name)
        return found

    def alone(self, *training, name="alone.safetensors"):
        """Train in one process, with as many shards as several ranks use, and return the bytes of the model."""
        self.good("train", *training, "--shards", "8", "-o", name)
        return self.read(name)

    def same(self, name, ranks, wanted, flags=()):
        self.job(ranks, "train", *DIGITS, *TRAININGS[name], "-o", "m.safetensors", flags=flags)
        self.assertEqual(self.read("m.safetensors"), wanted, "%s on %d ranks" % (name, ranks))


def have(*command):
    try:
        return subprocess.run(command, capture_output=True, timeout=20).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def start():
    """Run the tests of a file; exit with 77 (skipped) if mpirun or the MPI module is missing."""
    if not have("mpirun", "--version") or not os.path.exists(os.path.join(os.path.dirname(PROGRAM), "mercer_mpi.so")):
        print("no mpirun, or Mercer was built without MPI")
        sys.exit(77)
    main()
