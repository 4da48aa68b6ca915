"""SITE: CFR's factual loss, with local similarity kept on a few hard pairs of every batch."""

from dataclasses import dataclass

import torch
from sklearn.linear_model import LogisticRegression
from torch.nn.functional import normalize, relu

from experiments.baselines.effects.cfr import two_heads
from experiments.baselines.effects.network import Layers, NetworkEstimator, factual, heads


@dataclass(eq=False, repr=False)
class SITE(NetworkEstimator):
    """Similarity-preserving effect estimation (Yao et al., 2018), rebuilt from its description.

    The loss is the factual error, plus β times the error of a learned similarity on five hard
    pairs (PDDM), plus γ times the squared distance of the arms' middle points (MPDM). Hard pairs
    are chosen in every batch by a logistic propensity s, see ``hard_units``. Ours, where the
    description leaves it open: l and n are the farthest units of their arm, a pair's place is
    measured from the batch's centre, and the layers but those of the similarity's parts are ELU.

    Parameters
    ----------
    target : {"ate", "att"}, default="ate"
    beta : float, default=0.1
        Weight of the similarity.
    gamma : float, default=0.1
        Weight of the middle points.
    hidden, epochs, learning_rate, weight_decay, batch_size, valid_share, random_state
        As in ``NetworkEstimator``.
    """

    beta: float = 0.1
    gamma: float = 0.1

    def _modules(self, R, D, generator):
        net = two_heads(R, D, self.hidden, generator)
        Z = self.hidden
        net["apart"] = Layers(R, (Z, Z), generator, relu)
        net["place"] = Layers(R, (Z, Z), generator, relu)
        net["score"] = Layers(R, (2 * Z, Z, 1), generator)
        return net

    def _prepare(self, net, x, t, y):
        # Not in the net, whose weights all have an axis of replications.
        model = LogisticRegression(max_iter=1000).fit(x.numpy(), t.numpy())
        self.propensity_ = (
            torch.as_tensor(model.coef_[0], dtype=x.dtype),
            float(model.intercept_[0]),
        )

    def _loss(self, net, x, t, y):
        z = net["representation"](x)
        loss = factual(heads(net, z), t, y)
        if t.min() == t.max():  # no pair across arms
            return loss
        w, b = self.propensity_
        s = torch.sigmoid(x @ w + b)
        i, j, k, l, m, n = hard_units(s, t)
        first, second = [k, m, k, i, j], [l, n, m, m, k]
        target = propensity_similarity(s[first], s[second])
        wrong = (learned_similarity(net, z, first, second) - target) ** 2
        apart = (((z[:, i] + z[:, m]) / 2 - (z[:, j] + z[:, k]) / 2) ** 2).sum(-1)
        return loss + self.beta * wrong.mean(-1) + self.gamma * apart

    def _outcomes(self, net, x):
        return heads(net, net["representation"](x))


def hard_units(s, t):
    """Rows (i, j, k, l, m, n) of a batch with propensities s (B,) and treatments t (B,).

    i treated and j control have propensities nearest to ½. k is the control farthest from i, m
    the treated farthest from j; l the control farthest from k, n the treated farthest from m.
    """
    treated, control = (t == 1).nonzero()[:, 0], (t == 0).nonzero()[:, 0]

    def nearest(rows, p):
        return int(rows[(s[rows] - p).abs().argmin()])

    def farthest(rows, p):
        return int(rows[(s[rows] - p).abs().argmax()])

    i, j = nearest(treated, 0.5), nearest(control, 0.5)
    k, m = farthest(control, s[i]), farthest(treated, s[j])
    return i, j, k, farthest(control, s[k]), m, farthest(treated, s[m])


def propensity_similarity(a, b):
    """Similarity of units with propensities a and b: ¾·|(a + b)/2 − ½| − |a − b|/2 + ½.

    Two units in the same region, far from ½, are alike; two of opposite regions are not.
    """
    return 0.75 * ((a + b) / 2 - 0.5).abs() - (a - b).abs() / 2 + 0.5


def learned_similarity(net, z, first, second):
    """Scores (R, P) of P pairs of rows of z (R, B, Z): how far apart they are, and where."""
    a, b = z[:, first], z[:, second]
    centre = z.mean(1, keepdim=True)
    apart = net["apart"](normalize((a - b).abs(), dim=-1))
    place = net["place"](normalize(((a + b) / 2 - centre).abs(), dim=-1))
    both = torch.cat([normalize(apart, dim=-1), normalize(place, dim=-1)], -1)
    return net["score"](both)[..., 0]
