# SPDX-License-Identifier: BSD-3-Clause
"""The parameters ``columns`` and ``missing`` of the estimators: kinds of columns, and values that mean "missing"."""

from __future__ import annotations

import difflib
import json
import numbers
from typing import Any

import numpy as np

KINDS = ("number", "category", "boolean", "date", "date-dmy", "date-mdy", "drop")
YES, NO = ("true", "yes", "y", "t", "1", "1.0"), ("false", "no", "n", "f", "0", "0.0")


def missing_values(missing: Any) -> list[str | float]:
    """Return the values of ``missing`` as a list.

    >>> missing_values("-"), missing_values(["n/a", -999]), missing_values(None)
    (['-'], ['n/a', -999.0], [])
    """
    if missing is None:
        return []
    given = [missing] if isinstance(missing, (str, numbers.Real)) else missing
    if not isinstance(given, (list, tuple, set, frozenset)):
        raise ValueError(f"missing is {missing!r}; it must be a str, a number, a list of them, or None")
    for value in given:
        if isinstance(value, bool) or not isinstance(value, (str, numbers.Real)):
            raise ValueError(f"missing contains {value!r}; it may contain only strings and numbers")
    return [value if isinstance(value, str) else float(value) for value in given]


def without_missing(X: Any, values: list[str | float]) -> Any:
    """Return a data frame or array in which the given values are missing: NaN, or None in columns of text."""
    if not values:
        return X
    if hasattr(X, "iloc"):
        found = X
        for j in range(X.shape[1]):
            hits = _hits(X.iloc[:, j], values)
            if hits.any():
                found = found.copy(deep=False) if found is X else found
                found.isetitem(j, X.iloc[:, j].mask(hits))
        return found
    array = np.asarray(X)
    if array.dtype.kind not in "iuf" or array.ndim != 2:
        return X  # the checks of X report the problem
    hits = np.isin(array, [float(value) for value in values if _as_float(value) is not None])
    if not hits.any():
        return X
    floats = array.astype(array.dtype if array.dtype.kind == "f" else np.float64)
    floats[hits] = np.nan
    return floats


def _as_float(value: str | float) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None


def _hits(column: Any, values: list[str | float]) -> Any:
    """Return a mask of the cells that have one of the values. Numbers are compared as numbers, other values as text."""
    floats = [number for value in values if (number := _as_float(value)) is not None]
    if getattr(column.dtype, "kind", "O") in "iuf" and "category" not in str(column.dtype):
        return column.isin(floats)
    if getattr(column.dtype, "kind", "O") in "bmM":
        return column.isin([])
    words = {value if isinstance(value, str) else f"{value:g}" for value in values}
    return column.map(lambda cell: str(cell).strip() in words or (isinstance(cell, float) and cell in floats)).astype(bool)


def with_missing_words(schema: str | None, values: list[str | float]) -> str | None:
    """Add values to the missing values of a schema, so that Model and the mercer program treat them as missing, too."""
    if schema is None or not values:
        return schema
    parsed = json.loads(schema)
    known = parsed.get("missing", list(DEFAULT_WORDS))
    words = [value if isinstance(value, str) else f"{value:g}" for value in values]
    return json.dumps(parsed | {"missing": known + [word for word in words if word not in known]}, ensure_ascii=False)


DEFAULT_WORDS = ("NA", "N/A", "NaN", "null", "?")


def checked_kinds(columns: Any, frame: Any) -> dict[Any, str]:
    """Check the kinds of columns and return them by name. A name that X does not have is an error."""
    if columns is None:
        return {}
    if not isinstance(columns, dict):
        raise ValueError(f"columns is {columns!r}; it must be a dict of kinds by column name, or None")
    names = list(frame.columns)
    for name, kind in columns.items():
        if kind not in KINDS:
            raise ValueError(f"columns: {name!r} is {kind!r}; valid: {', '.join(KINDS)}")
        if name not in names and kind != "drop":
            near = difflib.get_close_matches(str(name), [str(one) for one in names], 1)
            raise ValueError(f"columns: X has no column {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
    return dict(columns)


def with_kinds(frame: Any, kinds: dict[Any, str]) -> Any:
    """Return a data frame whose columns have the given kinds.

    >>> import pandas
    >>> frame = pandas.DataFrame({"zip": [10115, 80331], "id": [1, 2], "on": ["yes", "no"]})
    >>> found = with_kinds(frame, {"zip": "category", "id": "drop", "on": "boolean"})
    >>> list(found["zip"].cat.categories), list(found.columns), found["on"].tolist()
    (['10115', '80331'], ['zip', 'on'], [1.0, 0.0])
    """
    if not kinds:
        return frame
    found = frame[[name for name in frame.columns if kinds.get(name) != "drop"]].copy(deep=False)
    for j, name in enumerate(found.columns):
        if name in kinds:
            found.isetitem(j, _converted(found.iloc[:, j], kinds[name], name))
    return found


def _converted(column: Any, kind: str, name: Any) -> Any:
    """Convert a column to the given kind. A value that cannot be converted is an error that shows the value."""
    import pandas

    if kind == "category":
        return _categories(column)
    text = column.dtype == object or isinstance(column.dtype, pandas.CategoricalDtype) or str(column.dtype).startswith("str")
    if kind == "number":
        if not text:
            return column if column.dtype.kind != "M" else _refuse(column, kind, name)
        values = pandas.to_numeric(column.astype(object), errors="coerce")
        # Text such as "$1,200" is not a number for pandas; the library reads it.
        return column if (values.isna() & column.notna()).any() else values
    if kind == "boolean":
        words = column.map(lambda cell: None if pandas.isna(cell) else str(cell).strip().lower())
        values = words.map({**dict.fromkeys(YES, 1.0), **dict.fromkeys(NO, 0.0)})
    else:
        day_first = {"date-dmy": {"dayfirst": True}, "date-mdy": {"dayfirst": False}}.get(kind, {})
        values = pandas.to_datetime(column.astype(object) if text else column, errors="coerce", **day_first)
    wrong = values.isna() & column.notna()
    return _refuse(column[wrong], kind, name) if wrong.any() else values


def _refuse(column: Any, kind: str, name: Any) -> Any:
    example = column.iloc[0]
    raise ValueError(f"X, column {name!r}: the parameter columns says {kind}, but {example!r} is not a {kind}; change one of them")


def _categories(column: Any) -> Any:
    """Return a column as categories with text levels; whole numbers have no decimal point, as in a file."""
    import pandas

    def word(cell: Any) -> str | None:
        if pandas.isna(cell):
            return None
        whole = isinstance(cell, (float, np.floating)) and float(cell).is_integer()
        return str(int(cell)) if whole else str(cell)

    return column.astype(object).map(word).astype("category")
