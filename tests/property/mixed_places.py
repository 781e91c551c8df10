"""What breaks ties between the results of a step: the places of the rows that they follow from."""

from __future__ import annotations

from typing import Any

import polars as pl

from slackwater.ground.stable_hash import hash_columns
from slackwater.ground.times import TIMESTAMP
from tests.property.mixed_steps import Process, Step, Windows
from tests.property.mixed_values import KEY_TYPES, NAN, Key, KeyKind, Place, Row


def joined(name: str, left: Row | None, right: Row | None) -> Place:
    """Return the place of a pair."""
    return _place(name, left, right)


def of_match(name: str, first: Row, last: Row) -> Place:
    """Return the place of a match."""
    return _place(name, last, first)


def of_process(step: Process, name: str, kind: KeyKind, key: Key, at: int, row: Row | None, number: int) -> Place:
    """Return the place of a result of a process."""
    return (f"{_hash(kind, step, key, {'event_time': at}, is_key_first=False)}\x02{name}", number)


def of_window(step: Windows, name: str, kind: KeyKind, key: Key, start: int, end: int) -> Place:
    """Return the place of a window: a hash, as windows of different keys follow from rows in no order."""
    times = {"window_start": start, "window_end": end}
    return (f"{_hash(kind, step, key, times, is_key_first=True)}\x02{name}", 0)


def _place(name: str, *rows: Row | None) -> Place:
    """Return the place of a result that follows from rows: their places as text, then the name of the step."""
    texts = ["\x01" if row is None else f"{row.place[0]}\x01{row.place[1]:019d}" for row in rows]
    return ("\x01".join(texts) + f"\x02{name}", 0)


def _hash(kind: KeyKind, step: Step, key: Key, times: dict[str, int], *, is_key_first: bool) -> str:
    known = KEY_TYPES[kind]
    value: Any = float("nan") if key == NAN else key
    types = (known.physical, known.dtype) if step.key == "a" else (pl.Int64(), pl.Int64())
    columns = {step.key: pl.Series([value], dtype=types[0]).cast(types[1])}
    columns |= {name: pl.Series([1_000 * at]).cast(TIMESTAMP) for name, at in times.items()}
    order = [step.key, *times] if is_key_first else [*times, step.key]
    return str(hash_columns(pl.DataFrame(columns), order)[0]).zfill(19)
