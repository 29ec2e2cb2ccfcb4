#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""make_golden.py PROGRAM FOLDER: writes files with one version of the program that all later versions must read.

Run it once for each release, with the program of that release: make_golden.py mercer tests/model/golden/0.3.
tests/cli/test_golden.py reads all these folders. A folder holds tables; models of classes, of values, of a table with
missing values, and from 0.3 on the mean of three models of a table with prices and class weights; their predictions; and
an interrupted run with its checkpoint and its configuration, in which @FOLDER@ stands for the folder of the run.
"""
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROWS, FEATURES = 60, 3
COMMON = ["--centers", "12", "--seed", "1", "--threads", "1", "--memory", "1G", "-q"]


def tables(folder):
    """Write tables of points around three corners with classes (one name is not ASCII) and with values, a table with missing
    values, and one with prices such as $1,308."""
    rng = random.Random(5)
    classes, values, gaps = "a,b,c,kind\n", "a,b,c,value\n", "a,b,town,c,value\n"
    for i in range(ROWS):
        x = [round(rng.gauss(2.0 if j == i % 3 else 0.0, 0.7), 4) for j in range(FEATURES)]
        point = ",".join(map(repr, x))
        classes += f"{point},{('cat', 'dog', 'élan')[i % 3]}\n"
        values += f"{point},{x[0] - 0.5 * x[1] * x[2]:.4f}\n"
    for i in range(80):
        x = rng.gauss(0, 1)
        cells = ["" if rng.random() < 0.2 else repr(round(x + rng.gauss(0, 0.3), 4)) for _ in range(FEATURES)]
        gaps += ",".join([*cells[:2], rng.choice(["Ulm", "Bonn", ""]), cells[2]]) + f",{x:.4f}\n"
    means = "price,size,sold\n"
    for i in range(ROWS):
        price, size = rng.randint(900, 2500), rng.gauss(0, 1)
        means += f'"${price:,}",{size:.4f},{"yes" if price + 500 * size > 1700 else "no"}\n'
    for name, text in (("classes.csv", classes), ("values.csv", values), ("gaps.csv", gaps), ("means.csv", means)):
        with open(os.path.join(folder, name), "w", encoding="utf-8", newline="") as file:
            file.write(text)


def interrupted_run(program, folder):
    """Train until the first checkpoint exists, then interrupt the run, which writes its last checkpoint.

    There is no search, because a checkpoint of a search contains no model.
    """
    command = [program, "train", "--x", "classes.csv", "--target", "kind", "--tune", "off", "--solver", "ep4", "--projector", "exact",
               "--epochs", "300", "--checkpoint", "run", "--checkpoint-every", "0.01s", "-o", "resumed.safetensors", *COMMON]
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE)
    while process.poll() is None and not os.path.exists(os.path.join(folder, "run", "checkpoint.safetensors")):
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)
    process.communicate()
    if process.returncode != 75:
        raise SystemExit(f"the run was not interrupted: {process.returncode}; try again")
    path = os.path.join(folder, "run", "config.json")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace(folder, "@FOLDER@"))


def main():
    program, target = os.path.abspath(sys.argv[1]), sys.argv[2]
    with tempfile.TemporaryDirectory() as folder:
        folder = os.path.realpath(folder)

        def run(*arguments):
            subprocess.run([program, *arguments], cwd=folder, check=True)

        tables(folder)
        run("train", "--x", "classes.csv", "--target", "kind", "--solver", "ep4", "--epochs", "2", "-o", "classes.safetensors", *COMMON)
        run("train", "--x", "values.csv", "--target", "value", "--solver", "direct", "-o", "values.safetensors", *COMMON)
        run("train", "--x", "gaps.csv", "--target", "value", "--solver", "direct", "-o", "gaps.safetensors", *COMMON)
        run("train", "--x", "means.csv", "--target", "sold", "--effort", "4", "--class-weight", "balanced", "-o", "means.safetensors", *COMMON)
        interrupted_run(program, folder)
        for model, data, more, out in (
            ("classes", "classes", [], "classes.npy"),
            ("classes", "classes", ["--scores"], "scores.npy"),
            ("values", "values", [], "values.npy"),
            ("run/checkpoint", "classes", ["--scores"], "checkpoint.npy"),
            ("gaps", "gaps", [], "gaps.npy"),
            ("means", "means", ["--scores"], "means.npy"),
        ):
            run("predict", "-m", model + ".safetensors", "--x", data + ".csv", *more, "-o", out, "-q")
        shutil.copytree(folder, target)


if __name__ == "__main__":
    main()
