# SPDX-License-Identifier: BSD-3-Clause
"""Columns of tables go by their names."""

import numpy as np
import pytest
from mercer import Dataset, Model, Trainer


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


def test_datasets_go_by_name(tables, model):
    expected = model.predict(Dataset(tables / "t.csv", task="regression"))
    mixed = Dataset(tables / "n.csv", task="unlabelled")
    np.testing.assert_array_equal(model.predict(mixed), expected)
    np.testing.assert_array_equal(model.classify(mixed), np.zeros(40))
    ordered = Dataset(tables / "n.csv", task="unlabelled", columns=model.feature_names)
    np.testing.assert_array_equal(model.predict(ordered.read()[0]), expected)
    info = ordered.info()
    assert info["feature_names"] == ["a", "b", "c"]
    assert info["unused_names"] == ["name"]
    assert list(model.match(["c", "name", "b", "a"])) == [3, 2, 0]


def test_missing_columns(tables, model):
    (tables / "bad.csv").write_text("a,B,c\n1,2,3\n")
    with pytest.raises(ValueError, match="no column 'b', which the model was trained on; the nearest that it has is 'B'"):
        Dataset(tables / "bad.csv", task="unlabelled", columns=model.feature_names)
    with pytest.raises(ValueError, match="no column 'b'"):
        model.predict(Dataset(tables / "bad.csv", task="unlabelled"))
    (tables / "r.csv").write_text("b,a,c,y\n1,2,3,4.5\n")
    with pytest.raises(ValueError, match="another order"):
        Trainer(model, solver="direct").fit(Dataset(tables / "r.csv", task="regression"))


def test_several_targets(tables):
    data = Dataset(tables / "t.csv", target="c,a")
    assert data.info()["target_names"] == ["c", "a"]
    assert data.read()[1].shape == (40, 2)
