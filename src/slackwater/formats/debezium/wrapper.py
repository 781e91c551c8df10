"""Removes the wrapper of Kafka Connect's JSON converter, `{"schema": …, "payload": …}`, from a column of records.

The schema precedes the payload, is the larger part of a record, and is the same text in all records of a table until
the table changes. It is therefore parsed once, then recognised and cut off.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from slackwater.formats.base import Flaw
from slackwater.formats.debezium.encodings import Encodings, RecordEncoding
from slackwater.formats.json import MAX_DEPTH
from slackwater.formats.json.records import RecordReader

Cut = tuple[NDArray[np.intp], pl.Series, RecordEncoding | None]
"""The indexes of some records, their payloads, and their reading."""

_WRAPPED: Final = r'^[ \t\n\r]*\{[ \t\n\r]*"schema"[ \t\n\r]*:'
_BLANK: Final = re.compile(r"[ \t\n\r]*")
_MOST_KNOWN: Final = 64
_MOST_LEARNED: Final = 16
"""The most schemas learned from one column; the records of any others are parsed one by one."""


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The parts of a wrapped record: its payload, its reading according to the schema (None: no schema), its prefix."""

    payload: str
    reading: RecordEncoding | None
    prefix: str | None
    """Everything before the payload, if only the closing brace follows it."""


@dataclass(frozen=True, kw_only=True)
class Unwrapped:
    """Payloads without their wrappers, and for each the index of its schema's reading in `readings`; 0 is no schema."""

    payloads: pl.Series
    reading_of: NDArray[np.intp]
    readings: list[RecordEncoding | None]


class Unwrapper:
    """Removes wrappers; learns the schemas it sees."""

    def __init__(self, encodings: Encodings) -> None:
        self._encodings = encodings
        self._known: dict[str, RecordEncoding | None] = {}
        # The payload is one level down, and may be as deep as it could be without a wrapper.
        self._reader = RecordReader(pl.Schema({"op": pl.String()}), max_depth=MAX_DEPTH, wrapped_in=1)
        self._decoder = json.JSONDecoder(parse_int=str, parse_float=str)

    def unwrap(self, lines: pl.Series) -> Unwrapped:
        """Return the payloads of `lines`; lines that are not wrapped or not well-formed are left unchanged."""
        rest = lines.str.contains(_WRAPPED).fill_null(value=False).arg_true().to_numpy().astype(np.intp)
        readings: list[RecordEncoding | None] = [None]
        reading_of = np.zeros(len(lines), np.intp)
        if not len(rest):
            return Unwrapped(payloads=lines, reading_of=reading_of, readings=readings)
        pieces, order = [lines], []
        for places, texts, reading in self._cut(lines, rest):
            if reading not in readings:
                readings.append(reading)
            reading_of[places] = readings.index(reading)
            pieces.append(texts)
            order.append(places)
        source = np.arange(len(lines))
        if order:
            moved = np.concatenate(order)
            source[moved] = len(lines) + np.arange(len(moved))
        return Unwrapped(payloads=pl.concat(pieces).gather(source), reading_of=reading_of, readings=readings)

    def take_apart(self, text: str) -> Parts | Flaw | None:
        """Return the parts of one record, None if it is not wrapped, or the flaw of one that cannot be read."""
        parsed = self._reader.parse(text)
        if isinstance(parsed, Flaw):
            return parsed
        keys = [key for key, _ in parsed]
        if "payload" not in keys or "op" in keys:
            return None
        for key in ("schema", "payload"):
            if keys.count(key) > 1:
                return Flaw(reason="malformed", message=f"field `{key}` is given twice")
        places = {key: (start, end) for key, start, end in self._places(text)}
        start, end = places["payload"]
        schema = self._decoder.decode(text[slice(*places["schema"])]) if "schema" in places else None
        reading = self._encodings.by_schema(schema) if isinstance(schema, dict) else None
        prefix = text[:start] if keys == ["schema", "payload"] else None
        return Parts(payload=text[start:end], reading=reading, prefix=prefix)

    def parsed(self, text: str) -> object:
        """Return a payload's keys and raw values."""
        return self._reader.parse(text)

    def _cut(self, lines: pl.Series, rest: NDArray[np.intp]) -> Iterator[Cut]:
        """Yield the records of one schema after another: indexes, payloads and reading."""
        for prefix in list(self._known):
            rest, found = yield from self._cut_prefix(lines, rest, prefix)
            if found:
                self._known[prefix] = self._known.pop(prefix)  # least recently found schemas are dropped first
        for _ in range(_MOST_LEARNED):
            if not len(rest):
                return
            parts = self.take_apart(lines[int(rest[0])])
            if isinstance(parts, Parts) and parts.prefix is not None:
                self._known[parts.prefix] = parts.reading
                rest, _ = yield from self._cut_prefix(lines, rest, parts.prefix)
                if len(self._known) > _MOST_KNOWN:
                    self._known.pop(next(iter(self._known)))
            else:
                yield from self._one(rest[:1], parts)
                rest = rest[1:]
        for at in range(len(rest)):
            place = rest[at : at + 1]
            yield from self._one(place, self.take_apart(lines[int(place[0])]))

    def _cut_prefix(
        self, lines: pl.Series, rest: NDArray[np.intp], prefix: str
    ) -> Generator[Cut, None, tuple[NDArray[np.intp], bool]]:
        texts = lines.gather(rest)
        found = texts.str.starts_with(prefix)
        hits = found.to_numpy()
        if hits.any():
            ended = texts.filter(found).str.strip_chars_end(" \t\n\r")
            whole = ended.str.ends_with("}")
            # Remove the closing brace; the rest is then checked as a record of its own.
            cut = ended.filter(whole).str.strip_prefix(prefix).str.strip_suffix("}")
            yield rest[hits][whole.to_numpy()], cut, self._known[prefix]
        return rest[~hits], bool(hits.any())

    @staticmethod
    def _one(place: NDArray[np.intp], parts: Parts | Flaw | None) -> Iterator[Cut]:
        if isinstance(parts, Parts):
            yield place, pl.Series([parts.payload], dtype=pl.String), parts.reading

    def _places(self, text: str) -> Iterator[tuple[str, int, int]]:
        """Yield the key, start and end of each value of an object that is known to be well-formed."""
        at = _behind_blank(text, 0) + 1
        while text[at := _behind_blank(text, at)] != "}":
            if text[at] == ",":
                at = _behind_blank(text, at + 1)
            key, at = self._decoder.raw_decode(text, at)
            start = _behind_blank(text, _behind_blank(text, at) + 1)
            _, at = self._decoder.raw_decode(text, start)
            yield key, start, at


def _behind_blank(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return at if match is None else match.end()
