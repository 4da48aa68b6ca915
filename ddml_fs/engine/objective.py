"""What is minimised: L_total (Eq. 18), and the outcome head as printed or coupled."""

from dataclasses import dataclass

import torch

from ddml_fs.engine.losses import (
    DELTA,
    RandomFeatures,
    orthogonality_loss,
    residuals,
    supervised_loss,
    to_treatment,
    treatment_errors,
)

OUTCOMES = ("coupled", "direct")


@dataclass(frozen=True)
class Weights:
    """Settings of L_total.

    Attributes
    ----------
    outcome : {"coupled", "direct"}
        What Ψ_Y predicts: f of Y = θT + f + ζ, or E[Y | X] as printed.
    lambda_dis, lambda_ort : float
        Weights of Eq. 18.
    orthogonality : {"paper", "split", "moments"}
        Form of L_ort.
    n_features : int
        Random Fourier features a role in HSIC.
    penalty_every : int
        The two penalties are computed on every so many-th batch, with so many times the weight:
        the same gradient on average, at a fraction of the cost.
    """

    outcome: str = "coupled"
    lambda_dis: float = 0.0
    lambda_ort: float = 0.0
    orthogonality: str = "paper"
    n_features: int = 8
    penalty_every: int = 2


class Objective:
    """L_total of a network, Eq. 18.

    In the coupled form Ψ_Y predicts f, the loss is (Y − θ₀T − f)² and E[Y | X] = θ₀·m + f. Ψ_Y then
    needs nothing of Zt, and Y's largest noise, θ·(T − m), is out of its way. θ₀ is a running value
    of Σv(Y − f)/Σ(vT) with v held fixed; it lives in ``net.theta_0``, so it is kept together with
    the weights it belongs to.

    Parameters
    ----------
    net : Network
    stack : Stack
    sizes : Sizes
    weights : Weights
    memory : int
        Batches over which θ₀ is averaged.
    """

    def __init__(self, net, stack, sizes, weights, memory=50):
        self.net, self.binary, self.weights, self.memory = net, stack.binary, weights, memory
        self.coupled = weights.outcome == "coupled"
        self.moments = torch.zeros(2, stack.P).to(stack.X)
        self.n_batches = 0
        if weights.lambda_dis:
            seeds = [q.seed + 1 for q in stack.problems]
            self.features = RandomFeatures(seeds, sizes.Z, weights.n_features, stack.X)

    def forward(self, batch):
        """The latents Z (P, B, 3Z), and T_raw, T_pre and Y_raw, all (P, B)."""
        Z = self.net.Phi(batch.x)
        T_raw, Y_raw = self.net.Psi(Z)
        return Z, T_raw, to_treatment(T_raw, self.binary), Y_raw

    def outcome_parts(self, batch, T_pre, Y_raw):
        """Y_pre = E[Y | X] and the error that Ψ_Y is trained on, both (P, B)."""
        if not self.coupled:
            return Y_raw, batch.Y - Y_raw
        theta_0 = self.net.theta_0[..., 0]
        return theta_0 * T_pre + Y_raw, batch.Y - theta_0 * batch.T - Y_raw

    def __call__(self, batch):
        """L_total of a training batch, (P,)."""
        Z, T_raw, T_pre, Y_raw = self.forward(batch)
        self._update_theta(batch, T_pre.detach(), Y_raw.detach())
        Y_pre, error_Y = self.outcome_parts(batch, T_pre, Y_raw)
        errors_T = treatment_errors(T_raw, batch.T, self.binary)
        loss_T, loss_Y = supervised_loss(errors_T, error_Y**2, self.binary)
        loss = loss_T + loss_Y
        w, every = self.weights, self.weights.penalty_every
        if self.n_batches % every == 0 and w.lambda_dis:
            loss = loss + every * w.lambda_dis * self.features.hsic_loss(Z)
        if self.n_batches % every == 0 and w.lambda_ort:
            v, e = residuals(batch.T, T_pre, batch.Y, Y_pre)
            loss = loss + every * w.lambda_ort * orthogonality_loss(w.orthogonality, v, e, Z)
        self.n_batches += 1
        return loss

    @torch.no_grad()
    def _update_theta(self, batch, T_pre, Y_raw):
        v, e = residuals(batch.T, T_pre, batch.Y, Y_raw)
        new = torch.stack([(v * e).mean(-1), (v * (batch.T if self.coupled else v)).mean(-1)])
        self.moments.lerp_(new, 1 / min(self.n_batches + 1, self.memory))
        numerator, denominator = self.moments
        self.net.theta_0.copy_((numerator / (denominator + DELTA))[:, None, None])

    def errors(self, batch):
        """The rows' errors of both heads, each (P, B)."""
        _, T_raw, T_pre, Y_raw = self.forward(batch)
        _, error_Y = self.outcome_parts(batch, T_pre, Y_raw)
        return treatment_errors(T_raw, batch.T, self.binary), error_Y**2

    def validate(self, batch, weight):
        """L_sup of validation rows, (P,); penalties are no part of it."""
        errors_T, errors_Y = self.errors(batch)
        loss_T, loss_Y = supervised_loss(errors_T, errors_Y, self.binary, weight)
        return loss_T + loss_Y
