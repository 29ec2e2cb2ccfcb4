# SPDX-License-Identifier: BSD-3-Clause
"""Output on a terminal: a progress line no wider than the terminal, or plain lines on a dumb terminal."""
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

from support import PROGRAM, Case, main

ROWS = "700" if os.environ.get("MERCER_TEST_SLOW") else "2000"  # a build with sanitizers
RUN = ["train", "--synth", "digits", "--rows", ROWS, "--validation-fraction", "0.1", "--centers", "200", "--solver", "ep4"]
RUN += ["--epochs", "8", "--kernel", "laplace:bandwidth=10", "-o", "m.safetensors"]


class Terminal(Case):
    def see(self, *more, run=RUN, columns=100, **environment):
        """Run the program with a terminal of the given width as stderr and return what it writes there."""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        settings = {**os.environ, "TERM": "xterm", **environment}
        for name in ("COLUMNS", "NO_COLOR"):
            if name not in environment:
                settings.pop(name, None)
        process = subprocess.Popen([PROGRAM, *run, *more], cwd=self.folder, env=settings, stderr=slave, stdout=subprocess.PIPE)
        os.close(slave)
        seen = b""
        while True:
            try:
                part = os.read(master, 4096)
            except OSError:  # On Linux, reading fails after the other side is closed.
                break
            if not part:
                break
            seen += part
        os.close(master)
        self.assertEqual(process.stdout.read(), b"")
        process.stdout.close()
        self.assertEqual(process.wait(), 0, seen)
        return seen.decode().replace("\r\n", "\n")

    def lines(self, text):
        """Return the successive contents of the progress line without color sequences."""
        return [re.sub(r"\033\[[0-9;]*[mK]", "", part) for part in re.findall(r"\r(\[[^\r\n]*)", text)]

    def test_bar(self):
        text = self.see("--verbose")
        states = self.lines(text)
        self.assertGreater(len(states), 3)
        self.assertTrue(any(re.search(r"\d+% epoch \d/8  loss [\d.]+  validation [\d.]+ %  \d+k? rows/s  ETA ", state) for state in states), states)
        self.assertLess(max(len(state) for state in states), 100)
        self.assertIn("\033[32m", text)
        self.assertNotRegex(text, r"(?m)^epoch \d/8: ")
        # The progress line is erased at the end and leaves an empty line before the summary.
        self.assertRegex(text, r"\r\033\[K\naccuracy +\d")

    def test_direct_has_no_epochs(self):
        run = ["train", "--synth", "digits", "--rows", "600", "--centers", "100", "--solver", "direct", "-o", "m", "-v"]
        states = self.lines(self.see(run=run, columns=80))
        self.assertTrue(any("% solving" in state for state in states), states)
        text = self.see("--validation-fraction", "0.1", run=run, TERM="dumb")
        self.assertRegex(text, r"(?m)^solved: loss [\d.]+, validation loss [\d.]+, validation accuracy [\d.]+ %, [\d.]+ ")
        self.assertNotIn("epoch", text)

    def test_set_up_is_shown(self):
        text = self.see("--eigenpairs", "20")
        shown = re.findall(r"setting up: ([a-z ]+), [\d.]+ m?s", re.sub(r"\033\[[0-9;]*[mK]", "", text))
        self.assertIn("eigensystem", shown)
        self.assertEqual(shown[-1], "ready")
        self.assertLess(text.rindex("setting up"), text.index("epoch 1/8"))

    def test_narrow(self):
        states = self.lines(self.see(columns=40))
        self.assertLess(max(len(state) for state in states), 40)
        self.assertLess(max(len(state) for state in self.lines(self.see(columns=200, COLUMNS="50"))), 50)

    def test_tables_are_no_wider(self):
        """Values that are too long for a line are wrapped at words and aligned; no word is lost."""
        wide, narrow = self.see("-v", columns=200).split("\r")[0], self.see("-v", columns=60).split("\r")[0]
        self.assertGreater(max(map(len, wide.splitlines())), 60)
        self.assertLessEqual(max(map(len, narrow.splitlines())), 60)
        self.assertRegex(narrow, r"(?m)^solver +ep4, .*\n {12}\S")
        change = re.compile(r"(?m)^(time|memory) .*(\n {12}.*)*$")  # with continuation lines
        self.assertEqual(change.sub("", wide).split(), change.sub("", narrow).split())

    def test_the_search_shows_its_score(self):
        """While a table is searched, the bar has the current held-out score; the result is wrapped to the terminal."""
        rows = "".join("%d,%d,%.3f\n" % (i % 17, i % 13, (i % 17) ** 2 / 9 + i % 13) for i in range(400))
        self.write("t.csv", "a,b,y\n" + rows)
        text = self.see(run=["train", "t.csv", "--effort", "1"], columns=80)
        states = self.lines(text)
        self.assertTrue(any(re.search(r"% search, step \d+ of \d+, held-out R2 [01]\.\d{3}$", state) for state in states), states)
        tail = text[text.rindex("\033[K") + 3 :]
        self.assertRegex(tail, r"^result +R2 ")
        self.assertLessEqual(max(map(len, tail.splitlines())), 80)

    def test_colors(self):
        self.assertNotIn("\033[3", self.see(NO_COLOR="1"))
        self.assertNotIn("\033[3", self.see("--color", "never"))
        self.assertIn("\033[3", self.see("--color", "always", NO_COLOR="1"))

    def test_warnings(self):
        """A warning of the library is printed once and on its own line, although plans are made several times."""
        text = self.see("--eigenpairs", "100", columns=250)
        self.assertEqual(len(re.findall(r"(?:^|\n|\r\033\[K)mercer: warning: q = 100 eigenpairs .* 200 centers, [^\r\n]*\n", text)), 1, text)
        self.assertEqual(text.count("warning"), 1)
        narrow = self.see("--eigenpairs", "100", "--quiet", columns=60)
        self.assertLessEqual(max(map(len, narrow.splitlines())), 60)
        self.assertRegex(" ".join(narrow.split("\n")), r"^mercer: warning: q = 100 eigenpairs .* 200 centers, ")
        self.assertRegex(self.see("--eigenpairs", "100", "--quiet", columns=250), r"^mercer: warning: q = 100 eigenpairs .* 200 centers, [^\n]*\n$")

    def test_dumb_and_quiet(self):
        text = self.see("--verbose", TERM="dumb")
        self.assertNotIn("\033", text)
        self.assertNotIn("\r", text)
        self.assertEqual(len(re.findall(r"(?m)^epoch \d/8: ", text)), 8)
        self.assertEqual(self.see("--quiet"), "")


if __name__ == "__main__":
    try:
        for end in pty.openpty():
            os.close(end)
    except OSError as error:
        print(f"skipped: no pseudo-terminal to be had here: {error}")
        sys.exit(77)
    main()
