# SPDX-License-Identifier: BSD-3-Clause
"""Messages about inputs name X or y, the column and the remedy in Python; the parameters columns and missing."""

import numpy as np
import pytest

pytest.importorskip("sklearn")
pandas = pytest.importorskip("pandas")

from expect import warns  # noqa: E402
from mercer import KernelClassifier, KernelRegressor  # noqa: E402

N = 120
RNG = np.random.default_rng(6)
A = RNG.normal(size=N)
FRAME = pandas.DataFrame({"a": A, "rating": [str(k) for k in RNG.integers(1, 6, N)], "city": RNG.choice(["x", "y"], N)})
DASH = FRAME.assign(rating=["-", *FRAME["rating"][1:]])


def fit(frame=FRAME, y=A, estimator=KernelRegressor, **parameters):
    return estimator(effort=1, random_state=0, **parameters).fit(frame, y)


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        ({"frame": pandas.concat([FRAME, FRAME[["a"]]], axis=1)}, ValueError, "X .*2 columns.*'a'"),
        ({"frame": FRAME[["a"]].assign(l=[[1]] * N)}, ValueError, "X, column 'l': .*list"),
        ({"frame": FRAME[:0], "y": A[:0]}, ValueError, r"X .*0 sample"),
        ({"frame": FRAME[[]]}, ValueError, r"X .*0 feature"),
        ({"frame": FRAME.assign(b=np.inf)}, ValueError, "X, column 'b', row 0: contains infinity"),
        ({"frame": FRAME["a"]}, ValueError, r"X is a Series .*use X.to_frame\(\)"),
        ({"frame": {"a": A}}, TypeError, r"X .*dict; "),
        ({"frame": None}, TypeError, "X .*NoneType; "),
        ({"y": A[:7]}, ValueError, "X .*120.*y .*7"),
        ({"y": pandas.Series(np.where(A > 0, A, np.nan))}, ValueError, r"y: Input y contains NaN: \d+ missing values \(first: row \d"),
        ({"y": [f"${k}" for k in range(N)]}, ValueError, r"y .*'\$0'.*pandas.to_numeric\(y.str.replace.*KernelClassifier"),
        ({"y": np.array(["x", 1] * 60, object), "estimator": KernelClassifier}, ValueError, "y .*'x'.*1"),
        ({"y": np.array(["x", None] * 60, object), "estimator": KernelClassifier}, ValueError, "y .*NaN.*row 1.*None"),
        ({"y": np.array(["x", pandas.NA] * 60, object), "estimator": KernelClassifier}, ValueError, "y .*NaN.*row 1.*NA"),
        ({"y": pandas.DataFrame({"p": ["x"] * N})}, ValueError, "y, column 'p' .*'x'"),
        (
            {"y": [f"${k}" for k in range(N)], "estimator": KernelClassifier}, ValueError,
            r"y .*120 .*'\$\d+'.* 120 rows.*KernelRegressor",
        ),
        ({"frame": DASH}, ValueError, r"X, column 'rating', row 0: '-' .*number.*missing=\['TEXT'\] .* columns=\{'COLUMN': 'category'\}"),
        ({"columns": {"citi": "category"}}, ValueError, r"columns: .*'citi'.*'city'\?"),
        ({"columns": {"city": "word"}}, ValueError, "columns: 'city' is 'word'; valid: number, category, boolean"),
        ({"columns": {"city": "boolean"}}, ValueError, "X, column 'city': .*boolean.*'[xy]'"),
        ({"columns": {"city": "date"}}, ValueError, "X, column 'city': .*date.*'[xy]'"),
        ({"columns": ["city"]}, ValueError, r"columns .*\['city'\].*dict"),
        ({"frame": FRAME[["a"]].to_numpy(), "columns": {"a": "number"}}, ValueError, "columns: X .*data frame"),
        ({"missing": {"a": 1}}, ValueError, "missing .*str"),
        ({"missing": [True]}, ValueError, "missing .*True"),
    ],
)
def test_messages(arguments, error, message):
    with pytest.raises(error, match=message) as caught:
        fit(**arguments)
    for word in ("--", "line ", "file"):
        assert word not in str(caught.value)


def test_missing():
    """Given words and numbers are missing values, in training and when predicting, as if they were NaN."""
    words, holes = DASH.assign(rating=DASH["rating"].mask(DASH["rating"] == "-")), None
    for frame, missing in ((DASH, "-"), (DASH, ["-", -999])):
        model = fit(frame, missing=missing)
        expected = fit(words)
        np.testing.assert_array_equal(model.predict(frame), expected.predict(words))
        assert '"-"' in model.model_.schema
    numbers = FRAME[["a"]].assign(b=np.where(A > 1, -999, np.arange(N) % 5))
    holes = numbers.assign(b=numbers["b"].astype(float).mask(numbers["b"] == -999))
    np.testing.assert_array_equal(fit(numbers, missing=-999).predict(numbers), fit(holes).predict(holes))
    arrays = fit(numbers.to_numpy(), missing=-999)
    np.testing.assert_array_equal(arrays.predict(numbers.to_numpy()), fit(holes.to_numpy()).predict(holes.to_numpy()))
    assert (numbers["b"] == -999).any()  # X is not changed


@pytest.mark.parametrize(
    "kind, values, as_if",
    [
        ("category", np.arange(N) % 4, [str(k % 4) for k in range(N)]),
        ("number", [f"{k % 9}.5" for k in range(N)], np.arange(N) % 9 + 0.5),
        ("boolean", ["Yes", "no"] * (N // 2), [1.0, 0.0] * (N // 2)),
        ("date-dmy", ["03/02/2024", "04/02/2024"] * (N // 2), pandas.to_datetime(["2024-02-03", "2024-02-04"] * (N // 2))),
        ("date-mdy", ["02/03/2024", "02/04/2024"] * (N // 2), pandas.to_datetime(["2024-02-03", "2024-02-04"] * (N // 2))),
    ],
)
def test_kinds_of_columns(kind, values, as_if):
    """A column of a given kind gives the same predictions as one that was converted by hand."""
    by_hand = pandas.Series(as_if).astype("category") if kind == "category" else as_if
    given, wanted = FRAME[["a"]].assign(b=values), FRAME[["a"]].assign(b=by_hand)
    model, expected = fit(given, columns={"b": kind}), fit(wanted)
    np.testing.assert_array_equal(model.predict(given), expected.predict(wanted))


def test_dropped_columns():
    frame = FRAME.assign(id=np.arange(1, N + 1))
    with warns("id", "120"):
        fit(frame)
    model = fit(frame, columns={"id": "drop"})
    assert list(model.feature_names_in_) == list(FRAME.columns)
    np.testing.assert_array_equal(model.predict(frame), model.predict(FRAME))
    plain = fit(frame[["a", "id"]], columns={"id": "drop"})
    np.testing.assert_array_equal(plain.predict(frame[["a", "id"]]), plain.predict(frame[["a"]]))


def test_ids_as_text_are_named():
    with warns("name", "'row 0'"):
        fit(FRAME.assign(name=[f"row {k}" for k in range(N)]))
