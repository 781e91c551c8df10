"""The pipeline's default outputs: late rows and dead letters that it does not end itself."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl

import slackwater as sw
from slackwater.formats.dead_letter_columns import DEAD_LETTER_SCHEMA
from slackwater.operators.late_rows import SHARED_LATE_SCHEMA
from slackwater.plan.plan import OutputPlan
from slackwater.plan.streams import Stream, WindowResults
from slackwater.testing import Harness

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
DDL = "user string, stream string, row bigint, at timestamp"


def clicks(name: str = "clicks") -> Stream:
    return sw.stream(name, sw.testing.rows_source(DDL)).event_time("at")


def counts(rows: Stream, window: sw.windows.Window, name: str) -> WindowResults:
    return rows.key_by("user").window(window, name=name).aggregate(n=sw.count())


def click(minutes: float, row: int = 0) -> dict[str, Any]:
    return {"user": "ada", "stream": "app", "row": row, "at": NOON + timedelta(minutes=minutes)}


def memory(*results: Stream) -> list[Any]:
    return [each.to(sw.sinks.memory()) for each in results]


def planned(pipeline: sw.Pipeline, output: str) -> OutputPlan:
    return pipeline.plan().output_by_name[output]


def with_late_row(pipeline: sw.Pipeline, *streams: str) -> Harness:
    """Run a pipeline on a row and, once chained steps know its time, on one that is an hour behind, of each stream."""
    harness = Harness(pipeline)
    for batch in ([click(60)], [], [click(0, row=1)]):
        for stream in streams or ("clicks",):
            harness.send(stream, batch)
        harness.run_batch()
    return harness


def two_windows() -> sw.Pipeline:
    rows = clicks()
    tumbling, session = counts(rows, sw.tumbling("1m"), "minutes"), counts(rows, sw.session("1m"), "visits")
    return sw.Pipeline("p", *memory(tumbling, session), late=sw.sinks.memory(), dead_letters=sw.sinks.memory())


def test_late_rows_of_all_steps_are_in_one_output() -> None:
    late = with_late_row(two_windows()).output("late")
    assert late.schema == SHARED_LATE_SCHEMA
    assert sorted(late.select("step", "stream", "late_by_ms").rows()) == [
        ("minutes", "clicks", 3_600_000),
        ("visits", "clicks", 3_600_000),
    ]
    assert set(late["event_time"]) == {NOON}
    assert set(late["watermark"]) == {NOON + timedelta(hours=1)}


def test_shared_late_row_has_the_columns_of_its_step_as_json() -> None:
    late = with_late_row(two_windows()).output("late").filter(pl.col("step") == "minutes")
    moment = "2026-03-01T12:00:00+00:00"
    missed = {"start": moment, "end": "2026-03-01T12:01:00+00:00"}
    assert json.loads(late["row"].item()) == {
        "user": "ada",
        "stream": "app",
        "row": 1,
        "at": moment,
        "windows": [missed],
    }


def test_late_session_row_of_a_union_names_its_stream() -> None:
    visits = counts(clicks("web").union(clicks("app"), name="both"), sw.session("1m"), "visits")
    pipeline = sw.Pipeline("p", *memory(visits), late=sw.sinks.memory(), dead_letters=sw.sinks.memory())
    late = with_late_row(pipeline, "web", "app").output("late")
    assert sorted(late["stream"]) == ["app", "web"]


def test_late_result_names_the_step_it_comes_from() -> None:
    passed = clicks().key_by("user").process(Passed(), output="row bigint", name="passed")
    minutes = counts(passed, sw.tumbling("1m"), "minutes")
    pipeline = sw.Pipeline("p", *memory(minutes), late=sw.sinks.memory(), dead_letters=sw.sinks.memory())
    harness = with_late_row(pipeline)
    assert harness.output("late").select("step", "stream").rows() == [("minutes", "passed")]


class Passed(sw.Process):
    """Emits the number of each click, in the order of arrival."""

    def on_event(self, event: dict[str, Any], ctx: sw.Context) -> Any:  # noqa: ANN401
        yield {"row": event["row"]}


def test_late_rows_are_counted_for_each_step_and_once_in_the_output() -> None:
    harness = with_late_row(two_windows())
    assert {step: harness.last.counts[step]["late"] for step in ("minutes", "visits")} == {"minutes": 1, "visits": 1}
    assert harness.output("late").height == 2


def test_output_that_the_pipeline_ends_keeps_its_own_columns() -> None:
    rows = clicks()
    first, second = counts(rows, sw.tumbling("1m"), "first"), counts(rows, sw.tumbling("1m"), "second")
    ends = [*memory(first, second), first.late.to(sw.sinks.memory()), rows.dead_letters.drop()]
    harness = with_late_row(sw.Pipeline("p", *ends, late=sw.sinks.memory()))
    assert harness.output(first.late).select("user", "row", "step").rows() == [("ada", 1, "first")]
    assert harness.output("late")["step"].to_list() == ["second"]


def test_drop_wins_over_the_default() -> None:
    rows = clicks()
    minutes = counts(rows, sw.tumbling("1m"), "minutes")
    ends = [*memory(minutes), minutes.late.drop(), rows.dead_letters.drop()]
    pipeline = sw.Pipeline("p", *ends, late=sw.sinks.memory(), dead_letters=sw.sinks.memory())
    assert [output.name for output in pipeline.plan().outputs] == ["clicks.dead_letters", "minutes", "minutes.late"]


def test_dead_letters_of_streams_and_steps_are_in_one_output() -> None:
    rows = clicks().validate(is_numbered="row < 9")
    minutes = counts(rows, sw.tumbling("1m"), "minutes")
    ends = memory(minutes.validate(is_single="n < 2"))
    harness = Harness(sw.Pipeline("p", *ends, late=sw.sinks.memory(), dead_letters=sw.sinks.memory()))
    harness.send("clicks", [click(0, row=9), click(1), click(1)])
    harness.finish()
    dead = harness.output("dead_letters")
    assert dead.schema == DEAD_LETTER_SCHEMA
    assert sorted(dead.select("source", "step").rows()) == [
        ("clicks", "clicks.validate"),
        ("minutes", "minutes.validate"),
    ]


def test_rows_on_which_a_step_fails_are_in_the_default_output() -> None:
    failing = clicks().key_by("user").process(Failing(), output="n bigint", name="failing")
    harness = Harness(sw.Pipeline("p", *memory(failing), dead_letters=sw.sinks.memory()))
    harness.send("clicks", [click(0)])
    harness.finish()
    assert harness.output("dead_letters").select("source", "step", "reason").rows() == [("clicks", "failing", "failed")]


class Failing(sw.Process):
    """Fails on every event."""

    def on_event(self, event: dict[str, Any], ctx: sw.Context) -> Any:  # noqa: ANN401
        raise ValueError(event["row"])


def test_step_without_late_rows_needs_no_default() -> None:
    counted = clicks().key_by("user").window(sw.count_window(2), name="pairs").aggregate(n=sw.count())
    pipeline = sw.Pipeline("p", *memory(counted), late=sw.sinks.memory(), dead_letters=sw.sinks.memory())
    assert [output.name for output in pipeline.plan().outputs] == ["dead_letters", "pairs"]


def test_default_outputs_are_the_same_for_a_sink_whatever_the_steps() -> None:
    one = sw.Pipeline(
        "p",
        *memory(counts(clicks(), sw.tumbling("1m"), "minutes")),
        late=sw.sinks.memory(),
        dead_letters=sw.sinks.memory(),
    )
    for output in ("late", "dead_letters"):
        first, second = (pipeline.plan().slot(planned(pipeline, output)) for pipeline in (one, two_windows()))
        assert first == second


def test_half_delivered_batch_is_not_finished_with_late_rows_of_another_form() -> None:
    rows = clicks()
    minutes = counts(rows, sw.tumbling("1m"), "minutes")
    ends = [*memory(minutes), rows.dead_letters.drop()]
    own = sw.Pipeline("p", *ends, minutes.late.to(sw.sinks.memory()))
    shared = sw.Pipeline("p", *ends, late=sw.sinks.memory())
    assert own.plan().fingerprint != shared.plan().fingerprint


def test_explain_shows_the_default_at_each_step() -> None:
    rows = clicks()
    ends = memory(counts(rows, sw.tumbling("1m"), "minutes"), counts(rows, sw.session("1m"), "visits"))
    pipeline = sw.Pipeline("p", *ends, late=sw.sinks.files("out/late"), dead_letters=sw.sinks.files("out/dead"))
    lines = [line.strip() for line in pipeline.explain().splitlines()]
    assert [line.split(":")[0] for line in lines if line.startswith("→ late")] == ["→ late (default)"] * 2
    assert [line.split(":")[0] for line in lines if line.startswith("→ dead")] == ["→ dead letters (default)"]
    assert [each["is_default"] for each in json.loads(pipeline.explain("json"))["outputs"]] == [
        True,
        True,
        False,
        False,
    ]


def test_checker_finds_only_what_the_pipeline_itself_drops() -> None:
    rows = clicks()
    first, second = counts(rows, sw.tumbling("1m"), "first"), counts(rows, sw.tumbling("1m"), "second")
    files = sw.sinks.files("out/late")
    pipeline = sw.Pipeline("p", *memory(first, second), second.late.drop(), late=files, dead_letters=sw.sinks.memory())
    dropped = [each.where for each in pipeline.check() if each.code in ("SW402", "SW403")]
    assert dropped == ["step `second`"]
