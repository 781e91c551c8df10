"""How FRONT reads a log: Spark passes it lines of a listing, and it reads the files they name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from slackwater.base.errors import fault
from slackwater.connectors.chunk import Chunk, conform
from slackwater.connectors.log.listing import ListedFile, file_position, named_offset, shown
from slackwater.connectors.log.reading import read_file

if TYPE_CHECKING:
    from slackwater.connectors.log.source import LogSource


def log_chunks(source: LogSource, batches: Iterator[pa.RecordBatch]) -> Iterator[Chunk]:
    """Yield the records of the files in a listing: Spark reads the listing, FRONT the files."""
    lines = (str(line) for batch in batches for line in batch.column(0).to_pylist())
    files = [ListedFile(**json.loads(line)) for line in lines if line]  # an empty line ends a bounded run
    for file in sorted(files, key=lambda file: (file.partition, file.number)):
        yield from _file_chunks(source, file)


def _file_chunks(source: LogSource, file: ListedFile) -> Iterator[Chunk]:
    path, name = file.place, shown(file.place)
    base, first = file_position(file.number), named_offset(path) or 0
    columns = None if source.schema is None else source.schema.names()
    facts: dict[str, Any] = {"length": file.length, "modified_ms": file.modified_ms}
    for piece in read_file(path, **facts, kind=source.format, columns=columns):
        frame = piece.frame if source.schema is None else conform(piece.frame, source.schema, name)
        if base + piece.first_line + frame.height > file_position(file.number + 1):
            raise fault("LOG_FILE_UNREADABLE", path=name, cause="it has more than 4 billion records")
        yield Chunk(
            frame=frame,
            partition=file.partition,
            file=name,
            first_offset=base + piece.first_line,
            shown_offset=first + piece.first_line,
            source=name,
            ingestion_ms=file.modified_ms,
        )
