"""Shrunken effects, against grids over the prior and integrals over the true effect."""

import numpy as np
import pytest
from scipy import integrate, stats

from ddml_fs.empirical_bayes import EM_STEPS, PRIORS, Prior, learn_prior


def normal_truth(tau=1.0, n=1000, seed=0):
    """True effects from one normal, their estimates and standard errors of all sizes."""
    rng = np.random.default_rng(seed)
    stderr = rng.uniform(0.5, 2, n)
    theta = tau * rng.standard_normal(n)
    return theta, theta + stderr * rng.standard_normal(n), stderr


def sparse_truth(share=0.05, n=1000, seed=0):
    """Most effects are nothing, a few are large."""
    rng = np.random.default_rng(seed)
    stderr = rng.uniform(0.5, 2, n)
    theta = np.where(rng.uniform(size=n) < share, 5 * rng.standard_normal(n), 0.0)
    return theta, theta + stderr * rng.standard_normal(n), stderr


def posterior(effect, stderr, kind):
    return learn_prior(effect, stderr, kind).posterior_mean(effect, stderr)


def log_likelihood(prior, effect, stderr):
    """Of the estimates, without the true effects."""
    sd = np.sqrt(prior.tau**2 + stderr[:, None] ** 2)
    return np.log(stats.norm.pdf(effect[:, None], 0, sd) @ prior.weight).sum()


def integrated_mean(prior, effect, stderr):
    """∫ θ p(θ̂ | θ) dP(θ) / ∫ p(θ̂ | θ) dP(θ) of one effect; a part with τ = 0 is a jump at 0."""
    theta = np.linspace(-1, 1, 40_001) * (abs(effect) + 10 * stderr)
    seen = stats.norm.pdf(effect, theta, stderr)
    above = below = 0.0
    for tau, weight in zip(prior.tau, prior.weight, strict=True):
        if tau == 0:
            below += weight * stats.norm.pdf(effect, 0, stderr)
            continue
        both = weight * seen * stats.norm.pdf(theta, 0, tau)
        above += integrate.trapezoid(theta * both, theta)
        below += integrate.trapezoid(both, theta)
    return above / below


# --- One normal ---


def test_normal_posterior_is_the_closed_form():
    """θ̂ τ² / (τ² + s²), which is U / (I + 1/τ²) with U = θ̂ / s² and I = 1 / s²."""
    _, effect, stderr = normal_truth(n=50)
    tau = 0.7
    ours = Prior(np.array([tau]), np.ones(1)).posterior_mean(effect, stderr)
    np.testing.assert_allclose(ours, effect * tau**2 / (tau**2 + stderr**2))
    U, I = effect / stderr**2, 1 / stderr**2
    np.testing.assert_allclose(ours, U / (I + 1 / tau**2))


@pytest.mark.parametrize("tau", [0.2, 1.0, 5.0])
def test_tau_equals_a_grid_search(tau):
    """Of the marginal likelihood θ̂ ~ N(0, τ² + s²), to within a step of the grid."""
    for seed in range(3):
        _, effect, stderr = normal_truth(tau, 300, seed)
        grid = np.geomspace(0.01, 20, 1000)
        sd = np.sqrt(grid[:, None] ** 2 + stderr**2)
        best = grid[stats.norm.logpdf(effect, 0, sd).sum(1).argmax()]
        ours = learn_prior(effect, stderr, "normal").tau[0]
        if best > grid[0]:
            assert ours == pytest.approx(best, rel=grid[1] / grid[0] - 1)
        else:
            assert ours <= 0.01


@pytest.mark.parametrize("tau", [0.5, 1.0, 3.0])
def test_tau_is_recovered(tau):
    """τ̂² is as exact as theory says, with 4 standard deviations to spare.

    The Fisher information of τ² in θ̂ ~ N(0, v), v = τ² + s², is Σ 1 / (2 v²); its inverse is the
    variance of the most likely τ².
    """
    for seed in range(5):
        _, effect, stderr = normal_truth(tau, 2000, seed)
        sd = np.sum(0.5 / (tau**2 + stderr**2) ** 2) ** -0.5
        assert abs(learn_prior(effect, stderr, "normal").tau[0] ** 2 - tau**2) < 4 * sd


# --- The mixture ---


def test_mixture_posterior_equals_integrals():
    priors = [
        Prior(np.array([0.0, 0.3, 1.0, 4.0]), np.array([0.6, 0.2, 0.15, 0.05])),
        learn_prior(*sparse_truth(n=200)[1:]),
    ]
    effect = np.array([-6.0, -1.5, -0.2, 0.0, 0.4, 1.0, 2.5, 9.0])
    stderr = np.array([1.0, 0.5, 2.0, 1.0, 0.3, 1.0, 1.5, 1.0])
    for prior in priors:
        by_hand = [integrated_mean(prior, e, s) for e, s in zip(effect, stderr, strict=True)]
        np.testing.assert_allclose(prior.posterior_mean(effect, stderr), by_hand, atol=1e-6)


def test_shares_are_the_most_likely():
    """EM has arrived, and is as likely as the normal that is one of its parts.

    After T steps from equal shares of K parts, the log-likelihood of F effects is within
    F log K / T of the best (EM for shares is a mirror descent). A bound that the data give: F times
    what the largest mean of p(θ̂ | part) / p(θ̂) over the effects exceeds 1, which it does not at
    the maximum.
    """
    for truth in (normal_truth, sparse_truth):
        for seed in range(3):
            _, effect, stderr = truth(seed=seed)
            mixture, normal = (learn_prior(effect, stderr, kind) for kind in PRIORS)
            close = len(effect) * np.log(len(mixture.tau)) / EM_STEPS
            sd = np.sqrt(mixture.tau**2 + stderr[:, None] ** 2)
            density = stats.norm.pdf(effect[:, None], 0, sd)
            gain = (density / (density @ mixture.weight)[:, None]).mean(0)
            assert len(effect) * (gain.max() - 1) < close
            assert np.isclose(mixture.tau, normal.tau[0]).any()
            ours, least = (log_likelihood(prior, effect, stderr) for prior in (mixture, normal))
            assert ours > least - close


def test_mixture_beats_the_normal_where_truth_is_sparse():
    """And loses little where the normal is the truth: mean squared errors over five draws."""
    ratio = {}
    for truth in (normal_truth, sparse_truth):
        loss = dict.fromkeys(PRIORS, 0.0)
        for seed in range(5):
            theta, effect, stderr = truth(seed=seed)
            for kind in PRIORS:
                loss[kind] += np.square(posterior(effect, stderr, kind) - theta).mean()
        ratio[truth] = loss["mixture"] / loss["normal"]
    assert ratio[sparse_truth] < 0.7
    assert ratio[normal_truth] < 1.03


def test_large_effects_are_hardly_shrunken():
    theta = np.r_[np.zeros(990), np.full(10, 10.0)]
    effect = theta + np.random.default_rng(0).standard_normal(1000)
    mixture, normal = (posterior(effect, np.ones(1000), kind)[-10:] for kind in PRIORS)
    assert np.all(mixture > 0.9 * effect[-10:])
    assert np.all(normal < 0.7 * effect[-10:])


# --- Either ---


@pytest.mark.parametrize("kind", PRIORS)
@pytest.mark.parametrize("truth", [normal_truth, sparse_truth])
def test_signs_are_kept_and_nothing_grows(kind, truth):
    _, effect, stderr = truth()
    ours = posterior(effect, stderr, kind)
    assert np.all(ours * effect >= 0)
    assert np.all(np.abs(ours) <= np.abs(effect))


@pytest.mark.parametrize("kind", PRIORS)
def test_shrinking_beats_the_estimates(kind):
    for truth in (normal_truth, sparse_truth):
        theta, effect, stderr = truth()
        ours = np.square(posterior(effect, stderr, kind) - theta).mean()
        assert ours < 0.8 * np.square(effect - theta).mean()


@pytest.mark.parametrize("kind", PRIORS)
def test_weights_sum_to_one(kind):
    for truth in (normal_truth, sparse_truth):
        prior = learn_prior(*truth()[1:], kind)
        assert prior.weight.sum() == pytest.approx(1)
        assert np.all(prior.weight >= 0)
        assert prior.tau.shape == prior.weight.shape


@pytest.mark.parametrize("kind", PRIORS)
def test_no_estimate_is_no_effect(kind):
    """An infinite standard error gives 0, and does not disturb the others."""
    _, effect, stderr = sparse_truth(n=200)
    plain = posterior(effect, stderr, kind)
    among = posterior(np.r_[0.0, effect, 50.0], np.r_[np.inf, stderr, np.inf], kind)
    np.testing.assert_array_equal(among, np.r_[0.0, plain, 0.0])
    nothing = posterior(np.array([1.0, -2.0]), np.full(2, np.inf), kind)
    np.testing.assert_array_equal(nothing, 0)


@pytest.mark.parametrize("kind", PRIORS)
def test_noise_shrinks_to_nearly_zero(kind):
    """With τ² = 0, τ̂² is below 4 √(2 / F) = 0.18, and what is left of θ̂² below 0.18²."""
    for seed in range(5):
        effect = np.random.default_rng(seed).standard_normal(1000)
        left = np.square(posterior(effect, np.ones(1000), kind)).mean()
        assert left < 32 / 1000


@pytest.mark.parametrize("kind", PRIORS)
def test_units_do_not_matter(kind):
    _, effect, stderr = sparse_truth(n=200)
    for unit in (1e-6, 1e6):
        ours = posterior(unit * effect, unit * stderr, kind)
        np.testing.assert_allclose(ours, unit * posterior(effect, stderr, kind), rtol=1e-3)


@pytest.mark.parametrize("kind", PRIORS)
def test_one_feature(kind):
    """The most likely τ² is θ̂² − s², or nothing where the estimate is below its error."""
    (ours,) = posterior(np.array([3.0]), np.array([1.0]), kind)
    assert ours == pytest.approx(3 * 8 / 9, rel=1e-3)
    (nothing,) = posterior(np.array([0.8]), np.array([1.0]), kind)
    assert nothing == pytest.approx(0, abs=1e-2)
    assert posterior(np.zeros(1), np.ones(1), kind) == 0
