# SPDX-License-Identifier: BSD-3-Clause
"""The estimators without a search, which has tests of its own: what most tests mean by a fit with defaults."""

from functools import partial

import mercer

KernelClassifier = partial(mercer.KernelClassifier, tune="off")
KernelRegressor = partial(mercer.KernelRegressor, tune="off")
