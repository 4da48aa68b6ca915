"""Algorithm 1, written down line by line for one problem per fold: the slow twin of the engine.

Plain loops, one small network per role and head, no stack, no masks, no padding. It shares with
the engine only the folds and the way initial weights are drawn.
"""

import math

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler
from torch.nn.functional import hardswish


def draw(generator, shape, fan_in):
    return torch.randn(shape, generator=generator) / math.sqrt(fan_in)


def initial_networks(seed, D, H, Z):
    """The weights of Φ and Ψ for one seed, cut into one network per role and head."""
    generator = torch.Generator().manual_seed(seed)
    first = draw(generator, (D, 3 * H), D)
    second = draw(generator, (3 * H, 3 * Z), H)
    third = draw(generator, (3 * Z, 2 * H), 2 * Z)
    fourth = draw(generator, (2 * H, 2), H)
    roles = {}
    for k, role in enumerate("cty"):
        h, z = slice(k * H, (k + 1) * H), slice(k * Z, (k + 1) * Z)
        roles[role] = [first[:, h], torch.zeros(H), second[h, z], torch.zeros(Z)]
    heads = {}
    for k, (head, other) in enumerate((("T", slice(Z, 2 * Z)), ("Y", slice(2 * Z, 3 * Z)))):
        h = slice(k * H, (k + 1) * H)
        reads = torch.cat([third[:Z, h], third[other, h]])
        heads[head] = [reads, torch.zeros(H), fourth[h, k : k + 1], torch.zeros(1)]
    for network in (*roles.values(), *heads.values()):
        network[:] = [w.double().clone().requires_grad_() for w in network]
    return roles, heads


def mlp(x, network):
    W1, b1, W2, b2 = network
    return hardswish(x @ W1 + b1) @ W2 + b2


def random_frequencies(seed, Z, m):
    generator = torch.Generator().manual_seed(seed + 1)
    omega = torch.randn(3, Z, m, generator=generator) / math.sqrt(Z)
    phase = 2 * math.pi * torch.rand(1, 3 * m, generator=generator)
    return omega.double(), phase.view(3, 1, m).double()


def hsic(Z1, Z2, omega1, phase1, omega2, phase2):
    """The squared norm of the covariance of two roles' random features."""
    features = []
    for z, omega, phase in ((Z1, omega1, phase1), (Z2, omega2, phase2)):
        z = (z - z.mean(0)) / z.std(0, unbiased=False)
        f = math.sqrt(2 / omega.shape[1]) * torch.cos(z @ omega + phase)
        features.append(f - f.mean(0))
    return ((features[0].T @ features[1] / len(Z1)) ** 2).sum()


def pearson(a, b):
    a, b = a - a.mean(), b - b.mean()
    return (a @ b) / (a.norm() * b.norm())


def rate_of(step, n_steps, peak):
    if step < 0.3 * n_steps:
        return peak * (0.04 + 0.96 * (1 - math.cos(math.pi * step / (0.3 * n_steps))) / 2)
    return peak * (1 + math.cos(math.pi * (step / n_steps - 0.3) / 0.7)) / 2


def ridge_start(X, T, Y, train, binary, label, shrinkage, weight):
    """What a shrunken network starts from: log-odds of binary targets, values of others."""
    w = weight[train]
    scaler = StandardScaler().fit(X[train], sample_weight=w)
    A = scaler.transform(X)
    alpha = shrinkage * X.shape[1]  # n·λ
    base_T = Ridge(alpha=alpha).fit(A[train], T[train], sample_weight=w).predict(A)
    if binary:
        share = np.average(T[train], weights=w)
        base_T = np.clip(base_T, share / 5, 1 - (1 - share) / 5)
        base_T = np.log(base_T / (1 - base_T))
    if label:
        model = LogisticRegression(C=1 / alpha, tol=1e-12, max_iter=10_000)
        base_Y = model.fit(A[train], Y[train], sample_weight=w).decision_function(A)
    else:
        base_Y = Ridge(alpha=alpha).fit(A[train], Y[train], sample_weight=w).predict(A)
    return torch.tensor(base_T), torch.tensor(base_Y)


def mean_of(errors, weight):
    return (weight * errors).sum() / weight.sum()


def entropy(p, target, weight):
    return mean_of(-(target * p.log() + (1 - target) * (1 - p).log()), weight)


def algorithm_1(
    X,
    T,
    Y,
    folds,
    seeds,
    *,
    binary,
    H,
    Z,
    B,
    epochs,
    peak,
    decay,
    lambda_dis,
    lambda_ort,
    m,
    coupled,
    label=False,
    shrinkage=0.0,
    weight=None,
):
    """θ̂, and the cross-fitted predictions T̂ and Ŷ."""
    weight = np.ones(len(T)) if weight is None else weight
    mass = torch.as_tensor(weight)
    T_hat, Y_hat = np.empty(len(T)), np.empty(len(T))
    for fold, seed in zip(folds, seeds, strict=True):
        x, t, y = (torch.as_tensor(a).double() for a in (X, T, Y))
        x = (x - x[fold.fit].mean(0)) / x[fold.fit].std(0)
        t_mean, t_sd = (0.0, 1.0) if binary else (t[fold.fit].mean(), t[fold.fit].std())
        y_mean, y_sd = (0.0, 1.0) if label else (y[fold.fit].mean(), y[fold.fit].std())
        t, y = (t - t_mean) / t_sd, (y - y_mean) / y_sd
        base_T, base_Y, even_T, even_Y, l2 = 0 * t, 0 * y, 1.0, 1.0, 0.0
        fold_epochs, fold_peak = epochs, peak
        if shrinkage:
            kinds = binary, label, shrinkage, weight
            base_T, base_Y = ridge_start(X, T, Y, fold.train, *kinds)
            base_T, base_Y = (base_T - t_mean) / t_sd, (base_Y - y_mean) / y_sd
            penalty = shrinkage * X.shape[1] / weight[folds[0].train].sum()
            fold_epochs, fold_peak = round(epochs / (1 + penalty)), peak / (1 + penalty)
            l2 = 0.006 * penalty
            share_T, share_Y = (mean_of(a[fold.fit], mass[fold.fit]) for a in (t, y))
            even_T = 1 / (4 * share_T * (1 - share_T)) if binary else 1.0
            even_Y = 1 / (4 * share_Y * (1 - share_Y)) if label else 1.0

        roles, heads = initial_networks(seed, X.shape[1], H, Z)
        if shrinkage:
            for network in heads.values():
                network[2].data.zero_()
        weights = [w for network in (*roles.values(), *heads.values()) for w in network]
        omega, phase = random_frequencies(seed, Z, m)
        theta_0, running = 0.0, None

        def predict(rows):
            Zc, Zt, Zy = (mlp(x[rows], roles[r]) for r in "cty")  # Eq. 10
            T_raw = base_T[rows] + mlp(torch.cat([Zc, Zt], 1), heads["T"])[:, 0]  # Eq. 12
            Y_raw = base_Y[rows] + mlp(torch.cat([Zc, Zy], 1), heads["Y"])[:, 0]
            return Zc, Zt, Zy, T_raw, torch.sigmoid(T_raw) if binary else T_raw, Y_raw

        def supervised(rows, T_raw, T_pre, Y_raw):
            if binary:
                loss = even_T * entropy(T_pre, t[rows], mass[rows])
            else:
                loss = 0.5 * mean_of((t[rows] - T_pre) ** 2, mass[rows]).log()
            if label:
                return loss + even_Y * entropy(torch.sigmoid(Y_raw), y[rows], mass[rows])
            part = theta_0 * t[rows] if coupled else 0.0
            return loss + 0.5 * mean_of((y[rows] - part - Y_raw) ** 2, mass[rows]).log()  # Eq. 13

        optimizer = torch.optim.AdamW(weights, lr=peak, weight_decay=decay)
        order = torch.Generator().manual_seed(fold.seed)
        steps, step, best, kept = len(fold.fit) // B, 0, math.inf, None
        for _ in range(fold_epochs):
            shuffled = torch.as_tensor(fold.fit)[torch.randperm(len(fold.fit), generator=order)]
            for b in range(steps):
                rows = shuffled[b * B : (b + 1) * B]
                Zc, Zt, Zy, T_raw, T_pre, Y_raw = predict(rows)
                if coupled:
                    v = (t[rows] - T_pre).detach()
                    own = mass[rows] * v
                    new = torch.stack([own @ (y[rows] - Y_raw.detach()), own @ t[rows]]) / B
                    share = 1 / min(step + 1, 50)
                    running = new if running is None else running + share * (new - running)
                    theta_0 = running[0] / running[1]
                loss = supervised(rows, T_raw, T_pre, Y_raw)
                L_dis = (  # Eq. 11
                    hsic(Zc, Zt, omega[0], phase[0], omega[1], phase[1])
                    + hsic(Zc, Zy, omega[0], phase[0], omega[2], phase[2])
                    + hsic(Zt, Zy, omega[1], phase[1], omega[2], phase[2])
                )
                v = t[rows] - T_pre  # Eq. 14
                Y_pre = torch.sigmoid(Y_raw) if label else Y_raw
                e = y[rows] - (theta_0 * T_pre + Y_raw if coupled else Y_pre)
                theta_tra = (v @ e) / (v @ v)  # Eq. 15
                u = e - theta_tra * v  # Eq. 16
                L_ort = pearson(v, u).abs()  # Eq. 17
                total = loss + lambda_dis * L_dis + lambda_ort * L_ort  # Eq. 18
                total = total + l2 / 2 * sum((w**2).sum() for w in weights if w.dim() == 2)
                optimizer.zero_grad()
                total.backward()
                optimizer.param_groups[0]["lr"] = rate_of(step, fold_epochs * steps, fold_peak)
                optimizer.step()
                step += 1
            with torch.no_grad():
                valid = supervised(fold.valid, *predict(fold.valid)[3:])
            if valid < best:
                best, kept = valid, ([w.detach().clone() for w in weights], theta_0)

        with torch.no_grad():
            for w, value in zip(weights, kept[0], strict=True):
                w.copy_(value)
            *_, T_pre, Y_raw = predict(fold.hold)  # Eq. 21
            g = kept[1] * T_pre + Y_raw if coupled else Y_raw
            g = torch.sigmoid(g) if label else g
        T_hat[fold.hold] = (T_pre * t_sd + t_mean).numpy()
        Y_hat[fold.hold] = (g * y_sd + y_mean).numpy()
    v, e = T - T_hat, Y - Y_hat  # Eq. 22
    return (weight * v) @ e / ((weight * v) @ v), T_hat, Y_hat  # Eq. 23
