#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_readme.py [ROOT [PROGRAM]]: checks that README.md is short and that its code and commands work.

- README.md has at most 150 lines. The first C block of docs/c.md is identical to examples/readme.c, which another test runs.
- Stated versions are the current one, and the Makefile has every `make` target. README.md has at most six
  lines of Python, which python/tests/test_readme.py runs.
- With PROGRAM, every line of README.md and docs/first-model.md that begins with `mercer` is run next to a copy of examples.
- `make test` and `make demo` are not run: the first one runs this script, the second one is tested by tests/cli/test_demo.py.

check_readme.py --print python|commands: prints the Python block or the mercer commands, for tools/try-debian.
"""
import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile

MOST_LINES, MOST_PYTHON = 150, 6
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def check_example():
    found, example = blocks(read("docs", "c.md"), "c"), read("examples", "readme.c")
    if not found:
        return ["docs/c.md has no ```c block"]
    if found[0] == example:
        return []
    difference = difflib.unified_diff(example.splitlines(), found[0].splitlines(), "examples/readme.c", "docs/c.md", lineterm="")
    return [*difference, "docs/c.md and examples/readme.c differ: make them the same"]


def check_words(page, text):
    """Check the versions in file names, and the targets of make."""
    header = read("include", "mercer", "mercer.h")
    version = ".".join(re.search(rf"MERCER_VERSION_{part} (\d+)", header).group(1) for part in ("MAJOR", "MINOR", "PATCH"))
    stated = re.findall(r"\./(\w+)[-_](\d+\.\d+\.\d+)", text) + re.findall(r"(is version|find_package\(Mercer) (\d+\.\d+(?:\.\d+)?)", text)
    for name, found in stated:
        if not f"{version}.".startswith(found + "."):
            yield f"{page}: {name} {found}, this is {version}"
    verbs = set(re.findall(r"^([a-z-]+):.*##", read("Makefile"), re.MULTILINE))
    commands = "\n".join(blocks(text, "sh"))
    for verb in re.findall(r"\bmake ([a-z][a-z-]*)\b", commands) + re.findall(r"`make ([a-z-]+)`", text):
        if verb not in verbs:
            yield f"{page}: make {verb}: no such verb"


def commands(page):
    return [line for block in blocks(read(page), "sh") for line in block.splitlines() if line.startswith("mercer ")]


def run_commands(program, page):
    """Run all lines that begin with `mercer`, in order, in one folder with a copy of the examples."""
    lines = commands(page)
    if not lines:
        return [f"{page}: no command of the program"]
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(os.path.join(ROOT, "examples"), os.path.join(folder, "examples"))
        # Stand-in for the table that the README's Python code writes; python/tests/test_readme.py uses the real one.
        with open(os.path.join(folder, "tumours.csv"), "w", encoding="utf-8") as file:
            file.write("radius,texture,benign\n" + "".join(f"{i % 17},{i % 13},{int(i % 17 < 9)}\n" for i in range(200)))
        os.symlink(os.path.abspath(program), os.path.join(folder, "mercer"))
        path = folder + os.pathsep + os.environ.get("PATH", "")
        for line in lines:
            done = subprocess.run(["sh", "-ec", line], cwd=folder, env=dict(os.environ, PATH=path), stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, check=False)
            if done.returncode:
                return [f"{page}: {line}", done.stdout]
    return []


def main():
    global ROOT
    text = read("README.md")
    if sys.argv[1:2] == ["--print"]:
        print("\n".join(commands("README.md") + commands("docs/first-model.md")) if sys.argv[2] == "commands"
              else "".join(blocks(text, sys.argv[2])))
        return 0
    ROOT = sys.argv[1] if len(sys.argv) > 1 else ROOT
    text = read("README.md")
    problems = [*check_example(), *check_words("README.md", text), *check_words("docs/install.md", read("docs", "install.md")),
                *check_words("docs/c.md", read("docs", "c.md"))]
    if text.count("\n") > MOST_LINES:
        problems.append(f"README.md: {text.count(chr(10))} lines, at most {MOST_LINES}")
    python = blocks(text, "python")
    if len(python) != 1 or python[0].count("\n") > MOST_PYTHON:
        problems.append(f"README.md: one block of Python, of at most {MOST_PYTHON} lines")
    if len(sys.argv) > 2:
        problems += run_commands(sys.argv[2], "README.md") + run_commands(sys.argv[2], "docs/first-model.md")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
