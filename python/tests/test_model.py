# SPDX-License-Identifier: BSD-3-Clause
"""Models: parts, predictions, files, pickles, lifetimes, threads."""

import copy
import gc
import pickle
import threading

import numpy as np
import pytest

import mercer
from mercer import Kernel, Model
from mercer import _library as L


@pytest.fixture
def model(rng):
    model = Model("laplace:bandwidth=2", rng.normal(size=(50, 4)), outputs=3)
    model.weights[...] = rng.normal(size=(50, 3))
    return model


def test_prediction_is_the_product(model, rng):
    X = rng.normal(size=(20, 4))
    wanted = model.kernel(X, model.centers) @ model.weights
    np.testing.assert_allclose(model.predict(X), wanted, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(model.classify(X), wanted.argmax(1))


def test_predictions_of_rows_are_independent(model, rng):
    X = rng.normal(size=(700, 4))
    whole = model.predict(X)
    np.testing.assert_array_equal(whole[123:124], model.predict(X[123:124]))
    np.testing.assert_array_equal(whole[::3], model.predict(X[::3]))


def test_conversion_by_blocks(rng, monkeypatch):
    monkeypatch.setattr("mercer._model.CONVERT_ROWS", 7)
    model = Model("gaussian:bandwidth=1", rng.normal(size=(9, 2)).astype("f"))
    model.weights[...] = 1
    X = rng.integers(-3, 3, (40, 2))
    assert model.predict(X).dtype == np.float32
    np.testing.assert_array_equal(model.predict(X), model.predict(X.astype("f")))
    np.testing.assert_array_equal(model.predict(X.astype(float)), model.predict(X.astype("f")))
    np.testing.assert_array_equal(model.classify(X), np.zeros(40))


def test_parts(model):
    assert model.centers.shape == (50, 4) and model.weights.shape == (50, 3)
    with pytest.raises(ValueError):
        model.centers[0, 0] = 1.0
    assert model.labels is None and model.note == "" and model.preprocess is None
    model.labels = ["a", "b", "\u00e9"]
    model.note = "a note"
    assert model.labels == ["a", "b", "\u00e9"] and model.note == "a note"
    assert "50 centers" in repr(model)
    model.labels = None
    assert model.labels is None
    with pytest.raises(ValueError):
        model.labels = ["too", "few"]


def test_views_outlive_the_name(rng):
    model = Model("linear", rng.normal(size=(2000, 50)))
    model.weights[...] = 7
    weights, centers = model.weights, model.centers
    del model
    gc.collect()
    junk = [np.zeros(100_000) for _ in range(20)]
    assert (weights == 7).all() and np.isfinite(centers).all() and len(junk) == 20


def test_file_and_pickle(model, tmp_path, rng):
    X = rng.normal(size=(10, 4))
    model.labels = ["a", "b", "c"]
    path = tmp_path / "m.safetensors"
    model.save(path)
    for again in (
        Model.load(path),
        Model.from_bytes(model.to_bytes()),
        pickle.loads(pickle.dumps(model)),
        copy.deepcopy(model),
    ):
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        assert again.labels == model.labels and again.kernel == model.kernel
    assert "centers" in mercer.file_header(path)
    model.save(path, centers="float16", weights="float32")
    assert Model.load(path).centers.dtype == np.float16
    with pytest.raises(ValueError, match="centers"):
        model.save(path, centers="int7")


def test_export(model, tmp_path):
    model.export(tmp_path / "m.c", name="price")
    assert "int price_predict(const" in (tmp_path / "m.c").read_text()
    model.export(tmp_path / "m.bin", format="onnx")
    assert b"Mercer" in (tmp_path / "m.bin").read_bytes()[:32]
    with pytest.raises(ValueError, match="c99, onnx"):
        model.export(tmp_path / "m.c", format="f77")
    ones = Model(Kernel.from_function(lambda r: np.exp(-r)), np.eye(3))
    for name, format in (("one.c", "c99"), ("one.onnx", "onnx")):
        with pytest.raises(Exception, match=f"{format} .*callback"):
            ones.export(tmp_path / name)
        assert not (tmp_path / name).exists()


def test_bad_files(tmp_path, model):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        Model.load(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError):
        mercer.file_header(tmp_path / "nowhere")
    with pytest.raises(OSError):
        model.save(tmp_path / "no" / "such" / "folder")
    good = model.to_bytes()
    for bad in (b"", b"{}", good[:100], good[:-1], good + b"\0", good[:-9] + bytes([good[-9] ^ 1]) + good[-8:]):
        with pytest.raises(ValueError):
            Model.from_bytes(bad)
    with pytest.raises(TypeError):
        Model.load(3)
    with pytest.raises((OSError, ValueError)):
        Model.load(tmp_path)


def test_kernel_of_a_python_function_lives_as_long_as_the_model(rng):
    Z = rng.normal(size=(5, 2))
    model = Model(Kernel.from_function(lambda r: np.exp(-r)), Z)
    gc.collect()
    model.weights[...] = 1
    np.testing.assert_allclose(model.predict(Z)[:, 0], Kernel("laplace", bandwidth=1.0)(Z).sum(1))
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(model)


@pytest.mark.parametrize(
    "arguments, error",
    [
        (("laplace:bandwidth=1", np.ones((3, 2)), 0), ValueError),
        (("laplace:bandwidth=1", np.ones((3, 2)), -1), ValueError),
        (("laplace:bandwidth=1", np.full((3, 2), np.nan)), ValueError),
        (("laplace:bandwidth=1", np.ones(3)), ValueError),
        (("laplace", np.ones((3, 2))), ValueError),
        (("laplace:bandwidth=1", None), (TypeError, ValueError)),
    ],
)
def test_bad_models(arguments, error):
    with pytest.raises(error):
        Model(*arguments)


@pytest.mark.parametrize(
    "X", [np.ones((3, 5)), np.ones(4), np.full((2, 4), np.inf), [["a"] * 4], np.ones((1, 4), complex)]
)
def test_bad_samples(model, X):
    with pytest.raises((ValueError, TypeError)):
        model.predict(X)
    with pytest.raises((ValueError, TypeError)):
        model.classify(X)


def test_many_threads_may_use_one_model(model, rng):
    X = rng.normal(size=(300, 4))
    wanted, wrong = model.predict(X), []

    def work():
        for _ in range(20):
            if not np.array_equal(model.predict(X), wanted):
                wrong.append(1)
            mercer.kernel_matrix(X[:10], X[:10], "laplace:bandwidth=1")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_devices():
    """The default is the CPU; auto is a GPU if one is present, as in C and in the program."""
    there = L.lib.mercer_device_count(b"cuda") > 0
    assert mercer.Context().info()["backend"] == mercer.Context(device="cpu").info()["backend"] == "cpu"
    assert mercer.Context(device="auto").info()["backend"] == ("cuda" if there else "cpu")
    if not there:
        with pytest.raises(ValueError, match="device"):
            mercer.Context(device="cuda")
    model = pickle.loads(pickle.dumps(Model("linear", np.eye(2), device="auto", arithmetic="fast")))
    assert model.context.made_with == (None, "auto", "fast")


def test_failed_allocation():
    with pytest.raises(MemoryError):
        Model("linear", np.ones((1000, 1)), outputs=2**45)


def test_a_pickle_keeps_the_number_of_threads(rng):
    model = pickle.loads(pickle.dumps(Model("linear", rng.normal(size=(4, 2)), n_jobs=3)))
    assert model.context.info()["threads"] == 3


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "u1"])
def test_safetensors_package_reads_model_files(dtype, rng, tmp_path):
    numpy_files = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed")
    model = Model("laplace:bandwidth=2", rng.integers(0, 256, size=(30, 5)).astype(dtype), outputs=2)
    model.weights[...] = rng.normal(size=(30, 2))
    path = tmp_path / "model.safetensors"
    model.save(path)
    found = numpy_files.load_file(path)
    np.testing.assert_array_equal(found["centers"], model.centers)
    assert found["centers"].dtype == np.dtype(dtype)
    np.testing.assert_array_equal(found["weights"], model.weights)
