"""What shards share: rows in single precision and, once per fold, the ridge start and the trunk."""

import numpy as np

from ddml_fs.engine.start import RidgeStart
from ddml_fs.engine.trunk import make_trunk, trunk_of_shard


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
        self.X = self.x_offset = None
        if not settings.trunk:
            kind = str(settings.dtype).removeprefix("torch.")
            # Centred in double precision: in single precision a large offset would hide the
            # variation.
            self.x_offset = plan.X.mean(0, dtype=np.float64)
            self.X = np.ascontiguousarray(plan.X - self.x_offset, dtype=kind)

    def trunk(self, k):
        """The trunk of fold k."""
        if k not in self.trunks:
            self.trunks[k] = make_trunk(self.plan, k)
        return self.trunks[k]

    def of(self, members):
        """The inputs of a shard: plan, members, X, x_offset, base and trunk."""
        base = None if self.start is None else self.start.of(members)
        if not self.settings.trunk:
            given = {"plan": self.plan, "members": members, "trunk": None}
            return given | {"X": self.X, "x_offset": self.x_offset, "base": base}
        trunk = trunk_of_shard(self.plan, members, self.trunk)
        part, numbers = self.plan.shard(members)
        given = {"plan": part, "members": numbers, "trunk": trunk}
        return given | {"X": None, "x_offset": None, "base": base}
