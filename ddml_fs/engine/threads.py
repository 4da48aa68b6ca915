"""Work by threads of this process, which end soon after somebody has stopped waiting for them."""

from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

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
