"""The files of a batch, as Spark records them in a source's log."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypedDict
from urllib.parse import unquote, urlsplit

from slackwater.base.durable import write_durably
from slackwater.base.stored import DamageError, shaped


class _LogOffset(TypedDict):
    logOffset: int


class _Listed(TypedDict):
    path: str
    timestamp: int
    batchId: int


def listed_files(folder: Path, before: Sequence[str], after: Sequence[str], number: int) -> Iterator[tuple[str, int]]:
    """Yield the path and time of the files in a source's log between two of its offsets."""
    last = entry_of(after, number)
    # Without the previous batch, only the last entry is certain to be its own.
    first = entry_of(before, number) + 1 if before else last
    for entry in range(max(0, first), last + 1):  # before the first listing, the offset is -1
        found = []
        # From the end: a compacted log contains every file ever listed, entry by entry.
        for line in reversed(_lines(folder, entry)):
            facts = shaped(json.loads(line), _Listed)
            if facts["batchId"] < entry:
                break
            if facts["batchId"] == entry:
                found.append((unquote(urlsplit(facts["path"]).path), facts["timestamp"]))
        if not found:
            raise DamageError(f"entry {entry} names no files")
        yield from reversed(found)


def newest_files(folder: Path) -> list[str]:
    """Return the files of the newest entry in a source's log; empty if it has none."""
    newest = max(_entries(folder), default=None)
    if newest is None:
        return []
    return [path for path, _ in listed_files(folder, [], [json.dumps({"logOffset": newest})], 0)]


def missing_entry(folder: Path, last: int) -> Path | None:
    """Return the first entry that a source's log lacks, of those that Spark reads up to `last`; None if it has all.

    Spark reads the newest compaction, which contains all entries before it, and every entry after it.
    """
    compacted = max((int(path.stem) for path in folder.glob("*.compact")), default=-1)
    needed = range(compacted + 1, max([last, *_entries(folder)]) + 1)
    return next((folder / str(entry) for entry in needed if not (folder / str(entry)).exists()), None)


def _entries(folder: Path) -> list[int]:
    return [int(path.stem) for path in folder.iterdir() if path.stem.isdigit()] if folder.is_dir() else []


def entry_of(offsets: Sequence[str], number: int) -> int:
    """Return the entry of its log that a source has reached; -1 if it has not started."""
    if number >= len(offsets):
        raise DamageError(f"it ends before the line of source {number + 1}")
    if offsets[number] == "-":
        return -1
    found: _LogOffset = shaped(json.loads(offsets[number]), _LogOffset)
    return found["logOffset"]


def trim(folder: Path, is_kept: Callable[[str], bool]) -> None:
    """Remove deleted files from a source's log, which keeps every file ever listed and rewrites them all.

    Nothing reads it between batches, and the next compaction starts from what remains.
    """
    path = max(folder.glob("*.compact"), key=lambda path: int(path.stem), default=None)
    if path is None:
        return
    version, *lines = path.read_text().splitlines()
    kept = [line for line in lines if is_kept(json.loads(line)["path"])]
    if len(kept) < len(lines):
        _rewrite(path, [version, *kept])


def adopt(folder: Path, listings: Path) -> None:
    """Point a source's log to `listings`, if the checkpoint has been moved since they were created."""
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
    """Rewrite a file of a source's log, and delete Hadoop's checksum of it: without one, nothing is verified."""
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    write_durably(path, "\n".join(lines))


def _lines(folder: Path, entry: int) -> list[str]:
    """Return the lines that contain an entry of a source's log: its own file's, or those of a compaction."""
    later = sorted(int(path.stem) for path in folder.glob("*.compact") if int(path.stem) >= entry)
    for name in (str(entry), *(f"{number}.compact" for number in later[:1])):
        if (folder / name).exists():
            return (folder / name).read_text().splitlines()[1:]
    return []
