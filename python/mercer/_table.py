# SPDX-License-Identifier: BSD-3-Clause
"""Data frames: columns of words, dates and gaps become features as the library makes them of files."""

from __future__ import annotations

import ctypes as C
from typing import Any

import numpy as np

from . import _arrays as A
from . import _library as L
from ._arrays import Array
from ._context import Context
from ._model import Dataset, _texts

EPOCH = np.datetime64("2000-01-01", "ns")


def as_frame(X: Any) -> Any:
    """A pandas data frame as it is, one of polars or Arrow made into one; others by way of the interchange protocol.

    None for other data.
    """
    if hasattr(X, "iloc") and hasattr(X, "dtypes") and hasattr(X, "columns"):
        return X
    if hasattr(X, "__arrow_c_stream__") and hasattr(X, "to_pandas"):
        try:
            return X.to_pandas(date_as_object=False)
        except ImportError:  # polars needs pyarrow for it
            pass
    if not hasattr(X, "__dataframe__"):
        return None
    from pandas.api.interchange import from_dataframe

    return from_dataframe(X)


def is_plain(frame: Any) -> bool:
    """Whether all columns are numbers without gaps.

    >>> import pandas
    >>> is_plain(pandas.DataFrame({"a": [1, 2]})), is_plain(pandas.DataFrame({"a": [1, None]}))
    (True, False)
    """
    numbers = all(_is_number(dtype) for dtype in frame.dtypes)
    return numbers and not frame.isna().to_numpy().any()


def _is_number(dtype: Any) -> bool:
    return getattr(dtype, "kind", "O") in "biuf" and "category" not in str(dtype)


def _words(codes: Any, values: Any) -> dict[str, Any]:
    return {"kind": "category", "codes": np.ascontiguousarray(codes, np.int32), "words": [str(v) for v in values]}


def _column(values: Any) -> dict[str, Any]:
    """What the library gets to see of a column."""
    import pandas

    dtype = values.dtype
    if isinstance(dtype, pandas.CategoricalDtype):
        return _words(values.cat.codes, values.cat.categories)
    if getattr(dtype, "kind", "O") == "M":
        moments = values.dt.tz_convert("UTC").dt.tz_localize(None) if getattr(dtype, "tz", None) else values
        days = (moments.to_numpy("datetime64[ns]") - EPOCH) / np.timedelta64(1, "D")
        return {"kind": "date", "values": np.ascontiguousarray(days, np.float64)}
    if _is_number(dtype):
        kind = "boolean" if dtype.kind == "b" else "number"
        return {"kind": kind, "values": np.ascontiguousarray(values.to_numpy(np.float64, na_value=np.nan))}
    inferred = pandas.api.types.infer_dtype(values, skipna=True) if dtype == object else "string"
    if inferred in ("boolean", "integer", "floating", "mixed-integer-float", "decimal"):  # objects, with gaps
        floats = np.array([np.nan if gap else float(v) for v, gap in zip(values, values.isna(), strict=True)])
        return {"kind": "boolean" if inferred == "boolean" else "number", "values": floats}
    if inferred in ("date", "datetime"):
        return _column(pandas.to_datetime(values))
    return _words(*pandas.factorize(values))


def _columns(table: Any) -> list[dict[str, Any]]:
    """Of a frame, with names; of an array of numbers, without."""
    if isinstance(table, np.ndarray):
        return [{"name": None, "kind": "number", "values": np.ascontiguousarray(c, np.float64)} for c in table.T]
    return [{"name": str(name), **_column(table.iloc[:, j])} for j, name in enumerate(table.columns)]


def encode(context: Context, table: Any, schema: str | None = None) -> tuple[Array, str | None, list[str] | None]:
    """Features of a table by a schema, or by the one that is found: the array, the schema, names of the features.

    >>> import pandas
    >>> X, schema, names = encode(Context(), pandas.DataFrame({"a": [1, None], "b": ["x", "y"]}))
    >>> X.tolist(), names
    ([[1.0, 0.0, 1.0, 0.0], [1.0, 1.0, 0.0, 1.0]], ['a', 'a missing', 'b=x', 'b=y'])
    """
    columns = _columns(table)
    structs = (L.mercer_table_column * len(columns))()
    for struct, column in zip(structs, columns):
        words = column.get("words", [])
        struct.name = None if column["name"] is None else L.text(column["name"], "columns")
        struct.kind, struct.word_count = column["kind"].encode(), len(words)
        struct.values, struct.codes = A.doubles(column.get("values")), A.integers(column.get("codes"))
        struct.words = _texts(words, "words") if words else None
    data = Dataset.__new__(Dataset)
    given = None if schema is None else L.text(schema, "schema")
    data._make("mercer_dataset_from_columns", context, structs, len(columns), len(table), given)
    info = data.info()
    return data.read()[0], info["schema"], info["feature_names"]
