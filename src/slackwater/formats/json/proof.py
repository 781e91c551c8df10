"""Proves a whole column of JSON records valid, with patterns learned from the records themselves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from slackwater.formats.base import Flaw
from slackwater.formats.json.parsed import JsonObject
from slackwater.formats.json.patterns import (
    UnknownField,
    any_order_pattern,
    is_provable,
    key_literals,
    map_is_given,
    ordered_pattern,
    unknown_fields,
)
from slackwater.formats.json.records import RecordReader
from slackwater.formats.json.values import is_map

_FEWEST: Final = 64
"""Below this number, reading records one by one is faster than compiling a pattern for them."""

_MOST_SHAPES: Final = 4
_SAMPLES: Final = 5
_TRIAL: Final = 200
_LEAST_SHARE: Final = 0.05


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The keys of a record in order, as a pattern that proves similar records."""

    pattern: str
    unknown: tuple[UnknownField, ...] = ()
    """The undeclared fields, if they are kept."""


@dataclass(kw_only=True)
class Proof:
    """Which lines are proven valid, and which of them by a shape with undeclared fields."""

    proven: NDArray[np.bool_]
    with_unknown: list[tuple[Shape, NDArray[np.intp]]] = field(default_factory=list)


class Prover:
    """Finds the records of a column that are certainly valid; learns the order of their keys as it goes."""

    def __init__(
        self,
        schema: pl.Schema,
        reader: RecordReader,
        *,
        max_depth: int,
        keep_unknown: bool = False,
        numbers_as_strings: bool = False,
    ) -> None:
        self._schema = schema
        self._reader = reader
        self._keep_unknown = keep_unknown
        self._lenient = numbers_as_strings
        self._is_provable = is_provable(schema, max_depth=max_depth)
        self._shapes: list[Shape] = []
        self._maps = [name for name, dtype in schema.items() if isinstance(dtype, pl.List) and is_map(dtype)]
        self._any_order = ""
        if self._is_provable:
            self._any_order = any_order_pattern(schema, lenient=numbers_as_strings, unknown=not keep_unknown)
        self._keys = key_literals(schema)

    def prove(self, lines: pl.Series) -> Proof:
        """Prove lines valid in bulk; null lines remain unproven."""
        proof = Proof(proven=np.zeros(len(lines), dtype=bool))
        rest = _Rest(lines, proof)
        if self._is_provable:
            useful = [shape for shape in self._shapes if rest.prove(shape)]
            for _ in range(_MOST_SHAPES):
                if len(rest) < _FEWEST or (learned := self._learn(rest)) is None:
                    break
                useful.append(learned)
            # Shapes that proved nothing are dropped only when others need the room: their records may come later.
            self._shapes = list(dict.fromkeys([*useful, *self._shapes]))[:_MOST_SHAPES]
            if len(rest) >= _FEWEST:
                rest.prove(Shape(pattern=self._any_order), at_most_once=self._keys)
        return proof

    def lost_maps(self, lines: pl.Series, read: pl.DataFrame, proven: NDArray[np.bool_]) -> list[int]:
        """Return the lines with a map that was read as null although the field is present: it has a duplicate key."""
        lost: list[int] = []
        for name in self._maps:
            places = (read[name].is_null() & pl.Series(proven)).arg_true()
            given = lines.gather(places).str.contains(map_is_given(name))
            lost += places.filter(given).to_list()
        return lost

    def _learn(self, rest: _Rest) -> Shape | None:
        """Learn a shape from `rest` that proves a fair share of it, and apply it; None if there is no such shape."""
        trial = rest.some(_TRIAL)
        for sample in rest.some(_SAMPLES).drop_nulls():
            parsed = self._reader.parse(sample)
            if isinstance(parsed, Flaw) or isinstance(self._reader.read(sample), Flaw):
                continue
            shape = self._shape(parsed)
            if shape is None or shape in self._shapes:
                continue
            if trial.str.contains(shape.pattern).sum() >= _LEAST_SHARE * len(trial):
                rest.prove(shape)
                return shape
        return None

    def _shape(self, sample: JsonObject) -> Shape | None:
        pattern = ordered_pattern(self._schema, sample, lenient=self._lenient)
        if pattern is None:
            return None
        unknown = unknown_fields(self._schema, sample, lenient=self._lenient) if self._keep_unknown else ()
        return Shape(pattern=pattern, unknown=unknown)


class _Rest:
    """The lines not proven yet; proving lines updates `proof`."""

    def __init__(self, lines: pl.Series, proof: Proof) -> None:
        self.lines = lines
        self.proof = proof
        self.places: NDArray[np.intp] | None = None

    def __len__(self) -> int:
        return len(self.lines)

    def some(self, count: int) -> pl.Series:
        """Return up to `count` lines, spread over all of them."""
        return self.lines.gather_every(max(1, len(self.lines) // count)).head(count)

    def prove(self, shape: Shape, *, at_most_once: list[str] | None = None) -> int:
        """Mark the lines that match and contain no word of `at_most_once` twice; return their number."""
        if not len(self.lines):
            return 0
        matches = self.lines.str.contains(shape.pattern).fill_null(value=False)
        for word in at_most_once or []:
            matches &= self.lines.str.count_matches(word, literal=True).fill_null(2) <= 1
        hits = matches.to_numpy()
        if self.places is None and hits.all() and not shape.unknown:
            self.proof.proven[:] = True
            self.lines = self.lines.clear()
            return len(hits)
        places = np.arange(len(self.lines)) if self.places is None else self.places
        self.proof.proven[places[hits]] = True
        if shape.unknown and hits.any():
            self.proof.with_unknown.append((shape, places[hits]))
        self.places = places[~hits]
        self.lines = self.lines.filter(~matches)
        return int(hits.sum())
