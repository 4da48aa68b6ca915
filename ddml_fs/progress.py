"""Progress of long work."""

from contextlib import contextmanager

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn


@contextmanager
def epoch_bar(verbose, n_epochs):
    """A callable that moves a progress bar by one epoch, or None where none is wanted."""
    if not verbose:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns) as bar:
        task = bar.add_task("DDML", total=n_epochs)
        yield lambda: bar.advance(task)
        bar.update(task, completed=n_epochs)  # problems that stopped early leave epochs over
