# SPDX-License-Identifier: BSD-3-Clause
"""Worker processes and threads with several kinds of work, and several ways to end: nothing hangs and Python does not crash."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

import mercer

LIMIT = 120  # time limit of a script in seconds; a script takes a few seconds

# Functions for workers and threads. Their results are bytes that must not depend on the process or thread.
WORK = """
import multiprocessing, os, signal, sys, threading, time
import numpy as np
import mercer

rng = np.random.default_rng(0)
Z, Y = rng.normal(size=(60, 4)), rng.normal(size=(60, 2))
X = rng.normal(size=(40, 4))
MODEL = mercer.Model("laplace:bandwidth=3", Z, outputs=2, n_jobs=2)
MODEL.weights[...] = Y

def predicts(model):
    return model.predict(X).tobytes()

def trains(_):
    model = mercer.Model("gaussian:bandwidth=2", Z, outputs=2, n_jobs=2)
    mercer.Trainer(model, solver="direct", ridge=1e-3).fit(Z, Y)
    return model.weights.tobytes()

def fits(_):
    return mercer.KernelRegressor(centers=20, random_state=0, n_jobs=2).fit(Z, Y).predict(X).tobytes()

def chooses(_):
    return mercer.centers.kmeans(Z, 5, random_state=1).tobytes()

WORKS = [predicts, trains, chooses]
if os.environ.get("MERCER_TEST_LONG"):
    WORKS.append(fits)  # takes a second to import scikit-learn
"""


def start(folder: Path, *parts: str) -> subprocess.Popen[str]:
    """Start a script in a new process. It is a file, because spawned workers import it."""
    path = folder / "script.py"
    path.write_text("".join(textwrap.dedent(part) for part in (WORK, *parts)), encoding="utf-8")
    folders = os.pathsep.join([str(Path(mercer.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", str(path)],
        env={**os.environ, "PYTHONPATH": folders},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Wait for a process and return its exit code, stdout and stderr. A process that exceeds the time limit fails the test."""
    try:
        out, error = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        pytest.fail("hangs")
    return process.returncode, out, error


METHODS = ["fork", "spawn", "forkserver"] if os.environ.get("MERCER_TEST_LONG") else ["fork", "spawn"]
ENDS = ["sys.exit(3)", "signal.raise_signal(signal.SIGTERM)"]
if os.environ.get("MERCER_TEST_LONG"):
    ENDS += ["os._exit(3)", "1 / 0"]


@pytest.mark.parametrize("method", METHODS)
def test_workers(method, tmp_path):
    """A worker gives the same results as the parent, which has used the library before. Models are sent as pickles."""
    done = start(
        tmp_path,
        f"""
        if __name__ == "__main__":
            wanted = [work(MODEL) for work in WORKS]
            with multiprocessing.get_context({method!r}).Pool(1) as pool:
                found = [pool.apply(work, (MODEL,)) for work in WORKS]
            assert found == wanted, [a == b for a, b in zip(found, wanted)]
            print("same")
        """,
    )
    assert finish(done) == (0, "same\n", "")


def test_threads(tmp_path):
    """Eight threads do all kinds of work concurrently and share one model for predictions."""
    done = start(
        tmp_path,
        """
        from concurrent.futures import ThreadPoolExecutor
        wanted = [work(MODEL) for work in WORKS]
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda i: WORKS[i % len(WORKS)](MODEL) == wanted[i % len(WORKS)], range(64)))
        assert all(found), found
        print("same")
        """,
    )
    assert finish(done) == (0, "same\n", "")


@pytest.mark.parametrize("end", ENDS)
def test_ends_while_workers_and_threads_run(end, tmp_path):
    done = start(
        tmp_path,
        f"""
        for work in WORKS:
            threading.Thread(target=lambda work=work: [work(MODEL) for _ in iter(int, 1)], daemon=True).start()
        time.sleep(0.2)
        {end}
        """,
    )
    code, out, error = finish(done)
    assert out == ""
    if end == "1 / 0":
        assert code == 1 and error.rstrip().endswith("ZeroDivisionError: division by zero")
    else:
        assert (code, error) == (-signal.SIGTERM if "SIGTERM" in end else 3, "")


def test_control_c(tmp_path):
    """Ctrl-C at any moment raises KeyboardInterrupt, and later results are unchanged."""
    process = start(
        tmp_path,
        """
        wanted = [work(MODEL) for work in WORKS]
        caught = 0
        print("ready", flush=True)
        while caught < 3 * len(WORKS):
            try:
                while True:
                    WORKS[caught % len(WORKS)](MODEL)
            except KeyboardInterrupt:
                caught += 1
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        assert [work(MODEL) for work in WORKS] == wanted
        print("same")
        """,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    for k in range(2000):
        if process.poll() is not None:
            break
        time.sleep(0.013 + 0.001 * (k % 7))
        process.send_signal(signal.SIGINT)
    code, out, error = finish(process)
    # Python reports and ignores an interrupt inside a finalizer. An interrupt inside the except block ends the script.
    if error:
        assert error.startswith(("Exception ignored in", "Traceback")) and error.rstrip(": \n").endswith("KeyboardInterrupt")
    if not error.startswith("Traceback"):
        assert (code, out) == (0, "same\n")


def test_errors_of_callbacks_are_raised(tmp_path):
    done = start(
        tmp_path,
        """
        def stop(progress):
            raise RuntimeError("enough")
        model = mercer.Model("gaussian:bandwidth=2", Z, outputs=2, n_jobs=2)
        try:
            mercer.Trainer(model, solver="ep4", epochs=3, callbacks=[stop]).fit(Z, Y)
        except RuntimeError as error:
            print(error)
        print(predicts(MODEL) == predicts(MODEL))
        """,
    )
    assert finish(done) == (0, "enough\nTrue\n", "")
