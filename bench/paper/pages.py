# SPDX-License-Identifier: BSD-3-Clause
"""Make charts and tables as events of a run log, from which `mercer report` makes the page."""
import json
import os
import re
import subprocess
import sys


def line(name, points, dotted=False):
    """Return a series of points. A dotted series has the color of the series before it; it shows numbers printed in the paper."""
    points = [(x, y) for x, y in points if x is not None and y is not None]
    return {"name": name, "x": [x for x, _ in points], "y": [y for _, y in points], **({"dotted": True} if dotted else {})}


def chart(section, title, x, y, series, text="", percent=True, log_x=False, log_y=False):
    series = [one for one in series if one["x"]]
    return {"event": "chart", "section": section, "title": title, "text": text, "x": x, "y": y, "percent": percent, "log_x": log_x,
            "log_y": log_y, "series": series}


def table(title, columns, rows, text=""):
    return {"event": "table", "title": title, "text": text, "columns": columns, "rows": rows}


def percent(value):
    return "" if value is None else f"{100 * value:.2f}"


def seconds(value):
    return "" if value is None else f"{value:.1f}"


def markdown(event):
    """Return a table event as Markdown."""
    def cell(value):
        return f"{value:.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else "" if value is None else str(value)

    return "\n".join(["| " + " | ".join(event["columns"]) + " |", "|" + "---|" * len(event["columns"])]
                     + ["| " + " | ".join(map(cell, row)) + " |" for row in event["rows"]])


def fill(path, made):
    """Replace the tables between the marks <!-- table PART: TITLE --> and <!-- end --> of a page; `made` is {PART: events}."""
    with open(path, encoding="utf-8") as file:
        page = file.read()

    def filled(match):
        part, title = match.group(1), match.group(2)
        if part not in made:
            return match.group(0)
        event = next((event for event in made[part] if event["event"] == "table" and event["title"] == title), None)
        if event is None:
            sys.exit(f"{path}: {part} has no table {title}")
        return f"<!-- table {part}: {title} -->\n\n{markdown(event)}\n\n<!-- end -->"

    page = re.sub(r"<!-- table (\w+): (.*?) -->\n.*?<!-- end -->", filled, page, flags=re.S)
    with open(path, "w", encoding="utf-8") as file:
        file.write(page)


def alone(events):
    """Yield the events. The only chart of a section is moved out of it, because charts in sections are drawn narrower."""
    counts = {}
    for event in events:
        counts[event.get("section")] = counts.get(event.get("section"), 0) + 1
    for event in events:
        if event["event"] == "chart" and counts[event["section"]] == 1:
            event = {**event, "title": f"{event['section']}: {event['title']}"}
            del event["section"]
        yield event


def write(places, name, title, text, events):
    """Write a log of events and the page made from it; return the path of the page."""
    log = os.path.join(places["out"], name + ".log.jsonl")
    with open(log, "w", encoding="utf-8") as file:
        drawn = [event for event in events if event["event"] != "chart" or event["series"]]
        for event in ({"event": "start", "title": title, "text": text}, *alone(drawn)):
            file.write(json.dumps(event) + "\n")
    page = os.path.join(places["out"], name + ".html")
    subprocess.run([places["mercer"], "report", log, "-o", page, "--quiet"], check=True)
    return page
