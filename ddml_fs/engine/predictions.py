"""Nuisance predictions, with information about the models behind them."""

from dataclasses import dataclass, replace

import numpy as np

FUNCTIONS = ("m", "g", "mu_0", "mu_1")


@dataclass(frozen=True, eq=False)
class Stacking:
    """Weights and losses of stacked candidates.

    Attributes
    ----------
    names : list of str
        The candidates.
    weights, losses : dict of arrays of shape (R, C, F, K)
        For each function ("m", "g", "mu_0", "mu_1") the weights of the K candidates, and their
        held-out losses. If the outcomes per arm follow from m, g and the effect, "effect" has
        weights in place of "mu_0" and "mu_1"; the rest to 1 is that of a constant effect.
    disagreement : dict of arrays of shape (R, C, F)
        For each function the mean squared distance of the candidates from their stack, weighted as
        the candidates are.
    """

    names: list
    weights: dict
    losses: dict
    disagreement: dict


@dataclass(frozen=True, eq=False)
class Predictions:
    """Cross-fitted predictions of the nuisance functions: models never saw the rows they predict.

    Attributes
    ----------
    m, g : arrays of shape (R, C, F, N)
        E[T | X] and E[Y | X] for R random splits, C outcomes, F treatments and N rows.
    mu_0, mu_1 : arrays of shape (R, C, F, N), or None
        E[Y | X, T = 0] and E[Y | X, T = 1], if outcome models per arm were needed.
    networks : list of NetworkSummary, or None
        Summaries of the networks, one per problem.
    stacking : Stacking, or None
        Weights of stacked candidates.
    dof : float
        Degrees of freedom of models that were fitted on the same rows; 0 for cross-fitted ones.
    """

    m: np.ndarray
    g: np.ndarray
    mu_0: np.ndarray | None = None
    mu_1: np.ndarray | None = None
    networks: list | None = None
    stacking: Stacking | None = None
    dof: float = 0.0

    @classmethod
    def empty(cls, plan, arms):
        """Empty arrays for the predictions of a plan, to be filled by :meth:`put`."""
        shape = (plan.n_repeats, plan.Y.shape[1], plan.T.shape[1], len(plan.X))
        m, g, mu_0, mu_1 = (np.empty(shape, plan.X.dtype) for _ in FUNCTIONS)
        return cls(m, g, mu_0, mu_1) if arms else cls(m, g)

    @property
    def functions(self):
        """Names of the functions that have predictions."""
        return [name for name in FUNCTIONS if getattr(self, name) is not None]

    def put(self, plan, problems, values):
        """Write held-out predictions of some problems.

        Parameters
        ----------
        plan : Plan
        problems : int, or int array of shape (P,)
        values : array of shape (2 or 4, n), or (2 or 4, P, n)
            In the order of :data:`FUNCTIONS`. What follows the held-out rows of a fold is padding.
        """
        fold, outcome, treatment = np.atleast_1d(*plan.problem(problems))
        values = np.reshape(values, (len(values), len(fold), -1))
        for k in np.unique(fold):
            own, hold = fold == k, plan.folds[k].hold
            at = k // plan.n_folds, outcome[own, None], treatment[own, None], hold
            for name, value in zip(self.functions, values, strict=True):
                getattr(self, name)[at] = value[own, : len(hold)]

    def with_networks(self, networks):
        """The same predictions with summaries of their networks."""
        return replace(self, networks=networks)

    def with_dof(self, dof):
        """The same predictions with the degrees of freedom of their models."""
        return replace(self, dof=dof)

    def of(self, r=0, c=0, f=0):
        """Predictions of one split, outcome and treatment (``slice(None)``: of all treatments).

        Returns
        -------
        predictions : Predictions
            With arrays of shape (N,), or (N, F) for all treatments.
        """
        parts = {name: getattr(self, name)[r, c, f].T for name in self.functions}
        return replace(self, **parts)


def average(m, mu):
    """E[Y | X] (n,) from the propensity (n,) and the outcomes per arm (2, n)."""
    return (1 - m) * mu[0] + m * mu[1]
