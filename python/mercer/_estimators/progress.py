# SPDX-License-Identifier: BSD-3-Clause
"""Progress of a fit: a line on stderr, and a callback that stops training when the loss no longer decreases."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from .parameters import PATIENCE

WIDTH, REDRAW_SECONDS = 20, 0.1  # characters of the bar; shortest time between two redraws
NOTEBOOK_SECONDS = 3.0  # in notebooks, shorter fits show no progress by default
LINE_SECONDS = 10.0  # longest time between two lines if stderr is not a terminal or notebook, such as a log file
SEARCHING = {"search": "searching hyperparameters", "centers": "choosing centers", "members": "training further models"}


def in_notebook() -> bool:
    return "ipykernel" in sys.modules


def _notebook_output() -> Any:
    """Return a function that replaces the text of one output of the current cell; None outside of notebooks."""
    try:
        from IPython import display, get_ipython
    except ImportError:
        return None
    if get_ipython() is None:
        return None
    handle = display.display({"text/plain": ""}, raw=True, display_id=True)
    return lambda line: handle.update({"text/plain": line}, raw=True)


@contextmanager
def progress_bar(verbose: int | None) -> Iterator[Bar | None]:
    """Show a progress line during a fit: at once if ``verbose`` > 0, in notebooks after some seconds if it is None."""
    if not verbose and not (verbose is None and in_notebook()):
        yield None
        return
    bar = Bar(delay=0.0 if verbose else NOTEBOOK_SECONDS)
    try:
        if verbose:
            bar.start()
        yield bar
    finally:
        bar.close()


def _passes_done(p: dict[str, Any]) -> float:
    """Return the number of passes done, including the fraction of the current pass."""
    within = p["pass_samples"] / p["pass_total"] if p["pass_total"] > 0 else 0.0
    return float(p["epoch"] + min(1.0, within))


class Bar:
    """Progress line on stderr: redrawn on a terminal or in a notebook, elsewhere a line per epoch or 10 seconds."""

    def __init__(self, stream: TextIO | None = None, delay: float = 0.0) -> None:
        self.stream, self.delay, self.began = stream or sys.stderr, delay, time.monotonic()
        self.redraws = in_notebook() or bool(getattr(self.stream, "isatty", lambda: False)())
        self.last, self.line_at, self.length, self.validation = 0.0, self.began, 0, math.nan
        self.first = 0.0, 0.0, 0.0  # seconds, samples and epochs at the end of set-up
        self.cell: Any = None  # function of _notebook_output; set with the first line
        self.uses_cell = stream is None and in_notebook()
        self.shown = ""

    def start(self) -> None:
        """Show that the fit has begun, before its first report."""
        self._write("  0% |" + " " * WIDTH + "| reading the data", False)

    def __call__(self, p: dict[str, Any]) -> None:
        """Show progress.

        Speed and remaining time are measured from the end of set-up, so they exclude set-up and earlier, interrupted
        runs.
        """
        now = time.monotonic()
        if "error" in p:
            # Show no calibration: it follows training, whose last line must stay visible.
            if p["phase"] != "calibration" and (now - self.last >= REDRAW_SECONDS or p["phase_share"] >= 1):
                self.last = now
                self._write(self._stage(p), now - self.line_at >= LINE_SECONDS)
            return
        if p["phase"] is not None:
            self.first = p["seconds"], p["samples"], _passes_done(p)
            share = f"{abs(p['phase_share']) * 100:3.0f}% " if p["phase_share"] >= 0 else ""
            self._write(f"setting up: {share}{p['phase']}, {p['seconds']:.1f} s", False)
            return
        ended = p["pass_samples"] == 0
        if not math.isnan(p["validation_loss"]):
            accuracy = p["validation_accuracy"]
            self.validation = p["validation_loss"] if math.isnan(accuracy) else accuracy
        if ended or now - self.last >= REDRAW_SECONDS:
            self.last = now
            self._write(self._line(p), ended)

    def _stage(self, p: dict[str, Any]) -> str:
        share = min(1.0, max(0.0, p["phase_share"]))
        error = f", held-out R2 {1 - p['error']:.4f}" if p["phase"] == "search" and p["error"] > 0 else ""
        bar = ("#" * round(share * WIDTH)).ljust(WIDTH)
        return f"{share * 100:3.0f}% |{bar}| {SEARCHING.get(p['phase'], p['phase'])}{error}, {p['seconds']:.1f} s"

    def _line(self, p: dict[str, Any]) -> str:
        epochs, passes, (began, before, first) = max(1, p["epochs"]), _passes_done(p), self.first
        seconds, samples, done = p["seconds"] - began, p["samples"] - before, min(1.0, passes / epochs)
        left = seconds / (passes - first) * (epochs - passes) if passes > first else math.nan
        loss = "-" if math.isnan(p["train_loss"]) else f"{p['train_loss']:.4g}"
        parts = [f"epoch {p['epoch']}/{epochs}", f"loss {loss}"]
        if not math.isnan(p["train_accuracy"]):
            parts.append(f"accuracy {p['train_accuracy']:.4f}")
        if not math.isnan(self.validation):
            parts.append(f"validation {self.validation:.4f}")
        if seconds > 0 and samples > 0:
            parts.append(f"{samples / seconds:,.0f} rows/s")
        parts.append(f"{p['seconds']:.1f} s" + (f", {left:.0f} s left" if done < 1 and left >= 1 else ""))
        return f"{done * 100:3.0f}% |{('#' * round(done * WIDTH)).ljust(WIDTH)}| " + ", ".join(parts)

    def _write(self, line: str, ended: bool) -> None:
        if time.monotonic() - self.began < self.delay:
            return
        if self.uses_cell and self.cell is None:
            self.cell = _notebook_output()
            self.uses_cell = self.cell is not None
        self.shown = line
        if self.cell:
            self.cell(line)
        elif self.redraws or ended:
            self.stream.write("\r" + line.ljust(self.length) if self.redraws else line + "\n")
            self.stream.flush()
            self.length, self.line_at = len(line), time.monotonic()

    def close(self) -> None:
        """Show that the fit is done, and end the line, so that later output begins on a new line."""
        if self.shown and self.redraws and not self.shown.startswith("100%"):
            self._write(f"100% |{'#' * WIDTH}| done, {time.monotonic() - self.began:.1f} s", False)
        if self.length and self.redraws and not self.cell:
            self.stream.write("\n")
            self.stream.flush()


class Tolerance:
    """Callback that stops training when the loss no longer decreases."""

    def __init__(self, share: float, validation: bool) -> None:
        self.share, self.name = share, "validation_loss" if validation else "train_loss"
        self.best, self.since = math.inf, 0

    def __call__(self, progress: dict[str, Any]) -> bool:
        loss = progress[self.name]
        if progress["pass_samples"] or math.isnan(loss):
            return False
        better = loss < self.best * (1 - self.share)
        self.best, self.since = min(self.best, loss), 0 if better else self.since + 1
        return self.since >= PATIENCE
