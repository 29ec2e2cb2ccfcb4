#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""train_stream.py MERCER FOLDER [ROWS] [CENTERS] [MEMORY]: one epoch over a file that is larger than the memory budget.

Makes ROWS (5,000,000) synthetic digits as NPY files in FOLDER (784 bytes a row, 3.9 GB; kept there and used again),
trains CENTERS (2,000) with a budget of MEMORY (1G), tests on 10,000 more, and prints one line of JSON: sizes, accuracy,
seconds, the budget, and the most memory the process had resident, mapped pages included.
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
