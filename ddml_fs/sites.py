"""Sites that keep their rows: each writes a file of sums, and a selector is fitted on the files."""

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ddml_fs.blocks import numbers_of, plain
from ddml_fs.cautions import listed
from ddml_fs.encoding import read_target
from ddml_fs.engine.folds import RowCounter
from ddml_fs.engine.moments import Cell, CellProducts
from ddml_fs.privacy import GaussianNoise
from ddml_fs.validation import check_integer, check_option

VERSION = 1
FEWEST = 5  # rows of a class, or of a rarer value of a column, in a fold


def collect_site(
    X: Any,
    y: Any,
    path: str | PathLike,
    *,
    site: str,
    task: str = "auto",
    n_folds: int = 5,
    seed: int = 0,
    fewest: int = FEWEST,
    noise: GaussianNoise | None = None,
    random_state: Any = None,
) -> Path:
    """Write the sums over the rows of one site to a file, for ``CausalFeatureSelector.from_sites``.

    The file has, for every fold, the number of rows, the means, and the sums of squares and
    products of the columns and of the label. It has no rows.

    Parameters
    ----------
    X : DataFrame or array of shape (n_samples, n_features)
        Numbers or truth values, without gaps. All sites have the same columns in the same order.
    y : array of shape (n_samples,), or the name of a column of X
        Labels or numbers.
    path : str or path
        The file to write, such as "north.npz".
    site : str
        Name of the site, which is its domain.
    task : {"auto", "classification", "regression"}, default="auto"
        As in the selector; the same at all sites.
    n_folds, seed : int
        Folds of the cross-fitting; the same at all sites.
    fewest : int, default=5
        The least number of rows of every class in a fold, and of the rarer values of a column: sums
        over very few rows reveal them.
    noise : GaussianNoise, optional
        Makes the file differentially private.
    random_state : int, optional
        Seed of the noise, for tests only: who knows it can take the noise off.

    Returns
    -------
    path : Path

    Examples
    --------
    >>> import tempfile
    >>> from ddml_fs import CausalFeatureSelector
    >>> rng, folder = np.random.RandomState(0), Path(tempfile.mkdtemp())
    >>> files = []
    >>> for site in ("north", "south"):
    ...     X = pd.DataFrame(rng.standard_normal((200, 3)), columns=["a", "b", "c"])
    ...     y = X["b"] + rng.standard_normal(200)
    ...     files.append(collect_site(X, y, folder / f"{site}.npz", site=site))
    >>> selector = CausalFeatureSelector.from_sites(files, n_features_to_select=1)
    >>> selector.get_feature_names_out().tolist(), selector.domains_.tolist()
    (['b'], ['north', 'south'])
    """
    check_integer(n_folds, "n_folds", 2)
    check_integer(fewest, "fewest", 2)
    check_option(task, "task", ("auto", "classification", "regression"))
    if not isinstance(site, str) or not site:
        raise TypeError(f"site must be the name of the site, got {site!r}.")
    X, y, names = read_rows(X, y)
    target = read_target(y, task)
    label = target.classes is not None
    products = CellProducts(names, label)
    if noise is None:
        if random_state is not None:
            raise ValueError("random_state is the seed of noise; leave it out without noise.")
        fold = RowCounter(n_folds, seed).folds(np.full(len(X), site), y if label else None)
        products.add(X, y, np.full(len(X), site), fold)
        check_sizes(products, n_folds, fewest)
        check_rare(X, fold, names, fewest)
    else:
        noise.check(len(names), label)
        rng = np.random.default_rng(random_state)
        fold = rng.integers(n_folds, size=len(X))
        table = X if label else np.column_stack([X, y])
        for k in range(n_folds):
            rows = fold == k
            classes = target.classes.tolist() if label else []
            cell = noise.cell(table[rows], y[rows] if label else None, classes, rng)
            products.put((site, k), cell)
        check_sizes(products, n_folds, fewest)
    return write_site(products, path, site=site, n_folds=n_folds, seed=seed, noise=noise)


def read_rows(X, y):
    """X (n, P) as finite numbers, y (n,) and the names of the columns."""
    if isinstance(y, str):
        if not isinstance(X, pd.DataFrame) or y not in X.columns:
            raise ValueError(f"y must be a column of the DataFrame X, or an array, got {y!r}.")
        y, X = X[y], X.drop(columns=y)
    if isinstance(X, pd.DataFrame):
        names = [str(name) for name in X.columns]
        X = numbers_of(X, list(X.columns))
    else:
        X = np.asarray(X, dtype=np.float64)
        if X.ndim != 2:
            raise ValueError(f"X must have two dimensions, got {X.ndim}.")
        names = [f"x{j}" for j in range(X.shape[1])]
    y = plain(y, "y")
    if y.shape != (len(X),):
        raise ValueError(f"y must have one value per row of X ({len(X)}), got {y.shape}.")
    if not np.isfinite(X).all():
        bad = names[np.argmin(np.isfinite(X).all(0))]
        raise ValueError(f"column {bad!r} must hold finite numbers, got missing or infinite ones.")
    return X, y, names


def check_rare(X, fold, names, fewest):
    """Raise if, in some fold, a column differs from its usual value in very few rows."""
    for k in np.unique(fold):
        part = X[fold == k]
        for j, name in enumerate(names):
            other = len(part) - np.unique(part[:, j], return_counts=True)[1].max(initial=0)
            if 0 < other < fewest:
                raise ValueError(
                    f"column {name!r} must differ from its usual value in at least {fewest} rows "
                    f"of a fold, got {other}: its sums would reveal these rows; drop it, or use "
                    "fewer folds."
                )


def check_sizes(products, n_folds, fewest):
    """Raise if, in some fold, there are very few rows or rows of a class."""
    classes = sorted({c for cell in products.cells.values() for c in cell.classes})
    for k in range(n_folds):
        cells = [cell for (_, fold), cell in products.cells.items() if fold == k]
        counts = {"the table": sum(cell.n for cell in cells)}
        for c in classes:
            counts[f"class {c!r}"] = sum(cell.classes.get(c, (0,))[0] for cell in cells)
        for what, n in counts.items():
            if n < fewest:
                raise ValueError(
                    f"{what} must have at least {fewest} rows in every fold, got {n:.0f}: sums "
                    "over so few rows would reveal them; use fewer folds, or leave the site out."
                )


def write_site(products, path, *, site, n_folds, seed, noise):
    """Write the cells of one site; plain arrays, no pickles."""
    path = Path(path)
    if path.suffix != ".npz":
        raise ValueError(f"path must end in .npz, got {path.name!r}.")
    keys = sorted(products.cells)
    cells = [products.cells[key] for key in keys]
    classes = sorted({c for cell in cells for c in cell.classes})
    width = products.width
    none = (0, np.zeros(width))
    upper = np.triu_indices(width)
    np.savez_compressed(
        path,
        version=VERSION,
        site=site,
        names=np.array(products.names),
        label=products.label,
        n_folds=n_folds,
        seed=seed,
        epsilon=np.nan if noise is None else noise.epsilon,
        delta=np.nan if noise is None else noise.delta,
        fold=np.array([k for _, k in keys]),
        n=np.array([cell.n for cell in cells], dtype=float),
        mean=np.stack([cell.mean for cell in cells]),
        S=np.stack([cell.S[upper] for cell in cells]),
        classes=np.array(classes),
        class_n=np.array([[cell.classes.get(c, none)[0] for c in classes] for cell in cells]),
        class_mean=np.array([[cell.classes.get(c, none)[1] for c in classes] for cell in cells]),
    )
    return path


def read_site(path):
    """Read the file of a site.

    Returns
    -------
    products : CellProducts
    site : str
    folds : tuple of int
        Number of folds, and their seed.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        with np.load(path, allow_pickle=False) as file:
            data = {name: file[name] for name in file.files}
        version = int(data["version"])
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise ValueError(f"{path.name} is no file of collect_site: {error}.") from None
    if version != VERSION:
        raise ValueError(f"{path.name} must have version {VERSION}, got {version}; collect again.")
    products = CellProducts(data["names"].tolist(), bool(data["label"]))
    upper = np.triu_indices(products.width)
    site, classes = str(data["site"]), data["classes"].tolist()
    for i, k in enumerate(data["fold"]):
        S = np.zeros((products.width, products.width))
        S[upper] = data["S"][i]
        S = S + np.triu(S, 1).T
        cell = Cell(data["mean"][i], S, float(data["n"][i]))
        for j, c in enumerate(classes):
            if data["class_n"][i, j] > 0:
                cell.classes[c] = data["class_n"][i, j], data["class_mean"][i, j]
        products.put((site, int(k)), cell)
    return products, site, (int(data["n_folds"]), int(data["seed"]))


def merge_sites(paths):
    """The cells of all sites, and the number of folds; the files must match.

    Parameters
    ----------
    paths : sequence of paths

    Returns
    -------
    products : CellProducts
    n_folds : int
    """
    if isinstance(paths, str | PathLike) or not len(paths):
        raise ValueError("from_sites needs a list of files, got none or a single path.")
    total, site, folds = read_site(paths[0])
    sites = [site]
    for path in paths[1:]:
        products, site, own = read_site(path)
        name = Path(path).name
        if site in sites:
            raise ValueError(f"{name} is of the site {site!r}, which another file is of too.")
        check_match(products, total, name)
        if own != folds:
            raise ValueError(
                f"{name} must have the folds and the seed {folds} of the first file, got {own}."
            )
        total = total + products
        sites.append(site)
    return total, folds[0]


def check_match(products, first, name):
    """Raise if a file has other columns, or another kind of label, than the first one."""
    if products.label != first.label:
        kinds = ("numbers", "labels")
        raise ValueError(
            f"{name} must have {kinds[first.label]} in y as the first file, got "
            f"{kinds[products.label]}; set task at all sites."
        )
    if products.names != first.names:
        missing = [c for c in first.names if c not in products.names]
        more = [c for c in products.names if c not in first.names]
        what = "another order of them"
        if missing or more:
            parts = {"missing": missing, "more": more}
            what = " and ".join(f"{listed(names)} {how}" for how, names in parts.items() if names)
        raise ValueError(f"{name} must have the columns of the first file, got {what}.")
