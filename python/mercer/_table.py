# SPDX-License-Identifier: BSD-3-Clause
"""Data frames: text, dates and missing values are encoded as features in the same way as columns of files."""

from __future__ import annotations

import datetime
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _arrays as A
from . import _library as L
from ._arrays import Array
from ._context import Context, warn
from ._model import Dataset, _texts

EPOCH = np.datetime64("2000-01-01", "ns")  # the library represents dates as days since this date
LEAST_ROWS, MOST_WARNINGS = 32, 8  # as in the library for files; LEAST_ROWS: fewer rows may be in order by chance

# Remedies for columns that the library rejects, by the kind that it expected (mercer_last_error_field).
HINTS = {
    "columns.date": "missing=['TEXT'] or columns={'COLUMN': 'category'}",
    "columns.number": "missing=['TEXT'] or columns={'COLUMN': 'category'}",
    "columns.order": "columns={'COLUMN': 'date-dmy'} or columns={'COLUMN': 'date-mdy'}",
}


def as_frame(X: Any) -> Any:
    """Return data as a pandas data frame, with durations as numbers of days; None if X is not a data frame."""
    frame = _pandas_frame(X)
    return None if frame is None else _durations_to_days(frame)


def _pandas_frame(X: Any) -> Any:
    """Convert Polars and Arrow frames by their method to_pandas, and other frames by the interchange protocol."""
    if hasattr(X, "iloc") and hasattr(X, "dtypes") and hasattr(X, "columns"):
        return X
    if hasattr(X, "__arrow_c_stream__") and hasattr(X, "to_pandas"):
        try:
            return X.to_pandas(date_as_object=False)
        except ImportError:  # polars requires pyarrow for to_pandas
            pass
    if not hasattr(X, "__dataframe__"):
        return None
    from pandas.api.interchange import from_dataframe

    return from_dataframe(X)


def _durations_to_days(frame: Any) -> Any:
    """Return the frame with durations as numbers of days, the unit of dates; missing durations become NaN.

    >>> import pandas
    >>> frame = pandas.DataFrame({"a": pandas.to_timedelta([36, None], unit="h"), "b": [1, 2]})
    >>> _durations_to_days(frame)["a"].tolist()
    [1.5, nan]
    """
    import pandas

    found = frame
    for j, dtype in enumerate(frame.dtypes):
        values = frame.iloc[:, j]
        if dtype == object and pandas.api.types.infer_dtype(values, skipna=True) in ("timedelta", "timedelta64"):
            values = pandas.to_timedelta(values)
        elif getattr(dtype, "kind", "O") != "m":
            continue
        if found is frame:
            found = frame.copy(deep=False)
        found.isetitem(j, values.to_numpy("timedelta64[ns]") / np.timedelta64(1, "D"))
    return found


def is_plain(frame: Any) -> bool:
    """Return whether all columns are numbers without missing values.

    >>> import pandas
    >>> is_plain(pandas.DataFrame({"a": [1, 2]})), is_plain(pandas.DataFrame({"a": [1, None]}))
    (True, False)
    """
    numbers = all(_is_number(dtype) for dtype in frame.dtypes)
    return numbers and not frame.isna().to_numpy().any()


def warn_plain(frame: Any) -> None:
    """Warn about columns of a plain frame that look like row numbers, and integers that become equal in float64."""
    counting = []
    for j, name in enumerate(frame.columns):
        values = frame.iloc[:, j].to_numpy()
        if values.dtype.kind not in "iu":
            continue
        A.warn_merged(values, f"column {str(name)!r}", str(name))
        if frame.shape[1] > 1 and _looks_like_row_numbers(values):
            text = f"has {len(values)} distinct whole numbers in order, like a row number; if it is one, remove it"
            counting.append((str(name), f"column {str(name)!r}: {text}"))
    warn(counting[:MOST_WARNINGS])


def warn_ignored(names: Sequence[str]) -> None:
    """Warn about columns of new data that the model was not trained on."""
    if len(names) == 1:
        warn([(names[0], f"X: ignoring column {names[0]!r}, which the model was not trained on")])
    elif names:
        warn([(names[0], f"X: ignoring {len(names)} columns that the model was not trained on: {names[0]!r}, ...")])


def _looks_like_row_numbers(values: Array) -> bool:
    """Return whether integers begin with 0 or 1 and increase about as fast as the row numbers."""
    if len(values) < LEAST_ROWS or values[0] not in (0, 1) or values[-1] > 2 * len(values):
        return False
    return bool((values[1:] > values[:-1]).all())


def _is_number(dtype: Any) -> bool:
    return getattr(dtype, "kind", "O") in "biuf" and "category" not in str(dtype)


def _words(kind: str, codes: Any, values: Any) -> dict[str, Any]:
    return {"kind": kind, "codes": np.ascontiguousarray(codes, np.int32), "words": [str(v) for v in values]}


def _days(moments: Any) -> dict[str, Any]:
    if getattr(moments.dtype, "tz", None):
        moments = moments.dt.tz_convert("UTC").dt.tz_localize(None)
    days = (moments.to_numpy("datetime64[ns]") - EPOCH) / np.timedelta64(1, "D")
    return {"kind": "date", "values": np.ascontiguousarray(days, np.float64)}


def _numbers(values: Any, name: str) -> dict[str, Any]:
    if values.dtype.kind in "iu":
        A.warn_merged(values.dropna().to_numpy(), f"column {name!r}", name)
    kind = "boolean" if values.dtype.kind == "b" else "number"
    return {"kind": kind, "values": np.ascontiguousarray(values.to_numpy(np.float64, na_value=np.nan))}


def _objects(values: Any, name: str) -> dict[str, Any]:
    """Return a column of text or Python objects, by the inferred type of its values."""
    import pandas

    inferred = pandas.api.types.infer_dtype(values, skipna=True) if values.dtype == object else "string"
    if inferred in ("boolean", "integer", "floating", "mixed-integer-float", "decimal"):  # with missing values
        if inferred == "integer":
            A.warn_merged(values.dropna().to_numpy(object), f"column {name!r}", name)
        floats = np.array([np.nan if gap else float(v) for v, gap in zip(values, values.isna(), strict=True)])
        return {"kind": "boolean" if inferred == "boolean" else "number", "values": floats}
    if inferred in ("date", "datetime", "datetime64"):
        return _column(pandas.to_datetime(values), name)
    if inferred == "period":
        starts = [None if gap else v.start_time for v, gap in zip(values, values.isna(), strict=True)]
        return _days(pandas.to_datetime(starts).to_series())
    try:
        return _words("text", *pandas.factorize(values))
    except TypeError:
        kind = next(type(v).__name__ for v in values if getattr(type(v), "__hash__", None) is None)
        message = f"X, column {name!r}: values of type {kind} are neither numbers nor text; convert them to columns"
        raise ValueError(message) from None


def _column(values: Any, name: str) -> dict[str, Any]:
    """Return the kind and the values of a column for the library."""
    import pandas

    dtype = values.dtype
    if isinstance(dtype, pandas.CategoricalDtype):
        return _words("category", values.cat.codes, values.cat.categories)
    if isinstance(dtype, pandas.PeriodDtype):  # a period is represented by its start
        return _days(values.dt.start_time)
    kind = getattr(dtype, "kind", "O")
    if kind == "M":
        return _days(values)
    return _numbers(values, name) if _is_number(dtype) else _objects(values, name)


def number_targets(y: Any) -> Any:
    """Convert durations in the targets of a regressor to days, reject dates and periods, and keep other values.

    >>> number_targets(np.array([36, 48], "timedelta64[h]")).tolist(), number_targets([1, 2])
    ([1.5, 2.0], [1, 2])
    """
    frame = _pandas_frame(y)
    if frame is None:
        return _number_target(y, "y")
    columns = [frame.iloc[:, j] for j in range(frame.shape[1])]
    found = [_number_target(c, f"y, column {str(name)!r}") for c, name in zip(columns, frame.columns)]
    return y if all(a is b for a, b in zip(found, columns)) else np.column_stack(found)


def _number_target(y: Any, name: str) -> Any:
    dtype = getattr(y, "dtype", None)
    if getattr(dtype, "kind", "O") == "O" and not str(dtype).startswith("period"):  # lists, polars, Python objects
        try:
            values = np.asarray(y)
        except (RuntimeError, TypeError, ValueError):  # the estimator's own checks report the error
            return y
        if values.size and values.dtype == object and all(isinstance(v, datetime.timedelta) for v in values.flat):
            values = values.astype("timedelta64[us]")
        y, dtype = (values, values.dtype) if values.dtype.kind in "mM" else (y, dtype)
    period = str(dtype).startswith("period")
    if period or getattr(dtype, "kind", "O") == "M":
        dates = "y.dt.start_time" if period else "y"
        raise TypeError(
            f"{name} has dtype {dtype}, but a regressor needs numbers; subtract a date from {dates} to fit durations, "
            "which are predicted in days"
        )
    if getattr(dtype, "kind", "O") != "m":
        return y
    values = np.asarray(y)
    return (values if values.dtype.kind == "m" else values.astype("timedelta64[ns]")) / np.timedelta64(1, "D")


def _columns(table: Any, unique: bool) -> list[dict[str, Any]]:
    """Return the columns of a table. Columns of a frame have names, which must differ if ``unique``."""
    if isinstance(table, np.ndarray):
        return [{"name": None, "kind": "number", "values": np.ascontiguousarray(c, np.float64)} for c in table.T]
    names = [str(name) for name in table.columns]
    name, count = Counter(names).most_common(1)[0] if names else ("", 0)
    if unique and count > 1:
        raise ValueError(f"X has {count} columns named {name!r}; rename or drop all but one")
    return [{"name": name, **_column(table.iloc[:, j], name)} for j, name in enumerate(names)]


def missing_columns(schema: str | None) -> list[str]:
    """Return the columns of a schema that have missing values: quoted names, or indices of columns without names.

    >>> missing_columns('{"columns": [{"kind": "number"}, {"name": "b", "kind": "number", "missing": 2}]}')
    ["'b'"]
    """
    columns = json.loads(schema)["columns"] if schema else []
    return [repr(c["name"]) if c.get("name") else str(j) for j, c in enumerate(columns) if c.get("missing")]


def role_columns(y: Any, classes: bool, **keys: Array | None) -> list[dict[str, Any]]:
    """Return columns of targets, and of the keys that are not None: weight, group or time.

    >>> [c["kind"] for c in role_columns([1.0, 2.0], False, weight=np.ones(2), time=None)]
    ['target', 'weight']
    """
    if classes:
        found, numbers = np.unique(y, return_inverse=True)
        columns = [{"name": None, **_words("target", numbers.reshape(-1), found)}]
    else:
        values = np.asarray(y, np.float64).reshape(len(y), -1)
        columns = [{"name": None, "kind": "target", "values": np.ascontiguousarray(c)} for c in values.T]
    return columns + [{"name": None, "kind": kind, "values": v} for kind, v in keys.items() if v is not None]


def encode(
    context: Context, table: Any, schema: str | None = None, roles: Sequence[dict[str, Any]] = ()
) -> tuple[Array, str | None, list[str] | None]:
    """Encode a table as features by a schema; None: by a schema that is inferred from the data.

    ``roles`` are the columns of targets and keys, for statistics of the targets. Returns the features as an array, the
    schema, and the names of the features.

    >>> import pandas
    >>> X, schema, names = encode(Context(), pandas.DataFrame({"a": [1, None], "b": ["x", "y"]}))
    >>> X.tolist(), names
    ([[1.0, 0.0, 1.0, 0.0], [1.0, 1.0, 0.0, 1.0]], ['a', 'a missing', 'b=x', 'b=y'])
    """
    columns = _columns(table if isinstance(table, np.ndarray) else _durations_to_days(table), unique=schema is None)
    columns += roles
    structs = (L.mercer_table_column * len(columns))()
    for struct, column in zip(structs, columns):
        words = column.get("words", [])
        struct.name = None if column["name"] is None else L.text(column["name"], "columns")
        struct.kind, struct.word_count = column["kind"].encode(), len(words)
        struct.values, struct.codes = A.doubles(column.get("values")), A.integers(column.get("codes"))
        struct.words = _texts(words, "words") if words else None
    data = Dataset.__new__(Dataset)
    given = None if schema is None else L.text(schema, "schema")
    try:
        data._make("mercer_dataset_from_columns", context, structs, len(columns), len(table), given)
    except ValueError as error:
        hint = HINTS.get(getattr(error, "field", ""))
        # Messages of the library begin with "columns", where those about files begin with the path; replace it by X.
        text = str(error).removeprefix("columns: ")
        text = f"X {text}" if text.startswith("has ") else f"X, {text}"
        refused: Any = type(error)(text + (f": {hint}" if hint else ""))
        refused.field = getattr(error, "field", "")
        raise refused from None
    info = data.info()
    if schema is not None and not isinstance(table, np.ndarray):
        known = {column.get("name") for column in json.loads(schema)["columns"]}
        warn_ignored([name for name in map(str, table.columns) if name not in known])
    return data.read()[0], info["schema"], info["feature_names"]
