# SPDX-License-Identifier: BSD-3-Clause
"""Estimators accept data frames with text, dates, booleans and missing values."""

import pickle
import re
import warnings

import numpy as np
import pytest
from expect import of_mercer, warns
from mercer import Dataset, KernelClassifier, KernelRegressor, MercerWarning, Model
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


def test_features_agree_with_those_of_a_file(frame, tmp_path):
    frame["y"] = target(frame)
    frame.to_csv(tmp_path / "t.csv", index=False)
    data = Dataset(tmp_path / "t.csv", target="y", task="regression")
    X, schema, names = encode(Context(), frame.drop(columns="y"))
    np.testing.assert_array_equal(X, data.read()[0])
    assert names == data.info()["feature_names"]
    assert schema == data.info()["schema"]
    frame[["sold", "rooms", "area", "kind", "garden", "city"]].to_csv(tmp_path / "n.csv", index=False)
    again = Dataset(tmp_path / "n.csv", task="unlabeled", schema=schema)
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
    with pytest.raises(ValueError, match="X .*'city'.*model"):
        model.predict(frame.drop(columns="city"))
    with pytest.raises(ValueError, match="^X, column 'area', row 0: 'large' .*number"):
        model.predict(frame.assign(area="large"))


def test_classes_and_new_levels(frame):
    y = np.where(frame["city"] == "Bonn", "yes", "no")
    model = KernelClassifier(random_state=0).fit(frame, y)
    assert model.score(frame, y) > 0.95
    new = frame.assign(city=frame["city"].replace("Rom", "Oslo"))
    assert model.predict(new).shape == (120,)
    assert model.predict_proba(new).shape == (120, 2)


# ---- Errors and warnings ----


def days(count, form="%Y-%m-%d"):
    return list(pandas.date_range("2020-01-01", periods=count).strftime(form))


def test_a_few_bad_cells():
    """A few bad cells do not turn a column into a category: the error has the row and the remedy in Python."""
    when = days(400)
    when[59] = "2020-02-30"
    frame = pandas.DataFrame({"when": when, "a": np.arange(400) % 7 + 0.5})
    message = (
        r"^X, column 'when', row 59: '2020-02-30' .*date, .*399 of 400 .*: missing=\['TEXT'\] .*columns=\{'COLUMN': 'category'\}"
    )
    with pytest.raises(ValueError, match=message) as refused:
        KernelRegressor().fit(frame, np.arange(400.0))
    assert refused.value.field == "columns.date"
    _, schema, names = encode(Context(), frame.assign(when=pandas.to_datetime(frame["when"], errors="coerce")))
    assert names == ["when", "when sine", "when cosine", "when missing", "a"]
    _, schema, names = encode(Context(), frame.assign(when=frame["when"].astype("category")))
    assert names[0] == "when=2020-01-01" and "other" in schema
    rating = pandas.DataFrame({"rating": ["4", "5", "-", *["3"] * 97]})
    with pytest.raises(ValueError, match=r"^X, column 'rating', row 2: '-' .*number.*columns=\{'COLUMN': 'category'\}") as refused:
        encode(Context(), rating)
    assert refused.value.field == "columns.number"


def test_notations(tmp_path):
    """Amounts and dates as text are read as in a file, in training and when predicting."""
    amounts = [f"${500 + 7.25 * i:,.2f}" for i in range(300)]
    frame = pandas.DataFrame({"amount": amounts, "when": days(300, "%d/%m/%Y"), "half": [f"{i / 2}" for i in range(300)]})
    y = 500 + 7.25 * np.arange(300)
    frame.to_csv(tmp_path / "t.csv", index=False)
    X, schema, names = encode(Context(), frame)
    assert names == ["amount", "when", "when sine", "when cosine", "half"]
    np.testing.assert_array_equal(X[:, 0], y.astype(np.float32))
    np.testing.assert_array_equal(X, Dataset(tmp_path / "t.csv", task="unlabeled").read()[0])
    assert schema == Dataset(tmp_path / "t.csv", task="unlabeled").info()["schema"]
    model = KernelRegressor(random_state=0, tune="off").fit(frame, y)
    expected = model.predict(frame)
    assert model.score(frame, y) > 0.99
    np.testing.assert_array_equal(model.predict(frame.iloc[:12]), expected[:12])  # The model stores the order of day and month.
    numbers = frame.iloc[:12].assign(amount=y[:12])  # A column of numbers is accepted, too.
    np.testing.assert_array_equal(model.predict(numbers), expected[:12])
    with pytest.raises(ValueError, match=r"^X, column 'amount', row 0: '€5' .*number"):
        model.predict(frame.assign(amount="€5"))
    with pytest.raises(ValueError, match=r"^X, column 'when': .*order .*'01/01/2020'.*columns=\{'COLUMN': 'date-dmy'\}"):
        encode(Context(), frame.iloc[:12].assign(when=pandas.date_range("2020-01-01", periods=12, freq="MS").strftime("%d/%m/%Y")))


def test_statistics_of_levels(tmp_path):
    """A category with many levels has the same statistics in a frame and in a file, and they reach predictions."""
    rng = np.random.default_rng(4)
    effects, codes = rng.normal(size=300), rng.integers(0, 300, 3000)
    frame = pandas.DataFrame({"code": [f"K{k}" for k in codes], "a": rng.normal(size=3000)})
    y, weights = effects[codes] + 0.3 * rng.normal(size=3000), rng.uniform(0.5, 2, 3000)
    groups = np.arange(3000) % 60
    frame.assign(y=y, w=weights, g=groups).to_csv(tmp_path / "t.csv", index=False)
    model = KernelRegressor(random_state=0, tune="off").fit(frame[:2000], y[:2000])
    assert model.score(frame[2000:], y[2000:]) > 0.8
    model.fit(frame, y, weights, groups=groups)
    table = Dataset(tmp_path / "t.csv", target="y", weight_column="w", group_column="g")
    assert table.info()["schema"] == model.model_.schema
    table = Dataset(tmp_path / "t.csv", schema=model.model_.schema, task="unlabeled")
    np.testing.assert_array_equal(model.predict(frame), model.model_.predict(table)[:, 0])
    classes = np.where(y > 0, "up", "down")
    assert KernelClassifier(random_state=0, tune="off").fit(frame[:2000], classes[:2000]).score(frame[2000:], classes[2000:]) > 0.8
    assert "statistics" not in encode(Context(), frame)[1]  # a prediction has no targets


def test_text_that_is_true_or_false():
    frame = pandas.DataFrame({"ok": ["true", "False"] * 20, "a": np.arange(40) % 7})
    X, schema, _ = encode(Context(), frame)
    np.testing.assert_array_equal(encode(Context(), frame, schema)[0], X)


def test_whole_numbers_as_text():
    """Whole numbers as text are a category, with a warning unless they have leading zeros."""
    month, zips = [str(i % 12 + 1) for i in range(60)], ["00501", "10001"] * 30
    frame = pandas.DataFrame({"month": month, "zip": zips, "kind": pandas.Categorical(month)})
    with pytest.warns(MercerWarning) as recorded:
        names = encode(Context(), frame)[2]
    assert len(names) == 26
    ((field, text),) = of_mercer(recorded)
    assert field == "month" and "'1'" in text and "category" in text


def test_durations_and_periods():
    rng = np.random.default_rng(0)
    hours = rng.integers(1, 100, 40)
    took = pandas.Series(pandas.to_timedelta(hours, unit="h"))
    took[3] = pandas.NaT
    months = pandas.Series(pandas.period_range("2000-01", periods=40, freq="M"))
    for frame in (
        pandas.DataFrame({"took": took, "month": months}),
        pandas.DataFrame({"took": took.astype(object), "month": months.astype(object)}),
    ):
        X, _, names = encode(Context(), frame)
        assert names == ["took", "took missing", "month", "month sine", "month cosine"]
        np.testing.assert_array_equal(X[4:, 0], (hours[4:] / 24).astype(np.float32))  # days
        assert X[3, 1] == 1
        assert X[:3, 2].tolist() == [0, 31, 60]  # start of each month in days since 2000-01-01


def test_predictions_for_durations():
    """Durations without missing values are days in predictions, too. Earlier, predictions read them as nanoseconds or failed."""
    hours = np.random.default_rng(0).integers(1, 1000, 120)
    took = pandas.Series(pandas.to_timedelta(hours, unit="h"))
    for values in (took, took.astype(object), took.dt.to_pytimedelta()):
        for others in ({}, {"again": values}, {"x": np.ones(120) * np.arange(120) % 7}):
            frame = pandas.DataFrame({"took": values, **others})
            model = KernelRegressor(random_state=0, effort=1).fit(frame, hours / 24)
            assert model.score(frame, hours / 24) > 0.95
            np.testing.assert_array_equal(model.predict(frame[:5]), model.predict(frame)[:5])
    days = pandas.DataFrame({"took": hours / 24})
    fits = [KernelRegressor(random_state=0, effort=1).fit(X, hours / 24) for X in (took.to_frame("took"), days)]
    assert fits[0].model_.to_bytes() == fits[1].model_.to_bytes()


def test_integer_objects_that_become_equal():
    numbers = [2**62 + k for k in range(60)]
    for values in (numbers, [None, *numbers[1:]], [2**70 + k for k in range(60)]):
        with warns("big", "'big'", "double"):
            encode(Context(), pandas.DataFrame({"big": pandas.Series(values, dtype=object), "x": np.arange(60.0)}))


def test_warm_start_on_missing_values():
    rng = np.random.default_rng(0)
    frame, y = pandas.DataFrame(rng.normal(size=(80, 3)), columns=list("abc")), rng.normal(size=80)
    holes = frame.copy()
    holes.loc[3, "b"] = holes.loc[5, "c"] = np.nan
    model = KernelRegressor(advanced={"warm_start": True}, random_state=0, effort=1).fit(frame, y)
    before = model.predict(frame)
    cases = (
        (holes, "columns 'b', 'c'"), (holes.assign(c=frame["c"]), "column 'b'"),
        (holes.to_numpy(), "columns 1, 2"),
    )  # fmt: skip
    for X, says in cases:
        with pytest.raises(ValueError, match=f"^warm_start: X .*missing .*{says}"):
            model.fit(X, y)
        np.testing.assert_array_equal(model.predict(frame), before)
    with pytest.raises(ValueError, match="column 'a'"):  # The last fit had missing values in other columns.
        KernelRegressor(advanced={"warm_start": True}, effort=1).fit(holes, y).fit(holes.assign(a=holes["b"]), y)
    assert model.set_params(advanced=None).fit(holes, y).predict(holes).shape == (80,)


def test_columns_that_are_not_used():
    frame = pandas.DataFrame({"amount": [f"blue-{i}" for i in range(40)], "same": 7, "none": None, "city": ["Ulm", "Bonn"] * 20})
    with pytest.warns(MercerWarning) as recorded:
        KernelRegressor(random_state=0).fit(frame, np.arange(40) % 2)
    found = of_mercer(recorded)
    assert [field for field, _ in found[:3]] == ["amount", "same", "none"]
    assert "'blue-0'" in found[0][1] and "'7'" in found[1][1] and "empty" in found[2][1]
    wide = pandas.DataFrame({f"c{i}": ["k"] * 40 for i in range(20)} | {"city": ["Ulm", "Bonn"] * 20})
    with pytest.warns(MercerWarning) as recorded:
        encode(Context(), wide)
    found = of_mercer(recorded)
    assert [field for field, _ in found] == [*(f"c{i}" for i in range(8)), ""]
    assert re.search("^12 .*columns .* 0 empty, 12 ", found[-1][1])


@pytest.mark.parametrize("plain", [True, False])
def test_row_numbers(plain):
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"id": np.arange(1, 61), "a": rng.normal(size=60), "b": rng.permutation(60)})
    if not plain:
        frame["city"] = ["Ulm", "Bonn"] * 30
    with pytest.warns(MercerWarning) as recorded:
        model = KernelRegressor(random_state=0, ridge=1e-3).fit(frame, frame["a"])
    (text,) = [text for field, text in of_mercer(recorded) if field == "id"]
    assert "'id'" in text and " 60 " in text
    assert model.n_features_in_ == len(frame.columns)  # The column is still a feature.


def test_integers_that_double_merges():
    big = np.array([2**63 - 1 - i for i in range(50)])
    expected = ": 50 .*9223372036854775807, .* 1 in double"
    y = np.arange(50.0)
    for X, name in (
        (np.stack([big, np.arange(50) % 7], axis=1), "X, column 0"),
        (pandas.DataFrame({"k": big, "a": y % 7}), "column 'k'"),
        (pandas.DataFrame({"k": big, "a": ["u", "v"] * 25}), "column 'k'"),
    ):
        with pytest.warns(MercerWarning) as recorded:
            KernelRegressor(random_state=0, ridge=1e-3).fit(X, y)
        assert any(re.match(name + expected, text) for _, text in of_mercer(recorded)), of_mercer(recorded)


def test_unknown_categories_are_warnings(frame):
    model = KernelRegressor(random_state=0, ridge=1e-3).fit(frame, target(frame))
    new = frame.copy()
    new.loc[4, "city"] = "Atlantis"
    with warns("city", "1", "category", "('Atlantis')"):
        model.predict(new)
    new.loc[6, "city"] = "Avalon"
    with warns("city", "2", "category", "'Atlantis')"):
        model.predict(new)


def test_columns_that_cannot_be_used(frame):
    y = target(frame)
    twice = pandas.concat([frame, frame[["city"]]], axis=1)
    with pytest.raises(ValueError, match="^X .*2 columns.*'city'"):
        KernelRegressor().fit(twice, y)
    with pytest.raises(ValueError, match="^X, column 'tags': .*list"):
        KernelRegressor().fit(frame.assign(tags=[[1, 2]] * len(frame)), y)
    model = KernelRegressor(random_state=0, ridge=1e-3).fit(frame, y)
    with pytest.raises(ValueError, match="^X .*2 columns.*'city'"):
        model.predict(twice)
    with pytest.raises(ValueError, match="^X .*'city'.*model"):
        model.predict(frame.drop(columns="city"))


def test_columns_that_are_ignored(frame, tmp_path):
    y = target(frame)
    model = KernelRegressor(random_state=0, ridge=1e-3).fit(frame.assign(same=1), y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", MercerWarning)
        model.predict(frame.assign(same=1))  # known, though the schema drops it
    with warns("new", "'new'"):
        model.predict(frame.assign(same=1, new=2))
    with warns("new", "2", "'new'"):
        model.predict(frame.assign(same=1, new=2, other=3))
    numbers = frame[["area", "rooms"]].fillna(0).astype(float)
    plain = KernelRegressor(random_state=0, ridge=1e-3).fit(numbers, y).model_
    with warns("new", "'new'"):
        plain.predict(numbers.assign(new=1.0))


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
    with pytest.raises(ValueError, match="'city'"):
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


def test_arrays_with_missing_values():
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
    """A table of polars or pyarrow gives the same features, schema and predictions as one of pandas."""
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
    assert list(drops) == list(frame.columns)  # columns of the table, not encoded features
    assert drops["area"] > drops["city"] > 10 * abs(drops["garden"])
    np.testing.assert_allclose(found.importances_std, found.standard_error * np.sqrt(5))
    assert found.score > 0.95
    big = y > np.median(y)
    names = np.array(["small", "big"])[big.astype(int)]
    model = KernelClassifier(random_state=0, ridge=1e-3).fit(frame, names)
    again = [model.permutation_importance(frame, names, random_state=1).importances_mean for _ in range(2)]
    np.testing.assert_array_equal(*again)
    assert again[0][0] > 0.1
    with pytest.raises(ValueError, match="'huge'.*training"):
        model.permutation_importance(frame, np.where(big, "huge", "small"))
    X = np.random.default_rng(0).normal(size=(200, 3))
    plain = KernelRegressor(random_state=0, ridge=1e-3).fit(X, X[:, 1]).permutation_importance(X, X[:, 1])
    assert plain.names == ["0", "1", "2"] and plain.importances_mean.argmax() == 1


def test_class_weights_of_names_with_signs():
    """Class names may contain commas and equals signs, and a class name may be the beginning of another class name."""
    X = np.random.default_rng(0).normal(size=(90, 2))
    names = np.array(["a", "a=1", "a=1,b=2"])[np.arange(90) % 3]
    weight = {"a": 2.0, "a=1": 3.0, "a=1,b=2": 5.0}
    given = KernelClassifier(random_state=0, ridge=0.1, class_weight=weight).fit(X, names)
    rows = np.array([weight[name] for name in names])
    same = KernelClassifier(random_state=0, ridge=0.1).fit(X, names, sample_weight=rows)
    np.testing.assert_array_equal(given.model_.weights, same.model_.weights)
