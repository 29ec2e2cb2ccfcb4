#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""summarize.py [--svg FILE] [--docs FILE] RESULTS...: show results of efforts.py as Markdown tables, a chart and a section of a document.

RESULTS are files of JSON lines; the last line of each fit is used. Without --check, the tables are printed; --docs replaces or adds the
section "Error against time" of FILE, and --svg writes the chart of this section. With --check, the two files are not written but compared
with the text that would be written.
"""
import argparse
import math
import os
import statistics
import sys

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__))]
import effort_chart  # noqa: E402
from effort_results import (  # noqa: E402
    DEFAULT_EFFORT, RIVALS, compare, geometric_mean, groups_of, measure_of, part, read, scored, tables_of, title, verdict, way_of, ways_of)
from splits import TABLES  # noqa: E402
from table_docs import WORDS, prose, score, short, table  # noqa: E402
from table_results import NAMES, mean  # noqa: E402

FIRST, LAST = "<!-- summarize.py writes from here -->", "<!-- summarize.py writes to here -->"
NEXT = "## Comparison with boosted trees\n"  # a new section is inserted before this heading
PARTS = {("tables", True): "Split of the files", ("tables", False): "Random splits", ("large", True): "Large tables",
         ("large", False): "Large tables, random splits"}
HEAD = """## Error against time

Efforts of `mercer train` compared with CatBoost and LightGBM with their defaults: error on test rows over wall-clock
time. For Mercer the time includes the whole command, for a package reading the training rows and fitting. The packages
get text columns as categories and dates as numbers. The raw lines are in `bench/results`.

```sh
{command} --seeds 3 --efforts 1,3 --output {output}
{command} --efforts 2,4,5 --packages '' --output {output}
{command} --folder large --efforts 3 --timeout 300 --output {output}
{command} --splits 10 --efforts 1,3 --jobs 8 --threads 2 --output {output}
bench/tables/summarize.py --svg docs/efforts.svg --docs docs/tables.md {output}
```
""".replace("{command}", "bench/tables/efforts.py").replace("{output}", "bench/results/efforts.jsonl")


def seconds_text(value):
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def line_of(entry):
    """Return the progress line of a fit."""
    what = f"{entry['table']:9} split {entry['split']}, seed {entry['seed']}  {title(way_of(entry)):21}"
    if "failed" in entry:
        return f"{what} failed: {entry['failed']}"
    time = f"{seconds_text(entry['seconds']):>7} s" if "seconds" in entry else " " * 9
    return f"{what} {time}  {measure_of(entry)} {entry[measure_of(entry)]:.4f}"


def grid(groups, tables, show, heads=None, best=None):
    """Return a Markdown table with one row per way and one column per table; show(lines) makes a cell.

    The cell with the largest best(lines) of each column is bold. A cell with fewer fits than other cells of its column shows the number of
    its fits in brackets.
    """
    most = {name: max(len(lines) for (own, _), lines in groups.items() if own == name) for name in tables}
    winner = {}
    for name in tables if best else ():
        found = {way: best(lines) for (own, way), lines in groups.items() if own == name and len(lines) == most[name]}
        winner[name] = max(found, key=found.get)
    rows = [["", *(heads or tables)]]
    for way in ways_of(groups):
        cells = []
        for name in tables:
            lines = groups.get((name, way), [])
            text = show(lines) if lines else ""
            text = f"**{text}**" if text and winner.get(name) == way else text
            cells.append(text + (f" ({len(lines)})" if text and len(lines) < most[name] else ""))
        if any(cells):
            rows.append([title(way), *cells])
    return table(rows)


def scores(groups):
    tables = tables_of(groups)
    measures = {name: next(measure_of(lines[0]) for (own, _), lines in groups.items() if own == name) for name in tables}
    heads = [f"{name}, {WORDS[measures[name]]}" for name in tables]
    return grid(groups, tables, lambda lines: score(lines, measure_of(lines[0])), heads, lambda lines: mean(lines, measure_of(lines[0]))[0])


def log_losses(groups):
    """Return the table of log losses, or None if no table of the groups has classes."""
    tables = [name for name in tables_of(groups) if any("log_loss" in lines[0] for (own, _), lines in groups.items() if own == name)]
    return grid(groups, tables, lambda lines: score(lines, "log_loss"), None, lambda lines: -mean(lines, "log_loss")[0]) if tables else None


def timed(groups):
    """Return the groups whose lines have times; fits that ran at the same time have no times."""
    return {key: lines for key, lines in groups.items() if all("seconds" in line for line in lines)}


def seconds(groups):
    groups = timed(groups)

    def show(lines):
        whole = seconds_text(statistics.median(line["seconds"] for line in lines))
        return f"{whole} [{seconds_text(statistics.median(line['fit_seconds'] for line in lines))}]" if "fit_seconds" in lines[0] else whole

    return grid(groups, tables_of(groups), show) if groups else None


def planned(groups):
    """Return the table of the ratio of predicted to actual seconds of the whole command, for Mercer only."""
    own = {key: lines for key, lines in timed(groups).items() if key[1][0] == "mercer"}
    return grid(own, tables_of(own), lambda lines: f"{statistics.median(line['planned'] / line['seconds'] for line in lines):.2f}") if own else None


def comparisons(groups, way, rival):
    """Return {table: (difference, standard error, ratio of seconds)} of two ways, for the tables that both ways have."""
    found = {name: compare(groups.get((name, way), []), groups.get((name, rival), [])) for name in tables_of(groups)}
    return {name: value for name, value in found.items() if value}


def wins(groups):
    """Return a table of efforts by ways of the packages: number of tables on which the effort is better, and ratio of seconds."""
    ways = ways_of(groups)
    rivals, rows = [way for way in ways if way[0] != "mercer"], []
    for way in ways:
        cells = []
        for rival in rivals if way[0] == "mercer" else ():
            found = comparisons(groups, way, rival).values()
            better = sum(verdict(value[0], value[1])[0] == "better" for value in found)
            ratios = [value[2] for value in found if value[2]]
            cells.append(f"{better} of {len(found)}" + (f" ({geometric_mean(ratios):.2g})" if ratios else "") if found else "")
        if cells:
            rows.append([title(way), *cells])
    return table([["", *map(title, rivals)], *rows]) if rows else None


def listed(tables):
    return ", ".join(tables) or "no table"


def default_line(groups, rival):
    """Return a sentence that compares Mercer's default effort with the defaults of a package; None without common fits."""
    found = comparisons(groups, ("mercer", DEFAULT_EFFORT), (rival, 1))
    if not found:
        return None
    said = {name: verdict(value[0], value[1]) for name, value in found.items()}
    better, worse = ([name for name in found if said[name][0] == word] for word in ("better", "worse"))
    clear = [name for name in found if said[name][1]]
    ratios = [value[2] for value in found.values() if value[2]]
    single = all(math.isnan(value[1]) for value in found.values())
    errors = "" if single else f" The difference exceeds two standard errors on {listed(clear)}."
    times = f" Mercer takes {min(ratios):.2g} to {max(ratios):.2g} times as long, geometric mean {geometric_mean(ratios):.2g}." if ratios else ""
    return prose(f"Compared with {NAMES[rival]} with its defaults, effort {DEFAULT_EFFORT} is better on {len(better)} of {len(found)} tables "
                 f"({listed(better)}) and worse on {len(worse)} ({listed(worse)}).{errors}{times}")


def default_table(groups):
    """Return the table of differences of scores and ratios of seconds between the default effort and the defaults of the packages."""
    found = {rival: comparisons(groups, ("mercer", DEFAULT_EFFORT), (rival, 1)) for rival in RIVALS}
    found = {rival: values for rival, values in found.items() if values}
    times = any(value[2] for values in found.values() for value in values.values())
    heads = [(f"score minus {NAMES[rival]}'s", f"seconds over {NAMES[rival]}'s")[: 1 + times] for rival in found]
    rows = [["table", *(text for pair in heads for text in pair)]]
    for name in tables_of(groups):
        cells = []
        for values in found.values():
            difference, error, ratio = values.get(name, (None, None, None))
            spread = "" if error is None or error != error else f" ± {short(error)}"
            shown = ["", ""] if difference is None else [("+" if difference > 0 else "") + short(difference) + spread, f"{ratio:.2f}" if ratio else ""]
            cells += shown[: 1 + times]
        if any(cells):
            rows.append([name, *cells])
    return table(rows) if found else None


def count_text(lines):
    fits = {(line["split"], line["seed"]) for line in lines}
    splits, seeds = len({split for split, _ in fits}), len({seed for _, seed in fits})
    return " and ".join(f"{count} {word}" + ("s" if count > 1 else "") for count, word in ((splits, "split"), (seeds, "seed")))


def part_sections(name, lines):
    """Yield the paragraphs and tables for the lines of one folder and kind of split."""
    groups = groups_of(lines)
    yield prose(f"**{name}.** Scores on test rows, mean ± standard error of {count_text(scored(lines))}; the best of each column is bold. The number "
                "of fits is in brackets where it is smaller.")
    yield scores(groups)
    verdicts = "\n".join(filter(None, [default_table(groups), *(default_line(groups, rival) for rival in RIVALS)]))
    for said, text in (("Log loss:", log_losses(groups)),
                       ("Median seconds; in square brackets without reading the data:", seconds(groups)),
                       (f"Effort {DEFAULT_EFFORT} compared with the defaults of the packages:", verdicts),
                       ("Number of tables on which Mercer has the better mean score; in brackets its time relative to the package (geometric mean):",
                        wins(groups)),
                       ("Ratio of predicted to measured seconds of the whole command:", planned(groups))):
        if text:
            yield f"{said}\n"
            yield text
    failed = [line for line in lines if "failed" in line]
    if failed:
        yield "Failed fits:\n\n" + "".join(f"- {line['table']}, split {line['split']}, seed {line['seed']}, {title(way_of(line))}: {line['failed']}\n"
                                             for line in failed)


def provenance(entries):
    """Return a paragraph on the conditions of the measurements: machine, versions, load by other processes."""
    def values(name, separator=", "):
        return separator.join(dict.fromkeys(str(entry[name]) for entry in entries if entry.get(name)))

    versions = dict.fromkeys(f"; {NAMES[entry['package']]} {entry['version']}" for entry in entries if "version" in entry)
    loads = sorted(entry["other_load"] for entry in scored(entries) if "other_load" in entry)
    busy = f" Other processes kept {statistics.median(loads):.2f} cores busy (median of the fits; at most {loads[-1]:.2f})." if loads else ""
    return prose(f"Measured by `bench/tables/efforts.py` with Mercer of commit {values('commit')} on {values('machine', ' and ')}; {values('threads')} "
                 f"threads{''.join(versions)}.{busy}")


def sections(entries):
    """Yield the parts of the summary: the conditions of the measurements, then the tables of each folder and kind of split."""
    if any("failed" not in entry for entry in entries):
        yield provenance(entries)
    for (folder, files), name in PARTS.items():
        lines = part(entries, folder, files)
        if groups_of(lines):
            yield from part_sections(name, lines)


def with_section(text, body):
    """Return the text of a document with `body` between the two marks. Missing marks are added before the heading NEXT or at the end."""
    section = f"{FIRST}\n\n{body}\n{LAST}\n"
    if FIRST in text:
        return text[: text.index(FIRST)] + section + text[text.index(LAST) + len(LAST) + 1 :]
    before, heading, after = text.partition(NEXT)
    return f"{before}{section}\n{heading}{after}" if heading else f"{text}\n{section}"


def document(path, picture, entries):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    link = f"![Error against seconds on {len(TABLES['tables'])} tables]({os.path.relpath(picture, os.path.dirname(path) or '.')})\n" if picture else ""
    return with_section(text, "\n".join(filter(None, [HEAD, link, *sections(entries)])))


def options_of():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", nargs="+")
    parser.add_argument("--svg", help="file of the chart")
    parser.add_argument("--docs", help="document that gets the section")
    parser.add_argument("--check", action="store_true", help="only compare --svg and --docs with what would be written")
    return parser.parse_args()


def main():
    options = options_of()
    entries, written = read(options.results), {}
    if options.svg and not groups_of(part(entries, "tables", True)):
        sys.exit("summarize.py: no results for the chart, which shows the split of the files; run efforts.py without --splits")
    if options.svg:
        written[options.svg] = effort_chart.draw(part(entries, "tables", True))
    if options.docs:
        written[options.docs] = document(options.docs, options.svg, entries)
    if not options.check:
        print("\n".join(sections(entries)))
    status = 0
    for path, text in written.items():
        if not options.check:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            continue
        with open(path, encoding="utf-8") as file:
            if file.read() != text:
                print(f"{path}: differs from the results; run bench/tables/summarize.py", file=sys.stderr)
                status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
