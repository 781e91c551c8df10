"""The history of a job: the records of its batches, in `<checkpoint>/slackwater/history/`.

Records are lines of JSON in segments `<level>-<first batch>.jsonl`. Level 0 has every batch in full. Each higher level
has one record for ten of the level below, without histograms and partitions:

1. A record is appended to the newest segment of level 0, which ends at 250 lines or a megabyte.
2. A level with more than seven segments moves its oldest to the level above: ten records of one run become one. Each
   appended record moves ten, so that no batch pays for a whole segment.
3. The segment is deleted once the level above has its records. A crash in between leaves both; readers use the finer
   one, and the writer moves only records that are missing above.
4. The oldest segment of the last level is deleted.

The history therefore never has more than 48 segments, whatever the number of batches. Nothing is flushed to disk: a
power failure may cost the last lines, and a line that cannot be read is skipped.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final

from slackwater.base.errors import SlackwaterWarning, cause_of, render
from slackwater.observe.metrics.merging import merged
from slackwater.observe.metrics.record import BatchRecord

LEVELS: Final = 6
MOST_SEGMENTS: Final = 7
SEGMENT_LINES: Final = 250
SEGMENT_BYTES: Final = 1_000_000
TOGETHER: Final = 10
_MOST_PARSED: Final = 4 * LEVELS * MOST_SEGMENTS
_parsed: Final[dict[Path, tuple[tuple[int, int], tuple[BatchRecord, ...]]]] = {}
"""Parsed segments, with their size and modification time when read, so that unchanged ones are read once."""


class MetricsWarning(SlackwaterWarning):
    """The figures of a job cannot be written or read back."""


def warn_unwritten(path: Path, error: OSError) -> None:
    """Warn that records are lost because `path` cannot be written."""
    words = render("METRICS_UNWRITTEN", path=path, cause=cause_of(error))
    warnings.warn(f"[METRICS_UNWRITTEN] {words}", MetricsWarning, stacklevel=3)


def history_folder(checkpoint: Path) -> Path:
    """Return the folder of a checkpoint's history."""
    return checkpoint / "slackwater" / "history"


@dataclass(kw_only=True)
class _Segment:
    """The segment of a level that is being written."""

    file: BinaryIO
    lines: int
    size: int

    @classmethod
    def open(cls, path: Path) -> _Segment:
        """Open a segment to append to; a line that a crash left incomplete is ended."""
        held = path.read_bytes() if path.exists() else b""
        file = path.open("ab", buffering=0)
        if held and not held.endswith(b"\n"):
            file.write(b"\n")
        return cls(file=file, lines=held.count(b"\n"), size=len(held))

    @property
    def is_full(self) -> bool:
        return self.lines >= SEGMENT_LINES or self.size >= SEGMENT_BYTES

    def append(self, line: bytes) -> None:
        self.file.write(line)
        self.lines += 1
        self.size += len(line)


@dataclass(kw_only=True)
class _Rising:
    """A segment that is being moved to the level above."""

    path: Path
    lines: list[bytes]
    """The lines still to be moved, the oldest last."""

    @classmethod
    def open(cls, path: Path) -> _Rising:
        return cls(path=path, lines=_lines(path)[::-1])

    def taken(self, after: int) -> list[BatchRecord]:
        """Return the next records of one run, ten at most, without batches up to `after`; empty at the end."""
        found: list[BatchRecord] = []
        while self.lines:
            record = _record(self.lines[-1], in_full=False)
            if record is None or record.batch <= after:
                self.lines.pop()
                continue
            if found and record.batch <= found[-1].batch:  # the batch was replayed
                found = [each for each in found if each.batch < record.batch]
            if found and (record.run != found[0].run or len(found) == TOGETHER):
                break
            found.append(record)
            self.lines.pop()
        return found


@dataclass(kw_only=True)
class History:
    """Writes the history of one checkpoint, whose lock the job holds; an error loses records and is warned of once."""

    folder: Path
    _open: dict[int, _Segment] = field(default_factory=dict)
    _rising: dict[int, _Rising] = field(default_factory=dict)
    """By level, the segment that is being moved up."""
    _reached: dict[int, int] = field(default_factory=dict)
    """The last batch of each level above the first, once it has been read."""
    _is_warned: bool = False

    def append(self, record: BatchRecord) -> None:
        """Add the record of a batch."""
        try:
            self._append(0, record)
        except OSError as error:
            self.close()
            if not self._is_warned:
                self._is_warned = True
                warn_unwritten(self.folder, error)

    def _append(self, level: int, record: BatchRecord) -> None:
        segment = self._open.get(level)
        if segment is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            newest = segments(self.folder, level)[-1:]
            segment = self._open[level] = _Segment.open(*newest or [self._path(level, record)])
        if segment.is_full:
            segment.file.close()
            segment = self._open[level] = _Segment.open(self._path(level, record))
            self._shorten(level)
        segment.append(record.to_line().encode() + b"\n")  # 1
        if level in self._rising:
            self._hand_on(level)

    def _shorten(self, level: int) -> None:
        """Begin to move up the oldest segment of a level, after any left over by a crash or by large records."""
        self._finish(level)
        for path in segments(self.folder, level)[:-MOST_SEGMENTS]:
            self._finish(level)
            if level + 1 < LEVELS:
                self._rising[level] = _Rising.open(path)
            else:
                path.unlink(missing_ok=True)  # 4

    def _finish(self, level: int) -> None:
        while level in self._rising:
            self._hand_on(level)

    def _hand_on(self, level: int) -> None:
        """Merge ten records into the level above, unless that was done before a crash; finally delete the segment."""
        rising, above = self._rising[level], level + 1
        if above not in self._reached:
            last = segments(self.folder, above)[-2:]
            self._reached[above] = max((record.batch for path in last for record in _read(path)), default=-1)
        if records := rising.taken(after=self._reached[above]):
            self._append(above, merged(records))  # 2
            self._reached[above] = records[-1].batch
        if not rising.lines:
            rising.path.unlink(missing_ok=True)  # 3
            del self._rising[level]

    def _path(self, level: int, record: BatchRecord) -> Path:
        return self.folder / f"{level}-{record.first_batch:012d}.jsonl"

    def close(self) -> None:
        """Close the files."""
        for segment in self._open.values():
            with suppress(OSError):
                segment.file.close()
        self._open.clear()
        self._rising.clear()


def read_history(folder: Path, *, last: int | None = None) -> list[BatchRecord]:
    """Return the records in `folder`, oldest first; or only the `last` ones, all in full.

    A job may be writing at the same time, or be dead. A replayed batch is returned once.
    """
    found: list[BatchRecord] = []
    for level in range(LEVELS):
        until = found[0].first_batch if found else None
        of_level: list[BatchRecord] = []
        for path in reversed(segments(folder, level)):
            of_level[:0] = records_of(path)
            if last is not None and len(of_level) >= last:
                break
        found[:0] = [record for record in _once(of_level) if until is None or record.batch < until]
        if last is not None:
            break
    return found if last is None else found[-last:]


def _once(records: list[BatchRecord]) -> list[BatchRecord]:
    """Return each batch once, with its last record."""
    return [record for _, record in sorted({record.batch: record for record in records}.items())]


def segments(folder: Path, level: int) -> list[Path]:
    """Return the files of a level, oldest first."""
    return sorted(folder.glob(f"{level}-*.jsonl"))


def records_of(path: Path) -> tuple[BatchRecord, ...]:
    """Return the records of a segment, which is read again only if it has changed.

    A segment that was just moved up, or that cannot be read, has no records: `history_loss` distinguishes the two.
    """
    known = _parsed.pop(path, None)
    try:
        facts = path.stat()
        version = facts.st_size, facts.st_mtime_ns
        if known is None or known[0] != version:
            known = version, tuple(_read(path))
    except OSError:
        return ()
    _parsed[path] = known
    while len(_parsed) > _MOST_PARSED:
        _parsed.pop(next(iter(_parsed)), None)
    return known[1]


def _read(path: Path) -> Iterator[BatchRecord]:
    """Yield the records of a segment."""
    for line in _lines(path):
        if (record := _record(line)) is not None:
            yield record


def _lines(path: Path) -> list[bytes]:
    try:
        return path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []  # moved up just now


def _record(line: bytes, *, in_full: bool = True) -> BatchRecord | None:
    """Return the record of a line, without `in_full` only the parts that merging keeps; None if it is damaged."""
    with suppress(ValueError, AttributeError):
        facts: Any = json.loads(line)
        for stream in () if in_full else facts.get("streams", {}).values():
            stream.pop("ages", None)
            stream.pop("partitions", None)
        return BatchRecord.from_json(facts)
    return None
