"""The matcher finds what a slow, obvious one finds, whatever the pattern and the rows."""

from __future__ import annotations

import polars as pl
from hypothesis import given

from slackwater.base.times import MAX_MS
from slackwater.eventtime.step_time import StepTime
from slackwater.operators.patterns.front import PatternFront
from slackwater.operators.patterns.matcher import decide
from slackwater.operators.patterns.spec import PatternDefinition, PatternSpec
from slackwater.operators.ports import ROWS, Port
from tests.property.pattern_model import Row, Sought
from tests.property.pattern_runs import defined
from tests.property.pattern_strategies import absences, rows, sought

SCHEMA = pl.Schema({"key": pl.String, "v": pl.Int64, "w": pl.Int64, "id": pl.Int64})


def found(spec: PatternSpec, stream: list[Row]) -> list[tuple[tuple[int, int], ...]]:
    """Return the rows of each match as (step, id)."""
    placed = [{**vars(row), "__ts": row.ts, "__part": row.partition, "__off": row.id} for row in stream]
    hidden = {"__ts": pl.Int64, "__part": pl.String, "__off": pl.Int64}
    frame = pl.DataFrame(placed, schema={**SCHEMA, **hidden})
    time = StepTime(previous_ms=-1, watermark_ms=-1, now_ms=0)
    taken = PatternFront(spec).take(frame, time, lambda part, function: function(part))
    known = spec.conform(taken.kept).sort("key", "__ts", "__part", "__off")
    matches = decide(known, spec.course, MAX_MS).matches
    ids = known["id"].to_numpy()[matches.row]
    made: list[list[tuple[int, int]]] = [[] for _ in matches.first]
    for number, step, row in zip(matches.number, matches.step, ids, strict=True):
        made[number].append((int(step), int(row)))
    return sorted(map(tuple, made))


def check(wanted: Sought, stream: list[Row]) -> None:
    ports = {ROWS: Port(schema=SCHEMA, keys=("key",))}
    spec = PatternDefinition(pattern=defined(wanted)).resolve("match", ports)
    expected = sorted(tuple((step, row.id) for step, row in match) for match in wanted.matches(stream))
    assert found(spec, stream) == expected


@given(sought(), rows())
def test_the_matches_are_those_of_a_slow_and_obvious_matcher(wanted: Sought, stream: list[Row]) -> None:
    check(wanted, stream)


@given(absences(), rows())
def test_the_absences_are_those_of_a_slow_and_obvious_matcher(wanted: Sought, stream: list[Row]) -> None:
    check(wanted, stream)
