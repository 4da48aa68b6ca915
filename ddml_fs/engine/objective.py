"""The objective L_total (Eq. 18), with the outcome head as in the paper or coupled."""

from dataclasses import dataclass

import torch

from ddml_fs.engine.losses import (
    RandomFeatures,
    row_errors,
    target_loss,
    to_mean,
)
from ddml_fs.engine.rdo import orthogonality_loss
from ddml_fs.scores import DELTA, residuals

OUTCOMES = ("coupled", "direct")
LIGHT = 0.1  # weights of penalties up to which few batches need them; a weight of 1 needs more


@dataclass(frozen=True)
class LossSettings:
    """Settings of L_total.

    Attributes
    ----------
    outcome : {"coupled", "direct"}
        What Ψ_Y predicts: f in Y = θT + f + ζ ("coupled"), or E[Y | X] as in the paper.
    lambda_dis, lambda_ort : float
        Weights of Eq. 18.
    orthogonality : {"paper", "split", "moments"}
        Form of L_ort.
    even : bool
        Whether to scale the loss of a binary target as if its classes were balanced, so that a
        penalty on the weights affects rare targets as much as others.
    n_features : int
        Number of random Fourier features per role in HSIC.
    penalty_every : int, optional
        The two penalties are computed only for every k-th batch, where k is this number, and their
        weights are multiplied by k. The average gradient is the same, at a lower cost. By default 4
        or, if a weight is above :data:`LIGHT`, 2: a large penalty on few batches is too uneven.
    """

    outcome: str = "coupled"
    lambda_dis: float = 0.0
    lambda_ort: float = 0.0
    orthogonality: str = "paper"
    even: bool = False
    n_features: int = 8
    penalty_every: int | None = None

    @property
    def every(self):
        """The number of batches of which one has the penalties."""
        if self.penalty_every is not None:
            return self.penalty_every
        return 2 if max(self.lambda_dis, self.lambda_ort) > LIGHT else 4


class Objective:
    """L_total of a network, Eq. 18.

    Losses are weighted means over the rows of a batch. The two penalties, which describe the
    latents, are not weighted.

    A binary outcome (a label) is predicted directly, as a probability. In the coupled form, for
    continuous outcomes, Ψ_Y predicts f, the loss is (Y − θ₀T − f)² and E[Y | X] = θ₀·m + f. Then
    Ψ_Y does not need Zt, and the noise θ·(T − m) is removed from its target. θ₀ is a running
    estimate Σv(Y − f)/Σ(vT) with v held fixed. It is stored in ``net.theta_0``, with the weights
    that it belongs to.

    Parameters
    ----------
    net : RoleNetwork
    stack : Stack
    sizes : Sizes
    settings : LossSettings
    memory : int
        Batches over which θ₀ is averaged.
    """

    def __init__(self, net, stack, sizes, settings, memory=50):
        self.net, self.settings, self.memory = net, settings, memory
        self.binary_T, self.binary_Y = stack.binary_T, stack.binary_Y
        self.coupled = settings.outcome == "coupled"
        if self.coupled and self.binary_Y is not False:
            raise ValueError("outcome='coupled' needs continuous outcomes, got binary ones.")
        if self.coupled and stack.base is not None:
            raise ValueError("outcome='coupled' cannot start from a base, which predicts E[Y | X].")
        self.quadratic = None  # added to the heads after training, if it is fitted
        self.moments = torch.zeros(2, stack.P).to(stack.X)
        self.n_batches = 0
        # 1 / (4 p(1 − p)) in terms of the log-odds; 1 for continuous targets.
        log_odds = stack.log_odds if settings.even else torch.zeros_like(stack.log_odds)
        self.scale_T, self.scale_Y = torch.cosh(log_odds / 2).square().unbind(-1)
        if settings.lambda_dis:
            seeds = [seed + 1 for seed in stack.seeds]
            self.features = RandomFeatures(seeds, sizes.Z, settings.n_features, stack.X)

    def forward(self, batch, Z=None):
        """Latents Z (P, B, 3Z), by default of the batch, and T_raw, T_pre, Y_raw, all (P, B)."""
        Z = self.net.Phi(batch.x, batch.own) if Z is None else Z
        T_raw, Y_raw = self.net.Psi(Z)
        if batch.base is not None:
            T_raw, Y_raw = T_raw + batch.base[..., 0], Y_raw + batch.base[..., 1]
        if self.quadratic is not None:
            T_more, Y_more = self.quadratic(Z).unbind(-1)
            T_raw, Y_raw = T_raw + T_more, Y_raw + Y_more
        return Z, T_raw, to_mean(T_raw, self.binary_T), Y_raw

    def outcome_mean(self, T_pre, Y_raw):
        """Y_pre = E[Y | X], (P, B)."""
        if self.coupled:
            return self.net.theta_0[..., 0] * T_pre + Y_raw
        return to_mean(Y_raw, self.binary_Y)

    def outcome_target(self, batch):
        """What Ψ_Y is trained to predict, (P, B)."""
        return batch.Y - self.net.theta_0[..., 0] * batch.T if self.coupled else batch.Y

    def outcome_errors(self, batch, Y_raw):
        """The errors of the rows on which Ψ_Y is trained, (P, B)."""
        return row_errors(Y_raw, self.outcome_target(batch), self.binary_Y)

    def __call__(self, batch):
        """L_total of a training batch, (P,)."""
        Z, T_raw, T_pre, Y_raw = self.forward(batch)
        self._update_theta(batch, T_pre.detach(), Y_raw.detach())
        errors_T = row_errors(T_raw, batch.T, self.binary_T)
        loss = self.supervised_loss(errors_T, self.outcome_errors(batch, Y_raw), batch.weight)
        w, every = self.settings, self.settings.every
        if self.n_batches % every == 0 and w.lambda_dis:
            loss = loss + every * w.lambda_dis * self.features.hsic_loss(Z)
        if self.n_batches % every == 0 and w.lambda_ort:
            v, e = residuals(batch.T, T_pre, batch.Y, self.outcome_mean(T_pre, Y_raw))
            loss = loss + every * w.lambda_ort * orthogonality_loss(w.orthogonality, v, e, Z)
        self.n_batches += 1
        return loss

    @torch.no_grad()
    def _update_theta(self, batch, T_pre, Y_raw):
        v, e = residuals(batch.T, T_pre, batch.Y, to_mean(Y_raw, self.binary_Y))
        own = v if batch.weight is None else batch.weight * v
        new = torch.stack([(own * e).mean(-1), (own * (batch.T if self.coupled else v)).mean(-1)])
        self.moments.lerp_(new, 1 / min(self.n_batches + 1, self.memory))
        numerator, denominator = self.moments
        self.net.theta_0.copy_((numerator / (denominator + DELTA))[:, None, None])

    def errors(self, batch, Z=None):
        """The errors of the rows for both heads, each (P, B); from latents Z if they are given."""
        _, T_raw, _, Y_raw = self.forward(batch, Z)
        return row_errors(T_raw, batch.T, self.binary_T), self.outcome_errors(batch, Y_raw)

    def validate(self, batch, weight):
        """L_sup of validation rows, (P,), without penalties."""
        errors_T, errors_Y = self.errors(batch)
        return self.supervised_loss(errors_T, errors_Y, weight)

    def supervised_loss(self, errors_T, errors_Y, weight=None):
        """L_sup, Eq. 13, from the rows' errors (P, B)."""
        loss_T = self.scale_T * target_loss(errors_T, self.binary_T, weight)
        return loss_T + self.scale_Y * target_loss(errors_Y, self.binary_Y, weight)
