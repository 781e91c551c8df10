"""Names: whatever users call their keys, aggregates and columns works, or is refused when the pipeline is built."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, Literal

import polars as pl
import pytest

import slackwater as sw
from slackwater.connectors.http.sink.requests import Requests
from slackwater.connectors.kafka.sink.records import JsonValues
from slackwater.connectors.sink import Sink, Slot
from slackwater.formats.schemas import as_schema, to_spark_ddl
from slackwater.operators.aggregates import Aggregate
from slackwater.operators.windows.spec import Accumulation
from slackwater.plan.streams import Ended, Results, Stream
from slackwater.testing import Harness, SinkHarness, rows_source
from slackwater.windows import Window

AWKWARD = [
    "a",
    "start",
    "end",
    "was",
    "place",
    "row",
    "by",
    "a.b",
    "a.b.int",
    "a(",
    "a\\",
    "^a",
    "$",
    "select",
    "two words",
    "line\nbreak",
    "tab\t",
    'quo"te',
    "apos'trophe",
    "back`tick",
    "{brace}",
    "%s",
    "größe",
    "数量",
    "🌊",
    "_x",
    "0",
    "x" * 300,
]
PLAIN = [f"c{at}" for at in range(len(AWKWARD))]
KINDS = [sw.sum, sw.first, sw.collect_list, lambda column: sw.top(1, by=column), sw.mean]
WINDOWS: list[Window] = [
    sw.tumbling("1s"),
    sw.hopping("2s", every="1s"),
    sw.cumulative("2s", every="1s"),
    sw.sliding("1s"),
    sw.session("1s"),
    sw.session(pl.lit(1000), max_length="5s"),
    sw.global_window(),
]


def shown(names: list[str], window: Window, accumulation: Accumulation) -> list[list[Any]]:
    """Return results and late rows of a step whose keys have these `names`, and of one whose aggregates have them.

    Three rows: on time, a correction within the allowed lateness, and one that is late for good.
    """
    texts = sw.stream("texts", rows_source(dict.fromkeys(names, pl.String()) | {"ts": pl.Int64()})).event_time("ts")
    numbers = sw.stream("numbers", rows_source(dict.fromkeys(names, pl.Int64()) | {"ts": pl.Int64()})).event_time("ts")
    is_global = window == sw.global_window()
    options: dict[str, Any] = {"accumulation": accumulation, "allowed_lateness": "0s" if is_global else "3s"}
    options["trigger"] = sw.after_count(1) if is_global else None
    steps: list[Results] = [texts.key_by(*names).window(window, name="keys", **options).aggregate(n=sw.count())]
    aggregates = {name: KINDS[at % len(KINDS)](pl.col(name)) for at, name in enumerate(names)}
    steps.append(numbers.key_by("ts").window(window, name="aggregates", **options).aggregate(**aggregates))
    outputs = [out for step in steps for out in (step, step.late)]
    ends = [out.to(sw.sinks.memory()) for out in (*outputs, texts.dead_letters, numbers.dead_letters)]
    harness = Harness(sw.Pipeline("p", *ends, key_groups=1))
    for ts, watermark in ((100, 1500), (100, 90_000), (300, 90_001)):
        harness.send("texts", [dict.fromkeys(names, "x") | {"ts": ts}])
        harness.send("numbers", [{name: at for at, name in enumerate(names)} | {"ts": ts}])
        harness.run_batch()
        harness.advance_watermark(watermark)
    harness.finish()
    assert all(harness.output(step).height for step in steps)
    assert all(harness.output(step.late).height == (0 if is_global else 1) for step in steps)
    return [_values(harness.output(out).to_dicts()) for out in outputs]


def _values(value: Any) -> Any:  # noqa: ANN401  whatever a row holds
    """Return `value` without the names in it."""
    if isinstance(value, dict):
        return [_values(item) for item in value.values()]
    return [_values(item) for item in value] if isinstance(value, list) else value


ONE_OF_A_KIND = [
    window for window in WINDOWS if str(window).startswith(("hopping", "sliding", "session gap 1s", "global"))
]
ACCUMULATIONS: list[Accumulation] = ["discarding", "accumulating", "retracting"]
CASES = [
    pytest.param(
        window,
        accumulation,
        # Retractions have the most columns; the others are tried with one window, windows with one of their kind.
        marks=[]
        if window == WINDOWS[0] or (accumulation == "retracting" and window in ONE_OF_A_KIND)
        else [pytest.mark.long],
    )
    for window, accumulation in product(WINDOWS, ACCUMULATIONS)
    if not (accumulation == "discarding" and str(window).startswith("sliding"))
]


@pytest.mark.parametrize("window, accumulation", CASES, ids=lambda value: str(value)[:30])
def test_name_of_a_key_an_aggregate_or_a_column_makes_no_difference(window: Window, accumulation: Accumulation) -> None:
    assert shown(AWKWARD, window, accumulation) == shown(PLAIN, window, accumulation)


NEVER = ["", "*", "^a$", "^.*$", "nul\x00", "half \ud800"]
"""What Polars takes for several columns, and what cannot leave Python."""
EVENTS = sw.stream("s", rows_source("k string, ts long, v long")).event_time("ts")
GIVEN: dict[str, Callable[[str], object]] = {
    "a schema": lambda name: rows_source({name: pl.Int64()}),
    "DDL": lambda name: sw.formats.json(f"`{name}` long"),
    "a field": lambda name: rows_source({"s": pl.Struct({name: pl.Int64()})}),
    "with_columns": lambda name: built(EVENTS.with_columns(**{name: "v"})),
    "select": lambda name: built(EVENTS.select(**{name: "v"})),
    "map": lambda name: built(EVENTS.map(lambda rows: rows, output={name: pl.Int64()})),
    "an aggregate": lambda name: built(counted(EVENTS, **{name: sw.count()})),
}


def counted(stream: Stream, **aggregates: Aggregate) -> Results:
    return stream.key_by("k").window(sw.tumbling("1s"), name="counted").aggregate(**aggregates)


def built(made: Stream, *more: Ended) -> None:
    late = [made.late.drop()] if isinstance(made, Results) else []
    sw.Pipeline("p", made.to(sw.sinks.memory()), *late, *more, EVENTS.dead_letters.drop()).plan()


@pytest.mark.parametrize("place", GIVEN)
@pytest.mark.parametrize("name", NEVER, ids=repr)
def test_name_that_means_no_column_is_refused_when_the_pipeline_is_built(name: str, place: str) -> None:
    with pytest.raises(sw.DefinitionError) as caught:
        GIVEN[place](name)
    assert caught.value.code in ("COLUMN_NAME", "BAD_SCHEMA")


@pytest.mark.parametrize("name", ["window_start", "window_end", "pane", "pane_index", "is_retraction", "k"])
def test_aggregate_with_a_name_of_ours_or_of_the_key_is_refused(name: str) -> None:
    with pytest.raises(sw.DefinitionError, match=f"got `{name}` in step `counted`") as caught:
        built(counted(EVENTS, **{name: sw.count()}))
    assert caught.value.code == "AGGREGATE_NAME_TAKEN"


def test_aggregate_with_a_name_that_begins_as_our_own_columns_is_refused_for_that() -> None:
    with pytest.raises(sw.DefinitionError, match=r"RESERVED_COLUMN.*start with `__` are reserved .*; got `__x`"):
        built(counted(EVENTS, __x=sw.count()))


@pytest.mark.parametrize("name", ["event_time", "late_by_ms", "windows", "step"])
def test_result_with_a_name_that_late_rows_have_is_refused_by_the_next_step(name: str) -> None:
    first = counted(EVENTS, **{name: sw.count()})
    second = first.key_by("k").window(sw.tumbling("1m"), name="next").aggregate(n=sw.count())
    with pytest.raises(sw.DefinitionError, match=f"the rows of step `next` already have a column `{name}`") as caught:
        built(second, first.late.drop())
    assert caught.value.code == "LATE_COLUMN_TAKEN"


def test_aggregates_that_differ_in_capitals_alone_are_refused() -> None:
    with pytest.raises(sw.DefinitionError, match="got `N` after `n` in the rows of step `counted`") as caught:
        built(counted(EVENTS, n=sw.count(), N=sw.sum("v")))
    assert caught.value.code == "DUPLICATE_COLUMN"


ROW = pl.DataFrame({name: [at] for at, name in enumerate(AWKWARD)})
SLOT = Slot(pipeline="p", output="o", schema=ROW.schema)


def test_names_are_the_keys_of_json() -> None:
    expected = {name: at for at, name in enumerate(AWKWARD)}
    assert json.loads(JsonValues().encode(ROW)[0]) == expected
    [[request]] = [lane for lane in Requests(slot=SLOT, run="r", batch=0, key=(), batch_rows=1)._lanes(ROW) if lane]
    assert json.loads(request.body) == expected


@pytest.mark.parametrize("form", ["parquet", "json"])
def test_names_are_those_of_files(tmp_path: Path, form: Literal["parquet", "json"]) -> None:
    with SinkHarness(sink=sw.sinks.files(tmp_path, format=form), schema=ROW.schema) as job:
        job.deliver(ROW)
    assert sw.sinks.read_files(tmp_path).collect().to_dicts() == ROW.to_dicts()


REFUSED: dict[str, tuple[Sink, set[str]]] = {
    "postgres": (sw.sinks.postgres("postgresql://u@h/d", "t", create=True), {"x" * 300}),
    "delta": (sw.sinks.delta("/lake/t"), {name for name in AWKWARD if any(sign in name for sign in " ,;{}()\n\t=")}),
    "redis": (sw.sinks.redis("redis://h", key="k"), set()),
    "kafka": (sw.sinks.kafka("h:1", "t", key="k"), set()),
    "http": (sw.sinks.http("http://h/x", key="k", rejected=sw.sinks.memory()), set()),
    "avro": (
        sw.sinks.kafka("h:1", "t", value=sw.formats.avro()),
        {name for name in AWKWARD if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name)},
    ),
}


@pytest.mark.parametrize("sink", REFUSED)
def test_sink_takes_a_name_or_refuses_it_when_the_pipeline_is_built(sink: str) -> None:
    made, expected = REFUSED[sink]
    refused = set()
    for name in AWKWARD:
        try:
            made.check(Slot(pipeline="p", output="o", schema=pl.Schema({"k": pl.Int64(), name: pl.Int64()})))
        except sw.DefinitionError:
            refused.add(name)
    assert refused == expected


def test_names_are_quoted_in_spark_s_ddl() -> None:
    ddl = to_spark_ddl(ROW.schema)
    assert as_schema(ddl) == ROW.schema
    assert "`back``tick` bigint" in ddl


SCHEMA = {"k": pl.String(), "ts": pl.Int64(), "a": pl.Int64(), "b": pl.Int64(), "n": pl.Int64()}


@pytest.mark.parametrize("name", ["2024", "a-b", "a/b", "true", "NULL", "a.b", "n n"])
def test_name_that_is_sql_as_well_is_refused_and_the_way_out_works(name: str) -> None:
    def build(column: str | pl.Expr) -> sw.Pipeline:
        events = sw.stream("events", rows_source({**SCHEMA, name: pl.Int64()})).event_time("ts")
        total = events.key_by("k").window(sw.tumbling("1s")).aggregate(total=sw.sum(column))
        return sw.Pipeline("p", total.to(sw.sinks.memory()), total.late.drop(), events.dead_letters.drop())

    with pytest.raises(sw.DefinitionError, match=r"EXPRESSION_AMBIGUOUS.*write pl\.col") as refused:
        build(name)
    assert f"pl.col({name!r})" in refused.value.message
    rows = [{"k": "x", "ts": 1, "a": 5, "b": 3, "n": 1, name: 7}]
    outcome = sw.testing.run(build(pl.col(name)), {"events": rows})
    assert outcome["events.window"]["total"].to_list() == [7]
