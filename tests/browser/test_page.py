#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_page.py MERCER: reports of valid and invalid logs, checked by a parser; no browser is needed."""
import copy
import os
import random
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

sys.dont_write_bytecode = True
import fixture  # noqa: E402 (the line above must come first)
import page  # noqa: E402

MERCER = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else "build/mercer"
SECTIONS = {"curves", "plan", "spectrum", "residuals", "phases", "timeline", "confusion", "predictions", "options"}


class Reports(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.log, self.html = os.path.join(folder.name, "run.jsonl"), os.path.join(folder.name, "report.html")

    def report(self, log, code=0):
        """Make a report of a log (events or raw bytes) and return the page; with an exit code, expect it and return stderr."""
        data = log if isinstance(log, bytes) else fixture.text(log).encode()
        with open(self.log, "wb") as file:
            file.write(data)
        run = subprocess.run([MERCER, "report", self.log, "-o", self.html], capture_output=True, text=True)
        self.assertEqual(run.returncode, code, run.stderr)
        if code:
            self.assertEqual(run.stderr.count("\n"), 1, "an error is one line")
            return run.stderr
        with open(self.html, encoding="utf-8") as file:
            return file.read()

    def good(self, log):
        """Make a report, run the checks for all pages and return the parsed page."""
        text = self.report(log)
        read = page.Page(text)
        self.assertEqual(read.problems, [])
        self.assertEqual(page.foreign(text), [])
        self.assertIn("default-src 'none'", text)
        self.assertEqual(read.counts.get("script", 0), 0)
        return read

    def test_complete_runs(self):
        read = self.good(fixture.whole_run())
        self.assertLessEqual(SECTIONS, read.ids)
        self.assertGreaterEqual(read.counts["svg"], 8)
        self.assertEqual(read.counts["img"], 2)
        words = read.text()
        for part in ["97.74", "60,000", "10,000", "1.79", "26.4", "kmeans", "critical batch", "Eigenpairs q",
                     "Other: data", "recall", "874 times", "More data, same centers"]:
            self.assertIn(part, words)
        self.assertNotIn("no summary", words)

    def test_every_event_may_be_missing(self):
        events = fixture.whole_run()
        for kind in {event["event"] for event in events}:
            self.good([event for event in events if event["event"] != kind])
            self.good([event for event in events if event["event"] == kind])

    def test_sections_without_events_are_left_out(self):
        read = self.good([fixture.start_event()])
        self.assertEqual({name for name in read.ids if not name.endswith("-title")}, {"options"})
        self.assertIn("no summary", self.good([fixture.start_event()] + fixture.epoch_events()).text())

    def test_nothing_of_the_log_becomes_markup(self):
        def poison(value):
            if isinstance(value, str):
                return fixture.EVIL
            if isinstance(value, list):
                return [poison(item) for item in value]
            if isinstance(value, dict):
                return {key if key != "seed" else fixture.EVIL: item if key in ("event", "task") else poison(item)
                        for key, item in value.items()}
            return value

        read = self.good([poison(event) for event in fixture.whole_run()])
        self.assertIn(fixture.EVIL.replace("  ", " "), read.text())
        self.assertEqual(read.counts["img"], 2)

    def test_torn_last_line(self):
        whole = fixture.text(fixture.whole_run()[:40]).encode()
        for tail in [b'{"event":"progress","epo', b'{"event":"progress","epo\n', b"\xc3", b"\0\0\0"]:
            self.assertIn("incomplete", self.good(whole + tail).text())
        # A complete last line without a newline is valid.
        self.assertNotIn("cut off", self.good(whole.rstrip(b"\n")).text())

    def test_torn_line_in_the_middle(self):
        lines = fixture.text(fixture.whole_run()).encode().split(b"\n")
        lines[4] = lines[4][:20]
        message = self.report(b"\n".join(lines), 65)
        self.assertIn("run.jsonl: line 5: ", message)
        self.assertFalse(os.path.exists(self.html))
        # A run that was killed and resumed leaves an incomplete line before the event "resume", which is not an error.
        resumed = b"\n".join(lines[:5]) + b"\n" + fixture.text([{"event": "resume"}]).encode() + b"\n".join(lines[5:])
        self.assertNotIn("cut off", self.good(resumed).text())

    def test_resumed_run_goes_on(self):
        events = fixture.epoch_events(4, 1)
        again = dict(fixture.start_event(), resumed=True)
        log = [fixture.start_event()] + events[:3] + [again] + events[1:]
        read = self.good(log)
        row = '<th scope="row">training</th><td class="n">3</td>'
        self.assertEqual(self.report(log).count(row), 2, "epoch 3 once in the tables of loss and of accuracy")
        self.assertNotIn("contains 2 runs", read.text())

    def test_last_of_several_runs(self):
        first = fixture.whole_run()
        second = [dict(fixture.start_event(), kernel="gaussian:bandwidth=3")] + fixture.epoch_events(2, 1)
        read = self.good(first + second)
        self.assertIn("contains 2 runs", read.text())
        self.assertIn(f"line {len(first) + 1}", read.text())
        self.assertIn("gaussian:bandwidth=3", read.text())
        self.assertNotIn("confusion", read.ids)

    def test_missing_values_in_tables(self):
        names = ["train_loss", "train_accuracy", "validation_loss", "validation_accuracy", "projection_residual"]
        for missing in [names, names[1:], names[:1], ["seconds"], ["epoch"], ["epoch", "seconds"]]:
            events = [{key: None if key in missing else value for key, value in event.items()}
                      for event in fixture.epoch_events()]
            read = self.good([fixture.start_event()] + events)
            self.assertEqual("curves" in read.ids, missing not in (names, ["epoch", "seconds"]))
        self.good([{"event": "spectrum", "values": [None, 0, -1], "eigenpairs": None, "tail": None}])

    def test_missing_points_are_not_drawn(self):
        chart = {"event": "chart", "title": "t", "series": [{"name": "s", "x": [0, 1, 2, 3], "y": [1, None, 3, 2]}]}
        lines = [path for path in self.good([chart]).paths if "L" in path]
        self.assertEqual([path.count("L") for path in lines], [2], "one line over three points")
        chart.update(log_x=True)
        lines = [path for path in self.good([chart]).paths if "L" in path]
        self.assertEqual([path.count("L") for path in lines], [1], "0 has no place on a log axis")

    def test_dotted_series(self):
        """A dotted series has the color of the preceding series, so the next series has the next color."""
        series = [{"name": name, "x": [0, 1], "y": [1, 2], "dotted": name == "p"} for name in "apb"]
        page = self.report([{"event": "chart", "title": "t", "series": series}])
        drawn = page.split("</ul>")[-1]
        self.assertEqual(re.findall(r'class="line (c\d d\d)"', drawn), ["c0 d0", "c0 d4", "c1 d1"])
        self.assertEqual(re.findall(r'class="line (c\d d\d)"', page.split('class="legend"')[1].split("</ul>")[0]),
                         ["c0 d0", "c0 d4", "c1 d1"])

    def test_extracted_chart(self):
        """tools/make-chart extracts a chart from a page as a self-contained SVG file."""
        chart = next(event for event in fixture.whole_run() if event["event"] == "chart")
        self.report([dict(chart, section="Growth", title="More & more")])
        tool = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "make-chart")
        drawn = os.path.join(os.path.dirname(self.html), "chart.svg")
        subprocess.run([sys.executable, tool, self.html, "More & more", drawn], check=True)
        root = xml.etree.ElementTree.parse(drawn).getroot()
        words = " ".join("".join(root.itertext()).split())
        for part in ["More & more", "p = 250", "p = 1,000", "p = 4,000", "prefers-color-scheme", ".line.c2"]:
            self.assertIn(part, words)
        self.assertEqual(len([path for path in root.iter("{http://www.w3.org/2000/svg}path")
                              if "L" in path.get("d")]), 3)
        wrong = subprocess.run([sys.executable, tool, self.html, "Less", drawn], capture_output=True, text=True)
        self.assertEqual((wrong.returncode, wrong.stderr.count("\n")), (1, 1))

    def test_one_epoch(self):
        """A single point is not drawn as a curve: its values are in a table or only in the summary cards."""
        events = fixture.epoch_events(1, 1)
        read = self.good([fixture.start_event()] + events)
        self.assertIn("curves", read.ids)
        self.assertEqual(read.counts.get("svg", 0), 0)
        for part in ["Mean squared error", "Training", "Validation", "94.09"]:
            self.assertIn(part, read.text())
        self.assertIn("Relative residual", read.text())
        direct = [dict(event, train_loss=None, train_accuracy=None, projection_residual=None) for event in events]
        self.assertIn("94.09", self.good([fixture.start_event()] + direct).text())
        read = self.good([fixture.start_event()] + direct + [{"event": "summary", "accuracy": 0.9409, "mse": 0.028}])
        self.assertNotIn("curves", read.ids)
        self.assertIn("94.09", read.text())
        self.assertEqual(read.counts.get("svg", 0), 0)

    def test_a_chart_needs_two_points(self):
        chart = {"event": "chart", "title": "t", "y": "error", "series": [{"name": "s", "x": [1], "y": [0.1875]}]}
        read = self.good([chart])
        self.assertEqual(read.counts.get("svg", 0), 0)
        self.assertIn("0.1875", read.text())
        chart["series"].append({"name": "r", "x": [1, 2], "y": [3, 4]})
        self.assertEqual(self.good([chart]).counts["circle"] >= 1, True)

    def test_epoch_ticks_are_integers(self):
        """An axis of three epochs has ticks at whole epochs only."""
        events = [dict(event, projection_residual=None) for event in fixture.epoch_events(3, 10)]
        charts = [chart for chart in self.report([fixture.start_event()] + events).split("<figure>")
                  if "over epochs" in chart]
        self.assertEqual(len(charts), 2)
        for chart in charts:
            self.assertEqual(re.findall(r'text-anchor="middle">([\d.]+)</text>', chart), ["0", "1", "2", "3"])

    def test_many_lines_are_thinned_out(self):
        for epochs, inside in [(2, 5000), (10000, 1)]:
            text = self.report([fixture.start_event()] + fixture.epoch_events(epochs, inside))
            read = page.Page(text)
            self.assertEqual(read.problems, [])
            self.assertLess(len(text), 400000)
            most = max(path.count("L") + 1 for path in read.paths)
            self.assertEqual(most, 500, "thinned out, not cut off")

    def test_curves_have_a_point_for_each_epoch(self):
        """Curves have one point per epoch, because means over parts of an epoch fluctuate. Short curves have more points."""
        for epochs, lengths in [(8, {8}), (2, {2, 20})]:
            events = [dict(event, projection_residual=None) for event in fixture.epoch_events(epochs, 10)]
            lines = [path for path in self.good([fixture.start_event()] + events).paths if "L" in path]
            self.assertEqual({path.count("L") + 1 for path in lines}, lengths)

    def test_classes_on_a_map(self):
        """A confusion matrix is a table, a map or a list of pairs, by the number of classes. A map shows the whole matrix."""
        for count, drawn in [(14, False), (15, True), (26, True), (40, True), (100, True), (101, False)]:
            labels = [f"{i} <class>" for i in range(count)]
            event = fixture.confusion_event(labels)
            text = self.report([event])
            read = page.Page(text)
            self.assertEqual((read.problems, page.foreign(text)), ([], []))
            self.assertEqual('class="map"' in text, drawn, count)
            self.assertEqual('class="confusion"' in text, count <= 14)
            self.assertEqual(f"{count} classes; " in read.text(), count > 14)
            if not drawn:
                continue
            box = [float(number) for number in re.search(r'viewBox="([^"]+)"', text).group(1).split()]
            self.assertLessEqual(box[2], 1080, "fits a usual page")
            cells = re.findall(r'<rect style="[^"]+" x="([^"]+)" y="([^"]+)" width="([^"]+)" height="([^"]+)"', text)
            self.assertEqual(len(cells), sum(value > 0 for row in event["matrix"] for value in row))
            for x, y, width, height in cells:
                self.assertLessEqual(float(x) + float(width), box[2])
                self.assertLessEqual(float(y) + float(height), box[3])
            for label in labels:
                self.assertGreaterEqual(read.words["text"].count(label), 2, "names row and column")

    def test_long_names_of_classes(self):
        labels = ["ÄÖÜäöüÄÖÜäöüÄÖÜäöü" + str(i) for i in range(20)]
        read = self.good([fixture.confusion_event(labels)])
        self.assertIn("ÄÖÜäöüÄÖÜäöüÄÖ…", read.words["text"])

    def test_predictions_of_a_regression(self):
        summary = {"event": "summary", "mse": 0.173, "rmse": 0.416, "mae": 0.3078, "r2": 0.8273, "seconds": 1}
        read = self.good([fixture.start_event(), fixture.predictions_event(), summary])
        for part in ["R²0.8273", "RMSE0.416", "error 0.3078", "2,000 of 6,400 validation samples",
                     "Predicted against true", "true − predicted"]:
            self.assertIn(part, read.text())
        self.assertNotIn("Mean squared error", read.text())
        dots = [path.count("h0") for path in read.paths if "h0" in path]
        self.assertEqual(sum(dots), 2 * 2000)
        read = self.good([fixture.predictions_event(6, 50, 50)])
        self.assertEqual(sum(path.count("h0") for path in read.paths), 4 * 50, "the first four outputs")
        for part in ["50 validation samples.", "output 6"]:
            self.assertIn(part, read.text())

    def test_extreme_numbers(self):
        for value in [1e308, -1e308, 5e-324, 0, -0.0, 1e15, 123456789, 1e-9]:
            events = copy.deepcopy(fixture.epoch_events(2, 2))
            for event in events:
                event["train_loss"] = value
            events[-1]["validation_loss"] = -value
            events[-1]["train_accuracy"] = value
            self.good([fixture.start_event()] + events + [
                {"event": "summary", "seconds": value, "peak_bytes": value, "flops": value, "accuracy": value,
                 "phases": {"setup": value, "other": 1}},
                {"event": "spectrum", "values": [value, 1, 1e-300], "tail": 1e-300, "eigenpairs": 2},
                {"event": "chart", "title": "t", "log_x": value > 0, "series": [
                    {"name": "s", "x": [value, 1], "y": [1, value]}]}])

    def test_fields_of_the_wrong_type(self):
        """Fields of the wrong type do not prevent a valid page."""
        draw = random.Random(7)
        wrong = [None, True, "x", "", -1, 1e300, [], {}, [[]], [1, "2"], {"a": [None]}]
        for _ in range(60):
            events = fixture.whole_run()
            for event in draw.sample(events, 6):
                for key in list(event):
                    if key != "event" and draw.random() < 0.5:
                        event[key] = draw.choice(wrong)
            self.good(events)

    def test_bad_logs(self):
        self.assertIn("events", self.report(b"", 65))
        self.assertIn("events", self.report(b"\n\n{\"event\":\"other\"}\n", 65))
        self.assertIn("line 2", self.report(b'{"event":"start"}\n{"epoch":1}\n', 65))
        self.assertIn("line 1", self.report(b'[1, 2]\n{"event":"start"}\n', 65))
        self.assertIn("line 1", self.report(b'PNG\r\n\n{"event":"epoch"}\n', 65))

    def test_files(self):
        def run(*arguments):
            done = subprocess.run([MERCER, "report", *arguments], capture_output=True, text=True)
            return done.returncode, done.stderr

        code, words = run(self.log, "-o", self.html)
        self.assertEqual((code, "run.jsonl" in words), (66, True))
        code, _ = run(os.path.dirname(self.log), "-o", self.html)
        self.assertEqual(code, 74)
        self.report(fixture.whole_run())
        with open(self.html, encoding="utf-8") as file:
            before = file.read()
        self.report(b"torn\n\n{\"event\":\"epoch\"}\n", 65)
        with open(self.html, encoding="utf-8") as file:
            self.assertEqual(before, file.read(), "a failure leaves the old page")
        self.assertEqual(sorted(os.listdir(os.path.dirname(self.log))), ["report.html", "run.jsonl"])
        with open(self.log, "w") as file:
            file.write(fixture.text(fixture.whole_run()))
        code, _ = run(self.log, "-o", os.path.join(os.path.dirname(self.log), "none", "report.html"))
        self.assertEqual(code, 74)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
