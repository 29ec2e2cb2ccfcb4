# SPDX-License-Identifier: BSD-3-Clause
"""Classify handwritten digits: train on two thirds of the rows, test on the rest."""

import time

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from mercer import KernelClassifier

X, y = load_digits(return_X_y=True)
X = X.astype("uint8")  # pixels: one scale for all columns; other types are standardized by column
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=1 / 3, random_state=0, stratify=y)

start = time.perf_counter()
model = KernelClassifier(random_state=0).fit(X_train, y_train)
accuracy = model.score(X_test, y_test)
print(f"accuracy {accuracy:.4f} in {time.perf_counter() - start:.2f} s, kernel {model.model_.kernel}")
print("probabilities of the first:", model.predict_proba(X_test[:1]).round(3)[0])
