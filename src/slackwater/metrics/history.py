"""The history of a job: the records of its batches, in `<checkpoint>/slackwater/history/`.

Lines of JSON in segments `<level>-<first batch>.jsonl`. Level 0 has every batch in full. Each level above has one
record for ten of the level below, without histograms and partitions:

1. A record is appended to the newest segment of level 0, which ends at 250 lines or a megabyte.
2. A level with more than seven segments hands its oldest to the level above: ten records of one run become one.
3. The segment is deleted once the level above has its records. A crash in between leaves both; the finer one counts,
   and the writer deletes it without handing it on again.
4. The oldest segment of the last level is deleted.

So the history never has more than 48 segments, whatever the number of batches. Nothing is flushed to the disk: a power
cut may cost the last lines, and a line that cannot be read is passed over.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import BinaryIO, Final

from slackwater.errors import SlackwaterWarning, cause_of, render
from slackwater.metrics.merging import merged
from slackwater.metrics.record import BatchRecord

LEVELS: Final = 6
MOST_SEGMENTS: Final = 7
SEGMENT_LINES: Final = 250
SEGMENT_BYTES: Final = 1_000_000
TOGETHER: Final = 10


class MetricsWarning(SlackwaterWarning):
    """The figures of a job cannot be written."""


def warn_unwritten(path: Path, error: OSError) -> None:
    """Warn that records are lost because `path` cannot be written."""
    words = render("METRICS_UNWRITTEN", path=path, cause=cause_of(error))
    warnings.warn(f"[METRICS_UNWRITTEN] {words}", MetricsWarning, stacklevel=3)


def history_folder(checkpoint: Path) -> Path:
    """Return where the history of a checkpoint is."""
    return checkpoint / "slackwater" / "history"


@dataclass(kw_only=True)
class _Segment:
    """The segment of a level that is written to."""

    file: BinaryIO
    lines: int
    size: int

    @classmethod
    def open(cls, path: Path) -> _Segment:
        """Open a segment to go on with; what a crash has left of its last line is ended."""
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
class History:
    """Writes the history of one checkpoint, whose lock the job holds; trouble is warned of once, and costs records."""

    folder: Path
    _open: dict[int, _Segment] = field(default_factory=dict)
    _reached: dict[int, int] = field(default_factory=dict)
    """The last batch that each level above the first has, once it was looked for."""
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
            newest = _segments(self.folder, level)[-1:]
            segment = self._open[level] = _Segment.open(*newest or [self._path(level, record)])
        if segment.is_full:
            segment.file.close()
            segment = self._open[level] = _Segment.open(self._path(level, record))
            self._shorten(level)
        segment.append(record.to_line().encode() + b"\n")  # 1

    def _shorten(self, level: int) -> None:
        for path in _segments(self.folder, level)[:-MOST_SEGMENTS]:
            if level + 1 < LEVELS:
                self._hand_on(level + 1, list(_read(path, in_full=False)))  # 2
            path.unlink(missing_ok=True)  # 3, 4

    def _hand_on(self, level: int, records: list[BatchRecord]) -> None:
        """Put records into a level, unless a crash came after that was done."""
        if level not in self._reached:
            above = _segments(self.folder, level)[-2:]
            self._reached[level] = max((record.batch for path in above for record in _read(path)), default=-1)
        fresh = _once([record for record in records if record.batch > self._reached[level]])
        for _, run in groupby(fresh, key=lambda record: record.run):
            of_run = list(run)
            for start in range(0, len(of_run), TOGETHER):
                self._append(level, merged(of_run[start : start + TOGETHER]))
        self._reached[level] = max([self._reached[level], *(record.batch for record in fresh)])

    def _path(self, level: int, record: BatchRecord) -> Path:
        return self.folder / f"{level}-{record.first_batch:012d}.jsonl"

    def close(self) -> None:
        """Close the files."""
        for segment in self._open.values():
            with suppress(OSError):
                segment.file.close()
        self._open.clear()


def read_history(folder: Path, *, last: int | None = None) -> list[BatchRecord]:
    """Return the records in `folder`, oldest first; or only the `last` ones, all of them in full.

    A job may be writing meanwhile, or be dead. A batch that was run again is there once.
    """
    found: list[BatchRecord] = []
    for level in range(LEVELS):
        until = found[0].first_batch if found else None
        of_level: list[BatchRecord] = []
        for path in reversed(_segments(folder, level)):
            of_level[:0] = _known(path)
            if last is not None and len(of_level) >= last:
                break
        found[:0] = [record for record in _once(of_level) if until is None or record.batch < until]
        if last is not None:
            break
    return found if last is None else found[-last:]


def _once(records: list[BatchRecord]) -> list[BatchRecord]:
    """Return each batch once, as it was written last."""
    return [record for _, record in sorted({record.batch: record for record in records}.items())]


def _segments(folder: Path, level: int) -> list[Path]:
    return sorted(folder.glob(f"{level}-*.jsonl"))


def _known(path: Path) -> tuple[BatchRecord, ...]:
    """Return the records of a segment, which is read again only if it has changed."""
    try:
        facts = path.stat()
    except FileNotFoundError:
        return ()
    return _parsed(path, facts.st_size, facts.st_mtime_ns)


@lru_cache(maxsize=4 * LEVELS * MOST_SEGMENTS)
def _parsed(path: Path, _size: int, _changed_ns: int) -> tuple[BatchRecord, ...]:
    return tuple(_read(path))


def _read(path: Path, *, in_full: bool = True) -> Iterator[BatchRecord]:
    """Yield the records of a segment; or only what is left of them when they are put together."""
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return  # handed on in this moment
    for line in lines:
        with suppress(ValueError, AttributeError):
            facts = json.loads(line)
            for stream in () if in_full else facts.get("streams", {}).values():
                stream.pop("ages", None)
                stream.pop("partitions", None)
            yield BatchRecord.from_json(facts)
