#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rivals.py [--json] [--quick] [--filter TEXT]: measure accuracy and training time of kernel models of other packages on MNIST, by size.

All models use the same data: 60,000 training and 10,000 test images, pixels/255, one-hot targets. All use a Gaussian
kernel of bandwidth 5, and a ridge of 0.1 if the model has a ridge. svgp learns the bandwidth, starting from 5. Each
package is used in its usual way, on all cores:

  nystroem N centers    scikit-learn: Nystroem features of N random rows, then Ridge (the minimization of Falkon, by a factorization)
  fourier N features    scikit-learn: random Fourier features (RBFSampler), then Ridge
  ridge N rows          scikit-learn: KernelRidge on the first N rows
  svgp N inducing       GPyTorch: stochastic variational Gaussian process, ten outputs as regressions with shared inducing points, Adam,
                        batches of 1,024 rows; four points per pass, until the time limit

Times are processor seconds (all threads) of training only, without reading files, predictions and imports. `make paper` plots these times
together with the times of Mercer.
"""
import sys
import time

import common

BANDWIDTH, LAMBDA, CLASSES = 5.0, 0.1, 10
SIZES = {"nystroem": ("centers", (100, 300, 1000, 2000)), "fourier": ("features", (300, 1000, 3000)), "ridge": ("rows", (1000, 3000, 6000)),
         "svgp": ("inducing", (200,))}
SVGP_SECONDS, SVGP_BATCH, SVGP_RATE = 60, 1024, 0.02
COLUMNS = (("case", "<28"), ("package", "<10"), ("train_cpu_s", ">9.2f"), ("train_s", ">9.2f"), ("accuracy", ">8.4f"))


def cases(quick=False):
    """Return (name, kind, size) of each case; no name is a prefix of another."""
    return [(f"{kind} {size} {unit}", kind, size // 10 if quick else size) for kind, (unit, sizes) in SIZES.items()
            for size in (sizes[:1] if quick else sizes)]


def sklearn_model(kind, size):
    from sklearn.kernel_approximation import Nystroem, RBFSampler
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline

    gamma = 1 / (2 * BANDWIDTH**2)
    if kind == "ridge":
        return KernelRidge(kernel="rbf", gamma=gamma, alpha=LAMBDA)
    features = (Nystroem(kernel="rbf", gamma=gamma, n_components=size, random_state=1) if kind == "nystroem"
                else RBFSampler(gamma=gamma, n_components=size, random_state=1))
    return make_pipeline(features, Ridge(alpha=LAMBDA, fit_intercept=False))


def run_sklearn(kind, size, data):
    import numpy
    import sklearn

    X, labels, test_X, test_labels = data
    if kind == "ridge":
        X, labels = X[:size], labels[:size]
    model, targets = sklearn_model(kind, size), numpy.eye(CLASSES, dtype=numpy.float32)[labels]
    start, cpu = time.perf_counter(), time.process_time()
    model.fit(X, targets)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    accuracy = float((model.predict(test_X).argmax(1) == test_labels).mean())
    return {"package": "sklearn", "package_version": sklearn.__version__, "train_cpu_s": cpu, "train_s": seconds, "accuracy": accuracy}


def svgp_model(inducing):
    """Return ten Gaussian processes with one kernel and one set of inducing points, and their likelihood."""
    import gpytorch
    import torch

    class Model(gpytorch.models.ApproximateGP):
        def __init__(self):
            shape = torch.Size([CLASSES])
            weights = gpytorch.variational.CholeskyVariationalDistribution(len(inducing), batch_shape=shape)
            strategy = gpytorch.variational.VariationalStrategy(self, inducing, weights, learn_inducing_locations=True)
            super().__init__(gpytorch.variational.IndependentMultitaskVariationalStrategy(strategy, num_tasks=CLASSES))
            self.mean = gpytorch.means.ConstantMean(batch_shape=shape)
            self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())
            self.kernel.base_kernel.lengthscale = BANDWIDTH

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))

    return Model(), gpytorch.likelihoods.MultitaskGaussianLikelihood(num_tasks=CLASSES)


def run_svgp(size, data, most_seconds):
    import gpytorch
    import torch

    torch.manual_seed(1)
    X, labels, test_X, test_labels = (torch.from_numpy(array) for array in data)
    Y = torch.nn.functional.one_hot(labels.long(), CLASSES).float()
    start, cpu = time.perf_counter(), time.process_time()
    model, likelihood = svgp_model(X[torch.randperm(len(X))[:size]].clone())
    bound = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(X))
    optimizer = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=SVGP_RATE)
    points, away, away_cpu, batches = [], 0.0, 0.0, []
    while not points or points[-1][0] < most_seconds:
        model.train()
        for _ in range(len(X) // SVGP_BATCH // 4 + 1):
            batches = batches or list(torch.randperm(len(X)).split(SVGP_BATCH))
            rows = batches.pop()
            optimizer.zero_grad()
            loss = -bound(model(X[rows]), Y[rows])
            loss.backward()
            optimizer.step()
        seconds, used = time.perf_counter() - start - away, time.process_time() - cpu - away_cpu
        model.eval()
        with torch.no_grad():
            right = sum(int((model(x).mean.argmax(1) == y).sum()) for x, y in zip(test_X.split(1000), test_labels.split(1000)))
        points.append((round(used, 2), right / len(test_X)))
        away, away_cpu = time.perf_counter() - start - seconds, time.process_time() - cpu - used
    return {"package": "gpytorch", "package_version": gpytorch.__version__, "train_cpu_s": points[-1][0], "train_s": seconds,
            "accuracy": points[-1][1], "points": points}


def main():
    options = common.options_of(__doc__.splitlines()[0])
    if common.missing("rivals.py", ("numpy", "sklearn"), options.data):
        return 0
    import importlib.util

    data = common.load_mnist_floats(options.data)
    data[1], data[3] = data[1].copy(), data[3].copy()  # PyTorch warns about arrays that are not writable
    if options.quick:
        data[:2] = data[0][:2000], data[1][:2000]
    if not options.json:
        print(f"{'MNIST':<28} {'package':<10} {'cpu s':>9} {'seconds':>9} {'test':>8}")
    for name, kind, size in cases(options.quick):
        if options.filter not in name:
            continue
        if kind == "svgp" and importlib.util.find_spec("gpytorch") is None:
            if options.json:
                print('{"left_out": "svgp: gpytorch not found; tools/setup compare gets it"}')
            else:
                print("svgp: left out, gpytorch not found; `tools/setup compare` gets it", file=sys.stderr)
            continue
        result = run_svgp(size, data, 1 if options.quick else SVGP_SECONDS) if kind == "svgp" else run_sklearn(kind, size, data)
        common.report(options, {"bench": "rivals", "case": name, "size": size, **result}, COLUMNS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
