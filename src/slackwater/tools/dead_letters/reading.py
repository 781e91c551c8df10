"""Reads dead letters back as frames: everything that a files sink has delivered, or that a topic holds now.

Each letter gets a stable `id` of sixteen hexadecimal digits: a hash of source, partition, offset, step, reason and the
time of its batch. The time is included because a streaming DataFrame numbers its rows from zero in every batch.
`record` is the same hash without step and reason: letters that share it are about one record, which failed in several
steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl
import pyarrow as pa

from slackwater.base.errors import fault, listed
from slackwater.base.stable_hash import hash_expr
from slackwater.connectors.files.sink import OWNER, part_files
from slackwater.connectors.log.listing import modified_ms
from slackwater.connectors.log.reading import read_file
from slackwater.formats.dead_letter_columns import DEAD_LETTER_SCHEMA
from slackwater.formats.dead_letter_json import decode_letters
from slackwater.tools.dead_letters.places import Folder, Where
from slackwater.tools.dead_letters.topics import ends_of, read_values

_DIGITS: Final = 16
_RECORD: Final = ("source", "partition", "offset", "processed_at")
_MAY_LACK: Final = frozenset({"key", "headers"})
"""Columns that letters of early versions do not have."""


def scan_letters(where: Where) -> pl.LazyFrame:
    """Scan the letters of `where`, with their `id` and `record`, in delivery order.

    Only the requested columns of Parquet files are read: without `payload`, a million letters take moments.
    """
    if isinstance(where, Folder):
        letters = _of_folder(where.path)
    else:
        values, name = read_values(where)
        letters = decode_letters(values, name=name).lazy()
    return letters.with_columns(id=_digits(*_RECORD, "step", "reason"), record=_digits(*_RECORD))


def check_letters(where: Where) -> None:
    """Raise a fault if `where` cannot contain letters, before anything is written there."""
    if isinstance(where, Folder):
        _parts(where.path)
    else:
        ends_of(where)


def _digits(*columns: str) -> pl.Expr:
    def hexadecimal(hashes: pl.Series) -> pl.Series:
        numbers = hashes.to_numpy().astype(">u8")
        text = numbers.tobytes().hex().encode()
        digits = pa.FixedSizeBinaryArray.from_buffers(pa.binary(_DIGITS), len(numbers), [None, pa.py_buffer(text)])
        return pl.Series(hashes.name, digits).cast(pl.String)

    return hash_expr(*columns).map_batches(hexadecimal, return_dtype=pl.String, is_elementwise=True)


def _of_folder(folder: Path) -> pl.LazyFrame:
    frames = [_parquet(part) if part.suffix == ".parquet" else _lines(part) for part in _parts(folder)]
    return pl.concat([DEAD_LETTER_SCHEMA.to_frame().lazy(), *frames])


def _parts(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise fault("DEAD_LETTERS_NOWHERE", path=folder, found="not a folder")
    parts = part_files(folder)
    if not parts and not (folder / OWNER).exists():
        raise fault("DEAD_LETTERS_NOWHERE", path=folder, found="a folder without batches")
    return parts


def _parquet(part: Path) -> pl.LazyFrame:
    try:
        found = pl.read_parquet_schema(part)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise fault("DEAD_LETTERS_SCHEMA", path=part, found=f"is not readable: {error!s:.200}") from error
    lacking = [name for name in DEAD_LETTER_SCHEMA if name not in found and name not in _MAY_LACK]
    if lacking:
        raise fault("DEAD_LETTERS_SCHEMA", path=part, found=f"lacks {listed(lacking)}")
    other = [
        f"{name} is {found[name]}" for name, dtype in DEAD_LETTER_SCHEMA.items() if found.get(name, dtype) != dtype
    ]
    if other:
        raise fault("DEAD_LETTERS_SCHEMA", path=part, found=f"has other types: {listed(other)}")
    return pl.scan_parquet(part).select(
        pl.col(name) if name in found else pl.lit(None, dtype=dtype).alias(name)
        for name, dtype in DEAD_LETTER_SCHEMA.items()
    )


def _lines(part: Path) -> pl.LazyFrame:
    status = part.stat()
    chunks = read_file(str(part), length=status.st_size, modified_ms=modified_ms(status), kind="json")
    frames = [decode_letters(chunk.frame["__payload"], name=_Line(part, chunk.first_line)) for chunk in chunks]
    return pl.concat([DEAD_LETTER_SCHEMA.to_frame(), *frames]).lazy()


@dataclass(frozen=True)
class _Line:
    """Returns the position of a line of a chunk, for messages."""

    part: Path
    before: int

    def __call__(self, number: int) -> str:
        return f"line {self.before + number + 1} of {self.part}"
