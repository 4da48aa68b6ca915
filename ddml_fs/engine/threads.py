"""Work by threads of this process, which end soon after somebody has stopped waiting for them."""

from collections import deque
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from threading import Lock

from ddml_fs.progress import Progress


class Stopped(Exception):
    """Nobody waits for the result any more."""


class Stop(Progress):
    """A progress that ends the work that reports to it, once ``asked`` is true."""

    asked = False

    def advance(self, n=1):
        """Raise if the work is to end."""
        if self.asked:
            raise Stopped


class Waiting:
    """Items that no thread has begun, by group.

    Parameters
    ----------
    items, groups : lists

    Examples
    --------
    >>> waiting = Waiting(["a1", "a2", "b1", "b2"], ["a", "a", "b", "b"])
    >>> waiting.take(None), waiting.take(None), waiting.take("b"), waiting.take("b")
    (('a1', 'a'), ('b1', 'b'), ('b2', 'b'), ('a2', 'a'))
    """

    def __init__(self, items, groups):
        self.lock = Lock()
        self.by_group: dict = {group: deque() for group in groups}
        for item, group in zip(items, groups, strict=True):
            self.by_group[group].append(item)

    def take(self, group):
        """The next item of a group, or else of the group with most items; and its group."""
        with self.lock:
            if not self.by_group.get(group):
                group = max(self.by_group, key=lambda g: len(self.by_group[g]))
            return self.by_group[group].popleft(), group


def each_by_threads(function, items, n_threads):
    """Results of calls of a function by threads, each as soon as it is there.

    If the reader is interrupted or reads no further, the calls that run end at their next report.
    Threads that outlived the main thread would end the process with an error of C++.

    Parameters
    ----------
    function : callable
        From an item, and a :class:`Stop` to which it reports, to a result.
    items : iterable
    n_threads : int

    Yields
    ------
    result : object

    Examples
    --------
    >>> sorted(each_by_threads(lambda item, stop: 2 * item, [1, 2, 3], 2))
    [2, 4, 6]
    """
    stop = Stop()
    with ThreadPoolExecutor(n_threads) as pool:
        running = {pool.submit(function, item, stop) for item in items}
        try:
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                while done:
                    yield done.pop().result()  # of which nothing is kept here
        finally:
            stop.asked = True
            pool.shutdown(cancel_futures=True)


@contextmanager
def beside(function, wanted=True):
    """Call a function in a thread of its own while the block runs, and wait for it at the end.

    Parameters
    ----------
    function : callable
        From a :class:`Stop`, to which it reports, to a result. If the block raises, it is stopped.
    wanted : bool
        Whether to call it at all.

    Yields
    ------
    result : callable
        Gives the result, or None if it was not wanted.

    Examples
    --------
    >>> with beside(lambda stop: sum(range(5))) as total:
    ...     largest = max(range(5))
    >>> total(), largest
    (10, 4)
    """
    if not wanted:
        yield lambda: None
        return
    stop = Stop()
    with ThreadPoolExecutor(1) as pool:
        called = pool.submit(function, stop)
        try:
            yield called.result
        except BaseException:
            stop.asked = True
            raise
