#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""sklearn_models.py [--json] [--quick] [--filter TEXT]: scikit-learn's Nystroem + Ridge and KernelRidge beside Mercer, on MNIST.

The same minimisation on both sides, in each one's usual way: sum_i (f(x_i) - y_i)^2 + lambda alpha' K(Z, Z) alpha with a Gaussian kernel of
bandwidth 5 on pixels/255, one-hot targets. Nystroem's features K(X, Z) K(Z, Z)^(-1/2) and Ridge without intercept are that problem
for p random rows as centers; KernelRidge is it with all rows as centers. Mercer trains with its defaults (`mercer train`), in the
same run. Seconds are of training, without reading files and prediction. Sizes end where scikit-learn takes minutes: its Nystroem
makes a singular value decomposition of K(Z, Z).
"""
import sys
import time

import common

BANDWIDTH, LAMBDA, CLASSES = 5.0, 0.1, 10
NYSTROEM, KERNEL_RIDGE = ((60000, 500), (60000, 1000), (60000, 2000)), (2000, 5000)
COLUMNS = (("case", "<28"), ("n", ">7"), ("p", ">6"), ("seconds", ">9.2f"), ("accuracy", ">8.2f"), ("mercer_s", ">9.2f"),
           ("mercer_accuracy", ">8.2f"), ("times", ">7.2f"), ("mercer_solver", ">7"))


def make(case, p):
    from sklearn.kernel_approximation import Nystroem
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline

    gamma = 1 / (2 * BANDWIDTH**2)
    if case == "KernelRidge":
        return KernelRidge(kernel="rbf", gamma=gamma, alpha=LAMBDA)
    return make_pipeline(Nystroem(kernel="rbf", gamma=gamma, n_components=p, random_state=1), Ridge(alpha=LAMBDA, fit_intercept=False))


def compare(options, case, data, n, p):
    import numpy
    import sklearn

    X, labels, test_X, test_labels = data
    model, targets = make(case, p), numpy.eye(CLASSES, dtype=numpy.float32)[labels[:n]]
    start = time.perf_counter()
    model.fit(X[:n], targets)
    theirs = time.perf_counter() - start
    accuracy = 100 * float((model.predict(test_X).argmax(1) == test_labels).mean())
    ours, mercer_accuracy, plan = common.mercer_train(
        options, "--rows", n, "--centers", p, "--kernel", f"gaussian:bandwidth={BANDWIDTH}", "--lambda", LAMBDA, "--seed", 1)
    entry = {
        "bench": "sklearn", "package": "sklearn", "package_version": sklearn.__version__, "case": case, "n": n, "p": p, "d": X.shape[1],
        "lambda": LAMBDA, "seconds": theirs, "accuracy": accuracy, "mercer_s": ours, "mercer_accuracy": mercer_accuracy,
        "mercer_solver": plan["solver"], "times": theirs / ours,
    }
    common.report(options, entry, COLUMNS)


def main():
    options = common.options_of(__doc__.splitlines()[0])
    if common.missing("sklearn_models.py", ("numpy", "sklearn"), options.data):
        return 0
    data = common.load_mnist_floats(options.data)
    cases = [("Nystroem + Ridge", n, p) for n, p in NYSTROEM] + [("KernelRidge", n, n) for n in KERNEL_RIDGE]
    if options.quick:
        cases = [("Nystroem + Ridge", 2000, 100), ("KernelRidge", 500, 500)]
    if not options.json:
        print(f"{'scikit-learn beside Mercer':<28} {'n':>7} {'p':>6} {'seconds':>9} {'test %':>8} {'mercer s':>9} {'test %':>8} {'times':>7}")
    for case, n, p in cases:
        if options.filter in case:
            compare(options, case, data, n, p)
    return 0


if __name__ == "__main__":
    sys.exit(main())
