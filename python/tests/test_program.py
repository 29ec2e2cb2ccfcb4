# SPDX-License-Identifier: BSD-3-Clause
"""The program in the package, and the package without optional dependencies."""

import subprocess
import sys

import mercer


def python(*arguments, **options):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, **options)


def test_program():
    done = python("-m", "mercer", "--version")
    assert done.returncode == 0 and mercer.__version__ in done.stdout
    assert python("-m", "mercer", "no-such-command").returncode == 2


def test_version_is_that_of_the_package():
    from importlib.metadata import PackageNotFoundError, version

    try:
        assert version("mercer") == mercer.__version__
    except PackageNotFoundError:
        assert mercer.__version__.count(".") == 2  # The tests run from the source tree.


def test_numpy_is_enough():
    code = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("sklearn", "scipy", "pandas", "matplotlib"):
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Refuse())
import numpy as np, mercer
X = np.random.default_rng(0).normal(size=(50, 3))
model = mercer.Model("laplace:bandwidth=1", X)
mercer.Trainer(model).fit(X, X[:, :1])
assert np.allclose(model.predict(X), X[:, :1], atol=1e-6)
try:
    mercer.KernelClassifier
except ImportError as error:
    print(error)
"""
    done = python("-c", code)
    assert done.returncode == 0, done.stderr
    assert "mercer[sklearn]" in done.stdout


def test_unknown_names():
    assert "KernelClassifier" in dir(mercer)
    try:
        mercer.no_such_thing
    except AttributeError as error:
        assert "no_such_thing" in str(error)
    else:
        raise AssertionError


def test_missing_library(tmp_path):
    import os

    done = python("-c", "import mercer", env={**os.environ, "MERCER_LIBRARY": str(tmp_path / "gone.so")})
    assert done.returncode == 1 and "gone.so" in done.stderr and "ImportError" in done.stderr
