"""A refused definition names the line of the call at fault, not that of `sw.Pipeline(...)`."""

from __future__ import annotations

import pickle
import traceback
from pathlib import Path

import pytest
from pyspark import cloudpickle

import slackwater as sw
from slackwater.tools.cli.loading import load_pipeline

FILE = """\
import polars as pl
import slackwater as sw
columns = ["user", "cents", "at"]
kept = {"total": sw.sum("cents")}
orders = (
    sw.stream("orders", sw.testing.rows_source("user string, cents long, at long"))
    .event_time("at")
    .select(
        *columns,
    )
    .where("cents > 0")
)
totals = (
    orders.key_by("user")
    .window(
        sw.tumbling("1m"),
        allowed_lateness="5s",
    )
    .aggregate(
        **kept,
    )
)
pipeline = sw.Pipeline(
    "p",
    totals.to(sw.sinks.files("out")),
    totals.late.drop(),
    orders.dead_letters.drop(),
)
"""


def written(tmp_path: Path, *changes: tuple[str, str]) -> Path:
    text = FILE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "p.py"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "old, new, code, line",
    [
        ('.event_time("at")', '.event_time("att")', "UNKNOWN_COLUMN", 7),
        ('columns = ["user"', 'columns = ["usr"', "UNKNOWN_COLUMN", 8),
        ('.where("cents > 0")', '.where("cnets > 0")', "UNKNOWN_COLUMN", 11),
        ('key_by("user")', 'key_by("usr")', "UNKNOWN_COLUMN", 14),
        ('sw.tumbling("1m")', 'sw.session(pl.col("cents") > 1)', "SESSION_GAP_TYPE", 15),
        ('sw.tumbling("1m"),', "sw.global_window(), trigger=sw.after_count(3),", "GLOBAL_LATENESS", 15),
        ('sw.sum("cents")', 'sw.sum("nope")', "UNKNOWN_COLUMN", 19),
        ('sw.sum("cents")', 'sw.sum("user")', "AGGREGATE_INPUT_TYPE", 19),
        ('"5s"', '"5s", accumulation="retracting"', "SINK_CANNOT_TAKE", 25),
        ("    totals.late.drop(),\n", "", "LATE_UNHANDLED", 19),
        ("    orders.dead_letters.drop(),\n", "", "DEAD_LETTERS_UNHANDLED", 6),
        ('    totals.to(sw.sinks.files("out")),\n', "", "RESULTS_UNHANDLED", 19),
        (
            "    totals.late.drop(),\n",
            '    totals.late.drop(),\n    totals.output("odd").drop(),\n',
            "SIDE_UNKNOWN",
            27,
        ),
        (".event_time", '.event_time("at").event_time', "EVENT_TIME_TWICE", 7),
    ],
)
def test_refusal_names_the_line_of_the_call_at_fault(tmp_path: Path, old: str, new: str, code: str, line: int) -> None:
    path = written(tmp_path, (old, new))
    with pytest.raises(sw.DefinitionError) as caught:
        load_pipeline(path)
    assert caught.value.code == code
    assert caught.value.where == f"{path}, line {line}"


def test_traceback_ends_with_the_line_and_the_message_stays_as_it_is() -> None:
    rows = sw.stream("rows", sw.testing.rows_source("k string, at long")).where("kk = 'a'")
    with pytest.raises(sw.DefinitionError) as caught:
        sw.Pipeline("p", rows.to(sw.sinks.memory()), rows.dead_letters.drop())
    first = test_traceback_ends_with_the_line_and_the_message_stays_as_it_is.__code__.co_firstlineno
    shown = traceback.format_exception(caught.value)
    assert shown[-1] == f"defined at {__file__}, line {first + 1}\n"
    assert str(caught.value).endswith("the rows there have k, at")


def test_line_of_a_step_on_two_streams_is_that_of_the_second_with_its_name() -> None:
    rows = sw.stream("rows", sw.testing.rows_source("k string, at long")).event_time("at")
    keyed = rows.key_by("k")
    first = keyed.deduplicate(within="1m", name="one")
    again = keyed.deduplicate(within="2m", name="one")
    with pytest.raises(sw.DefinitionError, match="STEP_NAME_TWICE") as caught:
        sw.Pipeline("p", first.to(sw.sinks.memory()), again.to(sw.sinks.memory()))
    begin = test_line_of_a_step_on_two_streams_is_that_of_the_second_with_its_name.__code__.co_firstlineno
    assert caught.value.where == f"{__file__}, line {begin + 4}"


def test_file_that_gained_lines_defines_the_same_pipeline(tmp_path: Path) -> None:
    before = load_pipeline(written(tmp_path)).plan()
    after = load_pipeline(written(tmp_path, ("columns =", "\n\ncolumns ="), ("    .where", "\n    .where"))).plan()
    assert before.fingerprint == after.fingerprint
    assert before.layout == after.layout


def test_lines_do_not_travel_with_the_plan(tmp_path: Path) -> None:
    path = written(tmp_path)
    blob = cloudpickle.dumps(load_pipeline(path).plan())  # type: ignore[no-untyped-call]  # has no types
    assert path.name.encode() not in blob
    assert pickle.loads(blob).name == "p"  # noqa: S301  made here
