"""Each loss against its definition."""

import numpy as np
import pytest
import torch

from ddml_fs.engine import losses
from ddml_fs.engine.objective import LossSettings
from ddml_fs.engine.rdo import orthogonality_loss
from ddml_fs.scores import residual_on_residual


@pytest.fixture
def latents():
    """Three roles of three problems; the first two roles depend on each other in problem 0."""
    generator = torch.Generator().manual_seed(0)
    Z = torch.randn(3, 200, 12, generator=generator, dtype=torch.float64)
    Z[0, :, 4:8] = Z[0, :, :4] ** 2 + 0.1 * Z[0, :, 4:8]
    return Z


def test_random_features_approach_exact_hsic(latents):
    """The error of m features falls as 1/√m; at m = 1000 it is several per cent of an entry."""
    Zc, Zt, Zy = latents.chunk(3, -1)
    pairs = ((Zc, Zt), (Zc, Zy), (Zt, Zy))
    exact = sum(losses.exact_hsic(a, b) for a, b in pairs)
    features = losses.RandomFeatures([1, 2, 3], 4, 1000, latents)
    approximate = features.hsic_loss(latents)
    torch.testing.assert_close(approximate, exact, rtol=0.12, atol=0)
    assert exact[0] > 2 * exact[1]  # dependence is seen


def test_hsic_of_few_features_is_unbiased(latents):
    """Averaged over draws, HSIC by 8 features is exact HSIC, up to the draws' own spread."""
    exact = losses.exact_hsic(*latents[:1].chunk(3, -1)[:2])
    exact = exact + sum(
        losses.exact_hsic(a, b)
        for a, b in (
            (latents[:1, :, :4], latents[:1, :, 8:]),
            (latents[:1, :, 4:8], latents[:1, :, 8:]),
        )
    )
    draws = torch.cat(
        [losses.RandomFeatures([s], 4, 8, latents).hsic_loss(latents[:1]) for s in range(400)]
    )
    assert abs(draws.mean() - exact) < 3 * draws.std() / 20


def test_hsic_and_its_gradient_are_those_of_autograd(latents):
    """The written gradient against the one that autograd derives from the definition."""
    features = losses.RandomFeatures([1, 2, 3], 4, 8, latents)
    slope = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
    found = []
    for by_hand in (False, True):
        Z = latents.clone().requires_grad_()
        if not by_hand:
            loss = features.hsic_loss(Z)
        else:
            angles = features.omega @ losses.standardise(Z.mT) + features.phase
            cosines = torch.cos(angles)
            mean = cosines.mean(-1)
            covariance = (cosines @ cosines.mT) / 200 - mean[:, :, None] * mean[:, None]
            loss = (covariance * features.pairs).square().sum((1, 2))
        loss.backward(slope)
        found.append((loss.detach(), Z.grad))
    for own, twin in zip(*found, strict=True):
        torch.testing.assert_close(own, twin, rtol=1e-10, atol=1e-14)


def test_exact_hsic_is_the_trace_formula(latents):
    Z1, Z2 = latents[1, :50, :4], latents[1, :50, 4:8]

    def kernel(Z):
        Z = ((Z - Z.mean(0)) / Z.std(0, unbiased=False)).numpy()
        distance = ((Z[:, None] - Z[None]) ** 2).sum(-1)
        return np.exp(-distance / (2 * Z.shape[1]))

    centre = np.eye(50) - 1 / 50
    by_hand = np.trace(kernel(Z1) @ centre @ kernel(Z2) @ centre) / 50**2
    assert float(losses.exact_hsic(Z1[None], Z2[None])) == pytest.approx(by_hand, rel=1e-6)


def test_paper_orthogonality_only_sees_the_means():
    """With θ_tra of the same rows vᵀu = 0, so the correlation is that of the means alone."""
    rng = torch.Generator().manual_seed(0)
    v = torch.randn(2, 100, generator=rng, dtype=torch.float64) + 0.3
    e = 2 * v + torch.randn(2, 100, generator=rng, dtype=torch.float64) + 0.5
    u = e - residual_on_residual(v, e)[:, None] * v
    torch.testing.assert_close(
        (v * u).sum(-1), torch.zeros(2, dtype=torch.float64), atol=1e-5, rtol=0
    )
    by_hand = (v.mean(-1) * u.mean(-1)).abs() / (v.std(-1, False) * u.std(-1, False))
    loss = orthogonality_loss("paper", v, e, torch.zeros(2, 100, 3, dtype=torch.float64))
    torch.testing.assert_close(loss, by_hand, rtol=1e-5, atol=1e-8)


def test_split_orthogonality_bites():
    """A nuisance error shared by v and e is invisible to the printed form, not to the split one."""
    rng = np.random.RandomState(0)
    shared = rng.standard_normal(400) * np.repeat([0.0, 2.0], 200)  # bad in half of the rows
    v = torch.as_tensor(rng.standard_normal(400) + shared)[None]
    e = torch.as_tensor(rng.standard_normal(400) + 3 * shared)[None]
    v, e = v - v.mean(), e - e.mean()
    Z = torch.zeros(1, 400, 3, dtype=torch.float64)
    printed = orthogonality_loss("paper", v, e, Z)
    assert float(printed) < 0.01
    assert float(orthogonality_loss("split", v, e, Z)) > 0.5


def test_moments_see_what_is_left_in_the_latents():
    rng = np.random.RandomState(0)
    Z = torch.as_tensor(rng.standard_normal((1, 500, 3)))
    clean, dirty = torch.as_tensor(rng.standard_normal((2, 1, 500)))
    dirty = dirty + Z[..., 0]
    low = orthogonality_loss("moments", clean, clean.flip(-1), Z)
    high = orthogonality_loss("moments", dirty, clean, Z)
    assert float(low) < 0.02
    assert float(high) > 0.1
    # By hand: mean over latents of squared correlations, of v and of u.
    v, e = dirty[0].numpy(), clean[0].numpy()
    u = e - v @ e / (v @ v) * v
    by_hand = sum(np.mean([np.corrcoef(r, z)[0, 1] ** 2 for z in Z[0].numpy().T]) for r in (v, u))
    assert float(high) == pytest.approx(by_hand, rel=1e-5)


def test_losses_by_type():
    """Cross-entropy where the treatment is binary, ½ log MSE where it is not, in one stack."""
    T_raw = torch.tensor([[0.5, -1.0, 2.0], [0.5, -1.0, 2.0]], dtype=torch.float64)
    T = torch.tensor([[1.0, 0.0, 1.0], [0.2, 0.3, 4.0]], dtype=torch.float64)
    binary = torch.tensor([[True], [False]])
    errors_Y = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], dtype=torch.float64)
    loss_T = losses.target_loss(losses.row_errors(T_raw, T, binary), binary)
    loss_Y = losses.target_loss(errors_Y, False)
    p = 1 / (1 + np.exp(-T_raw[0].numpy()))
    entropy = -np.mean(T[0].numpy() * np.log(p) + (1 - T[0].numpy()) * np.log(1 - p))
    square = 0.5 * np.log(np.mean((T[1] - T_raw[1]).numpy() ** 2))
    np.testing.assert_allclose(loss_T, [entropy, square], rtol=1e-6)
    np.testing.assert_allclose(loss_Y, 0.5 * np.log([2.0, 5.0]), rtol=1e-6)
    weight = torch.tensor([[1.0, 1.0, 0.0]] * 2, dtype=torch.float64)
    weighted = losses.target_loss(errors_Y, False, weight)
    np.testing.assert_allclose(weighted, 0.5 * np.log([1.5, 4.5]), rtol=1e-6)


@pytest.mark.parametrize(
    ("settings", "every"),
    [({"lambda_dis": 0.1}, 4), ({"lambda_dis": 1.0}, 2), ({"lambda_ort": 0.5}, 2), ({}, 4)],
)
def test_large_penalties_are_on_more_batches(settings, every):
    """At k times its weight on every k-th batch, a large penalty would be too uneven."""
    assert LossSettings(**settings).every == every
    assert LossSettings(**settings, penalty_every=1).every == 1
