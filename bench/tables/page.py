#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""page.py [--html FILE] [--svg FILE] [--docs FILE] RESULTS...: show results of run.py as text, plots and tables of a document.

RESULTS are files of JSON lines of run.py and random_search.py; of several lines for the same fit, the first is used. --html writes a page
with plots, --svg only the plots. --docs replaces the text of FILE between the two lines that begin with "<!-- page.py". Each plot shows the
scores of a table, with standard errors over the splits, against seconds of fitting.
"""
import argparse
import html as escape
import math
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import table_docs  # noqa: E402
from table_results import groups_of, mean, part, read, read_random  # noqa: E402

COLORS = {"mercer": "#c0392b", "lightgbm": "#2471a3", "xgboost": "#1e8449", "catboost": "#b7950b", "histgb": "#7d3c98",
          "kernelridge": "#5d6d7e", "svm": "#a04000"}
MEASURES = (("r2", ".4f"), ("accuracy", ".4f"), ("auc", ".4f"), ("log_loss", ".4f"), ("seconds", ".1f"), ("processor", ".1f"), ("bytes", ".3g"),
            ("rows_per_second", ".3g"))
WORDS = {"r2": "R2", "auc": "AUC", "accuracy": "accuracy"}
WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 470, 290, 58, 40, 26, 12


def cell(lines, name, form):
    found = mean(lines, name)
    if found is None:
        return ""
    return format(found[0], form) + ("" if math.isnan(found[1]) or form != ".4f" else " ± " + format(found[1], form))


def text(entries):
    rows = [["table", "package", "how", "fits", *(name for name, _ in MEASURES)]]
    for files in (True, False):
        for (case, package, how), lines in groups_of(part(entries, files)):
            rows.append([case + (" (files)" if files else ""), package, how, str(len(lines)), *(cell(lines, name, form) for name, form in MEASURES)])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(value.ljust(width) for value, width in zip(row, widths)).rstrip() for row in rows)


def points_of(groups):
    """Return (package, way, seconds, score, standard error) of each group, in the order of the groups."""
    points = []
    for (_, package, how), lines in groups:
        score, error = mean(lines, lines[0]["measure"])
        points.append((package, how, mean(lines, "seconds")[0], score, 0 if math.isnan(error) else error))
    return points


def ranges_of(points):
    """Return the ranges of scores and seconds of a plot. Scores far below all others are outside the range and drawn at the bottom."""
    low, high = min(p[3] - p[4] for p in points), max(p[3] + p[4] for p in points)
    quarter = sorted(point[3] for point in points)[len(points) // 4]
    low = max(low, high - 3 * max(high - quarter, 1e-4))
    pad = 0.08 * (high - low or 1e-3)
    return low - pad, high + pad, min(p[2] for p in points) / 1.3, max(p[2] for p in points) * 1.3


def plot(case, groups):
    """Plot the scores of a table against seconds of fitting: filled circles for defaults, empty circles after random search."""
    points = points_of(groups)
    low, high, fast, slow = ranges_of(points)

    def at(seconds, score):
        x = LEFT + (WIDTH - LEFT - RIGHT) * math.log(seconds / fast) / math.log(slow / fast)
        y = TOP + (HEIGHT - BOTTOM - TOP) * (high - max(score, low)) / (high - low)
        return x, y

    measure = WORDS[groups[0][1][0]["measure"]]
    parts = [f'<text x="{LEFT}" y="16" font-weight="bold">{escape.escape(case)}: {measure}</text>',
             f'<rect x="{LEFT}" y="{TOP}" width="{WIDTH - LEFT - RIGHT}" height="{HEIGHT - BOTTOM - TOP}" fill="#fff" stroke="#999"/>']
    for k in range(5):
        score = low + (high - low) * k / 4
        y = at(fast, score)[1]
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{score:.4f}</text>')
    ticks = [step * 10.0**power for power in range(-3, 5) for step in (1, 3)]
    for seconds in (tick for tick in ticks if fast < tick < slow):
        x = at(seconds, low)[0]
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="#ddd"/>')
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 15}" text-anchor="middle">{seconds:g} s</text>')
    parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" text-anchor="middle">seconds of fitting</text>')
    for package, how, seconds, score, error in reversed(points):  # the best point last, so that it is drawn above all others
        (x, y), color = at(seconds, score), COLORS[package]
        top, end = at(seconds, score + error)[1], at(seconds, score - error)[1]
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top:.1f}" y2="{end:.1f}" stroke="{color}"/>')
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" stroke="{color}" stroke-width="2" fill="{color if how == "default" else "#fff"}">'
                     f"<title>{package}, {how}: {score:.4f}, {seconds:.1f} s</title></circle>")
    return "".join(parts)


def svg(entries):
    """Return the plots of all tables, in two columns below a legend."""
    groups = groups_of(entries)
    cases = list(dict.fromkeys(key[0] for key, _ in groups))
    height = 30 + HEIGHT * ((len(cases) + 1) // 2)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * WIDTH} {height}" width="{2 * WIDTH}" '
             f'font-family="sans-serif" font-size="11" role="img" aria-label="Scores over seconds">',
             f'<rect width="{2 * WIDTH}" height="{height}" fill="#fff"/>']
    x = LEFT
    for package in (name for name in COLORS if any(key[1] == name for key, _ in groups)):
        parts.append(f'<circle cx="{x}" cy="16" r="5" fill="{COLORS[package]}"/><text x="{x + 9}" y="20">{package}</text>')
        x += 26 + 7 * len(package)
    parts.append(f'<text x="{x}" y="20">full: defaults; empty: after a search</text>')
    for k, case in enumerate(cases):
        own = [item for item in groups if item[0][0] == case]
        parts.append(f'<g transform="translate({k % 2 * WIDTH},{30 + k // 2 * HEIGHT})">{plot(case, own)}</g>')
    return "".join(parts) + "</svg>\n"


def html(entries):
    shown = part(entries, False) or entries
    return f"""<!doctype html><html lang="en"><meta charset="utf-8"><title>Tables</title>
<style>body{{font:15px sans-serif;margin:2em;color:#222}}svg{{max-width:100%;height:auto}}pre{{font-size:12px;overflow-x:auto}}</style>
<h1>Kernel models and boosted trees on tables</h1>
<p>Test scores over seconds of fitting: full circles with defaults, empty ones after random search within its budget. Lines are standard
errors over splits. What is far below the others is drawn at the bottom.</p>
<main>{svg(shown)}</main><pre>{escape.escape(text(entries))}</pre></html>
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", nargs="+")
    for name in ("html", "svg", "docs"):
        parser.add_argument(f"--{name}")
    options = parser.parse_args()
    entries = read(options.results)
    print(text(entries))
    for path, make in ((options.html, html), (options.svg, lambda lines: svg(part(lines, False) or lines))):
        if path:
            with open(path, "w", encoding="utf-8") as file:
                file.write(make(entries))
    if options.docs:
        table_docs.write(options.docs, entries, read_random(options.results), options.svg)
    return 0


if __name__ == "__main__":
    sys.exit(main())
