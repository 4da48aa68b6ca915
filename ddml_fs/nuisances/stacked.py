"""Several nuisances, weighted by their held-out loss (short-stacking)."""

import numpy as np

from ddml_fs.engine.predictions import Predictions, Stacking
from ddml_fs.engine.resources import Resources
from ddml_fs.nuisances.base import Nuisance
from ddml_fs.nuisances.effect_surface import arms_are_better, outcomes_by_effect
from ddml_fs.nuisances.first_effect import first_effect, with_effect, without_effect
from ddml_fs.nuisances.held_out_loss import log_loss, squared_error, target_of
from ddml_fs.nuisances.simplex import log_loss_weights, squared_error_weights

SMALL = 2000  # rows up to which linear indices and a Gaussian process are candidates by default


class Stacked(Nuisance):
    """Several candidate models, weighted by their held-out loss.

    For each function (m, g, mu_0 and mu_1) the candidates have non-negative weights with sum one.
    The weights minimise the log-loss of a 0/1 target, or the squared error of other targets, over
    the cross-fitted predictions of all rows (short-stacking). No inner cross-validation is needed,
    and no row is used to evaluate a model that was fitted on it.

    Unless the outcome is 0/1, a first estimate of the effect is taken out of it before, and added
    again afterwards (:mod:`ddml_fs.nuisances.first_effect`). Outcomes per arm follow from m, g and
    a stacked effect, whose candidates are a constant and the differences between the candidates'
    arms (:mod:`ddml_fs.nuisances.effect_surface`). Where models per arm have a clearly lower loss,
    by two standard errors, they are used instead.

    Parameters
    ----------
    candidates : list of nuisances, optional
        Names or :class:`Nuisance` objects. By default: networks, smooth closed forms, boosting,
        sparse regressions and, up to 2000 rows, sparse regressions with linear indices and a
        Gaussian process.

    Examples
    --------
    >>> from ddml_fs import DDML
    >>> from ddml_fs.datasets import make_effect_data
    >>> from ddml_fs.nuisances import Stacked
    >>> data = make_effect_data("binary", n_samples=500, n_features=10, random_state=0)
    >>> effect = DDML(Stacked(["smooth", "ridge"]), random_state=0)
    >>> effect = effect.fit(data.X, data.y, treatment=data.treatment)
    >>> effect.nuisance_weights_[["m", "g"]].sum().round(6).tolist()
    [1.0, 1.0]
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
                candidates += ["index", "gp"]
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
        theta = first_effect(plan)
        rest = without_effect(plan, theta)
        parts = {
            name: nuisance.predict(rest, arms=arms, resources=resources)
            for name, nuisance in self.resolved(len(plan.X)).items()
        }
        return with_effect(plan, theta, parts, stack(rest, parts))


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
    disagreement = {name: np.empty(shape) for name in functions}
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
            away = squared_error(own, mixed[name][at], plan.weight)
            disagreement[name][at] = weights[name][at] @ away
    if "mu_0" in functions:
        replace_arms(plan, candidates, mixed, weights)
    networks = [part.networks for part in candidates if part.networks is not None]
    return Predictions(
        **mixed,
        networks=networks[0] if networks else None,
        stacking=Stacking(list(parts), weights, losses, disagreement),
    )


def replace_arms(plan, candidates, mixed, weights):
    """Outcomes per arm by a stacked effect, in place, unless models per arm are clearly better.

    Parameters
    ----------
    plan : Plan
    candidates : list of Predictions
    mixed : dict of arrays of shape (R, C, F, N)
        Stacked predictions of "m", "g", "mu_0" and "mu_1".
    weights : dict of arrays of shape (R, C, F, K)
        Those of "effect" take the place of those of "mu_0" and "mu_1".
    """
    names, shape = ("mu_0", "mu_1"), mixed["m"].shape[:3]
    arms = np.stack([[getattr(part, name) for part in candidates] for name in names])
    found, of_effect = np.empty((2, *mixed["m"].shape)), np.empty(weights["m"].shape)
    worse = []
    for at in np.ndindex(shape):
        _, t, _ = target_of(plan, "m", *at[1:])
        _, y, label = target_of(plan, "g", *at[1:])
        own = arms[(slice(None), slice(None), *at)]
        known = mixed["m"][at], mixed["g"][at], own, plan.weight, label
        mu, of_effect[at] = outcomes_by_effect(t, y, *known)
        found[(slice(None), *at)] = mu
        by_arm = np.stack([mixed[name][at] for name in names])
        worse.append(arms_are_better(t, y, mu, by_arm, plan.weight))
    if np.mean(worse) > 0.5:  # one choice for all random splits
        return
    for name, values in zip(names, found, strict=True):
        mixed[name][:] = values
        del weights[name]
    weights["effect"] = of_effect
