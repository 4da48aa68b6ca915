"""Chunks of a table, so that what is computed from it takes little memory beside it."""

CHUNK = 32e6  # bytes


def chunks(n, size):
    """Slices of n items of ``size`` bytes each, none larger than :data:`CHUNK`.

    Examples
    --------
    >>> chunks(5, 15e6)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    step = max(1, int(CHUNK / max(size, 1)))
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]
