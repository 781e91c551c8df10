"""Migration of state whose declaration has changed: what may change, and how old state is converted.

A field may be added (it is empty), dropped, or widened: Int32 to Int64, Float32 to Float64. State is rewritten when it
is next touched, so a job with a lot of state starts at once. Any other change is rejected before the start, including a
dropped field that is declared again: it would find its old values in the state of some keys.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import polars as pl

from slackwater.operators.step_memory import Difference

_WIDER: Final = {
    name: tuple(wider[place + 1 :])
    for wider in (
        ("Int8", "Int16", "Int32", "Int64"),
        ("UInt8", "UInt16", "UInt32", "UInt64"),
        ("Float32", "Float64"),
    )
    for place, name in enumerate(wider)
}
DROPPED: Final = "dropped"
"""The recorded type of a field that was dropped; state that was not touched since still has its values."""
_TYPE: Final = re.compile(r"\b(U?Int\d+|Float\d+)\b")


def continues(stored: Mapping[str, str], mine: Mapping[str, str]) -> Difference | None:
    """Return the first field whose stored type cannot be converted to its declared one, or None."""
    for name, now in mine.items():
        before = stored.get(name, now)
        if before != now and not may_become(before, now):
            return Difference(part=f"state `{name}`", found=before, mine=now)
    return None


def may_become(before: str, now: str) -> bool:
    """Return whether a type, or a field with its types, can be widened to another."""
    if _TYPE.sub("#", before) != _TYPE.sub("#", now):
        return False
    pairs = zip(_TYPE.findall(before), _TYPE.findall(now), strict=True)
    return all(old == new or new in _WIDER[old] for old, new in pairs)


def conformed(rows: pl.DataFrame, types: pl.Schema) -> pl.DataFrame:
    """Return `rows` with exactly the columns of `types`: new columns are null, and narrower ones are widened.

    A column whose type cannot be converted to the declared one was dropped in between, so its values are discarded.
    """
    if rows.schema == types:
        return rows
    return rows.select(
        pl.col(name).cast(dtype)
        if name in rows.columns and may_become(str(rows.schema[name]), str(dtype))
        else pl.lit(None, dtype=dtype).alias(name)
        for name, dtype in types.items()
    )
