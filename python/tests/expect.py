# SPDX-License-Identifier: BSD-3-Clause
"""Expected warnings, compared by their field and the data in their texts; whole texts are in test_messages.py."""

import re
from contextlib import contextmanager

import pytest

from mercer import MercerWarning


def of_mercer(recorded):
    """Return the recorded warnings of Mercer as (field, text)."""
    return [(one.message.field, str(one.message)) for one in recorded if issubclass(one.category, MercerWarning)]


@contextmanager
def warns(field, *data):
    """Expect a warning about an option or a column whose text contains the data, in this order."""
    pattern = ".*".join(map(re.escape, data))
    with pytest.warns(MercerWarning, match=pattern) as recorded:
        yield recorded
    found = of_mercer(recorded)
    assert any(about == field and re.search(pattern, text) for about, text in found), found
