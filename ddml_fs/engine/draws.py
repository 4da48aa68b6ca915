"""Random numbers of a stack of problems, each from its own seed."""

import numpy as np
import torch


class Draws:
    """Random numbers on the CPU that depend only on the seed of a problem, not on its stack.

    The problems of a fold have the same seed. Their numbers are drawn once.

    Parameters
    ----------
    seeds : list of int
        One per problem.

    Examples
    --------
    >>> draws = Draws([7, 7, 8])
    >>> values = draws.normal(2, 5)
    >>> values.shape, bool((values[0] == values[1]).all()), bool((values[0] == values[2]).any())
    (torch.Size([3, 2, 5]), True, False)
    """

    def __init__(self, seeds):
        distinct, place = np.unique(seeds, return_inverse=True)
        self.generators = [torch.Generator().manual_seed(int(seed)) for seed in distinct]
        self.place = torch.as_tensor(place)

    def normal(self, *shape):
        """Standard normal numbers, (P, *shape)."""
        return self._draw(torch.Tensor.normal_, shape)

    def uniform(self, *shape):
        """Uniform numbers between 0 and 1, (P, *shape)."""
        return self._draw(torch.Tensor.uniform_, shape)

    def _draw(self, fill, shape):
        values = torch.empty(len(self.generators), *shape)
        for generator, own in zip(self.generators, values, strict=True):
            fill(own, generator=generator)
        return values[self.place]
