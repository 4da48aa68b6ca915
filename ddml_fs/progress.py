"""Progress of long work."""

from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar


class Progress:
    """Where work in epochs is told of; this one listens to nothing."""

    def start(self, n_epochs):
        """Say how many epochs there are."""

    def advance(self):
        """Say that one more is done."""

    def reach(self, n_epochs):
        """Say that so many are done in all; work that stopped early leaves some out."""


class BarProgress(Progress):
    """Progress as a bar with the time left.

    Parameters
    ----------
    bar : rich.progress.Progress
    title : str
    """

    def __init__(self, bar, title):
        self.bar, self.task = bar, bar.add_task(title, total=None)

    def start(self, n_epochs):
        """Give the bar its length; a second piece of work starts it again."""
        self.bar.reset(self.task, total=n_epochs)

    def advance(self):
        """Move the bar by one."""
        self.bar.advance(self.task)

    def reach(self, n_epochs):
        """Move the bar to a point."""
        self.bar.update(self.task, completed=n_epochs)

    def finish(self):
        """Fill the bar."""
        total = self.bar.tasks[self.task].total
        self.bar.update(self.task, completed=total or 1, total=total or 1)


@contextmanager
def progress_bar(verbose, title):
    """A :class:`Progress`, shown as a bar where one is wanted."""
    if not verbose:
        yield Progress()
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Bar(*columns, TextColumn("epochs"), TimeRemainingColumn()) as bar:
        progress = BarProgress(bar, title)
        yield progress
        progress.finish()
