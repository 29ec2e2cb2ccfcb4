# SPDX-License-Identifier: BSD-3-Clause
"""Options of mercer_fit for tests that call the C interface."""

from mercer import _library as L
from mercer._context import field_of


def fit_options(**fields):
    """Return a mercer_fit_options with these fields, which have the names in FIT_FIELDS and types of ctypes."""
    options = L.mercer_fit_options()
    for name, value in fields.items():
        owner, field = field_of(options, name)
        setattr(owner, field, value)
    return options
