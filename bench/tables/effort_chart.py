# SPDX-License-Identifier: BSD-3-Clause
"""Draw the results of efforts.py: one panel per table with the error on test rows against seconds, as an SVG for light and dark mode."""
import html
import math
import statistics

from effort_results import groups_of, is_default, measure_of, rank_of, scored, title, way_of
from table_results import NAMES, mean

ERRORS = {"r2": "1 − R²", "auc": "1 − AUC", "accuracy": "1 − accuracy"}
SHAPES = {"mercer": 0, "xgboost": 1, "lightgbm": 2, "catboost": 3, "histgb": 4}  # colors and markers as in docs/comparison.svg
COLUMNS, WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 4, 240, 222, 48, 10, 30, 22
HEAD, FOOT, MARGIN = 66, 26, 8
LABEL, NEAR, CLEAR = 12, 6, 14  # height of a label, its distance from the markers of its line, and its distance from everything else
STYLE = """:root{--ink:#1c2128;--soft:#59636e;--rule:#d9dfe5;--card:#f5f7f9;--c0:#0072b2;--c1:#d55e00;--c2:#008a64;--c3:#a8478a;--c4:#8a6d00}
@media (prefers-color-scheme:dark){:root{--ink:#e4e9ee;--soft:#9ba6b2;--rule:#2c343d;--card:#171c23;--c0:#56b4e9;--c1:#ff8f4d;
--c2:#34c99b;--c3:#e08fc4;--c4:#d9b84a}}
text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue','Liberation Sans',Arial,sans-serif;fill:var(--soft);
font-size:11px}.head{font-size:15px;font-weight:600;fill:var(--ink)}.title{font-size:13px;font-weight:600;fill:var(--ink)}
.key{font-size:12px;fill:var(--ink)}.own{font-weight:600}.frame{fill:var(--card)}.grid{stroke:var(--rule);fill:none}
.m{stroke-width:1.8}.line{fill:none;stroke-width:1.8;stroke-linejoin:round}.error{stroke-width:1.2}
""" + "".join(f".s{k}{{stroke:var(--c{k})}}.f{k}{{fill:var(--c{k});stroke:var(--c{k})}}.e{k}{{fill:var(--card);stroke:var(--c{k})}}"
              f".n{k}{{fill:var(--c{k})}}" for k in range(5))


def series_of(entries):
    """Return {table: (measure, {package: [(way, seconds, error, standard error)]})}, ordered by effort or number of trees."""
    found = {}
    for (table, way), lines in groups_of(entries).items():
        measure = measure_of(lines[0])
        score, spread = mean(lines, measure)
        point = (way, statistics.median(line["seconds"] for line in lines), 1 - score, 0 if math.isnan(spread) else spread)
        found.setdefault(table, (measure, {}))[1].setdefault(way[0], []).append(point)
    return found


def ticks(low, high):
    """Return the values of ticks between two positive limits.

    These are powers of ten, or 1 and 3, or 1, 2 and 5 times powers of ten: the first kind with at least three values. Otherwise they are
    equally spaced.
    """
    decades = [10.0**power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]
    for factors in ((1,), (1, 3), (1, 2, 5)):
        found = [factor * decade for decade in decades for factor in factors if low <= factor * decade <= high]
        if len(found) >= 3:
            return found
    steps = [factor * 10.0 ** (math.floor(math.log10(high - low)) + power) for power in (-1, 0) for factor in (1, 2, 5)]
    step = next(step for step in steps if (high - low) / step < 6)
    return [k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1)]


def tick_text(value, values):
    """Return the text of a tick: with equal decimals if the ticks span less than a factor of 5, otherwise without trailing zeros."""
    decimals = max(len(f"{tick:.5g}".partition(".")[2]) for tick in values)
    return f"{value:.{decimals}f}" if max(values) < 5 * min(values) else f"{value:.5g}"


def marker(style, shape, x, y):
    shapes = (f'<circle class="m {style}" cx="{x:.1f}" cy="{y:.1f}" r="4"/>',
              f'<path class="m {style}" d="M{x - 3.5:.1f} {y - 3.5:.1f}h7v7h-7z"/>',
              f'<path class="m {style}" d="M{x:.1f} {y - 5:.1f}l5 5-5 5-5-5z"/>',
              f'<path class="m {style}" d="M{x:.1f} {y - 4.8:.1f}l5 8.4h-10z"/>',
              f'<path class="m {style}" d="M{x:.1f} {y + 4.8:.1f}l5-8.4h-10z"/>')
    return shapes[shape]


def gap(box, point):
    """Return the distance of a point from a box (left, top, right, bottom), 0 within it."""
    return math.hypot(max(box[0] - point[0], 0, point[0] - box[2]), max(box[1] - point[1], 0, point[1] - box[3]))


def place_label(wide, own, others, frame):
    """Return the box of a label of width `wide`: close to the points `own` of its line, and not close to the points `others`."""
    best = None
    for left in range(int(frame[0]) + 3, int(frame[2] - wide), 4):
        for top in range(int(frame[1]) + 2, int(frame[3]) - LABEL, 4):
            box = left, top, left + wide, top + LABEL
            near = min(gap(box, point) for point in own)
            far = min((gap(box, point) for point in others), default=CLEAR)
            cost = near + 10 * max(0, NEAR - near) + 3 * max(0, CLEAR - far) + 100 * (far == 0)
            if best is None or cost < best[0]:
                best = cost, box
    return best[1]


def between(points):
    """Return points along a line, so close together that no label fits between two of them."""
    found = list(points)
    for (x0, y0), (x1, y1) in zip(points, points[1:]):
        count = max(1, int(math.hypot(x1 - x0, y1 - y0) / 4))
        found += [(x0 + (x1 - x0) * i / count, y0 + (y1 - y0) * i / count) for i in range(count)]
    return found


class Panel:
    """The panel of one table, with its corner at (left, top): scales, axes, lines and names."""

    def __init__(self, left, top, span, packages):
        values = [error for points in packages.values() for _, _, error, _ in points]
        spread = (max(values) / min(values)) ** 0.1
        self.left, self.top, self.span, self.packages = left, top, span, packages
        self.errors = min(values) / max(spread, 1.01), max(values) * max(spread, 1.01)
        self.inner = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
        self.frame = left + LEFT, top + TOP, left + LEFT + self.inner[0], top + TOP + self.inner[1]

    def across(self, seconds):
        low, high = self.span
        return self.frame[0] + self.inner[0] * math.log(seconds / low) / math.log(high / low)

    def down(self, error):
        low, high = self.errors
        return self.frame[1] + self.inner[1] * math.log(high / error) / math.log(high / low)

    def axes(self, name, measure):
        yield (f'<text class="title" x="{self.frame[0]}" y="{self.top + 20}">{html.escape(name)}</text>'
               f'<text x="{self.frame[2]}" y="{self.top + 20}" text-anchor="end">{ERRORS[measure]}</text>')
        for value in ticks(*self.span):
            x = self.across(value)
            yield (f'<path class="grid" d="M{x:.1f} {self.frame[1]}v{self.inner[1]}"/>'
                   f'<text x="{x:.1f}" y="{self.frame[3] + 15}" text-anchor="middle">{value:g} s</text>')
        values = ticks(*self.errors)
        for value in values:
            y = self.down(value)
            yield (f'<path class="grid" d="M{self.frame[0]} {y:.1f}h{self.inner[0]}"/>'
                   f'<text x="{self.frame[0] - 5}" y="{y + 4:.1f}" text-anchor="end">{tick_text(value, values)}</text>')

    def lines(self):
        places = {name: [(self.across(seconds), self.down(error)) for _, seconds, error, _ in points] for name, points in self.packages.items()}
        for name, points in reversed(self.packages.items()):  # Mercer last, above the others
            shape = SHAPES[name]
            path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places[name])
            yield f'<path class="line s{shape}" d="M{path}"/>'
            for (way, seconds, error, spread), (x, y) in zip(points, places[name]):
                if spread:
                    low, high = (self.down(min(max(error + sign * spread, self.errors[0]), self.errors[1])) for sign in (1, -1))
                    yield f'<path class="error s{shape}" d="M{x:.1f} {low:.1f}V{high:.1f}"/>'
                yield f'<g><title>{title(way)}: {error:.4f} after {seconds:.1f} s</title>'
                yield marker(("f" if is_default(way) else "e") + str(shape), shape, x, y) + "</g>"
        boxes = []
        for name in self.packages:
            others = [point for other, points in places.items() for point in (between(points) if other != name else [])]
            box = place_label(7 * len(NAMES[name]), between(places[name]), others + boxes, self.frame)
            boxes += [(x, y) for x in range(int(box[0]), int(box[2]) + 4, 4) for y in (box[1], (box[1] + box[3]) / 2, box[3])]
            yield f'<text class="key own n{SHAPES[name]}" x="{box[0]:.1f}" y="{box[3] - 2:.1f}">{NAMES[name]}</text>'


def key(entries):
    """Return the legend, a row below the heading."""
    ways = [way_of(entry) for entry in entries]
    efforts = sorted({size for name, size in ways if name == "mercer"})
    multiples = sorted({size for name, size in ways if name != "mercer"})
    parts, x = [], MARGIN + 8
    for name in sorted({name for name, _ in ways}, key=lambda name: rank_of((name, 0))):
        parts.append(f'<path class="line s{SHAPES[name]}" d="M{x - 2} 46h24"/>{marker(f"f{SHAPES[name]}", SHAPES[name], x + 10, 46)}'
                     f'<text class="key" x="{x + 28}" y="50">{NAMES[name]}</text>')
        x += 28 + 7 * len(NAMES[name]) + 18
    said = (f"effort {', '.join(map(str, efforts))} of Mercer; {', '.join(map(str, multiples))} times the default number of trees of the others; "
            "filled: defaults")
    return "".join(parts) + f'<text x="{x}" y="50">{said}</text>'


def draw(entries):
    """Return the chart for the results of one folder and kind of split; all panels have the same time axis."""
    entries = scored(entries)
    series = series_of(entries)
    times = [seconds for _, packages in series.values() for points in packages.values() for _, seconds, _, _ in points]
    span = min(times) / 1.5, max(times) * 1.5
    parts, told, rows = [], [], math.ceil(len(series) / COLUMNS)
    for place, (name, (measure, found)) in enumerate(series.items()):
        panel = Panel(MARGIN + place % COLUMNS * WIDTH, HEAD + place // COLUMNS * HEIGHT, span, found)
        parts.append("".join([*panel.axes(name, measure), *panel.lines()]))
        told.append(f"{name}, {ERRORS[measure]}: " + ", ".join(f"{title(way)} {error:.4f} in {seconds:.1f} s" for points in found.values()
                                                            for way, seconds, error, _ in points))
    width, height = COLUMNS * WIDTH + 2 * MARGIN, HEAD + rows * HEIGHT + FOOT
    threads = ", ".join(dict.fromkeys(str(entry["threads"]) for entry in entries))
    head = f"Error on test rows against seconds of training, {threads} threads"
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">\n'
            f"<title>{head}</title><desc>{html.escape('. '.join(told))}.</desc>\n<style>{STYLE}</style>\n"
            f'<rect class="frame" width="{width}" height="{height}" rx="8"/><text class="head" x="{MARGIN + 6}" y="26">{head}</text>{key(entries)}\n'
            + "\n".join(parts)
            + f'\n<text x="{width / 2}" y="{height - 11}" text-anchor="middle">wall time; both axes are logarithmic; left is faster, down is better</text></svg>\n')
