"""The default outputs of a pipeline: where late rows and dead letters go that it does not end itself."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final, Literal

import polars as pl

from slackwater.base.errors import refuse
from slackwater.connectors.sink import Sink
from slackwater.formats.dead_letter_columns import DEAD_LETTER_SCHEMA
from slackwater.operators.late_rows import SHARED_LATE_SCHEMA

Kind = Literal["rows", "results", "late", "dead_letters"]
_SCHEMAS: Final = {"late": SHARED_LATE_SCHEMA, "dead_letters": DEAD_LETTER_SCHEMA}


@dataclass(frozen=True, kw_only=True, eq=False)
class Defaults:
    """The sink for each kind of output that a pipeline may leave open.

    All open outputs of a kind become one output. Its name is the kind and its columns are always the same, so a sink
    recognizes what it has received when steps are added, renamed or removed.
    """

    late: Sink | None = None
    dead_letters: Sink | None = None

    def __post_init__(self) -> None:
        for each in fields(self):
            given = getattr(self, each.name)
            if given is not None and not isinstance(given, Sink):
                raise refuse("NOT_A_SINK", got=repr(given))

    def sinks(self, kind: Kind) -> tuple[Sink, ...]:
        """Return the sink for outputs of a kind; none if the pipeline must end them itself."""
        sink = getattr(self, kind, None)
        return () if sink is None else (sink,)

    @staticmethod
    def schema(kind: Kind) -> pl.Schema:
        """Return the columns of the default output of a kind."""
        return _SCHEMAS[kind]

    @property
    def names(self) -> list[str]:
        """The names of the default outputs."""
        return [each.name for each in fields(self) if getattr(self, each.name) is not None]
