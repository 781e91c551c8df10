"""Turns columns into pieces of records, all rows at once: one class for each encoding.

Nulls are removed before values are written, so only `Optional` and `Required` ever see one. A value that does not fit
its Avro type makes its row a dead letter.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from slackwater.base.errors import RowError, row_error
from slackwater.formats.avro.cursor import I64
from slackwater.formats.avro.pieces import AssembledRecords, Numbers, Octets, Part, Slices, bytes_of, varints

_UUID: Final = r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"
_LAST: Final = 2**63 - 1
_ITEMS_AT_ONCE: Final = 1 << 16
"""Items written at a time: each needs spare room after it, which can be many times the size of the item."""
_BYTES: Final = 16
_BITS: Final = 64


class FieldOutput(ABC):
    """How the values of one field are written."""

    @abstractmethod
    def pieces(self, values: pl.Series) -> list[Part]:
        """Return the bytes of the values, which must not contain nulls unless this class handles them."""


@dataclass(frozen=True, kw_only=True)
class Optional(FieldOutput):
    """Null or a value, preceded by the index of its type in the union."""

    null: int
    place: int
    inner: FieldOutput

    def pieces(self, values: pl.Series) -> list[Part]:
        """Return the indexes in the union, and the values that are not null."""
        places = np.full(len(values), 2 * self.place, np.uint8)
        marks = _octets(places)
        if not values.null_count():
            return [marks, *self.inner.pieces(values)]
        is_null = values.is_null().to_numpy()
        places[is_null] = 2 * self.null
        rows = np.flatnonzero(~is_null)
        if not len(rows):
            return [marks]
        return [marks, *(piece.spread(rows, len(values)) for piece in self.inner.pieces(values.drop_nulls()))]


@dataclass(frozen=True, kw_only=True)
class Required(FieldOutput):
    """A value that is never null, possibly in a union that contains only its type."""

    path: str
    inner: FieldOutput
    in_union: bool = False

    def pieces(self, values: pl.Series) -> list[Part]:
        """Return the values, or raise if one is null."""
        if nulls := values.null_count():
            words = f"null in {nulls} of {len(values)} values"
            raise unfit(self.path, words, "declare it as a union with null, or fill it with .fill_null(...)")
        pieces = self.inner.pieces(values)
        return [_octets(np.zeros(len(values), np.uint8)), *pieces] if self.in_union else pieces


@dataclass(frozen=True, kw_only=True)
class Booleans(FieldOutput):
    """True or false, as one byte."""

    def pieces(self, values: pl.Series) -> list[Part]:
        """Return ones and zeros."""
        return [_octets(values.to_numpy().astype(np.uint8))]


@dataclass(frozen=True, kw_only=True)
class Integers(FieldOutput):
    """Integers from -`most` to `most`."""

    path: str
    most: int = _LAST

    def pieces(self, values: pl.Series) -> list[Part]:
        """Return the numbers as varints."""
        numbers = values.cast(pl.Int64).to_numpy()
        if self.most < _LAST:
            check_size(self.path, numbers, self.most)
        return varints(numbers)


@dataclass(frozen=True, kw_only=True)
class TimeOutput(FieldOutput):
    """Times converted to a unit that is `finer` or `coarser` by that factor; a coarser unit truncates them."""

    path: str
    finer: int = 1
    coarser: int = 1

    def pieces(self, values: pl.Series) -> list[Part]:
        """Return the times since 1970 as varints."""
        numbers = values.cast(pl.Int64).to_numpy()
        if self.finer > 1:
            check_size(self.path, numbers, _LAST // self.finer)
            numbers = numbers * self.finer
        return varints(numbers // self.coarser if self.coarser > 1 else numbers)


@dataclass(frozen=True, kw_only=True)
class Floats(FieldOutput):
    """Numbers of four or eight bytes."""

    double: bool

    def pieces(self, values: pl.Series) -> list[Part]:
        """Return the numbers' bytes."""
        if self.double:
            return [Numbers(values=values.cast(pl.Float64).to_numpy().view(np.uint64), sizes=8)]
        return [Numbers(values=values.cast(pl.Float32).to_numpy().view(np.uint32), sizes=4)]


@dataclass(frozen=True, kw_only=True)
class TextOutput(FieldOutput):
    """Text or bytes, preceded by the length."""

    def pieces(self, values: pl.Series) -> list[Part]:
        """Return the lengths and the bytes."""
        data, starts, sizes = bytes_of(_binary(values))
        return [*varints(sizes), Slices.of(data, starts, sizes)]


@dataclass(frozen=True, kw_only=True)
class Fixeds(FieldOutput):
    """A fixed number of bytes."""

    path: str
    size: int

    def pieces(self, values: pl.Series) -> list[Part]:
        """Return the bytes, or raise if there are more or fewer."""
        data, starts, sizes = bytes_of(values)
        wrong = np.flatnonzero(sizes != self.size)
        if len(wrong):
            raise unfit(self.path, f"{sizes[wrong[0]]} bytes", f"values must have {self.size} bytes")
        return [Slices.of(data, starts, self.size)]


@dataclass(frozen=True, kw_only=True)
class Uuids(FieldOutput):
    """UUIDs, which are text in columns; written as sixteen bytes or as text."""

    path: str
    as_text: bool

    def pieces(self, values: pl.Series) -> list[Part]:
        """Return the UUIDs, or raise for other text."""
        texts = values.cast(pl.String)
        if not (good := texts.str.contains(_UUID)).all():
            raise unfit(self.path, _first(texts.filter(~good)), "write UUIDs as 8-4-4-4-12 hexadecimal digits")
        if self.as_text:
            return TextOutput().pieces(texts)
        data, starts, _ = bytes_of(texts.str.replace_all("-", "", literal=True).str.decode("hex"))
        return [Slices.of(data, starts, 16)]


@dataclass(frozen=True, kw_only=True)
class Symbols(FieldOutput):
    """An enum's symbols, which are text in columns; written as their indexes."""

    path: str
    symbols: tuple[str, ...]

    def pieces(self, values: pl.Series) -> list[Part]:
        """Return the symbols' indexes, or raise for other text."""
        texts = values.cast(pl.String)
        places = texts.replace_strict(list(self.symbols), range(len(self.symbols)), default=None, return_dtype=pl.Int64)
        if places.null_count():
            remedy = f"use one of {', '.join(self.symbols):.200}"
            raise unfit(self.path, _first(texts.filter(places.is_null())), remedy)
        return varints(places.to_numpy())


@dataclass(frozen=True, kw_only=True)
class Lists(FieldOutput):
    """A list in a single block: the number of items, the items, and a zero that ends the blocks."""

    item: FieldOutput

    def pieces(self, values: pl.Series) -> list[Part]:
        """Return the counts, items and ends."""
        values = values.arr.to_list() if isinstance(values.dtype, pl.Array) else values
        counts = values.list.len().cast(pl.Int64).to_numpy()
        items = values.explode(empty_as_null=False, keep_nulls=False)
        self.check(counts, items)
        data, places = self._packed(items)
        ends = np.cumsum(counts)
        starts = places[ends - counts]
        # An empty list has no block: its count is also the end.
        end = Numbers(values=np.zeros(len(counts), np.uint8), sizes=np.minimum(counts, 1))
        return [*varints(counts), Slices.of(data, starts, places[ends] - starts), end]

    def check(self, counts: I64, items: pl.Series) -> None:
        """Raise if the items cannot be written; those of an array always can."""

    def _packed(self, items: pl.Series) -> tuple[Octets, I64]:
        """Return the bytes of all items, and where each begins and the last one ends."""
        every, places = [np.empty(0, np.uint8)], [np.zeros(1, np.int64)]
        for at in range(0, len(items), _ITEMS_AT_ONCE):
            some = items[at : at + _ITEMS_AT_ONCE]
            data, within = AssembledRecords.of(self.item.pieces(some), len(some)).packed()
            every.append(data)
            places.append(within[1:] + places[-1][-1])
        return np.concatenate(every), np.concatenate(places)


@dataclass(frozen=True, kw_only=True)
class Maps(Lists):
    """A map, which is a list of keys and values in columns."""

    path: str

    def pieces(self, values: pl.Series) -> list[Part]:
        """Return the counts, entries and ends."""
        return super().pieces(values.map.entries() if isinstance(values.dtype, pl.Map) else values)

    def check(self, counts: I64, items: pl.Series) -> None:
        """Raise if a key is null or occurs twice in one map."""
        keys = items.struct.field("key")
        if items.null_count() or keys.null_count():
            raise unfit(self.path, "a null key", "remove these entries")
        rows = pl.Series("row", np.repeat(np.arange(len(counts)), counts))
        if (twice := pl.DataFrame([rows, keys]).is_duplicated()).any():
            raise unfit(self.path, f"the key {_first(keys.filter(twice))} twice in one map", "keep one entry per key")


@dataclass(frozen=True, kw_only=True)
class Alike(FieldOutput):
    """The same bytes in every record: the default of a field without a column."""

    value: bytes

    def pieces(self, values: pl.Series) -> list[Part]:
        """Return the bytes once per row."""
        return [Slices.alike(self.value, len(values))]


@dataclass(frozen=True, kw_only=True)
class Structs(FieldOutput):
    """A record's fields, one after another; a field without a column is `Alike`."""

    fields: tuple[tuple[str, FieldOutput], ...]

    def pieces(self, values: pl.Series) -> list[Part]:
        """Return the fields of a column of structs."""
        return self.of_frame(values.struct.unnest())

    def of_frame(self, frame: pl.DataFrame) -> list[Part]:
        """Return the fields of a frame's rows."""
        pieces: list[Part] = []
        for name, output in self.fields:
            values = frame.to_series(0) if isinstance(output, Alike) else frame.get_column(name)
            pieces += output.pieces(values)
        return pieces


def check_size(path: str, numbers: I64, most: int) -> None:
    """Raise if a number is not between -`most` and `most`."""
    if len(numbers) and not -most <= numbers.min() <= numbers.max() <= most:
        wrong = numbers[(numbers > most) | (numbers < -most)]
        raise unfit(path, f"{wrong[0]}, which has too many digits", "declare a type that holds it")


def unfit(path: str, got: str, remedy: str) -> RowError:
    """Return the error of a value that its field cannot hold."""
    return row_error("AVRO_VALUE", path=path, got=got, remedy=remedy)


def _first(texts: pl.Series) -> str:
    return f"{texts[0]!r:.60}"


def _binary(values: pl.Series) -> pl.Series:
    return values if isinstance(values.dtype, pl.Binary) else values.cast(pl.String).cast(pl.Binary)


def _octets(values: Octets) -> Numbers:
    return Numbers(values=values, sizes=1)


@dataclass(frozen=True, kw_only=True)
class Decimals(FieldOutput):
    """Decimals, cast to `dtype` first; `size` is that of a fixed."""

    dtype: pl.Decimal
    size: int | None = None

    def pieces(self, values: pl.Series) -> list[Part]:
        """Return the numbers' bytes, preceded by their count unless the size is fixed."""
        low, high = _words(values.cast(self.dtype))
        written = np.column_stack([high.byteswap(), low.byteswap()]).view(np.uint8).reshape(-1, _BYTES)
        ends = np.arange(1, len(low) + 1) * _BYTES
        if self.size is None:
            sizes = _least_bytes(low, high)
            marks = Numbers(values=(2 * sizes).astype(np.uint8), sizes=1)
            return [marks, Slices.of(written.reshape(-1), ends - sizes, sizes)]
        if self.size <= _BYTES:
            return [Slices.of(written.reshape(-1), ends - self.size, self.size)]
        sign = (high.view(np.int64) >> (_BITS - 1)).astype(np.uint8)
        wide = np.repeat(sign[:, None], self.size, axis=1)
        wide[:, -_BYTES:] = written
        return [Slices.of(wide.reshape(-1), np.arange(len(low)) * self.size, self.size)]


def _words(values: pl.Series) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return the low and high half of each number."""
    plain = values.rechunk().to_arrow()
    data = plain.buffers()[1]
    words = np.frombuffer(b"" if data is None else memoryview(data), np.uint64)
    words = words[2 * plain.offset : 2 * (plain.offset + len(plain))]
    return words[::2], words[1::2]


def _least_bytes(low: NDArray[np.uint64], high: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the number of bytes that each number needs, including its sign."""
    sign = (high.view(np.int64) >> (_BITS - 1)).view(np.uint64)
    low, high = low ^ sign, high ^ sign
    sizes = np.ones(len(low), np.int64)
    for bits in range(7, 2 * _BITS - 1, 8):
        if bits < _BITS:
            sizes += (high > 0) | (low >= np.uint64(1 << bits))
        else:
            sizes += high >= np.uint64(1 << (bits - _BITS))
    return sizes
