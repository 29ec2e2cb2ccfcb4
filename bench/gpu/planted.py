# SPDX-License-Identifier: BSD-3-Clause
"""planted.py N FOLDER: write samples whose classes differ in 64 of 1280 directions, to test learned metrics; needs PyTorch and a GPU.

The samples have 400 clusters in 10 classes, noise of standard deviation 0.6 in every direction, and a random rotation. The
files are x.npy (N, 1280) in half precision with labels xy.npy, and 10,000 test samples t.npy with labels ty.npy.
"""
import sys
import time

import numpy as np
import torch

DIRECTIONS, FEATURES, CLUSTERS, CLASSES, BLOCK = 64, 1280, 400, 10, 50000


def write(folder, name, rows, means, generator):
    x = np.lib.format.open_memmap(f"{folder}/{name}.npy", mode="w+", dtype=np.float16, shape=(rows, FEATURES))
    y, host = np.empty(rows, np.int32), torch.from_numpy(x)
    for i in range(0, rows, BLOCK):
        k = min(BLOCK, rows - i)
        which = torch.randint(0, CLUSTERS, (k,), device="cuda", generator=generator)
        noise = torch.randn((k, FEATURES), device="cuda", generator=generator)
        host[i : i + k] = (means[which] + 0.6 * noise).half().cpu()
        y[i : i + k] = (which % CLASSES).cpu().numpy()
    np.save(f"{folder}/{name}y.npy", y)


def main():
    rows, folder, start = int(float(sys.argv[1])), sys.argv[2], time.time()
    generator = torch.Generator(device="cuda").manual_seed(0)
    means = torch.zeros((CLUSTERS, FEATURES), device="cuda")
    means[:, :DIRECTIONS] = torch.randn((CLUSTERS, DIRECTIONS), device="cuda", generator=generator)
    means = means @ torch.linalg.qr(torch.randn((FEATURES, FEATURES), device="cuda", generator=generator))[0]
    write(folder, "x", rows, means, generator)
    write(folder, "t", 10000, means, generator)
    print("%.1f s" % (time.time() - start))


main()
