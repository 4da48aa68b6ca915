"""Where to compute, and with how many threads."""

from contextlib import contextmanager

import torch
from threadpoolctl import threadpool_limits


@contextmanager
def one_thread():
    """Compute in one thread, in torch and in linear algebra.

    A stack is many small operations: threads that wait for each other between any two of them cost
    more than they bring. More cores are used by more workers, and no more than were asked for.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(before)


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
    if isinstance(device, torch.device):
        return device
    if device != "auto":
        try:
            return torch.device(device)
        except (RuntimeError, TypeError):
            raise ValueError(
                f"device must be 'auto' or a torch device such as 'cpu' or 'cuda', got {device!r}."
            ) from None
    if torch.cuda.is_available():
        return torch.device("cuda")
    if torch.backends.mps.is_available():
        return torch.device("mps")
    return torch.device("cpu")
