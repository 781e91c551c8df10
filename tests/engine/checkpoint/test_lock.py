"""The lock of a checkpoint: one driver at a time, whatever dies, freezes or starts at once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from slackwater.base.errors import RunError
from slackwater.engine.checkpoint import lock
from slackwater.engine.checkpoint.lock import Lease, Owner, check_free, held, lock_folder

HOLD = """
import sys
from pathlib import Path
from slackwater.engine.checkpoint.lock import held
with held(Path(sys.argv[1])) as lease:
    print(lease.epoch, flush=True)
    sys.stdin.readline()
"""


@contextmanager
def driver(checkpoint: Path) -> Iterator[subprocess.Popen[str]]:
    """Give a process that holds the lock until it is killed or reads a line."""
    command = [sys.executable, "-c", HOLD, str(checkpoint)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().strip().isdigit()
            yield process
        finally:
            process.kill()


def elsewhere(lease: Lease, **changes: object) -> None:
    """Let the lock say that a process of another machine holds it."""
    owner = replace(Owner.read(lease.file), machine="another", host="far", **changes)  # type: ignore[arg-type]
    lease.file.write_text(json.dumps(asdict(owner)))


def aged(lease: Lease, seconds: float) -> None:
    """Let the last heartbeat be so long ago."""
    beat = lease.file.stat().st_mtime - seconds
    os.utime(lease.file, (beat, beat))


def test_second_driver_is_refused_and_reads_who_runs_the_checkpoint_since_when_and_what_to_do(tmp_path: Path) -> None:
    with driver(tmp_path) as other:
        words = rf"CHECKPOINT_IN_USE.*{tmp_path}.*process {other.pid} of .* since 20.*stop it and.*after 30s without"
        with pytest.raises(RunError, match=words), held(tmp_path):
            pass
        with pytest.raises(RunError, match=words):
            check_free(tmp_path)


def test_lock_is_free_again_when_it_was_released(tmp_path: Path) -> None:
    for epoch in (1, 2, 3):
        with held(tmp_path) as lease:
            assert lease.epoch == epoch
        check_free(tmp_path)


def test_lock_of_a_driver_that_was_killed_is_taken_at_once_even_if_nobody_has_buried_it(tmp_path: Path) -> None:
    with driver(tmp_path) as other:
        other.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
        with held(tmp_path) as lease:
            assert lease.epoch == 2


def test_process_number_that_was_given_again_is_not_taken_for_the_driver(tmp_path: Path) -> None:
    with held(tmp_path) as lease:
        lease.file.write_text(json.dumps({**asdict(Owner.this()), "born": "1"}))
        with held(tmp_path) as second:
            assert second.epoch == 2


def test_driver_of_another_machine_is_replaced_only_after_its_heartbeat_has_stopped(tmp_path: Path) -> None:
    with held(tmp_path) as lease:
        elsewhere(lease)
        aged(lease, lock.STALE_S - 5)
        with pytest.raises(RunError, match=r"CHECKPOINT_IN_USE.*on far since.*heartbeat 25s ago"), held(tmp_path):
            pass
        aged(lease, 10)
        with held(tmp_path) as second:
            assert second.epoch == 2


def test_driver_that_is_frozen_on_this_machine_is_replaced_when_its_heartbeat_has_stopped(tmp_path: Path) -> None:
    with driver(tmp_path) as other:
        other.send_signal(signal.SIGSTOP)
        aged(Lease(path=tmp_path, epoch=1), lock.STALE_S + 1)
        with held(tmp_path) as lease:
            lease.check()


def test_driver_that_was_replaced_learns_by_whom(tmp_path: Path) -> None:
    with held(tmp_path) as lease:
        lease.check()
        aged(lease, lock.STALE_S + 1)
        with held(tmp_path) as second:
            second.check()
            with pytest.raises(RunError, match=rf"CHECKPOINT_LOST.*{tmp_path}.*process {os.getpid()} .* took it over"):
                lease.check()
        with pytest.raises(RunError, match="CHECKPOINT_LOST"):
            lease.check()
    with held(tmp_path) as third:
        assert third.epoch == 3, "the end of the first one has released nothing"


def test_driver_whose_checkpoint_was_deleted_learns_of_it(tmp_path: Path) -> None:
    with held(tmp_path) as lease:
        lease.file.unlink()
        lock_folder(tmp_path).rmdir()
        with pytest.raises(RunError, match=r"CHECKPOINT_LOST.*its lock file was deleted"):
            lease.check()


def test_heartbeat_is_renewed_while_the_lock_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "HEARTBEAT_S", 0.001)
    beats, whole = threading.Semaphore(0), os.utime

    def counted(path: Path) -> None:
        whole(path)
        beats.release()

    monkeypatch.setattr(os, "utime", counted)
    with held(tmp_path) as lease:
        assert beats.acquire(timeout=30)
        whole(lease.file, (1, 1))
        while beats.acquire(blocking=False):
            pass  # beats of before
        for _ in range(2):  # the first may have been under way
            assert beats.acquire(timeout=30)
        assert lease.file.stat().st_mtime > 1


def test_of_many_that_start_at_once_one_has_the_lock(tmp_path: Path) -> None:
    ready, winners = threading.Barrier(8), []

    def start() -> None:
        ready.wait()
        try:
            with held(tmp_path) as lease:
                winners.append(lease.epoch)
                over.wait(30)
        except RunError as error:
            assert error.code == "CHECKPOINT_IN_USE"  # noqa: PT017  in a thread of its own
            refused.release()

    over, refused = threading.Event(), threading.Semaphore(0)
    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for _ in range(7):
        assert refused.acquire(timeout=30)
    over.set()
    for thread in threads:
        thread.join()
    assert winners == [1]


def test_driver_that_was_frozen_while_it_took_the_lock_does_not_come_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has seen epoch 0, wakes when 1 to 3 came and went, and creates the file of epoch 1 once more."""
    seen = iter([0, 0])
    newest = lock._newest
    for _ in range(3):
        with held(tmp_path):
            pass
    assert not (lock_folder(tmp_path) / "1").exists(), "long gone"
    monkeypatch.setattr(lock, "_newest", lambda folder: next(seen, None) or newest(folder))
    with held(tmp_path) as lease:
        assert lease.epoch == 4


@pytest.mark.parametrize("content", ["", "{", '{"pid": 1}', "[]", "7"])
def test_lock_that_cannot_be_read_is_taken_when_nobody_renews_it(tmp_path: Path, content: str) -> None:
    with held(tmp_path):
        pass
    lease = Lease(path=tmp_path, epoch=1)
    lease.file.write_text(content)
    with pytest.raises(RunError, match="CHECKPOINT_IN_USE"):
        check_free(tmp_path)
    aged(lease, lock.STALE_S + 1)
    check_free(tmp_path)


def test_files_of_the_lock_do_not_grow_with_the_starts(tmp_path: Path) -> None:
    for _ in range(10):
        with held(tmp_path):
            pass
    assert sorted(path.name for path in lock_folder(tmp_path).iterdir()) == ["10", "9"]
