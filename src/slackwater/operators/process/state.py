"""State of a key, as users declare it on their class and use it in its methods.

The declaration is a class attribute. Before the methods run, each instance gets its own cells under the same names,
which hold the values of the current key. Every change can be undone: an event on which the user's code fails
leaves no trace.
"""

# ruff: noqa: D102  the base class says what the methods do

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import Any, Final, Literal

import polars as pl

from slackwater.base.durations import Duration, Forever, duration_ms
from slackwater.base.errors import DefinitionError, refuse
from slackwater.formats.schemas import as_schema, short_type
from slackwater.operators.process.chunks import Tree
from slackwater.operators.process.values import Check, checker
from slackwater.operators.state.pieces import StepState

Clock = Literal["event", "processing"]
NEVER_MS: Final = 1 << 62
"""The time to live of state that is kept forever; longer than any other."""
Journal = list[tuple[Any, ...]]
"""The changes of a call: the changed objects, with the arguments of their method `undo`, to be applied in reverse."""


class Moment:
    """The time that is stored with writes, by one of the two clocks."""

    __slots__ = ("ms",)

    def __init__(self) -> None:
        self.ms = 0


class State(ABC):
    """The state of a key under one name; it is forgotten `ttl` after its last write."""

    kind: str
    """The name of the kind of state in a checkpoint."""
    moment: Moment
    journal: Journal
    dead_ms: int
    """Values written before this time are forgotten. It may move backwards, because events arrive out of order."""
    _checks: dict[str, Check]
    gone_ms = -NEVER_MS
    """Stored values written before this time are gone, for earlier events as well, even if a chunk still has them."""
    _label: str
    _home: StepState
    _name = ""
    """The class and the attribute that declare it."""
    tree: Tree | None = None
    """The chunks of the current key's entries, if there are so many that they are stored apart."""

    def __init__(self, *, ttl: Duration | Forever | None, clock: Clock, **types: object) -> None:
        call = f"sw.{self.kind}_state"
        if ttl is None:
            raise refuse("STATE_TTL", call=call)
        if clock not in ("event", "processing"):
            raise refuse("STATE_CLOCK", call=call, got=repr(clock))
        self.ttl_ms = NEVER_MS if isinstance(ttl, Forever) else duration_ms(ttl, what="`ttl`")
        self.clock = clock
        self.types = {name: state_type(given, call) for name, given in types.items()}
        if "key" in self.types and self.types["key"].is_nested():
            raise refuse("STATE_KEY_TYPE", call=call, dtype=self.types["key"])

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = f"{owner.__qualname__}.{name}"

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  never returns
        """Reject the use of a declaration: only a cell has values, in attributes that `bind` sets."""
        if any(name in getattr(cls, "__annotations__", {}) for cls in type(self).__mro__):
            raise refuse("STATE_UNBOUND", name=self._name or f"sw.{self.kind}_state(...)")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    def columns(self, name: str) -> pl.Schema:
        """Return the columns that store the state under `name`."""
        return pl.Schema({f"__{name}.{column}": dtype for column, dtype in self._parts().items()})

    def __str__(self) -> str:
        types = ", ".join(str(dtype) for dtype in self.types.values())
        return f"{self.kind} of {types}, {self.clock} time"

    def described(self) -> str:
        """Return the state in few characters, for `explain`; `str` is what the manifest compares."""
        types = ", ".join(short_type(dtype) for dtype in self.types.values())
        return f"{self.kind} of {types}, {self.clock} time"

    def bind(self, name: str, moment: Moment, journal: Journal, home: StepState) -> None:
        """Turn this copy of the declaration into a cell, for the values of one key after another; `home` has chunks."""
        self.moment, self.journal, self.dead_ms = moment, journal, -NEVER_MS
        self._label, self._home = name, home
        self._checks = {part: checker(dtype, f"state `{name}`") for part, dtype in self.types.items()}
        self.clear_unseen()

    def unbind(self) -> None:
        """Turn the cell back into a declaration, which has no values and rejects every use."""
        del self.moment, self.journal, self.dead_ms
        self.tree = None

    @abstractmethod
    def _parts(self) -> dict[str, pl.DataType]:
        """Return the columns of the state, by the suffixes of their names."""

    @abstractmethod
    def load(self, *parts: Any) -> None:  # noqa: ANN401  the user's own values
        """Load the values of a key from its state row; null if it has none."""

    @abstractmethod
    def dump(self) -> tuple[Any, ...]:
        """Return the values for the state row of the key, without those that are forgotten."""

    @abstractmethod
    def clear_unseen(self) -> None:
        """Forget everything without recording it in the journal."""

    @property
    @abstractmethod
    def oldest_ms(self) -> int | None:
        """The time of the oldest write, or the last of the chunk that expires first; None without values."""

    @abstractmethod
    def undo(self, *before: Any) -> None:  # noqa: ANN401  the user's own values
        """Undo a change, given its arguments from the journal."""


class ValueState(State):
    """One value per key."""

    kind = "value"
    _value: Any
    _at: int
    _check: Check
    _is_nested: bool

    def get(self) -> Any:  # noqa: ANN401  the user's own value
        """Return the value, or None."""
        if self._at < self.dead_ms:
            return None
        return copy.deepcopy(self._value) if self._is_nested else self._value

    def set(self, value: Any) -> None:  # noqa: ANN401  the user's own value
        """Replace the value; None clears it."""
        value = self._check(value)
        self.journal.append((self, self._value, self._at))
        at = self.moment.ms
        # A write never shortens the life of what it replaces, even if its call is behind the one that wrote that.
        self._value, self._at = value, at if self._value is None or self._at < at else self._at

    def clear(self) -> None:
        """Forget the value."""
        self.set(None)

    def _parts(self) -> dict[str, pl.DataType]:
        return {"value": self.types["value"], "at": pl.Int64()}

    def load(self, *parts: Any) -> None:  # noqa: ANN401  the user's own values
        self._value, self._at = parts
        if self._at is None:
            self._at = 0

    undo = load

    def dump(self) -> tuple[Any, ...]:
        if self._at < self.dead_ms:
            self._value = None
        return (None, None) if self._value is None else (self._value, self._at)

    def clear_unseen(self) -> None:
        self._is_nested, self._check = self.types["value"].is_nested(), self._checks["value"]
        self._value, self._at = None, 0

    @property
    def oldest_ms(self) -> int | None:
        return None if self._value is None else self._at


def state_type(given: object, call: str) -> pl.DataType:
    """Return the type of a state's values, from a Polars type, a Spark type name, or columns, which give a struct."""
    try:
        if isinstance(given, str) and " " in given.strip() and "<" not in given.split(" ", 1)[0]:
            return pl.Struct(as_schema(given))
        schema = as_schema(f"value {given}" if isinstance(given, str) else {"value": given})
    except DefinitionError as error:
        raise refuse("STATE_TYPE", call=call, got=repr(given)) from error
    if len(schema) != 1:
        raise refuse("STATE_TYPE", call=call, got=repr(given))
    return schema["value"]
