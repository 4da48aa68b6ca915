"""Where to compute, and with how many threads."""

import gc
import sys
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import lru_cache

import torch
from joblib import cpu_count
from threadpoolctl import ThreadpoolController


@lru_cache(maxsize=1)
def _controller(n_modules):
    """The libraries whose threads can be limited. To search for them takes milliseconds."""
    return ThreadpoolController()


def threadpool_limits(n):
    """Limit the threads of linear algebra and of OpenMP: a context, or an object that restores.

    It is that of threadpoolctl, which searches for libraries at every call. This one searches again
    only if modules have been imported since.
    """
    return _controller(len(sys.modules)).limit(limits=n)


class ThreadLimit:
    """Limits the number of threads of the process while at least one fit runs.

    Several fits may run in threads of one process. The first one stores the original numbers of
    threads, and the last one restores them.
    """

    def __init__(self):
        self.lock, self.users, self.torch_threads, self.pools = threading.Lock(), 0, 1, None
        self.own = threading.local()  # ``n``: of the fit that runs in this thread

    def enter(self, n, libraries):
        """Use n threads from now on; returns how many this thread might use before."""
        with self.lock:
            if not self.users:
                self.torch_threads = torch.get_num_threads()
                self.pools = threadpool_limits(libraries)
            self.users += 1
            torch.set_num_threads(n)
            before, self.own.n = self.n, n
        return before

    @property
    def n(self):
        """Number of threads that a computation of this thread may use; 1 outside of a limit."""
        return getattr(self.own, "n", 1)

    def leave(self, before):
        """Restore the numbers of threads, if no other fit runs."""
        with self.lock:
            self.users -= 1
            self.own.n = before
            # OpenMP stores the number per thread, so each thread restores its own.
            torch.set_num_threads(self.torch_threads)
            if not self.users and self.pools is not None:
                self.pools.restore_original_limits()


LIMIT = ThreadLimit()
MOST_HELD = 3e8  # bytes of a table of which several threads would hold too many copies


@contextmanager
def limit_threads(n, *, libraries=False):
    """Use n threads, at most one per core of this machine, in torch and :func:`in_threads`.

    A stack consists of many small operations, where waiting for other threads takes longer than the
    work that they save. More cores are used by more workers, as many as the user asks for.

    Linear algebra has one thread, unless ``libraries`` is true. NumPy and SciPy each have a library
    of their own, whose threads go on to look for work after every operation. With two threads each,
    on two cores, a selection from 8000 × 400 took 19 s in place of 12 s. Whoever has several parts
    of work uses :func:`in_threads`; for large matrices there is :func:`library_threads`.
    """
    n = min(n, cpu_count())
    before = LIMIT.enter(n, n if libraries else 1)
    try:
        yield
    finally:
        LIMIT.leave(before)


def library_threads(needed=True):
    """A context in which linear algebra has all threads that :func:`limit_threads` allows."""
    return threadpool_limits(LIMIT.n) if needed else nullcontext()


def n_threads():
    """How many threads :func:`limit_threads` allows here; 1 outside of it."""
    return LIMIT.n


def in_threads(function, items, held=0):
    """Call a function for every item, by as many threads as :func:`limit_threads` allows.

    Parameters
    ----------
    function : callable
        What it does most of the time must release Python's lock, as NumPy does. Its linear algebra
        has one thread per call, unless there is a single item in :func:`library_threads`.
    items : iterable
    held : float
        Bytes that a call holds; if they are many, calls are made one after another.

    Yields
    ------
    result : object
        In the order of the items. At most two calls per thread are ahead of what was read.

    Examples
    --------
    >>> with limit_threads(2):
    ...     list(in_threads(abs, [-1, 2, -3]))
    [1, 2, 3]
    """
    n, items = LIMIT.n, list(items)
    if n == 1 or len(items) == 1 or held > MOST_HELD:
        yield from map(function, items)
        return
    # OpenMP stores its limit per thread, so each thread sets its own.
    with (
        threadpool_limits(1),
        ThreadPoolExecutor(n, initializer=threadpool_limits, initargs=(1,)) as pool,
    ):
        ahead: deque = deque()
        for item in items:
            ahead.append(pool.submit(function, item))
            if len(ahead) == 2 * n:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


@contextmanager
def tensor_cores(device):
    """Let matrix products of single precision use TF32, where a CUDA device has it (Ampere, 8.0).

    Sums stay in single precision, and products have 10 bits, as many as half precision. The setting
    of the process is restored afterwards.
    """
    device = torch.device(device)
    if device.type != "cuda" or torch.cuda.get_device_capability(device) < (8, 0):
        yield
        return
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def out_of_memory(error):
    """Whether an error says that memory is exhausted, of a device or of the machine.

    Examples
    --------
    >>> out_of_memory(MemoryError()), out_of_memory(RuntimeError("shapes differ"))
    (True, False)
    """
    words = ("out of memory", "can't allocate memory", "not enough memory")
    typed = isinstance(error, MemoryError | torch.OutOfMemoryError)
    return typed or any(word in str(error).lower() for word in words)


def free_memory(device):
    """Give back memory that nothing uses."""
    gc.collect()
    if torch.device(device).type == "cuda":
        torch.cuda.empty_cache()


def resolve_devices(devices="auto"):
    """A list of torch devices, from one name or a list of names.

    Examples
    --------
    >>> resolve_devices("cpu"), resolve_devices(["cpu", "cpu"])
    ([device(type='cpu')], [device(type='cpu'), device(type='cpu')])
    """
    if not isinstance(devices, list | tuple):
        devices = [devices]
    if not devices:
        raise ValueError("device must name at least one device, got an empty list.")
    return [resolve_device(device) for device in devices]


def resolve_device(device="auto"):
    """The torch device for a name; ``"auto"`` is CUDA, then MPS, then the CPU.

    Examples
    --------
    >>> resolve_device("cpu")
    device(type='cpu')
    """
    if not isinstance(device, torch.device) and device != "auto":
        try:
            device = torch.device(device)
        except (RuntimeError, TypeError):
            raise ValueError(
                f"device must be 'auto' or a torch device such as 'cpu' or 'cuda', got {device!r}."
            ) from None
    if isinstance(device, torch.device):
        there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
        if not there.get(device.type, True):
            raise ValueError(
                f"device must be one that this machine has, got {str(device)!r}; use 'auto'."
            )
        return device
    if torch.cuda.is_available():
        return torch.device("cuda")
    if torch.backends.mps.is_available():
        return torch.device("mps")
    return torch.device("cpu")
