"""What every nuisance is: an object with its own settings that predicts held-out rows."""

from typing import ClassVar

from sklearn.base import BaseEstimator

from ddml_fs.engine.predictions import Predictions


class Nuisance(BaseEstimator):
    """One way to predict m = E[T | X], g = E[Y | X] and, where asked, the outcome per arm.

    Settings are stored by ``__init__`` and read by :meth:`predict`, as in scikit-learn, so that
    ``get_params``, ``set_params`` and ``clone`` work, also through the estimator that holds it.

    Attributes
    ----------
    in_shards : bool
        Whether the work is cut into shards, so that a checkpoint has an effect.
    """

    in_shards: ClassVar[bool] = False

    @property
    def on_device(self) -> bool:
        """Whether a device other than the CPU has an effect."""
        return False

    def check(self, score):
        """Refuse settings that are wrong, or that do not go with a score, before any work.

        Parameters
        ----------
        score : Score
        """

    def check_resources(self, device="auto", checkpoint=None):
        """Refuse what would have no effect."""
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
            Whether mu_0 and mu_1 are asked for.
        resources : Resources, optional

        Returns
        -------
        predictions : Predictions
        """
        raise NotImplementedError

    def shrinkage_of(self, plan):
        """λ that the nuisances are shrunken by; 0 for those that are not."""
        return 0.0
