#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_docs.py [ROOT]: checks statements of the documentation about the sources.

- Links between pages have existing targets, including anchors, and every path of the tree in backticks exists.
- The walk in docs/architecture.md has at most 20 hops. Each hop names a function, its file and a call. The function exists
  in that file, has at least 3 statements and mentions the call. From this hop or an earlier one, at most 4 calls lead to
  the function of the next hop: by name, by the name of its public function, or by a member of a table.
- A comment ends right before every public function of the headers.
- The table of stages in docs/architecture.md has the stages of src/fit/stages.c, in their order.
- docs/architecture.svg is up to date with the includes (tools/make-graph), docs/comparison.svg with the recorded results
  (tools/make-comparison) and examples/notebooks with the tutorials (tools/make-notebooks). The menu of tools/make-docs has
  every page, and its API page has every public function.
- The sizes of each effort in docs/tuning.md agree with the sources.
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.normpath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
import csource  # noqa: E402 (the lines above must come first)

MOST_HOPS, LEAST_STATEMENTS, DEEPEST = 20, 3, 4
LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"(?:src|cli|include|python|tests|tools|docs|bench|examples|cmake|\.ci)/[\w./*{},<>-]*$")
HOP = re.compile(r"^\d+\. `(\w+)` \(`([^`]+)`\)(.*(?:\n   .*)*)", re.MULTILINE)
CALLS = re.compile(r"calls\s+`([^`]+)`")


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def pages():
    found = [*glob.glob(os.path.join(ROOT, "*.md")), *glob.glob(os.path.join(ROOT, "docs", "*.md"))]
    return sorted(os.path.relpath(page, ROOT) for page in found)


def anchors(text):
    """Return the anchor names that GitHub gives to headings."""
    heads = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.replace("`", "").lower()).replace(" ", "-") for head in heads}


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def check_links(page, text):
    for match in LINK.finditer(text):
        target, _, anchor = match.group(1).partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        path = os.path.normpath(os.path.join(os.path.dirname(page), target)) if target else page
        if not os.path.exists(os.path.join(ROOT, path)):
            yield f"{page}:{line_of(text, match.start())}: no file {path}"
        elif anchor and path.endswith(".md") and anchor not in anchors(read(path)):
            yield f"{page}:{line_of(text, match.start())}: {path} has no heading #{anchor}"


def spellings(path):
    """Expand braces: a/{b,c}.md gives a/b.md and a/c.md."""
    match = re.search(r"\{([^}]*)\}", path)
    if not match:
        return [path]
    return [s for part in match.group(1).split(",") for s in spellings(path[: match.start()] + part + path[match.end() :])]


def check_paths(page, text):
    for match in CODE.finditer(text):
        word = match.group(1).split(":")[0].rstrip("/")
        if not PATH.match(word) or "<" in word or "NAME" in word:
            continue
        for path in spellings(word):
            if not glob.glob(os.path.join(ROOT, path)):
                yield f"{page}:{line_of(text, match.start())}: no such file: {path}"


class Calls:
    """Approximate call graph of the library and the program: the functions that each function mentions."""

    def __init__(self):
        self.bodies, self.members, self.listed = {}, {}, set()
        for path in csource.sources(ROOT, ["src", "cli"]):
            text = read(path)
            code, lines = csource.strip_comments(text), text.split("\n")
            for function in csource.functions(text):
                body = csource.strip_comments("\n".join(lines[function.first - 1 : function.last]))
                self.bodies.setdefault(function.name, {})[path.replace(os.sep, "/")] = body
            for member, name in re.findall(r"\.(\w+)\s*=\s*(\w+)\b", code):
                self.members.setdefault(member, set()).add(name)
            self.listed.update(re.findall(r"\b(\w+)\s*[,}]", code))

    def mentioned(self, words):
        """Return the functions that a body with these words may call."""
        found = set()
        for word in words:
            found |= {word, re.sub("^mercer_", "mrc_", word)} & self.bodies.keys()
            found |= self.members.get(word, set()) & self.bodies.keys()
        return found

    def lead(self, start, goal):
        """Return whether at most DEEPEST calls lead from `start`, a function or a member of a table, to the function `goal`."""
        layer, seen = self.mentioned({re.split(r"->|\.", start)[-1]}), set()
        if not layer or re.search(r"->|\.", start):  # Rows of a table may list functions without member names.
            layer |= self.listed & self.bodies.keys()
        for _ in range(DEEPEST):
            if goal in layer:
                return True
            seen |= layer
            words = {word for name in layer for body in self.bodies[name].values() for word in re.findall(r"\w+", body)}
            layer = self.mentioned(words) - seen
        return goal in layer


def check_hop(where, hop, calls):
    name, path, rest = hop
    if not os.path.exists(os.path.join(ROOT, path)):
        return [f"{where}: no file {path}"]
    body = calls.bodies.get(name, {}).get(path)
    if body is None:
        return [f"{where}: not a function of {path}"]
    said = CALLS.search(rest)
    if not said:
        return [f"{where}: does not say what it calls"]
    problems = [] if body.count(";") >= LEAST_STATEMENTS else [f"{where}: only forwards"]
    if said.group(1) not in body:
        problems.append(f"{where}: does not mention {said.group(1)}")
    return problems


def check_walk():
    hops, calls = HOP.findall(read("docs/architecture.md")), Calls()
    if not hops:
        return ["docs/architecture.md: no walk"]
    problems = [] if len(hops) <= MOST_HOPS else [f"docs/architecture.md: {len(hops)} hops, at most {MOST_HOPS}"]
    before = []
    for number, hop in enumerate(hops, 1):
        where = f"docs/architecture.md: hop {number}, {hop[0]}"
        problems += check_hop(where, hop, calls)
        if before and not any(calls.lead(start, hop[0]) for start in before):
            problems.append(f"{where}: nothing before leads there")
        said = CALLS.search(hop[2])
        before += [hop[0], said.group(1)] if said else [hop[0]]
    return problems


def check_headers():
    problems = []
    for path in sorted(glob.glob(os.path.join(ROOT, "include", "mercer", "*.h"))):
        lines = read(os.path.relpath(path, ROOT)).split("\n")
        problems += [f"{os.path.relpath(path, ROOT)}:{i + 1}: a public function without a comment" for i, line in enumerate(lines)
                     if line.startswith("MERCER_API") and not lines[i - 1].rstrip().endswith("*/")]
    return problems


def check_changes():
    """Check that the newest section of CHANGELOG.md is the version of mercer.h, or the changes since it."""
    version = ".".join(re.findall(r"^#define MERCER_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", read("include/mercer/mercer.h"), re.MULTILINE))
    newest = [head for head in re.findall(r"^## (.*)$", read("CHANGELOG.md"), re.MULTILINE) if re.match(r"\d|Unreleased", head)]
    if not newest or (not newest[0].startswith((version + " ", "Unreleased"))):
        return [f"CHANGELOG.md: its newest section is {newest[:1]}, but the version is {version}"]
    return []


def check_stages():
    table = read("docs/architecture.md").partition("| stage | reads | sets |\n")[2].partition("\n\n")[0]
    stated = re.findall(r"^\| (\w+) \|", table, re.MULTILINE)
    listed = re.findall(r'^    \{"(\w+)", mrc_stage_\w+\}', read("src/fit/stages.c"), re.MULTILINE)
    return [] if listed and stated == listed else [f"docs/architecture.md: stages {stated}, but src/fit/stages.c has {listed}"]


def check_pictures():
    problems = []
    for tool in ("make-graph", "make-comparison", "make-notebooks", "make-docs"):
        command = [sys.executable, os.path.join(ROOT, "tools", tool), "--check"]
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        problems += [] if result.returncode == 0 else [result.stdout.strip()]
    return problems


def check_api():
    """Check that every public function is on the page of the C API."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, os.path.join(ROOT, "tools", "make-api"), folder], check=True)
        with open(os.path.join(folder, "api-c.md"), encoding="utf-8") as file:
            there = set(re.findall(r"^#### `(\w+)`$", file.read(), re.MULTILINE))
    wanted = re.findall(r"^function (\w+)=", read("tests/headers/abi.txt"), re.MULTILINE)
    return [f"tools/make-api: no mercer_{name}" for name in wanted if "mercer_" + name not in there] or (
        [] if wanted else ["tests/headers/abi.txt: no functions"])


def numbers(text):
    return [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*(?<!,)", text)]


def check_efforts():
    """Check that the sizes of each effort in docs/tuning.md agree with the sources."""
    searched = re.search(r"efforts\[MRC_MOST_EFFORT\] = \{(.*?)\};", read("src/search/search_effort.c"), re.DOTALL)
    plain = re.search(r"plain_centers\[MRC_MOST_EFFORT\] = \{(.*?)\};", read("src/fit/hyperparameters.c"))
    if not searched or not plain:
        return ["src/search/search_effort.c, src/fit/hyperparameters.c: no sizes of efforts"]
    rows = [[int(number) for number in re.findall(r"\d+", row)] for row in re.findall(r"\{([^{}]*)\}", searched.group(1))]
    wanted = [[effort, row[7], 2 * row[0] + 2 * row[1], row[4], centers] for effort, (row, centers)
              in enumerate(zip(rows, numbers(plain.group(1).replace(",", " "))), 1)]
    said = [numbers(line) for line in re.findall(r"^\| \d \|.*$", read("docs/tuning.md"), re.MULTILINE)]
    return [] if said == wanted else [f"docs/tuning.md: sizes of efforts are {said}, in the sources {wanted}"]


def main():
    problems = []
    for page in pages():
        text = read(page)
        problems += [*check_links(page, text), *(check_paths(page, text) if page != "CHANGELOG.md" else [])]
    problems += check_headers() + check_changes() + check_walk() + check_stages() + check_pictures() + check_api() + check_efforts()
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
