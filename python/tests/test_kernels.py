# SPDX-License-Identifier: BSD-3-Clause
"""Kernel functions and products, compared with NumPy."""

import copy
import pickle

import numpy as np
import pytest

import mercer
from mercer import Kernel

B = 1.7
FORMULAS = {
    "laplace": lambda r: np.exp(-r / B),
    "gaussian": lambda r: np.exp(-(r**2) / (2 * B**2)),
    "matern32": lambda r: (1 + 3**0.5 * r / B) * np.exp(-(3**0.5) * r / B),
    "matern52": lambda r: (1 + 5**0.5 * r / B + 5 / 3 * (r / B) ** 2) * np.exp(-(5**0.5) * r / B),
    "exppower:gamma=0.7": lambda r: np.exp(-((r / B) ** 0.7)),
    "cauchy": lambda r: 1 / (1 + r**2 / B**2),
    "rational-quadratic:alpha=2": lambda r: (1 + r**2 / (4 * B**2)) ** -2.0,
}


def distances(X, Z):
    return np.sqrt(((X[:, None, :] - Z[None, :, :]) ** 2).sum(-1))


@pytest.mark.parametrize("name", FORMULAS)
def test_values(name, rng):
    X, Z = rng.normal(size=(7, 4)), rng.normal(size=(9, 4))
    K = Kernel(name, bandwidth=B)(X, Z)
    np.testing.assert_allclose(K, FORMULAS[name](distances(X, Z)), rtol=1e-9)


@pytest.mark.parametrize("name, p, q", [
    ("laplace-l1", 1, 1), ("exppower-l1:gamma=0.7", 1, 0.7), ("lpq:p=1.5,q=0.8", 1.5, 0.8), ("lpq:p=2,q=1", 2, 1),
])
def test_other_norms(name, p, q, rng):
    X, Z = rng.normal(size=(7, 4)), rng.normal(size=(9, 4))
    r = (np.abs(X[:, None, :] - Z[None, :, :]) ** p).sum(-1) ** (1 / p)
    kernel = Kernel(name, bandwidth=B)
    np.testing.assert_allclose(kernel(X, Z), np.exp(-((r / B) ** q)), rtol=1e-9)
    index, distance = mercer.centers.nearest(X, Z, kernel=kernel)
    np.testing.assert_array_equal(index, r.argmin(1))
    np.testing.assert_allclose(distance, r.min(1), rtol=1e-9)
    among = (np.abs(X[:, None, :] - X[None, :, :]) ** p).sum(-1) ** (1 / p)
    median = np.median(among[np.triu_indices(7, 1)])
    np.testing.assert_allclose(mercer.median_distance(X, kernel=kernel), median, rtol=1e-9)


def test_powers_out_of_range():
    with pytest.raises(ValueError, match="q is 1.5; .*> 0 .*<= p = 1"):
        Kernel("lpq", p=1, q=1.5, bandwidth=1)
    with pytest.raises(ValueError, match="gamma=1.2 "):
        Kernel("exppower-l1", gamma=1.2, bandwidth=1)


def test_inner_products(rng):
    X, Z = rng.normal(size=(7, 4)), rng.normal(size=(9, 4))
    np.testing.assert_allclose(Kernel("linear")(X, Z), X @ Z.T, atol=1e-12)
    K = Kernel("polynomial", degree=2, scale=0.5, offset=1.5)(X, Z)
    np.testing.assert_allclose(K, (0.5 * X @ Z.T + 1.5) ** 2, rtol=1e-9)
    np.testing.assert_allclose(Kernel("polynomial").diagonal(X), (1 + (X**2).sum(1)) ** 3, rtol=1e-9)


def test_product_is_the_product_of_the_matrix(rng):
    X, Z, W = rng.normal(size=(40, 6)), rng.normal(size=(300, 6)), rng.normal(size=(300, 3))
    K = mercer.kernel_matrix(X, Z, "laplace:bandwidth=3")
    np.testing.assert_allclose(mercer.kernel_matmul(X, Z, W, "laplace:bandwidth=3"), K @ W, atol=1e-11)
    np.testing.assert_allclose(mercer.kernel_matmul(X, Z, W[:, 0], "laplace:bandwidth=3"), K @ W[:, 0], atol=1e-11)


def test_precision(rng):
    X, W = rng.normal(size=(20, 3)), rng.normal(size=20)
    kernel = Kernel("gaussian", bandwidth=1.0)
    assert mercer.kernel_matrix(X, X, kernel).dtype == np.float64
    single = mercer.kernel_matrix(X, X, kernel, precision="float32")
    assert single.dtype == np.float32
    np.testing.assert_array_equal(single, mercer.kernel_matrix(X.astype("f"), X.astype("f"), kernel))
    assert mercer.kernel_matrix(X.astype("f"), X.astype("f"), kernel, precision="float64").dtype == np.float64
    assert mercer.kernel_matmul(X.astype(np.float16), X.astype("f"), W.astype("f"), kernel).dtype == np.float32
    with pytest.raises(ValueError, match="precision"):
        mercer.kernel_matrix(X, X, kernel, precision="half")


def test_threads_have_no_effect(rng):
    X = rng.normal(size=(700, 5)).astype(np.float32)
    one, two = (mercer.kernel_matrix(X, X, "laplace:bandwidth=2", n_jobs=n) for n in (1, 3))
    np.testing.assert_array_equal(one, two)


def test_devices(rng):
    X = rng.normal(size=(20, 3))
    plain = mercer.kernel_matrix(X, X, "laplace:bandwidth=1", device="reference")
    np.testing.assert_allclose(mercer.kernel_matrix(X, X, "laplace:bandwidth=1", device="cpu"), plain, rtol=1e-9)
    with pytest.raises(ValueError, match="abacus"):
        mercer.kernel_matrix(X, X, "linear", device="abacus")


def test_kernel_of_a_python_function(rng):
    X, Z = rng.normal(size=(7, 4)), rng.normal(size=(300, 4))
    own = Kernel.from_function(lambda r: np.exp(-r / B))
    np.testing.assert_allclose(own(X, Z), Kernel("laplace", bandwidth=B)(X, Z), rtol=1e-12)
    inner = Kernel.from_function(lambda xz, xx, zz: np.exp(-(xx + zz - 2 * xz) / (2 * B**2)), on="inner")
    np.testing.assert_allclose(inner(X, Z), Kernel("gaussian", bandwidth=B)(X, Z), rtol=1e-9)
    assert "from_function" in repr(own) and copy.deepcopy(own) is own
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(own)


def test_exceptions_of_kernel_functions_are_raised(rng):
    def fails(r):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        Kernel.from_function(fails)(rng.normal(size=(3, 2)))
    with pytest.raises(ValueError):
        Kernel.from_function(lambda r: np.ones((99, 99)))(rng.normal(size=(3, 2)))


def test_text(rng):
    kernel = Kernel("exppower", bandwidth=0.1, gamma=1.5)
    assert str(kernel) == "exppower:bandwidth=0.1,gamma=1.5" and Kernel(str(kernel)) == kernel
    assert pickle.loads(pickle.dumps(kernel)) == kernel and len({kernel, Kernel(str(kernel))}) == 1
    assert kernel != Kernel("exppower", bandwidth=0.2, gamma=1.5) and kernel != "exppower"


@pytest.mark.parametrize(
    "spec, error",
    [
        ("laplace", ValueError),
        ("laplac:bandwidth=1", ValueError),
        ("laplace:bandwidth=-1", ValueError),
        ("laplace:bandwidth=nan", ValueError),
        ("laplace:width=1", ValueError),
        ("", ValueError),
        ("a\0b", ValueError),
        (None, TypeError),
        (3, TypeError),
        (b"linear", TypeError),
    ],
)
def test_bad_texts(spec, error):
    with pytest.raises(error):
        Kernel(spec)


def test_bad_parameters():
    with pytest.raises(TypeError, match="bandwidth"):
        Kernel("laplace", bandwidth="wide")
    with pytest.raises(ValueError):
        Kernel("laplace:bandwidth=1", bandwidth=2)
    with pytest.raises(ValueError):
        Kernel.from_function(abs, on="angle")
    with pytest.raises(TypeError):
        Kernel.from_function(3)
    with pytest.raises(TypeError):
        mercer.kernel_matrix([[1.0]], [[1.0]], "linear", n_jobs=1.5)
    with pytest.raises(ValueError):
        mercer.kernel_matrix([[1.0]], [[1.0]], "linear", n_jobs=0)


def test_median_distance(rng):
    X = rng.normal(size=(200, 3))
    D = distances(X, X)[np.triu_indices(200, 1)]
    np.testing.assert_allclose(mercer.median_distance(X), np.median(D), rtol=1e-9)
    with pytest.raises(ValueError, match="^X: "):
        mercer.median_distance(np.ones((5, 2)))
