# SPDX-License-Identifier: BSD-3-Clause
"""Samples as the estimators train on them: without repetitions, in an order of their own, and split.

A sample of weight 2 and two equal samples must give the same model. So equal samples (same features, same target) become
one with the sum of their weights, samples of weight 0 are left out, and the rest is brought into the order of its bytes.
What follows (centers, bandwidth, folds, the solver's sums) is then a function of the weighted set of samples, not of how
it was written down.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ._arrays import Array


@dataclass
class Samples:
    """X (n, d), targets (n,) class numbers or (n, c) values, weights (n) or None: all 1."""

    X: Array
    y: Array
    weights: Array | None

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def take(self, rows: Array) -> Samples:
        """Some of the samples, copied."""
        return Samples(self.X[rows], self.y[rows], None if self.weights is None else self.weights[rows])


def bytes_of_rows(array: Array) -> Array:
    """One opaque item for each row, equal where rows are equal."""
    whole = np.ascontiguousarray(array)
    if whole.dtype.kind == "f":
        whole = whole + whole.dtype.type(0)  # -0 is 0
    return whole.view(np.dtype((np.void, whole.dtype.itemsize * whole.shape[1]))).reshape(-1)


def distinct_rows(array: Array) -> tuple[Array, Array]:
    """Rows that differ, by their first numbers in the order of their bytes, and for each row which of them it is."""
    _, first, which = np.unique(bytes_of_rows(array), return_index=True, return_inverse=True)
    return first, which.reshape(-1)


def drop_weightless(samples: Samples) -> Samples:
    """Without samples of weight 0; weights that are all 1 become None."""
    weights = samples.weights
    if weights is not None and (weights == 0).any():
        samples = samples.take(np.flatnonzero(weights != 0))
        weights = samples.weights
    if weights is not None and (weights == 1).all():
        samples = Samples(samples.X, samples.y, None)
    return samples


def merge_repeated(samples: Samples) -> Samples:
    """Equal samples become one, in the order of bytes."""
    targets = samples.y.reshape(len(samples), -1).astype(np.float64)
    columns = [np.ascontiguousarray(a).view(np.uint8).reshape(len(samples), -1) for a in (samples.X + 0, targets + 0)]
    first, which = distinct_rows(np.hstack(columns))
    if samples.weights is None and len(first) == len(samples):
        return samples.take(first)
    sums = np.bincount(which, weights=samples.weights, minlength=len(first))
    return drop_weightless(Samples(samples.X[first], samples.y[first], sums))


def split(samples: Samples, held: float | int, random: np.random.RandomState, by_class: bool) -> tuple[Array, Array]:
    """Rows to train on and rows to hold back; a share of each class, and at least one row on each side.

    Rows with the same features stay on the same side.
    """
    count = len(samples)
    wanted = held if isinstance(held, int) else int(np.ceil(held * count))
    wanted = min(max(1, wanted), count - 1)
    first, which = distinct_rows(samples.X) if count <= 100_000 else (np.arange(count), np.arange(count))
    order = random.permutation(len(first))
    if by_class:  # the classes one after the other, each in random order, and every k-th of that
        order = order[np.argsort(samples.y[first][order], kind="stable")]
        stride = count / wanted
        picked = order[np.minimum(np.floor((np.arange(wanted) + 0.5) * len(first) / count * stride), len(first) - 1).astype(int)]
    else:
        picked = order[: max(1, round(wanted * len(first) / count))]
    aside = np.zeros(len(first), bool)
    aside[picked] = True
    chosen = aside[which]
    if chosen.all():
        chosen = which == 0
    return np.flatnonzero(~chosen), np.flatnonzero(chosen)


def folds(samples: Samples, count: int, random: np.random.RandomState) -> Array:
    """A fold number for each sample: classes spread evenly, equal features in the same fold."""
    first, which = distinct_rows(samples.X)
    order = random.permutation(len(first))
    order = order[np.argsort(samples.y[first][order], kind="stable")]
    number = np.empty(len(first), np.int64)
    number[order] = np.arange(len(first)) % count
    return number[which]
