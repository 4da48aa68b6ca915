"""Resources of a computation."""

from dataclasses import dataclass, field
from os import PathLike

import torch

from ddml_fs.progress import Progress


@dataclass(frozen=True)
class Resources:
    """Devices, workers, memory, checkpoint and progress.

    Attributes
    ----------
    devices : tuple of torch.device
        Shards use them in turn.
    n_jobs : int, optional
        Number of joblib workers for shards and scikit-learn models, and of threads of linear
        algebra.
    memory : float
        Gigabytes that one shard may use.
    checkpoint : str or Path, optional
        Folder in which finished shards are stored.
    detail : bool
        Whether predictions include summaries of their networks.
    progress : Progress
        Receives reports about the work.
    """

    devices: tuple = (torch.device("cpu"),)
    n_jobs: int | None = None
    memory: float = 1.0
    checkpoint: str | PathLike | None = None
    detail: bool = True
    progress: Progress = field(default_factory=Progress)
