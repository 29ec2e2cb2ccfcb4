# SPDX-License-Identifier: BSD-3-Clause
"""The mercer program that the package brings along."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path


def program() -> str:
    """The program's path; MERCER_PROGRAM names another (for working on Mercer itself)."""
    path = os.environ.get("MERCER_PROGRAM") or str(Path(__file__).parent / "bin" / "mercer")
    if not os.access(path, os.X_OK):
        raise FileNotFoundError(f"the mercer program is missing: {path}")
    return path


def run(arguments: Sequence[str]) -> None:
    """Runs the program; its last line of complaint becomes the message of an OSError."""
    done = subprocess.run([program(), *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"mercer {arguments[0]} ended with {done.returncode}"]
        raise OSError(lines[-1])
