# SPDX-License-Identifier: BSD-3-Clause
"""Mercer: large kernel models, f(x) = sum_j alpha_j K(x, z_j).

:class:`KernelClassifier` and :class:`KernelRegressor` are scikit-learn estimators; :func:`load` reads them from model
files. All other functions and classes require only NumPy: :class:`Kernel`, :func:`kernel_matrix`,
:func:`kernel_matmul`, :class:`Model`, :class:`Trainer`, :class:`Dataset`, :func:`plan`, :func:`evaluate`,
:func:`permutation_importance`, :mod:`mercer.centers` and others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _library, centers
from ._context import Context, MercerWarning
from ._evaluation import evaluate, measure, partial_dependence, permutation_importance
from ._kernels import Kernel, kernel_matmul, kernel_matrix, median_distance
from ._model import Dataset, Model, file_header, target_moments
from ._training import Trainer, plan

if TYPE_CHECKING:
    from ._estimators import KernelClassifier, KernelRegressor, load

__version__: str = _library.lib.mercer_version().decode()

__all__ = [
    "Context", "Dataset", "Kernel", "KernelClassifier", "KernelRegressor", "MercerWarning", "Model", "Trainer", "centers",
    "evaluate", "file_header", "kernel_matmul", "kernel_matrix", "load", "measure", "median_distance", "partial_dependence",
    "permutation_importance", "plan", "target_moments",
]


_NEED_SKLEARN = ("KernelClassifier", "KernelRegressor", "load")


def __getattr__(name: str) -> Any:
    # Estimators are imported on first access, because only they require scikit-learn.
    if name not in _NEED_SKLEARN:
        raise AttributeError(f"module 'mercer' has no attribute {name!r}")
    try:
        from . import _estimators
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "sklearn":
            raise ImportError(f"mercer.{name} needs scikit-learn: pip install 'mercer[sklearn]'") from error
        raise
    return getattr(_estimators, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_NEED_SKLEARN])
