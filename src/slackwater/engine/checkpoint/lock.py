"""The lock of a checkpoint: only one driver runs it at a time, and a driver that was replaced stops.

`<checkpoint>/slackwater/lock/<epoch>` names the driver that took the checkpoint for the epoch-th time. The newest file
counts.

1. Look at the newest file. If its driver is alive, refuse. If it has released the lock, is dead or silent, continue.
2. Create the file of the next epoch, which only one driver can do; the others start again at 1.
3. Check that it is the newest: a driver that was frozen between 1 and 2 may have created an outdated one.
4. Touch the file every few seconds: the heartbeat.
5. Before a delivery, and before the clock is written, check that the file is still the newest.
6. At the end, note in the file that the lock is released; if the disk is full, let the heartbeat look old instead.

All this needs from a file system is exclusive creation and up-to-date listings; the age of a heartbeat is measured by
the file system's clock alone. A process on the same machine is looked up by its pid and start time, so a driver that
was killed can be replaced at once.
"""

from __future__ import annotations

import getpass
import json
import os
import platform
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from slackwater.base.durable import space_for, write_and_flush, write_durably
from slackwater.base.durations import roughly
from slackwater.base.errors import RunError, fault

HEARTBEAT_S: Final = 3.0
STALE_S: Final = 30.0
"""A driver that cannot be looked up counts as dead after this long without a heartbeat."""


@dataclass(frozen=True, kw_only=True)
class Owner:
    """A driver that has taken the lock."""

    user: str
    host: str
    machine: str
    """The scope in which pids are unique: one boot of a host, one container."""
    pid: int
    born: str
    """When the process was started, by the machine's own count: its pid may be reused by another process."""
    since: str
    is_released: bool = False

    @classmethod
    def this(cls) -> Owner:
        """Return the owner for this process."""
        pid, since = os.getpid(), datetime.now(UTC).isoformat(timespec="seconds")
        born = _born(pid) or ""
        return cls(user=_user(), host=platform.node(), machine=_machine(), pid=pid, born=born, since=since)

    @classmethod
    def read(cls, path: Path) -> Owner:
        """Return the owner named in a lock file; if the file is damaged, one that cannot be looked up."""
        try:
            return cls(**json.loads(path.read_text()))
        except (TypeError, ValueError):
            return cls(user="", host="", machine="", pid=0, born="", since="an unknown time")

    @property
    def is_dead(self) -> bool:
        """Whether the process is known to be gone; on another machine, that is never known."""
        return self.machine == _machine() and _born(self.pid) != self.born

    def __str__(self) -> str:
        if not self.pid:
            return "an unknown driver (its lock file is damaged)"
        return f"process {self.pid} of {self.user} on {self.host}"


@dataclass(frozen=True, kw_only=True)
class Lease:
    """A held lock, usable in any process that sees the checkpoint."""

    path: Path
    """The checkpoint."""
    epoch: int

    @property
    def file(self) -> Path:
        """The file that names the holder."""
        return lock_folder(self.path) / str(self.epoch)

    def check(self) -> None:
        """Raise if another driver has taken the checkpoint."""
        if (lost := self.lost()) is not None:
            raise lost

    def lost(self) -> RunError | None:
        """Return the error for a driver that was replaced; None if it was not."""
        newest = _newest(lock_folder(self.path))
        if newest == self.epoch:
            return None
        if newest < self.epoch:
            return fault("CHECKPOINT_LOST", path=self.path, how="its lock file was deleted")
        owner = Owner.read(lock_folder(self.path) / str(newest))
        return fault("CHECKPOINT_LOST", path=self.path, how=f"{owner} took it over at {owner.since}")


def lock_folder(checkpoint: Path) -> Path:
    """Return the folder of a checkpoint's lock files."""
    return checkpoint / "slackwater" / "lock"


@dataclass(frozen=True, kw_only=True)
class Holding:
    """The current or last owner of a checkpoint."""

    owner: Owner
    beat_s: float
    """The last heartbeat, by the file system's clock; if the lock was released, the time of release."""

    def is_alive(self, now_s: float) -> bool:
        """Return whether the owner is running, as far as can be known."""
        return not self.owner.is_released and not self.owner.is_dead and now_s - self.beat_s < STALE_S


def last_holding(checkpoint: Path) -> Holding | None:
    """Return the current or last holder of the checkpoint, None if there was none. Writes nothing."""
    folder = lock_folder(checkpoint)
    path = folder / str(_newest(folder))
    try:
        return Holding(owner=Owner.read(path), beat_s=path.stat().st_mtime)
    except FileNotFoundError:
        return None


def check_free(checkpoint: Path) -> None:
    """Raise if a driver is running on the checkpoint."""
    folder = lock_folder(checkpoint)
    path = folder / str(_newest(folder))
    try:
        owner, beat = Owner.read(path), path.stat().st_mtime
    except FileNotFoundError:
        return  # the first epoch, or replaced just now: step 3 finds out
    if owner.is_released or owner.is_dead:
        return
    silent_s = max(0.0, _now(folder) - beat)
    if silent_s < STALE_S:
        facts = {"path": checkpoint, "owner": owner, "since": owner.since, "silent": _seconds(silent_s)}
        raise fault("CHECKPOINT_IN_USE", stale=_seconds(STALE_S), **facts)


@contextmanager
def held(checkpoint: Path) -> Iterator[Lease]:
    """Hold the lock of a checkpoint while the context is open."""
    lease = _taken(checkpoint)
    over = threading.Event()
    heart = threading.Thread(target=_beat, args=(lease, over), daemon=True, name="slackwater-heartbeat")
    heart.start()
    try:
        yield lease
    finally:
        over.set()
        heart.join(HEARTBEAT_S)
        if lease.lost() is None:  # 6
            _release(lease)


def _release(lease: Lease) -> None:
    released = replace(Owner.read(lease.file), is_released=True)
    try:
        write_durably(lease.file, json.dumps(asdict(released)))
    except (OSError, RunError):
        # Whatever ended the run, mostly the same full disk, is the error to report. A time needs no space.
        beat = lease.file.stat().st_mtime - STALE_S
        os.utime(lease.file, (beat, beat))


def _taken(checkpoint: Path) -> Lease:
    folder = lock_folder(checkpoint)
    with space_for(folder):
        folder.mkdir(parents=True, exist_ok=True)
    while True:
        newest = _newest(folder)
        check_free(checkpoint)  # 1
        lease = Lease(path=checkpoint, epoch=newest + 1)
        try:
            write_and_flush(lease.file, json.dumps(asdict(Owner.this())))  # 2
        except FileExistsError:
            continue
        except RunError:
            lease.file.unlink(missing_ok=True)  # without the owner's name, it would look like an unknown driver's
            raise
        if _newest(folder) == lease.epoch:  # 3
            for path in folder.iterdir():
                if path.name.isdigit() and int(path.name) < newest:
                    path.unlink(missing_ok=True)
            return lease
        lease.file.unlink(missing_ok=True)


def _now(folder: Path) -> float:
    """Return the current time by the file system's clock, from a new file."""
    path = folder / f".{uuid.uuid4().hex}"
    with space_for(path):
        path.touch()
    try:
        return path.stat().st_mtime
    finally:
        path.unlink()


def _seconds(seconds: float) -> str:
    return roughly(round(seconds) * 1_000)


def _beat(lease: Lease, over: threading.Event) -> None:
    while not over.wait(HEARTBEAT_S):  # 4
        try:
            os.utime(lease.file)
        except FileNotFoundError:
            return  # replaced and deleted: the next check finds out
        except OSError:
            continue  # file system unavailable; if it stays so, going stale is correct


def _newest(folder: Path) -> int:
    """Return the newest epoch; 0 if the lock was never taken."""
    if not folder.is_dir():
        return 0
    return max((int(path.name) for path in folder.iterdir() if path.name.isdigit()), default=0)


def _machine() -> str:
    """Return an identifier of the scope in which pids are unique; the host name where the system has none."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return platform.node()


def _born(pid: int) -> str | None:
    """Return when a process was started; None if it is dead or a zombie."""
    if not Path("/proc/self/stat").exists():
        return _answers(pid)
    try:
        # The process name, in parentheses, may contain anything; the state and the other fields follow it.
        state, *facts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if state in "ZX" else facts[18]


def _answers(pid: int) -> str | None:
    """Return "alive" or None, where start times are not available: a reused pid looks alive."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return "alive"


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have an id but no name
        return str(os.getuid())
