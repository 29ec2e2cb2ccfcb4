# SPDX-License-Identifier: BSD-3-Clause
"""Training on batches: partial_fit of both estimators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _arrays as A
from .. import _device as D
from .. import _library as L
from .._context import seed_from
from .._training import Trainer
from .parameters import Part

if TYPE_CHECKING:
    from typing_extensions import Self

    from .base import Samples, Task


class StreamMixin(Part):
    """Steps of training on batches."""

    def _partial_fit(self, task: Task, samples: Samples) -> Self:
        self._check_parameters()
        samples.X = X = D.to_host(samples.X)  # batches are preprocessed on the host
        y, weights, first = samples.y, samples.weights, not hasattr(self, "model_")
        model, trainer = (None, None) if first else (self.model_, self._trainer)
        train = self._train_options()
        del train["epochs"]
        kind = L.lib.mercer_solver_kind_of(L.text(self.solver, "solver"))
        if self.solver == "auto" or kind in (L.SOLVER_DIRECT, L.SOLVER_STEPS, L.SOLVER_ON_SAMPLES):
            train["solver"] = "ep4"  # the other kinds of solvers need all samples at once
        if model is None:
            self._warn_unused_by_streams(train["solver"])
            self._seed = seed_from(self.random_state)
            model = self._fitting(task, samples, self._seed, train=train).model()
        if model.weights.shape[1] != task.outputs:
            raise ValueError(f"y has {task.outputs} columns, but earlier batches had {model.weights.shape[1]}")
        if trainer is None:
            own: dict[str, Any] = {"memory": self.memory, "random_state": getattr(self, "_seed", 0)}
            trainer = Trainer(model, classification=task.classes is not None, **train, **own)
        # Convert each batch to the element type of the first batch.
        seen = model.preprocessed(X)
        stream_type = np.dtype(getattr(self, "_stream_type", None) or seen.dtype)
        trainer.step(A.points(seen, "X", stream_type), np.eye(task.outputs)[y] if task.classes is not None else y, weights)
        if first:
            self._store_model(model, task)
            self._seen = None
            self.history_, self.plan_, self.summary_, self.spectrum_ = {}, {}, {}, np.zeros(0)
            self.n_iter_ = 0
        self._trainer, self._stream_type, self._behind = trainer, stream_type.name, True
        self.n_iter_ += 1
        return self

    def _sync(self) -> None:
        """Write pending steps of partial_fit into the model."""
        if self._behind and self._trainer is not None:
            self._trainer.finish()
            self._behind = False
