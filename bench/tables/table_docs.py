# SPDX-License-Identifier: BSD-3-Clause
"""Write results of run.py as tables of a document: results on the split of the files, comparisons on random splits, and costs."""
import math
import os
import textwrap

from table_results import NAMES, differences, groups_of, mean, mean_of, part, title

MARK = "<!-- page.py"
ORDER = {"default": 0, "search": 1}
WORDS = {"r2": "R2", "auc": "AUC", "accuracy": "accuracy", "log_loss": "log loss"}


def short(value, digits=4):
    """Format a number without the zero before its decimal point: .8123 for 0.8123."""
    text = f"{value:.{digits}f}"
    return text.replace("0.", ".", 1) if abs(value) < 1 else text


def score(lines, name):
    found = mean(lines, name)
    if found is None:
        return ""
    return short(found[0]) + ("" if math.isnan(found[1]) else f" ± {short(found[1])}")


def prose(text):
    return textwrap.fill(text, 118, break_on_hyphens=False) + "\n"


def table(rows):
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]]) + "\n"


def by_package(entries, name, cases, show, best=None):
    """Return a table of one measure, with one row per package and way and one column per table.

    The best cell of each column is bold. A cell with fewer splits than other cells shows the number of its splits in brackets. If `name` is
    None, each table has its own measure.
    """
    groups = dict(groups_of(entries))
    most = {case: max(len(lines) for key, lines in groups.items() if key[0] == case) for case in cases}
    winner = {}
    for case in cases if best else ():
        found = {key[1:]: mean(lines, own)[0] for key, lines in groups.items()
                 if key[0] == case and 2 * len(lines) > most[case] and mean(lines, own := name or lines[0]["measure"])}
        winner[case] = best(found, key=found.get) if found else None
    rows = [["", *cases]]
    for way in ways_of(groups):
        cells = []
        for case in cases:
            lines = groups.get((case, *way), [])
            text = show(lines, name or lines[0]["measure"]) if lines else ""
            text = f"**{text}**" if text and winner.get(case) == way else text
            cells.append(text + (f" ({len(lines)})" if text and len(lines) < most[case] else ""))
        if any(cells):
            rows.append([title(*way), *cells])
    return table(rows)


def cases_of(entries, *measures):
    return list(dict.fromkeys(entry["case"] for entry in entries if any(entry.get(name) is not None for name in measures)))


def ways_of(groups):
    return sorted({key[1:] for key in groups}, key=lambda way: (list(NAMES).index(way[0]), ORDER.get(way[1], 2)))


def of_files(entries):
    """Return the table for the split of the files: Mercer, with the mean over its seeds, and the other packages."""
    groups = dict(groups_of(entries))
    others = [way for way in ways_of(groups) if way[0] != "mercer"]
    rows = [["set", "measure", "Mercer", "seeds", "seconds", *(title(*way) for way in others)]]
    for case in cases_of(entries, "r2", "accuracy"):
        own = groups.get((case, "mercer", "default"), [])
        names = [name for name in ("r2", "accuracy", "auc") if any(line["case"] == case and line.get(name) is not None for line in entries)]
        best, cells = {}, {}
        for way in [("mercer", "default"), *others]:
            lines = groups.get((case, *way), [])
            cells[way] = {name: mean(lines, name)[0] for name in names if mean(lines, name)}
        for name in names:
            best[name] = max(found[name] for found in cells.values() if name in found)
        texts = {way: " / ".join(f"**{short(value)}**" if value == best[name] else short(value) for name, value in found.items())
                 for way, found in cells.items()}
        spent = sorted(line["seconds"] for line in own)
        rows.append([case, " / ".join(WORDS[name] for name in names), texts["mercer", "default"],
                     ", ".join("/".join(short(line[name]) for name in names) for line in sorted(own, key=lambda line: line["seed"])),
                     f"{spent[0]:.1f} to {spent[-1]:.1f}" if own else "", *(texts[way] for way in others)])
    return table(rows)


def verdicts(entries):
    """Return a table of Mercer's score minus the best score of the other packages on common splits, and a summary sentence."""
    rows, said = [["set", "measure", "best of the others", "Mercer less that", "splits"]], {"ahead": [], "worse": [], "neither": []}
    ways = sorted({(entry["package"], entry["how"]) for entry in entries if entry["package"] != "mercer"})
    for case in cases_of(entries, "r2", "accuracy"):
        measure = next(entry["measure"] for entry in entries if entry["case"] == case)
        found = {way: differences(entries, case, *way, measure) for way in ways}
        most = max(len(values) for values in found.values())
        found = {way: mean_of(values) + (len(values),) for way, values in found.items() if 2 * len(values) > most}
        if not found:
            continue
        way = min(found, key=found.get)
        difference, error, count = found[way]
        rows.append([case, WORDS[measure], title(*way), f"{difference:+.4f}" + ("" if math.isnan(error) else f" ± {error:.4f}"), str(count)])
        said["neither" if math.isnan(error) or abs(difference) < 2 * error else "ahead" if difference > 0 else "worse"].append(case)
    if len(rows) == 1:
        return ""
    names = {word: ", ".join(cases) or "none" for word, cases in said.items()}
    said = (f"Compared with the best of all others on each table (chosen with the test scores in hand), Mercer with its defaults is ahead by more than two "
            f"standard errors on {names['ahead']}; worse on {names['worse']}; within two on {names['neither']}.")
    return table(rows) + "\n" + prose(said)


def number(lines, name):
    found = mean(lines, name)
    return f"{found[0]:.1f}" if found and found[0] < 100 else f"{found[0]:,.0f}" if found else ""


def thousands(lines, name):
    found = mean(lines, name)
    return f"{found[0] / 1e3:,.0f}" if found else ""


def machines(entries):
    """Return a paragraph that lists the machine and the number of processors of each package."""
    found = {}
    for entry in entries:
        device = "a GPU and " if str(entry.get("device", "")).startswith("cuda") else ""
        count = entry.get("jobs", 1)
        where = f"{device}{count} processor{'s' if count != 1 else ''} of {entry.get('machine') or 'a machine without a name'}"
        found.setdefault(where, {})[NAMES[entry["package"]]] = True
    return prose("; ".join(f"{', '.join(names)}: {where}" for where, names in found.items()) + ".")


def sections(entries):
    files, splits = part(entries, True), part(entries, False)
    yield machines(entries)
    if files:
        own = [line for line in files if line["how"] == "search"]
        searched = f"; searches of {mean(own, 'budget')[0]:g} s" if own else ""
        several = {NAMES[line["package"]]: True for line in files if line.get("seed", 0) > 0}
        seeds = f"Means over the seeds for {', '.join(several)}, one fit for the others" if several else "One fit each"
        yield prose(f"**On the split of the files.** {seeds}{searched}; the best is bold.")
        yield of_files(files)
    if splits:
        count, budgets = len({entry["split"] for entry in splits}), sorted({entry["budget"] for entry in splits if entry.get("budget")})
        upto = f" to {budgets[-1]:.0f}" if budgets and budgets[-1] > budgets[0] else ""
        said = f" A package marked \"searched\" tries random configurations and begins no new one after {budgets[0]:.3g}{upto} s." if budgets else ""
        yield prose(f"**On {count} random splits.** Means and standard errors of test scores; the number of splits is in brackets where it is "
                    f"smaller.{said}")
        cases = cases_of(splits, "r2", "accuracy")
        yield by_package(splits, None, cases, score, max)
        yield verdicts(splits)
        for name, best in (("accuracy", max), ("log_loss", min)):
            if cases_of(splits, name):
                yield f"{WORDS[name].capitalize()}:\n"
                yield by_package(splits, name, cases_of(splits, name), score, best)
        machine = next((line.get("machine") for line in splits if line["package"] == "mercer"), None)
        splits = [line for line in splits if line.get("machine") == machine]  # times of different machines cannot be compared
        for name, said, show in (("seconds", "Seconds of fitting, including the search", number), ("bytes", "Size of the model, kB", thousands),
                                 ("rows_per_second", "Thousands of rows predicted per second", thousands)) if machine is not None else ():
            yield f"{said}:\n"
            yield by_package(splits, name, cases, show)


def beside_random(entries):
    """Yield the comparison of the search with random configurations of the same model."""
    spent = ["seconds", "processor seconds"]
    rows = [["set", "rows", "search", *spent, "configurations", "best of them", *spent, "times as long"]]
    for entry in entries:
        own, other = entry["search"], entry["random"]
        rows.append([entry["case"], f"{entry['rows']:,}", short(own["r2"]), f"{own['seconds']:.0f}", f"{own['processor']:.0f}", str(entry["tried"]),
                     short(other["r2"]), f"{other['seconds']:,.0f}", f"{other['processor']:,.0f}",
                     f"{entry['times']['seconds']:.0f} ({entry['times']['processor']:.0f})"])
    yield prose("**Compared with random configurations of the same model** (`bench/tables/random_search.py`): R2 on test rows of Mercer's search with its "
                f"defaults, and of the best of random kernels, preprocessings, rounds, bandwidths and ridges, on {entries[0]['jobs']} "
                f"processor{'s' if entries[0]['jobs'] != 1 else ''}; seconds of the random configurations are added up.")
    yield table(rows)


def write(path, entries, random=(), plots=None):
    """Replace the text between the two marks of a document; `plots` is the file of the picture."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    first, last = (i for i, line in enumerate(lines) if line.startswith(MARK))
    picture = [f"![Scores over seconds of fitting]({os.path.relpath(plots, os.path.dirname(path) or '.')})\n"] if plots else []
    body = "\n".join([*sections(entries), *(beside_random(random) if random else ()), *picture]).rstrip("\n").split("\n")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join([*lines[: first + 1], "", *body, "", *lines[last:]]))
