"""The files of a log: where they are, which partition they belong to, and where their records stand in it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Final

_POSITION_BITS: Final = 22
"""Room for the lines of one file below its time, when its name is no offset."""

_LAST_OFFSET: Final = 2**63 - 2**40
"""The last that a file may begin with: whatever its length, its last record's offset fits 64 bits."""


@dataclass(frozen=True, kw_only=True)
class LogFile:
    """One complete file of a log, as it was when it was listed."""

    path: str
    partition: str
    length: int
    modified_ms: int


def list_log(root: str | os.PathLike[str]) -> list[LogFile]:
    """Return the files below `root` that Spark's file stream reads, by partition and name.

    Names that begin with `.` (temporary) or `_` (see `strays`) are left out, folders likewise, by
    Spark's own rule. A file that vanishes in between is left out, too.
    """
    files = [
        LogFile(
            path=entry.path,
            partition=partition_of(entry.path, root),
            length=status.st_size,
            modified_ms=modified_ms(status),
        )
        for entry, is_stray in _walk(os.fspath(root), is_stray=False)
        if not is_stray and (status := _status(entry)) is not None
    ]
    return sorted(files, key=lambda file: (file.partition, file.path))


def strays(root: str | os.PathLike[str]) -> list[str]:
    """Return the files below `root` that Spark passes over without a word, to be reported, sorted.

    Those are files whose own name, or a folder's above them, begins with `_`. Names that begin with
    `.` are files still being written, and no strays.
    """
    return sorted(entry.path for entry, is_stray in _walk(os.fspath(root), is_stray=False) if is_stray)


def partition_of(path: str | os.PathLike[str], root: str | os.PathLike[str]) -> str:
    """Return the sub-folder of `root` that `path` is in, with `/` between levels; "" for `root` itself."""
    folder = PurePath(os.path.relpath(os.path.dirname(os.path.abspath(path)), os.path.abspath(root)))  # noqa: PTH100, PTH120
    return "" if folder == PurePath() else folder.as_posix()


def base_offset(path: str | os.PathLike[str], modified_ms: int) -> int:
    """Return the offset of a file's first record in its partition.

    A name made of digits says it (`00000000000000000012.jsonl`), as `slackwater.log_writer` writes it,
    if there is room for the offsets of all its records below 2^63. Any other file gets a position that
    orders it by its time of modification.
    """
    stem = PurePath(path).name.partition(".")[0]
    if stem.isascii() and stem.isdigit() and int(stem) <= _LAST_OFFSET:
        return int(stem)
    return min(modified_ms << _POSITION_BITS, _LAST_OFFSET)


def modified_ms(status: os.stat_result) -> int:
    """Return a file's time of modification as Spark sees it: whole milliseconds since the epoch."""
    return status.st_mtime_ns // 1_000_000


def _walk(folder: str, *, is_stray: bool) -> Iterator[tuple[os.DirEntry[str], bool]]:
    """Yield the files below `folder` that are not temporary, and whether Spark passes over them."""
    if not Path(folder).is_dir():
        return
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.name.startswith(".") or entry.name.endswith("._COPYING_"):
                continue
            below = is_stray or _is_passed_over(entry.name)
            if entry.is_dir():
                yield from _walk(entry.path, is_stray=below)
            elif entry.is_file():
                yield entry, below


def _is_passed_over(name: str) -> bool:
    return name.startswith("_") and "=" not in name and not name.startswith(("_metadata", "_common_metadata"))


def _status(entry: os.DirEntry[str]) -> os.stat_result | None:
    try:
        return entry.stat()
    except FileNotFoundError:
        return None
