# SPDX-License-Identifier: BSD-3-Clause
"""Run jobs in lanes. A lane is a process that is bound to its own processors and takes the next job of its kind.

Jobs start in order. A job yields lines, which are passed on immediately, so an interrupted run loses only the lines of unfinished jobs. If
a process dies, its job fails, and a new process replaces it.
"""
import multiprocessing
import os
import time
from multiprocessing import connection

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def lanes_of(text, kinds):
    """Return (kind, processors) of each lane.

    The text "1x4,6x2" means one lane of the first kind with 4 processors, and 6 lanes of the second kind with 2 processors each.
    """
    free, found = sorted(os.sched_getaffinity(0)), []
    groups = [tuple(int(part) for part in group.split("x")) for group in text.split(",")]
    if len(groups) > len(kinds):
        raise SystemExit(f"--lanes {text}: there are {len(kinds)} kinds of lanes")
    for kind, (count, cores) in zip(kinds, groups):
        for _ in range(count):
            if cores > len(free):
                raise SystemExit(f"--lanes {text}: {len(os.sched_getaffinity(0))} processors are not enough")
            found.append((kind, free[:cores]))
            free = free[cores:]
    return found


def _serve(pipe, cores, work):
    os.sched_setaffinity(0, cores)
    for name in THREADS:  # must be set before a package that reads these variables is loaded
        os.environ[name] = str(len(cores))
    while True:
        job = pipe.recv()
        try:
            for line in work(job, len(cores)):
                pipe.send(line)
        except Exception as error:  # only this job fails; all other jobs continue
            pipe.send({"failed": f"{type(error).__name__}: {error}"[:300]})
        pipe.send(None)


class Lane:
    def __init__(self, kind, cores, work):
        self.kind, self.cores, self.work, self.job = kind, cores, work, None
        self.start()

    def start(self):
        spawn = multiprocessing.get_context("spawn")
        self.pipe, other = spawn.Pipe()
        self.process = spawn.Process(target=_serve, args=(other, self.cores, self.work), daemon=True)
        self.process.start()
        other.close()

    def stop(self):
        self.process.kill()
        self.process.join()


def run(lanes, jobs, kind_of, work, limit=float("inf")):
    """Yield (job, line) for each line that work(job, number of processors) yields, for all jobs. A lane of kind None takes any job."""
    end, waiting = time.monotonic() + limit, list(jobs)
    lanes = [Lane(kind, cores, work) for kind, cores in lanes]
    try:
        while time.monotonic() < end:
            for lane in lanes:
                if lane.job is None:
                    lane.job = next((job for job in waiting if lane.kind in (None, kind_of(job))), None)
                    if lane.job is not None:
                        waiting.remove(lane.job)
                        lane.pipe.send(lane.job)
            busy = {lane.pipe: lane for lane in lanes if lane.job is not None}
            if not busy:
                return
            for pipe in connection.wait(list(busy), timeout=max(0, min(end - time.monotonic(), 3600))):
                lane = busy[pipe]
                try:
                    line = pipe.recv()
                except (EOFError, ConnectionResetError):
                    yield lane.job, {"failed": "the process ended"}
                    lane.stop()
                    lane.start()
                    line = None
                if line is not None:
                    yield lane.job, line
                else:
                    lane.job = None
    finally:
        for lane in lanes:
            lane.stop()
