"""Ways to predict the nuisance functions m = E[T | X], g = E[Y | X], mu_0 and mu_1.

Each is an object with its own settings and one task: to predict the held-out rows of all problems
of a plan. A name stands for the object with default settings.
"""

from collections.abc import Callable

from ddml_fs.nuisances.additive import Additive
from ddml_fs.nuisances.base import Nuisance
from ddml_fs.nuisances.closed_form import Ridge, Smooth
from ddml_fs.nuisances.estimators import Boosting, Estimators
from ddml_fs.nuisances.gaussian_process import GaussianProcess
from ddml_fs.nuisances.network import Forest, Network, OnLatents, shrunken_network
from ddml_fs.nuisances.sparse import Sparse
from ddml_fs.nuisances.stacked import Stacked

__all__ = [
    "Additive",
    "Boosting",
    "Estimators",
    "Forest",
    "GaussianProcess",
    "Network",
    "Nuisance",
    "OnLatents",
    "Ridge",
    "Smooth",
    "Sparse",
    "Stacked",
    "resolve_nuisance",
    "shrunken_network",
]

NAMES: dict[str, Callable[[], Nuisance]] = {
    "stacked": Stacked,
    "mlp": Network,
    "rf": Forest,
    "boosting": Boosting,
    "gp": GaussianProcess,
    "smooth": Smooth,
    "ridge": Ridge,
    "sparse": Sparse,
    "index": lambda: Sparse(index=True),
    "additive": Additive,
    "shrunken": shrunken_network,
    "shrunken_rf": lambda: Forest(network=shrunken_network()),
}


def resolve_nuisance(nuisance) -> Nuisance:
    """The nuisance for a name, an object or scikit-learn models.

    Parameters
    ----------
    nuisance : str, Nuisance, estimator or pair of estimators
        A name in :data:`NAMES`, a nuisance, or scikit-learn models of (treatment, outcome).

    Examples
    --------
    >>> resolve_nuisance("ridge")
    Ridge()
    """
    if isinstance(nuisance, str):
        if nuisance not in NAMES:
            raise ValueError(
                f"nuisance must be one of {tuple(NAMES)}, a Nuisance, a scikit-learn estimator or "
                f"a pair of them, got {nuisance!r}."
            )
        return NAMES[nuisance]()
    if isinstance(nuisance, Nuisance):
        return nuisance
    pair = nuisance if isinstance(nuisance, tuple | list) else (nuisance, nuisance)
    if len(pair) != 2:
        raise ValueError(f"nuisance must be a pair (treatment, outcome), got {len(pair)} models.")
    return Estimators(*pair)
