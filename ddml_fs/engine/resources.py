"""Resources of a computation."""

from dataclasses import dataclass, field
from os import PathLike

import torch

from ddml_fs.engine.devices import resolve_devices
from ddml_fs.progress import Progress


@dataclass(frozen=True)
class Resources:
    """Devices, workers, memory, checkpoint and progress.

    Attributes
    ----------
    devices : tuple of torch.device
        One worker each.
    any_device : bool
        Whether workers on other machines choose their own device.
    n_jobs : int, optional
        Number of joblib workers for shards and scikit-learn models, and of threads of linear
        algebra.
    memory : float, optional
        Gigabytes that the whole fit may use; by default there is no ceiling.
    checkpoint : str or Path, optional
        Folder in which finished shards are stored.
    detail : bool
        Whether predictions include summaries of their networks.
    progress : Progress
        Receives reports about the work.
    """

    devices: tuple = (torch.device("cpu"),)
    n_jobs: int | None = None
    memory: float | None = None
    checkpoint: str | PathLike | None = None
    detail: bool = True
    progress: Progress = field(default_factory=Progress)
    any_device: bool = False

    @classmethod
    def on(cls, device, **options):
        """Resources with the devices that a user names, see :func:`resolve_devices`.

        Examples
        --------
        >>> Resources.on("cpu", n_jobs=2).devices
        (device(type='cpu'),)
        """
        any_device = isinstance(device, str) and device == "auto"
        return cls(tuple(resolve_devices(device)), any_device=any_device, **options)
