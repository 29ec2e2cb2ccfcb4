# SPDX-License-Identifier: BSD-3-Clause
"""The scripts in examples/python run and print plausible results."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

pytest.importorskip("sklearn")

FOLDER = Path(__file__).parents[2] / "examples" / "python"
if not FOLDER.exists():
    pytest.skip("examples/python is not next to these tests", allow_module_level=True)

ARGUMENTS = {"large_tabular": ["5000", "300"]}


def run(name):
    command = [sys.executable, str(FOLDER / f"{name}.py"), *ARGUMENTS.get(name, [])]
    with tempfile.TemporaryDirectory() as folder:  # for the files that the scripts leave for the user
        environment = {**os.environ, "TMPDIR": folder}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_all_examples_are_run():
    assert {path.stem for path in FOLDER.glob("*.py")} == {
        "digits",
        "large_tabular",
        "streaming",
        "augmentation",
        "torch_loader",
        "torch_gpu",
    }


def test_digits():
    assert float(re.search(r"accuracy (\S+)", run("digits")).group(1)) >= 0.985


def test_large_tabular():
    out = run("large_tabular")
    assert float(re.search(r"seen: (\S+)", out).group(1)) > 0.7 and "report.html" in out


def test_streaming():
    accuracies = [float(value) for value in re.findall(r"accuracy (\S+)", run("streaming"))]
    assert len(accuracies) == 6 and accuracies[-1] > max(0.8, accuracies[0])


def test_augmentation():
    without, with_shifts = (float(value) for value in re.findall(r"accuracy (\S+)", run("augmentation")))
    assert with_shifts > without > 0.5


def test_torch_loader():
    out = run("torch_loader")
    if "needs PyTorch" in out:
        pytest.skip("PyTorch is not here")
    errors = [float(value) for value in re.findall(r"error (\S+)", out)]
    assert errors[-1] < min(0.05, errors[0])


def test_torch_gpu():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    out = run("torch_gpu")
    assert "on cuda:0" in out and float(re.search(r"left: (\S+)", out).group(1)) < 0.5
    moved = [int(value.replace(",", "")) for value in re.findall(r"host ([\d,]+)", out)]
    assert len(moved) == 2 and max(moved) < 100_000  # bytes; the samples have 5 MB
