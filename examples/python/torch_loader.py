# SPDX-License-Identifier: BSD-3-Clause
"""Train on the batches of a PyTorch data loader with Trainer.step; tensors in host memory are not copied."""

import sys

try:
    import torch
except ImportError:
    print("this example needs PyTorch: pip install torch")
    sys.exit(0)

from mercer import Model, Trainer, median_distance

torch.manual_seed(0)
X = torch.rand(4_000, 4) * 6 - 3
y = torch.sin(X[:, :1]) * torch.cos(X[:, 1:2])
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X, y), batch_size=500, shuffle=True)

model = Model(f"matern52:bandwidth={median_distance(X)}", X[:1_000], outputs=1)
trainer = Trainer(model, solver="ep4")
for epoch in range(5):
    for batch, targets in loader:
        trainer.step(batch, targets)
    trainer.finish()
    error = torch.mean((torch.from_numpy(model.predict(X)) - y) ** 2)
    print(f"epoch {epoch + 1}: mean squared error {error:.5f}")
