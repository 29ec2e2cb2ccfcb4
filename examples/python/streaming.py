# SPDX-License-Identifier: BSD-3-Clause
"""Train on data that arrive in pieces, with partial_fit: evaluate at any time, and continue after a restart."""

import pickle

from mercer import Dataset, KernelClassifier

stream = Dataset.synthesize("digits", 12_000, random_state=0)  # samples are generated when they are read
X_test, y_test = stream.read(10_000, 2_000)

model = KernelClassifier(centers=800, random_state=0)
for first in range(0, 6_000, 1_000):
    X, y = stream.read(first, 1_000)
    model.partial_fit(X, y, classes=range(10))
    print(f"{first + 1_000:6d} samples: accuracy {model.score(X_test, y_test):.4f}")
    if first == 2_000:
        model = pickle.loads(pickle.dumps(model))  # as after a restart
print("probabilities of the first:", model.predict_proba(X_test[:1]).round(3)[0])
