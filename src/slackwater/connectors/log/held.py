"""The current content of a log, read without Spark: for tools, not for jobs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

import polars as pl

from slackwater.connectors.chunk import Chunk, conform
from slackwater.connectors.log.listing import LogFile, file_position, list_folder, reading_order, shown
from slackwater.connectors.log.reading import read_file
from slackwater.connectors.log.reports import report_strays
from slackwater.connectors.reading import Held

if TYPE_CHECKING:
    from slackwater.connectors.log.source import LogSource


def held_log(log: LogSource, *, limit: int | None = None) -> Held:
    """Return the records of a log, partition by partition, in the order in which a job reads them."""
    listed = list_folder(log.path)
    report_strays(log.path, [shown(path) for path in listed.strays], set())
    return Held(chunks=_chunks(log, listed.files, limit), files=len(listed.files))


def _chunks(log: LogSource, files: list[LogFile], limit: int | None) -> Iterator[Chunk]:
    """Yield the records of a log, partition by partition, in the order in which a job reads them."""
    in_order = sorted(sorted(files, key=reading_order), key=lambda file: file.partition)
    partitions = {name: list(group) for name, group in groupby(in_order, key=lambda file: file.partition)}
    for group in partitions.values():
        skip = 0
        if limit is not None:
            group, skip = _newest(log, group, max(1, limit // len(partitions)))  # noqa: PLW2901  its newest files only
        for number, file in enumerate(group):
            yield from _file_chunks(log, file, number, skip)
            skip = 0


def _newest(log: LogSource, files: list[LogFile], wanted: int) -> tuple[list[LogFile], int]:
    """Return the files that hold the newest `wanted` records, and the number of records to skip in the first."""
    found = 0
    for place in range(len(files) - 1, -1, -1):
        found += sum(frame.height for _, frame in _frames(log, files[place], columns=[]))
        if found >= wanted:
            return files[place:], found - wanted
    return files, 0


def _file_chunks(log: LogSource, file: LogFile, number: int, skip: int) -> Iterator[Chunk]:
    base = file_position(number)
    columns = None if log.schema is None else log.schema.names()
    for first_line, frame in _frames(log, file, columns=columns):
        passed = min(max(skip - first_line, 0), frame.height)
        rows = frame[passed:] if log.schema is None else conform(frame[passed:], log.schema, shown(file.path))
        if rows.height:
            yield Chunk(
                frame=rows,
                partition=file.partition,
                file=shown(file.path),
                first_offset=base + first_line + passed,
                source=shown(file.path),
                ingestion_ms=file.modified_ms,
            )


def _frames(log: LogSource, file: LogFile, *, columns: list[str] | None) -> Iterator[tuple[int, pl.DataFrame]]:
    pieces = read_file(file.path, length=file.length, modified_ms=file.modified_ms, kind=log.format, columns=columns)
    return ((piece.first_line, piece.frame) for piece in pieces)
