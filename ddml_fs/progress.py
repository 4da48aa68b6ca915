"""Progress of long computations: a bar in a terminal or a notebook, a few lines elsewhere."""

import sys
import time
from contextlib import contextmanager
from html import escape
from threading import Lock
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

from ddml_fs.workers import parallel

SECONDS_PER_LINE = 10.0  # between two lines if there is no terminal
SECONDS_PER_UPDATE = 0.2  # between two updates of a notebook's bar


class Progress:
    """Receives reports about work in phases; this one shows nothing.

    A phase has a name ("choosing the number of features") and pieces of one unit ("fits").
    """

    def enter(self, phase):
        """Name the phase of the work that follows."""

    def start(self, total, unit, done=0):
        """Begin work of ``total`` pieces, of which ``done`` are already there."""

    def advance(self, n=1):
        """Report that n more pieces are done."""

    def reach(self, done):
        """Report how many pieces are done in all. Work that stops early skips some."""


class ShownProgress(Progress):
    """Progress that is shown; subclasses say how.

    Parameters
    ----------
    phase : str
        Name of the first phase.
    clock : callable
        Returns seconds.
    """

    def __init__(self, phase, clock=time.monotonic):
        self.phase, self.clock = phase, clock
        self.total, self.unit, self.done, self.first = 0, "", 0, 0
        self.begun = self.last_shown = clock()
        self.open, self.lock = False, Lock()  # threads may report at once

    def enter(self, phase):
        """Finish the current phase, and name the next one."""
        self.finish()
        self.phase = phase

    def start(self, total, unit, done=0):
        """Begin to count."""
        self.finish()
        self.total, self.unit, self.done, self.first = total, unit, done, done
        self.begun = self.last_shown = self.clock()
        self.open = True
        self.show_start()

    def advance(self, n=1):
        """Count n more pieces."""
        with self.lock:
            self.reach(self.done + n)

    def reach(self, done):
        """Set the count."""
        self.done = min(done, self.total)
        self.show()

    def finish(self):
        """Complete the current count; work that stopped early counts as complete."""
        if self.open:
            self.done, self.open = self.total, False
            self.show_end()

    @property
    def text(self):
        """The state in words, as in "sweep: 3 of 12 shards"."""
        return f"{self.phase}: {self.done} of {self.total} {self.unit}"

    @property
    def elapsed(self):
        """Seconds since the start of the phase."""
        return self.clock() - self.begun

    @property
    def time_left(self):
        """The time left in words; empty if it is unknown."""
        new = self.done - self.first
        if new <= 0 or self.done >= self.total:
            return ""
        return f", {duration(self.elapsed / new * (self.total - self.done))} left"

    def is_due(self, seconds):
        """Whether the given time has passed since this last returned True."""
        due = self.clock() - self.last_shown >= seconds
        if due:
            self.last_shown = self.clock()
        return due

    def show_start(self):
        """Show that a count begins."""

    def show(self):
        """Show the current count."""

    def show_end(self):
        """Show that a count is complete."""

    def close(self):
        """Stop showing anything."""


class LineProgress(ShownProgress):
    """Lines of text: one when a phase ends, and one every ten seconds in a long phase."""

    def show(self):
        """Print a line, if the last one is old."""
        if self.is_due(SECONDS_PER_LINE):
            self.print_line(self.text + self.time_left)

    def show_end(self):
        """Print the last line of the phase."""
        self.print_line(f"{self.text}, {duration(self.elapsed)}")

    def print_line(self, text):
        """Print to the standard error output, so that results can be piped."""
        print(text, file=sys.stderr, flush=True)


class BarProgress(ShownProgress):
    """A bar for each phase in a terminal, with the time left."""

    def __init__(self, phase, console):
        super().__init__(phase)
        columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[count]}")
        self.bar = RichProgress(*columns, TimeRemainingColumn(), console=console)
        self.task: Any = None
        self.bar.start()

    def show_start(self):
        """Add a bar."""
        self.task = self.bar.add_task(
            self.phase, total=self.total, completed=self.done, count=self.count
        )

    @property
    def count(self):
        """The count in words."""
        return f"{self.done} of {self.total} {self.unit}"

    def show(self):
        """Move the bar."""
        self.bar.update(self.task, completed=self.done, count=self.count)

    def show_end(self):
        """Fill the bar."""
        self.show()

    def close(self):
        """Leave the bars as they are."""
        self.bar.stop()


class NotebookProgress(ShownProgress):
    """A bar for each phase in a notebook: plain HTML that is updated, without widgets.

    Parameters
    ----------
    phase : str
    display : callable
        ``IPython.display.display``.
    clock : callable
    """

    def __init__(self, phase, display, clock=time.monotonic):
        super().__init__(phase, clock)
        self.display, self.handle = display, None
        self.finished: list = []  # pairs of HTML and text

    def show_start(self):
        """Add a bar."""
        self.update()

    def show(self):
        """Move the bar."""
        if self.is_due(SECONDS_PER_UPDATE):
            self.update()

    def show_end(self):
        """Fill the bar, and keep it."""
        self.finished.append(self.line(f", {duration(self.elapsed)}"))
        self.update()

    def line(self, after):
        """The current count as HTML and as text."""
        bar = f'<progress value="{self.done}" max="{max(self.total, 1)}"></progress>'
        return f"<div>{bar} {escape(self.text + after)}</div>", self.text + after

    def update(self):
        """Send all bars to the notebook."""
        lines = [*self.finished, *([self.line(self.time_left)] if self.open else [])]
        html, text = zip(*lines, strict=True)
        data = {"text/html": "".join(html), "text/plain": "\n".join(text)}
        if self.handle is None:
            self.handle = self.display(data, raw=True, display_id=True)
        else:
            self.handle.update(data, raw=True)


def duration(seconds):
    """A time in words.

    Examples
    --------
    >>> duration(0.3), duration(42.4), duration(200), duration(7500)
    ('less than 1 s', '42 s', '3 min 20 s', '2 h 5 min')
    """
    if seconds < 1:
        return "less than 1 s"
    minutes, seconds = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
    return f"{minutes // 60} h {minutes % 60} min"


def suitable_progress(phase):
    """The progress display that fits where the output goes."""
    console = Console(stderr=True)
    if console.is_jupyter:
        from IPython.display import display

        return NotebookProgress(phase, display)
    if sys.stderr.isatty() and not console.is_dumb_terminal:
        return BarProgress(phase, console)
    return LineProgress(phase)


@contextmanager
def progress_bar(verbose, phase):
    """A :class:`Progress`, which is shown if ``verbose``.

    Parameters
    ----------
    verbose : bool
    phase : str
        Name of the first phase.
    """
    if not verbose:
        yield Progress()
        return
    progress = suitable_progress(phase)
    try:
        yield progress
        progress.finish()
    finally:
        progress.close()


def run_parallel(work, progress, n_jobs=None, **options):
    """Results of joblib's delayed calls, in their order; each is reported as it arrives.

    Parameters
    ----------
    work : iterable of delayed calls
    progress : Progress
        Its phase must have been started.
    n_jobs : int, optional
    options
        Of :class:`joblib.Parallel`.

    Returns
    -------
    results : list
    """
    results = []
    for result in parallel(work, n_jobs, **options):
        results.append(result)
        progress.advance()
    return results
