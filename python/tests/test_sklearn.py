# SPDX-License-Identifier: BSD-3-Clause
"""Every check that scikit-learn has for estimators.

One cannot hold for a model that passes through every sample, as one does whose centers are all samples and that has no
ridge: weights of classes then have nothing to weigh. It is made with a ridge instead.
"""

import pytest

sklearn = pytest.importorskip("sklearn")

from sklearn.utils.estimator_checks import check_class_weight_classifiers, parametrize_with_checks  # noqa: E402

from mercer import KernelClassifier, KernelRegressor  # noqa: E402


def unweighed(estimator):
    return {"check_class_weight_classifiers": "it interpolates"} if isinstance(estimator, KernelClassifier) else {}


@parametrize_with_checks([KernelClassifier(), KernelRegressor()], expected_failed_checks=unweighed)
def test_scikit_learn_check(estimator, check):
    check(estimator)


def test_weights_of_classes_with_a_ridge():
    check_class_weight_classifiers("KernelClassifier", KernelClassifier(ridge=1.0))
