# SPDX-License-Identifier: BSD-3-Clause
"""Scan C sources for the checks in this folder: blank out comments and strings, find functions.

This is a scanner, not a parser: it requires code that compiles and is formatted. This is sufficient for the checks, and needs
no other packages.
"""
import collections
import os
import re

Function = collections.namedtuple("Function", "name first last static")

# Comments, string literals and character literals; at each position, the first matching alternative is used.
TOKENS = re.compile(
    r"""//(?:[^\n\\]|\\.|\\\n)*|/\*.*?\*/|"(?:[^"\\\n]|\\.|\\\n)*"|'(?:[^'\\\n]|\\.)*'""", re.DOTALL
)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.MULTILINE | re.DOTALL)
_NOT_NEWLINE = re.compile(r"[^\n]")
_ATTRIBUTE = re.compile(r"__attribute__\s*\(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\)")
# The beginning of a function declarator: a name and an opening parenthesis.
_DECLARATOR = re.compile(r"\b([A-Za-z_]\w*)\s*\(")


def _blank(match):
    return _NOT_NEWLINE.sub(" ", match.group(0))


def strip_comments(text, strings=True):
    """Blank out comments, and literals too if `strings`; line numbers and columns do not change."""

    def replace(match):
        if not strings and match.group(0)[0] in "\"'":
            return match.group(0)
        return _blank(match)

    return TOKENS.sub(replace, text)


def code_only(text):
    """Blank out comments, literals and preprocessor lines; line numbers and columns do not change."""
    return _DIRECTIVE.sub(_blank, strip_comments(text))


def functions(text):
    """List the function definitions in a C source text."""
    code = code_only(text)
    found = []
    depth = 0
    head = 0  # start of the text before the current top-level block
    start = None
    for match in re.finditer(r"[{};]", code):
        at, sign = match.start(), match.group(0)
        if sign == "{":
            if depth == 0:
                before = code[head:at]
                if re.fullmatch(r"\s*extern\s*", before):  # extern "C" { begins a block that is not a function
                    head = at + 1
                    continue
                start = (before, head + len(before) - len(before.lstrip()))
            depth += 1
        elif sign == "}":
            # A closing brace in column 0 closes all blocks, so that braces in branches of #if cannot unbalance the count.
            first_column = at == 0 or code[at - 1] == "\n"
            depth = 0 if first_column else max(depth - 1, 0)
            if depth == 0:
                if start:
                    function = _function(code, start, at)
                    if function:
                        found.append(function)
                start = None
                head = at + 1
        elif depth == 0:
            head = at + 1
    return found


def _function(code, start, end):
    before = _ATTRIBUTE.sub(lambda m: _blank(m), start[0])
    declarator = _DECLARATOR.search(before)
    # A block without parentheses before it is a struct, union or enum; a block after an assignment is an initializer.
    if not declarator or "=" in before or not before.rstrip().endswith(")"):
        return None
    return Function(
        name=declarator.group(1),
        first=code.count("\n", 0, start[1]) + 1,
        last=code.count("\n", 0, end) + 1,
        static=bool(re.search(r"\bstatic\b", before[: declarator.start()])),
    )


SUFFIXES = (".c", ".h", ".cu", ".cuh", ".inc")
SKIPPED_FOLDERS = re.compile(r"^(build(-.*)?|\..*|__pycache__)$")


def sources(root, folders, suffixes=SUFFIXES):
    """List the files with these suffixes below the folders of root, sorted, as paths relative to root."""
    found = []
    for folder in folders:
        for path, below, names in os.walk(os.path.join(root, folder)):
            below[:] = [name for name in below if not SKIPPED_FOLDERS.match(name)]
            found += [os.path.relpath(os.path.join(path, name), root) for name in names if name.endswith(suffixes)]
    return sorted(found)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def finish(name, problems):
    """Print the result of a check in the common form; return its exit status."""
    if not problems:
        print(f"{name}: ok")
        return 0
    for problem in problems:
        print(problem)
    print(f"{name}: {len(problems)} wrong")
    return 1
