# SPDX-License-Identifier: BSD-3-Clause
"""Every option has an effect or causes a warning or an error.

The tests walk the options of mercer train, the parameters of the estimators and the fields of mercer_fit_options and
mercer_train_options, which paths.py lists with values other than their defaults. An option has an effect if the model
file, the plan or the answer differs from the same fit without the option. Options whose effect is not visible in file, plan or
answer are listed in UNSEEN with the reason.
"""

import tempfile
import warnings

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("pandas")

import mercer  # noqa: E402
import paths  # noqa: E402
from untuned import flat  # noqa: E402

UNSEEN = {  # check-messages: allow (reasons, which no test compares)
    "threads": "results do not depend on the number of threads",
    "memory": "a limit that is not reached has no effect",
    "arithmetic": "has an effect only on GPUs; on the CPU, fast causes a warning",
    "device": "auto is the CPU on a machine without a GPU",
    "seed": "nothing is random if all of a few rows are centers; tested in test_metamorphic.py and test_same_bytes.py",
    "cache": "affects only speed: whether kernel values are cached",
    "merge": "the table has no equal rows to merge; tested in test_metamorphic.py",
    "verbose": "affects only stderr; tested in test_estimators.py",
    "format": "the value is the format that auto detects",
    "header": "the value is what auto detects",
    "task": "the value is the task that auto detects",
    "columns": "the value is the kind that is detected; other kinds are tested in test_frames.py and tests/cli/test_tables.py",
    "missing": "the table has no missing values; tested in tests/cli/test_tables.py",
    "color": "affects only terminals",
    "comm": "auto chooses self for a single process",
    "exchange": "has an effect only with several processes and GPUs",
    "deadline": "has an effect only with several processes",
    "no-map": "text files are never mapped",
    "checkpoint-every": "affects only when checkpoints are written",
    "verify": "affects only what resume compares",
    "force": "there is no unfinished run to discard",
    "converge": "the solver for few rows always converges",
    "model": "the data are equal, so the model is equal",
    "warm_start": "the data are equal, so the model is equal",
    "id-column": "the other fit does not have this column; tested in tests/cli/test_tables.py and test_outputs.py",
    "weights": "all weights are 1, the default; other weights are tested in test_metamorphic.py",
}
VALUES, CLASSES = "few", "few_classes"
# Few rows are trained by a direct solver, which warns about options of iterative solvers. These options are also tested
# with the solver ep4, which uses them.
ITERATIVE = {
    "epochs", "batch", "projector", "average", "decay", "polish", "step_factor", "nystrom", "eigenpairs", "period", "carry",
    "projector_nystrom", "projector_eigenpairs", "projector_passes", "projector_tolerance", "projector_block", "patience", "tol",
}  # fmt: skip
BASES = {"default": paths.NOTHING, "ep4": paths.pick("solver", 3)}


@pytest.fixture(scope="module")
def folders():
    with tempfile.TemporaryDirectory(prefix="mercer-silent-") as values, tempfile.TemporaryDirectory() as classes:
        yield {VALUES: values, CLASSES: classes}


def _effects(option, interface, base, folders, kept={}):
    """Return the effect of the option by table: "used", "warned", "nothing" or "other warning: ...".

    The table of classes is tried only if the table of values shows no effect.
    """
    found = {}
    for name in (VALUES, CLASSES):
        if set(found.values()) & {"used", "warned"}:
            break
        rows = paths.table(name)
        if not option.fits(interface, rows):
            continue
        key = name, interface, base
        if key not in kept:
            kept[key] = paths.run(rows, BASES[base], interface, folders[name])
        both = option if base == "default" else paths.join([BASES[base], option])
        outcome = paths.run(rows, both, interface, folders[name])
        if outcome.refusal is not None or outcome.warnings != kept[key].warnings:
            named = paths.names_option(outcome, option)
            found[name] = "warned" if named else f"other warning: {outcome.refusal or outcome.warnings}"
        else:
            same = outcome.bytes == kept[key].bytes and outcome.shown == kept[key].shown
            found[name] = "nothing" if same else "used"
    return found


NAMES = list(dict.fromkeys(option.name for option in paths.OPTIONS))


@pytest.mark.parametrize("interface", paths.INTERFACES)
@pytest.mark.parametrize("name, base", [(name, base) for name in NAMES for base in BASES if base == "default" or name in ITERATIVE])
def test_option(name, interface, base, folders):
    options = [option for option in paths.OPTIONS if option.name == name and option.given(interface) is not None]
    effects = [effect for option in options for effect in _effects(option, interface, base, folders).values()]
    wrong = [effect for effect in effects if effect.startswith("other warning")]
    assert not wrong, f"{name}: {wrong[0]}"
    if name not in UNSEEN and effects:
        assert "used" in effects or "warned" in effects, f"{interface}: {name} changes nothing and causes no warning"


def test_reasons_are_needed():
    assert set(UNSEEN) <= set(NAMES)


@pytest.mark.parametrize("solver, warns", [("paper", True), ("gd", True), ("ep3", False), ("ep4", False)])
def test_unconverged_training_warns(folders, solver, warns):
    """Training that ends far from its optimum causes a warning. With a small ridge, ep3 needs more than 10 epochs."""
    rows = paths.table("heavy")
    option = next(option for option in paths.OPTIONS if option.c == {"train.solver": solver.encode()})
    found = paths.of_python(rows, option, folders[VALUES])
    named = [text for text in found.warnings if f"solver {solver} " in text and "optimum" in text]
    assert bool(named) == warns, (found.error, found.warnings)
    if not warns:
        assert found.error <= paths.of_python(rows, paths.NOTHING, folders[VALUES]).error + 0.03


@pytest.mark.parametrize("estimator", ["KernelRegressor", "KernelClassifier"])
def test_warm_start_on_other_data_warns(estimator):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = X[:, 0] > 0 if estimator == "KernelClassifier" else X[:, 0]
    for other, target in ((X[:150], y[:150]), (2 * X + 1, y), (X, y[::-1].copy()), (X.copy(), y.copy())):
        model = getattr(mercer, estimator)(effort=1, random_state=0).fit(X, y).set_params(advanced={"warm_start": True})
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            model.fit(other, target)
        fields = [one.message.field for one in found]
        same = np.array_equal(other, X) and np.array_equal(target, y)
        assert fields.count("warm_start") == (0 if same else 1), fields


def test_ridge_far_from_the_best_warns(folders):
    option = paths.Option("ridge", python={"ridge": 0.02})
    found = paths.of_python(paths.table("heavy"), option, folders[VALUES])
    assert any(text.startswith("ridge 0.02 is given") for text in found.warnings), found.warnings
    assert not paths.of_python(paths.table("numbers"), option, folders[VALUES]).warnings


def test_parameters_that_streams_do_not_use():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    cases = ({"epochs": 5}, {"tol": 0.1}, {"early_stopping": True}, {"intervals": True}, {"solver": "krr"}, {"solver": "ep3"}, {})
    for given in cases:
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            model = flat(mercer.KernelRegressor)(effort=1, random_state=0, **given).partial_fit(X, X[:, 0])
            model.partial_fit(X, X[:, 0])
        assert [one.message.field for one in found] == [name for name in given if given[name] != "ep3"], given
        assert all("partial_fit" in str(one.message) for one in found)
