"""Envelopes that are all written in one way, read as changes; and changes of several ways put in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from slackwater.formats.base import Decoded, Flaw
from slackwater.formats.debezium.columns import TOMBSTONE, change_columns, change_flaws
from slackwater.formats.debezium.encodings import WRITTEN_AS, Reading
from slackwater.formats.debezium.values import decoded_rows
from slackwater.formats.json import json
from slackwater.formats.schemas import spark_type

_SIDES: Final = ("before", "after")


@dataclass(frozen=True, kw_only=True)
class Changes:
    """What changes are made of: their columns, those of the table, and those of its key."""

    schema: pl.Schema
    rows: pl.Schema
    key: tuple[str, ...]

    def of(self, envelopes: pl.DataFrame) -> tuple[pl.DataFrame, dict[int, Flaw]]:
        """Return the changes of envelopes, and what is wrong with the others."""
        changes = change_columns(envelopes, self.schema, self.key)
        return changes, change_flaws(envelopes, changes, self.key)


class EnvelopeReader:
    """Reads payloads of JSON that are all written in one way."""

    def __init__(self, changes: Changes, reading: Reading, *, max_bytes: int) -> None:
        self._changes = changes
        self._reading = reading
        self._decoders = [json(part, max_bytes=max_bytes).decoder() for part in reading.parts(changes.rows)]
        self._declared = dict(_declared(changes.rows, reading))

    def read(self, lines: pl.Series) -> Decoded:
        """Return the changes, and what is wrong with the payloads that gave none."""
        payload = lines.cast(pl.Binary)
        parts = [decoder.decode(payload) for decoder in self._decoders]
        envelopes = pl.concat([part.frame for part in parts], how="horizontal")
        rows, flaws = decoded_rows(envelopes, self._changes.rows, self._reading)
        changes, more = self._changes.of(rows)
        flaws = more | flaws
        for part in reversed(parts):
            flaws |= {at: self._in_words(flaw) for at, flaw in flaws_of(part).items()}
        return Decoded.of(changes, flaws)

    def _in_words(self, flaw: Flaw) -> Flaw:
        """Return a flaw of a column that is written as another type than it is declared with both of them named."""
        rule, separator, got = flaw.message.partition("; got ")
        return Flaw(reason=flaw.reason, message=self._declared.get(rule, rule) + separator + got)


class ChangeRows:
    """The rows of some records after those of others, to be put in order; of a place, what is added last counts."""

    def __init__(self, schema: pl.Schema, height: int) -> None:
        self._frames = [pl.DataFrame(schema=schema)]
        self._row_of = np.full(height, -1, np.int64)
        self._rows = 0

    def add(self, places: NDArray[np.intp], rows: pl.DataFrame) -> None:
        """Put `rows` in their places."""
        self._row_of[places] = self._rows + np.arange(rows.height)
        self._frames.append(rows)
        self._rows += rows.height

    def add_tombstones(self, places: NDArray[np.intp]) -> None:
        """Put a tombstone in each of `places`."""
        if len(places):
            nothing = self._frames[0].clear(len(places))
            self.add(places, nothing.with_columns(op=pl.lit(TOMBSTONE)))

    def decoded(self, flaws: dict[int, Flaw]) -> Decoded:
        """Return all rows in order, those of flawed records empty."""
        self._row_of[list(flaws)] = -1
        frame = pl.concat(self._frames)
        if self._rows == len(self._row_of) and bool((self._row_of == np.arange(self._rows)).all()):
            return Decoded.of(frame, flaws)
        places = pl.Series(self._row_of).set(pl.Series(self._row_of < 0), None)
        return Decoded.of(frame.select(pl.all().gather(places)), flaws)


def flaws_of(decoded: Decoded) -> dict[int, Flaw]:
    """Return what is wrong with records, by place."""
    return {at: Flaw(reason=reason, message=message) for at, reason, message in decoded.bad.iter_rows()}


def _declared(rows: pl.Schema, reading: Reading) -> list[tuple[str, str]]:
    """Return how JSON messages name a column that it has in another type, and how ours name it."""
    said = []
    for name, wire, encoding in reading.written(rows):
        if encoding.kind != "as_json":
            for side in _SIDES:
                field = f"field `{side}.{name}` is declared"
                words = f"{field} {spark_type(rows[name])} and written as {WRITTEN_AS[encoding.kind]}"
                said.append((f"{field} {spark_type(wire)}", words))
    return said
