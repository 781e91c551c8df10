"""What the harness, and `sw.Semantics`, do not take; and what `sw.never()` means for a whole window."""

from __future__ import annotations

from typing import Any

import pytest

import slackwater
from slackwater.base.errors import DefinitionError

sw: Any = slackwater  # untyped: half of these calls are wrong in their types


def pipeline(**options: Any) -> Any:  # noqa: ANN401  as above
    """Return a pipeline of one window of ten milliseconds."""
    rows = sw.stream("events", sw.testing.rows_source("id long, t long")).event_time("t")
    results = rows.key_by("id").window(sw.tumbling("10ms"), **options).aggregate(n=sw.count())
    return sw.Pipeline("p", results.to(sw.sinks.memory()), results.late.drop(), rows.dead_letters.drop())


ROW = {"id": 1, "t": 5}


@pytest.mark.parametrize(
    "switches, words",
    [
        ({"on_close": "x"}, '`on_close` of sw.Semantics must be "flush" or "discard"; got \'x\'; omit it to use'),
        ({"session_lateness": 5}, '`session_lateness` of sw.Semantics must be "after_merge" or "before_merge"; got 5;'),
        ({"empty_on_time_pane": None}, "got None"),
        ({"retract_unchanged": ["skip"]}, "got ['skip']"),
    ],
)
def test_semantics_of_another_kind_are_refused(switches: dict[str, object], words: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        sw.Semantics(**switches)
    assert refused.value.code == "SEMANTICS_CHOICE"
    assert words in refused.value.message


def test_the_watermark_of_a_stream_that_is_not_there_cannot_be_moved() -> None:
    harness = sw.testing.Harness(pipeline())
    with pytest.raises(DefinitionError, match=r"got `event` \(did you mean `events`\?\); the pipeline has") as refused:
        harness.advance_watermark(99_999, stream="event")
    assert refused.value.code == "TEST_WATERMARK_STREAM"
    with pytest.raises(DefinitionError, match="got `5`; the pipeline has"):
        harness.advance_watermark(99_999, stream=5)
    harness.advance_watermark(99_999, stream="events")
    assert harness.watermark == {"events": 99_999}


def test_output_that_is_not_there_is_not_an_empty_one() -> None:
    words = r"OUTPUT_UNKNOWN.*did you mean `events.window`\?\); the pipeline has events.dead_letters, "
    with pytest.raises(DefinitionError, match=words):
        sw.testing.Harness(pipeline()).output("events.windwo")


def test_nothing_can_be_sent_to_a_run_that_is_finished() -> None:
    harness = sw.testing.Harness(pipeline())
    harness.send("events", [ROW]).finish()
    for ended in (harness, harness.restart()):
        with pytest.raises(DefinitionError, match=r"got rows for stream `events` after finish\(\); send") as refused:
            ended.send("events", [ROW])
        assert refused.value.code == "TEST_FINISHED"
    assert all(frame.is_empty() for frame in harness.run_batch().values())


@pytest.mark.parametrize("inputs", [None, [ROW], "events"])
def test_a_run_takes_its_rows_by_stream(inputs: object) -> None:
    with pytest.raises(DefinitionError, match="takes the rows of each source stream by name; got") as refused:
        sw.testing.run(pipeline(), inputs)
    assert refused.value.code == "TEST_INPUTS"


@pytest.mark.parametrize("rows", [None, "abc", {"id": 1}])
def test_a_run_takes_a_list_of_rows_for_each_stream(rows: object) -> None:
    with pytest.raises(DefinitionError, match="stream `events` takes a list of dictionaries") as refused:
        sw.testing.run(pipeline(), {"events": rows})
    assert refused.value.code == "TEST_ROWS"


def test_a_run_takes_rows_from_any_iterable() -> None:
    outcome = sw.testing.run(pipeline(), {"events": (ROW for _ in range(3))})
    assert outcome["events.window"]["n"].to_list() == [3]


def test_never_as_the_trigger_of_a_window_shows_it_once_when_it_is_forgotten() -> None:
    harness = sw.testing.Harness(pipeline(trigger=sw.never(), allowed_lateness="20ms"))
    harness.send("events", [ROW]).run_batch()
    assert harness.advance_watermark(29)["events.window"].is_empty()
    harness.send("events", [ROW])
    assert harness.run_batch()["events.window"].is_empty()
    shown = harness.advance_watermark(30)["events.window"]
    assert shown.select("n", "pane", "pane_index").rows() == [(2, "late", 0)]
    assert harness.finish()["events.window"].is_empty()


def test_never_as_the_trigger_of_a_window_that_discards_what_is_left_shows_nothing() -> None:
    semantics = sw.Semantics(on_close="discard")
    outcome = sw.testing.run(pipeline(trigger=sw.never(), semantics=semantics), {"events": [ROW]})
    assert outcome["events.window"].is_empty()
