"""The files of a batch, as Spark has written them down in the log of a source."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypedDict
from urllib.parse import unquote, urlsplit

from slackwater.ground.durable import write_durably
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


def trim(folder: Path, is_kept: Callable[[str], bool]) -> None:
    """Drop files that are gone from a source's log: it has each there ever was, and writes all of them again.

    Between two batches nothing reads it, and the next compaction begins with what is left.
    """
    path = max(folder.glob("*.compact"), key=lambda path: int(path.stem), default=None)
    if path is None:
        return
    version, *lines = path.read_text().splitlines()
    kept = [line for line in lines if is_kept(json.loads(line)["path"])]
    if len(kept) < len(lines):
        _rewrite(path, [version, *kept])


def adopt(folder: Path, listings: Path) -> None:
    """Point a source's log to `listings`, if the checkpoint was somewhere else when they were made."""
    newest = newest_files(folder)
    if not newest or Path(newest[0]).parents[1] == listings:
        return
    for path in [path for path in folder.iterdir() if path.stem.isdigit()]:
        version, *lines = path.read_text().splitlines()
        entries = [json.loads(line) for line in lines]
        shares = [Path(unquote(urlsplit(entry["path"]).path)) for entry in entries]
        here = [(listings / share.parent.name / share.name).as_uri() for share in shares]
        moved = [json.dumps({**entry, "path": uri}) for entry, uri in zip(entries, here, strict=True)]
        _rewrite(path, [version, *moved])


def _rewrite(path: Path, lines: Sequence[str]) -> None:
    """Write a file of a source's log again, without Hadoop's sum over what it was: then nothing is compared."""
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    write_durably(path, "\n".join(lines))


def _lines(folder: Path, entry: int) -> list[str]:
    """Return the lines that an entry of a source's log is among: its own, or those of a compaction."""
    later = sorted(int(path.stem) for path in folder.glob("*.compact") if int(path.stem) >= entry)
    for name in (str(entry), *(f"{number}.compact" for number in later[:1])):
        if (folder / name).exists():
            return (folder / name).read_text().splitlines()[1:]
    return []
