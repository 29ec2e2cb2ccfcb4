# SPDX-License-Identifier: BSD-3-Clause
"""All estimator checks of scikit-learn, with default parameters."""

import pytest

sklearn = pytest.importorskip("sklearn")

from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402

from mercer import KernelClassifier, KernelRegressor  # noqa: E402


@parametrize_with_checks([KernelClassifier(), KernelRegressor()])
def test_scikit_learn_check(estimator, check):
    check(estimator)

