# SPDX-License-Identifier: BSD-3-Clause
"""The results of run.py as a table of text, and as a page with a plot for each table: scores with their standard errors, over seconds."""
import html as escape
import math
import statistics

COLORS = {"mercer": "#c0392b", "lightgbm": "#2471a3", "xgboost": "#1e8449", "catboost": "#b7950b", "histgb": "#7d3c98",
          "kernelridge": "#5d6d7e", "svm": "#a04000"}
MEASURES = (("r2", ".4f"), ("accuracy", ".4f"), ("auc", ".4f"), ("log_loss", ".4f"), ("seconds", ".1f"), ("bytes", ".3g"),
            ("rows_per_second", ".3g"))


def groups_of(entries):
    """Lines of the same table, package and way, by those three, best mean first within a table."""
    found = {}
    for entry in entries:
        found.setdefault((entry["case"], entry["package"], entry["how"]), []).append(entry)
    cases = list(dict.fromkeys(case for case, _, _ in found))
    return sorted(found.items(), key=lambda item: (cases.index(item[0][0]), -mean(item[1], item[1][0]["measure"])[0]))


def mean(lines, name):
    """Mean over the splits and its standard error (NaN of one); None if it was not measured."""
    values = [line[name] for line in lines if line.get(name) is not None]
    if not values:
        return None
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return statistics.fmean(values), error


def cell(lines, name, form):
    found = mean(lines, name)
    if found is None:
        return ""
    return format(found[0], form) + ("" if math.isnan(found[1]) or form != ".4f" else " ± " + format(found[1], form))


def text(entries):
    rows = [["table", "package", "how", "splits", *(name for name, _ in MEASURES)]]
    for (case, package, how), lines in groups_of(entries):
        rows.append([case, package, how, str(len(lines)), *(cell(lines, name, form) for name, form in MEASURES)])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(value.ljust(width) for value, width in zip(row, widths)).rstrip() for row in rows)


def plot(case, groups):
    """Scores of a table over seconds of fitting: a full circle with defaults, an empty one after random search."""
    width, height, left, bottom, right = 520, 300, 60, 40, 120
    points = []
    for (_, package, how), lines in groups:
        score, error = mean(lines, lines[0]["measure"])
        points.append((package, how, mean(lines, "seconds")[0], score, 0 if math.isnan(error) else error))
    low = min(score - error for *_, score, error in points)
    high = max(score + error for *_, score, error in points)
    quarter = sorted(point[3] for point in points)[len(points) // 4]
    low = max(low, high - 3 * max(high - quarter, 1e-4))  # what is far below stays at the bottom
    fast, slow = min(p[2] for p in points) / 1.3, max(p[2] for p in points) * 1.3
    pad = 0.08 * (high - low or 1e-3)
    low, high = low - pad, high + pad

    def at(seconds, score):
        x = left + (width - left - right) * math.log(seconds / fast) / math.log(slow / fast)
        y = 10 + (height - bottom - 10) * (high - max(score, low)) / (high - low)
        return x, y

    parts = [f'<svg viewBox="0 0 {width} {height}" width="{width}" role="img" aria-label="{escape.escape(case)}">',
             f'<rect x="{left}" y="10" width="{width - left - right}" height="{height - bottom - 10}" fill="none" stroke="#999"/>']
    for k in range(5):
        score = low + (high - low) * k / 4
        y = at(fast, score)[1]
        parts.append(f'<line x1="{left}" x2="{width - right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#eee"/>')
        parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{score:.4f}</text>')
    for power in range(math.ceil(math.log10(fast)), math.floor(math.log10(slow)) + 1):
        x = at(10.0**power, low)[0]
        parts.append(f'<text x="{x:.1f}" y="{height - bottom + 16}" text-anchor="middle">{10.0**power:g} s</text>')
    parts.append(f'<text x="{(left + width - right) / 2}" y="{height - 6}" text-anchor="middle">seconds of fitting</text>')
    names = {}
    for package, how, seconds, score, error in points:
        (x, y), color = at(seconds, score), COLORS[package]
        top, end = at(seconds, score + error)[1], at(seconds, score - error)[1]
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top:.1f}" y2="{end:.1f}" stroke="{color}"/>')
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" stroke="{color}" stroke-width="2" fill="{color if how == "default" else "#fff"}">'
                     f"<title>{package}, {how}: {score:.4f}, {seconds:.1f} s</title></circle>")
        names.setdefault(package, color)
    for k, (package, color) in enumerate(names.items()):
        parts.append(f'<circle cx="{width - right + 14}" cy="{20 + 18 * k}" r="5" fill="{color}"/>')
        parts.append(f'<text x="{width - right + 24}" y="{24 + 18 * k}">{package}</text>')
    return "".join(parts) + "</svg>"


def html(entries):
    groups, parts = groups_of(entries), []
    for case in dict.fromkeys(key[0] for key, _ in groups):
        own = [item for item in groups if item[0][0] == case]
        parts.append(f"<section><h2>{escape.escape(case)}: {own[0][1][0]['measure']}</h2>{plot(case, own)}</section>")
    return f"""<!doctype html><html lang="en"><meta charset="utf-8"><title>Tables</title>
<style>body{{font:15px sans-serif;margin:2em;color:#222}}main{{display:flex;flex-wrap:wrap;gap:1em}}svg text{{font:11px sans-serif}}
pre{{font-size:12px;overflow-x:auto}}h2{{font-size:16px;margin:.3em 0}}</style>
<h1>Kernel models beside boosted trees, on tables</h1>
<p>Test scores over seconds of fitting: full circles with defaults, empty ones after random search in the time of Mercer's own search
and training. Lines are standard errors over splits. What is far below the others is drawn at the bottom.</p>
<main>{"".join(parts)}</main><pre>{escape.escape(text(entries))}</pre></html>
"""
