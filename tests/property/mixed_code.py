"""The users' code of chains of mixed steps: a process and accumulators that fail on some values."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, ClassVar

import polars as pl

import slackwater as sw
from slackwater.base.times import EPOCH
from tests.property.mixed_values import T0

MS = sw.duration("1ms")
FAILS_ON = 7
"""The value on which events and accumulators fail."""


class Walker(sw.Process):
    """Shows what it knows of a key; fails on some events, after it has changed everything."""

    count = sw.value_state("long", ttl=sw.FOREVER)
    seen = sw.list_state("long", ttl=sw.FOREVER)
    known = sw.map_state("string", "long", ttl=sw.FOREVER)

    def on_event(self, event: dict[str, Any], ctx: sw.Context) -> Iterator[dict[str, Any]]:
        v = event["v"] or 0
        n = (self.count.get() or 0) + 1
        self.count.set(n)
        self.seen.add(v)
        self.known.set(str(v), (self.known.get(str(v)) or 0) + 1)
        self._set_timers(v, ctx)
        tag = f"<{event['tag']} {n} {sum(self.seen.get())} {self.known.get(str(v))}>"
        yield {"tag": tag, "v": (v + n) % 10}
        if v == FAILS_ON:
            raise ValueError("on purpose")
        if v == 6:
            yield {"tag": f"{tag}again", "v": (v + n) % 10}

    def _set_timers(self, v: int, ctx: sw.Context) -> None:
        """Set no timer."""


class Timed(Walker):
    """Sets timers too; some of them fail."""

    def _set_timers(self, v: int, ctx: sw.Context) -> None:
        if v in (1, 4, FAILS_ON):
            ctx.set_timer(ctx.event_time + 3 * MS)
        if v == 5:
            ctx.set_timer(ctx.event_time + 6 * MS, name="t")
        if v == 8:
            ctx.delete_timer(name="t")

    def on_timer(self, when: datetime, ctx: sw.Context) -> Iterator[dict[str, Any]]:
        n = self.count.get() or 0
        self.count.set(n + 1)
        yield {"tag": f"<timer {ctx.timer} {(when - EPOCH) // MS - T0} {n}>", "v": n % 10}
        if n % 4 == 3:
            raise ValueError("on purpose")


class Fussy(sw.Accumulator):
    """A sum that fails on one value."""

    output: ClassVar[Any] = pl.Int64()

    def create(self) -> int:
        return 0

    def add(self, acc: int, value: int) -> int:
        if value == FAILS_ON:
            raise ValueError("on purpose")
        return acc + value

    def merge(self, a: int, b: int) -> int:
        return a + b

    def result(self, acc: int) -> int:
        return acc


class Picky(Fussy):
    """A sum that fails on one value, and when the result is asked for some sums."""

    def result(self, acc: int) -> int:
        if acc % 5 == 3:
            raise ValueError("on purpose")
        return acc
