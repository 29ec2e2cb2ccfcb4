# SPDX-License-Identifier: BSD-3-Clause
"""The estimators with tune="off". Most tests use them as defaults, because the search has its own tests."""

from functools import partial

import mercer

KernelClassifier = partial(mercer.KernelClassifier, tune="off")
KernelRegressor = partial(mercer.KernelRegressor, tune="off")
