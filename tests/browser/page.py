# SPDX-License-Identifier: BSD-3-Clause
"""Checks for reports of any log: well-formed markup, no external resources, no scripts."""
import html.parser
import re

VOID = {"meta", "img", "br", "hr", "link", "input", "col"}
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
COORDINATES = {"x", "y", "cx", "cy", "r", "width", "height", "d", "points", "viewbox", "transform", "dy"}
ALLOWED = set("html head meta title style body header main footer nav section h1 h2 h3 p ul li a dl div dt dd small "
              "table caption thead tbody tr th td figure figcaption svg path circle rect text tspan desc details "
              "summary code span sub img".split())


class Page(html.parser.HTMLParser):
    """A parser that collects the problems of a page."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.problems, self.open, self.ids, self.words = [], [], set(), {}
        self.counts, self.paths = {}, []
        self.feed(text)
        self.close()
        if self.open:
            self.problems.append(f"never closed: {self.open}")
        if not text.startswith("<!DOCTYPE html>"):
            self.problems.append("no doctype")

    def handle_starttag(self, tag, attrs):
        self.counts[tag] = self.counts.get(tag, 0) + 1
        if tag not in ALLOWED:
            self.problems.append(f"<{tag}> has no place in a report")
        for name, value in attrs:
            self.check(tag, name, value or "")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def check(self, tag, name, value):
        if name.startswith("on") or "javascript:" in value.lower():
            self.problems.append(f"<{tag} {name}={value!r}> can run")
        if name in ("src", "xlink:href", "action", "srcset") and not value.startswith("data:image/png;base64,"):
            self.problems.append(f"<{tag} {name}={value[:60]!r}> asks for something from elsewhere")
        if name == "href" and not value.startswith("#"):
            self.problems.append(f"<{tag} href={value!r}> is an external link")
        if name == "id":
            if value in self.ids:
                self.problems.append(f"id {value!r} occurs twice")
            self.ids.add(value)
        if "svg" in self.open and name in COORDINATES:
            rest = re.sub(r"rotate|translate|[MLHVhvlzm,() ]|em", " ", NUMBER.sub(" ", value)).strip()
            numbers = [float(number) for number in NUMBER.findall(value)]
            if rest or any(abs(number) > 1e5 for number in numbers):
                self.problems.append(f"<{tag} {name}={value[:80]!r}>: not a coordinate")
            if name == "d":
                self.paths.append(value)

    def handle_endtag(self, tag):
        if not self.open or self.open[-1] != tag:
            self.problems.append(f"</{tag}> while {self.open[-3:]} are open, line {self.getpos()[0]}")
        if tag in self.open:
            while self.open.pop() != tag:
                pass

    def handle_data(self, data):
        for tag in set(self.open):
            self.words[tag] = self.words.get(tag, "") + data

    def text(self, tag="body"):
        return " ".join(self.words.get(tag, "").split())


def foreign(text):
    """Return the external addresses in a page. XML namespaces would be reported too, but reports have none."""
    body = re.sub(r"data:image/png;base64,[A-Za-z0-9+/=]+", "", text)
    return re.findall(r"(?:https?:|//|url\(|@import)[^\s\"'<]{0,60}", body)
