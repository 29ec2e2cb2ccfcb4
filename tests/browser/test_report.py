#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_report.py MERCER: a report in a real browser: no script runs, and everything is drawn, in light and dark mode.

Needs Chromium or Chrome; without one it exits with 77, which counts as skipped.
"""
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

sys.dont_write_bytecode = True
import fixture  # noqa: E402 (the line above must come first)
import page  # noqa: E402

BROWSERS = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"]
DARK = ["--force-dark-mode", "--blink-settings=preferredColorScheme=0"]
WIDTH, HEIGHT = 800, 1100


def browse(browser, folder, *arguments):
    """Run the browser without its sandbox, which containers do not allow; it only opens a file of this test."""
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
               "--no-first-run", f"--user-data-dir={folder}/profile", f"--window-size={WIDTH},{HEIGHT}", *arguments]
    return subprocess.run(command, capture_output=True, timeout=120, env=dict(os.environ, HOME=folder))


def unfilter(kind, row, above, step):
    """Undo the PNG filter `kind` of a row in place. step: bytes per pixel."""
    for i in range(len(row)):
        left = row[i - step] if i >= step else 0
        up = above[i]
        if kind == 1:
            row[i] = (row[i] + left) & 255
        elif kind == 2:
            row[i] = (row[i] + up) & 255
        elif kind == 3:
            row[i] = (row[i] + (left + up) // 2) & 255
        elif kind == 4:
            corner = above[i - step] if i >= step else 0
            guess = left + up - corner
            a, b, c = abs(guess - left), abs(guess - up), abs(guess - corner)
            row[i] = (row[i] + (left if a <= b and a <= c else up if b <= c else corner)) & 255


def pixels(path):
    """Return the rows of a PNG with 8 bits per channel; each row is a list of colors of 3 bytes."""
    with open(path, "rb") as file:
        data = file.read()
    assert data[:8] == b"\x89PNG\r\n\x1a\n", "no PNG"
    at, packed, width, step = 8, b"", 0, 0
    while at < len(data):
        (length,), name = struct.unpack(">I", data[at:at + 4]), data[at + 4:at + 8]
        body = data[at + 8:at + 8 + length]
        if name == b"IHDR":
            width, _, bits, kind = struct.unpack(">IIBB", body[:10])
            step = {2: 3, 6: 4}[kind]
            assert bits == 8
        packed += body if name == b"IDAT" else b""
        at += 12 + length
    raw, rows, above = zlib.decompress(packed), [], bytes(width * step)
    for start in range(0, len(raw), width * step + 1):
        row = bytearray(raw[start + 1:start + 1 + width * step])
        unfilter(raw[start], row, above, step)
        rows.append([bytes(row[i:i + 3]) for i in range(0, len(row), step)])
        above = row
    return rows


def check_screenshot(path, dark):
    rows = pixels(path)
    colors = {}
    for row in rows:
        for color in row:
            colors[color] = colors.get(color, 0) + 1
    background = sum(rows[2][2]) / 3
    assert len(rows) == HEIGHT and len(rows[0]) == WIDTH, "the screenshot has another size"
    assert (background < 60) if dark else (background > 240), f"background {rows[2][2].hex()} in {'dark' if dark else 'light'}"
    assert len(colors) > 200, f"only {len(colors)} colors: a blank page?"
    # The first two series are blue and orange, so strongly colored pixels are lines and marks, not text.
    strong = sum(count for color, count in colors.items() if max(color) - min(color) > 110)
    assert strong > 1500, f"only {strong} pixels of lines and marks"
    # Each fifth of the screenshot must show something.
    for band in range(0, HEIGHT, HEIGHT // 5):
        part = {color for row in rows[band:band + HEIGHT // 5] for color in row}
        assert len(part) > 10, f"nothing between lines {band} and {band + HEIGHT // 5}"


def check_dom(dom):
    assert "owned" not in dom[dom.find("<title"):dom.find("</title")], "a script in the log ran"
    for name in ["curves", "plan", "spectrum", "residuals", "phases", "timeline", "confusion", "options"]:
        assert f'<section id="{name}"' in dom, f"section {name} is missing"
    assert "<script" not in dom and "onerror=\"" not in dom, "the log got markup into the page"
    assert dom.count("<svg") >= 8
    assert page.foreign(dom) == [], page.foreign(dom)
    # The browser's DOM passes the checks as well, so the browser did not have to repair the page.
    read = page.Page("<!DOCTYPE html>" + dom[dom.find("<html"):])
    assert read.problems == [], read.problems[:5]


def main():
    mercer = os.path.abspath(sys.argv[1])
    browser = next((path for path in map(shutil.which, BROWSERS) if path), None)
    if not browser:
        print("skipped: no Chromium or Chrome here (on Debian: apt-get install chromium)")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        log, html = os.path.join(folder, "run.jsonl"), os.path.join(folder, "report.html")
        with open(log, "w", encoding="utf-8") as file:
            file.write(fixture.text(fixture.whole_run([fixture.EVIL] + [str(i) for i in range(9)])))
        subprocess.run([mercer, "report", log, "-o", html], check=True)
        dumped = browse(browser, folder, "--dump-dom", "file://" + html)
        if dumped.returncode != 0 or b"<html" not in dumped.stdout:
            print(f"skipped: {browser} does not run here: {dumped.stderr.decode(errors='replace')[-300:]}")
            return 77
        check_dom(dumped.stdout.decode("utf-8"))
        for dark in (False, True):
            shot = os.path.join(folder, f"shot-{dark}.png")
            browse(browser, folder, *(DARK if dark else []), f"--screenshot={shot}", "file://" + html)
            check_screenshot(shot, dark)
    return 0


if __name__ == "__main__":
    sys.exit(main())
