"""The offsets of a batch's files, as dead letters show them; for the status of a batch that fails."""

from __future__ import annotations

from collections.abc import Iterable

from slackwater.connectors.intake import ReadOffsets
from slackwater.connectors.log.listing import ListedFile, named_offset
from slackwater.connectors.log.reading import LogFormat, read_file


def offsets_of(files: Iterable[ListedFile], kind: LogFormat) -> dict[str, ReadOffsets]:
    """Return the first and the last offset in each partition; reads the files, to count their records."""
    found: dict[str, ReadOffsets] = {}
    for file in files:
        facts = {"length": file.length, "modified_ms": file.modified_ms}
        records = sum(piece.frame.height for piece in read_file(file.place, **facts, kind=kind, columns=[]))
        first = named_offset(file.place) or 0
        if records:
            known = found.get(file.partition, (first, first))
            found[file.partition] = (min(known[0], first), max(known[1] or 0, first + records - 1))
    return found
