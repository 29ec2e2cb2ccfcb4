# SPDX-License-Identifier: BSD-3-Clause
"""Fit and predict with PyTorch tensors on a GPU, without copying the samples to the host.

A profile of the predictions shows the number of bytes copied between host and GPU.
"""

import json
import os
import sys
import tempfile

try:
    import torch
except ImportError:
    torch = None
if torch is None or not torch.cuda.is_available():
    sys.exit("this example needs PyTorch and a GPU")

import mercer

SAMPLES, FEATURES = 100_000, 128

generator = torch.Generator(device="cuda").manual_seed(0)
X = torch.randn((SAMPLES, FEATURES), device="cuda", generator=generator)
y = torch.sin(X[:, :1] + X[:, 1:2] * 0.5)
train, test = slice(0, SAMPLES * 9 // 10), slice(SAMPLES * 9 // 10, None)

model = mercer.KernelRegressor(
    "gaussian", bandwidth=10.0, centers=5000, ridge=1e-3, device="cuda", advanced={"arithmetic": "fast"}, random_state=0
).fit(X[train], y[train])
model.predict(X[test])  # copies the model to the device

activities = [torch.profiler.ProfilerActivity.CUDA, torch.profiler.ProfilerActivity.CPU]
with torch.profiler.profile(activities=activities) as profile:
    F = model.predict(X[test])
    error = torch.mean((F - y[test]) ** 2) / torch.var(y[test])
    torch.cuda.synchronize()

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "trace.json")
    profile.export_chrome_trace(path)
    with open(path, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
moved = {"HtoD": 0, "DtoH": 0}
for event in events:
    for way in moved:
        if event.get("cat") == "gpu_memcpy" and way in event["name"]:
            moved[way] += event["args"].get("bytes", 0)

print(f"predictions: {type(F).__module__}.{type(F).__name__} of {tuple(F.shape)} on {F.device}")
print(f"share of the variance that is left: {error.item():.4f}")
print(f"samples on the device: {X[test].numel() * 4:,} bytes")
print(f"to the host {moved['DtoH']:,} bytes, from the host {moved['HtoD']:,}")
