"""Checkpoints: damaged files, full disks and interruptions cost time, but never a result."""

import errno
import json
import os
import resource
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from kill_loop import loop, make_data, make_selector, wait_for_end
from typer.testing import CliRunner

from ddml_fs import CausalFeatureSelector
from ddml_fs.cautions import DDMLWarning
from ddml_fs.cli import app
from ddml_fs.engine import checkpoint
from ddml_fs.engine import dispatch as engine

needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's /proc")


@pytest.fixture(scope="module")
def data():
    return make_data()


@pytest.fixture(scope="module")
def finished(data, tmp_path_factory):
    """A finished checkpoint, and the effects."""
    folder = tmp_path_factory.mktemp("finished")
    return folder, make_selector(folder).fit(*data).effects_


@pytest.fixture
def store(finished, tmp_path):
    """A copy of the finished checkpoint: its folder, its files and the effects."""
    (run,) = finished[0].iterdir()
    (tmp_path / run.name).mkdir()
    for file in run.iterdir():
        (tmp_path / run.name / file.name).write_bytes(file.read_bytes())
    return tmp_path, sorted(tmp_path.glob("*/shard-*.npy")), finished[1]


@pytest.fixture
def solved(monkeypatch):
    """Numbers of the shards that are computed."""
    numbers, solve = [], engine.solve_shard
    monkeypatch.setattr(
        engine, "solve_shard", lambda **task: numbers.append(task["s"]) or solve(**task)
    )
    return numbers


def fit_with_warnings(selector, data):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        effects = selector.fit(*data).effects_
    return effects, [str(w.message) for w in caught if w.category is DDMLWarning]


def flip(file, place):
    data = bytearray(file.read_bytes())
    data[place] ^= 1
    file.write_bytes(data)


def reseal(file, **changes):
    """Change what a file says about itself; its checksum stays right."""
    body, mark, seal = file.read_bytes().rpartition(checkpoint.MARK)
    file.write_bytes(body + mark + json.dumps(json.loads(seal) | changes).encode())


FAULTS = {
    "bit in the array": (lambda file: flip(file, 500), "damaged"),
    "bit in the header": (lambda file: flip(file, 20), "damaged"),
    "bit in the checksum": (lambda file: flip(file, -10), "damaged"),
    "truncated": (lambda file: file.write_bytes(file.read_bytes()[:1000]), "truncated"),
    "seal cut": (lambda file: file.write_bytes(file.read_bytes()[:-20]), "damaged"),
    "empty": (lambda file: file.write_bytes(b""), "truncated"),
    "zeros": (
        lambda file: np.save(file, np.zeros_like(np.load(file))),
        "not a file",
    ),
    "text": (lambda file: file.write_text("hello"), "not a file"),
    "other run": (lambda file: reseal(file, run="f" * 32), "belongs to another run"),
    "old format": (lambda file: reseal(file, format=2), "another format"),
    "other shard": (
        lambda file: file.write_bytes(file.with_name("shard-00002.npy").read_bytes()),
        "another shard",
    ),
    "other shape": (lambda file: reseal(file, shape=[2, 1, 1]), "another shape"),
    "no seal but a list": (
        lambda file: file.write_bytes(file.read_bytes().rpartition(b"{")[0] + b"[]"),
        "another format",
    ),
    "folder": (lambda file: (file.unlink(), file.mkdir()), "Is a directory"),
}


@pytest.mark.parametrize("fault", list(FAULTS))
def test_unusable_files_are_named_and_computed_again(data, store, solved, fault):
    folder, files, effects = store
    damage, reason = FAULTS[fault]
    damage(files[1])
    found, messages = fit_with_warnings(make_selector(folder), data)
    pd.testing.assert_frame_equal(found, effects, check_exact=True)
    assert solved == [1]
    assert str(files[1].parent) in messages[0]
    assert "shard-00001.npy" in messages[0]
    assert reason in messages[0]
    if fault == "folder":
        assert "cannot be written" in messages[1]
        return
    assert len(messages) == 1
    found, messages = fit_with_warnings(make_selector(folder), data)
    pd.testing.assert_frame_equal(found, effects, check_exact=True)
    assert solved == [1]  # the file is sound again
    assert not messages


def test_file_of_another_run(data, store, solved):
    folder, files, effects = store
    other = make_selector(folder).set_params(random_state=1).fit(*data)
    assert not other.effects_["effect"].equals(effects["effect"])
    (foreign,) = [f for f in folder.glob("*/shard-00003.npy") if f.parent != files[0].parent]
    files[3].write_bytes(foreign.read_bytes())
    solved.clear()
    found, (message,) = fit_with_warnings(make_selector(folder), data)
    assert "shard-00003.npy (it belongs to another run)" in message
    assert solved == [3]
    pd.testing.assert_frame_equal(found, effects, check_exact=True)


def test_many_unusable_files_are_one_warning(data, store):
    folder, files, effects = store
    for file in files:
        flip(file, 600)
    found, (message,) = fit_with_warnings(make_selector(folder), data)
    assert f"and {len(files) - 5} more" in message
    pd.testing.assert_frame_equal(found, effects, check_exact=True)


# --- Where nothing can be written ---


def test_full_disk(data, finished, tmp_path, monkeypatch):
    """The third shard does not fit any more; the two before it are kept."""
    write, calls = checkpoint.write, []

    def full(path, data):
        calls.append(path)
        if len(calls) < 3:
            return write(path, data)
        path.write_bytes(data[:100])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(checkpoint, "write", full)
    found, (message,) = fit_with_warnings(make_selector(tmp_path), data)
    pd.testing.assert_frame_equal(found, finished[1], check_exact=True)
    assert len(calls) == 3  # it is not tried again
    assert str(tmp_path) in message
    assert "cannot be written (No space left on device); the fit continues" in message
    assert len(list(tmp_path.glob("*/*"))) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_files_that_may_not_grow(data, finished, tmp_path):
    """A limit of the operating system on the size of files, which writing really meets."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        found, (message,) = fit_with_warnings(make_selector(tmp_path), data)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    pd.testing.assert_frame_equal(found, finished[1], check_exact=True)
    assert "cannot be written (File too large)" in message
    assert not list(tmp_path.glob("*/*"))


def test_folder_that_cannot_be_made(data, finished, tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    found, (message,) = fit_with_warnings(make_selector(file / "checkpoint"), data)
    pd.testing.assert_frame_equal(found, finished[1], check_exact=True)
    assert f"The checkpoint '{file / 'checkpoint'}" in message
    assert "cannot be written (Not a directory)" in message


def test_read_only_folder(data, store, solved, monkeypatch):
    """What is there is used; what is missing is computed and not stored."""
    folder, files, effects = store
    files[0].unlink()

    def read_only(*_):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(checkpoint, "write", read_only)
    found, (message,) = fit_with_warnings(make_selector(folder), data)
    pd.testing.assert_frame_equal(found, effects, check_exact=True)
    assert solved == [0]
    assert "Read-only file system" in message


def test_unfinished_files_of_killed_runs_are_removed(data, store):
    folder, files, _ = store
    old, new = (files[0].with_suffix(f".{i}.part") for i in (1, 2))
    for part in (old, new):
        part.write_text("")
    os.utime(old, (time.time() - 2 * checkpoint.STALE,) * 2)
    make_selector(folder).fit(*data)
    assert not old.exists()
    assert new.exists()  # another process may be writing it


# --- Killed and interrupted ---


@needs_proc
def test_killed_sweeps_continue_with_the_same_result():
    """``python tests/kill_loop.py`` does this 20 times."""
    ends = loop(3, say=lambda _: None)
    assert [(left, difference) for *_, left, difference in ends] == [(0, 0)] * 3
    assert any(0 < shards < total for _, shards, total, *_ in ends)


def interrupt_when(process, condition):
    deadline = time.monotonic() + 120
    while not condition() and time.monotonic() < deadline:
        assert process.poll() is None, "the command ended before it could be interrupted"
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the whole group
    return process.communicate(timeout=60)


@needs_proc
@pytest.mark.parametrize("workers", ["threads", "processes"])
def test_an_interrupted_command_says_how_to_continue(tmp_path, workers):
    X, y = make_wide_data()
    table = pd.DataFrame(X).add_prefix("c").assign(label=y)
    table.to_csv(tmp_path / "table.csv", index=False)
    folder = tmp_path / "store"
    command = ["select", str(tmp_path / "table.csv")]
    command += ["--label", "label", "--nuisance", "shrunken", "--n-features", "5"]
    command += ["--checkpoint", str(folder)]
    # A process that is started in the background ignores interruptions, and so do its children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    program = ["-m", "ddml_fs"]
    if workers == "processes":  # as in a long sweep
        few = "from ddml_fs.engine import dispatch; dispatch.FEW_STEPS = 0"
        program = ["-c", f"{few}; from ddml_fs.__main__ import main; main()"]
    process = subprocess.Popen(
        [sys.executable, *program, *command, "--n-jobs", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    _, err = interrupt_when(process, lambda: len(list(folder.glob("*/shard-*.npy"))) > 0)
    assert err.splitlines()[-1] == (
        f"Interrupted. Finished shards are kept in '{folder}'; repeat the same command to continue."
    )
    assert process.returncode == 130
    assert wait_for_end(process.pid) == []
    files = {file: file.stat().st_mtime_ns for file in folder.glob("*/shard-*.npy")}
    ended = CliRunner().invoke(app, command)
    assert "5 of 160 features selected" in ended.stdout
    assert "Warning" not in ended.output
    assert all(file.stat().st_mtime_ns == made for file, made in files.items())
    assert CliRunner().invoke(app, command[:-2]).stdout == ended.stdout


def make_wide_data():
    """Enough columns for several shards with the memory that a command may use."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 160)).round(3)
    return X, (X[:, 0] + rng.standard_normal(200) > 0).astype(int)


def test_interruptions_of_fit_have_a_note(data, tmp_path, monkeypatch):
    def interrupt(**_):
        raise KeyboardInterrupt

    monkeypatch.setattr(engine, "solve_shard", interrupt)
    with pytest.raises(KeyboardInterrupt) as caught:
        make_selector(tmp_path).fit(*data)
    (note,) = caught.value.__notes__
    assert f"kept in '{tmp_path}'" in note
    with pytest.raises(KeyboardInterrupt) as caught:
        CausalFeatureSelector(5, nuisance="shrunken").fit(*data)
    assert not hasattr(caught.value, "__notes__")
