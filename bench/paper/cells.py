# SPDX-License-Identifier: BSD-3-Clause
"""Run the cells of the paper's figures. A cell is one command, which is run once; its results are saved.

The command prints one JSON object; in most cases it is `mercer train --json`. When the command ends, a line is added to cells.jsonl with
the output, the curve (the `epoch` events of the log), the processor seconds (user and system) and the command itself. Cells whose command
is already in the file are not run again. So an interrupted figure continues where it stopped, a figure with changed sizes runs only its new
cells, and figures share cells. A cell whose data are missing is skipped and reported.

Placeholders in commands: {mercer} is the program, {bench} the folder of built benchmarks, {data} the folder of the data, {out} the folder
of the results, {python} a Python with scikit-learn, and {compare} the folder of rivals.py. Saved lines contain the placeholders, so that
the lines are valid on other machines.
"""
import csv
import dataclasses
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time

# Fields of the output of `mercer train`, and of its plan, that are saved.
KEPT = ("accuracy", "r2", "mse", "train_loss", "epochs", "samples", "steps", "projections", "projection_residual", "seconds", "phases",
        "peak_bytes", "flops", "stopped", "halvings", "beta", "tail")
PLAN = ("solver", "projector", "batch", "nystrom", "eigenpairs", "period", "projector_nystrom", "projector_eigenpairs", "bytes", "flops")


@dataclasses.dataclass
class Cell:
    key: dict              # identifies the cell within its part; columns of the table
    command: list          # arguments, with the placeholders above
    data: str = ""         # folder below MERCER_DATA that the command reads; empty for none
    curve: bool = False    # whether to save the results of every epoch
    before: list = None    # command whose last argument is an input file of the cell; run if that file is missing

    def text(self):
        return shlex.join(self.command)


def train(key, data, *options, curve=False, before=None, bandwidth=10, rows=None):
    """Return a cell of `mercer train` on images, with the Laplace kernel."""
    command = ["{mercer}", "train", "--data", "{data}/" + data, "--kernel", f"laplace:bandwidth={bandwidth:g}", "--memory", "4G"]
    if rows:
        command += ["--rows", str(rows)]
    return Cell({"data": data, **key}, command + [str(option) for option in options], data, curve, before)


def first_rows(data, count):
    """Return the options that make the first `count` images the centers, and the command that writes the file of these centers."""
    path = f"{{out}}/{data}-first-{count}.npy"
    command = ["{mercer}", "centers", "--data", "{data}/" + data, "--rows", str(count), "--centers", "all", "--quiet", "--output", path]
    return ("--centers", count, "--center-method", "file:" + path), command


class Runner:
    """Runner of the cells of one part, with the saved lines of all parts."""

    def __init__(self, part, places, say):
        self.part, self.places, self.say = part, places, say
        self.path = os.path.join(places["out"], "cells.jsonl")
        self.rows = self.read()
        self.left_out, self.ran = [], 0

    def read(self):
        """Return the lines of finished cells by command; incomplete lines of a killed run are ignored."""
        rows = {}
        if os.path.exists(self.path):
            with open(self.path, encoding="utf-8") as file:
                for line in file:
                    try:
                        row = json.loads(line)
                        rows[row["command"]] = row
                    except ValueError:
                        continue
        return rows

    def missing(self, cell):
        """Return why a cell cannot run, or an empty string."""
        if cell.data and not self.places["data"]:
            return f"{cell.data}: MERCER_DATA is not set"
        if cell.data and not os.path.isdir(os.path.join(self.places["data"], cell.data)):
            return f"{cell.data}: not in MERCER_DATA"
        if "{python}" in cell.command[0] and not self.places["python"]:
            return "scikit-learn: not found; tools/setup compare gets it"
        return ""

    def fill(self, words):
        return [word.format(**self.places) if "{" in word else word for word in words]

    def has(self, cell):
        """Return whether the results of a cell are saved, including its curve if the cell has one."""
        row = self.rows.get(cell.text())
        return row is not None and (not cell.curve or "curve" in row)

    def leave_out(self, why):
        if why not in self.left_out:
            self.left_out.append(why)
            self.say(f"  left out: {why}")

    def run(self, cells):
        """Run the cells that have no saved results; return the rows of all cells that could run, in order."""
        done = []
        for cell in cells:
            why = self.missing(cell)
            if why:
                self.leave_out(why)
                continue
            if not self.has(cell):
                row = self.run_cell(cell)
                if "left_out" in row:
                    self.leave_out(row["left_out"])
                    continue
                self.rows[cell.text()] = row
            done.append({**self.rows[cell.text()], **cell.key})
        return done

    def run_cell(self, cell):
        if cell.before and not os.path.exists(self.fill(cell.before[-1:])[0]):
            subprocess.run(self.fill(cell.before), check=True)
        with tempfile.TemporaryDirectory() as scratch:
            command = self.fill(cell.command)
            log = os.path.join(scratch, "run.jsonl")
            if cell.command[:2] == ["{mercer}", "train"]:
                command += ["--json", "--quiet", "--output", os.path.join(scratch, "model.safetensors")]
                command += ["--log", log] if cell.curve else []
            text, usage, seconds = measured(command)
            row = {"part": self.part, **cell.key, "device": os.environ.get("MERCER_DEVICE", "cpu"), "command": cell.text(), "cpu_s": round(usage.ru_utime + usage.ru_stime, 2),
                   "wall_s": round(seconds, 2), "resident_bytes": usage.ru_maxrss * 1024, **result_of(json.loads(text))}
            if "left_out" in row:
                return row
            if cell.curve:
                row["curve"] = curve_of(log, row)
        # Start a new line if the file ends in an incomplete line.
        with open(self.path, "a+b") as file:
            file.seek(0, os.SEEK_END)
            if file.tell() > 0:
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    file.write(b"\n")
            file.write(json.dumps(row).encode() + b"\n")
        self.ran += 1
        self.say(f"  {' '.join(str(value) for value in cell.key.values())}: {row['cpu_s']:.1f} s of processors")
        return row


def measured(command):
    """Run a command; return its output, resource usage and seconds. Exit if it fails."""
    start = time.perf_counter()
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command, stdout=output)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            sys.exit(f"figure: {shlex.join(command)} ended with code {process.returncode}")
        output.seek(0)
        return output.read(), usage, time.perf_counter() - start


def result_of(summary):
    """Return the fields of a summary that are saved: KEPT and PLAN for `mercer train`, almost all for other commands."""
    if "plan" not in summary:
        return {name: value for name, value in summary.items() if name not in ("text", "output", "y_output")}
    kept = {name: summary[name] for name in KEPT if name in summary}
    kept["plan"] = {name: summary["plan"][name] for name in PLAN if name in summary["plan"]}
    kept["train_s"] = summary["seconds"] - summary["phases"].get("validation", 0)
    return kept


def curve_of(log, row):
    """Return [epoch, samples, training seconds, accuracy on the test images, training loss] of every epoch.

    The mean time of an evaluation of the test images is subtracted from the seconds once per epoch.
    """
    points = []
    with open(log, encoding="utf-8") as file:
        events = [event for event in map(json.loads, file) if event["event"] == "epoch"]
    each = row["phases"].get("validation", 0) / max(1, len(events))
    for number, event in enumerate(events):
        accuracy = event["validation_accuracy"]
        points.append([event["epoch"], event["samples"], round(event["seconds"] - each * (number + 1), 4), accuracy, event["train_loss"]])
    return points


def flat(row):
    """Yield the lines of a row in a CSV file: one per point of its curve, or a single one without a curve."""
    plain = {name: value for name, value in row.items() if name not in ("curve", "phases", "plan", "command")}
    plain.update({"plan_" + name: value for name, value in row.get("plan", {}).items()})
    plain = {name: value for name, value in plain.items() if not isinstance(value, (list, dict))}
    for epoch, samples, seconds, accuracy, loss in row.get("curve", []):
        yield {**plain, "epoch": epoch, "samples": samples, "train_s": seconds, "accuracy": accuracy, "train_loss": loss,
               "command": row["command"]}
    if not row.get("curve"):
        yield {**plain, "command": row["command"]}


def write_csv(path, rows):
    lines = [line for row in rows for line in flat(row)]
    names = list(dict.fromkeys(name for line in lines for name in line if name != "command")) + ["command"]
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, names, restval="")
        writer.writeheader()
        writer.writerows(lines)
