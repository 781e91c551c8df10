"""Skips decoding columns that nothing reads, except for the few rows that leave unchanged."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import polars as pl

from slackwater.formats.base import Decoder, Format

_DECODERS: Final[dict[tuple[int, tuple[str, ...]], tuple[Format, Decoder]]] = {}


@dataclass(frozen=True, kw_only=True, eq=False)
class Undecoded:
    """The columns of a format that nothing after decoding reads."""

    format: Format
    names: tuple[str, ...]

    def decoder(self) -> Decoder:
        """Return the decoder that leaves these columns out."""
        return decoder_of(self.format, self.names)

    def restored(self, rows: pl.DataFrame, wanted: Collection[str]) -> pl.DataFrame:
        """Add the wanted columns that were left out to `rows`, decoding their payloads again."""
        missing = [name for name in self.names if name in wanted]
        if not missing:
            return rows
        whole = decoder_of(self.format).decode(rows["__payload"]).frame
        return rows.hstack(whole.select(missing))


def decoder_of(form: Format, left_out: tuple[str, ...] = ()) -> Decoder:
    """Return the process's decoder for `form`; it outlives the task, so that what it learned is not lost."""
    key = (id(form), left_out)
    if key not in _DECODERS:
        # Keep a reference to the format, so that its id is not reused.
        _DECODERS[key] = (form, form.narrow_decoder(left_out) if left_out else form.decoder())
    return _DECODERS[key][1]
