"""DGBR: deep global balancing regression (Kuang et al., 2018)."""

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from torch.nn.functional import binary_cross_entropy_with_logits as cross_entropy

from experiments.baselines.selectors.base import ScoreSelector


def nonzero_pairs(X, columns):
    """Where X[:, columns] is 1: the rows, and the places in ``columns``, each of shape (Q,)."""
    place, row = X[:, columns].T.nonzero(as_tuple=True)
    return row, place


def imbalance(X, w, encoder, bias, columns):
    """How far each feature's two arms are apart in the representation of the other features.

    The others of feature j are X with column j set to zero. That changes treated rows only, so
    the encoder runs again for the ones of X and not for every sample and feature.

    Parameters
    ----------
    X : tensor of shape (N, D)
        Of zeros and ones; both occur in each column.
    w : tensor of shape (N,)
        Sample weights.
    encoder, bias : tensors of shape (D, H) and (H,)
    columns : tensor of shape (B,)
        The features that are treatments here.

    Returns
    -------
    tensor of shape (B,)
        Squared distance of the arms' weighted means.
    """
    inputs = X @ encoder + bias
    row, place = nonzero_pairs(X, columns)
    others = torch.sigmoid(inputs[row] - encoder[columns][place])
    total = torch.zeros(len(columns), encoder.shape[1])
    total = total.index_add(0, place, w[row, None] * others)
    T = X[:, columns]
    # A word whose samples all lose their weight has no arm left to compare.
    treated = total / (T.T @ w).clamp(min=1e-6)[:, None]
    control = (1 - T).T @ (w[:, None] * torch.sigmoid(inputs))
    control = control / ((1 - T).T @ w).clamp(min=1e-6)[:, None]
    return ((treated - control) ** 2).sum(dim=1)


class DGBR(ScoreSelector):
    """Absolute coefficients of a logistic regression under globally balancing weights.

    An auto-encoder, a logistic regression on its representation and sample weights w = g² are
    learned together; the weights bring the two arms of every feature together in the
    representation of all other features. Two things are decided here. The original's weights
    also lower the weighted losses, which lets them drop the samples that are hard to fit
    (training loss near zero, worse words); here they answer to the balancing and their own
    penalties only. And as a representation has no coefficient for a word, the score is the
    absolute coefficient of a logistic regression on the inputs with the learned weights. Both,
    and ``balance``, ``size`` and ``decay``, were chosen by cross-validation within one domain
    (books) from about ten settings; the other defaults were not searched.

    Parameters
    ----------
    n_features_to_select : int, default=50
        K.
    n_hidden : int, default=16
        Size of the representation.
    balance, reconstruction : float, default=10 and 1
        Weights of the two losses beside the regression's.
    size, normalisation : float, default=0.1 and 10
        Penalties on the mean of w² and on the squared distance of the mean of w from 1.
    decay : float, default=1e-3
        L2 penalty on the auto-encoder and the regression.
    C : float, default=0.1
        Inverse L2 penalty of the final regression.
    n_steps, batch, learning_rate : default=250, 50 and 0.02
        Adam's steps over all samples; each balances this many features, drawn anew.
    random_state : int or None, default=None
        Seed of the network and of the draws.

    Attributes
    ----------
    weights_ : array of shape (N,)
        The learned w.
    encoder_, bias_ : arrays of shape (D', H) and (H,)
        The learned encoder of the D' features that vary.

    Notes
    -----
    A feature that is not binary is cut at its mean.
    """

    def __init__(
        self,
        n_features_to_select=50,
        n_hidden=16,
        balance=10.0,
        reconstruction=1.0,
        size=0.1,
        normalisation=10.0,
        decay=1e-3,
        C=0.1,
        n_steps=250,
        batch=50,
        learning_rate=0.02,
        random_state=None,
    ):
        super().__init__(n_features_to_select)
        self.n_hidden = n_hidden
        self.balance = balance
        self.reconstruction = reconstruction
        self.size = size
        self.normalisation = normalisation
        self.decay = decay
        self.C = C
        self.n_steps = n_steps
        self.batch = batch
        self.learning_rate = learning_rate
        self.random_state = random_state

    def _score(self, X, y):
        varies = np.ptp(X, axis=0) > 0
        T = (X[:, varies] > X[:, varies].mean(axis=0)).astype(np.float32)
        self.weights_, self.encoder_, self.bias_ = self._learn(
            torch.from_numpy(T), torch.tensor(y, dtype=torch.float32)
        )
        final = LogisticRegression(C=self.C, max_iter=500)
        final.fit(T, y, sample_weight=self.weights_)
        scores = np.zeros(X.shape[1])
        scores[varies] = np.abs(final.coef_[0])
        return scores

    def _learn(self, X, y):
        """Weights (N,), encoder (D, H) and its bias (H,), as arrays."""
        seed = np.random.default_rng(self.random_state).integers(2**31)
        generator = torch.Generator().manual_seed(int(seed))
        n_samples, n_features = X.shape
        H, rate = self.n_hidden, X.mean(dim=0)
        # Sparse words: a row has few ones, and the encoder's inputs should have unit size.
        encoder = torch.randn(n_features, H, generator=generator) / rate.sum().sqrt()
        decoder = torch.randn(H, n_features, generator=generator) / H**0.5
        bias, out, beta, intercept = torch.zeros(H), rate.logit(), torch.zeros(H), torch.zeros(1)
        g = torch.ones(n_samples)
        parameters = [encoder, decoder, bias, out, beta, intercept, g]
        for parameter in parameters:
            parameter.requires_grad_()
        optimiser = torch.optim.Adam(parameters, lr=self.learning_rate)
        for _ in range(self.n_steps):
            columns = torch.randperm(n_features, generator=generator)[: self.batch]
            w = g**2
            fixed = w.detach()
            Z = torch.sigmoid(X @ encoder + bias)
            fit = cross_entropy(Z @ beta + intercept, y, weight=fixed)
            rebuilt = cross_entropy(Z @ decoder + out, X, weight=fixed[:, None])
            loss = (
                fit
                + self.reconstruction * rebuilt
                + self.balance * imbalance(X, w, encoder, bias, columns).mean()
                + self.size * (w**2).mean()
                + self.normalisation * (w.mean() - 1) ** 2
                + self.decay * sum((p**2).sum() for p in (encoder, decoder, beta))
            )
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        return tuple(p.detach().numpy() for p in (g**2, encoder, bias))
