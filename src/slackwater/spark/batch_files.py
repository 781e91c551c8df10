"""The files of a batch, as Spark has written them down in the log of a source."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypedDict
from urllib.parse import unquote, urlsplit

from slackwater.ground.stored import DamageError, shaped


class _LogOffset(TypedDict):
    logOffset: int


class _Listed(TypedDict):
    path: str
    timestamp: int
    batchId: int


def listed_files(folder: Path, before: Sequence[str], after: Sequence[str], number: int) -> Iterator[tuple[str, int]]:
    """Yield path and time of the files that a source's log has between two of its offsets."""
    last = entry_of(after, number)
    # Without the batch before, the last entry is its own for certain.
    first = entry_of(before, number) + 1 if before else last
    for entry in range(first, last + 1):
        found = []
        # From the end: a compaction has every file there ever was, entry by entry.
        for line in reversed(_lines(folder, entry)):
            facts = shaped(json.loads(line), _Listed)
            if facts["batchId"] < entry:
                break
            if facts["batchId"] == entry:
                found.append((unquote(urlsplit(facts["path"]).path), facts["timestamp"]))
        yield from reversed(found)


def newest_files(folder: Path) -> list[str]:
    """Return the files of the newest entry of a source's log; none if it has none."""
    entries = [int(path.stem) for path in folder.iterdir() if path.stem.isdigit()] if folder.is_dir() else []
    if not entries:
        return []
    newest = max(entries)
    return [path for path, _ in listed_files(folder, [], [json.dumps({"logOffset": newest})], 0)]


def entry_of(offsets: Sequence[str], number: int) -> int:
    """Return up to which entry of its log a source has come; -1 if it has not begun."""
    if number >= len(offsets):
        raise DamageError(f"it ends before the line of source {number + 1}")
    if offsets[number] == "-":
        return -1
    found: _LogOffset = shaped(json.loads(offsets[number]), _LogOffset)
    return found["logOffset"]


def _lines(folder: Path, entry: int) -> list[str]:
    """Return the lines that an entry of a source's log is among: its own, or those of a compaction."""
    later = sorted(int(path.stem) for path in folder.glob("*.compact") if int(path.stem) >= entry)
    for name in (str(entry), *(f"{number}.compact" for number in later[:1])):
        if (folder / name).exists():
            return (folder / name).read_text().splitlines()[1:]
    return []
