# SPDX-License-Identifier: BSD-3-Clause
"""Numbers printed in "Toward Large Kernel Models" (Abedsoltan, Belkin, Pandit; ICML 2023).

The figures of the paper print no numbers. Exact comparisons are possible only with the sizes given in the text, and
with the table of random and k-means centers (Laplace kernel, EigenPro 3, bandwidth not given).
"""

# (data, centers) -> accuracy in % for p = 100, 1000, 10000.
SIZES = (100, 1000, 10000)
TABLE = {
    ("mnist", "kmeans"): (91.89, 95.96, 97.69),
    ("mnist", "random"): (87.24, 94.96, 97.31),
    ("fashion-mnist", "kmeans"): (78.66, 85.55, 88.13),
    ("fashion-mnist", "random"): (76.24, 84.59, 87.84),
    ("cifar-10", "kmeans"): (36.24, 45.12, 52.72),
    ("cifar-10", "random"): (33.37, 44.19, 49.92),
}
EPOCHS = 50                # of the figure on the number of samples
MILLION_CENTERS = 1_000_000
MILLION_SAMPLES = 5_000_000
STREAMED = 120_000_000
FALKON_CENTERS = 256_000   # the maximum number with 340 GB of memory


def accuracy(data, centers, p):
    """Return an accuracy of the table as a fraction, or None if the paper does not print it."""
    row = TABLE.get((data, centers))
    return row[SIZES.index(p)] / 100 if row and p in SIZES else None
