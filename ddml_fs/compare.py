"""Our selection against the usual ones, on domains that none of them has seen."""

import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
from joblib import delayed
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import KFold, StratifiedKFold

from ddml_fs.encoding import read_domains, read_target
from ddml_fs.engine.devices import limit_threads
from ddml_fs.features import Encoding
from ddml_fs.number import default_downstream
from ddml_fs.progress import progress_bar, run_parallel
from ddml_fs.rivals import RIVALS, standardised
from ddml_fs.selector import CausalFeatureSelector

ALL, OURS = "all features", "ddml_fs"
N_FOLDS = 5  # where there are no domains


def compare_selectors(
    X: Any,
    y: Any,
    sample_domain: Any = None,
    *,
    n_features_to_select: int | float | str = "auto",
    task: str = "auto",
    max_domains: int = 10,
    n_jobs: int | None = None,
    random_state: int | None = None,
    verbose: bool = False,
) -> pd.DataFrame:
    """Compare selections of features where a domain is left out of the training.

    Each domain in turn is left out. On the other rows, :class:`~ddml_fs.CausalFeatureSelector`
    chooses features, and the F-test, mRMR, an L1 path and recursive elimination (RFE) choose as
    many. Logistic regression and boosting (ridge regression and boosting for numbers) are trained
    on each choice, and predict the domain that was left out. Without domains, five folds of
    cross-validation take their place.

    Parameters
    ----------
    X : array or DataFrame of shape (n_samples, n_features)
        As the selector takes it. Others see the same encoded columns; a categorical column is
        chosen as a whole, with the best of its levels.
    y : array of shape (n_samples,)
        Labels or numbers.
    sample_domain : array of shape (n_samples,), optional
    n_features_to_select : int, float or "auto", default="auto"
        A number or share of features for all methods; "auto": the number that our selector finds
        on the training rows.
    task : {"auto", "classification", "regression"}, default="auto"
    max_domains : int, default=10
        How many domains to leave out, the largest ones.
    n_jobs : int, optional
        Workers; each takes a domain.
    random_state : int, optional
    verbose : bool, default=False

    Returns
    -------
    results : DataFrame
        One row per method, model and left-out domain: ``n_features``, ``auc`` and ``accuracy``
        (``r2`` for numbers), and ``seconds`` of the selection.

    Examples
    --------
    >>> from ddml_fs.compare import compare_selectors, summarise
    >>> from ddml_fs.datasets import make_domain_data
    >>> data = make_domain_data(n_samples=200, n_causal=3, n_spurious=3, n_noise=4, random_state=0)
    >>> source = data.sample_domain > 0
    >>> X, y, domain = data.X[source], data.y[source], data.sample_domain[source]
    >>> results = compare_selectors(X, y, domain, n_features_to_select=3, random_state=0)
    >>> summarise(results).index.tolist()
    ['all features', 'ddml_fs', 'F-test', 'mRMR', 'L1 path', 'RFE']
    """
    if n_features_to_select == "fdr":
        raise ValueError("n_features_to_select must be a number, a share or 'auto', got 'fdr'.")
    X = X.reset_index(drop=True) if isinstance(X, pd.DataFrame) else np.asarray(X)
    source, domain, names = read_domains(sample_domain, len(X))
    rows = np.flatnonzero(source)
    X, y = rows_of(X, rows), np.asarray(y)[rows]
    target = read_target(y, task)
    selector = CausalFeatureSelector(
        n_features_to_select,
        task="regression" if target.classes is None else "classification",
        random_state=random_state,
    )
    splits = splits_of(target, domain, names, max_domains, random_state)
    jobs = (delayed(one_split)(X, target, domain, selector, *split) for split in splits)
    with progress_bar(verbose, "left-out domains") as progress:
        progress.start(len(splits), "domains")
        found = run_parallel(jobs, progress, n_jobs)
    return pd.DataFrame([row for part in found for row in part])


def rows_of(X, rows):
    """Rows of an array or a DataFrame."""
    return X.iloc[rows].reset_index(drop=True) if isinstance(X, pd.DataFrame) else X[rows]


def splits_of(target, domain, names, max_domains, random_state):
    """Name, training rows and test rows of every split."""
    if len(names) > 1:
        largest = np.argsort(-np.bincount(domain), kind="stable")[:max_domains]
        return [
            (names[d], np.flatnonzero(domain != d), np.flatnonzero(domain == d))
            for d in np.sort(largest)
        ]
    kind = KFold if target.classes is None else StratifiedKFold
    folds = kind(N_FOLDS, shuffle=True, random_state=random_state)
    return [(f"fold {i + 1}", *split) for i, split in enumerate(folds.split(domain, target.y))]


def one_split(X, target, domain, selector, name, train, test):
    """All methods on one split: a list of rows of the result."""
    label = target.classes is not None
    X_train, X_test = rows_of(X, train), rows_of(X, test)
    y, y_test = target.y[train], target.y[test]
    with limit_threads(1):  # threads of boosting that wait for one another stall a busy machine
        choices = chosen_features(X_train, y, domain[train], selector, label)
        encoding = Encoding.of(X_train, column_names(X_train))
        Z, Z_test = encoding.read(X_train), encoding.read(X_test)
        scored: dict = {}
        rows = []
        for method, (features, seconds) in choices.items():
            columns = np.isin(encoding.own, features)
            for model_name, model in models_of(label, selector.random_state).items():
                key = (model_name, columns.tobytes())
                if key not in scored:
                    fitted = model.fit(Z[:, columns], y)
                    scored[key] = scores_of(fitted, Z_test[:, columns], y_test, label)
                row = {"method": method, "model": model_name, "domain": name}
                row |= {"n_features": len(features), **scored[key], "seconds": seconds}
                rows.append(row)
    return rows


def column_names(X):
    """Names of the columns of an array or a DataFrame."""
    return list(X.columns) if isinstance(X, pd.DataFrame) else [f"x{j}" for j in range(X.shape[1])]


def chosen_features(X, y, domain, selector, label):
    """Features that each method chooses on the training rows, and the seconds it takes."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the same for every domain that is left out
        ours = selector.fit(X, y, sample_domain=domain).get_support(indices=True)
    choices = {ALL: (np.arange(X.shape[1]), 0.0), OURS: (ours, time.perf_counter() - start)}
    encoding = Encoding.of(X, column_names(X))
    Z = standardised(encoding.read(X))
    for name, order in RIVALS.items():
        start = time.perf_counter()
        ranked = encoding.own[order(Z, y, label)]
        first = np.sort(np.unique(ranked, return_index=True)[1])
        features = ranked[first][: len(ours)]  # a feature is as good as its best column
        choices[name] = (features, time.perf_counter() - start)
    return choices


def models_of(label, random_state):
    """What is trained on the chosen features."""
    boosting = HistGradientBoostingClassifier if label else HistGradientBoostingRegressor
    return {
        "logistic" if label else "ridge": default_downstream(label),
        "boosting": boosting(random_state=random_state),
    }


def scores_of(model, X, y, label):
    """How well a fitted model predicts rows that it has not seen."""
    if not label:
        return {"r2": r2_score(y, model.predict(X))}
    chances = model.predict_proba(X)
    classes = model.classes_[1:] if len(model.classes_) == 2 else model.classes_
    aucs = [
        roc_auc_score(y == c, chances[:, list(model.classes_).index(c)])
        for c in classes
        if 0 < np.mean(y == c) < 1
    ]
    accuracy = np.mean(model.classes_[chances.argmax(1)] == y)
    return {"auc": float(np.mean(aucs)) if aucs else np.nan, "accuracy": float(accuracy)}


def summarise(results: pd.DataFrame) -> pd.DataFrame:
    """One row per method: means over the left-out domains, and the worst of them.

    Parameters
    ----------
    results : DataFrame
        Of :func:`compare_selectors`.

    Returns
    -------
    summary : DataFrame
        ``features``, the mean number; for each model the mean and the worst score and the mean
        accuracy; ``seconds`` of a selection.
    """
    score = "auc" if "auc" in results else "r2"
    shown = "AUC" if score == "auc" else "R2"
    by = results.groupby("method", sort=False)
    columns = {"features": by["n_features"].mean()}
    for model, part in results.groupby("model", sort=False):
        own = part.groupby("method", sort=False)
        columns[f"{model} {shown}"] = own[score].mean()
        columns[f"{model} worst"] = own[score].min()
        if "accuracy" in results:
            columns[f"{model} accuracy"] = own["accuracy"].mean()
    columns["seconds"] = by["seconds"].mean()
    return pd.DataFrame(columns)


def plot_comparison(results: pd.DataFrame, ax: Any = None) -> Any:
    """Draw the scores on left-out domains: one row per method, a dot per domain, a bar the mean.

    Parameters
    ----------
    results : DataFrame
        Of :func:`compare_selectors`.
    ax : matplotlib Axes, optional

    Returns
    -------
    ax : matplotlib Axes
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("this needs matplotlib; pip install 'ddml-fs[plot]'.") from None
    methods = list(dict.fromkeys(results["method"]))
    models = list(dict.fromkeys(results["model"]))
    if ax is None:
        figure = Figure(figsize=(7, 1 + 0.55 * len(methods)), layout="constrained")
        ax = figure.add_subplot()
    score = "auc" if "auc" in results else "r2"
    for m, model in enumerate(models):
        part = results[results["model"] == model]
        rows = part["method"].map(methods.index) + 0.3 * (m - (len(models) - 1) / 2)
        colour = f"C{m}"
        ax.scatter(part[score], rows, s=18, color=colour, alpha=0.6, linewidths=0, label=model)
        means = part.groupby("method", sort=False)[score].mean()
        ax.scatter(means, rows[: len(methods)], s=160, marker="|", color=colour, linewidths=2)
    ax.set_yticks(range(len(methods)), methods)
    ax.invert_yaxis()
    ax.grid(axis="x", alpha=0.3)
    ax.set_xlabel(f"{'AUC' if score == 'auc' else 'R²'} on the domain left out; bar: mean")
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    return ax
