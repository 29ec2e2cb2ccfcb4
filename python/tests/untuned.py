# SPDX-License-Identifier: BSD-3-Clause
"""The estimators with tune="off", by flat names of options. Most tests use them; the search has its own tests."""

from functools import partial

import mercer
from mercer import _estimators as E

OPTIONS = E.ADVANCED | E.TARGETS_ONLY | E.CLASSES_ONLY


def spread(estimator, parameters):
    """Return parameters of an estimator, with options moved into ``advanced``."""
    own = estimator._get_param_names()
    advanced = {name: value for name, value in parameters.items() if name in OPTIONS and name not in own}
    kept = {name: value for name, value in parameters.items() if name not in advanced}
    return kept | {"advanced": advanced} if advanced else kept


def make(estimator, *positional, **parameters):
    return estimator(*positional, **spread(estimator, parameters))


def flat(estimator):
    """Return a function that makes an estimator from flat names of options, with a search."""
    return partial(make, estimator)


def KernelClassifier(*positional, **parameters):  # noqa: N802 (the name of the class that it makes)
    return make(mercer.KernelClassifier, *positional, **{"tune": "off", **parameters})


def KernelRegressor(*positional, **parameters):  # noqa: N802
    return make(mercer.KernelRegressor, *positional, **{"tune": "off", **parameters})
