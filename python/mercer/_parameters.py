# SPDX-License-Identifier: BSD-3-Clause
"""The text about the parameters that both estimators have."""

from __future__ import annotations

PARAMETERS = """Parameters
    ----------
    kernel : str or Kernel, default="laplace"
        Kernel function: "laplace", "gaussian", "matern32", ..., or with parameters, "exppower:gamma=0.7".
    bandwidth : float or None
        Bandwidth of the kernel, in units of preprocessed samples; None: their median distance.
    preprocess : str or None, default="auto"
        What happens to samples before the kernel sees them: "none", "scale" (x / 255), "standardise", "minmax",
        "unit". "auto": scale for uint8, none for float16, standardise for float32 and float64.
    n_centers : int, "all" or None
        Number of centers; None: all samples, but at most 10,000.
    centers : array of shape (p, d) or None
        Centers of one's own, in the units of X, instead of chosen ones.
    center_method : {"random", "kmeans", "rpcholesky", "balanced"}
        How centers are chosen; "balanced", as many of each class, is for classification.
    solver : str, default="auto"
        "auto", "direct", "cg", "ep4", ...: see docs/python.md.
    epochs : int or None
        Passes over the samples, or most steps of "cg".
    batch_size : int or None
        Samples in a step.
    ridge : float, default=0
        lambda of the objective sum_i w_i |f(x_i) - y_i|^2 + lambda |f|^2.
    target_transform : {"auto", "none", "center", "standardise"}
        What is taken away from targets before they are learned, and put back by predictions: the mean ("center"), and
        they are divided by their standard deviation ("standardise"). "auto": "standardise" for values, "center" for
        classes, which then begin at their shares. A stream has the numbers of its first batch.
    average : bool or None
        Whether to return the average of the later iterates.
    tol : float or None
        Stop when the loss (of validation, with early_stopping) has not fallen by this share for 5 epochs.
    validation_fraction : float, default=0.1
        Share of samples that early_stopping holds back. 0: nothing is held back, for calibration neither.
    early_stopping : bool, default=False
        Stop when validation has not got better for 5 epochs, and return the best weights.
    memory : int, str or None
        Bytes for everything but X and y themselves: 8000000000, "8G", "16GiB"; None: half of what is free.
    device : {"cpu", "cuda", "cuda:N", "auto", "reference"}, default="cpu"
        Where to compute; "auto": a GPU if there is one, else the CPU.
    arithmetic : {"accurate", "fast"}
        Of kernel products in float; "fast": a GPU may round points and kernel values to half precision.
    precision : {"auto", "float32", "float64"}
        Type of the weights and of training. "auto": double if X is float64, else float.
    n_jobs : int or None
        Threads; -1: one for each processor; None: OMP_NUM_THREADS, or one for each. Results do not depend on it.
    random_state : int, RandomState or None
        An integer is the ``--seed`` of ``mercer train``: the model is the same, to the byte. None: a fresh one.
    verbose : int, default=0
        1: a line of progress on stderr; 2: the plan as well.
    warm_start : bool, default=False
        The next fit keeps centers and kernel and begins with the weights of the last.

    Attributes
    ----------
    model_ : Model
    history_ : dict of arrays
        By epoch: train_loss, validation_loss, seconds, ...
    plan_ : dict
        What training did and why.
    n_iter_ : int
        Epochs done.
    n_features_in_ : int
    feature_names_in_ : array
        If X was a frame with column names."""


def params_doc(cls: type) -> type:
    """Puts the parameters that estimators share into a docstring."""
    cls.__doc__ = (cls.__doc__ or "").replace("%PARAMETERS%", PARAMETERS)
    return cls
