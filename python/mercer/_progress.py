# SPDX-License-Identifier: BSD-3-Clause
"""A line of progress on stderr: redrawn on a terminal and in a notebook, one line an epoch elsewhere."""

from __future__ import annotations

import math
import sys
import time
from typing import Any, TextIO

WIDTH, REDRAW_SECONDS = 20, 0.1


def _passes(p: dict[str, Any]) -> float:
    """Passes done, with the part of the one under way."""
    within = p["pass_samples"] / p["pass_total"] if p["pass_total"] > 0 else 0.0
    return float(p["epoch"] + min(1.0, within))


class Bar:
    """Called with a trainer's progress; ``close`` ends the line."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stderr
        self.redraws = "ipykernel" in sys.modules or bool(getattr(self.stream, "isatty", lambda: False)())
        self.last, self.length, self.validation = 0.0, 0, math.nan
        self.start = 0.0, 0.0, 0.0  # seconds, samples and epochs when set-up was done

    def __call__(self, p: dict[str, Any]) -> None:
        """Speed and the time that is left count from the end of set-up; a resumed training has a past, too."""
        if p["phase"] is not None:
            self.start = p["seconds"], p["samples"], _passes(p)
            share = f"{p['phase_share'] * 100:3.0f}% " if p["phase_share"] >= 0 else ""
            self._write(f"setting up: {share}{p['phase']}, {p['seconds']:.1f} s", False)
            return
        ended, now = p["pass_samples"] == 0, time.monotonic()
        if not math.isnan(p["validation_loss"]):
            accuracy = p["validation_accuracy"]
            self.validation = p["validation_loss"] if math.isnan(accuracy) else accuracy
        if ended or now - self.last >= REDRAW_SECONDS:
            self.last = now
            self._write(self._line(p), ended)

    def _line(self, p: dict[str, Any]) -> str:
        epochs, passes, (began, before, first) = max(1, p["epochs"]), _passes(p), self.start
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
        if self.redraws or ended:
            self.stream.write("\r" + line.ljust(self.length) if self.redraws else line + "\n")
            self.stream.flush()
            self.length = len(line)

    def close(self) -> None:
        """Leaves the last state on a line of its own."""
        if self.length and self.redraws:
            self.stream.write("\n")
            self.stream.flush()
