"""What moves between domains: the label's base rate, the features' means, and their effects."""

import numpy as np
import pandas as pd
from scipy import stats

from ddml_fs.domains import SMALL, across_domains, heterogeneity
from ddml_fs.evidence import TINY
from ddml_fs.inference import normal_interval
from ddml_fs.score_tests import Robust
from ddml_fs.weights import varies, weighted_mean, weighted_var

MATERIAL = 0.2  # of a standard deviation: differences between means that are worth a word


def effect_shift(evidence, n_rows):
    """Whether and how much the effects of F features differ between domains.

    Parameters
    ----------
    evidence : list of Evidence
        One per outcome.
    n_rows : int

    Returns
    -------
    table : DataFrame
        ``pvalue_shift``: of equal effects in all domains (Cochran's Q). ``material``: whether τ is
        at least :data:`~ddml_fs.domains.SMALL`, for one standard deviation of the feature.
        ``shift_cost``: what the mean effect loses in a new domain because the effect is another
        there, in log-likelihood per row, I·τ²/2, and ``least_cost``, with the lower bound of τ. The
        cost is a size: it does not grow with the number of rows.
    """
    parts = [across_domains(*s.by_domain()) for s in evidence]
    information = np.stack([s.I.sum(0) for s in evidence]) / n_rows
    df = np.stack([(s.by_domain()[1] > TINY).sum(0) for s in evidence]) - 1
    pvalue = stats.chi2.sf(np.stack([p.Q for p in parts]), np.maximum(df, 1))
    tau, low = (np.stack([getattr(p, name) for p in parts]) for name in ("tau", "tau_low"))
    return pd.DataFrame(
        {
            "pvalue_shift": np.minimum(1.0, len(parts) * np.where(df > 0, pvalue, 1.0).min(0)),
            "material": (tau >= SMALL).any(0),
            "shift_cost": (information * tau**2 / 2).max(0),
            "least_cost": (information * low**2 / 2).max(0),
        }
    )


def moving(shift, level):
    """Features whose effects move: significantly at the false-discovery rate, and materially.

    Parameters
    ----------
    shift : DataFrame
        From :func:`effect_shift`.
    level : float

    Returns
    -------
    moves : bool array of shape (F,)
    """
    qvalue = stats.false_discovery_control(shift["pvalue_shift"])
    return (qvalue <= level) & shift["material"].to_numpy(bool)


def design_of(scores, domain, weight, cluster):
    """Robust over plain variance of means by domain, from scores (N, F); an array (F,).

    1 without clusters and with equal weights. One ratio holds for all domains, as a domain may have
    few clusters.

    Parameters
    ----------
    scores : array of shape (N, F)
        Deviations from the domain's mean.
    domain : int array of shape (N,)
    weight : array of shape (N,)
    cluster : int array of shape (N,), or None
    """
    if cluster is None and not varies(weight):
        return np.ones(scores.shape[1])
    robust = Robust(cluster, domain.max() + 1).variance(weight[:, None] * scores)
    return robust / np.maximum(weight @ scores**2, TINY)


def mean_shift(features, domain, weight=None, cluster=None):
    """Whether and how much the means of F features differ between domains.

    Parameters
    ----------
    features : Features
    domain : int array of shape (N,)
    weight : array of shape (N,), optional
    cluster : int array of shape (N,), optional

    Returns
    -------
    table : DataFrame
        ``mean_shift``: the standard deviation of the mean between domains, beyond chance, over that
        of the feature. ``pvalue_mean``. Of several columns of a feature, the one that moves most.
    """
    weight = np.ones(len(domain)) if weight is None else weight
    member = weight * (domain == np.unique(domain)[:, None])  # (domains, N)
    Z = features.Z.astype(np.float64) / features.unit
    count = member.sum(1, keepdims=True)
    mean = member @ Z / count
    within = np.maximum(member @ Z**2 / count - mean**2, 0.0)
    pooled = (count * within).sum(0) / count.sum()
    design = design_of(Z - mean[domain], domain, weight, cluster)
    I = count / np.maximum(pooled * design, TINY)
    _, Q, df, spread = heterogeneity(I * mean, I, np.ones_like(I, bool))
    tau = np.sqrt(np.maximum(Q - df, 0) / spread) * (df > 0)
    pvalue = np.where(df > 0, stats.chi2.sf(Q, np.maximum(df, 1)), 1.0)
    size = features.size[features.own]
    by = pd.DataFrame({"own": features.own, "mean_shift": tau, "pvalue_mean": pvalue * size})
    table = by.groupby("own").agg({"mean_shift": "max", "pvalue_mean": "min"})
    return table.clip(upper={"mean_shift": np.inf, "pvalue_mean": 1.0}, axis=1).reset_index(
        drop=True
    )


def wilson_interval(share, n, level=0.95):
    """Wilson's interval of a share in n rows, which need not be a whole number.

    Examples
    --------
    >>> [round(float(end), 3) for end in wilson_interval(0.5, 10)]
    [0.237, 0.763]
    """
    z = stats.norm.ppf(0.5 + level / 2)
    centre, half = share + z**2 / (2 * n), z * np.sqrt(share * (1 - share) / n + (z / n) ** 2 / 4)
    return (centre - half) / (1 + z**2 / n), (centre + half) / (1 + z**2 / n)


def base_rates(target, domain, domains, weight=None, cluster=None):
    """Rows and base rate (labels, Wilson's interval) or mean (numbers) of each domain.

    With several classes, the base rate is that of the most frequent class. With weights (N,) or
    clusters (N,), the rows of a domain count like fewer.
    """
    label = target.classes is not None
    weight = np.ones(len(domain)) if weight is None else weight
    y = target.outcomes[int(np.argmax([weight @ y for y in target.outcomes]))]
    parts = [(y[domain == d], weight[domain == d]) for d in range(len(domains))]
    means = np.array([weighted_mean(*part) for part in parts])
    (design,) = design_of((y - means[domain])[:, None], domain, weight, cluster)
    rows = []
    for (own, w), mean in zip(parts, means, strict=True):
        n = w.sum() / max(design, TINY)
        interval = normal_interval(mean, np.sqrt(weighted_var(own, w) / n), 0.95)
        rows.append((len(own), mean, *(wilson_interval(mean, n) if label else interval)))
    name = "base_rate" if label else "mean"
    index = pd.Index(domains, name="domain")
    return pd.DataFrame(rows, columns=["rows", name, "low", "high"], index=index)
