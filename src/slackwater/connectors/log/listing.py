"""The files of a log: their location, their partition, and the order in which they are read."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Final

import polars as pl

from slackwater.base.errors import counted, fault
from slackwater.base.times import render_time

_LAST_OFFSET: Final = 2**63 - 2**40
"""The largest offset a file may start at, so that the offset of its last record fits in 64 bits."""
OFFSET_DIGITS: Final = 20
"""The number of digits of an offset in a file's name."""

_RECORD_BITS: Final = 32
"""Bits for the records of one file."""

_DIGITS: Final = re.compile(r"([0-9]+)")

Natural = tuple[list[str | int], str]
"""A sort key for names: runs of digits compare as numbers."""


@dataclass(frozen=True, kw_only=True)
class LogFile:
    """One complete file of a log, as it was when listed."""

    path: str
    partition: str
    length: int
    modified_ms: int


@dataclass(frozen=True, kw_only=True)
class ListedFile:
    """A file in a listing, as text that every machine reads the same way."""

    path: str
    """As UTF-8; invalid bytes are lone surrogates."""
    partition: str
    number: int
    """Its index among the files of its partition, in reading order."""
    length: int
    modified_ms: int
    listing: int

    @property
    def place(self) -> str:
        """The path in this process's encoding."""
        return place_of(self.path)


@dataclass(kw_only=True)
class Listing:
    """The content of a log's folder: its files, by partition and name, and those that are never read."""

    files: list[LogFile] = field(default_factory=list)
    strays: list[str] = field(default_factory=list)
    """Files that start with `_` or are below such a folder, and broken links; sorted."""
    doubtful: list[str] = field(default_factory=list)
    """Files that may have been read before, as far as that is still known."""


def list_folder(root: str | os.PathLike[str]) -> Listing:
    """Return the content of a log's folder.

    Names that start with `.` are still being written; they are skipped, and so is a file that disappears meanwhile.
    A link that leads back into the log is an error: its records would be read twice, or forever.
    """
    found, real = Listing(), os.path.realpath(root)
    for entry, partition, is_stray in _walk(_Folder(path=os.fspath(root), partition="", real=real, entered=(real,))):
        if is_stray:
            found.strays.append(entry.path)
        elif (status := _status(entry)) is not None:
            found.files.append(
                LogFile(
                    path=entry.path,
                    partition=partition,
                    length=status.st_size,
                    modified_ms=modified_ms(status),
                )
            )
    found.files.sort(key=lambda file: (file.partition, natural(PurePath(file.path).name)))
    found.strays.sort()
    return found


def list_log(root: str | os.PathLike[str]) -> list[LogFile]:
    """Return the files below `root` that are read, sorted by partition and name."""
    return list_folder(root).files


def strays(root: str | os.PathLike[str]) -> list[str]:
    """Return the files below `root` that are never read, sorted, for reporting."""
    return list_folder(root).strays


def reading_order(file: LogFile) -> tuple[int, Natural, Natural]:
    """Return the sort key for reading files: modification time, then partition and name."""
    return file.modified_ms, natural(file.partition), natural(PurePath(file.path).name)


def natural(name: str) -> Natural:
    """Return the sort key for a name: digits compare as numbers, so that `2.jsonl` comes before `10.jsonl`."""
    return [int(part) if place % 2 else part for place, part in enumerate(_DIGITS.split(name))], name


def place_of(path: str) -> str:
    """Return the path of a listed file in this process's encoding."""
    return os.fsdecode(path.encode("utf-8", "surrogateescape"))


def shown(path: str) -> str:
    """Return a path, or a part of one, as printable and storable text, whatever its bytes."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def named_offset(path: str | os.PathLike[str]) -> int | None:
    """Return the offset of a file's first record in its partition, if its name states it.

    A name of 20 digits does (`00000000000000000012.jsonl`, as written by `LogWriter`), if the offsets of all its
    records fit below 2^63. One of fewer digits may be a date.
    """
    stem = PurePath(path).name.partition(".")[0]
    is_offset = len(stem) == OFFSET_DIGITS and stem.isascii() and stem.isdigit()
    return int(stem) if is_offset and int(stem) <= _LAST_OFFSET else None


def file_position(number: int) -> int:
    """Return the position of a file's first record in its partition, given the file's index."""
    return number << _RECORD_BITS


def file_and_line(positions: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Return the index of a file in its partition, and a line in it, for each position of a record."""
    return positions // (1 << _RECORD_BITS), positions % (1 << _RECORD_BITS)


def modified_ms(status: os.stat_result) -> int:
    """Return a file's modification time, in whole milliseconds since the epoch."""
    return status.st_mtime_ns // 1_000_000


def file_facts(length: int, time_ms: int) -> str:
    """Return a file's length and modification time, for display."""
    return f"{counted(length, 'byte')}, modified at {render_time(time_ms)}"


def text_path(path: str) -> str:
    """Return a path of any bytes as text."""
    return os.fsencode(path).decode("utf-8", "surrogateescape")


def found_instead(file: ListedFile) -> str | None:
    """Return what is there instead of the listed file; None if it is unchanged."""
    try:
        status = Path(file.place).stat()
    except FileNotFoundError:
        return "gone"
    if (status.st_size, modified_ms(status)) == (file.length, file.modified_ms):
        return None
    now = file_facts(status.st_size, modified_ms(status))
    return f"{now}, and was {file_facts(file.length, file.modified_ms)} when it was listed"


@dataclass(frozen=True, kw_only=True)
class _Folder:
    """A folder visited while walking a log."""

    path: str
    partition: str
    real: str
    """Its path with all links resolved."""
    entered: tuple[str, ...]
    """The real paths of the log and of the links that led here."""
    is_stray: bool = False

    def below(self, entry: os.DirEntry[str]) -> _Folder:
        name, is_stray = shown(entry.name), self.is_stray or is_passed_over(entry.name)
        real, entered = f"{self.real.rstrip('/')}/{entry.name}", self.entered
        if entry.is_symlink():
            real = os.path.realpath(entry.path)
            entered = (*entered, real)
        return _Folder(
            path=entry.path,
            partition=f"{self.partition}/{name}" if self.partition else name,
            real=real,
            entered=entered,
            is_stray=is_stray,
        )


def _walk(folder: _Folder) -> Iterator[tuple[os.DirEntry[str], str, bool]]:
    """Yield the files below `folder` that are not temporary, with their partition and whether they are never read."""
    try:
        with os.scandir(folder.path) as scanned:
            entries = sorted(scanned, key=lambda entry: entry.name)
    except FileNotFoundError:
        return
    for entry in entries:
        if entry.name.startswith(".") or entry.name.endswith("._COPYING_"):
            continue
        leads_nowhere = entry.is_symlink() and not _leads_on(entry.path, folder)
        if not leads_nowhere and entry.is_dir():
            yield from _walk(folder.below(entry))
        elif leads_nowhere or entry.is_file():
            yield entry, folder.partition, leads_nowhere or folder.is_stray or is_passed_over(entry.name)


def _leads_on(link: str, folder: _Folder) -> bool:
    """Return whether a link's target exists; raises if it leads back into the log or to a folder on the way here."""
    try:
        target = os.path.realpath(link, strict=True)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise fault("LOG_LINK", path=shown(link), target=shown(link)) from error
    log = folder.entered[0]
    if _holds(log, target) or any(_holds(target, place) for place in (*folder.entered, folder.real)):
        raise fault("LOG_LINK", path=shown(link), target=shown(target))
    return True


def _holds(folder: str, path: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def is_passed_over(name: str) -> bool:
    """Return whether a file or folder of this name is not part of a log."""
    return name.startswith("_") and "=" not in name and not name.startswith(("_metadata", "_common_metadata"))


def _status(entry: os.DirEntry[str]) -> os.stat_result | None:
    try:
        return entry.stat()
    except FileNotFoundError:
        return None
