"""The declarations of a user's class by its attributes: state, and outputs in addition to the results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from slackwater.base.durations import Duration, Forever
from slackwater.base.errors import refuse
from slackwater.formats.schemas import SchemaSpec, as_schema
from slackwater.operators.process.state import Clock, State, ValueState
from slackwater.operators.process.state_of_entries import MapState, SetState
from slackwater.operators.process.state_of_several import ListState

RESERVED: Final = ("dead_letters", "late", "results", "rows")
"""The names of outputs that every step may have."""


@dataclass(frozen=True)
class SideOutputSpec:
    """An output of a process in addition to its results, with the columns of its rows."""

    schema: pl.Schema


def value_state(type: Any, *, ttl: Duration | Forever | None = None, clock: Clock = "event") -> ValueState:  # noqa: A002, ANN401  the name users expect; a Polars type or a name
    """Declare one value per key: `last = sw.value_state(pl.Float64, ttl="1h")`.

    The value is forgotten `ttl` after its last write, in event time or, with `clock="processing"`, in processing time;
    `sw.FOREVER` keeps it. Methods: `get`, `set`, `clear`.
    """
    return ValueState(ttl=ttl, clock=clock, value=type)


def list_state(type: Any, *, ttl: Duration | Forever | None = None, clock: Clock = "event") -> ListState:  # noqa: A002, ANN401  as above
    """Declare a list of values per key; each is forgotten `ttl` after it was added.

    Methods: `add`, `get`, `set`, `clear`, and `len`, `for`.
    """
    return ListState(ttl=ttl, clock=clock, value=type)


def set_state(type: Any, *, ttl: Duration | Forever | None = None, clock: Clock = "event") -> SetState:  # noqa: A002, ANN401  as above
    """Declare a set of values per key; each is forgotten `ttl` after it was last added.

    Methods: `add`, `remove`, `get`, `clear`, and `in`, `len`, `for`.
    """
    return SetState(ttl=ttl, clock=clock, key=type)


def map_state(
    key_type: Any,  # noqa: ANN401  as above
    value_type: Any,  # noqa: ANN401  as above
    *,
    ttl: Duration | Forever | None = None,
    clock: Clock = "event",
) -> MapState:
    """Declare a map of keys to values per key; each entry is forgotten `ttl` after it was last set.

    Methods: `get`, `set`, `remove`, `keys`, `values`, `items`, `clear`, and `in`, `len`, `for`.
    """
    return MapState(ttl=ttl, clock=clock, key=key_type, value=value_type)


def side_output(schema: SchemaSpec) -> SideOutputSpec:
    """Declare an output in addition to the results: `alerts = sw.side_output("card string, why string")`.

    `ctx.emit("alerts", {...})` sends a row to it; `results.output("alerts")` is the stream of its rows.
    """
    return SideOutputSpec(as_schema(schema))


def states_of(cls: type) -> dict[str, State]:
    """Return the state that a class and its parents declare, by name."""
    return {name: each for name, each in _attributes(cls).items() if isinstance(each, State)}


def side_outputs_of(cls: type) -> dict[str, pl.Schema]:
    """Return the outputs that a class and its parents declare, by name."""
    found = {name: each.schema for name, each in _attributes(cls).items() if isinstance(each, SideOutputSpec)}
    for name in found:
        if name in RESERVED:
            raise refuse("PROCESS_SIDE_NAME", cls=cls.__qualname__, name=name)
    return found


def declared_on_object(process: object) -> list[str]:
    """Return the names of state and outputs declared on an instance, which the step does not know about."""
    return [name for name, each in vars(process).items() if isinstance(each, State | SideOutputSpec)]


def _attributes(cls: type) -> dict[str, Any]:
    """Return the attributes of a class and its parents, parents first, in order of definition."""
    return {name: value for parent in reversed(cls.__mro__) for name, value in vars(parent).items()}
