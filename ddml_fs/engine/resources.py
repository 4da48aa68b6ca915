"""What a computation may use."""

from dataclasses import dataclass, field
from os import PathLike

import torch

from ddml_fs.progress import Progress


@dataclass(frozen=True)
class Resources:
    """Devices, workers, memory, and where to keep and tell what is done.

    Attributes
    ----------
    devices : tuple of torch.device
        Shards take them in turn.
    n_jobs : int, optional
        joblib workers for shards and scikit-learn models, and threads of linear algebra.
    memory : float
        Gigabytes that one shard may take.
    checkpoint : str or Path, optional
        Folder in which finished shards are kept.
    detail : bool
        Whether predictions carry what their networks tell.
    progress : Progress
        Told how much work there is, and of each piece that is done.
    """

    devices: tuple = (torch.device("cpu"),)
    n_jobs: int | None = None
    memory: float = 1.0
    checkpoint: str | PathLike | None = None
    detail: bool = True
    progress: Progress = field(default_factory=Progress)
