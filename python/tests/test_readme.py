# SPDX-License-Identifier: BSD-3-Clause
"""The Python code in README.md and in the tutorials runs unchanged, and the README's model reaches the stated accuracy."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sklearn")
pytest.importorskip("pandas")
ROOT = Path(__file__).parents[2]
TUTORIALS = ["docs/first-model.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("tutorial-*.md"))]


@pytest.fixture
def least_effort(monkeypatch):
    """Set effort 1 for fits without an explicit effort, to save time; larger efforts have their own tests."""
    from mercer._estimators import DEFAULT_EFFORT, KernelEstimator

    sizes = KernelEstimator._sizes
    monkeypatch.setattr(KernelEstimator, "_sizes", lambda self: {"effort": 1} if self.effort == DEFAULT_EFFORT else sizes(self))


def blocks(page):
    """Return the blocks of Python code of a page."""
    path = ROOT / page
    found = re.findall(r"^```python\n(.*?)^```$", path.read_text(), re.M | re.S) if path.exists() else []
    if not found:
        pytest.skip(f"{page} is not here, or has no Python in it")
    return found


def test_lines_of_readme(monkeypatch, capsys, tmp_path):
    """The Python code runs, and then the shell commands on the table that it writes."""
    monkeypatch.chdir(tmp_path)
    (text,) = blocks("README.md")
    exec(compile(text, "README.md", "exec"), {})
    said = float(re.search(r"test rows: ([0-9.]+) or more", text).group(1))
    assert float(capsys.readouterr().out) >= said - 0.005
    commands = re.findall(r"^mercer (.*)$", (ROOT / "README.md").read_text(), re.M)
    assert len(commands) == 2
    for command in commands:
        line = f"{shlex.quote(sys.executable)} -m mercer {command}"  # in a shell, for redirections and comments
        done = subprocess.run(line, shell=True, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert len((tmp_path / "classes.csv").read_text().splitlines()) == 570


@pytest.mark.parametrize("page", TUTORIALS)
def test_tutorials(page, monkeypatch, tmp_path, least_effort):
    """All blocks of a page run in order, in a folder with the examples. tests/docs/check_docs.py compares the notebooks."""
    pytest.importorskip("matplotlib")
    monkeypatch.setenv("MPLBACKEND", "Agg")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    names = {}
    for text in blocks(page):
        exec(compile(text, page, "exec"), names)
