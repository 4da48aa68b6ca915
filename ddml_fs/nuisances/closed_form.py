"""Nuisances in closed form: ridge regressions, and smooth regressions for few rows."""

from typing import ClassVar

import numpy as np
from joblib import effective_n_jobs
from scipy.special import expit

from ddml_fs.engine.devices import in_threads, limit_threads
from ddml_fs.engine.plan import WIDE, penalty_for
from ddml_fs.engine.predictions import Predictions, average
from ddml_fs.engine.resources import Resources
from ddml_fs.engine.ridge import Gram, logistic_fit, ridge_fits, standardised
from ddml_fs.engine.smooth_ridge import SmoothRidge
from ddml_fs.engine.wide_ridge import wide_ridge_fits
from ddml_fs.nuisances.base import Nuisance
from ddml_fs.validation import check_number
from ddml_fs.weights import weighted_mean


def ridge_predict(A, y, B, shrinkage, weight):
    """Ridge regression on standardised rows with weights (n,): values of rows B (n_new, D)."""
    penalty, weight = penalty_for(shrinkage, A.shape[1], weight.sum()), weight / weight.mean()
    centre = weighted_mean(A, weight)  # not 0 where A are the rows of an arm
    level = weighted_mean(y, weight)
    gram = Gram(A - centre, penalty, weight)
    return level + (B - centre) @ gram.coefficients(weight * (y - level))


def logistic_predict(A, y, B, shrinkage, weight):
    """Ridge-logistic regression on standardised rows: probabilities of rows B (n_new, D)."""
    penalty = penalty_for(shrinkage, A.shape[1], weight.sum())
    intercept, beta = logistic_fit(A, y, penalty, weight / weight.mean())
    return expit(intercept + B @ beta)


class PerProblem(Nuisance):
    """Models on the columns that are fitted for one problem after another."""

    unit: ClassVar[str] = "regressions"  # of the progress

    def values_of(self, plan, i, arms):
        """Held-out predictions (2 or 4, n_hold) of problem i."""
        raise NotImplementedError

    def predict(self, plan, *, arms=False, resources=None):
        """Cross-fitted predictions, see :meth:`Nuisance.predict`."""
        resources = resources or Resources()
        predictions = Predictions.empty(plan, arms)
        resources.progress.start(plan.n_problems, self.unit)
        with limit_threads(effective_n_jobs(resources.n_jobs)):
            problems = range(plan.n_problems)
            values = in_threads(lambda i: self.values_of(plan, i, arms), problems)
            for i, own in zip(problems, values, strict=True):
                predictions.put(plan, i, own)
                resources.progress.advance()
        return predictions


class ClosedForm(PerProblem):
    """Models in closed form, one per function and arm."""

    unit = "closed-form regressions"

    def __init__(self, *, shrinkage):
        self.shrinkage = shrinkage

    def check(self, score):
        """Raise for a negative shrinkage."""
        check_number(self.shrinkage, "shrinkage", 0, np.inf)

    def regress(self, A, y, B, seed, weight):
        """Values of rows B (n_new, D), fitted on standardised rows A (n, D) and y, weight (n,)."""
        raise NotImplementedError

    def values_of(self, plan, i, arms):
        """Held-out predictions (2 or 4, n_hold) of problem i."""
        k, c, f = plan.problem(i)
        fold, seed = plan.folds[k], int(plan.seeds[k])
        X, w = plan.X[:, plan.inputs(f)].astype(float), plan.weight[fold.train]
        A, B, _ = standardised(X, fold.train, fold.hold, plan.weight)
        t, y = plan.T[fold.train, f].astype(float), plan.Y[fold.train, c].astype(float)

        def predict(target, binary):
            if binary:
                return logistic_predict(A, target, B, self.shrinkage, w)
            return self.regress(A, target, B, seed, w)

        m = predict(t, plan.binary_T[f])
        if not arms:
            return m, predict(y, plan.binary_Y[c])
        mu = [self.regress(A[t == a], y[t == a], B, seed, w[t == a]) for a in (0, 1)]
        return m, average(m, mu), *mu


class Ridge(ClosedForm):
    """Ridge and ridge-logistic regressions, from one inverse per fold for all treatments.

    Parameters
    ----------
    shrinkage : float, default=20.0
        The ridge penalty is λ = ``shrinkage`` · D / n for D columns and n training rows. Larger
        values suit weaker signals: if the signal-to-noise ratio is r, the best value is 1 / r.
    """

    def __init__(self, *, shrinkage=20.0):
        super().__init__(shrinkage=shrinkage)

    def regress(self, A, y, B, seed, weight):
        """Values of rows B by ridge regression."""
        return ridge_predict(A, y, B, self.shrinkage, weight)

    def predict(self, plan, *, arms=False, resources=None):
        """Cross-fitted predictions, see :meth:`Nuisance.predict`."""
        if arms:
            return super().predict(plan, arms=True, resources=resources)
        resources = resources or Resources()
        predictions = Predictions.empty(plan, arms=False)
        fits = wide_ridge_fits if plan.X.shape[1] > WIDE else ridge_fits
        resources.progress.start(len(plan.folds) * plan.Y.shape[1] * plan.T.shape[1], "treatments")
        with limit_threads(effective_n_jobs(resources.n_jobs)):
            for k, c, at, m, g in fits(plan, self.shrinkage):
                r, hold = k // plan.n_folds, plan.folds[k].hold
                predictions.m[r, c, at, hold[:, None]] = m
                predictions.g[r, c, at, hold[:, None]] = expit(g) if plan.binary_Y[c] else g
                resources.progress.advance(m.shape[1])
        return predictions

    def shrinkage_of(self, plan):
        """λ."""
        return plan.penalty(self.shrinkage)


class Smooth(ClosedForm):
    """Smooth regressions whose penalties maximise the evidence; designed for a few hundred rows.

    Numbers are predicted by :class:`~ddml_fs.engine.smooth_ridge.SmoothRidge`, the sum of a linear
    function and a draw from a Gaussian process; 0/1 targets by ridge-logistic regression.

    Parameters
    ----------
    shrinkage : float, default=10.0
        Shrinkage of the ridge-logistic regression, in units of D / n. A propensity model that
        overfits gives extreme weights, so this model is strongly regularised.
    """

    def __init__(self, *, shrinkage=10.0):
        super().__init__(shrinkage=shrinkage)

    def regress(self, A, y, B, seed, weight):
        """Values of rows B by smooth ridge regression."""
        return SmoothRidge(A, y, seed, weight).predict(B)
