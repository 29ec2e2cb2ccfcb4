# SPDX-License-Identifier: BSD-3-Clause
"""A line of progress on stderr: redrawn on a terminal and in a notebook, one line an epoch elsewhere."""

from __future__ import annotations

import math
import sys
import time
from typing import Any, TextIO

WIDTH, REDRAW_SECONDS = 20, 0.1


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4g}"


def _passes(p: dict[str, Any]) -> float:
    """Passes done, with the part of the one under way."""
    within = p["pass_samples"] / p["pass_total"] if p["pass_total"] > 0 else 0.0
    return float(p["epoch"] + min(1.0, within))


class Bar:
    """Called with a trainer's progress; ``close`` ends the line."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stderr
        notebook = "ipykernel" in sys.modules
        self.redraws = notebook or bool(getattr(self.stream, "isatty", lambda: False)())
        self.last, self.length, self.drawn = 0.0, 0, False
        self.validation = math.nan
        self.start: tuple[float, float, float] | None = None  # seconds, samples and epochs when set-up was done

    def __call__(self, progress: dict[str, Any]) -> None:
        if progress["phase"] is not None:
            self._set_up(progress)
            return
        ended = progress["pass_samples"] == 0
        now = time.monotonic()
        if not math.isnan(progress["validation_loss"]):
            accuracy = progress["validation_accuracy"]
            self.validation = progress["validation_loss"] if math.isnan(accuracy) else accuracy
        if not ended and (not self.redraws or now - self.last < REDRAW_SECONDS):
            return
        self.last = now
        self._write(self._line(progress), ended)

    def _set_up(self, p: dict[str, Any]) -> None:
        """Speed and the time that is left count from the end of set-up; a resumed training has a past, too."""
        self.start = p["seconds"], p["samples"], _passes(p)
        if self.redraws:
            share = f"{p['phase_share'] * 100:3.0f}% " if p["phase_share"] >= 0 else ""
            self._write(f"setting up: {share}{p['phase']}, {p['seconds']:.1f} s", False)

    def _line(self, p: dict[str, Any]) -> str:
        epochs = max(1, p["epochs"])
        passes = _passes(p)
        began, before, first = self.start or (0.0, 0.0, 0.0)
        seconds, samples = p["seconds"] - began, p["samples"] - before
        done = min(1.0, passes / epochs)
        full = round(done * WIDTH)
        left = seconds / (passes - first) * (epochs - passes) if passes > first else math.nan
        parts = [f"epoch {p['epoch']}/{epochs}", f"loss {_number(p['train_loss'])}"]
        if not math.isnan(p["train_accuracy"]):
            parts.append(f"accuracy {p['train_accuracy']:.4f}")
        if not math.isnan(self.validation):
            parts.append(f"validation {self.validation:.4f}")
        if seconds > 0 and samples > 0:
            parts.append(f"{samples / seconds:,.0f} rows/s")
        parts.append(f"{p['seconds']:.1f} s" + (f", {left:.0f} s left" if done < 1 and left >= 1 else ""))
        return f"{done * 100:3.0f}% |{'#' * full}{' ' * (WIDTH - full)}| " + ", ".join(parts)

    def _write(self, line: str, ended: bool) -> None:
        if self.redraws:
            self.stream.write("\r" + line.ljust(self.length))
            self.length = len(line)
        elif ended:
            self.stream.write(line + "\n")
        self.stream.flush()
        self.drawn = True

    def close(self) -> None:
        """Leaves the last state on a line of its own."""
        if self.drawn and self.redraws:
            self.stream.write("\n")
            self.stream.flush()
