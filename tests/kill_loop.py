"""``python tests/kill_loop.py``: sweeps that are killed at random moments, and continued.

Each sweep is a process of its own, with or without workers. It is killed, so that it can clean up
nothing.
Then the same sweep is continued from its checkpoint, and its effects must be those of an
uninterrupted sweep, bit by bit. No process may be left a few seconds after the kill.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from ddml_fs import CausalFeatureSelector
from ddml_fs.datasets import make_domain_data
from ddml_fs.engine import dispatch

ROOT = Path(__file__).resolve().parents[1]
LINE = "{}: workers {}; finished shards {} of {}; processes left {}; difference {:g}"


def make_data():
    """A table of 300 rows and 24 columns."""
    data = make_domain_data(1, 300, 8, 0, 16, n_targets=0, random_state=0)
    return data.X, data.y


def make_selector(folder=None, n_jobs=None):
    """A sweep of small networks in about ten shards."""
    return CausalFeatureSelector(
        5,
        nuisance="shrunken",
        memory_budget=2.5e-3,
        random_state=0,
        checkpoint=folder,
        n_jobs=n_jobs,
    )


def start(folder, n_jobs=2):
    """Start a sweep as the leader of its own session, and wait until it begins to compute."""
    command = [sys.executable, __file__, "--sweep", str(folder), "--n-jobs", str(n_jobs)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, start_new_session=True, cwd=ROOT
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def processes_of(session):
    """Numbers of the living processes of a session, from Linux's /proc."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, own = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
        except OSError:  # it ended meanwhile
            continue
        if int(own) == session and state != "Z":
            found.append(int(folder.name))
    return found


def wait_for_end(session, seconds=20.0):
    """Wait until a session has no process; return the processes that are left."""
    deadline = time.monotonic() + seconds
    while (left := processes_of(session)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def shards_in(folder):
    """Number of finished shards in a checkpoint."""
    return len(list(Path(folder).glob("*/shard-*.npy")))


def kill(folder, n_jobs, n_shards, seconds):
    """Start a sweep, and kill it some time after a number of shards is finished.

    Returns
    -------
    left : list of int
        Processes that are left after a while.
    """
    process = start(folder, n_jobs)
    while shards_in(folder) < n_shards and process.poll() is None:
        time.sleep(0.001)
    time.sleep(seconds)
    process.kill()
    process.communicate()
    return wait_for_end(process.pid)


def loop(n, seed=0, say=print):
    """Kill and continue n sweeps, with one worker and with two in turn.

    Returns
    -------
    ends : list of tuples
        Workers, finished shards at the kill, all shards, processes that were left, and the largest
        difference of the effects.
    """
    rng = random.Random(seed)
    data = make_data()
    with tempfile.TemporaryDirectory() as folder:
        truth = make_selector(folder).fit(*data).effects_["effect"].to_numpy()
        total = shards_in(folder)
    ends = []
    for i in range(n):
        n_jobs = 2 - i % 2
        with tempfile.TemporaryDirectory() as folder:
            left = kill(folder, n_jobs, rng.randrange(total), rng.uniform(0, 0.3))
            shards = shards_in(folder)
            effects = make_selector(folder).fit(*data).effects_["effect"].to_numpy()
        ends.append((n_jobs, shards, total, len(left), float(np.abs(effects - truth).max())))
        say(LINE.format(i + 1, *ends[-1]))
    return ends


def sweep(folder, n_jobs):
    """What a process that will be killed does; two workers are processes, as in a long sweep."""
    dispatch.FEW_STEPS = 0
    data, selector = make_data(), make_selector(folder, n_jobs)
    print("ready", flush=True)
    selector.fit(*data)


def main():
    """Run the loop, and exit with 1 if anything differs or is left."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sweep", help=argparse.SUPPRESS)
    parser.add_argument("--n-jobs", type=int, default=1, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.sweep is not None:
        return sweep(options.sweep, options.n_jobs)
    ends = loop(options.kills, options.seed)
    sys.exit(any(left or difference for *_, left, difference in ends))


if __name__ == "__main__":
    main()
