"""Small random forests for many problems at once, on binned inputs.

scikit-learn grows one tree after another. Here all trees of many problems grow together, level by
level: one histogram holds the rows of every node, by candidate input and bin. The problems of a
fold share their training rows, so they share the rows that are drawn and the candidate inputs, too.
Trees are not stored: the rows to predict move down together with the training rows.

This is for small trees. Large trees need more bins to be as accurate as scikit-learn's, and most of
their nodes have fewer rows than bins. Then it is no faster.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

ROWS_AT_ONCE = 100_000  # of all trees that grow together: few enough for the cache
LEAST_GAIN = 1e-7  # of targets with a standard deviation of about 1: less is rounding error
# Gains are equal up to this share. Inputs that depend on one another often give the same leaves,
# and then the rounding of sums must not decide.
TIE = 1e-5


@dataclass(frozen=True)
class ForestSettings:
    """Settings, as of scikit-learn's forests.

    Attributes
    ----------
    n_trees : int
    min_leaf : int
        Least number of drawn rows in a leaf.
    max_features : float
        Share of the inputs that are candidates for the splits of one level of a tree.
    max_samples : float
        Number of rows that a tree draws, with replacement, as a share of the training rows.
    n_bins : int
        Bins of an input, with about equally many rows; at most 256.
    max_depth : int
        Largest depth of a tree.
    """

    n_trees: int = 10
    min_leaf: int = 30
    max_features: float = 0.5
    max_samples: float = 0.3
    n_bins: int = 32
    max_depth: int = 16


class Trees(NamedTuple):
    """What is random in t trees: the rows and the candidate inputs."""

    draws: Tensor  # (t, m)
    candidates: Tensor  # (levels, t, k)


def draw_trees(settings, weight, n_inputs, seed):
    """Draw rows and candidate inputs of the trees of one forest.

    Parameters
    ----------
    settings : ForestSettings
    weight : Tensor of shape (n,)
        Weights of the training rows. A row is drawn with a probability in proportion to its weight.
    n_inputs : int
    seed : int

    Returns
    -------
    trees : Trees
        On the CPU.

    Examples
    --------
    >>> trees = draw_trees(ForestSettings(), torch.ones(100), 9, seed=0)
    >>> tuple(trees.draws.shape), tuple(trees.candidates.shape)
    ((10, 30), (17, 10, 4))
    """
    generator = torch.Generator().manual_seed(seed)
    t, m = settings.n_trees, max(1, round(settings.max_samples * len(weight)))
    k = max(1, int(settings.max_features * n_inputs))
    total = weight.cpu().double().cumsum(0)
    places = torch.rand(t, m, generator=generator, dtype=torch.float64) * total[-1]
    draws = torch.searchsorted(total, places, right=True).clamp_(max=len(weight) - 1)
    keys = torch.rand(settings.max_depth + 1, t, n_inputs, generator=generator)
    return Trees(draws, keys.argsort(-1)[..., :k])


def bin_inputs(x, x_new, n_bins):
    """Numbers of the bins of inputs, by quantiles of the training rows.

    Parameters
    ----------
    x, x_new : Tensors of shape (M, n, F) and (M, h, F)
    n_bins : int

    Returns
    -------
    codes, new_codes : uint8 Tensors of shape (M, n, F) and (M, h, F)
        Equal values are in one bin.

    Examples
    --------
    >>> x = torch.tensor([4.0, 1.0, 2.0, 3.0]).reshape(1, 4, 1)
    >>> [codes.flatten().tolist() for codes in bin_inputs(x, x + 1, 2)]
    [[1, 0, 0, 1], [1, 0, 1, 1]]
    """
    columns = x.transpose(1, 2).contiguous()
    places = (torch.arange(1, n_bins, device=x.device) * x.shape[1] // n_bins).clamp(min=1)
    ordered = columns.sort(-1).values
    # Midway between neighbours: rows with nearly the same value as an edge would be torn apart.
    edges = ((ordered[..., places - 1] + ordered[..., places]) / 2).contiguous()

    def code(values):
        found = torch.searchsorted(edges, values, right=True, out_int32=True)
        return found.to(torch.uint8).transpose(1, 2).contiguous()

    return code(columns), code(x_new.transpose(1, 2).contiguous())


def predict_forests(x, y, x_new, trees, settings):
    """Predictions of M forests that share their training rows.

    Parameters
    ----------
    x : Tensor of shape (M, n, F)
        Inputs of the training rows.
    y : Tensor of shape (M, n)
        Targets, with standard deviations of about 1.
    x_new : Tensor of shape (M, h, F)
    trees : Trees
    settings : ForestSettings

    Returns
    -------
    predictions : Tensor of shape (M, h)
    """
    codes, new_codes = bin_inputs(x, x_new, settings.n_bins)
    draws, candidates = (a.to(x.device) for a in trees)
    t, m = draws.shape
    share = min(max(1, ROWS_AT_ONCE // m), t)  # trees, and then problems, that grow together
    both = max(1, ROWS_AT_ONCE // (share * m))
    out = torch.zeros(x_new.shape[:2], dtype=y.dtype, device=x.device)
    for a in range(0, len(x), both):
        for b in range(0, t, share):
            own = Trees(draws[b : b + share], candidates[:, b : b + share])
            part = slice(a, a + both)
            out[part] += grow(codes[part], y[part], new_codes[part], own, settings).sum(1) / t
    return out


class Rows(NamedTuple):
    """Rows of trees that are not yet in a leaf."""

    codes: Tensor  # (E, F)
    values: Tensor  # (E,), targets, or places of the predictions
    node: Tensor  # (E,)

    def descend(self, split, feature, cut, child):
        """The rows of nodes that are split, in the nodes of the next level."""
        stay = split.index_select(0, self.node).nonzero()[:, 0]
        codes, values, node = (a.index_select(0, stay) for a in self)
        feature, cut, child = (a.index_select(0, node) for a in (feature, cut, child))
        return Rows(codes, values, child + (codes.gather(1, feature[:, None])[:, 0] > cut))


def grow(codes, y, new_codes, trees, settings):
    """Predictions of t trees for each of M problems.

    A split is the one with the lowest squared error. For 0/1 targets it is the one with the lowest
    Gini impurity as well.

    Parameters
    ----------
    codes, new_codes : uint8 Tensors of shape (M, n, F) and (M, h, F)
    y : Tensor of shape (M, n)
    trees : Trees
    settings : ForestSettings

    Returns
    -------
    predictions : Tensor of shape (M, t, h)
    """
    (M, h, F), (t, m), n_bins = new_codes.shape, trees.draws.shape, settings.n_bins
    roots = torch.arange(M * t, device=y.device)
    rows = Rows(
        codes[:, trees.draws].reshape(-1, F),
        y[:, trees.draws].flatten(),
        roots.repeat_interleave(m),
    )
    places = torch.arange(M * t * h, device=y.device)
    new = Rows(
        new_codes[:, None].expand(M, t, h, F).reshape(-1, F), places, roots.repeat_interleave(h)
    )
    out, tree = y.new_zeros(M * t * h), roots % t
    for level in trees.candidates:
        features = level[tree]  # (A, k), of A nodes
        n, total = histograms(rows, features, n_bins)
        mean = total[:, 0, -1] / n[:, 0, -1]
        out[new.values] = mean.index_select(0, new.node)
        gain = gains(n, total, settings.min_leaf).flatten(1)
        top = gain.amax(1, keepdim=True)
        best = (gain >= (1 - TIE) * top).byte().argmax(1, keepdim=True)  # the first one of equals
        split = top[:, 0] > LEAST_GAIN
        if not split.any():
            break
        feature, cut = features.gather(1, best // n_bins)[:, 0], best[:, 0] % n_bins
        child = 2 * (split.cumsum(0) - 1)
        rows, new = (r.descend(split, feature, cut, child) for r in (rows, new))
        tree = tree[split].repeat_interleave(2)
    return out.view(M, t, h)


def histograms(rows, features, n_bins):
    """Numbers of rows up to each bin, and sums of their targets, both (A, k, n_bins).

    Parameters
    ----------
    rows : Rows
    features : int Tensor of shape (A, k)
        Candidate inputs of the nodes.
    n_bins : int
    """
    (A, k), (codes, y, node) = features.shape, rows
    cells = (node * k)[:, None] + torch.arange(k, device=node.device)
    cells = cells.mul_(n_bins).add_(codes.gather(1, features.index_select(0, node))).flatten()
    return (
        y.new_zeros(A * k * n_bins).scatter_add_(0, cells, v).view(A, k, n_bins).cumsum(-1)
        for v in (y.new_ones(1).expand(len(cells)), y.repeat_interleave(k))
    )


def gains(n, total, min_leaf):
    """By how much a cut after each bin lowers the sum of squares; 0 if a leaf were too small.

    Divided by the number of rows of the node, which does not change the order.

    Parameters
    ----------
    n, total : Tensors of shape (A, k, n_bins)
        As :func:`histograms` returns them.
    min_leaf : int
    """
    n_node, mean = n[..., -1:], total[..., -1:] / n[..., -1:]
    rest = n_node - n
    gain = (total - n * mean).square() / (n * rest)
    return torch.where(torch.minimum(n, rest) >= min_leaf, gain, 0.0)
