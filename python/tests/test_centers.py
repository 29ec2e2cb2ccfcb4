# SPDX-License-Identifier: BSD-3-Clause
"""Choice of centers: random rows, k-means, class-balanced rows, callbacks and argument checks."""

import numpy as np
import pytest

import mercer
from mercer import centers


def rows_of(Z, X):
    return all((X == z).all(axis=1).any() for z in Z)


@pytest.mark.parametrize("method", ["random", "rpcholesky"])
def test_rows_without_repetition(method, rng):
    X = rng.normal(size=(100, 3))
    Z = centers.choose(X, 20, method, kernel="laplace:bandwidth=1", random_state=3)
    assert rows_of(Z, X) and len(np.unique(Z, axis=0)) == 20
    np.testing.assert_array_equal(Z, centers.choose(X, 20, method, kernel="laplace:bandwidth=1", random_state=3))
    assert (Z != centers.choose(X, 20, method, kernel="laplace:bandwidth=1", random_state=4)).any()


def test_kmeans_finds_clusters(rng):
    X = np.concatenate([rng.normal(size=(200, 2)) * 0.1 + c for c in ([0, 0], [9, 0], [0, 9])])
    Z = centers.kmeans(X, 3, random_state=0, batch=-1)
    index, squares = centers.nearest(X, Z)
    assert squares.mean() < 0.05 and sorted(np.bincount(index)) == [200, 200, 200]


def test_balanced(rng):
    y = np.array(["rare"] * 10 + ["common"] * 190)
    X = np.arange(200.0).reshape(-1, 1)
    assert (centers.balanced(X, y, 20, random_state=0) < 10).sum() == 10


def test_callback_stops_and_fails(rng):
    X = rng.normal(size=(3000, 5))
    seen = []
    centers.kmeans(X, 50, random_state=0, callback=lambda *progress: seen.append(progress) or len(seen) >= 2)
    stopped = len(seen)
    centers.kmeans(X, 50, random_state=0, callback=lambda *progress: seen.append(progress))
    assert 2 <= stopped <= 3 < len(seen) - stopped
    with pytest.raises(ZeroDivisionError):
        centers.kmeans(X, 50, random_state=0, callback=lambda *progress: 1 / 0)


def test_nearest_prefers_the_first_of_equal_rows():
    index, squares = centers.nearest([[0.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]])
    assert index.tolist() == [0] and squares.tolist() == [1.0]


@pytest.mark.parametrize(
    "change, error",
    [
        ({"n_centers": 0}, ValueError),
        ({"n_centers": 11}, ValueError),
        ({"n_centers": 2.0}, TypeError),
        ({"n_centers": True}, TypeError),
        ({"method": "guess"}, ValueError),
        ({"method": "rpcholesky"}, ValueError),
        ({"method": "balanced"}, ValueError),
        ({"method": "balanced", "labels": [0, 1]}, ValueError),
        ({"method": "balanced", "labels": [-1] * 10}, ValueError),
        ({"random_state": "seed"}, TypeError),
        ({"random_state": -1}, ValueError),
        ({"memory": "much"}, ValueError),
    ],
)
def test_bad_arguments(change, error):
    with pytest.raises(error):
        centers.choose(**{"X": np.arange(20.0).reshape(10, 2), "n_centers": 3, **change})


def test_means_are_for_euclidean_distances(rng):
    X = rng.normal(size=(50, 3))
    with pytest.raises(ValueError, match="kmeans .*L2"):
        centers.kmeans(X, 5, kernel="laplace-l1:bandwidth=1")
    with pytest.raises(ValueError, match="kmeans .*L2"):
        mercer.KernelRegressor("laplace-l1", centers=5, advanced={"center_method": "kmeans"}).fit(X, X[:, 0])
