#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""train_stream.py MERCER FOLDER [ROWS] [CENTERS] [MEMORY]: train one epoch on a file that is larger than the memory budget.

Writes ROWS (default 5,000,000) synthetic digits as NPY files to FOLDER (784 bytes per row, 3.9 GB). Later runs reuse the files. Trains with
CENTERS (default 2,000) centers and a budget of MEMORY (default 1G), and tests on 10,000 more samples. Prints one line of JSON: sizes,
accuracy, seconds, the budget, and the peak resident memory, which includes mapped pages.
"""
import json
import os
import resource
import subprocess
import sys
import time


def main():
    if len(sys.argv) < 3:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    mercer, folder = sys.argv[1:3]
    rows, centers, memory = (sys.argv[3:] + ["5000000", "2000", "1G"][len(sys.argv) - 3 :])[:3]
    path = {name: os.path.join(folder, f"digits-{rows}-{name}.npy") for name in ("x", "y")}
    start = time.monotonic()
    if not all(os.path.exists(file) for file in path.values()):
        subprocess.run([mercer, "synth", "digits", "--rows", rows, "--seed", "1", "-o", path["x"], "--y-output", path["y"]],
                       check=True)
    made = time.monotonic() - start

    test = {name: os.path.join(folder, f"digits-test-{name}.npy") for name in ("x", "y")}
    subprocess.run([mercer, "synth", "digits", "--rows", "10000", "--seed", "2", "-o", test["x"], "--y-output", test["y"]],
                   check=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    start = time.monotonic()
    model = os.path.join(folder, "digits.safetensors")
    output = subprocess.run(
        [mercer, "train", "--x", path["x"], "--y", path["y"], "--x-val", test["x"], "--y-val", test["y"], "--centers", centers,
         "--kernel", "laplace:bandwidth=10", "--solver", "ep4", "--epochs", "1", "--memory", memory, "--json", "-o", model],
        check=True, stdout=subprocess.PIPE).stdout  # fmt: skip
    seconds = time.monotonic() - start
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    result = json.loads(output)
    print(json.dumps({
        "rows": int(rows), "features": 784, "file_bytes": os.path.getsize(path["x"]), "centers": int(centers),
        "memory": memory, "accuracy": result.get("accuracy"), "train_seconds": round(seconds, 1),
        "made_seconds": round(made, 1), "planned_and_held_bytes": result.get("peak_bytes"),
        "peak_resident_bytes": 1024 * max(peak, before),
    }))  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
