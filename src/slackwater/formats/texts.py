"""Records as text: the first check of a column of bytes, shared by the text formats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
import pyarrow as pa

from slackwater.formats.base import Flaw, too_long

_LAST_ASCII: Final = 0x7F


@dataclass(frozen=True, kw_only=True)
class Texts:
    """A column of records as text, null for flawed records, whose flaws are in `flaws` by row index."""

    lines: pl.Series
    flaws: dict[int, Flaw]


def to_texts(payload: pl.Series, *, max_bytes: int) -> Texts:
    """Convert a column of bytes to text; records that are null, longer than `max_bytes` or not UTF-8 are flaws."""
    flaws: dict[int, Flaw] = {}
    sizes = payload.bin.size()
    for at in sizes.is_null().arg_true() if sizes.null_count() else ():
        flaws[at] = Flaw(reason="empty_record", message="the record has no payload")
    for at in (sizes > max_bytes).arg_true():
        flaws[at] = too_long(sizes[at], most=max_bytes)
    if not flaws:
        try:
            return Texts(lines=payload.cast(pl.String), flaws=flaws)
        except pl.exceptions.PolarsError:
            pass
    flaws = _not_utf8(payload) | flaws
    if not flaws:
        return Texts(lines=payload.cast(pl.String), flaws=flaws)
    # Polars validates the whole buffer of a column, so the flawed records must be removed from it.
    keep = np.ones(len(payload), dtype=bool)
    keep[list(flaws)] = False
    good = payload.filter(pl.Series(keep)).to_arrow().cast(pa.large_string())
    places = pl.Series(np.cumsum(keep) - 1).set(pl.Series(~keep), None)
    return Texts(lines=pl.Series(payload.name, good, dtype=pl.String).gather(places), flaws=flaws)


def _not_utf8(payload: pl.Series) -> dict[int, Flaw]:
    """Find the records that are not UTF-8; only those with a non-ASCII byte are checked."""
    flaws = {}
    plain = payload.rechunk().to_arrow()
    _, offsets, values = plain.buffers()
    if offsets is None or values is None:
        return {}
    starts = np.frombuffer(memoryview(offsets), dtype=np.int64)[plain.offset : plain.offset + len(plain) + 1]
    data = np.frombuffer(memoryview(values), dtype=np.uint8)
    beyond = np.flatnonzero(data[starts[0] : starts[-1]] > _LAST_ASCII) + starts[0]
    places = np.unique(np.searchsorted(starts, beyond, side="right") - 1)
    for at, record in zip(places.tolist(), payload.gather(places).to_list(), strict=True):
        try:
            record.decode()
        except UnicodeDecodeError as error:
            words = f"{error.reason}: byte 0x{record[error.start]:02x} at position {error.start}"
            flaws[at] = Flaw(reason="invalid_utf8", message=words)
    return flaws
