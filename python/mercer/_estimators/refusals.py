# SPDX-License-Identifier: BSD-3-Clause
"""Checks of X and y whose errors name the column and the remedy; scikit-learn's own checks follow."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

# y cannot be classes if it has at least LEAST_ROWS rows, and on average fewer than ROWS_PER_CLASS rows per class.
LEAST_ROWS, ROWS_PER_CLASS = 32, 2


def check_frame(frame: Any, reset: bool) -> None:
    """Reject a data frame without rows or columns, with equal column names, or with infinite numbers."""
    if frame.shape[1] == 0:
        raise ValueError("X has 0 feature(s): a data frame without columns; select at least one")
    if frame.shape[0] == 0:
        raise ValueError("X has 0 sample(s): a data frame without rows; select at least one")
    name, count = Counter(map(str, frame.columns)).most_common(1)[0]
    if count > 1 and reset:
        raise ValueError(f"X has {count} columns named {name!r}; rename or drop all but one")
    for j, column in enumerate(frame.columns):
        if getattr(frame.dtypes.iloc[j], "kind", "O") != "f":
            continue
        values = frame.iloc[:, j].to_numpy(dtype=np.float64, na_value=np.nan)
        if np.isinf(values).any():
            row = int(np.flatnonzero(np.isinf(values))[0])
            raise ValueError(
                f"X, column {str(column)!r}, row {row}: contains infinity; replace it, by NaN if the value is missing"
            )


def check_container(X: Any) -> None:
    """Reject objects that are not tables; the message says how to make one."""
    kind = type(X).__name__
    is_dict = isinstance(X, dict) and not hasattr(X, "toarray")  # some sparse matrices are dicts, too
    if is_dict or isinstance(X, (str, bytes)) or X is None:
        raise TypeError(f"X is a {kind}; use a data frame or an array (rows, columns)")
    if hasattr(X, "to_frame") and hasattr(X, "name") and not hasattr(X, "columns"):
        raise ValueError(f"X is a {kind} and has one dimension: Reshape your data; use X.to_frame()")


def check_lengths(X: Any, y: Any) -> None:
    """Reject X and y with different numbers of rows, if both have a length."""
    if y is None:
        return
    try:  # the length of some sparse matrices is not their number of rows
        rows, targets = (values.shape[0] if hasattr(values, "shape") else len(values) for values in (X, y))
    except (IndexError, TypeError):
        return
    if rows != targets:
        raise ValueError(f"X has {rows:,} rows, but y has {targets:,}; they need one row per sample each")


def _series(y: Any) -> list[tuple[str, Any]]:
    """Return the columns of pandas targets, with names for messages; an empty list for other targets."""
    if hasattr(y, "iloc") and hasattr(y, "columns"):
        return [(f"y, column {str(name)!r}", y.iloc[:, j]) for j, name in enumerate(y.columns)]
    return [("y", y)] if hasattr(y, "iloc") else []


def check_targets(y: Any, numeric: bool) -> None:
    """Reject missing values, and for a regressor also text, with an example in the message."""
    for name, values in _series(y):
        missing = values.isna().to_numpy()
        if missing.any():
            row = int(np.flatnonzero(missing)[0])
            raise ValueError(
                f"{name}: Input y contains NaN: {int(missing.sum()):,} missing values (first: row {row}); "
                "remove these rows from X and y: X[y.notna()], y[y.notna()]"
            )
    if not numeric:
        if getattr(y, "dtype", None) == object:
            _check_classes(np.asarray(y).reshape(-1))
        return
    for name, values in _series(y) or [("y", y)]:
        example = _text_example(values)
        if example is not None:
            raise ValueError(
                f"{name} has text such as {example!r}, but a regressor needs numbers; if these are amounts, remove signs "
                "and separators: pandas.to_numeric(y.str.replace('[$,]', '', regex=True)); for classes use KernelClassifier"
            )


def _check_classes(values: Any) -> None:
    """Reject classes that cannot be sorted: missing ones, and texts among numbers."""
    for row, value in enumerate(values):
        missing = value is None or type(value).__name__ in ("NAType", "NaTType")  # pandas.NA != pandas.NA has no truth value
        if missing or (isinstance(value, float) and value != value):
            raise ValueError(f"Input y contains NaN: the class of row {row} is {value!r}; remove rows without a class from X and y")
    kinds = {isinstance(value, str): value for value in values}
    if len(kinds) > 1:
        raise ValueError(f"y has texts and other values, such as {kinds[True]!r} and {kinds[False]!r}; convert all with y.astype(str)")


def _text_example(values: Any) -> str | None:
    """Return the first text among the targets that is not a number; None if all values are numbers."""
    try:
        array = np.asarray(values)
    except (RuntimeError, TypeError, ValueError):
        return None
    if array.dtype.kind not in "OUT":
        return None
    for value in array.reshape(-1):
        if isinstance(value, str):
            try:
                float(value)
            except ValueError:
                return str(value)
    return None


def check_class_count(classes: Any, rows: int) -> None:
    """Reject targets with nearly as many classes as rows: they are amounts, dates or names, not classes."""
    count = len(classes)
    if rows < LEAST_ROWS or count * ROWS_PER_CLASS <= rows:
        return
    example = classes[count // 2]
    raise ValueError(
        f"y has {count:,} different values, such as {str(example)!r}, in {rows:,} rows, so these are not classes; if they "
        "are numbers, convert them and use KernelRegressor; otherwise merge rare classes"
    )
