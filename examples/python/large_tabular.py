# SPDX-License-Identifier: BSD-3-Clause
"""Train on a large table: a memory-mapped float32 file, k-means centers, scaled features, and a report page.

usage: large_tabular.py [ROWS] [CENTERS]
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import KernelRegressor, plan

rows = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
centers = int(sys.argv[2]) if len(sys.argv) > 2 else 2_000

folder = Path(tempfile.mkdtemp())
rng = np.random.default_rng(0)
X = rng.normal(size=(rows, 12)).astype(np.float32) * rng.uniform(0.1, 100, 12).astype(np.float32)
scale = X.std(axis=0)
y = np.sin(X[:, 0] / scale[0]) + (X[:, 1] / scale[1]) * (X[:, 2] / scale[2]) + 0.1 * rng.normal(size=rows)
np.save(folder / "x.npy", X)

X = np.load(folder / "x.npy", mmap_mode="r")
held = rows // 10
print(plan(rows - held, centers, X.shape[1], memory="4G")["text"])

model = make_pipeline(
    StandardScaler(),
    KernelRegressor("matern52", centers=centers, advanced={"center_method": "kmeans"}, memory="4G", random_state=0, verbose=1),
)
model.fit(X[held:], y[held:])
print(f"R^2 on {held} rows it has not seen: {model.score(X[:held], y[:held]):.4f}")
print("report:", model[-1].report(folder / "report.html"))
