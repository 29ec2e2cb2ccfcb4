# SPDX-License-Identifier: BSD-3-Clause
"""Augment samples: each image is shifted randomly in every epoch. Byte samples remain bytes."""

import numpy as np

from mercer import Dataset, Model, Trainer, median_distance

train, test = Dataset.synthesize("digits", 800, random_state=0), Dataset.synthesize("digits", 1_000, first=10**6)
X, y = train.read()
X_test, y_test = test.read()

for augment in (None, "shift:pixels=2"):
    model = Model(f"laplace:bandwidth={median_distance(X)}", X, outputs=10)
    trainer = Trainer(model, solver="ep4", epochs=8, classification=True, random_state=0)
    trainer.fit(train, augment=augment, samples=2_400)
    print(f"augment {augment}: accuracy {np.mean(model.classify(X_test) == y_test):.4f}")
