# SPDX-License-Identifier: BSD-3-Clause
"""Data frames with words, dates, booleans and gaps go into estimators as they are."""

import pickle

import numpy as np
import pytest
from mercer import Dataset, KernelClassifier, KernelRegressor, Model
from mercer._context import Context
from mercer._table import encode

pandas = pytest.importorskip("pandas")


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    n = 120
    table = pandas.DataFrame(
        {
            "area": rng.uniform(30, 200, n).round(3),
            "city": rng.choice(["Ulm", "Bonn", "Rom"], n),
            "kind": pandas.Categorical(rng.choice(["flat", "house"], n), categories=["house", "flat", "castle"]),
            "rooms": pandas.array(rng.integers(1, 6, n), dtype="Int64"),
            "garden": pandas.array(rng.choice([True, False], n), dtype="boolean"),
            "sold": pandas.to_datetime("2020-01-01") + pandas.to_timedelta(rng.integers(0, 900, n), unit="D"),
        }
    )
    table.loc[3, "area"] = np.nan
    table.loc[5, "city"] = None
    table.loc[7, "rooms"] = pandas.NA
    table.loc[8, "garden"] = pandas.NA
    table.loc[9, "sold"] = pandas.NaT
    return table


def target(frame):
    area = frame["area"].fillna(100).to_numpy()
    return area * np.where(frame["city"] == "Bonn", 2.0, 1.0) + 10 * frame["rooms"].fillna(3).to_numpy(float)


def test_features_are_those_of_a_file(frame, tmp_path):
    frame["y"] = target(frame)
    frame.to_csv(tmp_path / "t.csv", index=False)
    data = Dataset(tmp_path / "t.csv", target="y", task="regression")
    X, schema, names = encode(Context(), frame.drop(columns="y"))
    np.testing.assert_array_equal(X, data.read()[0])
    assert names == data.info()["feature_names"]
    assert schema == data.info()["schema"]
    frame[["sold", "rooms", "area", "kind", "garden", "city"]].to_csv(tmp_path / "n.csv", index=False)
    again = Dataset(tmp_path / "n.csv", task="unlabelled", schema=schema)
    np.testing.assert_array_equal(again.read()[0], X)


def test_regression(frame):
    y = target(frame)
    model = KernelRegressor(random_state=0).fit(frame, y)
    assert model.score(frame, y) > 0.95
    assert list(model.feature_names_in_) == list(frame.columns)
    assert model.n_features_in_ == 6
    expected = model.predict(frame)
    shuffled = frame[["sold", "rooms", "area", "kind", "garden", "city"]].assign(extra=1)
    np.testing.assert_array_equal(model.predict(shuffled), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(frame), expected)
    with pytest.raises(ValueError, match="no column 'city', which the model was trained on"):
        model.predict(frame.drop(columns="city"))
    with pytest.raises(ValueError, match="column 'area' is a category, but the model was trained on a number"):
        model.predict(frame.assign(area="large"))


def test_classes_and_new_levels(frame):
    y = np.where(frame["city"] == "Bonn", "yes", "no")
    model = KernelClassifier(random_state=0).fit(frame, y)
    assert model.score(frame, y) > 0.95
    new = frame.assign(city=frame["city"].replace("Rom", "Oslo"))
    assert model.predict(new).shape == (120,)
    assert model.predict_proba(new).shape == (120, 2)


def test_a_loaded_model_takes_frames(frame, tmp_path):
    y = np.where(frame["city"] == "Bonn", "yes", "no")
    fitted = KernelClassifier(random_state=0, intervals=True).fit(frame, y)
    fitted.model_.save(tmp_path / "model")
    model = Model.load(tmp_path / "model")
    shuffled = frame[["sold", "rooms", "area", "kind", "garden", "city"]].assign(extra=1)
    for table in frame, shuffled:
        assert [model.labels[k] for k in model.classify(table)] == list(fitted.predict(frame))
        np.testing.assert_array_equal(model.probabilities(table), fitted.predict_proba(frame))
        np.testing.assert_array_equal(model.class_sets(table, 0.8), fitted.predict_set(frame, 0.8))
        assert model.gradients(table).shape == (120, 2, len(model.feature_names))
    encoded = encode(Context(), frame, model.schema)[0]
    np.testing.assert_array_equal(model.predict(encoded), model.predict(frame))
    with pytest.raises(ValueError, match="no column 'city'"):
        model.predict(frame.drop(columns="city"))


def test_a_loaded_model_finds_columns_of_numbers_by_name(tmp_path):
    rng = np.random.default_rng(1)
    table = pandas.DataFrame(rng.normal(size=(100, 3)), columns=["a", "b", "c"])
    fitted = KernelRegressor(random_state=0, intervals=True).fit(table, table["a"] - 2 * table["c"])
    fitted.model_.save(tmp_path / "model")
    model = Model.load(tmp_path / "model")
    assert model.schema is None
    for other in table, table[["c", "a", "b"]], table.assign(d=0.0), table.to_numpy():
        np.testing.assert_array_equal(model.predict(other)[:, 0], fitted.predict(table))
    low, high = fitted.predict_interval(table)
    radius = model.interval()
    np.testing.assert_array_equal(model.predict(table[["b", "a", "c"]])[:, 0] - radius, low)
    with pytest.raises(ValueError, match="'b'"):
        model.predict(table[["a", "c"]])


def test_arrays_with_gaps():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((80, 3))
    y = X[:, 0] + X[:, 1]
    X[::7, 2] = np.nan
    model = KernelRegressor(random_state=0).fit(X, y)
    assert model.score(X, y) > 0.9
    assert model.n_features_in_ == 3
    with pytest.raises(ValueError, match="X has 2 features"):
        model.predict(X[:, :2])
    whole = np.nan_to_num(X)
    plain = KernelRegressor(random_state=0).fit(whole, y)
    assert plain.model_.schema is None
    with pytest.raises(ValueError, match="NaN"):
        plain.predict(X)


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_frames_of_other_libraries(frame, library):
    """A table of Arrow's is the same table: features, schema, predictions."""
    other = pytest.importorskip(library)
    pytest.importorskip("pyarrow")
    y = target(frame)
    if library == "polars":
        table = other.from_pandas(frame)
        table = table.with_columns(other.col("sold").cast(other.Date))
        numbers = other.DataFrame({"a": [1.0, 2.0, 4.0], "b": [3, 4, 9]})
    else:
        table = other.Table.from_pandas(frame, preserve_index=False)
        table = table.set_column(5, "sold", table["sold"].cast(other.date32()))
        numbers = other.table({"a": [1.0, 2.0, 4.0], "b": [3, 4, 9]})
    ours, theirs = (KernelRegressor(random_state=0).fit(X, y) for X in (frame, table))
    assert theirs._table[1] == ours._table[1]
    np.testing.assert_array_equal(theirs.predict(table), ours.predict(frame))
    assert list(theirs.feature_names_in_) == list(frame.columns)
    plain = KernelRegressor(random_state=0, ridge=1.0).fit(numbers, [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(plain.predict(numbers), plain.predict(pandas.DataFrame({"a": [1.0, 2.0, 4.0], "b": [3, 4, 9]})))


def test_permutation_importance(frame):
    y = target(frame)
    found = KernelRegressor(random_state=0, ridge=1e-3).fit(frame, y).permutation_importance(frame, y, random_state=0)
    drops = dict(zip(found.names, found.importances_mean, strict=True))
    assert list(drops) == list(frame.columns)  # whole columns, not their features
    assert drops["area"] > drops["city"] > 10 * abs(drops["garden"])
    np.testing.assert_allclose(found.importances_std, found.standard_error * np.sqrt(5))
    assert found.score > 0.95
    big = y > np.median(y)
    names = np.array(["small", "big"])[big.astype(int)]
    model = KernelClassifier(random_state=0, ridge=1e-3).fit(frame, names)
    again = [model.permutation_importance(frame, names, random_state=1).importances_mean for _ in range(2)]
    np.testing.assert_array_equal(*again)
    assert again[0][0] > 0.1
    with pytest.raises(ValueError, match="'huge', which the fit did not have"):
        model.permutation_importance(frame, np.where(big, "huge", "small"))
    X = np.random.default_rng(0).normal(size=(200, 3))
    plain = KernelRegressor(random_state=0, ridge=1e-3).fit(X, X[:, 1]).permutation_importance(X, X[:, 1])
    assert plain.names == ["0", "1", "2"] and plain.importances_mean.argmax() == 1


def test_class_weights_of_names_with_signs():
    """Names with commas and equals signs, of which one begins like another."""
    X = np.random.default_rng(0).normal(size=(90, 2))
    names = np.array(["a", "a=1", "a=1,b=2"])[np.arange(90) % 3]
    weight = {"a": 2.0, "a=1": 3.0, "a=1,b=2": 5.0}
    given = KernelClassifier(random_state=0, ridge=0.1, class_weight=weight).fit(X, names)
    rows = np.array([weight[name] for name in names])
    same = KernelClassifier(random_state=0, ridge=0.1).fit(X, names, sample_weight=rows)
    np.testing.assert_array_equal(given.model_.weights, same.model_.weights)
