# SPDX-License-Identifier: BSD-3-Clause
"""From scores to probabilities.

    P(class j | x) = exp(f_j(x) / T) / sum_k exp(f_k(x) / T)

T minimises the weighted log loss on scores of samples that the model has not seen. The loss is a smooth function of
one number, convex in 1/T; a golden-section search over log T finds it. One parameter cannot change which class is the
likeliest, and some hundred samples determine it.
"""

from __future__ import annotations

import math

import numpy as np

from ._arrays import Array

LOWEST, HIGHEST = 1e-2, 1e1
WITHOUT_DATA = 0.25  # a score of 1 against 0 becomes 0.98 in two classes: sure, not certain
FEWEST = 8  # scores


def softmax(scores: Array, temperature: float) -> Array:
    """Probabilities (n, c), in double.

    >>> softmax(np.array([[0.0, 0.0]]), 1.0)
    array([[0.5, 0.5]])
    """
    shifted = scores.astype(np.float64) / temperature
    shifted -= shifted.max(axis=1, keepdims=True)
    np.exp(shifted, out=shifted)
    shifted /= shifted.sum(axis=1, keepdims=True)
    return shifted


def log_loss(scores: Array, labels: Array, weights: Array | None, temperature: float) -> float:
    """Mean negative log probability of the right class."""
    shifted = scores.astype(np.float64) / temperature
    shifted -= shifted.max(axis=1, keepdims=True)
    losses = np.log(np.exp(shifted).sum(axis=1)) - shifted[np.arange(len(labels)), labels]
    return float(np.average(losses, weights=weights))


def fit_temperature(scores: Array, labels: Array, weights: Array | None = None) -> float:
    """T for scores (n, c) of samples of classes ``labels`` (n).

    >>> sure = np.repeat(np.eye(2), 50, axis=0); right = np.repeat([0, 1], 50)
    >>> fit_temperature(sure, right) < fit_temperature(sure, np.roll(right, 10))
    True
    """
    if len(labels) < FEWEST or scores.shape[1] < 2:
        return WITHOUT_DATA
    low, high, ratio = math.log(LOWEST), math.log(HIGHEST), (math.sqrt(5) - 1) / 2

    def loss(logarithm: float) -> float:
        return log_loss(scores, labels, weights, math.exp(logarithm))

    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = loss(left), loss(right)
    while high - low > 1e-4:
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = loss(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = loss(right)
    return math.exp((low + high) / 2)
