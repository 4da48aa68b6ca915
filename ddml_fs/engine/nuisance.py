"""The nuisance models m̂ and ĝ on the latents (Eqs. 20 and 21), and their held-out predictions.

``"mlp"`` are the heads Ψ themselves, two stacked MLPs on the latents, fitted on the training rows
together with Φ. Any scikit-learn model is fitted afterwards on the training rows' latents, with
the head's output as one more input: it is a function of the latents that a forest of axis-parallel
cuts finds hard to rebuild.
"""

from dataclasses import dataclass

import numpy as np
import torch
from joblib import Parallel, delayed
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from ddml_fs.engine.losses import half_log
from ddml_fs.engine.network import ARMS, HEADS, Heads
from ddml_fs.engine.smooth import average, weighed
from ddml_fs.engine.stack import vector
from ddml_fs.engine.train import train

RESIDUAL_FOREST = {"n_estimators": 10, "min_samples_leaf": 30, "max_features": 0.5}
RESIDUAL_FOREST |= {"max_samples": 0.3}


@dataclass(frozen=True)
class Predictions:
    """Held-out predictions of a stack, on the scale of T and Y.

    Attributes
    ----------
    m, g : arrays of shape (P, n)
        E[T | X] and E[Y | X], padded as ``stack.rows("hold")``.
    mu : array of shape (2, P, n), or None
        E[Y | X, T = 0] and E[Y | X, T = 1].
    shares : array of shape (P, 3), or None
        The network's weights in m, mu_0 and mu_1, where closed forms stand beside it.
    """

    m: np.ndarray
    g: np.ndarray
    mu: np.ndarray | None
    shares: np.ndarray | None = None


def check_nuisance(nuisance, label=False):
    """Refuse what is no nuisance model, before any work is done."""
    if isinstance(nuisance, str):
        if nuisance not in ("mlp", "rf", "ridge"):
            raise ValueError(
                f"nuisance must be 'mlp', 'rf', 'ridge', a scikit-learn estimator or a pair of "
                f"them, got {nuisance!r}."
            )
        return
    pair = nuisance if isinstance(nuisance, tuple | list) else (nuisance, nuisance)
    if len(pair) != 2:
        raise ValueError(f"nuisance must be a pair (treatment, outcome), got {len(pair)} models.")
    for model in pair:
        if not (hasattr(model, "fit") and hasattr(model, "get_params")):
            raise ValueError(f"nuisance must hold scikit-learn estimators, got {model!r}.")
    if not is_regressor(pair[1]) and not label:
        raise ValueError(
            f"the outcome's nuisance model must be a regressor, got {pair[1]!r}; pass a pair "
            "(classifier, regressor) to classify a binary treatment."
        )


def fit_nuisances(
    net, objective, stack, nuisance, *, per_arm, schedule, sizes, n_jobs=None, rate=None
):
    """Fit the nuisance models on the training rows and predict the held-out rows.

    Parameters
    ----------
    net, objective, stack
        A trained stack.
    nuisance : "mlp", "rf", estimator, or pair of estimators
    per_arm : bool
        Whether outcome models per arm are wanted too.
    schedule : Schedule
        For the stacked MLPs per arm.
    sizes : Sizes
    n_jobs : int, optional
        joblib workers for scikit-learn models.
    rate : float, optional
        Of shrunken networks: how much of what these miss "rf" learns. Full forests unless given.

    Returns
    -------
    hold : Predictions
        Of the held-out rows.
    valid : Predictions, or None
        With outcome models per arm, the heads' of the validation rows.
    """
    mlp = isinstance(nuisance, str) and nuisance == "mlp"
    arms = None
    if per_arm:
        generators = [torch.Generator().manual_seed(q.seed + 2) for q in stack.problems]
        arms = ArmObjective(Heads(stack, generators, sizes, ARMS), objective)
        if mlp:
            train(arms.heads, arms, stack, schedule)
    valid = _predictions(stack, *_from_heads(objective, arms, stack, "valid")) if arms else None
    if mlp:
        hold = _from_heads(objective, arms, stack, "hold")
    else:
        hold = _from_estimators(net, objective, stack, nuisance, per_arm, n_jobs, rate)
    return _predictions(stack, *hold), valid


def _predictions(stack, m, g, mu):
    """Tensors of the stack as arrays on the scale of T and Y."""
    return Predictions(
        stack.unscale_T(m).cpu().double().numpy(),
        stack.unscale_Y(g).cpu().double().numpy(),
        None if mu is None else stack.unscale_Y(mu).cpu().double().numpy(),
    )


@torch.no_grad()
def _from_heads(objective, arms, stack, part):
    """The heads as they were trained, and those per arm where there are any."""
    batch = stack.batch(stack.rows(part)[0])
    _, _, m, Y_raw = objective.forward(batch)
    g = objective.outcome_mean(m, Y_raw)
    return m, g, None if arms is None else arms.outcomes(batch)


def weigh_arms(stack, hold, valid):
    """Predictions per arm, weighed against models in closed form by the validation rows.

    Parameters
    ----------
    stack : Stack
        With all columns.
    hold, valid : Predictions
        Of the network.

    Returns
    -------
    hold : Predictions
        With g = E[Y | X] that agrees with them.
    """
    X = stack.X.cpu().double().numpy()
    m, mu, shares = hold.m.copy(), hold.mu.copy(), []
    for i, problem in enumerate(stack.problems):
        fold = problem.fold
        own, left = slice(len(fold.hold)), slice(len(fold.valid))
        data = X[:, stack.keep[i].numpy()], vector(problem.treatment, X), problem.outcome
        m[i, own], mu[:, i, own], share = weighed(
            *data,
            fold,
            (valid.m[i, left], valid.mu[:, i, left]),
            (m[i, own], mu[:, i, own]),
            problem.seed,
        )
        shares.append(share)
    return Predictions(m, average(m, mu), mu, np.array(shares))


class ArmObjective:
    """The loss of outcome models per arm on frozen latents.

    μ_a = ĝ + θ₀(a − m̂) + h_a(Zc, Zy): the partially linear fit, and what the arm adds to it. h
    starts at zero, so where the data say little the effect stays constant.

    Parameters
    ----------
    heads : Heads
        h_0 and h_1.
    objective : Objective
        Of the trained network.
    """

    def __init__(self, heads, objective):
        self.heads, self.objective = heads, objective
        with torch.no_grad():
            heads.W_2.zero_()

    def outcomes(self, batch):
        """μ_0 and μ_1, (2, P, B)."""
        with torch.no_grad():
            Z, _, m, Y_raw = self.objective.forward(batch)
            g = self.objective.outcome_mean(m, Y_raw)
            theta_0 = self.objective.net.theta_0[..., 0]
            base = torch.stack([g - theta_0 * m, g + theta_0 * (1 - m)])
        return base + torch.stack(self.heads(Z))

    def __call__(self, batch):
        return self.validate(batch, torch.ones_like(batch.T))

    def validate(self, batch, weight):
        """½ log MSE of each arm on its own rows, summed; (P,)."""
        square = (batch.Y - self.outcomes(batch)) ** 2  # (2, P, B)
        own = torch.stack([1 - batch.T, batch.T]) * weight
        return half_log((square * own).sum(-1) / own.sum(-1).clamp(min=1)).sum(0)


def _from_estimators(net, objective, stack, nuisance, per_arm, n_jobs, rate):
    """Models of scikit-learn, one problem after another."""
    with torch.no_grad():
        train, hold = (stack.batch(stack.rows(part)[0]) for part in ("train", "hold"))
        inputs = [_head_inputs(objective, batch) for batch in (train, hold)]
    T, Y = train.T.cpu().numpy(), train.Y.cpu().numpy()
    theta_0 = net.theta_0[:, 0, 0].cpu().numpy() if objective.coupled else np.zeros(stack.P)
    if isinstance(nuisance, str) and rate is not None and not per_arm:
        return _forests_on_residuals(objective, stack, train, hold, inputs, n_jobs, rate)

    def solve(i):
        problem = stack.problems[i]
        n = len(problem.fold.train)
        model_T, model_Y = _pair(nuisance, problem)
        t, rest = T[i, :n], Y[i, :n] - theta_0[i] * T[i, :n]
        inputs_T, inputs_Y = ((inputs[0][k][i, :n], inputs[1][k][i]) for k in (0, 1))
        m = _fit_predict(model_T, *inputs_T, t)
        g = theta_0[i] * m + _fit_predict(model_Y, *inputs_Y, rest)
        if not per_arm:
            return m, g, None
        arms = [
            theta_0[i] * a + _fit_predict(model_Y, inputs_Y[0][t == a], inputs_Y[1], rest[t == a])
            for a in (0, 1)
        ]
        return m, g, np.stack(arms)

    solved, m, g = _solve_all(solve, stack, n_jobs)
    mu = None
    if per_arm:
        mu = torch.as_tensor(np.stack([s[2] for s in solved], 1)).to(stack.t_mean)
    return m, g, mu


def _forests_on_residuals(objective, stack, train, hold, inputs, n_jobs, rate):
    """Small forests for what shrunken networks miss: full ones would undo the shrinkage."""
    with torch.no_grad():
        fits = []
        for batch in (train, hold):
            _, _, m, Y_raw = objective.forward(batch)
            fits.append([a.cpu().numpy() for a in (m, objective.outcome_mean(m, Y_raw))])
    targets = train.T.cpu().numpy(), train.Y.cpu().numpy()

    def solve(i):
        problem, out = stack.problems[i], []
        n = len(problem.fold.train)
        for k in (0, 1):
            model = RandomForestRegressor(**RESIDUAL_FOREST, random_state=problem.seed)
            model.fit(inputs[0][k][i, :n], targets[k][i, :n] - fits[0][k][i, :n])
            out.append(fits[1][k][i] + rate * model.predict(inputs[1][k][i]))
        return out

    _, m, g = _solve_all(solve, stack, n_jobs)
    return m, g, None


def _solve_all(solve, stack, n_jobs):
    """What ``solve(i)`` gives for every problem, and its first two parts as tensors (P, B)."""
    # Threads: forests and linear algebra release the GIL, and nothing has to be sent.
    solved = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(solve)(i) for i in range(stack.P))
    m, g = (torch.as_tensor(np.stack([s[k] for s in solved])).to(stack.t_mean) for k in (0, 1))
    return solved, m, g


def _head_inputs(objective, batch):
    """What the models for T and for Y read, each an array (P, B, 2Z + 1)."""
    Z, T_raw, _, Y_raw = objective.forward(batch)
    roles = Z.chunk(3, -1)
    return [
        torch.cat(
            [z for z, read in zip(roles, reads, strict=True) if read] + [output[..., None]], -1
        )
        .cpu()
        .numpy()
        for reads, output in zip(HEADS, (T_raw, Y_raw), strict=True)
    ]


def _pair(nuisance, problem):
    """Unfitted models for the treatment and the outcome, with the problem's seed in every part."""
    if isinstance(nuisance, str):
        # Small trees on three tenths of the rows are as accurate on the latents as full ones, and
        # take half the time.
        forest = {"min_samples_leaf": 3, "max_features": 0.5, "max_samples": 0.3}
        kind = RandomForestClassifier if problem.binary_T else RandomForestRegressor
        kind_Y = RandomForestClassifier if problem.binary_Y else RandomForestRegressor
        pair = [kind(**forest), kind_Y(**forest)]
    else:
        pair = list(nuisance) if isinstance(nuisance, tuple | list) else [nuisance, nuisance]
    models = []
    for model in pair:
        model = clone(model)
        seeds = [k for k in model.get_params() if k.split("__")[-1] == "random_state"]
        models.append(model.set_params(**dict.fromkeys(seeds, problem.seed)))
    return models


def _fit_predict(model, Z, Z_new, target):
    if np.ptp(target) == 0:  # a column so rare that these rows lack it
        return np.full(len(Z_new), target[0])
    if is_classifier(model):
        return clone(model).fit(Z, target.astype(int)).predict_proba(Z_new)[:, 1]
    return clone(model).fit(Z, target).predict(Z_new)
