# SPDX-License-Identifier: BSD-3-Clause
"""The whole text of some errors and warnings.

Other tests compare only what a message is about (field, column, value). This is the only file that changes with the wording.
"""

import numpy as np
import pytest

pytest.importorskip("sklearn")
pandas = pytest.importorskip("pandas")

import mercer  # noqa: E402
from expect import of_mercer  # noqa: E402
from mercer import KernelClassifier, KernelRegressor, MercerWarning  # noqa: E402

N = 120
RNG = np.random.default_rng(6)
A = RNG.normal(size=N)
FRAME = pandas.DataFrame({"a": A, "b": np.round(RNG.normal(size=N), 3), "city": ["Ulm", "Bonn"] * (N // 2)})
NUMBERS = FRAME[["a", "b"]].to_numpy()
TEXT = [f"row {k}" for k in range(N)]


def fit(X=FRAME, y=A, estimator=KernelRegressor, eval_set=None, **parameters):
    return estimator(**{"effort": 1, "random_state": 0, **parameters}).fit(X, y, eval_set=eval_set)


def predict(X):
    return fit(tune="off").predict(X)


REFUSALS = [
    (lambda: KernelRegressor(kernal="laplace"), TypeError, "KernelRegressor has no parameter 'kernal'"),
    (lambda: KernelRegressor(n_centers=5), TypeError, "n_centers is now centers: use centers=NUMBER or centers='all'"),
    (
        lambda: KernelRegressor(patience=5), TypeError,
        "patience: now an entry of the dict advanced; use KernelRegressor(advanced={'patience': ...})",
    ),
    (lambda: fit(advanced={"epoch": 3}), ValueError, "advanced has no option 'epoch'; did you mean 'epochs'?"),
    (lambda: fit(effort=6), ValueError, "effort is 6; it must be an integer from 1 to 5, or None"),
    (
        lambda: fit(kernel="laplas"), ValueError,
        "unknown kernel 'laplas' (did you mean 'laplace'?); valid names: laplace, gaussian, matern32, matern52, "
        "exppower, cauchy, rational-quadratic, polynomial, linear, ntk, nngp, laplace-l1, exppower-l1, lpq",
    ),
    (lambda: fit(advanced={"patience": 3}), ValueError, "patience needs validation or validation_fraction"),
    (
        lambda: fit(solver="krr", early_stopping=True), ValueError,
        "early_stopping has no effect with solver 'krr', which has no epochs",
    ),
    (lambda: fit(X=None), TypeError, "X is a NoneType; use a data frame or an array (rows, columns)"),
    (
        lambda: fit(X=pandas.concat([FRAME, FRAME[["a"]]], axis=1)), ValueError,
        "X has 2 columns named 'a'; rename or drop all but one",
    ),
    (
        lambda: fit(X=FRAME.assign(b=["-", *(str(k % 9) for k in range(1, N))])), ValueError,
        "X, column 'b', row 0: '-' is not a number, but 119 of 120 values are; make it a missing value, or make "
        "the column a category: missing=['TEXT'] or columns={'COLUMN': 'category'}",
    ),
    (lambda: fit(y=A[:7]), ValueError, "X has 120 rows, but y has 7; they need one row per sample each"),
    (
        lambda: fit(y=[f"${k}" for k in range(N)]), ValueError,
        "y has text such as '$0', but a regressor needs numbers; if these are amounts, remove signs and "
        "separators: pandas.to_numeric(y.str.replace('[$,]', '', regex=True)); for classes use KernelClassifier",
    ),
    (
        lambda: fit(y=TEXT, estimator=KernelClassifier), ValueError,
        "y has 120 different values, such as 'row 45', in 120 rows, so these are not classes; if they are "
        "numbers, convert them and use KernelRegressor; otherwise merge rare classes",
    ),
    (lambda: fit(columns={"citi": "category"}), ValueError, "columns: X has no column 'citi'; did you mean 'city'?"),
    (lambda: fit(eval_set=NUMBERS), ValueError, "eval_set must be a pair (X, y), or (X, y, sample_weight)"),
    (lambda: predict(FRAME.drop(columns="city")), ValueError, "X has no column 'city', which the model was trained on"),
    (
        lambda: fit(NUMBERS, tune="off").predict_interval(NUMBERS), ValueError,
        "the model has no intervals: no rows were held out in training; fit with intervals=True",
    ),
    (
        lambda: mercer.Dataset("none-*.npy"), FileNotFoundError,
        "none-*.npy: no file matches this pattern (* matches any characters, ? one, [0-9] one of a set)",
    ),
]

WARNINGS = [
    (
        lambda: fit(X=FRAME.assign(name=TEXT)), "name",
        "column 'name' is not used: almost every value is different text, such as 'row 0'; if these are numbers "
        "or dates, convert them; otherwise remove it, or make it a category",
    ),
    (
        lambda: fit(X=FRAME.assign(id=np.arange(1, N + 1))), "id",
        "column 'id': has 120 distinct whole numbers in order, like a row number; if it is one, remove it",
    ),
    (
        lambda: fit(X=FRAME.assign(month=[str(k % 12 + 1) for k in range(N)])), "month",
        "column 'month' has whole numbers as text, such as '1', and is used as a category; convert it to "
        "numbers, or to a category to avoid this warning",
    ),
    (
        lambda: predict(FRAME.assign(city=["Atlantis", *FRAME["city"][1:]])), "city",
        "column 'city': 1 cell has a category not seen in training ('Atlantis'); it is treated as unknown",
    ),
    (lambda: fit(kernel="gaussian"), "kernel.spec", "kernel gaussian is given, so the search keeps it"),
    (
        lambda: fit(X=FRAME[:40], y=A[:40], effort=5), "search.effort",
        "effort has no effect, because there are fewer than 50 distinct rows or groups; only the ridge is "
        "searched",
    ),
    (lambda: fit(solver="krr", advanced={"tol": 0.1}), "tol", "tol has no effect with solver krr, which has no epochs"),
]


@pytest.mark.parametrize("call, kind, text", REFUSALS)
def test_refusals(call, kind, text):
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == text


@pytest.mark.parametrize("call, field, text", WARNINGS)
def test_warnings(call, field, text):
    with pytest.warns(MercerWarning) as recorded:
        call()
    assert (field, text) in of_mercer(recorded)
