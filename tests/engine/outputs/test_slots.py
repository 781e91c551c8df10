"""The rows of a batch that is run again leave by the same key groups, and so by the same slots of the sinks."""

from __future__ import annotations

import random
from dataclasses import replace

import polars as pl
import pytest

import slackwater as sw
from slackwater.connectors.chunk import Chunk
from slackwater.connectors.source import Source
from slackwater.engine.front.front import Front
from slackwater.engine.key_groups import labels
from slackwater.engine.keyed.stage import Stage
from slackwater.engine.next_clock import first_clock
from slackwater.operators.state import packets
from slackwater.operators.state.packing import unpack
from slackwater.operators.state.store import DictStore
from slackwater.plan.plan import Plan
from slackwater.testing import rows_source
from slackwater.testing.harness import RowsSource

GROUPS = 4


class Placeless(RowsSource):
    """Rows without a place of their own, as those of a DataFrame."""

    has_places = False


def plan(source: Source, *, stages: int) -> Plan:
    """Return a plan of `stages` whose first step shows every row at once, whose rows go out as they are as well."""
    events = sw.stream("events", source).event_time("ts")
    trigger = sw.after_watermark(early=sw.after_count(1))
    counted = events.key_by("k").window(sw.tumbling("1s"), trigger=trigger, name="counted").aggregate(n=sw.count())
    ended = [events.to(sw.sinks.memory()), counted.to(sw.sinks.memory()), counted.late.drop()]
    last = events
    for number in range(stages):
        last = last.key_by("k").window(sw.tumbling("2s"), name=f"step-{number}").aggregate(n=sw.count())
        ended.append(last.late.drop())
    return sw.Pipeline(
        "slots", *ended, last.to(sw.sinks.memory()), events.dead_letters.drop(), key_groups=GROUPS
    ).plan()


def ways_out(plan: Plan, frame: pl.DataFrame) -> dict[tuple[str, int], list[str]]:
    """Return the keys of the rows that leave the last stage, by output and key group."""
    clock = replace(first_clock(plan), now_ms=0)
    front = Front(plan, plan.sources[0], clock)
    chunk = Chunk(frame=frame, partition="0", file="f", first_offset=0, source="events", ingestion_ms=0)
    flowing = [*front.process(chunk), *front.finish("0"), *map(packets.tick, labels(GROUPS))]
    for number in range(plan.stages):
        by_group: dict[int, list[packets.Packet]] = {}
        for packet in flowing:
            by_group.setdefault(packet.key_group, []).append(packet)
        left = {label: list(Stage(plan, number).run(label, by_group[label], DictStore(), clock)) for label in by_group}
        flowing = [packet for group in left.values() for packet in group]
    found: dict[tuple[str, int], list[str]] = {}
    for label, group in left.items():
        for packet in group:
            if packet.kind == "output":
                rows = unpack(packet.payload or b"", packet.target)
                found.setdefault((packet.target, label), []).extend(rows["k"].to_list())
    return {place: sorted(keys) for place, keys in found.items()}


ROWS = pl.DataFrame({"k": [f"user-{number}" for number in range(2_000)], "ts": [100] * 2_000})


@pytest.mark.parametrize("stages", [1, 2, 3])
def test_large_outputs_leave_by_the_same_groups_in_every_run(monkeypatch: pytest.MonkeyPatch, stages: int) -> None:
    """Polars groups in random order, so several runs in one process show whether anything depends on it."""
    monkeypatch.setattr(packets, "MOST_ROWS", 100)
    source = rows_source("k string, ts long")
    first = ways_out(plan(source, stages=stages), ROWS)
    assert len([label for output, label in first if output == "counted"]) == GROUPS
    for _ in range(5):
        assert ways_out(plan(source, stages=stages), ROWS) == first


@pytest.mark.parametrize("stages", [1, 2])
def test_rows_without_a_place_leave_by_the_same_groups_in_any_order(
    monkeypatch: pytest.MonkeyPatch, stages: int
) -> None:
    monkeypatch.setattr(packets, "MOST_ROWS", 100)
    source = Placeless(typed=rows_source("k string, ts long").typed)
    first = ways_out(plan(source, stages=stages), ROWS)
    dice = random.Random(0)
    for _ in range(3):
        order = list(range(ROWS.height))
        dice.shuffle(order)
        assert ways_out(plan(source, stages=stages), ROWS[order]) == first
