# SPDX-License-Identifier: BSD-3-Clause
"""scikit-learn estimators: fit a table or an array, save and load models, show results.

``parameters`` has the parameters and their checks, ``inputs`` the conversion of X and y, ``base`` the fits, ``streams``
partial_fit, ``held_out`` and ``results`` the results on held-out rows, ``show`` pages and plots.
"""

from .base import KernelEstimator
from .classifier import KernelClassifier
from .files import load
from .parameters import ADVANCED, CLASSES_ONLY, DEFAULT_EFFORT, TARGETS_ONLY
from .regressor import KernelRegressor

__all__ = [
    "ADVANCED", "CLASSES_ONLY", "DEFAULT_EFFORT", "TARGETS_ONLY", "KernelClassifier", "KernelEstimator", "KernelRegressor", "load",
]
