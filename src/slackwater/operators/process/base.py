"""The base classes of user-defined processes, and the contexts that their methods receive."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import polars as pl

from slackwater.base.durations import Duration, Forever
from slackwater.formats.schemas import SchemaSpec
from slackwater.operators.process.state import Clock


class Context(ABC):
    """The context of one call of `on_event` or `on_timer`: the key, the times, timers, and further outputs."""

    key: Any
    """The value of the key; a tuple if it has several columns."""
    timer: str
    """In `on_timer`, the name of the timer."""

    @property
    @abstractmethod
    def event_time(self) -> datetime:
        """The time of the event; in `on_timer`, that of the timer.

        For a processing-time timer, it is the watermark, or the time of the call that set the timer if that is later
        or if a bounded run is ending.
        """

    @property
    @abstractmethod
    def watermark(self) -> datetime | None:
        """The watermark in effect; None before there is one."""

    @property
    @abstractmethod
    def processing_time(self) -> datetime:
        """The processing time of the batch, which is the same when the batch is replayed."""

    @abstractmethod
    def set_timer(self, when: datetime, *, clock: Clock = "event", name: str = "") -> None:
        """Call `on_timer` once the watermark has passed `when`, or processing time has reached it.

        So an event at `when` that is not late is processed before the timer. Unnamed timers are identified by their
        time, so there may be many. A name has one timer: setting it again moves it. A timer in the past fires when the
        watermark next moves. At the end of a bounded run, all timers fire; a timer that is set by one of them is
        dropped.
        """

    @abstractmethod
    def delete_timer(self, when: datetime | None = None, *, clock: Clock = "event", name: str = "") -> None:
        """Remove the timer with a time or a name, if it is set."""

    @abstractmethod
    def emit(self, output: str, row: Mapping[str, Any]) -> None:
        """Send a row, a dictionary like a result, to one of the outputs that the class declares."""


class Process:
    """Base class for your own code that processes the events of a key one by one.

    Class attributes declare state (`sw.value_state`, `list_state`, `set_state`, `map_state`) and further outputs
    (`sw.side_output`); in the methods, state attributes hold the values of the current key. All other attributes of an
    instance are configuration, which is copied to the workers: a method must not change them, because changes would
    neither belong to a key nor survive a restart.
    """

    def on_event(self, event: dict[str, Any], ctx: Context) -> Iterable[Mapping[str, Any]] | None:
        """Process one event of one key; yield results as dictionaries of the declared columns, None for null.

        Key columns may be left out.
        """
        raise NotImplementedError

    def on_timer(self, when: datetime, ctx: Context) -> Iterable[Mapping[str, Any]] | None:
        """Process a timer that is due; yield results as `on_event` does."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class FrameContext:
    """The context of `on_rows`."""

    watermark: datetime | None
    """The watermark in effect; None before there is one."""
    processing_time: datetime
    """The processing time of the batch, which is the same when the batch is replayed."""


class FrameProcess:
    """Base class for your own code that processes all events of a batch at once, as Polars frames.

    `state` declares the columns of one row of state per key, and `ttl` how long a row lives after it was last
    returned: by the watermark, or with `clock="processing"` in processing time; `sw.FOREVER` keeps it. There are no
    timers and no further outputs. All other attributes of an instance are configuration, as for `sw.Process`.
    """

    state: SchemaSpec | None = None
    ttl: Duration | Forever | None = None
    clock: Clock = "event"

    def on_rows(
        self, rows: pl.DataFrame, state: pl.DataFrame, ctx: FrameContext
    ) -> tuple[pl.DataFrame | None, pl.DataFrame]:
        """Process the events and the state of some keys; return results and the new state of these keys.

        Called once per key group and batch, or several times with different keys if the key group has a lot of state.
        `rows` have the stream's columns and `event_time`; `state` has the key columns and the declared ones, with a
        row for each key that has state. Results have the key columns, those of `output`, and `event_time`; without it,
        a result has the latest time of its key's rows. With `adds`, results are any of `rows`, with the added columns
        and otherwise unchanged. None means no results. A key that is missing from the new state is forgotten. Each key
        must be treated independently: after a failure the call is repeated with fewer keys, in the end with each alone.
        """
        raise NotImplementedError
