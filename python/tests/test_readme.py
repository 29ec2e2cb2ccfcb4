# SPDX-License-Identifier: BSD-3-Clause
"""Python in README.md runs as it stands there, and is as short, good and fast as it says."""

import re
import time
from pathlib import Path

import pytest

pytest.importorskip("sklearn")
README = Path(__file__).parents[2] / "README.md"


def blocks():
    """The Python in README.md: three lines that are given data, and a whole example."""
    found = re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.M | re.S) if README.exists() else []
    if not found:
        pytest.skip("README.md is not here, or has no Python in it")
    assert len(found) == 2
    return found


def test_first_lines():
    numpy = pytest.importorskip("numpy")
    X = numpy.random.default_rng(0).uniform(-2, 2, (1200, 3))
    y = numpy.sin(X[:, 0]) + X[:, 1] * X[:, 2]
    names = {"X": X[:1000], "y": y[:1000], "X_test": X[1000:], "y_test": y[1000:]}
    text = blocks()[0]
    exec(compile(text, str(README), "exec"), names)
    assert names["model"].score(names["X_test"], names["y_test"]) > 0.9
    assert text.count("\n") == 3


def test_example():
    text = blocks()[1]
    names = {}
    start = time.process_time()
    exec(compile(text, str(README), "exec"), names)
    spent = time.process_time() - start
    model, X_test, y_test = names["model"], names["X_test"], names["y_test"]
    assert model.score(X_test, y_test) >= 0.985 and spent < 8  # of all processors; under 2 s of time on a quiet machine
    assert text.count("\n") <= 15
