"""The nuisance models m̂ and ĝ on the latents (Eqs. 20 and 21), and their held-out predictions.

The heads Ψ are two stacked networks on the latents, trained together with Φ. scikit-learn models,
or small forests on the residuals of a network with shrinkage, are fitted afterwards on the latents
of the training rows. The output of the head is an additional input, because forests with
axis-parallel splits approximate it poorly from the latents.
"""

import numpy as np
import torch
from joblib import delayed

from ddml_fs.engine.draws import Draws
from ddml_fs.engine.forest import ForestSettings, draw_trees, predict_forests
from ddml_fs.engine.losses import half_log
from ddml_fs.engine.models import fit_predict, seeded
from ddml_fs.engine.network import ARMS, HEADS, Heads
from ddml_fs.engine.train import train
from ddml_fs.progress import Progress, run_parallel
from ddml_fs.scores import DELTA
from ddml_fs.workers import parallel

RESIDUAL_FOREST = ForestSettings(n_trees=10, min_leaf=30, max_features=0.5, max_samples=0.3)
PROBLEMS_AT_ONCE = 25  # for forests: enough to share the cost of an operation, few for the memory


class ArmObjective:
    """The loss of outcome models per arm on frozen latents.

    μ_a = ĝ + θ₀(a − m̂) + h_a(Zc, Zy): the partially linear fit plus a correction per arm. h starts
    at zero, so with little information the effect stays constant.

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
        return self.validate(batch, 1.0 if batch.weight is None else batch.weight)

    def validate(self, batch, weight):
        """½ log MSE of each arm on its own rows, summed; (P,)."""
        square = (batch.Y - self.outcomes(batch)) ** 2  # (2, P, B)
        own = torch.stack([1 - batch.T, batch.T]) * weight
        return half_log((square * own).sum(-1) / own.sum(-1).clamp(min=DELTA)).sum(0)


def predict_from_heads(objective, stack, sizes, *, arms, schedule, progress=None):
    """Held-out predictions of the trained heads and, if needed, of heads per arm.

    Parameters
    ----------
    objective : Objective
        Of a trained network.
    stack : Stack
    sizes : Sizes
    arms : bool
        Whether to train heads for the outcome per arm, too.
    schedule : Schedule
        Training of the heads per arm.
    progress : Progress, optional
        Told of every epoch of this training.

    Returns
    -------
    values : array of shape (2 or 4, P, n)
        m, g and, with arms, mu_0 and mu_1; padded as ``stack.rows("hold")``.
    """
    by_arm = None
    if arms:
        draws = Draws([seed + 2 for seed in stack.seeds])
        by_arm = ArmObjective(Heads(stack, draws, sizes, ARMS), objective)
        train(by_arm.heads, by_arm, stack, schedule, progress)
    with torch.no_grad():
        batch = stack.batch(stack.rows("hold")[0])
        _, _, m, Y_raw = objective.forward(batch)
        outcomes = [objective.outcome_mean(m, Y_raw)]
        if by_arm is not None:
            outcomes += by_arm.outcomes(batch)
    return np.stack([stack.t_scale.undo(m), *(stack.y_scale.undo(y) for y in outcomes)])


def predict_from_models(objective, stack, pair, *, arms, n_jobs, rate, progress=None):
    """Held-out predictions of scikit-learn models on the latents, one problem after another.

    Parameters
    ----------
    objective : Objective
        Of a trained network.
    stack : Stack
    pair : callable
        From "is the treatment 0/1" and "is the outcome a label" to unfitted models of both.
    arms : bool
        Whether to fit outcome models per arm, too.
    n_jobs : int, optional
        Number of joblib workers.
    rate : float, optional
        For networks with shrinkage: small forests predict the residuals, multiplied by this rate,
        see :func:`predict_residuals`. Full models would undo the shrinkage. By default, full models
        are fitted.
    progress : Progress, optional
        Told of every problem.

    Returns
    -------
    values : array of shape (2 or 4, P, n)
    """
    if rate is not None:
        return predict_residuals(objective, stack, rate, n_jobs=n_jobs, progress=progress)
    with torch.no_grad():
        train, hold = (stack.batch(stack.rows(part)[0]) for part in ("train", "hold"))
        inputs = [_at_the_heads(objective, b)[0].cpu().numpy() for b in (train, hold)]
    T, Y = train.T.cpu().numpy(), train.Y.cpu().numpy()
    theta_0 = np.zeros(stack.P)
    if objective.coupled:
        theta_0 = objective.net.theta_0[:, 0, 0].cpu().numpy()
    binary_T, binary_Y = (
        np.broadcast_to(b if isinstance(b, bool) else b[:, 0].cpu().numpy(), stack.P)
        for b in (stack.binary_T, stack.binary_Y)
    )

    def weights(i):
        """Weights of the training rows of problem i, or None."""
        rows = stack.folds[i // stack.p].train
        return None if stack.weight is None else stack.plan.weight[rows]

    def solve(i):
        n = len(stack.folds[i // stack.p].train)
        model_T, model_Y = seeded(pair(binary_T[i], binary_Y[i]), stack.seeds[i])
        t, rest, w = T[i, :n], Y[i, :n] - theta_0[i] * T[i, :n], weights(i)
        inputs_T, inputs_Y = ((inputs[0][k][i, :n], inputs[1][k][i]) for k in (0, 1))
        m = fit_predict(model_T, *inputs_T, t, w)
        out = [m, theta_0[i] * m + fit_predict(model_Y, *inputs_Y, rest, w)]
        for a in (0, 1) if arms else ():
            own = t == a
            own_weights = w if w is None else w[own]
            rest_a = fit_predict(model_Y, inputs_Y[0][own], inputs_Y[1], rest[own], own_weights)
            out.append(theta_0[i] * a + rest_a)
        return out

    # Threads: forests and linear algebra release the GIL, and no data have to be copied.
    work = (delayed(solve)(i) for i in range(stack.P))
    solved = run_parallel(work, progress or Progress(), n_jobs, prefer="threads")
    scales = [stack.t_scale, *[stack.y_scale] * (3 if arms else 1)]
    parts = zip(scales, zip(*solved, strict=True), strict=True)
    return np.stack([scale.undo(torch.as_tensor(np.stack(part))) for scale, part in parts])


def predict_residuals(objective, stack, rate, *, n_jobs, progress=None):
    """Held-out predictions of the heads plus those of small forests on the heads' residuals.

    Parameters
    ----------
    objective : Objective
        Of a trained network.
    stack : Stack
    rate : float
        Factor of the predictions of the forests.
    n_jobs : int, optional
        Number of threads.
    progress : Progress, optional
        Told of every problem.

    Returns
    -------
    values : array of shape (2, P, n)
        m and g.
    """
    progress = progress or Progress()
    with torch.no_grad():
        rows, weight = stack.rows("train")
        train, hold = stack.batch(rows), stack.batch(stack.rows("hold")[0])
        (x, fit), (x_new, fit_new) = (_at_the_heads(objective, b) for b in (train, hold))
    rest = torch.stack([train.T, train.Y]) - fit

    def solve(part, n, trees):
        forests = predict_forests(
            x[:, part, :n].flatten(0, 1),
            rest[:, part, :n].flatten(0, 1),
            x_new[:, part].flatten(0, 1),
            trees,
            RESIDUAL_FOREST,
        )
        return forests.unflatten(0, (2, -1))

    parts = []
    for g, fold in enumerate(stack.folds):
        # Problems of a fold have the same rows and the same seed, so they share the draws.
        first, n = g * stack.p, len(fold.train)
        trees = draw_trees(RESIDUAL_FOREST, weight[first, :n], x.shape[-1], stack.seeds[first])
        for start in range(first, first + stack.p, PROBLEMS_AT_ONCE):
            end = min(start + PROBLEMS_AT_ONCE, first + stack.p)
            parts.append((slice(start, end), n, trees))
    # Threads: tensor operations release the GIL, and no data have to be copied.
    solved = parallel((delayed(solve)(*part) for part in parts), n_jobs, prefer="threads")
    for (part, *_), forests in zip(parts, solved, strict=True):
        fit_new[:, part] += rate * forests
        progress.advance(part.stop - part.start)
    return np.stack([stack.t_scale.undo(fit_new[0]), stack.y_scale.undo(fit_new[1])])


def _at_the_heads(objective, batch):
    """What the heads of T and Y read and predict.

    Returns
    -------
    inputs : Tensor of shape (2, P, B, 2Z + 1)
        The latents and the output of the head.
    predictions : Tensor of shape (2, P, B)
    """
    Z, T_raw, m, Y_raw = objective.forward(batch)
    roles = Z.chunk(3, -1)
    inputs = [
        torch.cat(
            [z for z, read in zip(roles, reads, strict=True) if read] + [output[..., None]], -1
        )
        for reads, output in zip(HEADS, (T_raw, Y_raw), strict=True)
    ]
    return torch.stack(inputs), torch.stack([m, objective.outcome_mean(m, Y_raw)])
