"""The selectors built on G² tests, against slow tests and a network whose truth is known."""

import numpy as np
import pytest
from scipy.stats import chi2, chi2_contingency
from sklearn.metrics import roc_auc_score

from experiments.baselines.selectors.cifd import CIFD, adjusted_effect
from experiments.baselines.selectors.cvs import CVS
from experiments.baselines.selectors.eamb import EAMB
from experiments.baselines.selectors.independence import binarise, g2_test, is_testable, surprise

PARENTS, CHILDREN, PROXIES, NOISE, CONSTANT = (
    np.arange(4),
    np.arange(4, 6),
    np.arange(6, 10),
    np.arange(10, 30),
    30,
)


def flipped(rng, column, rate):
    """A noisy copy of a 0/1 column."""
    return np.where(rng.random(len(column)) < rate, 1 - column, column)


@pytest.fixture(scope="module")
def network():
    """Parents -> y -> children; each proxy is a child of one parent and does nothing to y."""
    rng = np.random.default_rng(0)
    n = 4000
    parents = rng.integers(0, 2, (n, 4))
    y = (rng.random(n) < 1 / (1 + np.exp(-2 * (parents.sum(axis=1) - 2)))).astype(int)
    children = [flipped(rng, y, 0.2) for _ in CHILDREN]
    proxies = [flipped(rng, parents[:, j], 0.15) for j in range(4)]
    noise = rng.integers(0, 2, (n, len(NOISE)))
    columns = [parents, *children, *proxies, noise, np.ones(n)]
    return np.column_stack(columns).astype(float), y


def slow_g2(x, y, given):
    """Stratum by stratum with SciPy; strata where x or y is constant are left out."""
    g2, dof = 0.0, 0
    for values in np.unique(given, axis=0):
        rows = (given == values).all(axis=1)
        table = np.array(
            [[np.sum((x[rows] == a) & (y[rows] == b)) for a in (0, 1)] for b in (0, 1)]
        )
        if table.sum(axis=0).all() and table.sum(axis=1).all():
            g2 += chi2_contingency(table, correction=False, lambda_="log-likelihood").statistic
            dof += 1
    return g2, dof


@pytest.mark.parametrize("size", [0, 1, 2, 5, 13])
def test_g2_is_the_sum_of_scipys(size):
    rng = np.random.default_rng(size)
    X = (rng.random((300, 20)) < rng.uniform(0.02, 0.6, 20)).astype(float)
    X[:, 0] = 1
    y, given = flipped(rng, X[:, 3], 0.3), X[:, 7 : 7 + size]
    g2, dof = g2_test(X, y, given)
    # Nothing given is one stratum.
    slow = [slow_g2(x, y, given if size else np.zeros((300, 1))) for x in X.T]
    np.testing.assert_allclose(g2, [s[0] for s in slow], atol=1e-8)
    np.testing.assert_array_equal(dof, [s[1] for s in slow])
    assert g2[0] == dof[0] == 0
    assert not g2[7 : 7 + size].any()  # a column given itself


def test_surprise_is_minus_log_p_and_does_not_underflow():
    g2, dof = np.array([0.0, 3.0, 50.0, 600.0]), np.array([1, 2, 8, 3])
    np.testing.assert_allclose(surprise(g2, dof), -chi2.logsf(g2, dof), rtol=1e-8)
    assert surprise(np.array([9.0]), np.array([0]))[0] == 0
    far = surprise(np.array([1370.0, 1390.0, 3000.0]), np.array([1, 1, 1]))
    assert (np.diff(far) > 9).all()
    assert np.isfinite(far).all()


def test_binarise():
    X = np.array([[0, 0, 1.5, 1], [1, 0, 2.5, 2], [1, 0, 3.5, 2], [1, 7, 4.5, 2]])
    expected = [[0, 0, 0, 0], [1, 0, 0, 1], [1, 0, 1, 1], [1, 1, 1, 1]]
    np.testing.assert_array_equal(binarise(X), expected)


def test_a_test_needs_samples_in_every_cell():
    given = np.repeat(np.eye(2), 20, axis=0)  # two strata occur of four
    assert is_testable(given, 5)
    assert not is_testable(given, 6)


def test_adjustment_removes_confounding_by_strata_and_by_a_line():
    rng = np.random.default_rng(0)
    z = rng.integers(0, 2, 20000)
    t = flipped(rng, z, 0.2)
    y = (rng.random(20000) < 0.2 + 0.1 * t + 0.5 * z).astype(int)
    assert adjusted_effect(t, y, np.empty((20000, 0)), 5) > 0.3
    assert adjusted_effect(t, y, z[:, None], 5) == pytest.approx(0.1, abs=0.03)
    assert adjusted_effect(t, y, z[:, None], 10**6) == pytest.approx(0.1, abs=0.03)
    assert adjusted_effect(z, y, z[:, None], 5) == 0  # no stratum has both arms


def test_eamb_finds_the_markov_blanket(network):
    top = EAMB().fit(*network).order()[:6]
    assert set(top) == {*PARENTS, *CHILDREN}


def test_eamb_takes_back_what_its_tests_could_not_reach(network):
    X, y = network
    strict = {"min_count": 100}  # tests given at most three columns
    without = EAMB(share=0, **strict).fit(X, y).scores_
    looked = EAMB(share=0.5, **strict).fit(X, y).scores_
    assert (without >= 2).sum() < 6
    assert not ((without >= 1) & (without < 2)).any()
    joined = np.flatnonzero((looked >= 1) & (looked < 2))
    assert set(joined) & {*PARENTS, *CHILDREN}


def test_cifd_scores_causes_far_above_what_is_only_confounded(network):
    scores = CIFD().fit(*network).scores_
    assert scores[PARENTS].min() > 2.1  # an edge to y and |ACE| above 0.1
    assert scores[PARENTS].min() > 1.5 * scores[PROXIES].max()


@pytest.mark.parametrize("options", [{}, {"seeds": [0], "use_label": False}])
def test_cvs_ranks_causes_above_noise(network, options):
    scores = CVS(**options).fit(*network).scores_
    causes = PARENTS[1:]  # without the given seed
    truth = np.r_[np.ones(len(causes)), np.zeros(len(NOISE))]
    assert roc_auc_score(truth, scores[np.r_[causes, NOISE]]) > 0.95


def test_cvs_alone_knows_causes_from_consequences(network):
    scores = CVS(seeds=[0], use_label=False).fit(*network).scores_
    assert scores.argmax() == 0
    assert scores[PARENTS[1:]].min() > scores[CHILDREN].max()


@pytest.mark.parametrize("selector", [EAMB, CIFD, CVS])
def test_selectors_keep_k_features_and_constants_last(network, selector):
    fitted = selector(n_features_to_select=5).fit(*network)
    assert fitted.get_support().sum() == 5
    assert np.isfinite(fitted.scores_).all()
    assert fitted.scores_[CONSTANT] == 0
    assert fitted.scores_[CONSTANT] < fitted.scores_[[*PARENTS, *CHILDREN]].min()
    assert fitted.order()[0] not in NOISE
