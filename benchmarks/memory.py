"""Peak memory of a process and its workers."""

import os
import threading
from pathlib import Path


class PeakMemory(threading.Thread):
    """Largest sum of the resident memory of this process and its children, in MB (Linux)."""

    def __init__(self):
        super().__init__(daemon=True)
        self.peak, self.over = 0.0, threading.Event()

    def run(self):
        """Look twenty times a second."""
        while not self.over.wait(0.05):
            self.peak = max(self.peak, sum(map(self._megabytes, [os.getpid(), *self._children()])))

    def _children(self):
        tasks = Path(f"/proc/{os.getpid()}/task").glob("*/children")
        return [int(pid) for task in tasks for pid in task.read_text().split()]

    def _megabytes(self, pid):
        try:
            pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        except OSError:
            return 0.0
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
