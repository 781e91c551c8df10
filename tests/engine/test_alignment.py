"""Streams that wait for slower ones: `max_drift`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import polars as pl
import pytest

import slackwater as sw
from slackwater.base.times import MIN_MS
from slackwater.connectors.source import Source
from slackwater.engine.alignment import Ahead, ahead
from slackwater.eventtime.clock import Clock, PartitionTime, StreamTime
from slackwater.plan.streams import Stream

MINUTE: Final = 60_000


def rows(name: str, **time: Any) -> Stream:  # noqa: ANN401  as event_time's
    return sw.stream(name, sw.testing.rows_source("k string, t timestamp")).event_time("t", **time)


def pipeline(*, drift: str | None = "10m", other_drift: str | None = None, apart: bool = False) -> sw.Pipeline:
    fast, slow, another = rows("fast", max_drift=drift), rows("slow", max_drift=other_drift), rows("another")
    met, unmet = (another, slow) if apart else (slow, another)
    pairs = fast.key_by("k").join(met.key_by("k"), between=("0s", "1m"), name="pairs")
    letters = [each.dead_letters.drop() for each in (fast, slow, another)]
    memory = sw.sinks.memory()
    return sw.Pipeline("aligned", pairs.to(memory), pairs.late.drop(), unmet.to(memory), *letters)


def at(minute: int | None, *, is_idle: bool = False) -> StreamTime:
    ms = MIN_MS if minute is None else minute * MINUTE
    return StreamTime(watermark_ms=ms, partitions={"0": PartitionTime(max_ts_ms=ms, is_idle=is_idle)})


def waiting(
    fast: StreamTime,
    slow: StreamTime,
    *,
    brings: Callable[[str], bool] = lambda _: True,
    **definition: Any,  # noqa: ANN401  as pipeline takes it
) -> dict[str, Ahead]:
    clock = Clock(batch=1, streams={"fast": fast, "slow": slow, "another": at(None)})
    return ahead(pipeline(**definition).plan(), clock, brings=brings)


def test_stream_waits_while_it_is_further_ahead_than_it_may_be() -> None:
    assert waiting(at(30), at(20)) == {}
    assert waiting(at(31), at(20)) == {"fast": Ahead(of="slow", by_ms=11 * MINUTE)}


def test_only_the_stream_that_asks_for_it_waits() -> None:
    assert waiting(at(20), at(60)) == {}
    assert waiting(at(60), at(20), drift=None, other_drift="1m") == {}
    assert waiting(at(20), at(60), other_drift="0s") == {"slow": Ahead(of="fast", by_ms=40 * MINUTE)}


def test_no_stream_waits_for_one_that_had_no_event_or_is_idle_or_has_no_more() -> None:
    assert waiting(at(60), at(None)) == {}
    assert waiting(at(60), at(20, is_idle=True)) == {}
    assert waiting(at(60), at(20), brings=lambda stream: stream != "slow") == {}


def test_streams_that_meet_in_no_step_do_not_wait_for_each_other() -> None:
    assert waiting(at(60), at(20), apart=True) == {}


def test_explain_shows_it() -> None:
    assert "more than 10m ahead of a stream it meets: waits, unread" in pipeline().explain()


def test_a_stream_that_meets_no_other_cannot_drift_from_it() -> None:
    alone = rows("alone", max_drift="1m")
    counts = alone.key_by("k").window(sw.tumbling("1m")).aggregate(n=sw.count())
    with pytest.raises(sw.DefinitionError, match=r"^\[DRIFT_ALONE\].* stream `alone` is not combined"):
        sw.Pipeline("alone", counts.to(sw.sinks.memory()), counts.late.drop(), alone.dead_letters.drop())


class Table(Source):
    """A source that Spark cannot limit."""

    @property
    def schema(self) -> pl.Schema:
        return pl.Schema({"k": pl.String(), "t": pl.Int64()})

    def __str__(self) -> str:
        return "table t"


def test_a_source_that_cannot_wait_is_refused() -> None:
    table, other = sw.stream("table", Table()).event_time("t", max_drift="1m"), rows("other")
    pairs = table.key_by("k").join(other.key_by("k"), between=("0s", "0s"))
    ends = [pairs.to(sw.sinks.memory()), pairs.late.drop(), table.dead_letters.drop(), other.dead_letters.drop()]
    with pytest.raises(sw.DefinitionError, match=r"^\[DRIFT_SOURCE\].*stream `table`, which reads table t; remove it"):
        sw.Pipeline("p", *ends)
