"""The contract between the engine and a sink.

Once a batch is fully evaluated, each of its outputs goes to its sinks. After a crash a batch may be replayed with the
same rows; the protocol in `delivery`, the same for all sinks, keeps them from being written twice. A sink supplies
the operations it needs: open a slot, return the slot's last mark, write rows and a mark together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Final, Literal

import polars as pl

from slackwater.base.durations import render_ms
from slackwater.base.stored import AnotherVersionError, DamageError, shaped
from slackwater.operators.identity import Identity

Change = Literal["append", "update", "retract"]
Delivery = Literal["exactly_once", "at_least_once", "at_most_once"]

MARK_FORM: Final = 1
"""The version of stored marks."""
EVERYTHING: Final[frozenset[Change]] = frozenset({"append", "update", "retract"})


class Unavailable(Exception):  # noqa: N818  a signal from a sink, not the error the job fails with
    """Raised by a writer for a transient failure: an unavailable server, a lost connection.

    The slot is closed, reopened after a delay, and asked for its mark, so it does not matter whether the interrupted
    write succeeded.
    """


class DamagedMarkError(DamageError):
    """A mark stored in a sink is damaged, or of another version of Slackwater."""


class MarkOfAnotherVersionError(DamagedMarkError, AnotherVersionError):
    """A mark stored in a sink is of another version of Slackwater."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A check, made before rows are sent, that a sink can write them."""

    rule: str
    """Everything the check depends on: equal rules give the same verdict on equal rows."""
    check: Callable[[pl.DataFrame], object]
    """Raises if a row has a value that cannot be written."""


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A record committed together with a batch's rows, as proof that they were delivered."""

    incarnation: str
    """Created with every new checkpoint, so that a new run under an old name is never mistaken for a redelivery."""
    batch: int
    token: str
    """A hash of the batch's offsets: two copies of a checkpoint may share batch numbers, but not tokens."""

    def as_dict(self) -> dict[str, Any]:
        """Return the mark as sinks store it."""
        return {"form": MARK_FORM, "incarnation": self.incarnation, "batch": self.batch, "token": self.token}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Mark:
        """Return a stored mark; raises `DamagedMarkError` if it is not one."""
        try:
            form = int(stored.get("form", MARK_FORM))
            found = {name: stored[name] for name in ("incarnation", "batch", "token")}
            mark: Mark = shaped({**found, "batch": int(found["batch"])}, cls)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise DamagedMarkError(f"{str(stored)[:80]} is not a mark") from error
        if form != MARK_FORM:
            raise MarkOfAnotherVersionError.of(form, known=MARK_FORM)
        return mark


@dataclass(frozen=True, kw_only=True)
class Slot:
    """One path into a sink: rows are always split over slots the same way, and each slot has its own mark.

    Slot 0 is the driver's, for batches written in one go; slots 1 and up are the executors'.
    """

    pipeline: str
    output: str
    schema: pl.Schema
    identity: Identity | None = None
    """The columns that identify a row, if the rows are results of a step that declares them."""
    number: int = 0
    behind: int | None = None
    """The value `SinkWriter.behind` returned when it was last recorded."""
    delivered_before: bool = False
    """Whether this run has written here before; if so, a missing target was removed and must not be recreated."""


@dataclass(kw_only=True)
class SinkBatch:
    """The rows of one output in one batch, or the subset that belongs to one slot."""

    batch: int
    schema: pl.Schema
    rows: int
    frames: Callable[[], Iterator[pl.DataFrame]]
    """The rows, as a sequence of bounded frames; can be iterated again."""
    is_stopping: Callable[[], bool] = lambda: False
    """Whether the job was asked to stop; check it while waiting inside `write`, and raise `StoppedWaitingError`."""
    check_owner: Callable[[], None] = lambda: None
    """Raises if another driver now runs this job; for sinks that cannot fence a writer themselves."""
    in_parallel: Callable[[Callable[[int, SinkBatch], None]], Any] | None = None
    """For a large batch on the driver: runs a function over (part number, rows of the part) on the executors."""
    spark_frame: Callable[[], Any] | None = None
    """The rows as a PySpark DataFrame, on the driver; None outside Spark."""


class SinkWriter(ABC):
    """An open slot of a sink: on the driver for the lifetime of the job, on an executor for one batch."""

    def mark(self) -> Mark | None:
        """Return the last mark committed in this slot; None if there is none, or the sink keeps no marks."""
        return None

    @abstractmethod
    def write(self, batch: SinkBatch, mark: Mark | None) -> None:
        """Write the rows, and the mark unless it is None, in one transaction: all or nothing.

        Returns when they are durable. Raises `Unavailable` for transient failures, anything else for permanent ones.
        """

    def behind(self) -> int | None:
        """Return the last batch that wrote to this sink's secondary sink, such as the one for refused rows, or None.

        The checkpoint records it, so that a lost mark in that sink is detected.
        """
        return None

    def close(self) -> None:  # noqa: B027  most sinks hold nothing
        """Release connections and discard anything uncommitted."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Sink(ABC):
    """A sink as users define it; it is sent to the executors, so it holds no connections."""

    for_retractions: ClassVar[str] = ""
    """How to make a sink of this kind accept retractions, if it can."""
    after_another_run: ClassVar[str] = (
        "choose another target, or restart with --take-over to keep the existing rows and append"
    )
    """What to do about a target that holds the rows of another run."""
    shown_options: ClassVar[tuple[str, ...]] = ()
    """Attributes that `explain` shows if they are not the default; never one that may hold a secret."""
    takes: frozenset[Change] = frozenset({"append"})
    """What a row may do to earlier ones: add to them (`append`), replace (`update`), withdraw (`retract`)."""
    delivery: Delivery = "at_least_once"
    """The guarantee of the sink: `exactly_once`, `at_least_once` or `at_most_once`."""
    keeps_marks: bool = True
    """Whether slots store marks; a sink with idempotent rows is exactly once without them."""
    has_slots: bool = False
    """Whether executors may write a large batch in parallel, each through its own slot."""
    retry_for_ms: int = 300_000
    """How long a batch waits for an unavailable sink before the job fails."""

    def __post_init__(self) -> None:
        # A subclass that is not a dataclass sets class attributes, over which the inherited constructor puts defaults.
        for each in fields(self):
            value = getattr(type(self), each.name, each.default)
            if value is not each.default and getattr(self, each.name) is each.default:
                object.__setattr__(self, each.name, value)

    @property
    def place(self) -> str | None:
        """The target that only this sink may write to, such as a folder; None if outputs may share it."""
        return None

    def replaced_by(self, slot: Slot) -> tuple[str, ...]:  # noqa: ARG002  most sinks ignore the slot, or only append
        """Return the columns that identify the earlier row a new one replaces; none if rows are only added."""
        return ()

    @property
    def promise(self) -> str:
        """The delivery guarantee as shown by `explain`."""
        return self.delivery.replace("_", " ")

    @property
    def uses_marks(self) -> bool:
        """Whether slots store marks; otherwise every delivery is written."""
        return self.delivery == "exactly_once" and self.keeps_marks

    @property
    def name(self) -> str:
        """The name of the sink within its output; it does not change when the sink's server moves."""
        return self.place or type(self).__name__

    def chosen(self) -> str:
        """Return the options in `shown_options` that are not the default, as the line that `explain` shows."""
        defaults = {each.name: each.default for each in fields(self)}
        found = {name: getattr(self, name) for name in (*self.shown_options, "retry_for_ms")}
        return "; ".join(
            _option_words(name, value)
            for name, value in found.items()
            if not _is_nothing(value) and value != defaults.get(name)
        )

    def check(self, slot: Slot) -> None:  # noqa: B027  most sinks take any rows
        """Reject unwritable rows when the pipeline is built, and keys by which results would overwrite each other."""

    def trial(self, slot: Slot) -> Trial | None:  # noqa: ARG002  most sinks write any value
        """Return a check that finds unwritable rows, which become dead letters; None if all rows are writable."""
        return None

    @property
    def needs_spark(self) -> bool:
        """Whether preparing the sink requires a Spark session; otherwise it is prepared before Spark starts."""
        return False

    def session_conf(self) -> dict[str, str]:
        """Return the Spark settings that a session needs for this sink."""
        return {}

    def prepare(self, slot: Slot) -> None:  # noqa: B027  most sinks need nothing
        """Check the sink's target, or create it if asked to; called once, before the first batch."""

    def last_mark(self, slot: Slot) -> Mark | None:  # noqa: ARG002  most sinks cannot read a mark this cheaply
        """Return the last mark of a slot without opening it, so that a job can check it before Spark starts.

        None, the default, leaves the check to `open`, after Spark has started.
        """
        return None

    def check_take_over(self, found: Mark, batch: int) -> None:  # noqa: B027  most sinks take any batch
        """Raise if `batch` cannot follow the batch of `found`, another run's mark, even with --take-over."""

    @abstractmethod
    def open(self, slot: Slot) -> SinkWriter:
        """Open a slot, and fence its previous writer."""

    @abstractmethod
    def __str__(self) -> str:
        """Return the sink as shown by `explain`."""


class _Dropped(SinkWriter):
    def write(self, batch: SinkBatch, mark: Mark | None) -> None:
        """Do nothing: the engine has counted the rows."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Drop(Sink):
    """The sink of `.drop()`: rows are counted and discarded."""

    takes: frozenset[Change] = EVERYTHING

    def open(self, slot: Slot) -> SinkWriter:  # noqa: ARG002  nothing to open
        """Open nothing."""
        return _Dropped()

    def __str__(self) -> str:
        return "dropped (counted)"


DROP: Final = Drop()


def _is_nothing(value: object) -> bool:
    """Return whether an option has the same effect as leaving it out; a duration of 0 does not."""
    if isinstance(value, Sink):
        return not value.chosen()
    return value is None or value is False or value in ((), {})


def _option_words(name: str, value: Any) -> str:  # noqa: ANN401  sinks have any options
    """Return an option and its value; only the names of headers and settings, whose values may be confidential."""
    option = name.removesuffix("_ms")
    match value:
        case True:
            return option
        case Sink():
            return f"{option} ({value.chosen()})"
        case int() if option != name:
            text = render_ms(value)
        case Mapping() | tuple() | list():
            text = ", ".join(str(each[0] if isinstance(each, tuple) else each) for each in value)
        case str() | int() | float():
            text = str(value)
        case _:
            # Without its own __str__, a class would print its fields or its memory address.
            kind: Any = type(value)
            text = kind.__name__ if kind.__str__ is object.__str__ else str(value)
    return f"{option} {text if text.isprintable() and text.strip() else repr(text)}"
