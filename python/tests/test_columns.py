# SPDX-License-Identifier: BSD-3-Clause
"""Columns of tables are matched by name."""

import mercer
import numpy as np
import pytest
from mercer import Dataset, Model, Trainer
from mercer import _runtime as program


@pytest.fixture
def tables(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((40, 3)).round(6)
    y = x @ [1.0, 10.0, 100.0]
    (tmp_path / "t.csv").write_text("a,b,c,y\n" + "".join(f"{r[0]},{r[1]},{r[2]},{v}\n" for r, v in zip(x, y)))
    (tmp_path / "n.csv").write_text("c,name,b,a\n" + "".join(f"{r[2]},0,{r[1]},{r[0]}\n" for r in x))
    return tmp_path


@pytest.fixture
def model(tables):
    data = Dataset(tables / "t.csv", task="regression")
    model = Model("gaussian:bandwidth=2", data.read()[0][:20], outputs=1)
    Trainer(model, solver="direct").fit(data)
    return model


def test_names_are_kept(tables, model):
    assert model.feature_names == ["a", "b", "c"]
    model.target_names = ["y"]
    model.save(tables / "m")
    again = Model.load(tables / "m")
    assert (again.feature_names, again.target_names) == (["a", "b", "c"], ["y"])
    assert Model.from_bytes(again.to_bytes()).feature_names == ["a", "b", "c"]
    model.feature_names = None
    assert model.feature_names is None


def test_datasets_are_matched_by_name(tables, model):
    expected = model.predict(Dataset(tables / "t.csv", task="regression"))
    mixed = Dataset(tables / "n.csv", task="unlabeled")
    np.testing.assert_array_equal(model.predict(mixed), expected)
    np.testing.assert_array_equal(model.classify(mixed), np.zeros(40))
    ordered = Dataset(tables / "n.csv", task="unlabeled", columns=model.feature_names)
    np.testing.assert_array_equal(model.predict(ordered.read()[0]), expected)
    info = ordered.info()
    assert info["feature_names"] == ["a", "b", "c"]
    assert info["unused_names"] == ["name"]
    assert list(model.match(["c", "name", "b", "a"])) == [3, 2, 0]


def test_missing_columns(tables, model):
    (tables / "bad.csv").write_text("a,B,c\n1,2,3\n")
    with pytest.raises(ValueError, match="bad.csv: .*'b'.*'B'"):
        Dataset(tables / "bad.csv", task="unlabeled", columns=model.feature_names)
    with pytest.raises(ValueError, match="column 'b'"):
        model.predict(Dataset(tables / "bad.csv", task="unlabeled"))
    (tables / "r.csv").write_text("b,a,c,y\n1,2,3,4.5\n")
    with pytest.raises(ValueError, match="order"):
        Trainer(model, solver="direct").fit(Dataset(tables / "r.csv", task="regression"))


def test_several_targets(tables):
    data = Dataset(tables / "t.csv", target="c,a")
    assert data.info()["target_names"] == ["c", "a"]
    assert data.read()[1].shape == (40, 2)


@pytest.fixture
def far(tmp_path):
    """Write train.csv and test.csv. Without a schema, each file gets its own origin for the column 'far' when it is read."""
    rng = np.random.default_rng(2)
    x = np.column_stack([1e4 + rng.integers(0, 4000, 400) / 1000, rng.normal(size=400).round(3)])
    y = np.sin(2 * (x[:, 0] - 1e4)) + x[:, 1]
    for name, rows in ("train", slice(0, 200)), ("test", slice(200, 400)):
        lines = [f"{a:.3f},{b},{c!r},{'high' if c > 0.5 else 'low'}\n" for (a, b), c in zip(x[rows], y[rows].tolist())]
        (tmp_path / f"{name}.csv").write_text("far,near,y,class\n" + "".join(lines))
    return tmp_path, x, y


def read(path, target, **options):
    return Dataset(path, target=target, kinds={"y": "class:drop", "class": "y:drop"}[target], **options)


def test_a_dataset_is_read_as_the_model_was_trained(far):
    pytest.importorskip("sklearn")
    from mercer import KernelRegressor

    folder, x, y = far
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(x, columns=["far", "near"])
    fitted = KernelRegressor(random_state=0, tune="off", ridge=0.1).fit(frame[:200], y[:200])
    fitted.model_.save(folder / "model")
    model = Model.load(folder / "model")
    expected = fitted.score(frame[200:], y[200:])
    assert model.schema is None and expected > 0.9
    for data in read(folder / "test.csv", "y"), read(folder / "test.csv", "y", schema=model.schema):
        assert data.info()["schema"] is not None
        assert mercer.evaluate(model, data)["r2"] == pytest.approx(expected, abs=1e-3)
        assert mercer.permutation_importance(model, data)["score"] == pytest.approx(expected, abs=1e-3)
        np.testing.assert_allclose(model.predict(data), model.predict(frame[200:]), atol=1e-2)
        values, _ = mercer.partial_dependence(model, data, 0)
        assert values.min() >= 1e4


def test_a_dataset_is_read_by_the_schema_of_the_model(far):
    pytest.importorskip("sklearn")
    folder, x, y = far
    program.run(["train", "--x", str(folder / "train.csv"), "--target", "class", "--drop", "y", "--tune", "off", "-q",
                 "-o", str(folder / "model")])
    model = Model.load(folder / "model")
    assert "origin" in model.schema
    data = read(folder / "test.csv", "class")
    assert data.info()["schema"] != model.schema
    own = Dataset(folder / "test.csv", target="class", schema=model.schema)
    np.testing.assert_array_equal(model.predict(data), model.predict(own))
    assert mercer.evaluate(model, data)["accuracy"] == mercer.evaluate(model, own)["accuracy"] > 0.8
    # A table need not contain all classes of the model.
    lines = (folder / "test.csv").read_text().splitlines(keepends=True)
    (folder / "low.csv").write_text("".join(lines[:1] + [line for line in lines if line.endswith("low\n")]))
    few = mercer.evaluate(model, Dataset(folder / "low.csv", target="class", kinds="y:drop"))
    assert few["confusion"].shape == (2, 2) and few["confusion"][0].sum() == 0
    # Features that are already encoded are used unchanged.
    arrays = Dataset._of_arrays(model.context, own.read()[0], labels=own.read()[1], classes=2)
    assert mercer.evaluate(model, arrays)["accuracy"] == mercer.evaluate(model, own)["accuracy"]


def test_models_of_arrays_and_tables_without_a_schema(tables):
    data = Dataset(tables / "t.csv", task="regression")
    x, y = data.read()
    model = Model("gaussian:bandwidth=2", x[:20], outputs=1)
    Trainer(model, solver="direct").fit(x, y)
    assert model.feature_names is None and model.schema is None
    assert mercer.evaluate(model, data)["r2"] > 0.9
    np.testing.assert_array_equal(model.predict(data), model.predict(x))


def test_a_trainer_takes_the_schema(far):
    folder, _, _ = far
    data, other = read(folder / "train.csv", "y"), read(folder / "test.csv", "y")
    model = Model("gaussian:bandwidth=2", data.read()[0][:20], outputs=1)
    Trainer(model, solver="direct").fit(data)
    assert model.schema == data.info()["schema"]
    with pytest.raises(ValueError, match="schema=model.schema"):
        Trainer(model, solver="direct").fit(other)
    Trainer(model, solver="direct").fit(Dataset(folder / "test.csv", target="y", schema=model.schema))
    model.schema = None
    with pytest.raises(ValueError, match="schema.* columns="):
        Trainer(model, solver="direct").fit(data)
