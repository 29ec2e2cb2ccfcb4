#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_docs.py [ROOT]: what the pages say of the sources is true.

- Links between pages lead somewhere, anchors included, and every path of the tree that is named in backticks exists.
- The walk in docs/architecture.md has at most 20 hops. Each names a function and its file; the function is there, does
  more than call another one, and its text has what the hop says it calls, which is the next hop's function or a member
  of a table that holds it.
- docs/architecture.svg is what tools/make-graph draws from the includes.
"""
import glob
import os
import re
import subprocess
import sys

ROOT = os.path.normpath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
import csource  # noqa: E402 (the lines above must come first)

MOST_HOPS, LEAST_STATEMENTS = 20, 3
LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"(?:src|cli|include|python|tests|tools|docs|bench|examples|cmake|\.ci)/[\w./*{},<>-]*$")
HOP = re.compile(r"^\d+\. `(\w+)` \(`([^`]+)`\)(.*(?:\n   .*)*)", re.MULTILINE)
CALLS = re.compile(r"calls `([^`]+)`")


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def pages():
    found = [*glob.glob(os.path.join(ROOT, "*.md")), *glob.glob(os.path.join(ROOT, "docs", "*.md"))]
    return sorted(os.path.relpath(page, ROOT) for page in found)


def anchors(text):
    """The names that GitHub gives to headings."""
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
    """a/{b,c}.md as a/b.md and a/c.md."""
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


def body_of(path, name):
    """The text of a function, or None."""
    text = read(path)
    for function in csource.functions(text):
        if function.name == name:
            return csource.strip_comments("\n".join(text.split("\n")[function.first - 1 : function.last]))
    return None


def check_hop(number, hop, follower):
    name, path, rest = hop
    where = f"docs/architecture.md: hop {number}, {name}"
    if not os.path.exists(os.path.join(ROOT, path)):
        return [f"{where}: no file {path}"]
    body = body_of(path, name)
    if body is None:
        return [f"{where}: not a function of {path}"]
    problems = []
    if body.count(";") < LEAST_STATEMENTS:
        problems.append(f"{where}: only forwards")
    said = CALLS.search(rest)
    if follower and not said:
        problems.append(f"{where}: does not say what it calls")
    if said:
        member = re.split(r"->|\.", said.group(1))[-1]
        if said.group(1) not in body:
            problems.append(f"{where}: does not mention {said.group(1)}")
        elif follower and member != follower[0] and not re.search(
            rf"\.{member}\s*=\s*{follower[0]}\b|{follower[0]}\s*[,}}]", read(follower[1])
        ):
            problems.append(f"{where}: {said.group(1)} does not lead to {follower[0]} in {follower[1]}")
    return problems


def check_walk():
    hops = HOP.findall(read("docs/architecture.md"))
    if not hops:
        return ["docs/architecture.md: no walk"]
    problems = [] if len(hops) <= MOST_HOPS else [f"docs/architecture.md: {len(hops)} hops, at most {MOST_HOPS}"]
    for i, hop in enumerate(hops):
        problems += check_hop(i + 1, hop, hops[i + 1] if i + 1 < len(hops) else None)
    return problems


def check_picture():
    command = [sys.executable, os.path.join(ROOT, "tools", "make-graph"), "--check"]
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return [] if result.returncode == 0 else [result.stdout.strip()]


def main():
    problems = []
    for page in pages():
        text = read(page)
        problems += [*check_links(page, text), *(check_paths(page, text) if page != "CHANGELOG.md" else [])]
    problems += check_walk() + check_picture()
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
