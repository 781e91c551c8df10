"""The files of a batch, as Spark has written them down: one that is gone since, Spark passes over without a word."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from slackwater.errors import fault
from slackwater.plan import Plan
from slackwater.runtime.checkpoint import Checkpoint
from slackwater.sources.log import LogSource
from slackwater.sources.log_listing import modified_ms


def check_files(plan: Plan, checkpoint: Checkpoint, batch: int) -> None:
    """Refuse to run a batch of which a file is gone, or is not the one that Spark has listed."""
    if checkpoint.accepts_changes:
        return
    before, after = checkpoint.source_offsets(batch - 1), checkpoint.source_offsets(batch)
    for number, source in enumerate(plan.sources):
        if not isinstance(source.source, LogSource):
            continue
        with checkpoint.readable(checkpoint.path / "offsets" / str(batch)):
            _offset(after, number)
        log = checkpoint.path / "sources" / str(number)
        with checkpoint.readable(log):
            listed = list(listed_files(log, before, after, number))
        for path, listed_ms in listed:
            if (found := _found(path, listed_ms)) is not None:
                raise fault("BATCH_INPUT_CHANGED", batch=batch, stream=source.name, path=path, found=found)


def listed_files(folder: Path, before: Sequence[str], after: Sequence[str], number: int) -> Iterator[tuple[str, int]]:
    """Yield path and time of the files that a source's log has between two of its offsets."""
    last = _offset(after, number)
    # Without the batch before, the last entry is its own for certain.
    first = _offset(before, number) + 1 if before else last
    for entry in range(first, last + 1):
        found = []
        # From the end: a compaction has every file there ever was, entry by entry.
        for line in reversed(_lines(folder, entry)):
            facts = json.loads(line)
            if facts["batchId"] < entry:
                break
            if facts["batchId"] == entry:
                found.append((unquote(urlsplit(facts["path"]).path), facts["timestamp"]))
        yield from reversed(found)


def _offset(offsets: Sequence[str], number: int) -> int:
    """Return up to which entry of its log a source has come; -1 if it has not begun."""
    return -1 if offsets[number] == "-" else int(json.loads(offsets[number])["logOffset"])


def _lines(folder: Path, entry: int) -> list[str]:
    """Return the lines that an entry of a source's log is among: its own, or those of a compaction."""
    later = sorted(int(path.stem) for path in folder.glob("*.compact") if int(path.stem) >= entry)
    for name in (str(entry), *(f"{number}.compact" for number in later[:1])):
        if (folder / name).exists():
            return (folder / name).read_text().splitlines()[1:]
    return []


def _found(path: str, listed_ms: int) -> str | None:
    """Return what is there instead of the file that was listed, or None."""
    try:
        now_ms = modified_ms(Path(path).stat())
    except FileNotFoundError:
        return "gone"
    return None if now_ms == listed_ms else f"modified at {now_ms} ms, and was at {listed_ms} ms when it was listed"
