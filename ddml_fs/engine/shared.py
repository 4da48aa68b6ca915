"""What shards share: once per fold, the ridge start and the trunk."""

from copy import copy
from threading import Lock
from typing import NamedTuple

import numpy as np

from ddml_fs.engine.start import RidgeStart
from ddml_fs.engine.trunk import ShardTrunk, make_trunk, trunk_of_shard


class ShardInputs(NamedTuple):
    """What the problems of one shard need beside the rows."""

    base: np.ndarray | None = None  # (2, P, N), the ridge start
    trunk: ShardTrunk | None = None

    def part(self, problems, folds):
        """The inputs of some problems, given their places and those of their folds."""
        base = None if self.base is None else self.base[:, problems]
        return ShardInputs(base, None if self.trunk is None else self.trunk.part(problems, folds))


class Shared:
    """Makes the inputs of each shard, with no more than the shard needs.

    Parameters
    ----------
    plan : Plan
    settings : Settings
    """

    def __init__(self, plan, settings):
        self.plan, self.settings, self.trunks = plan, settings, {}
        self.start = RidgeStart(plan, settings.shrinkage) if settings.shrinkage else None
        self.lock = Lock()  # only one fold's regressions are kept

    @property
    def one_fold(self):
        """Whether there is one fold's regressions for all threads, which then work on that fold.

        With a trunk, tables are wide, and the regressions of two folds would take too much memory.
        """
        return self.settings.trunk

    def for_thread(self):
        """What a further thread uses: regressions of its own or, with a trunk, these.

        So threads need not wait for each other.
        """
        if self.one_fold:
            return self
        other = copy(self)
        other.start, other.lock = self.start and self.start.for_thread(), Lock()
        return other

    def trunk(self, k):
        """The trunk of fold k."""
        if k not in self.trunks:
            self.trunks[k] = make_trunk(self.plan, k)
        return self.trunks[k]

    def of(self, members):
        """The inputs of some problems.

        Parameters
        ----------
        members : int array of shape (P,)

        Returns
        -------
        inputs : ShardInputs
        """
        with self.lock:
            base = None if self.start is None else self.start.of(members)
            if not self.settings.trunk:
                return ShardInputs(base)
            return ShardInputs(base, trunk_of_shard(self.plan, members, self.trunk))
