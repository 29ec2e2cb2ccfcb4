# SPDX-License-Identifier: BSD-3-Clause
"""The examples in the docstrings and in docs/python.md give the output that they show."""

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import mercer

MODULES = sorted(info.name for info in pkgutil.iter_modules(mercer.__path__) if info.name != "__main__")


@pytest.mark.parametrize("name", ["mercer", *(f"mercer.{module}" for module in MODULES)])
def test_docstrings(name):
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0


def test_examples_exist():
    tried = sum(doctest.testmod(importlib.import_module(f"mercer.{name}")).attempted for name in MODULES)
    assert tried > 40


def test_page(tmp_path, monkeypatch):
    page = Path(__file__).parents[2] / "docs" / "python.md"
    if not page.exists():
        pytest.skip("docs/python.md is not next to these tests")
    monkeypatch.chdir(tmp_path)
    result = doctest.testfile(str(page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.attempted > 10 and result.failed == 0
