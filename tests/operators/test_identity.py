"""A sink knows from the step, not from the names of columns, what tells the rows of an output apart."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import polars as pl
import pytest

import slackwater as sw
from slackwater.base.errors import DefinitionError
from slackwater.connectors.delivery import Expected
from slackwater.connectors.redis.sink.rows import RedisHashes
from slackwater.connectors.sink import DROP, Sink, SinkBatch, SinkWriter, Slot
from slackwater.engine.outputs.deliveries import _SlotWriter
from slackwater.operators.identity import Identity
from slackwater.plan.streams import Ended, Stream

WINDOW = Identity(keys=("id",), bounds=("window_start", "window_end"), version="pane_index", incidental=("watermark",))
COLUMNS = "id string, window_start timestamp, window_end timestamp, pane_index int, cents long, at timestamp"
REPLACING = {
    "SINK_KEYS_OVERWRITE of postgres": sw.sinks.postgres("postgresql://me@db/shop", "totals", upsert_on=["id"]),
    "SINK_KEYS_OVERWRITE of delta": sw.sinks.delta("lake/totals", merge_on=["id"]),
    "SINK_KEYS_OVERWRITE of kafka": sw.sinks.kafka("localhost:9092", "totals", key="id", tombstones=True),
    "REDIS_WINDOWS": sw.sinks.redis("redis://localhost", key="id", columns=["cents"]),
}


TOTALS = sw.stream("totals", sw.sources.log("data/totals")).decode(sw.formats.json(COLUMNS)).event_time("at")
"""Rows that were results of a window once, in another pipeline."""
PER_MINUTE = (
    TOTALS.select("id", "cents", "at")
    .key_by("id")
    .window(sw.tumbling("1m"), name="per_minute")
    .aggregate(cents=sw.sum("cents"))
)
ONCE = PER_MINUTE.key_by("id").deduplicate(within="1h", name="once")


def pipeline(rows: Stream, sink: Sink, *others: Ended) -> sw.Pipeline:
    return sw.Pipeline("copy", rows.to(sink), *others, TOTALS.dead_letters.drop())


@pytest.mark.parametrize("sink", REPLACING.values(), ids=list(REPLACING))
def test_plain_rows_may_have_the_columns_of_a_window(sink: Sink) -> None:
    pipeline(TOTALS, sink)


@pytest.mark.parametrize("code, sink", REPLACING.items(), ids=list(REPLACING))
def test_results_of_windows_may_not_overwrite_each_other(code: str, sink: Sink) -> None:
    with pytest.raises(DefinitionError, match=code.split(" ", maxsplit=1)[0]):
        pipeline(PER_MINUTE, sink, PER_MINUTE.late.drop())


def test_identity_follows_results_through_row_functions_but_not_into_the_next_step() -> None:
    memory = sw.sinks.memory()
    late = PER_MINUTE.late.drop()
    euros = PER_MINUTE.with_columns(euros="cents / 100")
    changed = pipeline(euros, memory, late, PER_MINUTE.dead_letters.drop()).plan()
    again = pipeline(ONCE, memory, late, ONCE.late.drop(), ONCE.duplicates.drop()).plan()
    assert [changed.slot(output).identity for output in changed.outputs if output.kind == "results"] == [WINDOW]
    assert {again.slot(output).identity for output in again.outputs} == {None}


def test_key_of_a_topic_is_checked_only_where_it_names_a_result() -> None:
    sink = sw.sinks.kafka("localhost:9092", "totals", key=["id", "window_start"])
    slot = Slot(pipeline="p", output="o", schema=pl.Schema())
    assert sink.replaced_by(slot) == ()
    assert sink.replaced_by(Slot(pipeline="p", output="o", schema=pl.Schema(), identity=WINDOW)) == sink.key


@pytest.mark.parametrize("identity, newest", [(WINDOW, "1"), (None, "2")], ids=["results", "plain rows"])
def test_hash_has_the_newest_result_and_of_plain_rows_the_last(identity: Identity | None, newest: str) -> None:
    late, early = (datetime(2026, 1, day, tzinfo=UTC) for day in (2, 1))
    rows = pl.DataFrame(
        {
            "id": ["a", "a"],
            "window_start": [early, early],
            "window_end": [late, early],
            "pane_index": 0,
            "cents": [1, 2],
        }
    )
    batch = SinkBatch(batch=0, schema=rows.schema, rows=2, frames=lambda: iter([rows]))
    slot = Slot(pipeline="p", output="o", schema=rows.schema, identity=identity)
    hashes = RedisHashes(key=("id",), columns=("cents", "window_end"), prefix=None)
    [chunk] = hashes.chunks(batch, slot, reserved="slackwater:")
    assert json.loads(chunk)["1"] == [newest]


def test_slot_of_an_executor_has_the_identity_of_the_drivers() -> None:
    opened: list[Slot] = []

    class Noting(sw.sinks.Sink):
        def open(self, slot: Slot) -> SinkWriter:
            opened.append(slot)
            return DROP.open(slot)

        def __str__(self) -> str:
            return "noting"

    class Held:
        def check(self) -> None:
            """Find that the job is still ours."""

    slot = Slot(pipeline="p", output="o", schema=pl.Schema({"id": pl.String()}), identity=WINDOW, delivered_before=True)
    mark = sw.sinks.Mark(incarnation="run", batch=0, token="token")  # noqa: S106  not a secret
    rows = SinkBatch(batch=0, schema=slot.schema, rows=0, frames=lambda: iter([]))
    write = _SlotWriter(sink=Noting(), slot=slot, expected={3: Expected(mark=mark, before=None)}, lease=Held())  # type: ignore[arg-type]
    write(2, rows)
    assert [(each.number, each.identity, each.delivered_before) for each in opened] == [(3, WINDOW, False)]
