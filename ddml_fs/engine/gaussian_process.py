"""Gaussian process regression with one length scale per column, for many problems at once.

The model is y = c + linear part + smooth part + noise, with covariance K = s·AAᵀ/D + R + σ²W⁻¹,
where R = r·exp(−½ Σⱼ (xⱼ − x'ⱼ)²/lⱼ²), and W are the weights of the rows, by default 1. The
hyperparameters log s, log r, log σ² and log lⱼ maximise the marginal likelihood times a normal
prior. Problems (folds × targets) have different numbers of rows. They are padded to the same length
and solved together, independently of each other.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch

from ddml_fs.weights import weighted_mean, weighted_var

# Chosen on 13 kinds of data (sines, products, steps, lines, sums over all columns, noise, 0/1
# targets) with 100 to 600 rows and 8 to 60 columns, by the error on new rows. The prior of the
# lengths matters most. With a median near √D, curves fit pure noise, and the error is two to three
# times as large. So the prior favours long lengths: a linear effect or none for most columns.
LENGTH, LENGTH_SD = 16.0, 1.25  # prior median in units of √D, standard deviation of its logarithm
VARIANCE, VARIANCE_SD = math.exp(-1), 3.0  # weak prior of s, r and σ², against flat directions
START = (0.05, 0.9, 0.3)  # s, r and σ²
START_LENGTH = 0.7  # in units of √D; from 2 on, the search often ends without a smooth part
BOUNDS = (-12.0, 8.0)  # of all logarithms, so that K stays regular in double precision
# With hyperparameters from 500 of 600 rows the error is 1 % larger than from all rows; from 400
# rows 2 to 5 %, from 300 rows 7 to 9 %. More steps improve it by 1 % (3 % with little noise). Fewer
# rows in the first steps save a third of the time and raise the error by 0 to 4 %; with 200 rows by
# up to 15 %, as weak effects are missed.
N_HYPER, N_STEPS = 500, 10
COARSE_ROWS, COARSE_STEPS = 320, 5
DAMPING, EASE, TIGHTEN = 2.0, 0.5, 5.0  # at the start, and factors after a success and a failure
LARGEST_STEP = 2.0  # of a logarithm
SLACK = 1e-9  # a smaller rise of the objective is rounding, not a failure
FAR = 1e6  # exp(-FAR) is exactly 0
FLAT = 1e-12  # a target that varies less than this share of its size is constant
# A CPU is up to a third faster with few problems at a time, which fit into its cache.
MEMORY = {"cpu": 2**25, "cuda": 2**30}  # bytes for the matrices of one chunk of problems
N_MATRICES = 6  # of n × n, held at once


@dataclass(frozen=True)
class Hyperparameters:
    """Learned hyperparameters of one problem, in units of its standardised target.

    Attributes
    ----------
    linear, smooth, noise : float
        The variances s, r and σ².
    lengths : array of shape (D,)
        Above about 10, a column has no nonlinear effect.
    evidence : float
        Log marginal likelihood, without the prior, of the rows used for the hyperparameters.
    """

    linear: float
    smooth: float
    noise: float
    lengths: np.ndarray
    evidence: float


def gp_predict(
    problems,
    seeds,
    device="cpu",
    n_hyper=N_HYPER,
    n_steps=N_STEPS,
    return_learned=False,
    progress=None,
):
    """Predict new rows by a Gaussian process, for each of P problems.

    Parameters
    ----------
    problems : list of (A, y, B) or (A, y, B, weight)
        Training rows (n, D), their targets (n,), new rows (n_new, D) and positive weights (n,).
        Columns are standardised; all problems have the same D.
    seeds : list of int
        One per problem, for the choice of the rows that determine the hyperparameters.
    device : str or torch.device, default="cpu"
        "mps" means "cpu", as it has no double precision.
    n_hyper : int, default=500
        Largest number of rows for the hyperparameters; predictions use all rows.
    n_steps : int, default=10
        Number of steps of the search for the hyperparameters.
    return_learned : bool, default=False
    progress : Progress, optional
        Told of the problems that are done.

    Returns
    -------
    predictions : list of arrays of shape (n_new,)
    learned : list of Hyperparameters
        If ``return_learned``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> A, B = rng.standard_normal((2, 200, 5))
    >>> y = np.sin(2 * A[:, 0]) + A[:, 1] + 0.3 * rng.standard_normal(200)
    >>> predictions, learned = gp_predict([(A, y, B)], seeds=[0], return_learned=True)
    >>> bool(np.abs(predictions[0] - np.sin(2 * B[:, 0]) - B[:, 1]).mean() < 0.15)
    True
    >>> int(learned[0].lengths.argmin())  # the column with the nonlinear effect
    0
    """
    device = torch.device("cpu" if torch.device(device).type == "mps" else device)
    most = MEMORY.get(device.type, MEMORY["cuda"]) // (8 * N_MATRICES)
    # The longest come first, so that chunks have little padding.
    order = sorted(range(len(problems)), key=lambda p: -len(problems[p][1]))
    results: dict[int, tuple] = {}
    while order:
        size = max(1, most // max(1, len(problems[order[0]][1])) ** 2)
        chunk, order = order[:size], order[size:]
        parts = [problems[p] for p in chunk], [seeds[p] for p in chunk]
        results.update(zip(chunk, _solve(*parts, device, n_hyper, n_steps), strict=True))
        if progress is not None:
            progress.advance(len(chunk))
    predictions, learned = ([results[p][k] for p in range(len(problems))] for k in (0, 1))
    return (predictions, learned) if return_learned else predictions


def _solve(problems, seeds, device, n_hyper, n_steps):
    """Predictions and hyperparameters of problems in one batch, in pairs."""
    rows, targets, new = zip(*(problem[:3] for problem in problems), strict=True)
    weights = [
        p[3] if len(p) > 3 else np.ones(len(y)) for p, y in zip(problems, targets, strict=True)
    ]
    mean = [weighted_mean(y, w) for y, w in zip(targets, weights, strict=True)]
    sd = [np.sqrt(weighted_var(y, w)) for y, w in zip(targets, weights, strict=True)]
    sd = [s if s > FLAT * np.abs(y).max() else 0.0 for s, y in zip(sd, targets, strict=True)]
    scaled = [(y - m) / s if s else 0.0 * y for y, m, s in zip(targets, mean, sd, strict=True)]
    X, w = _padded(rows, device)
    y, _ = _padded(scaled, device)
    ratio, _ = _padded([1 / own for own in weights], device)  # of the noise's variance
    some = [
        np.random.default_rng(seed).permutation(len(A))[:n_hyper]
        for seed, A in zip(seeds, rows, strict=True)
    ]
    X_some, w_some = _padded([A[i] for A, i in zip(rows, some, strict=True)], device)
    y_some, _ = _padded([t[i] for t, i in zip(scaled, some, strict=True)], device)
    ratio_some, _ = _padded([1 / own[i] for own, i in zip(weights, some, strict=True)], device)
    theta, evidence = _learn(X_some, y_some, w_some, ratio_some, n_hyper, n_steps)
    values = _posterior_mean(theta, X, y, w, ratio, *_padded(new, device)).cpu().numpy()
    theta = theta.exp().cpu().numpy()
    for p, B in enumerate(new):
        s, r, noise = map(float, theta[p, :3])
        learned = Hyperparameters(s, r, noise, theta[p, 3:], float(evidence[p]))
        yield mean[p] + sd[p] * values[p, : len(B)], learned


def _padded(arrays, device):
    """P arrays (n, …) of any lengths as one tensor (P, n, …), and weights (P, n), 0 for padding."""
    n = max(map(len, arrays))
    values = np.zeros((len(arrays), n, *arrays[0].shape[1:]))
    weights = np.zeros((len(arrays), n))
    for p, array in enumerate(arrays):
        values[p, : len(array)], weights[p, : len(array)] = array, 1.0
    return torch.from_numpy(values).to(device), torch.from_numpy(weights).to(device)


def _learn(X, y, w, ratio, n_hyper, n_steps):
    """Best log hyperparameters (P, 3 + D) and log marginal likelihoods (P,).

    Levenberg-Marquardt, where every problem has its own damping and accepts only better steps.
    """
    D = max(X.shape[2], 1)
    variances, lengths = torch.zeros(3).to(y), torch.zeros(X.shape[2]).to(y)
    centre = torch.cat([variances + math.log(VARIANCE), lengths + math.log(LENGTH * D**0.5)])
    precision = torch.cat([variances + VARIANCE_SD**-2, lengths + LENGTH_SD**-2])
    start = torch.cat(
        [variances.new_tensor(START).log(), lengths + math.log(START_LENGTH * D**0.5)]
    )
    theta = trial = start.repeat(len(X), 1)
    damping = torch.full_like(y[:, 0], DAMPING)
    coarse = min(COARSE_STEPS, n_steps // 2)
    for n, steps in ((min(COARSE_ROWS, n_hyper), coarse), (n_hyper, n_steps - coarse)):
        data, best = (X[:, :n], y[:, :n], w[:, :n], ratio[:, :n]), None
        for _ in range(steps):
            values = trial, *_objective(trial, *data, centre, precision)
            if best is None:
                best = values
            else:
                better = values[1] <= best[1] + SLACK
                damping = torch.where(better, EASE * damping, TIGHTEN * damping)
                best = tuple(
                    torch.where(better.view(-1, *[1] * (new.ndim - 1)), new, old)
                    for new, old in zip(values, best, strict=True)
                )
            theta, loss, gradient, curvature = best
            factor, _ = torch.linalg.cholesky_ex(
                curvature + damping[:, None, None] * torch.eye(len(centre)).to(y)
            )
            step = torch.cholesky_solve(gradient[:, :, None], factor)[:, :, 0]
            trial = (theta - step.clamp(-LARGEST_STEP, LARGEST_STEP)).clamp(*BOUNDS)
        trial = theta
    prior = 0.5 * (precision * (theta - centre) ** 2).sum(1)
    return theta, prior - loss - 0.5 * math.log(2 * math.pi) * w.sum(1)


def _objective(theta, X, y, w, ratio, centre, precision):
    """Minus log posterior (P,) up to a constant, its gradient (P, k) and curvature (P, k, k).

    The curvature is the average information ½ (∂K·α)ᵀK⁻¹(∂K·α) with α = K⁻¹y. For a variance it is
    the mean of the expected and the observed information. It is positive semidefinite and needs
    only products with vectors. No ∂K is formed, because
    (R ∘ (zⱼ − z'ⱼ)²)α = zⱼ² ∘ Rα − 2 zⱼ ∘ R(zⱼ ∘ α) + R(zⱼ² ∘ α).
    """
    D, Z, noise = X.shape[2], X * torch.exp(-theta[:, None, 3:]), theta[:, 2].exp()
    R = _smooth_part(theta, Z, w, Z, w)
    factor, info = torch.linalg.cholesky_ex(_covariance(theta, R, X, w, ratio))
    inverse = torch.cholesky_inverse(factor)
    alpha = inverse @ y[:, :, None]
    loss = 0.5 * (y * alpha[:, :, 0]).sum(1) + factor.diagonal(dim1=1, dim2=2).log().sum(1)
    squares = Z * Z
    products = R @ torch.cat([alpha, Z * alpha, squares * alpha], 2)
    R_alpha, R_first, R_second = products.split([1, D, D], 2)
    linear = X @ (X.mT @ alpha) * (theta[:, 0].exp() / max(D, 1))[:, None, None]
    bent = squares * R_alpha - 2 * Z * R_first + R_second
    rough = noise[:, None, None] * ratio[:, :, None] * alpha
    U = torch.cat([linear, R_alpha, rough, bent], 2)  # ∂K·α, (P, n, k)
    R.mul_(inverse)
    sums = R.sum(2, keepdim=True)
    by_smooth = sums.sum(1)
    by_noise = (noise * (inverse.diagonal(dim1=1, dim2=2) * ratio).sum(1))[:, None]
    by_linear = w.sum(1, keepdim=True) - by_smooth - by_noise  # as the trace of K⁻¹K is n
    by_length = 2 * (squares * sums - Z * (R @ Z)).sum(1)
    traces = torch.cat([by_linear, by_smooth, by_noise, by_length], 1)  # of K⁻¹·∂K
    away = theta - centre
    loss = loss + 0.5 * (precision * away**2).sum(1)
    gradient = 0.5 * (traces - (U.mT @ alpha)[:, :, 0]) + precision * away
    curvature = 0.5 * U.mT @ (inverse @ U) + torch.diag(precision)
    good = (info == 0) & loss.isfinite()
    gradient = torch.where(good[:, None], gradient, 0.0)
    curvature = torch.where(good[:, None, None], curvature, 0.0)
    return torch.where(good, loss, math.inf), gradient, curvature


def _smooth_part(theta, U, u, V, v):
    """R (P, n, m) of scaled rows U (P, n, D) and V (P, m, D) with weights u and v.

    Padded rows are far from all rows, themselves included, so that their entries are exactly 0.
    """
    first, second = (0.5 * (A * A).sum(2) + FAR * (1 - a) for A, a in ((U, u), (V, v)))
    R = torch.baddbmm(first[:, :, None] + second[:, None, :], U, V.mT, beta=-1)
    # Rounding makes some squared distances negative.
    return R.clamp_(max=0.0).add_(theta[:, 1, None, None]).exp_()


def _covariance(theta, R, X, w, ratio):
    """K (P, n, n), with a unit diagonal where rows are padding; ``ratio`` (P, n) is W⁻¹."""
    scale = theta[:, :1, None].exp() / max(X.shape[2], 1)
    K = torch.baddbmm(R, scale * X, X.mT)
    K.diagonal(dim1=1, dim2=2).add_(theta[:, 2:3].exp() * ratio + 1 - w)
    return K


def _posterior_mean(theta, X, y, w, ratio, B, b):
    """Predictions (P, n_new) of rows B with weights b."""
    scales = torch.exp(-theta[:, None, 3:])
    K = _covariance(theta, _smooth_part(theta, X * scales, w, X * scales, w), X, w, ratio)
    factor, info = torch.linalg.cholesky_ex(K)
    for power in range(1, 9):  # needed only if inputs are not standardised
        if not bool((info > 0).any()):
            break
        K.diagonal(dim1=1, dim2=2).add_((10**power * theta[:, 2].exp() * (info > 0))[:, None])
        factor, info = torch.linalg.cholesky_ex(K)
    alpha = torch.cholesky_solve(y[:, :, None], factor)
    smooth = _smooth_part(theta, B * scales, b, X * scales, w) @ alpha
    linear = B @ (X.mT @ alpha) * (theta[:, :1, None].exp() / max(X.shape[2], 1))
    return (smooth + linear)[:, :, 0]
