"""Data from several domains, with known causes of the label."""

import numpy as np
from scipy.special import expit
from sklearn.utils import Bunch, check_random_state

from ddml_fs.datasets.effects import KINDS
from ddml_fs.validation import check_integer, check_number, check_option

BLOCK = 4  # columns of one correlated block


def make_domain_data(
    n_domains=5,
    n_samples=1000,
    n_causal=20,
    n_spurious=20,
    n_noise=60,
    *,
    n_proxies=0,
    n_targets=1,
    kind="binary",
    correlation=0.5,
    signal=2.0,
    strength=0.5,
    shift=0.3,
    random_state=None,
):
    """Draw domains in which causes of y act alike, and consequences of y act differently.

    Causes and noise are Gaussian, in correlated blocks that mix the two, with means that move from
    domain to domain. The label depends on the causes alone, by the same law everywhere. A
    consequence is the label times a strength of its own in each domain, of either sign, plus noise:
    it predicts well where it was measured and misleads elsewhere. A proxy is a cause plus noise.

    Parameters
    ----------
    n_domains : int, default=5
        Source domains.
    n_samples : int, default=1000
        Rows of each domain.
    n_causal, n_spurious, n_noise : int
        Causes, consequences whose strength and sign change by domain, and noise columns.
    n_proxies : int, default=0
        Proxies; given the causes, they say nothing about the label.
    n_targets : int, default=1
        Further domains, to test on; their consequences' strengths are drawn afresh.
    kind : {"binary", "continuous"}, default="binary"
        The kind of label.
    correlation : float, default=0.5
        Correlation within a block.
    signal : float, default=2.0
        Standard deviation of the causes' part of the log-odds; the noise of a continuous label has
        standard deviation 1.
    strength : float, default=0.5
        Root mean square of the consequences' strengths.
    shift : float, default=0.3
        Standard deviation of the domains' means.
    random_state : int, RandomState or None, default=None
        Seed of all draws.

    Returns
    -------
    data : Bunch
        ``X`` (N, D) with columns in random order, ``y`` (N,), ``sample_domain`` (N,): 1, 2, … for
        sources and −1, −2, … for targets, as skada numbers them; ``causal``, a bool array (D,);
        ``roles``, an array (D,) of "causal", "spurious", "proxy" and "noise"; ``theta`` (D,), the
        effects of the columns on the log-odds (or on y), zero for all but causes.

    Examples
    --------
    >>> from ddml_fs.datasets import make_domain_data
    >>> data = make_domain_data(n_samples=100, random_state=0)
    >>> data.X.shape, int(data.causal.sum()), sorted(set(data.sample_domain.tolist()))
    ((600, 100), 20, [-1, 1, 2, 3, 4, 5])
    """
    check_option(kind, "kind", KINDS)
    for name, value, least in (
        ("n_domains", n_domains, 1),
        ("n_samples", n_samples, 1),
        ("n_causal", n_causal, 1),
        ("n_spurious", n_spurious, 0),
        ("n_noise", n_noise, 0),
        ("n_proxies", n_proxies, 0),
        ("n_targets", n_targets, 0),
    ):
        check_integer(value, name, least)
    check_number(correlation, "correlation", 0, 0.99)
    rng = check_random_state(random_state)
    n_base = n_causal + n_noise
    domain = np.repeat(np.r_[np.arange(1, n_domains + 1), -np.arange(1, n_targets + 1)], n_samples)

    # Blocks mix causes and noise: the columns are dealt to them in random order.
    block = rng.permutation(n_base) // BLOCK
    common = rng.standard_normal((len(domain), block.max() + 1))[:, block]
    base = np.sqrt(correlation) * common
    base += np.sqrt(1 - correlation) * rng.standard_normal(base.shape)
    means = shift * rng.standard_normal((n_domains + n_targets, n_base))
    base += np.repeat(means, n_samples, 0)

    theta = rng.uniform(0.5, 1, n_causal) * rng.choice([-1, 1], n_causal)
    causes = base[:, :n_causal]
    theta *= signal / np.std(causes @ theta)
    index = causes @ theta
    index = index - index.mean()
    if kind == "binary":
        y = rng.binomial(1, expit(index))
        side = 2.0 * y - 1
    else:
        y = index + rng.standard_normal(len(index))
        side = y / y.std()

    strengths = strength * rng.standard_normal((n_domains + n_targets, n_spurious))
    spurious = side[:, None] * np.repeat(strengths, n_samples, 0)
    spurious += rng.standard_normal(spurious.shape)
    proxies = causes[:, rng.randint(n_causal, size=n_proxies)]
    proxies = proxies + 0.5 * rng.standard_normal(proxies.shape)

    counts = (n_causal, n_noise, n_spurious, n_proxies)
    roles = np.repeat(["causal", "noise", "spurious", "proxy"], counts)
    X = np.hstack([base, spurious, proxies])
    theta = np.r_[theta, np.zeros(len(roles) - n_causal)]
    order = rng.permutation(len(roles))
    return Bunch(
        X=X[:, order],
        y=y,
        sample_domain=domain,
        causal=roles[order] == "causal",
        roles=roles[order],
        theta=theta[order],
    )
