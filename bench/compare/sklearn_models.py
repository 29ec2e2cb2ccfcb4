#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""sklearn_models.py [--json] [--quick] [--filter TEXT]: compare scikit-learn's Nystroem + Ridge and KernelRidge with Mercer, on MNIST.

Both packages solve the same problem: minimize sum_i (f(x_i) - y_i)^2 + lambda alpha' K(Z, Z) alpha with a Gaussian kernel of bandwidth 5 on
pixels/255 and one-hot targets. Nystroem features K(X, Z) K(Z, Z)^(-1/2) and Ridge without intercept solve it for p random rows as centers;
KernelRidge solves it with all rows as centers. Mercer's KernelRegressor gets the same kernel and lambda, and its plan chooses the solver.
Seconds are medians of calls of fit() in one process, alternating between the packages, for samples in float32 and float64. Before each
call, half a second lets waiting threads of the other package fall asleep. For KernelRidge, the output also has the largest difference from
scikit-learn's predictions in float64: `difference` for Mercer, `own_difference` for scikit-learn itself.
"""
import os
import statistics
import sys
import time

import common

BANDWIDTH, LAMBDA, CLASSES, PAUSE = 5.0, 0.1, 10, 0.5
NYSTROEM, KERNEL_RIDGE = ((10000, 500), (10000, 1000), (10000, 2000), (60000, 1000)), (2000, 5000, 10000)
COLUMNS = (("case", "<20"), ("dtype", "<8"), ("n", ">7"), ("p", ">6"), ("seconds", ">9.3f"), ("accuracy", ">8.2f"), ("mercer_s", ">9.3f"),
           ("mercer_accuracy", ">8.2f"), ("times", ">7.2f"), ("difference", ">9"), ("own_difference", ">9"), ("mercer_solver", ">7"))


def make_theirs(case, p):
    from sklearn.kernel_approximation import Nystroem
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline

    gamma = 1 / (2 * BANDWIDTH**2)
    if case == "KernelRidge":
        return KernelRidge(kernel="rbf", gamma=gamma, alpha=LAMBDA)
    return make_pipeline(Nystroem(kernel="rbf", gamma=gamma, n_components=p, random_state=1), Ridge(alpha=LAMBDA, fit_intercept=False))


def make_ours(p):
    from mercer import KernelRegressor

    return KernelRegressor("gaussian", bandwidth=BANDWIDTH, ridge=LAMBDA, centers=p, target_transform="none", tune="off", random_state=1,
                           advanced={"preprocess": "none"})


def timed(model, X, targets):
    time.sleep(PAUSE)
    start = time.perf_counter()
    model.fit(X, targets)
    return time.perf_counter() - start


def measure(case, n, p, dtype, data, repeats):
    """Return the median seconds and the predictions of scikit-learn and of Mercer, and Mercer's solver."""
    import numpy

    X, labels, test_X, _ = data
    X, test_X, targets = X[:n].astype(dtype), test_X.astype(dtype), numpy.eye(CLASSES, dtype=dtype)[labels[:n]]
    theirs, ours = [], []
    for _ in range(repeats):
        one, other = make_theirs(case, p), make_ours(p)
        theirs.append(timed(one, X, targets))
        ours.append(timed(other, X, targets))
    return statistics.median(theirs), one.predict(test_X), statistics.median(ours), other.predict(test_X), other.plan_["solver"]


def compare(options, case, data, n, p):
    import numpy
    import sklearn

    labels, exact = data[3], None
    for dtype in ("float64", "float32"):
        theirs, one, ours, other, solver = measure(case, n, p, dtype, data, 1 if options.quick else 7 if n <= 2000 else 3)
        exact = one if exact is None else exact
        same = case == "KernelRidge"  # Nystroem draws different rows as centers
        entry = {
            "bench": "sklearn", "package": "sklearn", "package_version": sklearn.__version__, "case": case, "dtype": dtype, "n": n, "p": p,
            "d": data[0].shape[1], "lambda": LAMBDA, "seconds": theirs, "accuracy": 100 * float((one.argmax(1) == labels).mean()),
            "mercer_s": ours, "mercer_accuracy": 100 * float((other.argmax(1) == labels).mean()), "mercer_solver": solver,
            "times": theirs / ours, "difference": f"{numpy.abs(other - exact).max():.1e}" if same else None,
            "own_difference": f"{numpy.abs(one - exact).max():.1e}" if same else None,
        }
        common.report(options, entry, COLUMNS)


def main():
    options = common.options_of(__doc__.splitlines()[0])
    if common.missing("sklearn_models.py", ("numpy", "sklearn"), options.data):
        return 0
    os.environ.setdefault("MERCER_LIBRARY", os.path.join(options.build, "libmercer.so"))
    sys.path.insert(0, os.path.join(common.ROOT, "python"))
    data = common.load_mnist_floats(options.data)
    cases = [("KernelRidge", n, n) for n in KERNEL_RIDGE] + [("Nystroem + Ridge", n, p) for n, p in NYSTROEM]
    if options.quick:
        cases = [("KernelRidge", 500, 500), ("Nystroem + Ridge", 2000, 100)]
    if not options.json:
        print(f"{'scikit-learn, Mercer':<20} {'samples':<8} {'n':>7} {'p':>6} {'seconds':>9} {'test %':>8} {'mercer s':>9} {'test %':>8} "
              f"{'times':>7} {'differs':>9} {'own':>9} {'solver':>7}")
    for case, n, p in cases:
        if options.filter in case:
            compare(options, case, data, n, p)
    return 0


if __name__ == "__main__":
    sys.exit(main())
