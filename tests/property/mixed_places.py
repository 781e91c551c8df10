"""What breaks ties between the results of a step: the places of the rows that they follow from."""

from __future__ import annotations

from typing import Any

import polars as pl

from slackwater.base.stable_hash import hash_columns
from slackwater.base.times import TIMESTAMP
from tests.property.mixed_steps import Step, Windows
from tests.property.mixed_values import KEY_TYPES, NAN, Key, KeyKind, Place, Row


def joined(name: str, left: Row | None, right: Row | None) -> Place:
    """Return the place of a pair."""
    return _place(name, left, right)


def of_match(name: str, first: Row, last: Row) -> Place:
    """Return the place of a match."""
    return _place(name, last, first)


def of_process(name: str, of: str, row: Row | None, number: int) -> Place:
    """Return the place of a result of a process; timers have no event. `of` is the hash of the key."""
    event = "\x01" if row is None else f"{row.place[0]}\x01{row.place[1]:019d}"
    return (f"{event}\x01{of}\x01{number:019d}\x02{name}", 0)


def of_window(step: Windows, name: str, kind: KeyKind, key: Key, bounds: tuple[int, int]) -> Place:
    """Return the place of a window: a hash, as windows of different keys follow from rows in no order."""
    times = dict(zip(("window_start", "window_end"), bounds, strict=True))
    return (f"{key_hash(step, kind, key, **times)}\x02{name}", 0)


def _place(name: str, *rows: Row | None) -> Place:
    """Return the place of a result that follows from rows: their places as text, then the name of the step."""
    texts = ["\x01" if row is None else f"{row.place[0]}\x01{row.place[1]:019d}" for row in rows]
    return ("\x01".join(texts) + f"\x02{name}", 0)


def key_hash(step: Step, kind: KeyKind, key: Key, **times: int) -> str:
    """Return the hash of a key, and of times."""
    known = KEY_TYPES[kind]
    value: Any = float("nan") if key == NAN else key
    types = (known.physical, known.dtype) if step.key == "a" else (pl.Int64(), pl.Int64())
    columns: dict[str, pl.Series] = {step.key: pl.Series([value], dtype=types[0]).cast(types[1])}
    columns |= {name: pl.Series([1_000 * at]).cast(TIMESTAMP) for name, at in times.items()}
    return str(hash_columns(pl.DataFrame(columns), [*columns])[0]).zfill(19)
