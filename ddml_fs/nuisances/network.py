"""Networks that disentangle the roles of the covariates: DDML as in the paper."""

from dataclasses import replace

import numpy as np
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from ddml_fs.engine.network import Sizes
from ddml_fs.engine.objective import OUTCOMES, LossSettings
from ddml_fs.engine.plan import WIDE
from ddml_fs.engine.rdo import ORTHOGONALITY
from ddml_fs.engine.run import run
from ddml_fs.engine.solve import Settings
from ddml_fs.engine.train import Schedule
from ddml_fs.nuisances.base import Nuisance
from ddml_fs.nuisances.calibration import calibrated
from ddml_fs.nuisances.estimators import Estimators
from ddml_fs.validation import check_integer, check_number, check_option

# Forests of small trees on 30 % of the rows are as accurate on the latents as full ones, in half
# the time (experiments/effects/results/tuned.md).
FOREST = {"min_samples_leaf": 3, "max_features": 0.5, "max_samples": 0.3}


class Network(Nuisance):
    """Networks that encode the covariates into three roles, with heads that predict.

    The covariates are encoded into confounding, treatment-only and outcome-only latents (CRD). Two
    heads predict the treatment and the outcome from these latents.

    Parameters
    ----------
    outcome : {"auto", "coupled", "direct"}, default="auto"
        What the outcome head predicts. "coupled": Y without the part of the treatment. "direct":
        E[Y | X], as in the paper. "auto": "direct" with labels or shrinkage, otherwise "coupled".
    lambda_dis : float, default=0.1
        Weight of the penalty on dependence between the latents (HSIC).
    lambda_ort : float, default=0.0
        Weight of the penalty on residual orthogonality.
    orthogonality : {"paper", "split", "moments"}, default="paper"
        Form of the residual orthogonality; it has an effect only if ``lambda_ort`` is positive.
    gates : bool, default=True
        Whether a first, sparse network chooses the inputs of the final one.
    gate_slack : float, default=2.5
        How much the validation loss may rise when inputs are dropped, in standard errors. Larger
        values keep fewer inputs.
    hidden : int, default=16
        Number of units in the hidden layer of each role and of each head.
    latent : int, default=8
        Number of latents of each role.
    epochs : int, default=40
        Largest number of epochs of the final network.
    learning_rate : float, default=0.03
        Peak of the one-cycle schedule.
    weight_decay : float, default=0.01
        Decoupled weight decay.
    batch_size : int or "auto", default="auto"
        Number of rows in a batch; "auto" is about a sixteenth of the rows.
    quadratic : bool, default=True
        Whether quadratic functions of the latents are added to the heads after training. They are
        fitted to the residuals in closed form. False: the heads alone, as in the paper. Networks
        with shrinkage have none, nor those with outcomes per arm: the interactive score weights
        rows by 1/m, which does not bear the extreme predictions of squares.
    calibrate : bool, default=True
        Whether probabilities of 0/1 treatments and labels are made less extreme where held-out rows
        say so, by two coefficients (:mod:`ddml_fs.nuisances.calibration`). Networks with shrinkage
        are not calibrated. False: the heads alone, as in the paper.
    shrinkage : float, default=0.0
        Ridge penalty in units of D / n, for D columns and n training rows. A network with shrinkage
        starts from ridge regressions with this penalty and learns their residuals.
    trunk : {"auto", True, False}, default="auto"
        Whether the networks of a fold share their first layer: all treatments read the same few
        projections of the columns, without the part of the treatment itself. The cost of a
        treatment then does not depend on the number of columns. It is for sweeps without gates.
        "auto": with more than 1000 columns, where it can be used.

    Examples
    --------
    >>> from ddml_fs import DDML
    >>> from ddml_fs.datasets import make_effect_data
    >>> from ddml_fs.nuisances import Network
    >>> data = make_effect_data("continuous", n_samples=500, n_features=10, random_state=0)
    >>> effect = DDML(Network(hidden=8, epochs=10), random_state=0)
    >>> effect.fit(data.X, data.y, treatment=data.treatment).estimand_
    'partially linear slope'
    """

    on_device = True
    in_shards = True

    def __init__(
        self,
        *,
        outcome="auto",
        lambda_dis=0.1,
        lambda_ort=0.0,
        orthogonality="paper",
        gates=True,
        gate_slack=2.5,
        hidden=16,
        latent=8,
        epochs=40,
        learning_rate=0.03,
        weight_decay=0.01,
        batch_size="auto",
        quadratic=True,
        calibrate=True,
        shrinkage=0.0,
        trunk="auto",
    ):
        self.outcome = outcome
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
        self.quadratic = quadratic
        self.calibrate = calibrate
        self.shrinkage = shrinkage
        self.trunk = trunk

    def check(self, score):
        """Raise if settings are wrong or do not fit the score."""
        check_option(self.outcome, "outcome", ("auto", *OUTCOMES))
        if self.outcome == "coupled" and score.label:
            raise ValueError(f"outcome='coupled' is not for score={score.name!r}; use 'direct'.")
        if self.outcome == "coupled" and self.shrinkage:
            raise ValueError("outcome='coupled' is not for shrunken networks; use 'direct'.")
        check_option(self.orthogonality, "orthogonality", ORTHOGONALITY)
        check_option(self.trunk, "trunk", ("auto", True, False))
        for name in ("quadratic", "calibrate"):
            check_option(getattr(self, name), name, (True, False))
        if self.trunk is True and self.gates:
            raise ValueError(
                "trunk=True is not for gates, which choose single columns; set gates=False."
            )
        for name in ("hidden", "latent", "epochs"):
            check_integer(getattr(self, name), name, 1)
        if self.batch_size != "auto":
            check_integer(self.batch_size, "batch_size", 2)
        for name, low, high in (
            ("lambda_dis", 0, np.inf),
            ("lambda_ort", 0, np.inf),
            ("gate_slack", 0, np.inf),
            ("learning_rate", 1e-8, 10),
            ("weight_decay", 0, np.inf),
            ("shrinkage", 0, np.inf),
        ):
            check_number(getattr(self, name), name, low, high)

    def settings_for(self, plan, resources=None, arms=False):
        """The engine's settings for a plan, and whether outcomes are predicted per arm."""
        detail = resources is None or resources.detail
        if self.trunk is True and detail:
            raise ValueError(
                "trunk=True is for sweeps of CausalFeatureSelector: without weights of single "
                "columns, networks have no roles; use 'auto' or False."
            )
        auto = not (self.gates or detail) and plan.X.shape[1] > WIDE
        trunk = auto if self.trunk == "auto" else bool(self.trunk)
        settings = self.settings(plan.binary_Y.any())
        return replace(settings, trunk=trunk, quadratic=settings.quadratic and not arms)

    def settings(self, label):
        """The engine's settings, for labels or for numbers as outcomes."""
        outcome = self.outcome
        if outcome == "auto":
            outcome = "direct" if label or self.shrinkage else "coupled"
        loss = LossSettings(outcome, self.lambda_dis, self.lambda_ort, self.orthogonality)
        return Settings(
            sizes=Sizes(H=self.hidden, Z=self.latent),
            loss=loss,
            screen=Settings().screen if self.gates else None,
            final=Schedule(self.epochs, self.learning_rate, self.weight_decay),
            slack=self.gate_slack,
            batch_size=self.batch_size,
            shrinkage=float(self.shrinkage),
            quadratic=bool(self.quadratic) and not self.shrinkage,
        )

    def predict(self, plan, *, arms=False, resources=None):
        """Cross-fitted predictions, see :meth:`Nuisance.predict`."""
        settings = self.settings_for(plan, resources, arms)
        predictions = run(plan, settings, arms=arms, resources=resources)
        if not self.calibrate or self.shrinkage:
            return predictions
        return calibrated(plan, predictions, coupled=settings.loss.outcome == "coupled")

    def shrinkage_of(self, plan):
        """The ridge penalty λ, or 0 without shrinkage."""
        return plan.penalty(self.shrinkage) if self.shrinkage else 0.0


def shrunken_network():
    """The network of a sweep: small and with strong shrinkage.

    Nuisances with shrinkage rank features better than nuisances with the lowest held-out loss, and
    are faster. For a single effect, the defaults of :class:`Network` are better.

    Examples
    --------
    >>> shrunken_network().shrinkage
    20.0
    """
    return Network(
        hidden=4,
        latent=4,
        epochs=8,
        learning_rate=0.02,
        gates=False,
        lambda_ort=0.1,
        shrinkage=20.0,
    )


class OnLatents(Estimators):
    """scikit-learn models on the latents of a network, as in the paper.

    Each model reads the latents of its nuisance function and the output of the head.

    Parameters
    ----------
    treatment, outcome : estimators
        Models of both. A classifier predicts by ``predict_proba``.
    network : Network, optional
        Makes the latents; by default ``Network()``.
    """

    on_device = True
    in_shards = True

    def __init__(self, treatment, outcome, *, network=None):
        super().__init__(treatment, outcome)
        self.network = network

    @property
    def _network(self):
        return Network() if self.network is None else self.network

    def check(self, score):
        """Raise if settings are wrong or do not fit the score."""
        super().check(score)
        self._network.check(score)
        if self._network.shrinkage:
            raise ValueError(
                "network must be without shrinkage for models on its latents, got shrinkage="
                f"{self._network.shrinkage:g}; use 'shrunken_rf' for forests of its residuals."
            )

    def predict(self, plan, *, arms=False, resources=None):
        """Cross-fitted predictions, see :meth:`Nuisance.predict`."""
        settings = self._network.settings_for(plan, resources, arms)
        return run(plan, settings, pair=self.pair, arms=arms, resources=resources)

    def shrinkage_of(self, plan):
        """The ridge penalty λ of the network."""
        return self._network.shrinkage_of(plan)


class Forest(OnLatents):
    """Random forests on the latents of a network: the paper's DDML-RF.

    Parameters
    ----------
    network : Network, optional
        Makes the latents; by default ``Network()``. On the latents of a network with shrinkage,
        small forests learn its residuals, those of many problems at once.
    """

    def __init__(self, *, network=None):
        self.network = network

    def check(self, score):
        """Raise if settings of the network are wrong or do not fit the score."""
        self._network.check(score)

    def check_weights(self):
        """Forests take sample weights."""

    def pair(self, binary_T, binary_Y):
        """Unfitted forests for the treatment and the outcome."""
        kinds = (
            RandomForestClassifier if b else RandomForestRegressor for b in (binary_T, binary_Y)
        )
        return tuple(kind(**FOREST) for kind in kinds)
