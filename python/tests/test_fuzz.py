# SPDX-License-Identifier: BSD-3-Clause
"""Random arguments give a correct result or a Python exception, but never crash the interpreter.

Results of accepted arguments are compared with NumPy.
"""

import warnings

import numpy as np
import pytest

pytest.importorskip("hypothesis")

from hypothesis import HealthCheck, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from hypothesis.extra import numpy as hnp  # noqa: E402

import mercer  # noqa: E402

REFUSED = (ValueError, TypeError, MemoryError, OverflowError, FloatingPointError, NotImplementedError)
few = settings(
    max_examples=80,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def mostly(likely, other):
    """Draw from `likely` with probability 0.9, otherwise from `other`."""
    return st.integers(0, 9).flatmap(lambda number: other if number == 9 else likely)


NUMBERS = st.sampled_from(["f8", "f4", "f2", "u1", "i1", "i4", "u8", ">f8", ">f4", ">f2", "?", "g", "O"])
DTYPES = mostly(NUMBERS, st.sampled_from(["c16", "S3", "U2", "M8[s]", "m8[s]", "V4"]))


@st.composite
def any_array(draw, dimensions=(0, 4), rows=None):
    """Draw an array of any type, shape and layout: strided, reversed, transposed, broadcast, read-only, misaligned.

    Most arrays have ``rows`` rows (0 .. 6 if None) and 3 columns, so that the shapes of several arrays often match.
    """
    count = st.integers(0, 6) if rows is None else st.just(rows)
    dtype = np.dtype(draw(DTYPES))
    likely = st.tuples(count, st.just(3)) if dimensions[1] > 1 else st.tuples(count)
    any_shape = hnp.array_shapes(min_dims=max(1, dimensions[0]), max_dims=dimensions[1], min_side=0, max_side=6)
    shape = draw(mostly(likely, any_shape))
    if dtype.kind in "fg":
        array = draw(hnp.arrays(np.float32, shape, elements=st.floats(-9, 9, width=16))).astype(dtype)
        if array.size and draw(st.integers(0, 9)) == 9:
            array.flat[draw(st.integers(0, array.size - 1))] = draw(st.sampled_from([np.nan, np.inf, -0.0, 6e4]))
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            numbers = draw(hnp.arrays(np.int64, shape, elements=st.integers(0, 99)))
            array = np.zeros(shape, dtype) if dtype.kind == "V" else numbers.astype(dtype)
    for way in draw(st.lists(st.sampled_from(["step", "back", "turn", "frozen", "shift", "spread"]), max_size=2)):
        if way == "step":
            array = np.repeat(array, 2, axis=-1)[..., ::2]
        elif way == "back":
            array = array[::-1]
        elif way == "turn":
            array = array.T
        elif way == "frozen":
            array = array.view()
            array.flags.writeable = False
        elif way == "shift" and array.dtype.kind not in "O":
            raw = np.frombuffer(b"\1" + array.tobytes(), np.uint8)[1:]
            array = raw.view(array.dtype).reshape(array.shape) if array.size else array
        elif way == "spread":
            array = np.broadcast_to(array[:1], array.shape) if array.shape[0] else array
    return array


scalar = st.one_of(
    st.none(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=5),
    st.booleans(),
    st.just([]),
    st.just(object()),
)


@few
@given(any_array(), any_array())
def test_kernel_matrix(X, Z):
    try:
        K = mercer.kernel_matrix(X, Z, "gaussian:bandwidth=3")
    except REFUSED:
        return
    x, z = np.asarray(X, float), np.asarray(Z, float)
    wanted = np.exp(-((x[:, None, :] - z[None, :, :]) ** 2).sum(-1) / 18)
    np.testing.assert_allclose(K, wanted, atol=1e-4)


@few
@given(any_array((2, 2)), any_array((2, 2)), any_array((1, 2)))
def test_kernel_matmul(X, Z, W):
    try:
        Y = mercer.kernel_matmul(X, Z, W, "gaussian:bandwidth=3")
    except REFUSED:
        return
    x, z, w = (np.asarray(a, float) for a in (X, Z, W))
    wanted = np.exp(-((x[:, None, :] - z[None, :, :]) ** 2).sum(-1) / 18) @ w
    np.testing.assert_allclose(Y, wanted, rtol=1e-3, atol=1e-3 * (1 + np.abs(w).sum()))


@few
@given(st.data())
def test_models(data):
    Z, X = data.draw(any_array((2, 2))), data.draw(any_array())
    try:
        model = mercer.Model("laplace:bandwidth=2", Z, data.draw(st.sampled_from([1, 1, 3, 0, -1])))
        F = model.predict(X)
    except REFUSED:
        return
    assert F.shape == (X.shape[0], model.weights.shape[1]) and not F.any()
    assert model.classify(X).shape == (X.shape[0],)


@few
@given(st.data(), st.sampled_from(["direct", "cg", "ep4", "auto"]))
def test_training(data, solver):
    X, Y = data.draw(any_array((2, 2), 5)), data.draw(any_array((1, 2), 5))
    weights = data.draw(st.one_of(st.none(), any_array((1, 1), 5)))
    Z = np.ones((2, X.shape[1])) * [[0.0], [1.0]]
    try:
        model = mercer.Model("laplace:bandwidth=2", Z, Y.shape[1] if Y.ndim == 2 else 1)
        trainer = mercer.Trainer(model, solver=solver, epochs=2)
        trainer.fit(X, Y, weights)
        if solver == "ep4":
            trainer.step(X, Y, weights)
            trainer.finish()
    except REFUSED:
        return
    assert np.isfinite(model.weights).all()


@few
@given(st.data(), st.sampled_from(["random", "kmeans", "rpcholesky", "balanced", ""]))
def test_centers(data, method):
    X, count = data.draw(any_array(rows=6)), data.draw(mostly(st.integers(1, 6), scalar))
    labels = data.draw(st.one_of(st.none(), any_array((1, 1), 6)))
    try:
        Z = mercer.centers.choose(X, count, method, kernel="laplace:bandwidth=1", labels=labels, random_state=0)
    except REFUSED:
        return
    assert Z.shape == (count, X.shape[1])


@few
@given(st.text(max_size=40))
def test_kernel_texts(text):
    try:
        kernel = mercer.Kernel(text)
    except REFUSED:
        return
    assert mercer.Kernel(str(kernel)) == kernel


@few
@given(st.binary(max_size=200), st.integers(0, 400), st.integers(0, 255))
def test_model_bytes(raw, place, value):
    good = bytearray(GOOD)
    good[place % len(good)] = value
    for data in (raw, bytes(good), GOOD[: place % len(GOOD)]):
        try:
            model = mercer.Model.from_bytes(data)
        except REFUSED:
            continue
        assert model.predict(np.zeros((1, 2))).shape == (1, 1)


GOOD = mercer.Model("laplace:bandwidth=2", np.eye(2)).to_bytes()
OPTIONS = [
    "solver", "projector", "epochs", "batch_size", "nystrom", "eigenpairs", "period", "ridge", "average", "memory",
    "step_factor", "random_state", "carry", "polish", "patience", "precision", "n_jobs", "device", "dtype",
]  # fmt: skip


@few
@given(st.data())
def test_plans(data):
    size = mostly(st.integers(1, 10**6), st.one_of(st.integers(1, 2**64), scalar))
    value = mostly(st.one_of(st.none(), st.integers(0, 9)), scalar)
    sizes = data.draw(st.lists(size, min_size=4, max_size=4))
    options = data.draw(st.dictionaries(st.sampled_from(OPTIONS), value, max_size=2))
    if isinstance(options.get("n_jobs"), int):
        options["n_jobs"] = min(options["n_jobs"], 4)
    try:
        mercer.plan(*sizes, **options)
    except REFUSED:
        return


@few
@given(any_array(rows=6), any_array((1, 2), 6), st.booleans())
def test_estimators(X, y, classify):
    pytest.importorskip("sklearn")
    model = mercer.KernelClassifier() if classify else mercer.KernelRegressor()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.fit(X, y)
        except REFUSED:
            return
        assert len(model.predict(X)) == len(X)


def test_huge_views_of_little_memory():
    """The size in bytes of these arrays overflows; all their elements share one address."""
    one = np.ones((1, 1))
    for shape in ((2**31, 2**31), (2**62, 1), (1, 2**62)):
        try:
            huge = np.lib.stride_tricks.as_strided(one, shape, (0, 0))
        except ValueError:  # NumPy rejects the shape.
            continue
        with pytest.raises((*REFUSED,)):
            mercer.kernel_matrix(huge, huge, "linear")
