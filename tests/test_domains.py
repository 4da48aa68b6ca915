"""Effects across domains, against plain loops over features, domains and rows."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq
from scipy.special import expit, logit

from ddml_fs.domains import across_domains
from ddml_fs.evidence import collect
from ddml_fs.scores import Logistic, PartiallyLinear


@pytest.fixture(scope="module")
def mixed():
    """Four domains; the first ten features act alike in all of them, the others do not."""
    rng = np.random.RandomState(0)
    I = rng.uniform(5, 50, (4, 20))
    theta = rng.standard_normal(20) + np.where(np.arange(20) < 10, 0, 2) * rng.randn(4, 20)
    return I * theta + np.sqrt(I) * rng.standard_normal(I.shape), I


class Residuals:
    """Residuals v of the columns, a label y and its predictions g without each feature."""

    def __init__(self, v, y, g, fold):
        self.v, self.y, self.g, self.fold = v, y, g, fold

    def collect(self, unit, domain, **options):
        """Columns of which the others explain nothing, with standard deviations ``unit``."""
        columns = self.v / self.v.std(0) * np.asarray(unit)
        every = np.ones(self.v.shape[1], dtype=bool)
        options = {"Z": columns, "own": np.arange(len(every)), "straight": every} | options
        e = self.y[:, None] - self.g
        options |= {"tested": every, "domain": domain, "fold": self.fold}
        return collect(Logistic(), self.v, e, self.g, **options)

    def rows(self, chosen):
        return Residuals(self.v[chosen], self.y[chosen], self.g[chosen], self.fold[chosen])


@pytest.fixture(scope="module")
def small_sweep():
    """Three features in 60 rows of two domains and three folds."""
    rng = np.random.RandomState(1)
    v = rng.standard_normal((60, 3)).astype(np.float32)
    g = rng.uniform(0.1, 0.9, (60, 3)).astype(np.float32)
    y = rng.binomial(1, expit(0.5 * v[:, 0])).astype(np.float32)
    fold = rng.permutation(60) % 3
    domain = (rng.uniform(size=60) < 0.4).astype(int)
    return Residuals(v, y, g, fold), domain


def root(function):
    return brentq(function, -20, 20, xtol=1e-12)


def own_intercepts_by_hand(v, y, g, domain):
    """One column, one row after another: v less its mean in a domain, and g with its intercept."""
    v, g = v.astype(float), g.astype(float)
    for d in set(domain):
        rows = [i for i in range(len(y)) if domain[i] == d]
        centre = sum(v[i] for i in rows) / len(rows)
        shift = root(lambda a, rows=rows: sum(y[i] - expit(logit(g[i]) + a) for i in rows))
        for i in rows:
            v[i], g[i] = v[i] - centre, expit(logit(g[i]) + shift)
    return v, g


def logistic_by_hand(v, y, g):
    """θ, and the score Σ of which has the root θ with the information of every row."""
    theta = root(
        lambda t: sum(v[i] * (y[i] - expit(logit(g[i]) + t * v[i])) for i in range(len(y)))
    )
    rows = []
    for i in range(len(y)):
        p = expit(logit(g[i]) + theta * v[i])
        information = v[i] ** 2 * p * (1 - p)
        rows.append((v[i] * (y[i] - p) + theta * information, information))
    return theta, rows


def fixed_effects(U, I):
    """Cochran's Q of one feature, its degrees of freedom, and what makes τ² of its excess."""
    theta = [u / i for u, i in zip(U, I, strict=True)]
    mean = sum(U) / sum(I)
    Q = sum(i * (t - mean) ** 2 for i, t in zip(I, theta, strict=True))
    return Q, len(U) - 1, sum(I) - sum(i**2 for i in I) / sum(I)


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
    """The textbook's τ, its interval from the quantiles of Q, and whether chance explains Q."""
    ours = across_domains(*mixed)
    for j, (U, I) in enumerate(zip(mixed[0].T, mixed[1].T, strict=True)):
        Q, df, spread = fixed_effects(U, I)
        chance = stats.chi2(df)
        quantile = chance.ppf(0.99)
        assert ours.Q[j] == pytest.approx(Q)
        assert ours.I2[j] == pytest.approx(max(0.0, (Q - df) / Q))
        assert ours.invariance[j] == pytest.approx(min(1.0, quantile / Q))
        assert ours.differs[j] == (quantile < Q)
        for tau, less in (
            (ours.tau, df),
            (ours.tau_low, chance.ppf(0.975)),
            (ours.tau_high, chance.ppf(0.025)),
        ):
            assert tau[j] ** 2 == pytest.approx(max(0.0, (Q - less) / spread))
        size = math.sqrt(ours.tau[j] ** 2 + ours.effect[j] ** 2 + 0.1**2)
        assert ours.instability[j] == pytest.approx(ours.tau[j] / size)
        assert ours.stable[j] == (ours.tau[j] < 0.5 * size)
    assert 5 <= ours.differs.sum() <= 10  # both kinds are there
    assert 8 <= ours.stable.sum() < 13


def test_means_equal_loops(mixed):
    """The mean's τ² counts of Q what exceeds its 99 % quantile."""
    ours = across_domains(*mixed)
    names = ("effect", "stderr", "agreement", "z", "pvalue")
    for j, (U, I) in enumerate(zip(mixed[0].T, mixed[1].T, strict=True)):
        Q, df, spread = fixed_effects(U, I)
        by_hand = random_effects(U, I, max(0.0, (Q - stats.chi2(df).ppf(0.99)) / spread))
        assert [getattr(ours, name)[j] for name in names] == pytest.approx(by_hand, rel=1e-9)
    np.testing.assert_allclose(ours.by_domain, mixed[0] / mixed[1])


def test_instability_is_a_size(mixed):
    """A million times the rows make effects differ beyond chance, but no more unstable."""
    U, I = np.full((4, 2), 1.0), np.ones((4, 2))
    U[:, 0] += [0.1, -0.1, 0.1, -0.1]
    U[:, 1] += [2.0, -2.0, 2.0, -2.0]
    less, more = across_domains(100 * U, 100 * I), across_domains(1e8 * U, 1e8 * I)
    assert less.differs.tolist() == [False, True]
    assert more.differs.tolist() == [True, True]
    assert less.stable.tolist() == more.stable.tolist() == [True, False]
    assert more.instability[0] == pytest.approx(0.11, abs=0.01)
    assert more.instability[1] == pytest.approx(less.instability[1], abs=0.01)


def test_clearly_unstable_needs_size_and_evidence(mixed):
    """The p-values are those of Cochran's Q; of 500 equal effects, some vary by chance alone."""
    ours = across_domains(*mixed)
    tails = [stats.chi2.sf(Q, len(mixed[0]) - 1) for Q in ours.Q]
    np.testing.assert_allclose(ours.pvalue_equal, tails)
    smallest = sorted(tails)
    passed = [p for k, p in enumerate(smallest, 1) if p <= 0.01 * k / len(tails)]
    known = np.array(tails) <= max(passed)
    assert ours.clearly_unstable.tolist() == (known & ~ours.stable).tolist()
    assert 0 < ours.clearly_unstable.sum() < (~ours.stable).sum()

    rng = np.random.default_rng(0)
    I = np.full((3, 500), 20.0)
    equal = across_domains(np.sqrt(I) * rng.standard_normal(I.shape), I)
    assert (~equal.stable).sum() > 50
    assert not equal.clearly_unstable.any()
    assert not across_domains(I[:1], I[:1]).clearly_unstable.any()


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


def test_equal_effects_do_not_differ():
    """Q of equal effects is χ², so 1 % differ: Binomial(4000, 0.01), here ± 4 sd.

    The mean and Q are independent, so that choosing by Q leaves p-values of null features uniform.
    """
    rng = np.random.RandomState(0)
    I = rng.uniform(1, 100, (5, 4000))
    theta = np.where(np.arange(4000) < 2000, 0.0, 1.0)
    ours = across_domains(I * theta + np.sqrt(I) * rng.standard_normal(I.shape), I)
    assert abs(np.sum(ours.differs) - 40) < 4 * np.sqrt(4000 * 0.01 * 0.99)
    pvalues = ours.pvalue[:2000][~ours.differs[:2000]]
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


@pytest.mark.parametrize("n_domains", [1, 2])
def test_collect_equals_loops(small_sweep, n_domains):
    """With one domain nothing is centred; with two, each has intercepts of its own."""
    s, domain = small_sweep
    domain = domain if n_domains == 2 else np.zeros_like(domain)
    unit = np.array([1.0, 2.0, 0.5])
    ours = s.collect(unit, domain)
    cells = [(d, k) for d in range(n_domains) for k in range(3)]
    assert list(zip(ours.domain, ours.fold, strict=True)) == cells
    assert ours.df.tolist() == [1, 1, 1]
    for j in range(3):
        v, g = s.v[:, j].astype(float), s.g[:, j].astype(float)
        if n_domains == 2:
            v, g = own_intercepts_by_hand(v, s.y, g, domain)
        score = sum(v[i] * (s.y[i] - g[i]) for i in range(60))
        variance = sum(v[i] ** 2 * g[i] * (1 - g[i]) for i in range(60))
        v = v / unit[j]
        theta, rows = logistic_by_hand(v, s.y, g)
        U, I = np.zeros((n_domains, 3)), np.zeros((n_domains, 3))
        for i, (u, information) in enumerate(rows):
            U[domain[i], s.fold[i]] += u
            I[domain[i], s.fold[i]] += information
        # Single precision: 60 terms of size about 1.
        np.testing.assert_allclose(ours.U[:, j], U.ravel(), rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(ours.I[:, j], I.ravel(), rtol=1e-4)
        assert ours.chi2[j] == pytest.approx(score**2 / variance, rel=1e-4)
        influence = [60 / I.sum() * (u - theta * information) for u, information in rows]
        np.testing.assert_allclose(ours.influence[:, j], influence, rtol=1e-3, atol=1e-3)
        np.testing.assert_allclose(ours.by_domain()[0][:, j], U.sum(1), rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(ours.by_domain()[1][:, j], I.sum(1), rtol=1e-4)
        assert ours.U[:, j].sum() / ours.I[:, j].sum() == pytest.approx(theta, abs=1e-4)


def test_means_of_domains_do_not_matter(small_sweep):
    """A constant added to v and to g's log-odds in one domain; the input is left alone."""
    s, domain = small_sweep
    moved = (domain[:, None] == 1) * np.float32(1)
    shifted = Residuals(s.v + 2 * moved, s.y, expit(logit(s.g) - moved), s.fold)
    kept = shifted.v.copy(), shifted.g.copy()
    columns = {"Z": s.v}
    before, after = (part.collect(np.ones(3), domain, **columns) for part in (s, shifted))
    for name in ("U", "I", "influence", "chi2"):
        np.testing.assert_allclose(getattr(after, name), getattr(before, name), atol=1e-3)
    np.testing.assert_array_equal((shifted.v, shifted.g), kept)


@pytest.mark.parametrize("part", ["fold", "domain"])
def test_without_a_part(small_sweep, part):
    """The cells of all others, whose effect is within half an error of theirs alone."""
    s, domain = small_sweep
    ours = s.collect(s.v.std(0), domain)
    labels = {"fold": s.fold, "domain": domain}[part]
    for k in np.unique(labels):
        other = ours.without(part, k)
        kept = getattr(ours, part) != k
        for name in ("U", "I", "domain", "fold"):
            np.testing.assert_array_equal(getattr(other, name), getattr(ours, name)[kept])
        rows = labels != k
        number = domain[rows] if part == "fold" else np.zeros(rows.sum(), dtype=int)
        for j in range(3):
            v, g = own_intercepts_by_hand(s.v[rows, j], s.y[rows], s.g[rows, j], number)
            theta, _ = logistic_by_hand(v, s.y[rows], g)
            I = other.I[:, j].sum()
            assert abs(other.U[:, j].sum() / I - theta) < 0.5 / np.sqrt(I)


@pytest.fixture(scope="module")
def block():
    """Four columns of two features: three levels that act, one that does not."""
    rng = np.random.RandomState(0)
    level = rng.randint(0, 4, 400)
    Z = np.column_stack([level == 1, level == 2, level == 3, rng.standard_normal(400)])
    Z = Z.astype(float)
    y = rng.binomial(1, expit(Z[:, :3] @ [1.5, -1.0, 0.5])).astype(float)
    v = Z - Z.mean(0)
    parts = {"domain": np.zeros(400, int), "fold": np.arange(400) % 3}
    return Z, v, y, parts


def test_a_block_is_tested_as_a_whole(block):
    """Rao's score test of three columns, and the effect of one sd of the sum that fits best."""
    Z, v, y, parts = block
    g = np.full((400, 2), y.mean())
    own, every = np.array([0, 0, 0, 1]), np.ones(4, bool)
    ours = collect(
        Logistic(), v, y[:, None] - g, g, Z=Z, own=own, straight=every, tested=every, **parts
    )
    assert ours.df.tolist() == [3, 1]
    V, p = v[:, :3], y.mean()
    U, M = V.T @ (y - p), p * (1 - p) * V.T @ V
    b = np.linalg.solve(M, U)
    assert ours.chi2[0] == pytest.approx(U @ b)
    # The same as Pearson's test of the table of levels and labels.
    table = [
        [np.sum((y == c) & (level == 1)) for level in (*Z[:, :3].T, 1 - Z[:, :3].sum(1))]
        for c in (0, 1)
    ]
    assert ours.chi2[0] == pytest.approx(stats.chi2_contingency(table).statistic)
    theta, _ = logistic_by_hand(V @ b / np.std(Z[:, :3] @ b), y, g[:, 0])
    assert ours.U[:, 0].sum() / ours.I[:, 0].sum() == pytest.approx(theta, abs=1e-6)


def test_bent_columns_are_tested_but_make_no_effect(block):
    """A line and two more columns: the slope is the line's, the test that of all tested ones."""
    Z, v, y, parts = block
    g = np.full((400, 1), y.mean())
    line = np.array([True, False, False, False])
    found = {}
    for name, tested in (("line", line), ("curve", np.arange(4) < 3), ("all", line | True)):
        found[name] = collect(
            Logistic(),
            v,
            y[:, None] - g,
            g,
            Z=Z,
            own=np.zeros(4, int),
            straight=line,
            tested=tested,
            **parts,
        )
    for name in ("U", "I", "influence"):
        np.testing.assert_allclose(getattr(found["curve"], name), getattr(found["line"], name))
    assert [found[name].df[0] for name in ("line", "curve", "all")] == [1, 3, 4]
    assert found["line"].chi2[0] < found["curve"].chi2[0] < found["all"].chi2[0]


def test_a_column_that_others_explain_says_nothing(block):
    Z, v, y, parts = block
    v = v * [1, 1, 1, 0.05]  # 0.25 % of the variance is left
    g = np.full((400, 4), y.mean())
    every = np.ones(4, bool)
    ours = collect(
        Logistic(),
        v,
        y[:, None] - g,
        g,
        Z=Z,
        own=np.arange(4),
        straight=every,
        tested=every,
        **parts,
    )
    assert ours.df.tolist() == [1, 1, 1, 0]
    assert ours.chi2[3] == 0
    assert not ours.I[:, 3].any()
    assert np.isfinite(ours.influence).all()


@pytest.mark.parametrize("score", [Logistic(), PartiallyLinear()])
def test_degrees_of_freedom_widen_errors_alone(block, score):
    """A tenth of them: the errors of a number grow by 1/√0.9, those of a label by 1/0.9."""
    Z, v, y, parts = block
    g = np.full((400, 4), y.mean())
    every = np.ones(4, bool)
    options = {"Z": Z, "own": np.arange(4), "straight": every, "tested": every} | parts
    none, tenth = (collect(score, v, y[:, None] - g, g, dof=dof, **options) for dof in (0.0, 40.0))
    kept = 0.9**2 if score.label else 0.9
    for name in ("U", "I", "chi2"):
        np.testing.assert_allclose(getattr(tenth, name), kept * getattr(none, name))
