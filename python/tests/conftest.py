# SPDX-License-Identifier: BSD-3-Clause
"""Environment variables that must be set before the imports, and fixtures that several tests use."""

import os

# Without SCIPY_ARRAY_API, scikit-learn skips one of its estimator checks.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
os.environ.setdefault("MPLBACKEND", "agg")

import numpy as np  # noqa: E402
import pytest  # noqa: E402


def pytest_terminal_summary(terminalreporter):
    """Report the number of paths that test_paths.py ran. MERCER_PATHS=all runs all of them."""
    reports = terminalreporter.stats.get("passed", []) + terminalreporter.stats.get("failed", [])
    count = sum("test_paths.py::test_path[" in report.nodeid for report in reports)
    if count:
        terminalreporter.write_line(f"{count} paths run")


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def blobs():
    """Return three clouds in the plane that overlap slightly: X (1200, 2), y (1200)."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 1200)
    centers = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]])
    return centers[y] + rng.normal(size=(1200, 2)), y
