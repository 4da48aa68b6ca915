"""Effects across domains, against plain loops over features, domains and rows."""

import math

import numpy as np
import pytest
from scipy import stats

from ddml_fs.domains import across_domains, collect
from ddml_fs.scores import Logistic


@pytest.fixture(scope="module")
def mixed():
    """Four domains; the first ten features act alike in all of them, the others do not."""
    rng = np.random.RandomState(0)
    I = rng.uniform(5, 50, (4, 20))
    theta = rng.standard_normal(20) + np.where(np.arange(20) < 10, 0, 2) * rng.randn(4, 20)
    return I * theta + np.sqrt(I) * rng.standard_normal(I.shape), I


class Residuals:
    """Residuals v and e of three features, and the prediction g of a label, (N, 3)."""

    def __init__(self, v, e, g, fold):
        self.v, self.e, self.g, self.fold = v, e, g, fold
        self.information = g * (1 - g)

    def collect(self, unit, domain):
        return collect(Logistic(), self.v, self.e, self.g, unit=unit, domain=domain, fold=self.fold)


@pytest.fixture(scope="module")
def small_sweep():
    """Three features in 60 rows of two domains and three folds."""
    rng = np.random.RandomState(1)
    v, e = rng.standard_normal((2, 60, 3)).astype(np.float32)
    g = rng.uniform(0.1, 0.9, (60, 3)).astype(np.float32)
    fold = rng.permutation(60) % 3
    domain = (rng.uniform(size=60) < 0.4).astype(int)
    return Residuals(v, e, g, fold), domain


def fixed_effects(U, I):
    """Cochran's Q, its degrees of freedom, and the textbook's τ² of one feature."""
    theta = [u / i for u, i in zip(U, I, strict=True)]
    mean = sum(U) / sum(I)
    Q = sum(i * (t - mean) ** 2 for i, t in zip(I, theta, strict=True))
    df = len(U) - 1
    spread = sum(I) - sum(i**2 for i in I) / sum(I)
    return Q, df, max(0.0, (Q - df) / spread)


def random_effects(U, I, tau2):
    """Mean, standard error, share of domains that agree, z and p-value of one feature."""
    weights = [1 / (1 / i + tau2) for i in I]
    theta = [u / i for u, i in zip(U, I, strict=True)]
    mean = sum(w * t for w, t in zip(weights, theta, strict=True)) / sum(weights)
    stderr = math.sqrt(1 / sum(weights))
    agreement = sum(t * mean > 0 for t in theta) / len(theta)
    z = mean / math.sqrt(tau2 + stderr**2)
    reference = stats.t(len(U) - 1) if tau2 > 0 else stats.norm
    return mean, stderr, agreement, z, 2 * reference.sf(abs(z))


def test_heterogeneity_equals_loops(mixed):
    """τ² is 0 where chance explains Q, and elsewhere no more than the textbook's."""
    ours = across_domains(*mixed)
    for j, (U, I) in enumerate(zip(mixed[0].T, mixed[1].T, strict=True)):
        Q, df, tau2 = fixed_effects(U, I)
        quantile = stats.chi2(df).ppf(0.99)
        assert ours.Q[j] == pytest.approx(Q)
        assert ours.I2[j] == pytest.approx(max(0.0, (Q - df) / Q))
        assert ours.invariance[j] == pytest.approx(min(1.0, quantile / Q))
        assert ours.stable[j] == (quantile >= Q)
        assert (ours.tau[j] > 0) == (quantile < Q)
        assert ours.tau[j] ** 2 <= tau2
    assert 10 <= ours.stable.sum() < 15  # both kinds are there


def test_tau_of_precise_effects_is_the_textbooks(mixed):
    """What is taken off Q is a few units; at Q of some 10⁷ it is nothing."""
    U, I = mixed[0] * 1e6, mixed[1] * 1e6
    textbook = [fixed_effects(*columns)[2] for columns in zip(U.T, I.T, strict=True)]
    np.testing.assert_allclose(across_domains(U, I).tau ** 2, textbook, rtol=1e-4)


def test_means_equal_loops(mixed):
    ours = across_domains(*mixed)
    names = ("effect", "stderr", "agreement", "z", "pvalue")
    for j, (U, I) in enumerate(zip(mixed[0].T, mixed[1].T, strict=True)):
        by_hand = random_effects(U, I, ours.tau[j] ** 2)
        assert [getattr(ours, name)[j] for name in names] == pytest.approx(by_hand, rel=1e-9)
    np.testing.assert_allclose(ours.by_domain, mixed[0] / mixed[1])


def test_one_domain():
    U, I = np.array([[3.0, -8.0, 0.0]]), np.array([[4.0, 16.0, 9.0]])
    ours = across_domains(U, I)
    np.testing.assert_allclose(ours.z, [1.5, -2.0, 0.0])
    np.testing.assert_allclose(ours.effect, [0.75, -0.5, 0.0])
    np.testing.assert_allclose(ours.stderr, [0.5, 0.25, 1 / 3])
    np.testing.assert_allclose(ours.pvalue, 2 * stats.norm.sf(np.abs(ours.z)))
    assert not ours.tau.any()
    assert not ours.I2.any()
    assert ours.stable.all()


@pytest.mark.parametrize("n_domains", [1, 4])
def test_features_without_information(n_domains):
    """Without information anywhere there is no effect."""
    U, I = np.ones((n_domains, 2)), np.ones((n_domains, 2))
    U[:, 0] = I[:, 0] = 0
    ours = across_domains(U, I)
    assert ours.z[0] == 0
    assert ours.effect[0] == 0
    assert ours.pvalue[0] == 1
    assert all(np.isfinite(column).all() for column in vars(ours).values())


def test_a_domain_without_information_adds_nothing_to_the_mean():
    U, I = np.array([[4.0], [6.0], [0.0]]), np.array([[2.0], [4.0], [0.0]])
    three, two = across_domains(U, I), across_domains(U[:2], I[:2])
    for name in ("effect", "stderr", "Q", "z", "pvalue"):
        np.testing.assert_allclose(getattr(three, name), getattr(two, name), rtol=1e-9)


def test_equal_effects_are_called_stable():
    """Q of equal effects is χ², so 1 % are unstable: Binomial(4000, 0.01), here ± 4 sd.

    The mean and Q are independent, so that choosing by Q leaves p-values of null features uniform.
    """
    rng = np.random.RandomState(0)
    I = rng.uniform(1, 100, (5, 4000))
    theta = np.where(np.arange(4000) < 2000, 0.0, 1.0)
    ours = across_domains(I * theta + np.sqrt(I) * rng.standard_normal(I.shape), I)
    assert abs(np.sum(~ours.stable) - 40) < 4 * np.sqrt(4000 * 0.01 * 0.99)
    pvalues = ours.pvalue[:2000][ours.stable[:2000]]
    for level in (0.05, 0.5):
        sd = np.sqrt(level * (1 - level) / len(pvalues))
        assert abs(np.mean(pvalues < level) - level) < 4 * sd


def test_precision_helps_stable_effects_alone():
    """A hundredfold information: z times 10 for equal effects, hardly more for changing signs."""
    theta = np.array([[1.0, 1.0], [1.1, -1.2], [0.9, 0.8], [1.05, -0.9], [0.95, 1.1]])
    I = np.full(theta.shape, 20.0)
    # Equal effects stay equal: 0.1 in spread is chance at I = 20, and is made smaller at 2000.
    less = across_domains(I * theta, I)
    precise = theta.copy()
    precise[:, 0] = 1 + (theta[:, 0] - 1) / 10
    more = across_domains(100 * I * precise, 100 * I)
    assert less.stable.tolist() == more.stable.tolist() == [True, False]
    assert more.z[0] == pytest.approx(10 * less.z[0])
    assert abs(less.z[1]) < 0.5
    assert abs(more.z[1]) < 1.1 * abs(less.z[1])


def test_collect_equals_loops(small_sweep):
    s, domain = small_sweep
    unit = np.array([1.0, 2.0, 0.5])
    ours = s.collect(unit, domain)
    assert list(zip(ours.domain, ours.fold, strict=True)) == [
        (d, k) for d in (0, 1) for k in range(3)
    ]
    for j in range(3):
        U, I = np.zeros((2, 3)), np.zeros((2, 3))
        mean_v = [np.mean([s.v[i, j] for i in range(60) if domain[i] == d]) for d in (0, 1)]
        mean_e = [np.mean([s.e[i, j] for i in range(60) if domain[i] == d]) for d in (0, 1)]
        rows = []
        for i in range(60):
            v = (s.v[i, j] - mean_v[domain[i]]) / unit[j]
            score, information = v * (s.e[i, j] - mean_e[domain[i]]), v**2 * s.information[i, j]
            U[domain[i], s.fold[i]] += score
            I[domain[i], s.fold[i]] += information
            rows.append((score, information))
        # Single precision: 60 terms of size about 1.
        np.testing.assert_allclose(ours.U[:, j], U.ravel(), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(ours.I[:, j], I.ravel(), rtol=1e-5)
        pooled = U.sum() / I.sum()
        influence = [60 / I.sum() * (score - pooled * information) for score, information in rows]
        np.testing.assert_allclose(ours.influence[:, j], influence, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(ours.by_domain()[0][:, j], U.sum(1), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(ours.by_domain()[1][:, j], I.sum(1), rtol=1e-5)


def test_one_domain_is_not_centred(small_sweep):
    s, domain = small_sweep
    ours = s.collect(np.ones(3), np.zeros_like(domain))
    for k in range(3):
        np.testing.assert_allclose(ours.U[k], (s.v * s.e)[s.fold == k].sum(0), rtol=1e-4)


def test_means_of_domains_do_not_matter(small_sweep):
    """A constant added to v and to e in one domain changes nothing; the input is left alone."""
    s, domain = small_sweep
    moved = (domain[:, None] == 1) * np.float32(2)
    shifted = Residuals(s.v + moved, s.e - 3 * moved, s.g, s.fold)
    kept = shifted.v.copy(), shifted.e.copy()
    before, after = (part.collect(np.ones(3), domain) for part in (s, shifted))
    for name in ("U", "I", "influence"):
        np.testing.assert_allclose(getattr(after, name), getattr(before, name), atol=1e-4)
    np.testing.assert_array_equal((shifted.v, shifted.e), kept)


def test_without_a_fold(small_sweep):
    s, domain = small_sweep
    one = np.zeros_like(domain)
    for k in range(3):
        rows = s.fold != k
        fewer = Residuals(s.v[rows], s.e[rows], s.g[rows], s.fold[rows])
        other, refit = (
            s.collect(np.ones(3), one).without("fold", k),
            fewer.collect(np.ones(3), one[rows]),
        )
        for name in ("U", "I", "domain", "fold"):
            np.testing.assert_array_equal(getattr(other, name), getattr(refit, name))


def test_without_a_domain(small_sweep):
    """The rows of the other domain, centred by their own mean."""
    s, domain = small_sweep
    U, I = s.collect(np.ones(3), domain).without("domain", 0).by_domain()
    rows = domain == 1
    v, e = (a[rows] - a[rows].mean(0) for a in (s.v, s.e))
    np.testing.assert_allclose(U[0], (v * e).sum(0), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(I[0], (v**2 * s.information[rows]).sum(0), rtol=1e-5)
