#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""eigenpro.py [--json] [--quick] [--filter TEXT]: compare EigenPro 3 and 4 as plain PyTorch loops with Mercer, on MNIST.

The loops are a direct implementation of the papers: float32 on all cores, distances from a matrix product, kernel
values in separate passes, projections by EigenPro 2 over the centers. Mercer's ep3 and ep4 are timed in the same run,
with the same data, kernel (Laplace, bandwidth 10 on pixels/255), centers, sample size and number of eigenpairs. In
cases with "stored", the loops keep K(Z, Z) in memory, unlike the published loops. Evaluation is not timed.

  f = sum_j alpha_j K(., z_j);  E, L: top q eigenpairs of K(X_s, X_s) / s, t the next eigenvalue;  D = (1 - t/L) / L / s
  a batch, g = f(X_m) - Y:      h = K(Z, X_m) g - C E' K(X_s, X_m) g,  C = K(Z, X_s) E D
  EigenPro 3, every batch:      alpha -= (eta/m) theta,  K(Z, Z) theta = h up to the accuracy of one pass of EigenPro 2
  EigenPro 4:                   batches become temporary centers and h is accumulated; one projection per T = p/m batches
"""
import sys
import time

import common

BANDWIDTH, CLASSES, WANTED = 10.0, 10, 97.3
COLUMNS = (("case", "<34"), ("epochs", ">6"), ("setup_s", ">8.2f"), ("epoch_s", ">8.2f"), ("seconds", ">8.2f"), ("accuracy", ">8.2f"),
           ("mercer_s", ">8.2f"), ("mercer_accuracy", ">8.2f"), ("times", ">7.2f"))


def laplace(x, z, bandwidth=BANDWIDTH):
    k = torch.addmm((z * z).sum(1)[None, :], x, z.T, alpha=-2)
    return k.add_((x * x).sum(1)[:, None]).clamp_(min=0).sqrt_().mul_(-1 / bandwidth).exp_()


class Preconditioner:
    """Top eigenpairs of the kernel matrix of a sample, and the step size and batch size computed from them."""

    def __init__(self, points, s, q, gamma):
        self.rows = torch.randperm(len(points))[:s]
        self.sample = points[self.rows]
        values, vectors = torch.linalg.eigh(laplace(self.sample, self.sample).double() / s)
        values, tail = values[-q:], float(values[-q - 1])
        self.E = vectors[:, -q:].float()
        self.ED = (vectors[:, -q:] * ((1 - tail / values) / values / s)).float()
        self.batch = max(1, min(len(points), int(1 / tail)))  # K(x, x) = 1
        self.step = gamma * 2 / (1 + (self.batch - 1) * tail)  # eta / m

    def coordinates(self, kernel_with_sample, g):
        return self.E.T @ (kernel_with_sample.T @ g)


class Projector:
    """Solver of K(Z, Z) theta = h by one pass of EigenPro 2 over the centers."""

    def __init__(self, Z, store):
        self.Z = Z
        self.inner = Preconditioner(Z, min(3000, len(Z)), min(150, len(Z) // 20), 0.95)
        self.K = laplace(Z, Z) if store else None

    def solve(self, h):
        inner, theta = self.inner, torch.zeros_like(h)
        for rows in torch.randperm(len(self.Z)).split(inner.batch):
            k = laplace(self.Z[rows], self.Z) if self.K is None else self.K[rows]
            g = k @ theta - h[rows]
            theta[rows] -= inner.step * g
            theta[inner.rows] += inner.step * (inner.ED @ inner.coordinates(k[:, inner.rows], g))
        return theta


class Loop:
    def __init__(self, X, Y, p, solver, store):
        self.X, self.Y, self.Z = X, Y, X[torch.randperm(len(X))[:p]]
        s, q = min(3000, len(X) // 2), min(150, p // 10)
        self.pre = Preconditioner(X, s, q, 0.5 if solver == "ep3" else 0.95)
        self.C = laplace(self.Z, self.pre.sample) @ self.pre.ED
        self.projector = Projector(self.Z, store)
        self.alpha = torch.zeros(p, CLASSES)
        self.period = 1 if solver == "ep3" else max(1, p // self.pre.batch)
        self.start_over()

    def start_over(self):
        self.sum = torch.zeros_like(self.alpha)
        self.temporary, self.weights = [], []
        self.sample_weights = torch.zeros(len(self.pre.sample), CLASSES)

    def batch(self, x, y):
        pre, kz, ks = self.pre, laplace(x, self.Z), laplace(x, self.pre.sample)
        f = kz @ self.alpha + ks @ self.sample_weights
        for points, weights in zip(self.temporary, self.weights):
            f += laplace(x, points) @ weights
        g = f - y
        u = pre.coordinates(ks, g)
        self.sum -= pre.step * (kz.T @ g - self.C @ u)
        if self.period > 1:
            self.temporary.append(x)
            self.weights.append(-pre.step * g)
            self.sample_weights += pre.step * (pre.ED @ u)

    def project(self):
        self.alpha += self.projector.solve(self.sum)
        self.start_over()

    def epoch(self):
        for number, rows in enumerate(torch.randperm(len(self.X)).split(self.pre.batch)):
            self.batch(self.X[rows], self.Y[rows])
            if (number + 1) % self.period == 0:
                self.project()
        if self.temporary:
            self.project()

    def accuracy(self, X, labels):
        right = sum(int(((laplace(x, self.Z) @ self.alpha).argmax(1) == y).sum()) for x, y in zip(X.split(2000), labels.split(2000)))
        return 100 * right / len(X)


def run(data, p, solver, store, most_epochs):
    """Train to the target accuracy or for `most_epochs`; return seconds of set-up, and seconds and test accuracy of each epoch."""
    X, labels, test_X, test_labels = data
    torch.manual_seed(1)
    start = time.perf_counter()
    loop = Loop(X, torch.nn.functional.one_hot(labels, CLASSES).float(), p, solver, store)
    setup, seconds, accuracies = time.perf_counter() - start, [], []
    while len(seconds) < most_epochs and (not accuracies or accuracies[-1] < WANTED):
        start = time.perf_counter()
        loop.epoch()
        seconds.append(time.perf_counter() - start)
        accuracies.append(loop.accuracy(test_X, test_labels))
    return setup, seconds, accuracies


def compare(options, data, p, solver, store, most_epochs):
    """Report two lines: after one epoch, and after the last epoch (target accuracy or maximum number of epochs)."""
    name = f"{solver}{', K(Z,Z) stored' if store else ''}"
    setup, seconds, accuracies = run(data, p, solver, store, most_epochs)
    for epochs, case, theirs in ((1, f"mnist {solver} one epoch", f"{name}, one epoch"),
                                 (len(seconds), f"mnist to {WANTED} %", f"{name}, to {WANTED} %")):
        if most_epochs == 1 and "one epoch" not in case:
            continue
        ours = mercer(options, case)
        total = setup + sum(seconds[:epochs])
        entry = {
            "bench": "eigenpro", "package": "torch", "package_version": torch.__version__, "threads": torch.get_num_threads(),
            "case": theirs, "n": len(data[0]), "p": p, "epochs": epochs, "reached": accuracies[epochs - 1] >= WANTED, "setup_s": setup,
            "epoch_s": sum(seconds[:epochs]) / epochs, "seconds": total, "accuracy": accuracies[epochs - 1],
            "mercer_case": case, "mercer_s": ours and ours["median_s"], "mercer_accuracy": ours and ours["test_accuracy"],
            "times": ours and total / ours["median_s"],
        }
        common.report(options, entry, COLUMNS)


KNOWN = {}


def mercer(options, case):
    """Return Mercer's result of a case, measured once per case; None in a quick run, whose sizes differ."""
    if not options.quick and case not in KNOWN:
        KNOWN[case] = common.mercer_case(options, case)
    return KNOWN.get(case)


def main():
    options = common.options_of(__doc__.splitlines()[0])
    if common.missing("eigenpro.py", ("numpy", "torch"), options.data):
        return 0
    global torch
    import torch

    arrays = [torch.from_numpy(array.copy()) for part in ("train", "t10k") for array in common.load_mnist(options.data, part)]
    data = [arrays[0].float() / 255, arrays[1].long(), arrays[2].float() / 255, arrays[3].long()]
    p = 10000
    if options.quick:
        data, p = [data[0][:4000], data[1][:4000], data[2], data[3]], 500
    if not options.json:
        print(f"{'PyTorch and Mercer, MNIST':<34} {'epochs':>6} {'set-up':>8} {'epoch s':>8} {'all s':>8} {'test %':>8} "
              f"{'mercer s':>8} {'test %':>8} {'times':>7}")
    for solver, store, most_epochs in (("ep4", True, 5), ("ep4", False, 1), ("ep3", False, 1)):
        if options.filter in f"{solver}{' stored' if store else ''}":
            compare(options, data, p, solver, store, min(2, most_epochs) if options.quick else most_epochs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
