"""Writing an append-only log for `sources.log`: readers only ever see complete files.

A file goes through these steps, and a crash between any two of them leaves the log correct:

1. records are collected under a name that starts with a dot, which readers ignore;
2. the file is written out and synced to disk;
3. it gets its final name, the offset of its first record, by a link that never replaces a file;
4. the folder is synced, and only then do the records count as written.
"""

from __future__ import annotations

import errno
import fcntl
import os
import threading
import time
import uuid
from pathlib import Path, PurePosixPath
from typing import IO, Final, Literal, Self

import polars as pl
import pyarrow.parquet as pq

from slackwater.base.durable import flush_folder
from slackwater.base.durations import Duration, duration_ms
from slackwater.base.errors import DefinitionError, refuse
from slackwater.base.folders import given_path
from slackwater.connectors.log.listing import OFFSET_DIGITS, modified_ms
from slackwater.connectors.log.reading import read_file
from slackwater.formats.json_lines import Record, to_line, to_lines

__all__ = ["LogWriter"]

_SUFFIX: Final = {"json": ".jsonl", "parquet": ".parquet"}
_NO_LINKS: Final = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)


class LogWriter:
    """Appends records to a log; any number of threads and processes may write to one log.

    A file is completed when it reaches `roll_bytes`, when it is `roll_after` old, and at `flush` or `close`.
    Records are durable once `flush` or `close` has returned; those of a writer that died before that are not in
    the log at all. Offsets of a partition increase by one per record, across files, writers and restarts.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        format: Literal["json", "parquet"] = "json",  # noqa: A002  the name users expect
        roll_bytes: int = 64 << 20,
        roll_after: Duration | None = "1s",
    ) -> None:
        if format not in _SUFFIX:
            raise _bad_option("format", '"json" or "parquet"', format, "omit it to write JSON lines")
        if isinstance(roll_bytes, bool) or not isinstance(roll_bytes, int) or roll_bytes < 1:
            raise _bad_option("roll_bytes", "a positive integer", roll_bytes, "omit it to use 64 MiB")
        self._folder = given_path(folder)
        self._format = format
        self._roll_bytes = roll_bytes
        self._roll_after_s = None if roll_after is None else duration_ms(roll_after, what="roll_after") / 1000
        self._lock = threading.RLock()
        self._partitions: dict[str, _Partition] = {}
        self._failure: BaseException | None = None
        self._is_closed = False
        self._folder.mkdir(parents=True, exist_ok=True)

    def append(self, record: Record, partition: str = "0") -> None:
        """Append one record: a mapping, or a line as string or bytes (JSON lines only), written unchanged."""
        if self._format == "json":
            self._add(partition, to_line(record), 1)
        elif isinstance(record, str | bytes):
            raise refuse(
                "LOG_RECORD",
                rule="a Parquet log takes mappings and frames",
                got=f"got {type(record).__name__}",
                remedy='use format="json" for lines',
            )
        else:
            self.append_frame(pl.DataFrame([dict(record)]), partition)

    def append_frame(self, frame: pl.DataFrame, partition: str = "0") -> None:
        """Append the rows of a frame; they stay together in one file."""
        if frame.height:
            self._add(partition, to_lines(frame) if self._format == "json" else frame, frame.height)

    def flush(self) -> None:
        """Complete all open files; all records appended so far are then durable."""
        with self._lock:
            for part in self._partitions.values():
                part.publish()
            self._raise_failure()

    def close(self) -> None:
        """Complete all open files; no more records can be appended."""
        with self._lock:
            self._is_closed = True
            self.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _add(self, partition: str, content: bytes | pl.DataFrame, rows: int) -> None:
        with self._lock:
            self._raise_failure()
            if self._is_closed:
                raise refuse(
                    "LOG_RECORD",
                    rule="a closed log writer takes no records",
                    got=f"got {rows} more",
                    remedy="open a new one; it continues at the right offset",
                )
            if partition not in self._partitions:
                _check_partition(partition)
                self._partitions[partition] = _Partition(self._folder / partition, self._format)
            part = self._partitions[partition]
            is_first = part.rows == 0
            part.add(content, rows)
            if part.size >= self._roll_bytes:
                part.publish()
            elif is_first and self._roll_after_s is not None:
                timer = threading.Timer(self._roll_after_s, self._expire, (part, part.published))
                timer.daemon = True
                timer.start()

    def _expire(self, part: _Partition, published: int) -> None:
        with self._lock:
            if part.published != published:
                return  # the file is already complete
            try:
                part.publish()
            except BaseException as error:  # noqa: BLE001  raised by the next call
                self._failure = error

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure


class _Partition:
    """One folder of a log, and the file being collected for it."""

    def __init__(self, folder: Path, kind: Literal["json", "parquet"]) -> None:
        self.folder = folder
        self.kind: Literal["json", "parquet"] = kind
        self.rows = self.size = self.published = 0
        self._file: IO[bytes] | None = None
        self._frames: list[pl.DataFrame] = []
        folder.mkdir(parents=True, exist_ok=True)
        flush_folder(folder.parent)
        _remove_leftovers(folder, _SUFFIX[kind])
        self._next, self._last_ms = self._position()

    def add(self, content: bytes | pl.DataFrame, rows: int) -> None:
        if self._file is None:
            self._file = _open_temporary(self.folder, _SUFFIX[self.kind])
        if isinstance(content, bytes):
            self._file.write(content)
            self.size += len(content)
        else:
            self._frames.append(content)
            self.size += int(content.estimated_size())
        self.rows += rows

    def publish(self) -> None:
        """Give the collected records their final name; do nothing if there are none."""
        file, rows, frames = self._file, self.rows, self._frames
        if file is None:
            return
        self._file, self.rows, self.size, self._frames = None, 0, 0, []
        self.published += 1
        temporary = Path(file.name)
        try:
            with file:
                if frames:
                    pl.concat(frames, how="diagonal_relaxed").write_parquet(file)
                file.flush()
                self._stamp(temporary)
                os.fsync(file.fileno())
                self._link(temporary)
        finally:
            temporary.unlink(missing_ok=True)
        flush_folder(self.folder)
        self._next += rows

    def _stamp(self, temporary: Path) -> None:
        # Spark takes files by modification time, in milliseconds: it must be unique within a partition.
        self._last_ms = max(time.time_ns() // 1_000_000, self._last_ms + 1)
        os.utime(temporary, ns=(self._last_ms * 1_000_000, self._last_ms * 1_000_000))

    def _link(self, temporary: Path) -> None:
        while True:
            try:
                _name(temporary, self.folder / f"{self._next:0{OFFSET_DIGITS}}{_SUFFIX[self.kind]}")
            except FileExistsError:
                # Another writer was faster and took the name: continue after its files.
                self._next, last_ms = self._position()
                self._last_ms = max(self._last_ms, last_ms)
                self._stamp(temporary)
            else:
                return

    def _position(self) -> tuple[int, int]:
        """Return the next offset, and the latest modification time in the folder."""
        named = [path for path in self.folder.iterdir() if path.name[:1] not in {".", "_"} and path.is_file()]
        last_ms = max((modified_ms(path.stat()) for path in named), default=0)
        offsets = {int(path.name.partition(".")[0]): path for path in named if _is_offset(path)}
        if not offsets:
            return 0, last_ms
        last = max(offsets)
        return last + _count_records(offsets[last]), last_ms


def _name(temporary: Path, final: Path) -> None:
    """Give a file its final name, atomically and never over another file."""
    try:
        os.link(temporary, final)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # A file system without links: a rename is as atomic, but safe only against files that are already visible.
        if final.exists():
            raise FileExistsError from error
        temporary.rename(final)


def _is_offset(path: Path) -> bool:
    stem = path.name.partition(".")[0]
    return stem.isascii() and stem.isdigit()


def _count_records(path: Path) -> int:
    if path.suffix == ".parquet":
        return int(pq.read_metadata(path).num_rows)
    status = path.stat()
    chunks = read_file(str(path), length=status.st_size, modified_ms=modified_ms(status), kind="json")
    return sum(chunk.frame.height for chunk in chunks)


def _open_temporary(folder: Path, suffix: str) -> IO[bytes]:
    """Open a new file under a temporary name, locked for as long as its writer lives."""
    while True:
        file = (folder / f".{uuid.uuid4().hex}{suffix}.tmp").open("xb")
        fcntl.flock(file, fcntl.LOCK_EX)
        if Path(file.name).exists():
            return file
        file.close()  # a writer that just started took it for a leftover


def _remove_leftovers(folder: Path, suffix: str) -> None:
    """Remove the temporary files of dead writers; those of a live one are locked."""
    for path in folder.glob(f".*{suffix}.tmp"):
        try:
            with path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
        except (BlockingIOError, FileNotFoundError):
            continue


def _check_partition(partition: str) -> None:
    """Reject a name that would lead out of the log, or that Spark would ignore."""
    levels = PurePosixPath(partition).parts
    if partition.startswith("/") or any(level.startswith((".", "_")) for level in levels) or "\x00" in partition:
        rule = "the name of a subfolder that does not start with `.` or `_`"
        raise _bad_option("partition", rule, partition, 'use for example "0" or "eu/3"; "" is the folder itself')


def _bad_option(what: str, rule: str, got: object, remedy: str) -> DefinitionError:
    return refuse("LOG_WRITER_OPTION", what=what, rule=rule, got=repr(got), remedy=remedy)
