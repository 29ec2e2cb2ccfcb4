# SPDX-License-Identifier: BSD-3-Clause
"""Arrays on a GPU: argument checks on any machine; on a machine with a GPU also arrays of PyTorch, CuPy and JAX."""

import ctypes as C
import importlib

import numpy as np
import pytest

import mercer
from mercer import _device as D
from mercer import _library as L

HERE = L.lib.mercer_device_count(b"cuda") > 0
there = pytest.mark.skipif(not HERE, reason="no GPU")
SEED = np.random.default_rng(5)
X, Z, W = (SEED.normal(size=shape).astype(np.float32) for shape in ((300, 40), (160, 40), (160, 3)))


class Interface:
    """An array that only has ``__cuda_array_interface__``."""

    def __init__(self, **changes):
        self.__dict__["described"] = {
            "data": (4096, False), "shape": (3, 2), "typestr": "<f4", "strides": None, "version": 3, "stream": None,
        } | changes

    @property
    def __cuda_array_interface__(self):
        return self.described


class FakeContext:
    """A context with a stream that records its calls."""

    handle, stream = None, 77

    def __init__(self):
        self.calls = []

    def call(self, *arguments):
        self.calls.append(arguments)


def test_matrix_from_interface():
    context = FakeContext()
    array = D.DeviceArray(Interface(stream=5), "X", context)
    view = array.view()
    assert (view.data, view.rows, view.cols, view.ld, view.dtype, view.memory) == (4096, 3, 2, 2, L.F32, L.CUDA)
    assert context.calls == [("mercer_context_wait", None, 5)]
    wide = D.DeviceArray(Interface(strides=(32, 4)), "X", FakeContext()).view()
    assert (wide.ld, wide.cols) == (8, 2)
    column = D.DeviceArray(Interface(shape=(4,), strides=(12,)), "W", FakeContext()).view()
    assert (column.rows, column.cols, column.ld) == (4, 1, 3)
    old = FakeContext()
    description = Interface()
    del description.described["stream"]  # Version 2 of the interface has no stream, which means the default stream.
    D.DeviceArray(description, "X", old)
    assert old.calls == [("mercer_context_wait", None, D.DEFAULT_STREAM)]


@pytest.mark.parametrize(
    "changes, error, text",
    [
        ({"typestr": "<i8"}, TypeError, "int64; "),
        ({"typestr": "<c8"}, TypeError, "complex64"),
        ({"strides": (4, 12)}, ValueError, "X: strides of (1, 3) elements"),
        ({"strides": (6, 4)}, ValueError, "strides of"),
        ({"strides": (0, 4)}, ValueError, "strides of (0, "),
        ({"shape": (2, 3, 4)}, ValueError, "X has 3 dimensions"),
        ({"stream": 0}, ValueError, "stream 0"),
        ({"mask": 1}, TypeError, "masked"),
    ],
)
def test_refused(changes, error, text):
    with pytest.raises(error) as raised:
        D.DeviceArray(Interface(**changes), "X", FakeContext())
    assert text in str(raised.value)


def test_gpu_arrays_are_rejected_on_the_cpu():
    model = mercer.Model("laplace:bandwidth=1", np.eye(2))
    for call in (
        lambda: model.predict(Interface()),
        lambda: mercer.kernel_matmul(Interface(), np.eye(2), np.ones(2), "laplace:bandwidth=1", device="cpu"),
        lambda: mercer.Trainer(model).step(Interface(), np.ones((3, 1))),
    ):
        with pytest.raises(ValueError, match="GPU"):
            call()


def test_out():
    model = mercer.Model("laplace:bandwidth=3", Z, outputs=3)
    model.weights[...] = W
    buffer = np.full((300, 6), 7.0)
    assert model.predict(X, out=buffer[:, :3]).base is buffer
    # The result in out is double, the returned result float. Bound: rounding in float of sums of 160 terms of at most |w| and
    # of distances over 40 features.
    bound = 2 * (160 + 40) * 2**-24 * np.abs(W).sum(axis=0).max()
    np.testing.assert_allclose(buffer[:, :3], model.predict(X), rtol=0, atol=bound)
    assert (buffer[:, 3:] == 7).all()
    with pytest.raises(ValueError, match=r"out .*\(300, 3\)"):
        model.predict(X, out=np.empty((3, 3)))
    with pytest.raises(TypeError, match="float32 or float64"):
        model.predict(X, out=np.empty((300, 3), np.int64))


# ---- On a GPU ----


def library(name):
    if not HERE:
        pytest.skip("no GPU")
    return pytest.importorskip(name)


def put(name, array):
    module = library(name)
    if name == "torch":
        return module.as_tensor(array, device="cuda")
    return module.asarray(array) if name == "cupy" else importlib.import_module("jax.numpy").asarray(array)


LIBRARIES = ["torch", "cupy", "jax"]


@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8"])
def test_products_on_gpu(name, dtype):
    x, z = (np.abs(a * 20).astype(dtype) for a in (X, Z))
    x_there, z_there, w_there = (put(name, a) for a in (x, z, W))
    host = mercer.kernel_matmul(x, z, W, "laplace:bandwidth=100", device="cuda")
    result = mercer.kernel_matmul(x_there, z_there, w_there, "laplace:bandwidth=100")
    assert type(result) is type(x_there) and D.device_of(result) == 0
    np.testing.assert_array_equal(D.to_host(result), host)
    flat = mercer.kernel_matmul(x_there, z, w_there[:, 1], "laplace:bandwidth=100")
    np.testing.assert_allclose(D.to_host(flat), host[:, 1], rtol=1e-5, atol=1e-5)
    K = mercer.kernel_matrix(x_there, z_there, "laplace:bandwidth=100")
    np.testing.assert_array_equal(D.to_host(K), mercer.kernel_matrix(x, z, "laplace:bandwidth=100", device="cuda"))


@pytest.mark.parametrize("name", LIBRARIES)
def test_model_on_gpu(name):
    x = put(name, X)
    model = mercer.Model("laplace:bandwidth=5", put(name, Z), outputs=3)
    assert model.context.info()["device"] == 0
    for _ in range(2):  # The second prediction must use the new weights.
        model.weights[...] += W
        F = model.predict(x)
        assert type(F) is type(x)
        np.testing.assert_array_equal(D.to_host(F), model.predict(X))
        np.testing.assert_array_equal(D.to_host(model.classify(x)), model.classify(X))
        P = D.to_host(model.probabilities(x))  # By default JAX has no double precision.
        np.testing.assert_array_equal(P, model.probabilities(X).astype(P.dtype))


@pytest.mark.parametrize("name", LIBRARIES)
def test_estimators_on_gpu(name):
    target = np.sin(X[:, :1]) + 5
    x, y = put(name, X), put(name, target)
    for solver in ("direct", "ep4"):
        options = {"solver": solver, "device": "cuda", "random_state": 0, "centers": 100, "ridge": 1e-3}
        model = mercer.KernelRegressor(**options).fit(x, y)
        host = mercer.KernelRegressor(**options).fit(X, target)
        np.testing.assert_array_equal(model.model_.weights, host.model_.weights)
        guess = D.to_host(model.predict(x))  # By default JAX has no double precision.
        np.testing.assert_array_equal(guess, host.predict(X).astype(guess.dtype))
    classes = (X[:, 0] > 0).astype(np.int32) + (X[:, 1] > 1)
    label = mercer.KernelClassifier(device="cuda", random_state=0).fit(x, put(name, classes))
    guess = label.predict(x)
    assert type(guess) is type(x)
    assert (D.to_host(guess) == classes).mean() > 0.9
    assert D.to_host(label.predict_proba(x)).shape == (300, 3)


@pytest.mark.parametrize("name", LIBRARIES)
def test_training_steps_on_gpu(name):
    x, y = put(name, X), put(name, np.sin(X[:, :1]).astype(np.float32))
    made = []
    for samples, targets in ((x, y), (X, np.sin(X[:, :1]).astype(np.float32))):
        model = mercer.Model("laplace:bandwidth=9", Z, device="cuda")
        trainer = mercer.Trainer(model, solver="ep4", batch_size=100)
        for i in range(3):
            trainer.step(samples[i * 100 : i * 100 + 100], targets[i * 100 : i * 100 + 100])
        trainer.finish()
        made.append(np.array(model.weights))
    np.testing.assert_array_equal(made[0], made[1])


@there
def test_streams():
    """A prediction waits for pending writes on the current stream before it reads its input."""
    torch = pytest.importorskip("torch")
    x, model = torch.as_tensor(X, device="cuda"), mercer.Model("laplace:bandwidth=5", Z, outputs=3, device="cuda")
    model.weights[...] = W
    expected = model.predict(X)
    big, side = torch.ones((8192, 8192), device="cuda"), torch.cuda.Stream()
    for _ in range(3):
        late = torch.zeros_like(x)
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            for _ in range(20):
                big = big @ big * 1e-4
            late.copy_(x)
            np.testing.assert_array_equal(model.predict(late).cpu().numpy(), expected)


@there
def test_rejected_arrays_on_gpu():
    torch = pytest.importorskip("torch")
    x = torch.as_tensor(X, device="cuda")
    model = mercer.Model("laplace:bandwidth=5", Z, device="cuda")
    for bad, error, text in (
        (x.to(torch.bfloat16), TypeError, "bfloat16"),
        (x.long(), TypeError, "int64"),
        (torch.as_tensor(X.T.copy(), device="cuda").T, ValueError, "strides of"),
        (x.clone().requires_grad_(), TypeError, "grad"),
        (x[:, :7].contiguous(), ValueError, "7 columns"),
        (torch.full_like(x, torch.nan), ValueError, "row 0, column 0 (from 0) is NaN"),
        (Interface(shape=(3, 40)), ValueError, "MERCER_CUDA"),
    ):
        with pytest.raises(error) as raised:
            model.predict(bad, out=torch.empty((3 if isinstance(bad, Interface) else bad.shape[0], 1), device="cuda"))
        assert text in str(raised.value), str(raised.value)
    with pytest.raises(TypeError, match="give out="):
        mercer.kernel_matmul(Interface(), np.eye(2), np.ones(2), "laplace:bandwidth=1")


@there
def test_array_interface_on_gpu():
    torch = pytest.importorskip("torch")
    x, out = torch.as_tensor(X, device="cuda"), torch.empty((300, 3), device="cuda")

    def wrap(tensor):
        return Interface(**(dict(tensor.__cuda_array_interface__) | {"stream": torch.cuda.current_stream().cuda_stream or 1}))

    model = mercer.Model("laplace:bandwidth=5", Z, outputs=3, device="cuda")
    model.weights[...] = W
    model.predict(wrap(x), out=wrap(out))
    np.testing.assert_array_equal(out.cpu().numpy(), model.predict(X))
    assert C.sizeof(L.mercer_matrix) == 56
