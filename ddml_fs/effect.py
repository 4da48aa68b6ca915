"""DDML: the effect of one treatment."""

import warnings

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils import Bunch, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ddml_fs import inference
from ddml_fs.diagnostics import nuisance_gain, roles_table, unexplained_share
from ddml_fs.engine.devices import resolve_devices
from ddml_fs.engine.losses import ORTHOGONALITY, residuals
from ddml_fs.engine.network import Sizes
from ddml_fs.engine.nuisance import check_nuisance
from ddml_fs.engine.objective import OUTCOMES, Weights
from ddml_fs.engine.plan import plan_problems
from ddml_fs.engine.run import Settings, cross_fitted, run
from ddml_fs.engine.smooth import SHRINKAGE
from ddml_fs.engine.train import Schedule
from ddml_fs.progress import progress_bar
from ddml_fs.validation import (
    check_column,
    check_covariates,
    check_folds,
    check_identified,
    check_integer,
    check_label,
    check_number,
    check_option,
    check_treatment,
    check_vector,
)

SCORES = ("partially_linear", "interactive", "logistic")


class DDML(BaseEstimator):
    """Effect of a treatment on an outcome by Disentangled Double Machine Learning.

    The covariates are encoded into confounding, treatment-only and outcome-only latents (CRD), the
    nuisances E[T | X] and E[Y | X] are fitted on them, and the effect comes from the cross-fitted
    residuals by an orthogonal score.

    Parameters
    ----------
    nuisance : {"mlp", "rf", "ridge"}, estimator or pair of estimators, default="mlp"
        Nuisance models on the latents: the network's own heads, a random forest, or scikit-learn
        estimators for (treatment, outcome). Classifiers serve through ``predict_proba``.
        "ridge" uses no network: ridge and ridge-logistic regressions on X, in closed form, and
        smooth ones per arm with the interactive score.
    score : {"partially_linear", "interactive", "logistic"}, default="partially_linear"
        Partially linear: one constant effect, any treatment. Interactive: effects may vary with X;
        binary treatments only (AIPW, with outcome models per arm). Logistic: the effect on the
        log-odds of a 0/1 outcome, by one step from zero, so that large effects come out too small.
    target : {"ate", "att"}, default="ate"
        Average effect over all rows or, with the interactive score, over the treated.
    outcome : {"auto", "coupled", "direct"}, default="auto"
        What the outcome head predicts: Y less the treatment's part, or E[Y | X] as the paper
        prints it. "auto" is the first, and the second with the logistic score or shrinkage.
    n_folds : int, default=5
        Folds of the cross-fitting, K.
    n_repeats : int, default=1
        Random splits; the median effect is reported, and its spread counts in the standard error.
    lambda_dis : float, default=0.1
        Weight of the independence of the latents (HSIC).
    lambda_ort : float, default=0.0
        Weight of the residual orthogonality.
    orthogonality : {"paper", "split", "moments"}, default="paper"
        Form of the residual orthogonality.
    gates : bool, default=True
        Whether a first, sparse network chooses the inputs of the final one.
    gate_slack : float, default=2.5
        How much validation loss a closed gate may cost, in standard errors. Larger values keep
        fewer inputs.
    hidden : int, default=16
        Units of a role's hidden layer and of a head's.
    latent : int, default=8
        Latents of a role.
    epochs : int, default=40
        Passes over the rows of the final network, at most.
    learning_rate : float, default=0.02
        Peak of the one-cycle schedule.
    weight_decay : float, default=0.01
        Decoupled weight decay.
    batch_size : int or "auto", default="auto"
        Rows of a batch; about a sixteenth of the rows.
    valid_share : float, default=0.1
        Share of the training rows that stops the training and opens the gates.
    shrinkage : float, optional
        Penalty of the nuisances, in units of D / n, columns over training rows. As a ridge
        penalty, s is the best one where signal / noise is 1 / s. Networks have none unless it is
        given, and then start from ridge regressions and learn what these miss; ridge nuisances
        have 20, the propensity of the interactive score 10.
    blend : bool, default=True
        With the interactive score: whether closed forms take the network's place where it does not
        foretell validation rows clearly better, as with few rows.
    clip : float, default=0.01
        Propensities are kept this far from 0 and 1 (interactive score).
    n_jobs : int, optional
        Workers for scikit-learn nuisance models.
    device : str or torch.device, default="auto"
        CUDA, then MPS, then the CPU.
    random_state : int, RandomState or None, default=None
        Seed of splits, weights and batches.
    verbose : bool, default=False
        Whether to show a progress bar.

    Attributes
    ----------
    effect_ : float
        The effect, also as ``ate_`` or ``att_``.
    stderr_, pvalue_ : float
        Standard error from the influence function, and p-value of a zero effect.
    influence_ : array of shape (n_samples,)
        Each row's influence on the effect.
    residuals_ : DataFrame
        Held-out residuals ``v`` of the treatment and ``e`` of the outcome, and ``u = e − θv``.
    nuisances_ : DataFrame
        Held-out predictions ``m`` = E[T | X], ``g`` = E[Y | X] and, with the interactive score,
        ``mu_0`` and ``mu_1``.
    roles_ : DataFrame
        How much each covariate acts as confounder, on the treatment or on the outcome only; not
        with ridge nuisances, which have no roles.
    network_share_ : Series
        With the interactive score: the network's mean weight in ``m``, ``mu_0`` and ``mu_1``; the
        rest has a ridge-logistic and smooth regressions in closed form.
    repeats_ : DataFrame
        Effect and standard error of every random split.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    ``influence_``, ``residuals_`` and ``nuisances_`` are those of the split nearest the median.

    Examples
    --------
    >>> from ddml_fs import DDML
    >>> from ddml_fs.datasets import make_effect_data
    >>> data = make_effect_data("binary", n_samples=2000, random_state=0)
    >>> effect = DDML(random_state=0).fit(data.X, data.y, treatment=data.treatment)
    >>> low, high = effect.conf_int(0.99)
    >>> bool(low < data.theta < high)
    True
    """

    def __init__(
        self,
        nuisance="mlp",
        *,
        score="partially_linear",
        target="ate",
        outcome="auto",
        n_folds=5,
        n_repeats=1,
        lambda_dis=0.1,
        lambda_ort=0.0,
        orthogonality="paper",
        gates=True,
        gate_slack=2.5,
        hidden=16,
        latent=8,
        epochs=40,
        learning_rate=0.02,
        weight_decay=0.01,
        batch_size="auto",
        valid_share=0.1,
        shrinkage=None,
        blend=True,
        clip=0.01,
        n_jobs=None,
        device="auto",
        random_state=None,
        verbose=False,
    ):
        self.nuisance = nuisance
        self.score = score
        self.target = target
        self.outcome = outcome
        self.n_folds = n_folds
        self.n_repeats = n_repeats
        self.lambda_dis = lambda_dis
        self.lambda_ort = lambda_ort
        self.orthogonality = orthogonality
        self.gates = gates
        self.gate_slack = gate_slack
        self.hidden = hidden
        self.latent = latent
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.valid_share = valid_share
        self.shrinkage = shrinkage
        self.blend = blend
        self.clip = clip
        self.n_jobs = n_jobs
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X, y, *, treatment):
        """Estimate the effect.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
            Covariates: everything that may confound.
        y : array of shape (n_samples,)
            Outcome; 0/1 for the logistic score.
        treatment : array of shape (n_samples,), str or int
            Treatment, 0/1 or continuous; or the column of X that is the treatment, all others being
            covariates. Keyword only: a swapped y would be a silent error.

        Returns
        -------
        self : DDML
        """
        settings = self._settings()
        index = X.index if isinstance(X, pd.DataFrame) else None
        X = self._covariates(X, reset=True)
        label = self.score == "logistic"
        y = check_label(y, len(X)) if label else check_vector(y, "y", len(X))
        column = check_column(treatment, X, getattr(self, "feature_names_in_", None))
        values = treatment if column is None else X[:, column]
        treatment, binary = check_treatment(values, len(X))
        if self.score == "interactive" and not binary:
            raise ValueError(
                "score='interactive' needs a 0/1 treatment, got a continuous one; "
                "use score='partially_linear'."
            )
        check_folds(self.n_folds, treatment, binary)
        check_identified(X if column is None else np.delete(X, column, 1), treatment)

        problems = self._plan(y, treatment, binary, treatment if column is None else column)
        with progress_bar(self.verbose, "DDML") as progress:
            solutions = run(
                problems,
                X,
                settings,
                self.nuisance,
                per_arm=self.score == "interactive",
                devices=resolve_devices(self.device),
                n_jobs=self.n_jobs,
                progress=progress,
            )
        self._combine(problems, solutions, y, treatment, binary, index, column)
        return self

    def _covariates(self, X, reset):
        """X as an array; its names and width are noted, or compared with those of ``fit``."""
        values = check_covariates(X)
        validate_data(self, X=X, reset=reset, skip_check_array=True)
        return values

    def _settings(self):
        """The engine's settings, checked."""
        check_option(self.score, "score", SCORES)
        check_option(self.target, "target", ("ate", "att"))
        check_option(self.outcome, "outcome", ("auto", *OUTCOMES))
        if self.outcome == "coupled" and self.score == "logistic":
            raise ValueError("outcome='coupled' is not for score='logistic'; use 'direct'.")
        if self.outcome == "coupled" and self.shrinkage:
            raise ValueError("outcome='coupled' is not for shrunken networks; use 'direct'.")
        ridge = isinstance(self.nuisance, str) and self.nuisance == "ridge"
        check_option(self.orthogonality, "orthogonality", ORTHOGONALITY)
        if self.target == "att" and self.score != "interactive":
            raise ValueError(f"target='att' needs score='interactive', got {self.score!r}.")
        check_nuisance(self.nuisance, label=self.score == "logistic")
        for name, least in (("n_repeats", 1), ("hidden", 1), ("latent", 1), ("epochs", 1)):
            check_integer(getattr(self, name), name, least)
        if self.batch_size != "auto":
            check_integer(self.batch_size, "batch_size", 2)
        for name, low, high in (
            ("lambda_dis", 0, np.inf),
            ("lambda_ort", 0, np.inf),
            ("gate_slack", 0, np.inf),
            ("learning_rate", 1e-8, 10),
            ("weight_decay", 0, np.inf),
            ("valid_share", 0.01, 0.5),
            ("clip", 0, 0.49),
        ):
            check_number(getattr(self, name), name, low, high)
        if self.shrinkage is not None:
            check_number(self.shrinkage, "shrinkage", 0, np.inf)
        shrinkage = self.shrinkage
        if shrinkage is None:
            own = SHRINKAGE if self.score == "interactive" else 20.0
            shrinkage = own if ridge else 0.0
        base = Settings()
        coupled = self.outcome == "auto" and self.score != "logistic" and not self.shrinkage
        return Settings(
            sizes=Sizes(H=self.hidden, Z=self.latent),
            weights=Weights(
                outcome="coupled" if coupled or self.outcome == "coupled" else "direct",
                lambda_dis=self.lambda_dis,
                lambda_ort=self.lambda_ort,
                orthogonality=self.orthogonality,
            ),
            screen=base.screen if self.gates else None,
            final=Schedule(self.epochs, self.learning_rate, self.weight_decay),
            slack=self.gate_slack,
            batch_size=self.batch_size,
            shrinkage=shrinkage,
            blend=self.blend,
        )

    def _plan(self, y, treatment, binary, own):
        """One problem a fold and repeat."""
        label = self.score == "logistic"
        strata = y if label else treatment if binary else None
        return plan_problems(
            [(own, binary)],
            [(y, label)],
            len(y),
            check_random_state(self.random_state),
            n_folds=self.n_folds,
            n_repeats=self.n_repeats,
            strata=None if strata is None else strata.astype(int),
            valid_share=self.valid_share,
        )

    def _combine(self, problems, solutions, y, treatment, binary, index, column):
        """Residuals and scores of every split, and the median over the splits."""
        splits = []
        for r in range(self.n_repeats):
            part = slice(r * self.n_folds, (r + 1) * self.n_folds)
            hat = cross_fitted(problems[part], solutions[part], len(y))
            v, e = residuals(treatment, hat["m"], y, hat["g"])
            if self.score == "interactive":
                m = np.clip(hat["m"], self.clip, 1 - self.clip)
                mu = np.stack([hat["mu_0"], hat["mu_1"]])
                estimate = inference.interactive(treatment, y, m, mu, self.target)
            elif self.score == "logistic":
                estimate = inference.logistic(v, e, hat["g"])
            else:
                estimate = inference.partially_linear(v, e)
            splits.append((estimate, v, e, hat))

        self.effect_, self.stderr_ = inference.median_of([s[0] for s in splits])
        setattr(self, f"{self.target}_", self.effect_)
        self.pvalue_ = inference.normal_pvalue(self.effect_, self.stderr_)
        self.repeats_ = pd.DataFrame(
            {"effect": [s[0].theta for s in splits], "stderr": [s[0].stderr for s in splits]}
        )
        estimate, v, e, hat = min(splits, key=lambda s: abs(s[0].theta - self.effect_))
        self.influence_ = estimate.influence
        self.residuals_ = pd.DataFrame({"v": v, "e": e, "u": e - self.effect_ * v}, index=index)
        self.nuisances_ = pd.DataFrame(hat, index=index)
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])
        details = [s.detail for s in solutions if s.detail is not None]
        self._encoder = None
        if details:
            if self.score == "interactive":
                self.network_share_ = pd.Series(
                    np.mean([d.shares for d in details], 0), ["m", "mu_0", "mu_1"]
                )
            self.roles_ = roles_table(np.mean([d.strength for d in details], 0), names)
            if column is not None:
                self.roles_ = self.roles_.drop(index=names[column])
            self._encoder = min(details, key=lambda d: d.valid_loss).encoder
            self._inputs_kept = float(np.mean([d.keep.sum() for d in details]))
        self._binary, self._treatment, self._y = binary, treatment, y
        self._warn(v, treatment)

    def _warn(self, v, treatment):
        left = unexplained_share(v, treatment)
        if left < 0.01:
            warnings.warn(
                f"X predicts the treatment almost perfectly ({left:.2%} of its variance is left): "
                "the effect rests on next to nothing; drop columns that only encode the treatment.",
                stacklevel=4,
            )
        clipped = self._share_clipped()
        if self.score == "interactive" and clipped > 0:
            warnings.warn(
                f"{clipped:.1%} of the propensities were clipped to [{self.clip:g}, "
                f"{1 - self.clip:g}]; overlap is weak there.",
                stacklevel=4,
            )

    def _share_clipped(self):
        m = self.nuisances_["m"]
        return float(((m < self.clip) | (m > 1 - self.clip)).mean())

    def conf_int(self, level=0.95):
        """The two ends of the confidence interval.

        Parameters
        ----------
        level : float, default=0.95
            Coverage.

        Returns
        -------
        low, high : float
        """
        check_is_fitted(self)
        check_number(level, "level", 1e-6, 1 - 1e-6)
        return inference.normal_interval(self.effect_, self.stderr_, level)

    def summary(self, level=0.95):
        """Effect, standard error, z, p-value and interval as a DataFrame of one row."""
        low, high = self.conf_int(level)
        row = {
            "effect": self.effect_,
            "stderr": self.stderr_,
            "z": self.effect_ / self.stderr_,
            "pvalue": self.pvalue_,
            f"{50 - 50 * level:g}%": low,
            f"{50 + 50 * level:g}%": high,
        }
        return pd.DataFrame(row, index=[self.target.upper()])

    def represent(self, X):
        """The three latents of rows, by the encoder with the least validation loss.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)

        Returns
        -------
        latents : Bunch
            ``Zc``, ``Zt`` and ``Zy``, each an array of shape (n_samples, latent).
        """
        check_is_fitted(self)
        if self._encoder is None:
            raise AttributeError("nuisance='ridge' has no latents; use 'mlp' or 'rf'.")
        Zc, Zt, Zy = self._encoder(self._covariates(X, reset=False))
        return Bunch(Zc=Zc, Zt=Zt, Zy=Zy)

    def diagnostics(self):
        """What to look at before the effect is believed.

        Returns
        -------
        diagnostics : Series
            ``unexplained_share`` of the treatment's variance; for a binary treatment the range of
            the propensities and the share beyond the clip; ``abs_corr_v_u``; held-out losses of
            both nuisances (cross-entropy or mean squared error) and of a constant in their place;
            and the mean number of inputs behind open gates.
        """
        check_is_fitted(self)
        v, u = self.residuals_["v"], self.residuals_["u"]
        m, g = self.nuisances_["m"], self.nuisances_["g"]
        rows = {"unexplained_share": unexplained_share(v, self._treatment)}
        if self._binary:
            rows |= {"propensity_min": m.min(), "propensity_max": m.max()}
            rows["share_beyond_clip"] = self._share_clipped()
        rows["abs_corr_v_u"] = abs(np.corrcoef(v, u)[0, 1])
        loss = nuisance_gain(self._treatment, m.to_numpy(), self._binary)
        rows["treatment_loss"], rows["treatment_loss_constant"] = loss
        loss = nuisance_gain(self._y, g.to_numpy(), self.score == "logistic")
        rows["outcome_loss"], rows["outcome_loss_constant"] = loss
        if self._encoder is not None:
            rows["inputs_kept"] = self._inputs_kept
        return pd.Series(rows, name="value")
