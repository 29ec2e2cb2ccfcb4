# SPDX-License-Identifier: BSD-3-Clause
"""Checks and conversions of X, y, weights, groups and times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import validation as V

from .. import _arrays as A
from .. import _device as D
from .. import _kinds as K
from .. import _table as T
from .._arrays import Array
from .._context import shared_context
from . import refusals
from .parameters import Part

TYPES = [np.float64, np.float32, np.float16, np.uint8]  # used without conversion


class InputMixin(Part):
    """Conversion of inputs by the checks of scikit-learn, or as tables."""

    def _validate_data(
        self, X: Any, *y: Any, reset: bool = True, keys: dict[str, Any] | None = None, **options: Any
    ) -> Any:
        """Return the features of X, and y if it is given, after scikit-learn's checks. X on a GPU stays on the GPU.

        ``keys`` are the weights, groups and times of a fit; they are needed to encode categories with many levels by
        statistics of y.
        """
        if D.device_of(X) is not None:
            return self._validate_on_device(X, *y, reset=reset, **options)
        if hasattr(X, "__dlpack__") and not hasattr(X, "__array__") and not hasattr(X, "__array_interface__"):
            X = A.as_array(X, "X")
        refusals.check_container(X)
        if y:
            refusals.check_lengths(X, y[0])
            refusals.check_targets(y[0], bool(options.get("y_numeric")))
        X, *y = (A.unmasked(values, name) for values, name in zip((X, *map(D.to_host, y)), ("X", "y")))
        if options.get("y_numeric"):
            y = [T.number_targets(t) for t in y]
        X, frame = self._described(X)
        if frame is not None:
            refusals.check_frame(frame, reset)
        known = None if reset else (getattr(self, "_table", None) or (None,))[0]
        if frame is not None and (known is not None or (reset and not T.is_plain(frame))):
            checked = [V.validate_data(self, y=t, **options) if reset else V._check_y(t, **options) for t in y]
            V.check_consistent_length(frame, *checked)
            if not y:
                return self._encode(frame, known, reset)
            roles = [] if keys is None else self._roles(frame, checked[0], not options.get("y_numeric"), **keys)
            return (self._encode(frame, known, reset, roles), *checked)
        X = X if frame is None else frame
        if reset and frame is not None:
            T.warn_plain(frame)
        elif reset and isinstance(X, np.ndarray) and X.dtype.kind in "iu":
            A.warn_columns(X, "X")
        # float64, float32, float16 and uint8 stay unchanged; all other types become float64.
        finite = {"ensure_all_finite": "allow-nan"} if reset or known is not None else {}
        found = V.validate_data(self, X, *y, dtype=TYPES, reset=reset, **finite, **options)
        x = found[0] if y else found
        if known is not None or (x.dtype.kind == "f" and bool(np.isnan(x).any())):
            x = self._encode(x, known, False)
        elif reset:
            self._table: tuple[str, list[str] | None] | None = None
        return (x, found[1]) if y else x

    def _described(self, X: Any) -> tuple[Any, Any]:
        """Return X, and X as a data frame or None, after applying the parameters ``columns`` and ``missing``."""
        frame = T.as_frame(X)
        if self.columns is None and self.missing is None:
            return X, frame
        if frame is None:
            if self.columns is not None:
                raise ValueError("columns: X is not a data frame, so its columns have no names; use a data frame, or remove the parameter columns")
            return K.without_missing(X, K.missing_values(self.missing)), None
        frame = K.with_kinds(K.without_missing(frame, K.missing_values(self.missing)), K.checked_kinds(self.columns, frame))
        return frame, frame

    def _validate_on_device(self, X: Any, *y: Any, reset: bool, **options: Any) -> Any:
        """Validate X on a GPU, whose values the library checks there; y is small and is copied to the host."""
        if len(X.shape) != 2:
            raise ValueError(f"X has {len(X.shape)} dimensions; use a matrix with one sample per row")
        if self.columns is not None or self.missing is not None:
            raise ValueError("columns and missing are for tables in host memory, but X is on a GPU; remove them")
        V._check_n_features(self, X, reset=reset)
        if reset:
            self._table = None
            self.__dict__.pop("feature_names_in_", None)
        elif getattr(self, "_table", None):
            raise ValueError("X is on a GPU, but the model was fitted to a data frame; use a data frame")
        if not y:
            return X
        host = D.to_host(y[0])
        if options.get("y_numeric"):
            host = T.number_targets(host)
        checked = V.validate_data(self, y=host, **options) if reset else V._check_y(host, **options)
        V.check_consistent_length(np.empty((X.shape[0], 0)), checked)
        return X, checked

    def _roles(self, frame: Any, y: Any, classes: bool, weight: Any, group: Any, time: Any) -> list[dict[str, Any]]:
        """Return the columns of targets, weights, groups and times for the library."""
        rows = len(frame)
        keys = {"group": sort_keys(group, "groups", rows, None), "time": sort_keys(time, "times", rows, None)}
        return T.role_columns(y, classes, weight=self._weights(weight, frame), **keys)

    def _encode(self, table: Any, schema: str | None, names: bool, roles: Sequence[dict[str, Any]] = ()) -> Array:
        """Encode a table as features by ``schema`` or by a new schema, which is saved; ``names``: save column names."""
        X, found, features = T.encode(shared_context(), table, schema, roles)
        if names:
            V._check_feature_names(self, table, reset=True)
            V._check_n_features(self, table, reset=True)
        if schema is None:
            found = K.with_missing_words(found, K.missing_values(self.missing))
            self._table = None if found is None else (found, features)
        return X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.allow_nan = tags.input_tags.categorical = True
        return tags

    def _weights(self, sample_weight: Any, X: Array) -> Array | None:
        if sample_weight is None:
            return None
        like = X if isinstance(X, np.ndarray) else np.empty((X.shape[0], 1))
        weights = V._check_sample_weight(D.to_host(sample_weight), like, dtype=np.float64, ensure_non_negative=True)
        if not (weights > 0).any():
            raise ValueError("sample_weight: all weights are zero; at least one must be positive")
        return np.ascontiguousarray(weights)


def check_new_missing_values(last: Any, now: Any) -> None:
    """Reject columns with missing values that had none in the last fit, so that the model has no feature for them."""
    known, gaps = (T.missing_columns(table[0] if table else None) for table in (last, now))
    if names := [name for name in gaps if name not in known]:
        raise ValueError(
            f"warm_start: X has missing values in column{'s' if len(names) > 1 else ''} {', '.join(names)}, where the last "
            "fit had none; fill them, or set warm_start=False"
        )


def sort_keys(values: Any, name: str, rows: int | None, kept: Array | None) -> Array | None:
    """Return groups or times as numbers that sort in the same order. ``kept`` selects samples; None: all samples."""
    if values is None:
        return None
    found = np.asarray(values)
    if found.ndim != 1 or (rows is not None and len(found) != rows):
        raise ValueError(f"{name} has the shape {found.shape}; it must be ({rows},)")
    if name == "times" and found.dtype.kind not in "iufM":
        raise ValueError(f"times is an array of {found.dtype}; use numbers or dates")
    numbers = found.astype("datetime64[us]").astype(np.int64) if found.dtype.kind == "M" else found
    if name == "groups":
        numbers = np.unique(found, return_inverse=True)[1].reshape(-1)
    numbers = numbers if kept is None else numbers[kept]
    return np.ascontiguousarray(numbers, dtype=np.float64)
