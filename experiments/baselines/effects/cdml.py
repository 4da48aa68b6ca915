"""C-DML: both nuisances from one network, whose residuals' product is kept small."""

from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from sklearn.model_selection import KFold

from ddml_fs.scores import PartiallyLinear
from experiments.baselines.effects.network import Layers, NetworkEstimator, scaled, train


@dataclass(eq=False, repr=False)
class CDML(NetworkEstimator):
    """Coordinated DML (Fingerhut et al., 2022), rebuilt from its description.

    One network gives m̂ = E[T | X] and ℓ̂ = E[Y | X]. With the residuals r of both, its loss is
    MSE_m / MSE_m⁰ + MSE_ℓ / MSE_ℓ⁰ + γ·|mean(r_m r_ℓ)| / |mean(r_m⁰ r_ℓ⁰)|, where ⁰ marks the same
    network trained with γ = 0, plain DML. γ rises from 0, and each network ends with the weights
    of the best loss on rows left out. The effect is that of the residuals on one another.

    Ours, for the description leaves it open: γ rises linearly, and is at most ρ⁰, the correlation
    of plain DML's residuals. Beyond 2·ρ⁰ opposite errors of m̂ and ℓ̂ would pay, all the way to
    an effect of zero.

    Parameters
    ----------
    target : {"ate", "att"}, default="ate"
        No matter: the effect is constant.
    gamma : float, default=1
        Weight of the product at the last epoch, where ρ⁰ allows it; 0 is plain DML.
    n_folds : int, default=5
        Folds of the cross-fitting.
    hidden, epochs, learning_rate, weight_decay, batch_size, valid_share, random_state
        As in ``NetworkEstimator``.

    Attributes
    ----------
    residuals_ : DataFrame
        Held-out residuals ``v`` of T and ``e`` of Y, where y had one column.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 2))
    >>> t = X[:, 0] + rng.standard_normal(300)
    >>> y = 2 * t + X[:, 0]  # the slope without X is 2.5
    >>> abs(CDML(n_folds=2, epochs=20).fit(X, y, treatment=t).effect_ - 2) < 0.2
    True
    """

    gamma: float = 1.0
    n_folds: int = 5

    def _fit(self, X, y, t):
        generator = torch.Generator().manual_seed(self.random_state)
        y = y[:, None] if (single := y.ndim == 1) else y
        both = np.stack([np.broadcast_to(scaled(t), y.T.shape), scaled(y).T], -1)  # (R, N, 2)
        x, both = (torch.as_tensor(a, dtype=torch.float32) for a in (scaled(X), both))
        r = np.empty(both.shape)  # residuals of T and of Y
        for fit, test in KFold(self.n_folds, shuffle=True, random_state=self.random_state).split(X):
            net = self._coordinated(x[fit], t[fit], both[:, fit], generator)
            with torch.no_grad():
                r[:, test] = (both[:, test] - net(x[test])).double().numpy()
        estimates = [PartiallyLinear().of_residuals(v, e) for v, e in r.transpose(0, 2, 1)]
        scale = y.std(0) / t.std()
        effects = np.array([e.theta for e in estimates]) * scale
        stderrs = np.array([e.stderr for e in estimates]) * scale
        self.effect_ = float(effects[0]) if single else effects
        self.stderr_ = float(stderrs[0]) if single else stderrs
        if single:
            v, e = r[0].T
            self.residuals_ = pd.DataFrame({"v": v * t.std(), "e": e * y.std()})

    def _coordinated(self, x, t, both, generator):
        """A network fitted to ``both``, T and Y (R, n, 2), at the rows x (n, D)."""
        valid = self._left_out(t, generator)
        rows = torch.as_tensor(np.setdiff1d(np.arange(len(t)), valid))
        widths = x.shape[1], self.hidden, self.hidden, 2

        def terms(net, rows):
            """MSE_m, MSE_ℓ and |mean(r_m r_ℓ)|, (R, 3)."""
            r = both[:, rows] - net(x[rows])
            return torch.cat([(r**2).mean(1), r.prod(-1).mean(1, keepdim=True).abs()], 1)

        plain = Layers(len(both), widths, generator)
        net = deepcopy(plain)  # both start alike
        train(
            plain,
            lambda batch: terms(plain, batch)[:, :2].sum(1),
            lambda: terms(plain, valid)[:, :2].sum(1),
            rows,
            self,
            generator,
        )
        if not self.gamma:
            return plain
        with torch.no_grad():
            at_plain = terms(plain, slice(None)).clamp(min=1e-12)
        rho = at_plain[:, 2] / at_plain[:, :2].prod(1).sqrt()
        gamma = torch.clamp(rho, max=self.gamma)
        now = torch.zeros_like(gamma)

        def loss(rows, gamma):
            ratios = terms(net, rows) / at_plain
            return ratios[:, :2].sum(1) + gamma * ratios[:, 2]

        def validate():  # always with the last γ, so that epochs can be compared
            now.add_(gamma / self.epochs)
            return loss(valid, gamma)

        train(net, lambda batch: loss(batch, now), validate, rows, self, generator)
        return net
