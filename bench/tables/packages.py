# SPDX-License-Identifier: BSD-3-Clause
"""Packages that are compared on tables: for each package an estimator with its defaults, and a parameter space for random search.

Boosted trees get frames with text columns as categories, as their documentation recommends; Mercer gets the same frames. KernelRidge and
SVM get standardized numbers, with missing values replaced by the mean, and one-hot encoded text columns. They are fitted to at most
KERNEL_ROWS random rows, because they use all rows as centers. KernelRidge uses the kernel rbf, because its default, the linear kernel, is
ridge regression.
"""
import importlib.util

KERNEL_ROWS = 8000
DATE = r"\d{4}-\d\d-\d\d"


def frames(train, test):
    """Return the training and test samples with text columns as categories, which are the same in both."""
    import pandas

    both = pandas.concat([train, test])
    words = both.drop(columns="target").select_dtypes(exclude="number").columns
    kinds = {name: pandas.CategoricalDtype(sorted(both[name].dropna().astype(str).unique())) for name in words}
    samples = []
    for frame in (train, test):
        frame = frame.drop(columns="target").copy()
        for name in words:
            frame[name] = frame[name].where(frame[name].isna(), frame[name].astype(str)).astype(kinds[name])
        samples.append(frame)
    return samples


def dates(frame):
    """Replace each column of ISO dates by three numbers: days since 2000, day of the year and hour."""
    import pandas

    columns = {}
    for name in frame:
        values = frame[name]
        if pandas.api.types.is_numeric_dtype(values) or not values.dropna().astype(str).str.match(DATE).all():
            columns[name] = values
            continue
        days = (pandas.to_datetime(values) - pandas.Timestamp("2000-01-01")) / pandas.Timedelta(days=1)
        when = pandas.to_datetime(values).dt
        columns |= {name: days, f"{name} day of the year": when.day_of_year, f"{name} hour": when.hour}
    return pandas.DataFrame(columns)


def plain(frame):
    """Convert categories to text, with "missing" for missing values, as CatBoost requires."""
    words = frame.select_dtypes("category").columns
    return frame.assign(**{name: frame[name].astype(object).where(frame[name].notna(), "missing") for name in words})


class Few:
    """An estimator for encoded numbers that is fitted to at most KERNEL_ROWS rows. Regression targets are standardized, too."""

    def __init__(self, make, classes):
        self.make, self.classes = make, classes

    def fit(self, X, y):
        import numpy as np
        from sklearn.compose import make_column_selector, make_column_transformer
        from sklearn.impute import SimpleImputer
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OneHotEncoder, StandardScaler

        numbers = make_pipeline(SimpleImputer(), StandardScaler())
        words = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
        encode = make_column_transformer(
            (numbers, make_column_selector(dtype_include="number")), (words, make_column_selector(dtype_exclude="number"))
        )
        self.rows = np.random.default_rng(0).permutation(len(y))[:KERNEL_ROWS]
        y = np.asarray(y)[self.rows]
        if self.classes == "scores":  # a regressor used as a classifier
            y = np.eye(int(y.max()) + 1)[y]
        self.shift, self.scale = (np.mean(y), np.std(y)) if self.classes is None else (0, 1)
        y = (y - self.shift) / self.scale if self.classes is None else y
        self.model = make_pipeline(encode, self.make()).fit(X.iloc[self.rows], y)
        return self

    def predict(self, X):
        return self.shift + self.scale * self.model.predict(X)

    def scores(self, X):
        return self.model.predict(X) if self.classes == "scores" else self.model.decision_function(X)


def _trees():
    """Return similar parameter spaces for all packages of boosted trees: lists of (name, low, high, logarithmic)."""
    rate, leaves = ("learning_rate", 0.01, 0.3, True), (4, 128, True)
    return {
        "lightgbm": [rate, ("n_estimators", 50, 1000, True), ("num_leaves", *leaves), ("min_child_samples", 1, 100, True),
                     ("reg_lambda", 1e-3, 10.0, True), ("colsample_bytree", 0.4, 1.0, False)],
        "xgboost": [rate, ("n_estimators", 50, 1000, True), ("max_depth", 2, 10, False), ("min_child_weight", 1, 50, True),
                    ("reg_lambda", 1e-3, 10.0, True), ("colsample_bytree", 0.4, 1.0, False)],
        "catboost": [rate, ("iterations", 50, 1000, True), ("depth", 2, 10, False), ("l2_leaf_reg", 1e-1, 30.0, True)],
        "histgb": [rate, ("max_iter", 50, 1000, True), ("max_leaf_nodes", *leaves), ("min_samples_leaf", 1, 100, True),
                   ("l2_regularization", 1e-3, 10.0, True)],
    }


SPACES = {**_trees(), "kernelridge": [("alpha", 1e-4, 1e2, True), ("gamma", 1e-3, 1.0, True)],
          "svm": [("C", 1e-1, 1e3, True), ("gamma", 1e-3, 1.0, True)]}
NEEDS = {"lightgbm": "lightgbm", "xgboost": "xgboost", "catboost": "catboost", "histgb": "sklearn", "kernelridge": "sklearn", "svm": "sklearn"}
NAMES = [*SPACES, "mercer"]
TREES = {"lightgbm": ("n_estimators", 100), "xgboost": ("n_estimators", 100), "catboost": ("iterations", 1000), "histgb": ("max_iter", 100)}


def here(name):
    return name == "mercer" or importlib.util.find_spec(NEEDS[name]) is not None


def draw(name, rng):
    """Draw a random configuration."""
    found = {}
    for key, low, high, logarithmic in SPACES[name]:
        value = low * (high / low) ** rng.random() if logarithmic else low + (high - low) * rng.random()
        found[key] = round(value) if isinstance(low, int) else float(value)
    if name == "kernelridge":
        found["kernel"] = str(rng.choice(["rbf", "laplacian"]))
    return found


def trees(name, multiple):
    """Return the parameter that sets a multiple of the default number of trees; empty for the default number."""
    parameter, count = TREES[name]
    return {parameter: multiple * count} if multiple != 1 else {}


def make(name, regression, words, jobs, seed, parameters):
    """Return an estimator with its defaults, except for the given parameters."""
    if name == "mercer":
        from mercer import KernelClassifier, KernelRegressor

        return (KernelRegressor if regression else KernelClassifier)(random_state=seed, n_jobs=jobs, **parameters)
    if name == "lightgbm":
        import lightgbm as package

        return (package.LGBMRegressor if regression else package.LGBMClassifier)(verbose=-1, n_jobs=jobs, random_state=seed, **parameters)
    if name == "xgboost":
        import xgboost as package

        kind = package.XGBRegressor if regression else package.XGBClassifier
        return kind(enable_categorical=True, n_jobs=jobs, random_state=seed, **parameters)
    if name == "catboost":
        import catboost as package

        kind = package.CatBoostRegressor if regression else package.CatBoostClassifier
        return kind(verbose=False, thread_count=jobs, random_seed=seed, cat_features=words, allow_writing_files=False, **parameters)
    if name == "histgb":
        from sklearn import ensemble as package

        kind = package.HistGradientBoostingRegressor if regression else package.HistGradientBoostingClassifier
        return kind(random_state=seed, categorical_features="from_dtype", **parameters)
    from sklearn import kernel_ridge, svm

    if name == "kernelridge":
        return Few(lambda: kernel_ridge.KernelRidge(**{"kernel": "rbf", **parameters}), None if regression else "scores")
    return Few(lambda: (svm.SVR if regression else svm.SVC)(**parameters), None if regression else "margins")
