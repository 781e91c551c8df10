"""Reading one file of a log, in chunks of bounded size.

JSON lines become a column `__payload` of their bytes, one row per line, whatever the bytes; decoding them is left to
the decoder. Parquet and Avro files become typed columns.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader
from typing import Final, Literal

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from slackwater.base.errors import RunError, render
from slackwater.connectors.log.listing import (
    LogFile,
    file_facts,
    list_log,
    modified_ms,
    shown,
    strays,
)
from slackwater.formats.schemas import normal_type
from slackwater.formats.slices import places, views

__all__ = [
    "Lines",
    "LogFile",
    "LogFileError",
    "LogFormat",
    "avro_columns",
    "list_log",
    "read_file",
    "strays",
]

CHUNK_BYTES: Final = 30 << 20
"""With the rest of the previous line, a block stays below the size above which a worker returns memory each time."""
MAX_RECORD_BYTES: Final = 64 << 20
"""A longer line is truncated; every decoder rejects it as too long anyway."""

_MAX_ROWS: Final = 1 << 20
_COMPRESSION: Final[dict[str, Literal["gzip", "zstd"]]] = {".gz": "gzip", ".zst": "zstd"}
_NEWLINE, _RETURN = 10, 13
_WINDOW: Final = 1 << 16

Bytes = NDArray[np.uint8]
LogFormat = Literal["json", "parquet", "avro"]


class LogFileError(RunError):
    """A file of a log cannot be read, or is not the file that was listed."""


@dataclass(frozen=True, kw_only=True)
class Lines:
    """Consecutive records of a file; `first_line` is the number of records before them.

    If a line was truncated, the column `__size` holds its size in the file.
    """

    frame: pl.DataFrame
    first_line: int


def read_file(
    path: str,
    *,
    length: int,
    modified_ms: int,
    kind: LogFormat,
    chunk_bytes: int = CHUNK_BYTES,
    columns: list[str] | None = None,
) -> Iterator[Lines]:
    """Yield a file's records in order, about `chunk_bytes` at a time.

    `length` and `modified_ms` are from the listing; a file that has changed since is an error, because a replay of the
    batch would read different records. `columns` narrows typed files; a column missing from the file is left out.
    JSON lines may be compressed (`.gz`, `.zst`).
    """
    try:
        with open(path, "rb") as file:  # noqa: PTH123  the path stays the listed string
            _check_unchanged(path, os.fstat(file.fileno()), length, modified_ms)
            if kind == "json":
                yield from _read_lines(file, path, chunk_bytes)
            elif kind == "parquet":
                yield from _read_parquet(file, path, chunk_bytes, columns)
            else:
                yield from _read_avro(path, chunk_bytes, columns)
        _check_unchanged(path, os.stat(path), length, modified_ms)  # noqa: PTH116  a path of any bytes, as text
    except FileNotFoundError as error:
        listed, found = file_facts(length, modified_ms), "no such file"
        raise _fault("LOG_FILE_CHANGED", path=path, listed=listed, found=found) from error
    except (OSError, pa.ArrowException, pl.exceptions.PolarsError) as error:
        cause = f"{type(error).__name__}: {str(error).strip() or 'no details'}"[:500]
        raise _fault("LOG_FILE_UNREADABLE", path=path, cause=cause) from error


def _check_unchanged(path: str, status: os.stat_result, length: int, listed_ms: int) -> None:
    found_ms = modified_ms(status)
    if (status.st_size, found_ms) != (length, listed_ms):
        listed, found = file_facts(length, listed_ms), file_facts(status.st_size, found_ms)
        raise _fault("LOG_FILE_CHANGED", path=path, listed=listed, found=found)


def _fault(code: str, *, path: str, **facts: object) -> LogFileError:
    return LogFileError(code, render(code, path=shown(path), **facts))


def _read_lines(file: BufferedReader, path: str, chunk_bytes: int) -> Iterator[Lines]:
    compression = _COMPRESSION.get(os.path.splitext(path)[1])  # noqa: PTH122  a path of any bytes, as text
    stream: BufferedReader | pa.NativeFile = pa.CompressedInputStream(file, compression) if compression else file
    first_line = 0
    for block, cut in _whole_lines(stream, chunk_bytes):
        lines_before = first_line
        for lines in _split(block):
            frame = pl.DataFrame({"__payload": lines})
            if cut and lines_before == first_line:
                size = pl.col("__payload").bin.size().cast(pl.Int64) + cut
                frame = frame.with_columns(pl.when(pl.int_range(pl.len()) == 0).then(size).alias("__size"))
            yield Lines(frame=frame, first_line=first_line)
            first_line += len(lines)


def _whole_lines(stream: BufferedReader | pa.NativeFile, chunk_bytes: int) -> Iterator[tuple[Bytes, int]]:
    """Yield blocks that end with a newline (which is added at the end of the file if missing).

    Each comes with the number of bytes by which its first line was truncated. A byte order mark at the start of the
    file is not part of its first line.
    """
    begin = stream.read(len(codecs.BOM_UTF8))
    rest: Bytes = np.frombuffer(b"" if begin == codecs.BOM_UTF8 else begin, dtype=np.uint8)
    cut, searched = 0, 0
    while True:
        block = np.empty(len(rest) + chunk_bytes, dtype=np.uint8)
        block[: len(rest)] = rest
        count = stream.readinto(block.data[len(rest) :])
        if not count:
            break
        block = block[: len(rest) + count]
        end = _after_last_newline(block, searched)
        if end:
            yield block[:end], cut
            rest, cut = block[end:].copy(), 0
        else:
            # A very long line is truncated, so that memory stays bounded.
            rest = block[: MAX_RECORD_BYTES + 1]
            cut += len(block) - len(rest)
        searched = len(rest)
    if len(rest):
        yield (rest if rest[-1] == _NEWLINE else np.append(rest, np.uint8(_NEWLINE))), cut


def _after_last_newline(block: Bytes, start: int) -> int:
    """Return where the incomplete last line of `block` starts; there is no newline before `start`."""
    stop = len(block)
    while stop > start:
        begin = max(start, stop - _WINDOW)
        found = np.flatnonzero(block[begin:stop] == _NEWLINE)
        if len(found):
            return begin + int(found[-1]) + 1
        stop = begin
    return 0


def _split(block: Bytes) -> Iterator[pl.Series]:
    """Yield the lines of `block`, which ends with a newline; at most `_MAX_ROWS` at a time, without copying bytes."""
    begin = 0
    # The positions of very short lines need far more memory than the lines themselves, so process some at a time.
    for ends in places(block, _NEWLINE, most=_MAX_ROWS):
        yield _lines(block, begin, ends)
        begin = int(ends[-1]) + 1


def _lines(block: Bytes, begin: int, ends: NDArray[np.int64]) -> pl.Series:
    """Return the lines of `block` that end at `ends`; the first starts at `begin`."""
    starts = np.concatenate(([begin], ends[:-1] + 1))
    sizes = ends - starts
    sizes -= (sizes > 0) & (block[ends - 1] == _RETURN)
    return views(block, starts, sizes).alias("__payload")


def _read_parquet(file: BufferedReader, path: str, chunk_bytes: int, columns: list[str] | None) -> Iterator[Lines]:
    with pq.ParquetFile(file) as parquet:
        schema = pl.read_parquet_schema(path)
        wanted = [name for name in schema if columns is None or name in columns] or list(schema)[:1]
        first_line = 0
        for frame in _row_groups(parquet, path, wanted, chunk_bytes):
            normal = {name: normal_type(dtype) for name, dtype in frame.schema.items()}
            yield Lines(frame=_as_utc(frame).cast(normal), first_line=first_line)  # type: ignore[arg-type]  # a schema by name
            first_line += frame.height


def avro_columns(path: str) -> pl.Schema:
    """Return the columns of an Avro file, with normalized types."""
    return pl.Schema({name: normal_type(dtype) for name, dtype in _avro_frame(path, n_rows=1).schema.items()})


def _read_avro(path: str, chunk_bytes: int, columns: list[str] | None) -> Iterator[Lines]:
    # Polars reads a whole file at once; the files of a log are bounded in size.
    frame = _avro_frame(path)
    wanted = [name for name in frame.columns if columns is None or name in columns] or frame.columns[:1]
    frame = _as_utc(frame.select(wanted))
    frame = frame.cast({name: normal_type(dtype) for name, dtype in frame.schema.items()})
    most = max(1, min(_MAX_ROWS, chunk_bytes * max(frame.height, 1) // max(int(frame.estimated_size()), 1)))
    for start in range(0, frame.height, most):
        yield Lines(frame=frame[start : start + most], first_line=start)


def _avro_frame(path: str, n_rows: int | None = None) -> pl.DataFrame:
    try:
        return pl.read_avro(path, n_rows=n_rows)
    except BaseException as error:
        # Polars panics on what it does not support (maps, general unions), and a panic is not an Exception.
        if type(error).__name__ != "PanicException":
            raise
        raise pl.exceptions.ComputeError(str(error)) from error


def _row_groups(parquet: pq.ParquetFile, path: str, columns: list[str], chunk_bytes: int) -> Iterator[pl.DataFrame]:
    """Yield frames of whole row groups, or slices of a row group that is too large for one frame."""
    metadata = parquet.metadata
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    size = sum(group.total_byte_size for group in groups)
    most = max(1, min(_MAX_ROWS, chunk_bytes * max(metadata.num_rows, 1) // max(size, 1)))
    scan = pl.scan_parquet(path, glob=False, hive_partitioning=False).select(columns)
    start = stop = 0
    for index, group in enumerate(groups):
        if stop > start and stop + group.num_rows - start > most:
            yield scan.slice(start, stop - start).collect()
            start = stop
        stop += group.num_rows
        if group.num_rows > most:
            # Polars would decode the whole group again for every slice.
            for batch in parquet.iter_batches(most, row_groups=[index], columns=columns, use_threads=False):
                yield pl.DataFrame(pa.table(batch))
            start = stop
    if stop > start:
        yield scan.slice(start, stop - start).collect()


def _as_utc(frame: pl.DataFrame) -> pl.DataFrame:
    """Return `frame` with naive times taken as UTC (a plain cast would do the same, but warn)."""
    naive = [name for name, dtype in frame.schema.items() if dtype == pl.Datetime and dtype.time_zone is None]  # type: ignore[attr-defined]  # only Datetime has it
    return frame.with_columns(pl.col(naive).dt.replace_time_zone("UTC")) if naive else frame
