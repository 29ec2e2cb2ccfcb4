# SPDX-License-Identifier: BSD-3-Clause
"""A fit of the library's: everything between samples and a model is decided there, as for ``mercer train``."""

from __future__ import annotations

import ctypes as C
from collections.abc import Iterable
from typing import Any

from . import _arrays as A
from . import _library as L
from ._arrays import Array
from ._context import release_with
from ._dataset import Dataset
from ._kernels import Kernel
from ._model import Model, release
from ._training import Callback, Watch, fill, report_dict, spectrum


class Fitting:
    """One fit of a dataset; what it needs lives as long as it.

    Parameters
    ----------
    data : Dataset
    kernel : Kernel or str
    options, train : dict
        Fields of ``mercer_fit_options`` and ``mercer_train_options``.
    model : Model, optional
        To be trained further as it is.
    """

    def __init__(
        self, data: Dataset, kernel: Kernel | str, options: dict[str, Any], train: dict[str, Any],
        callbacks: Iterable[Callback] = (), *, precision: int = 0, centers: Dataset | None = None,
        model: Model | None = None,
    ) -> None:
        context = data.context
        self.context, self._model, self._kernel = context, model, kernel if isinstance(kernel, Kernel) else None
        self.watch = Watch(context, callbacks)
        inner, struct = fill(L.mercer_train_options(progress=self.watch.callback), train), L.mercer_fit_options(precision=precision)
        fill(struct, options if self._kernel else {"kernel": kernel, **options})
        struct.train = C.pointer(inner)
        struct.given_centers = None if centers is None else centers.handle
        struct.model = None if model is None else model.handle
        if self._kernel:
            struct.kernel_function = C.pointer(self._kernel.struct)
        # Nobody is told how far that is: but Control-C is noticed.
        struct.progress = L.mercer_fit_callback(self.watch.failure.guard(lambda *_: context.interrupted))
        self.handle = C.c_void_p()
        context.call("mercer_fitting_open", self.handle, context.handle, data.handle, struct)
        release_with(self, release, "mercer_fitting_free", self.handle, (data, centers, model, struct, inner))

    def _call(self, name: str, *arguments: Any) -> None:
        with self.watch.failure, (self._kernel or Kernel("linear")).failure:
            self.context.call(name, self.handle, *arguments)

    def prepare(self) -> None:
        """Everything up to the plan."""
        self._call("mercer_fitting_prepare", None)

    def run(self) -> None:
        """Trains, and calibrates."""
        self._call("mercer_fitting_run", None)

    def result(self) -> tuple[Model, dict[str, Any], Array, float]:
        """The model, which is then the caller's; what training did; the spectrum; the temperature of probabilities."""
        training = L.mercer_report()
        report = L.mercer_fit_report(training=C.pointer(training))
        self._call("mercer_fitting_query", report)
        told = report_dict(training) if training.plan else {}
        values = spectrum(self.context, report.trainer)
        return self.model(), told, values, report.temperature

    def model(self) -> Model:
        """The model, trained or not."""
        handle = C.c_void_p()
        self._call("mercer_fitting_take_model", handle)
        if self._model is not None:
            return self._model
        own = Model.__new__(Model)
        own._adopt(self.context, handle, self._kernel if self._kernel and self._kernel._function else None)
        return own


def array_data(context: Any, X: Array) -> Dataset:
    """Samples without targets."""
    return Dataset._of_arrays(context, A.points(X, "centers"))
