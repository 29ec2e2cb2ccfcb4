#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""run.py SOURCE WORK [WHEEL [TEST...]]: `pip install SOURCE[test]` into a virtual environment under WORK, then all Python
tests. WORK is a folder in the tree: the package is built there, as far from the sources as other builds, and by the same
compiler, so that a compiler cache knows what it compiles. With WHEEL, that is installed and nothing is built; with TESTs
only those run.

The environment and the build are kept between runs, so that the second run takes the time of the tests. Exits with 77
and a reason where the tests cannot run: Python older than 3.10, no venv module, no pip, no packages to be had.
"""

import os
import re
import subprocess
import sys

SKIP = 77


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIP)


def call(command, **options):
    print("+", " ".join(command), flush=True)
    return subprocess.run(command, check=False, **options)


def environment(work):
    """The Python of the virtual environment, made if it is not there."""
    folder = os.path.join(work, "venv")
    python = os.path.join(folder, "bin", "python")
    if not os.path.exists(python) or call([python, "-m", "pip", "--version"], stdout=subprocess.DEVNULL).returncode:
        made = call([sys.executable, "-m", "venv", "--clear", folder], stdout=subprocess.PIPE, text=True)
        if made.returncode:
            skip("python3 -m venv does not work here (on Debian: apt-get install python3-venv)")
    return python


def requirements(source):
    """What pyproject.toml asks for to build and to test, without a parser that Python 3.10 does not have."""
    with open(os.path.join(source, "pyproject.toml"), encoding="utf-8") as file:
        text = file.read()
    names = ("requires", "dependencies", "test")
    lists = [re.search(rf"^{name} = \[(.*?)\]", text, re.M | re.S).group(1) for name in names]
    return [item for found in lists for item in re.findall(r'"([^"]+)"', found)]


def fetch(python, source, work):
    """Installs the requirements, unless the last run did."""
    wanted = requirements(source)
    stamp = os.path.join(work, "requirements")
    if os.path.exists(stamp):
        with open(stamp, encoding="utf-8") as file:
            if file.read() == "\n".join(wanted):
                return
    # Modules are compiled when they are imported: most of these packages' never are.
    quiet = ["--quiet", "--disable-pip-version-check", "--no-compile", "--retries", "2", "--timeout", "20"]
    done = call([python, "-m", "pip", "install", *quiet, *wanted], stderr=subprocess.PIPE, text=True)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["pip failed"]
        skip("the packages that the tests need cannot be installed: " + lines[-1])
    with open(stamp, "w", encoding="utf-8") as file:
        file.write("\n".join(wanted))


def main():
    source, work = (os.path.abspath(path) for path in sys.argv[1:3])
    if sys.version_info < (3, 10):
        skip(f"the Python package needs Python 3.10, this is {sys.version.split()[0]}")
    os.makedirs(work, exist_ok=True)
    for name in ("MERCER_LIBRARY", "MERCER_PROGRAM", "PYTHONPATH", "PYTHONHOME"):
        os.environ.pop(name, None)
    python = environment(work)
    fetch(python, source, work)
    os.environ.setdefault("CC", "cc")  # CMake's choice; the build backend would take that of the Python interpreter
    # From here on a failure is a failure.
    build = ["--config-settings=build-dir=" + work, "--no-build-isolation", "--no-deps"]
    if not os.path.exists("/dev/nvidiactl"):  # nothing here could run what takes longest to compile
        build.append("--config-settings=cmake.define.MERCER_CUDA=OFF")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--force-reinstall"]
    if call([*pip, "--no-deps", os.path.abspath(sys.argv[3])] if len(sys.argv) > 3 else [*pip, *build, source]).returncode:
        sys.exit("pip could not build and install the package")
    tests = [os.path.join(source, "python", "tests", name) for name in sys.argv[4:] or [""]]
    # Compiled modules are kept, whatever is usual here, and not beside the sources: the tests start a hundred processes.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = os.path.join(work, "pycache")
    sys.exit(call([python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests], cwd=work).returncode)


if __name__ == "__main__":
    main()
