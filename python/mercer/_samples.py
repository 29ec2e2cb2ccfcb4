# SPDX-License-Identifier: BSD-3-Clause
"""Samples as the estimators train on them: without repetitions, in an order of their own, and split.

A sample of weight 2 and two equal samples must give the same model. So equal samples (same features, same target)
become one with the sum of their weights, samples of weight 0 are left out, and the rest is brought into the order of
its bytes. What follows (centers, bandwidth, folds, the solver's sums) is then a function of the weighted set of
samples, not of how it was written down.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ._arrays import Array


GROUPED = 10_000  # rows up to which equal ones are found


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

    def without(self, rows: Array) -> Samples:
        """The same samples, of which some count nothing."""
        weights = np.ones(len(self)) if self.weights is None else self.weights.copy()
        weights[rows] = 0
        return Samples(self.X, self.y, weights)


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
    """Rows to train on and rows to hold back: a share of them or a number, of each class alike, at least one.

    Of a small set, rows with the same features stay together. No class loses its last row.
    """
    count = len(samples)
    first, which = distinct_rows(samples.X) if count <= GROUPED else (np.arange(count), np.arange(count))
    share = held / count if isinstance(held, int) else held
    wanted = min(max(1, round(share * len(first))), max(1, len(first) // 2))
    order = random.permutation(len(first))
    if by_class:  # one class after the other, and rows of that order at even distances
        order = order[np.argsort(samples.y[first][order], kind="stable")]
    aside = np.zeros(len(first), bool)
    aside[order[((np.arange(wanted) + 0.5) * len(first) / wanted).astype(np.int64)]] = True
    chosen = aside[which]
    if by_class:
        lost = np.setdiff1d(samples.y, samples.y[~chosen])
        chosen &= ~np.isin(samples.y, lost)
    return np.flatnonzero(~chosen), np.flatnonzero(chosen)


def folds(samples: Samples, count: int, random: np.random.RandomState) -> Array:
    """A fold number for each sample: classes spread evenly, equal features in the same fold."""
    first, which = distinct_rows(samples.X)
    order = random.permutation(len(first))
    order = order[np.argsort(samples.y[first][order], kind="stable")]
    number = np.empty(len(first), np.int64)
    number[order] = np.arange(len(first)) % count
    return number[which]


def weighted_rows(samples: Samples, count: int, random: np.random.RandomState) -> Array:
    """Rows of X drawn without repetition, heavier ones likelier, as repeated ones would be.

    Each waits for an exponential time with its weight as rate; the first to arrive are taken.
    """
    waits = random.standard_exponential(len(samples))
    if samples.weights is not None:
        with np.errstate(divide="ignore"):  # weight 0: never
            waits /= samples.weights
    order = np.argsort(waits, kind="stable")
    if len(samples) <= GROUPED:
        order = order[np.sort(np.unique(bytes_of_rows(samples.X[order]), return_index=True)[1])]
    return samples.X[order[:count]]
