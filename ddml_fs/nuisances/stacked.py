"""Several nuisances, weighted by their held-out loss (short-stacking)."""

import numpy as np
from scipy.optimize import nnls

from ddml_fs.engine.predictions import Predictions, Stacking
from ddml_fs.engine.resources import Resources
from ddml_fs.nuisances.base import Nuisance
from ddml_fs.nuisances.held_out_loss import EDGE, log_loss, squared_error, target_of

EM_STEPS = 100  # from equal weights; more do not help (experiments/effects/results/tuned.md)
SMALL = 2000  # rows up to which a Gaussian process is a candidate by default
EXACT = 1e4  # weight of the row that makes squared-error weights sum to one


def squared_error_weights(predicted, target, weight=1.0):
    """Non-negative weights (K,), with sum one, that minimise the squared error.

    Parameters
    ----------
    predicted : array of shape (K, n)
        Held-out predictions of K candidates.
    target : array of shape (n,)
    weight : float or array of shape (n,)
        Weights of the rows.

    Examples
    --------
    >>> y = np.array([0.0, 1.0, 2.0, 3.0])
    >>> squared_error_weights(np.stack([y, 3 - y]), y).round(6).tolist()
    [1.0, 0.0]
    """
    # As the weights sum to one, the error is the weighted sum of gaps.
    gap = np.sqrt(weight) * (predicted - target)
    size = np.sqrt(np.mean(gap**2)) or 1.0
    gram = gap @ gap.T / (gap.shape[1] * size**2)
    # ‖gapᵀw‖² = ‖Lᵀw‖² with L Lᵀ = gram, so the problem has K rows instead of n.
    values, vectors = np.linalg.eigh(gram)
    root = (vectors * np.sqrt(np.maximum(values, 0))).T
    design = np.vstack([root, np.full(len(gap), EXACT)])
    weights, _ = nnls(design, np.r_[np.zeros(len(root)), EXACT])
    return weights / weights.sum()


def log_loss_weights(predicted, target, weight=None):
    """Non-negative weights (K,), with sum one, that minimise the log-loss of a 0/1 target.

    The weighted mean of probabilities is a mixture, so the EM algorithm finds the weights.
    ``weight`` are the weights of the rows (n,), by default 1.

    Examples
    --------
    >>> y = np.array([0.0, 1.0, 1.0, 0.0])
    >>> good, bad = np.where(y == 1, 0.9, 0.1), np.full(4, 0.5)
    >>> log_loss_weights(np.stack([good, bad]), y).round(3).tolist()
    [1.0, 0.0]
    """
    p = np.clip(predicted, EDGE, 1 - EDGE)
    likelihood = np.where(target == 1, p, 1 - p)
    weights = np.full(len(p), 1 / len(p))
    for _ in range(EM_STEPS):
        share = likelihood / (weights @ likelihood)
        weights = weights * np.average(share, axis=1, weights=weight)
    return weights / weights.sum()


class Stacked(Nuisance):
    """Several candidate models, weighted by their held-out loss.

    For each function (m, g, mu_0 and mu_1) the candidates have non-negative weights with sum one.
    The weights minimise the log-loss of a 0/1 target, or the squared error of other targets, over
    the cross-fitted predictions of all rows (short-stacking). No inner cross-validation is needed,
    and no row is used to evaluate a model that was fitted on it.

    Parameters
    ----------
    candidates : list of nuisances, optional
        Names or :class:`Nuisance` objects. By default: networks, smooth closed forms, boosting,
        sparse regressions and, up to 2000 rows, a Gaussian process.

    Examples
    --------
    >>> from ddml_fs import DDML
    >>> from ddml_fs.datasets import make_effect_data
    >>> from ddml_fs.nuisances import Stacked
    >>> data = make_effect_data("binary", n_samples=500, n_features=10, random_state=0)
    >>> effect = DDML(Stacked(["smooth", "ridge"]), random_state=0)
    >>> effect = effect.fit(data.X, data.y, treatment=data.treatment)
    >>> effect.nuisance_weights_.sum().round(6).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """

    def __init__(self, candidates=None):
        self.candidates = candidates

    def resolved(self, n_samples=None):
        """The candidates by name; the default depends on the number of rows."""
        from ddml_fs.nuisances import resolve_nuisance

        candidates = self.candidates
        if candidates is None:
            candidates = ["mlp", "smooth", "boosting", "sparse"]
            if n_samples is None or n_samples <= SMALL:
                candidates.append("gp")
        found: dict = {}
        for candidate in candidates:
            nuisance = resolve_nuisance(candidate)
            name = candidate if isinstance(candidate, str) else type(nuisance).__name__.lower()
            found[name if name not in found else f"{name}_{len(found)}"] = nuisance
        return found

    @property
    def on_device(self):
        """Whether any candidate uses the device."""
        return any(nuisance.on_device for nuisance in self.resolved().values())

    def check(self, score):
        """Raise for fewer than two candidates, and if a candidate's settings are wrong."""
        if self.candidates is not None and len(self.candidates) < 2:
            raise ValueError(
                f"candidates must be at least 2 nuisances, got {len(self.candidates)}; pass a "
                "single one as nuisance."
            )
        for nuisance in self.resolved().values():
            nuisance.check(score)

    def check_weights(self):
        """Raise if a candidate cannot use sample weights."""
        for nuisance in self.resolved().values():
            nuisance.check_weights()

    def predict(self, plan, *, arms=False, resources=None):
        """Cross-fitted predictions, see :meth:`Nuisance.predict`."""
        resources = resources or Resources()
        parts = {
            name: nuisance.predict(plan, arms=arms, resources=resources)
            for name, nuisance in self.resolved(len(plan.X)).items()
        }
        return stack(plan, parts)


def stack(plan, parts):
    """Combine candidates by weights that minimise the held-out loss.

    Parameters
    ----------
    plan : Plan
    parts : dict
        From a candidate's name to its Predictions.

    Returns
    -------
    predictions : Predictions
        With ``stacking``.
    """
    candidates = list(parts.values())
    functions = candidates[0].functions
    shape = candidates[0].m.shape[:3]
    weights = {name: np.empty((*shape, len(parts))) for name in functions}
    losses = {name: np.empty((*shape, len(parts))) for name in functions}
    mixed = {}
    for name in functions:
        values = np.stack([getattr(part, name) for part in candidates])  # (K, R, C, F, N)
        mixed[name] = np.empty_like(values[0])
        for at in np.ndindex(shape):
            rows, target, binary = target_of(plan, name, *at[1:])
            own = values[(slice(None), *at)]
            fit, loss = (
                (log_loss_weights, log_loss) if binary else (squared_error_weights, squared_error)
            )
            known = own[:, rows], target[rows], plan.weight[rows]
            weights[name][at] = fit(*known)
            losses[name][at] = loss(*known)
            mixed[name][at] = weights[name][at] @ own
    networks = [part.networks for part in candidates if part.networks is not None]
    return Predictions(
        **mixed,
        networks=networks[0] if networks else None,
        stacking=Stacking(list(parts), weights, losses),
    )
