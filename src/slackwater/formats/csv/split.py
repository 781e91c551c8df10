"""Splits many CSV records at once, at the positions of delimiters and quotes in their bytes.

A record that is not proven valid is not invalid, only unknown: `records` decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from slackwater.formats.csv.records import Dialect
from slackwater.formats.slices import cut

Flags = NDArray[np.bool_]
Places = NDArray[np.int64]

_RETURN: Final = ord("\r")
_NEWLINE: Final = ord("\n")


@dataclass(frozen=True, kw_only=True)
class Split:
    """The values of records as text, column by column; valid only for the records that are `proven`."""

    columns: list[pl.Series]
    proven: Flags


def split(lines: pl.Series, count: int, dialect: Dialect) -> Split:
    """Split lines into `count` values each; lines not proven to have them, and null lines, are not proven."""
    records = _Records(lines, dialect)
    proven = records.is_quoted_well() & ~lines.is_null().to_numpy() & (records.stops > records.starts)
    delimiters, first = records.delimiters()
    proven &= np.diff(first) == count - 1
    ends = _ends(records, delimiters, first[:-1], count - 1, proven)
    columns = []
    starts = records.starts
    for column in range(count):
        stops = ends[:, column] if column < count - 1 else np.where(proven, records.stops, records.starts)
        columns.append(records.values(starts, stops))
        starts = np.where(proven, stops + 1, records.starts)
    return Split(columns=columns, proven=proven)


def _ends(records: _Records, delimiters: Places, first: Places, count: int, proven: Flags) -> Places:
    """Return where the first `count` values of each record end; those of unproven records are empty."""
    if proven.all():
        return delimiters.reshape(len(proven), count)
    ends = np.repeat(records.starts[:, None], count, axis=1)
    ends[proven] = delimiters[first[proven][:, None] + np.arange(count)]
    return ends


class _Records:
    """The bytes of lines, with the start and the end (without line break) of each."""

    def __init__(self, lines: pl.Series, dialect: Dialect) -> None:
        whole = lines.rechunk().to_arrow()
        _, places, values = whole.buffers()
        assert places is not None
        offsets = np.frombuffer(memoryview(places), dtype=np.int64)[whole.offset : whole.offset + len(whole) + 1]
        data = np.frombuffer(b"" if values is None else memoryview(values), dtype=np.uint8)
        self.data = data[offsets[0] : offsets[-1]]
        self.starts = offsets[:-1] - offsets[0]
        self.stops = offsets[1:] - offsets[0]
        self._dialect = dialect
        self._delimiter = ord(dialect.delimiter)
        self._quote = -1 if dialect.quote is None else ord(dialect.quote)
        quotes = self.data == self._quote if self._quote >= 0 else np.zeros(0, dtype=bool)
        self._quotes: Places = np.flatnonzero(quotes)
        self._has_pairs = bool((np.diff(self._quotes) == 1).any())
        self._bounds = np.append(self.starts, len(self.data))
        self._first_quotes = np.searchsorted(self._quotes, self._bounds)
        breaks = (self.data == _NEWLINE) | (self.data == _RETURN)
        self._breaks: Places = np.flatnonzero(breaks)
        if len(self._breaks):
            for mark in (_NEWLINE, _RETURN):
                last = self.data[np.maximum(self.stops - 1, 0)]
                self.stops = self.stops - ((self.stops > self.starts) & (last == mark))

    def delimiters(self) -> tuple[Places, Places]:
        """Return the positions of the delimiters outside quotes, and the index of the first one of each record."""
        found = np.flatnonzero(self.data == self._delimiter)
        if len(self._quotes):
            found = found[~self._is_inside(found)]
        return found, np.searchsorted(found, self._bounds)

    def is_quoted_well(self) -> Flags:
        """Return which records have quotes only where allowed, and line breaks only inside quotes."""
        well = np.ones(len(self.starts), dtype=bool)
        if len(self._breaks):
            owners = self._owners(self._breaks)
            is_end = self._breaks >= self.stops[owners]
            well[owners[~is_end & ~self._is_inside(self._breaks)]] = False
        if len(self._quotes):
            owners = self._owners(self._quotes)
            is_opening = ~self._is_inside(self._quotes)
            before = self.data[np.maximum(self._quotes - 1, 0)]
            after = self.data[np.minimum(self._quotes + 1, len(self.data) - 1)]
            # An opening quote must begin a value, a closing one must end it; two adjacent quotes inside a value close
            # and reopen it, and mean one quote.
            begins = (self._quotes == self.starts[owners]) | (before == self._delimiter) | (before == self._quote)
            ends = (self._quotes + 1 >= self.stops[owners]) | (after == self._delimiter) | (after == self._quote)
            well[owners[~np.where(is_opening, begins, ends)]] = False
            well[np.bincount(owners, minlength=len(well)) % 2 == 1] = False
        return well

    def values(self, starts: Places, stops: Places) -> pl.Series:
        """Return the values between `starts` and `stops` as text, without quotes; null for the null marker."""
        is_quoted = None
        if len(self._quotes):
            is_quoted = (stops > starts) & (self.data[np.minimum(starts, len(self.data) - 1)] == self._quote)
            starts, stops = starts + is_quoted, stops - is_quoted
        texts = cut(self.data, starts, np.maximum(starts, stops)).view(pa.large_string())
        values = pl.Series(texts, dtype=pl.String)
        is_null = values == self._dialect.null
        if is_quoted is not None:
            quote = str(self._dialect.quote)
            is_null &= ~pl.Series(is_quoted)
            values = values.str.replace_all(quote * 2, quote, literal=True) if self._has_pairs else values
        return pl.select(pl.when(~is_null).then(values)).to_series() if is_null.any() else values

    def _owners(self, places: Places) -> NDArray[np.intp]:
        """Return the record that contains each place; places must be in ascending order."""
        return np.repeat(np.arange(len(self.starts)), np.diff(np.searchsorted(places, self._bounds)))

    def _is_inside(self, places: Places) -> Flags:
        """Return whether each place has an odd number of quotes before it in its record."""
        is_quote = places is self._quotes
        before = np.arange(len(places)) if is_quote else np.searchsorted(self._quotes, places)
        before -= self._first_quotes[self._owners(places)]
        is_inside: Flags = before % 2 == 1
        return is_inside
