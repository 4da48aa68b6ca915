"""Chunks of a table, so that what is computed from it takes little memory beside it."""

CHUNK = 32e6  # bytes


def chunks(n, size, least=1):
    """Slices of n items of ``size`` bytes each, none larger than :data:`CHUNK`.

    There are at least ``least`` of them, if there are so many items: one per thread, say.

    Examples
    --------
    >>> chunks(5, 15e6)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    >>> chunks(5, 1, least=2)
    [slice(0, 3, None), slice(3, 5, None)]
    """
    step = max(1, min(int(CHUNK / max(size, 1)), -(-n // least)))
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]
