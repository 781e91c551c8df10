"""The base classes of a user's own process, and what their methods are given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import polars as pl

from slackwater.formats.schemas import SchemaSpec
from slackwater.ground.durations import Duration, Forever
from slackwater.process.state import Clock


class Context(ABC):
    """What `on_event` and `on_timer` know besides the event, and what they can do besides yielding results."""

    key: Any
    """The value of the key; a tuple if there are several columns."""
    timer: str
    """In `on_timer`, the name of the timer."""

    @property
    @abstractmethod
    def event_time(self) -> datetime:
        """The time of the event; in `on_timer`, that of the timer.

        In a timer of processing time, the watermark, or the event time of what has set it if that is later or if a
        bounded run is at its end.
        """

    @property
    @abstractmethod
    def watermark(self) -> datetime | None:
        """The watermark in force; None before there is one."""

    @property
    @abstractmethod
    def processing_time(self) -> datetime:
        """The time of the batch, which is the same when the batch is run again."""

    @abstractmethod
    def set_timer(self, when: datetime, *, clock: Clock = "event", name: str = "") -> None:
        """Call `on_timer` when the watermark, or processing time, has reached `when`.

        Without a name there may be many timers, one for each time. A name has one timer: setting it again moves it.
        A timer in the past fires when the watermark next moves. At the end of a bounded run those fire that are set;
        one that is set by them is dropped.
        """

    @abstractmethod
    def delete_timer(self, when: datetime | None = None, *, clock: Clock = "event", name: str = "") -> None:
        """Remove the timer of a time, or of a name; one that is not set is no mistake."""

    @abstractmethod
    def emit(self, output: str, row: Mapping[str, Any]) -> None:
        """Send a row to one of the outputs that the class declares: a dictionary, as results are."""


class Process:
    """Base class for your own code on the events of a key, one after the other.

    Class attributes declare state (`sw.value_state`, `list_state`, `set_state`, `map_state`) and further outputs
    (`sw.side_output`); in the methods they hold the values of the key at hand. Whatever else an instance holds is
    configuration, which is copied to the workers: a method must not change it, for the changes would neither stay with
    a key nor survive a restart.
    """

    def on_event(self, event: dict[str, Any], ctx: Context) -> Iterable[Mapping[str, Any]] | None:
        """Take one event of one key; yield results as dictionaries of the declared columns, None for null.

        Columns of the key may be left out.
        """
        raise NotImplementedError

    def on_timer(self, when: datetime, ctx: Context) -> Iterable[Mapping[str, Any]] | None:
        """Take a timer that is due; yield results as `on_event` does."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class FrameContext:
    """What `on_rows` knows besides rows and state."""

    watermark: datetime | None
    """The watermark in force; None before there is one."""
    processing_time: datetime
    """The time of the batch, which is the same when the batch is run again."""


class FrameProcess:
    """Base class for your own code on all events of a batch at once, as Polars frames.

    `state` declares the columns of one row of state per key, and `ttl` how long a row lives after it was last
    returned: by the watermark, or with `clock="processing"` in processing time; `sw.FOREVER` keeps it. There are no
    timers and no further outputs. Whatever else an instance holds is configuration, as for `sw.Process`.
    """

    state: SchemaSpec | None = None
    ttl: Duration | Forever | None = None
    clock: Clock = "event"

    def on_rows(
        self, rows: pl.DataFrame, state: pl.DataFrame, ctx: FrameContext
    ) -> tuple[pl.DataFrame | None, pl.DataFrame]:
        """Take the events of some keys and the state of these keys; return results and their new state.

        Called once for each key group and batch, or a few times, with other keys each, where the key group holds much
        state. `rows` have the stream's columns and `event_time`; `state` has the key columns and the declared ones,
        with a row for each of the keys that has state. Results have the key columns, those of `output`, and
        `event_time`; without it, a result has the latest time of its key's rows. None stands for no results. A key
        that the new state does not have is forgotten. Each key must be treated independently: after a failure the
        call is repeated with fewer keys, at last with each alone.
        """
        raise NotImplementedError
