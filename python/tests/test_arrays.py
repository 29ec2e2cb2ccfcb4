# SPDX-License-Identifier: BSD-3-Clause
"""Conversion of input arrays: which ones are viewed, copied and rejected."""

import numpy as np
import pytest

import mercer
from mercer import _arrays as A


class Tensor:
    """An array that only supports DLPack."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Interface:
    """An array that only has ``__array_interface__``."""

    def __init__(self, array):
        self.array = array
        self.__array_interface__ = array.__array_interface__


def shares(a, b):
    return np.shares_memory(a, b)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.uint8])
def test_types_of_the_library_are_viewed(dtype):
    X = np.ones((5, 4), dtype)
    x = A.points(X, "X")
    assert x.dtype == dtype and shares(x, X)
    matrix = A.view(x)
    assert (matrix.data, matrix.rows, matrix.cols, matrix.ld) == (X.ctypes.data, 5, 4, 4)


def test_parts_of_rows_are_viewed():
    X = np.arange(60.0).reshape(6, 10)
    for part, ld in ((X[:, 2:5], 10), (X[::2], 20), (X[1:2], 10), (X[:, :1], 10)):
        x = A.points(part, "X")
        assert shares(x, X) and A.view(x).data == part.ctypes.data
        assert part.shape[0] == 1 or A.view(x).ld == ld


@pytest.mark.parametrize(
    "make",
    [
        lambda X: np.asfortranarray(X),
        lambda X: X[::-1],
        lambda X: X[:, ::-1],
        lambda X: X[:, ::2],
        lambda X: X.astype(">f8"),
        lambda X: np.broadcast_to(X[:1], X.shape),
        lambda X: X.astype(np.int64),
        lambda X: X.astype(bool),
        lambda X: X.astype(object),
        lambda X: X.astype(np.longdouble),
        lambda X: np.frombuffer(b"\0" + X.tobytes(), np.uint8)[1:].view(np.float64).reshape(X.shape),
    ],
)
def test_other_layouts_are_copied_once(make):
    X = make(np.arange(1.0, 13.0).reshape(4, 3))
    x = A.points(X, "X")
    assert x.flags.aligned and x.dtype.isnative and A.rows_contiguous(x) is x
    np.testing.assert_array_equal(x, np.asarray(X, dtype=x.dtype))
    plain = x.astype(float)
    np.testing.assert_array_equal(mercer.kernel_matrix(X, X, "linear"), plain @ plain.T)


def test_read_only_and_memory_mapped(tmp_path, rng):
    X = rng.normal(size=(50, 3))
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert shares(A.points(mapped, "X"), mapped)
    np.testing.assert_array_equal(
        mercer.kernel_matrix(mapped, mapped, "laplace:bandwidth=1"), mercer.kernel_matrix(X, X, "laplace:bandwidth=1")
    )


@pytest.mark.parametrize("wrap", [Tensor, Interface])
def test_producers_are_not_copied(wrap, rng):
    X = rng.normal(size=(8, 3)).astype(np.float32)
    assert shares(A.points(wrap(X), "X"), X)
    np.testing.assert_array_equal(
        mercer.kernel_matmul(wrap(X), X, np.ones(8), "laplace:bandwidth=1"),
        mercer.kernel_matmul(X, X, np.ones(8), "laplace:bandwidth=1"),
    )


def test_bytes_stay_bytes(rng):
    X = rng.integers(0, 256, (30, 5)).astype(np.uint8)
    model = mercer.Model("laplace:bandwidth=100", X)
    assert model.centers.dtype == np.uint8 and model.weights.dtype == np.float32
    assert mercer.centers.random(X, 3, random_state=0).dtype == np.uint8


def test_out(rng):
    X, wide = rng.normal(size=(5, 2)), np.zeros((5, 9))
    result = mercer.kernel_matrix(X, X, "linear", out=wide[:, 2:7])
    assert shares(result, wide) and not wide[:, :2].any() and not wide[:, 7:].any()
    np.testing.assert_allclose(wide[:, 2:7], X @ X.T, rtol=1e-12)
    for bad in (np.zeros((5, 4)), np.zeros((5, 5), order="F"), np.zeros(25), [[0.0]]):
        with pytest.raises(ValueError):
            mercer.kernel_matrix(X, X, "linear", out=bad)
    with pytest.raises(TypeError):
        mercer.kernel_matrix(X, X, "linear", out=np.zeros((5, 5), np.int64))
    frozen = np.zeros((5, 5))
    frozen.flags.writeable = False
    with pytest.raises(ValueError):
        mercer.kernel_matrix(X, X, "linear", out=frozen)
    with pytest.raises(ValueError, match="overlap"):
        mercer.kernel_matrix(X, X[:2], "linear", out=X)


@pytest.mark.parametrize(
    "X, error",
    [
        (np.ones(3), ValueError),
        (np.ones((2, 2, 2)), ValueError),
        (np.array(1.0), ValueError),
        (np.ones((2, 2), complex), ValueError),
        (np.array([["a", "b"]]), TypeError),
        (np.array([["2020-01-01"]], "datetime64[D]"), TypeError),
        ([[1.0], [1.0, 2.0]], ValueError),
        ([[None, 1.0]], (TypeError, ValueError)),
        ([[{}]], (TypeError, ValueError)),
        ("text", (TypeError, ValueError)),
        (None, (TypeError, ValueError)),
        (np.array([[np.nan]]), ValueError),
        (np.array([[np.inf]]), ValueError),
        (np.ones((2, 3)), ValueError),
    ],
)
def test_values_other_than_matrices_are_rejected(X, error):
    with pytest.raises(error):
        mercer.kernel_matrix(X, np.ones((2, 1)), "laplace:bandwidth=1")


def test_empty_arrays():
    assert mercer.kernel_matrix(np.ones((0, 3)), np.ones((2, 3)), "linear").shape == (0, 2)
    assert mercer.kernel_matmul(np.ones((4, 3)), np.ones((0, 3)), np.ones((0, 2)), "linear").tolist() == [[0, 0]] * 4


def test_sparse_matrix_error_names_the_argument():
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(TypeError, match="X is sparse"):
        mercer.kernel_matrix(sparse.csr_matrix(np.eye(2)), np.eye(2), "linear")


def test_masked_arrays_with_hidden_values_are_rejected():
    X = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    model = mercer.Model("gaussian:bandwidth=1", X[:5])
    model.weights[:] = 1
    plain, masked = model.predict(X), np.ma.masked_array(X.copy(), mask=False)
    assert np.array_equal(model.predict(masked), plain)
    masked[3, 1] = np.ma.masked
    masked.data[3, 1] = 1e6  # A masked value must not have an effect.
    with pytest.raises(ValueError, match="X .*masked array .*1 hidden"):
        model.predict(masked)
    with pytest.raises(ValueError, match="masked array"):
        mercer.kernel_matrix(masked, X, "gaussian:bandwidth=1")
    regressor = mercer.KernelRegressor(kernel="gaussian:bandwidth=1")
    with pytest.raises(ValueError, match="masked array"):
        regressor.fit(masked, X[:, 0])
    with pytest.raises(ValueError, match="masked array"):
        regressor.fit(X, np.ma.masked_array(X[:, 0], mask=X[:, 0] > 0))
    regressor.fit(X, X[:, 0])
    with pytest.raises(ValueError, match="masked array"):
        regressor.predict(masked)
