"""Columns that nobody reads are not decoded, except in the few rows that leave as they came."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import polars as pl

from slackwater.formats.base import Decoder, Format

_DECODERS: Final[dict[tuple[int, tuple[str, ...]], tuple[Format, Decoder]]] = {}


@dataclass(frozen=True, kw_only=True, eq=False)
class Undecoded:
    """The columns of a format that nothing after the decoding looks at."""

    format: Format
    names: tuple[str, ...]

    def decoder(self) -> Decoder:
        """Return the decoder that leaves them out."""
        return decoder_of(self.format, self.names)

    def restored(self, rows: pl.DataFrame, wanted: Collection[str]) -> pl.DataFrame:
        """Return `rows`, which came through the decoder and still have their payload, with those that are wanted."""
        missing = [name for name in self.names if name in wanted]
        if not missing:
            return rows
        whole = decoder_of(self.format).decode(rows["__payload"]).frame
        return rows.hstack(whole.select(missing))


def decoder_of(form: Format, left_out: tuple[str, ...] = ()) -> Decoder:
    """Return the process's decoder for `form`; a decoder learns, so it outlives the task."""
    key = (id(form), left_out)
    if key not in _DECODERS:
        # The format is kept with its decoder, so that its id stays its own.
        _DECODERS[key] = (form, form.narrow_decoder(left_out) if left_out else form.decoder())
    return _DECODERS[key][1]
