#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""run.py SOURCE WORK [WHEEL [TEST...]]: installs the Python package into a virtual environment under WORK and runs its tests.

The package is built in WORK, a folder in the source tree, with the compiler of other builds, so that the compiler
cache helps. With WHEEL, this file is installed and nothing is built; with TESTs, only these run.

The environment and the build are kept, so that later runs only take the time of the tests. Exits with 77 and a reason if
the tests cannot run: Python is older than 3.10, the venv module or pip is missing, or packages cannot be installed.
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
    """Return the Python of the virtual environment, which is created if necessary."""
    folder = os.path.join(work, "venv")
    python = os.path.join(folder, "bin", "python")
    if not os.path.exists(python) or call([python, "-m", "pip", "--version"], stdout=subprocess.DEVNULL).returncode:
        made = call([sys.executable, "-m", "venv", "--clear", folder], stdout=subprocess.PIPE, text=True)
        if made.returncode:
            skip("python3 -m venv does not work here (on Debian: apt-get install python3-venv)")
    return python


def requirements(source):
    """Return the requirements of the build and the tests. They are found by patterns, because Python 3.10 has no TOML parser."""
    with open(os.path.join(source, "pyproject.toml"), encoding="utf-8") as file:
        text = file.read()
    names = ("requires", "dependencies", "test")
    lists = [re.search(rf"^{name} = \[(.*?)\]", text, re.M | re.S).group(1) for name in names]
    return [item for found in lists for item in re.findall(r'"([^"]+)"', found)]


def fetch(python, source, work):
    """Install the requirements, unless an earlier run has installed the same ones."""
    wanted = requirements(source)
    stamp = os.path.join(work, "requirements")
    if os.path.exists(stamp):
        with open(stamp, encoding="utf-8") as file:
            if file.read() == "\n".join(wanted):
                return
    # --no-compile: imports compile modules, and most modules of these packages are never imported.
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
    os.environ.setdefault("CC", "cc")  # CMake's default; the build backend would use the compiler of the Python interpreter
    # From here on, a failure is not counted as skipped.
    build = ["--config-settings=build-dir=" + work, "--no-build-isolation", "--no-deps"]
    if not os.path.exists("/dev/nvidiactl"):  # Without a GPU, skip CUDA code, which takes longest to compile.
        build.append("--config-settings=cmake.define.MERCER_CUDA=OFF")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--force-reinstall"]
    if call([*pip, "--no-deps", os.path.abspath(sys.argv[3])] if len(sys.argv) > 3 else [*pip, *build, source]).returncode:
        sys.exit("pip could not build and install the package")
    tests = [os.path.join(source, "python", "tests", name) for name in sys.argv[4:] or [""]]
    # Keep compiled modules, but outside the source folder: the tests start about a hundred processes.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = os.path.join(work, "pycache")
    # One worker per processor. A worker gets whole files, because the tests of a file share fits.
    workers = ["-n", str(len(os.sched_getaffinity(0))), "--dist", "loadfile"]
    sys.exit(call([python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *workers, *tests], cwd=work).returncode)


if __name__ == "__main__":
    main()
