"""The base class of nuisances: objects with settings that predict held-out rows."""

from typing import ClassVar

from sklearn.base import BaseEstimator

from ddml_fs.engine.predictions import Predictions


class Nuisance(BaseEstimator):
    """One way to predict m = E[T | X], g = E[Y | X] and, if needed, the outcome per arm.

    ``__init__`` stores the settings and :meth:`predict` reads them, as in scikit-learn. So
    ``get_params``, ``set_params`` and ``clone`` work, also through the estimator that uses it.

    Attributes
    ----------
    in_shards : bool
        Whether the work is split into shards, so that a checkpoint has an effect.
    """

    in_shards: ClassVar[bool] = False

    @property
    def on_device(self) -> bool:
        """Whether a device other than the CPU has an effect."""
        return False

    def check(self, score):
        """Raise if settings are wrong or do not fit the score, before any work is done.

        Parameters
        ----------
        score : Score
        """

    def check_weights(self):
        """Raise if the models cannot use sample weights, before any work is done."""

    def check_resources(self, device="auto", checkpoint=None):
        """Raise if a device or a checkpoint would have no effect."""
        if not self.on_device and device != "auto":
            raise ValueError(
                f"device is for networks and Gaussian processes, got device={device!r} with "
                f"{self!r}; leave it out."
            )
        if not self.in_shards and checkpoint is not None:
            raise ValueError(
                f"checkpoint is for networks, got checkpoint={str(checkpoint)!r} with {self!r}; "
                "leave it out."
            )

    def predict(self, plan, *, arms=False, resources=None) -> Predictions:
        """Cross-fitted predictions of all rows, for all problems of a plan.

        Parameters
        ----------
        plan : Plan
        arms : bool
            Whether to predict mu_0 and mu_1 as well.
        resources : Resources, optional

        Returns
        -------
        predictions : Predictions
        """
        raise NotImplementedError

    def shrinkage_of(self, plan):
        """The ridge penalty λ of the nuisances; 0 without shrinkage."""
        return 0.0
