"""Proving a whole column of JSON records right, with patterns learned from the records themselves."""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from slackwater.formats.base import Flaw
from slackwater.formats.json_patterns import (
    any_order_pattern,
    is_provable,
    key_literals,
    map_is_given,
    ordered_pattern,
)
from slackwater.formats.json_records import RecordReader
from slackwater.formats.json_values import is_map

_FEWEST: Final = 64
"""So few records are read one by one sooner than a pattern is compiled for them."""

_MOST_PATTERNS: Final = 4
_SAMPLES: Final = 5
_TRIAL: Final = 200
_LEAST_SHARE: Final = 0.05


class Prover:
    """Tells which records of a column are certainly right; learns the order of their keys as it goes."""

    def __init__(self, schema: pl.Schema, reader: RecordReader, *, max_depth: int) -> None:
        self._schema = schema
        self._reader = reader
        self._is_provable = is_provable(schema, max_depth=max_depth)
        self._patterns: list[str] = []
        self._maps = [name for name, dtype in schema.items() if isinstance(dtype, pl.List) and is_map(dtype)]
        self._any_order = any_order_pattern(schema) if self._is_provable else ""
        self._keys = key_literals(schema)

    def prove(self, lines: pl.Series) -> NDArray[np.bool_]:
        """Return for each line whether it is proven right; a null line is not."""
        proven = np.zeros(len(lines), dtype=bool)
        rest = _Rest(lines, proven)
        if self._is_provable:
            useful = [pattern for pattern in self._patterns if rest.prove(pattern)]
            for _ in range(_MOST_PATTERNS):
                if len(rest) < _FEWEST or (learned := self._learn(rest)) is None:
                    break
                useful.append(learned)
            # A pattern that proved nothing gives way to those that did; else it waits for its records.
            self._patterns = list(dict.fromkeys([*useful, *self._patterns]))[:_MOST_PATTERNS]
            if len(rest) >= _FEWEST:
                rest.prove(self._any_order, at_most_once=self._keys)
        return proven

    def lost_maps(self, lines: pl.Series, read: pl.DataFrame, proven: NDArray[np.bool_]) -> list[int]:
        """Return the lines whose map was read as null although it may be given: a key of it came twice."""
        lost: list[int] = []
        for name in self._maps:
            places = (read[name].is_null() & pl.Series(proven)).arg_true()
            given = lines.gather(places).str.contains(map_is_given(name))
            lost += places.filter(given).to_list()
        return lost

    def _learn(self, rest: _Rest) -> str | None:
        """Return a pattern learned from `rest` that proved a fair share of it, or None."""
        trial = rest.some(_TRIAL)
        for sample in rest.some(_SAMPLES).drop_nulls():
            parsed = self._reader.parse(sample)
            if isinstance(parsed, Flaw) or isinstance(self._reader.read(sample), Flaw):
                continue
            pattern = ordered_pattern(self._schema, parsed)
            if pattern is None or pattern in self._patterns:
                continue
            if trial.str.contains(pattern).sum() >= _LEAST_SHARE * len(trial):
                rest.prove(pattern)
                return pattern
        return None


class _Rest:
    """The lines that are not proven yet; `proven` is filled in as they are."""

    def __init__(self, lines: pl.Series, proven: NDArray[np.bool_]) -> None:
        self.lines = lines
        self.proven = proven
        self.places: NDArray[np.intp] | None = None

    def __len__(self) -> int:
        return len(self.lines)

    def some(self, count: int) -> pl.Series:
        """Return about `count` of the lines, spread over all of them."""
        return self.lines.gather_every(max(1, len(self.lines) // count)).head(count)

    def prove(self, pattern: str, *, at_most_once: list[str] | None = None) -> int:
        """Mark the lines that match, and in which no word of `at_most_once` stands twice; return how many."""
        if not len(self.lines):
            return 0
        matches = self.lines.str.contains(pattern).fill_null(value=False)
        for word in at_most_once or []:
            matches &= self.lines.str.count_matches(word, literal=True).fill_null(2) <= 1
        hits = matches.to_numpy()
        if self.places is None and hits.all():
            self.proven[:] = True
            self.lines = self.lines.clear()
            return len(hits)
        places = np.arange(len(self.lines)) if self.places is None else self.places
        self.proven[places[hits]] = True
        self.places = places[~hits]
        self.lines = self.lines.filter(~matches)
        return int(hits.sum())
