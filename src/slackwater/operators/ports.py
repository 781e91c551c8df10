"""The inputs of a keyed step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import polars as pl

ROWS: Final = "rows"
"""The name of the port of a step with a single port."""


@dataclass(frozen=True, kw_only=True)
class Port:
    """One input of a step: the columns of its rows, and which of them form the key."""

    schema: pl.Schema
    keys: tuple[str, ...]
    own: frozenset[str] = frozenset()
    """Columns that Slackwater added in the previous step; this step may replace them."""
    streams: tuple[str, ...] = ()
    """The streams and steps that the rows come from; more than one for a union."""
