# SPDX-License-Identifier: BSD-3-Clause
"""Processes that exit or fork while other threads are inside the library."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import mercer

LIMIT = 120  # time limit of a script in seconds; a script takes a few seconds

# Start of every script: endless() keeps background threads busy, fork() runs a function in a child process. A call of
# model.predict in PREDICTS takes some tenths of a second.
BEGINNING = """
import os, signal, sys, threading, time
import numpy as np
import mercer
rng = np.random.default_rng(0)

def endless(work, count=1):
    for _ in range(count):
        threading.Thread(target=lambda: [work() for _ in iter(int, 1)], daemon=True).start()

def fork(work):
    "Calls work in a child; its exit code, or None if it hangs."
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException as error:
            print(f"child: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        finally:
            os._exit(code)
    end = time.monotonic() + 20
    while time.monotonic() < end:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None
"""

PREDICTS = """
model = mercer.Model("laplace:bandwidth=5", rng.normal(size=(2000, 20)), outputs=3, n_jobs=2)
model.weights[...] = rng.normal(size=(2000, 3))
X = rng.normal(size=(3000, 20))
"""

TRAINS = """
Z, Y = rng.normal(size=(150, 5)), rng.normal(size=(150, 1))
def train(solver="direct"):
    model = mercer.Model("gaussian:bandwidth=2", Z, n_jobs=2)
    mercer.Trainer(model, solver=solver, ridge=1e-3, epochs=3).fit(Z, Y)
    return model
"""


def run(*parts):
    """Run a script in a new process."""
    folder = str(Path(mercer.__file__).parents[1])
    paths = os.pathsep.join([folder, *filter(None, [os.environ.get("PYTHONPATH")])])
    script = "".join(textwrap.dedent(part) for part in (BEGINNING, *parts))
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )


@pytest.mark.parametrize("delay", [0.02, 0.11, 0.2, 0.33])
def test_exit_while_threads_predict(delay):
    done = run(PREDICTS, f"endless(lambda: model.predict(X), 2)\ntime.sleep({delay})\n")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("solver", ["direct", "cg", "ep4"])
@pytest.mark.parametrize("delay", [0.05, 0.2])
def test_exit_while_threads_train(solver, delay):
    done = run(TRAINS, f"endless(lambda: train({solver!r}), 2)\ntime.sleep({delay})\n")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("delay", [0.2, 0.25, 0.3, 0.35, 0.4, 0.45])
def test_exit_while_threads_are_inside_blas(delay):
    """The linear algebra library releases its memory at exit, so no thread may be inside it at that point."""
    done = run(
        f"""
        Z, Y = rng.normal(size=(1200, 5)), rng.normal(size=(1200, 1))
        def train():
            mercer.Trainer(mercer.Model("gaussian:bandwidth=2", Z, n_jobs=1), solver="direct", ridge=1e-3).fit(Z, Y)
        endless(train, 2)
        time.sleep({delay})
        """
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_exit_while_a_thread_reads_a_dataset():
    done = run("data = mercer.Dataset.synthesize('digits', 2000)\nendless(data.read)\ntime.sleep(0.1)\n")
    assert (done.returncode, done.stderr) == (0, "")


def test_fork_while_threads_predict():
    """The child has a usable model, but none of the threads that were using it."""
    done = run(
        PREDICTS,
        """
        wanted = model.predict(X[:50])
        endless(lambda: model.predict(X), 2)

        def check():
            assert np.array_equal(model.predict(X[:50]), wanted)

        codes = []
        for _ in range(8):
            time.sleep(0.03)
            codes.append(fork(check))
        print(codes)
        """,
    )
    assert (done.returncode, done.stderr, done.stdout) == (0, "", f"{[0] * 8}\n")


def test_fork_while_threads_train():
    """A lock that another thread held at the fork must not stay locked in the child."""
    done = run(
        TRAINS,
        """
        endless(train, 2)
        codes = []
        for _ in range(100):
            time.sleep(0.003)
            codes.append(fork(train))
            if codes[-1] != 0:
                break
        print(set(codes))
        """,
    )
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "{0}\n")


def test_a_model_that_was_trained_at_the_fork_is_refused_in_the_child():
    done = run(
        TRAINS,
        """
        model = mercer.Model("gaussian:bandwidth=2", Z)
        trainer = mercer.Trainer(model, solver="ep4", epochs=10**6)
        threading.Thread(target=trainer.fit, args=(Z, Y), daemon=True).start()
        time.sleep(0.3)

        def refused():
            try:
                trainer.finish()
            except RuntimeError as error:
                assert "forked" in str(error)
            else:
                raise AssertionError("the child continued with an incomplete step")
            train()

        print(fork(refused))
        """,
    )
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "0\n")


def test_control_c_works_in_a_child_that_a_thread_forked():
    """A call in the main thread defers Control-C. A child that another thread forks during the call must undo this itself."""
    done = run(
        PREDICTS,
        """
        def child():
            try:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(5)
            except KeyboardInterrupt:
                return
            raise AssertionError("Control-C was swallowed")

        codes, stop = [], threading.Event()

        def forks():
            for _ in range(5):
                time.sleep(0.05)
                codes.append(fork(child))
            stop.set()

        threading.Thread(target=forks).start()
        while not stop.is_set():
            model.predict(X)
        print(codes)
        """,
    )
    assert (done.returncode, done.stderr, done.stdout) == (0, "", f"{[0] * 5}\n")


def test_fork_inside_a_callback():
    """If the training thread forks, its child continues the training."""
    done = run(
        TRAINS,
        """
        codes = []

        def callback(progress):
            if progress["pass_samples"] == 0 and not codes:
                codes.append(None)
                child = os.fork()
                if child == 0:
                    codes.append("child")
                else:
                    codes[0] = child

        model = mercer.Model("gaussian:bandwidth=2", Z, n_jobs=2)
        report = mercer.Trainer(model, solver="ep4", epochs=4, callbacks=[callback]).fit(Z, Y)
        if codes[-1] == "child":
            os._exit(0 if report["epochs"] == 4 else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(codes[0], 0)[1]))
        """,
    )
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "0\n")


def test_threads_follow_the_environment(monkeypatch):
    for said, threads in (("3", 3), ("2,1", 2), (" 1 ", 1)):
        monkeypatch.setenv("OMP_NUM_THREADS", said)
        assert mercer.Context().info()["threads"] == threads
        assert mercer.Context(5).info()["threads"] == 5
    for said in ("", "0", "-2", "many", "99999999999"):
        monkeypatch.setenv("OMP_NUM_THREADS", said)
        everything = mercer.Context(-1).info()["threads"]
        assert mercer.Context().info()["threads"] == everything == len(os.sched_getaffinity(0))


def test_workers_share_the_processors():
    """joblib limits the processors of each worker, and the library starts no more threads than the limit."""
    joblib = pytest.importorskip("joblib")
    with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
        found = joblib.Parallel(n_jobs=2)(joblib.delayed(_threads)() for _ in range(4))
    assert found == [1] * 4
    with joblib.parallel_config(backend="loky", n_jobs=2):
        found = joblib.Parallel()(joblib.delayed(_threads)() for _ in range(4))
    assert max(found) <= max(1, (os.cpu_count() or 1) // 2)


def _threads():
    return mercer.Context().info()["threads"]
