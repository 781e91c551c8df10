"""`slackwater lateness` as a user meets it, on a small log."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
import typer
from typer.testing import CliRunner

from slackwater.base.errors import SlackwaterError
from slackwater.connectors.chunk import Chunk
from slackwater.connectors.log.reports import StrayFilesWarning
from slackwater.connectors.log.writing import LogWriter
from slackwater.tools.cli.lateness import ReadingProgress, lateness
from slackwater.tools.lateness import StreamToRead

PIPELINE = """
import slackwater as sw

orders = (
    sw.stream("orders", sw.sources.log("log"))
    .decode(sw.formats.json("id long, at timestamp"))
    .event_time("at", out_of_orderness="2s")
)
pipeline = sw.Pipeline("p", orders.to(sw.sinks.console()), orders.dead_letters.drop())
"""
app = typer.Typer(rich_markup_mode="rich")
app.command()(lateness)


@pytest.fixture(autouse=True)
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a log in which one event in a hundred is five seconds late, and a pipeline that reads it."""
    monkeypatch.chdir(tmp_path)
    Path("orders.py").write_text(PIPELINE)
    with LogWriter("log") as log:
        for second in range(2_000):
            moment = second - 5 if second % 100 == 50 else second
            time = f"2026-03-01T12:{moment // 60:02d}:{moment % 60:02d}Z"
            log.append({"id": second, "at": time})
        log.append("{")


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def test_pipeline_is_measured_by_its_own_decoding_and_time() -> None:
    words = " ".join(run("orders.py", "--target", "0.999").split())
    assert "orders: 2,000 events in 1 partition, 2026-03-01 12:00:00 to 2026-03-01 12:33:19" in words
    assert "not measured, of 2,001 records: 1 malformed" in words
    assert 'Recommended: out_of_orderness="5s" for a target of 99.9 %: no event falls behind the watermark.' in words
    assert "Currently, it is 2s: 1.0 % of the events (20) fall behind the watermark." in words


def test_log_is_measured_by_its_time_alone() -> None:
    words = " ".join(run("--log", "log", "--time", "at").split())
    assert 'out_of_orderness="0s" for a target of 99 %: 1.0 % of the events (20) fall behind the watermark.' in words
    assert "Currently" not in words


def test_file_of_the_log_that_is_never_read_is_named() -> None:
    Path("log/0/000000000099.jsonl").symlink_to("nowhere.jsonl")
    with pytest.warns(StrayFilesWarning, match=r"LOG_STRAYS.*broken link.*000000000099\.jsonl"):
        words = " ".join(run("--log", "log", "--time", "at").split())
    assert "log: 2,000 events in 1 partition" in words


def test_log_is_read_with_the_columns_format_and_guard_that_are_given() -> None:
    arguments = ["--schema", "id long, at timestamp", "--format", "json", "--max-ahead", "1m", "--limit", "500"]
    [stream] = json.loads(run("--log", "log", "--time", "at", *arguments, "--json"))["streams"]
    assert (stream["records"], stream["events"]) == (500, 499)


def test_avro_log_is_measured_by_its_own_columns() -> None:
    Path("avro/0").mkdir(parents=True)
    times = pl.Series("ms", [1_000, 9_000, 4_000])
    pl.DataFrame({"id": [1, 2, 3], "ms": times}).write_avro("avro/0/00000000000000000000.avro")
    [stream] = json.loads(run("--log", "avro", "--time", "ms", "--json"))["streams"]
    assert (stream["records"], stream["events"], stream["max_ms"]) == (3, 3, 5_000)


def test_json_is_all_that_is_printed() -> None:
    report = json.loads(run("orders.py", "--json"))
    assert report["streams"][0]["configured"]["out_of_orderness_ms"] == 2_000


def test_picture_is_drawn_beside_the_report() -> None:
    assert "Recommended" in run("orders.py", "--picture", "curve.svg")
    assert 'out_of_orderness="0s"' in Path("curve.svg").read_text()


@pytest.mark.parametrize(
    "arguments, code, words",
    [
        ([], "LATENESS_SUBJECT", "got none of them;"),
        (["--log", "log"], "LATENESS_SUBJECT", "got --log without --time;"),
        (["--time", "at"], "LATENESS_SUBJECT", "got --time;"),
        (["orders.py", "--log", "log", "--time", "at"], "LATENESS_SUBJECT", "got orders.py with --log with --time;"),
        (
            ["--kafka", "orders", "--time", "at"],
            "LATENESS_KAFKA",
            "SERVERS/TOPIC; got `orders`; write, for example, `--kafka",
        ),
        (["--kafka", "h:1/t"], "LATENESS_SUBJECT", "got --kafka without --time;"),
        (
            ["--kafka", "h:1/t", "--log", "log", "--time", "at"],
            "LATENESS_SUBJECT",
            "got --log with --kafka with --time;",
        ),
        (
            ["--kafka", "h:1/t", "--time", "at", "--format", "json"],
            "LATENESS_SUBJECT",
            "--kafka with --time with --format",
        ),
        (["orders.py", "--max-ahead", "1m"], "LATENESS_SUBJECT", "got orders.py with --max-ahead;"),
        (["orders.py", "--picture", "a.png"], "LATENESS_PICTURE", "ends in .svg"),
        (["orders.py", "--target", "99"], "LATENESS_TARGET", "got 99.0;"),
        (["."], "PIPELINE_FILE_MISSING", "`.` is a folder; give a .py file"),
        (["nowhere.py"], "PIPELINE_FILE_MISSING", "`nowhere.py` does not; "),
        (["ordres.py"], "PIPELINE_FILE_MISSING", "`ordres.py` does not (did you mean `orders.py`?); "),
        (["--log", "nowhere", "--time", "at"], "LOG_FOLDER_MISSING", "nowhere"),
        (["--log", "log", "--time", "when"], "LATENESS_TIME_UNKNOWN", "they have id, at;"),
        (["--log", "log", "--time", "att"], "LATENESS_TIME_UNKNOWN", "`att` (did you mean `at`?), they have id, at;"),
        (["--log", "log", "--time", "at", "--schema", "at date"], "LATENESS_NO_EVENTS", "2,000 wrong_type"),
        (["--log", "log", "--time", "at", "--max-ahead", "soon"], "DURATION_UNREADABLE", "soon"),
    ],
)
def test_mistake_is_reported_with_its_code(arguments: list[str], code: str, words: str) -> None:
    with pytest.raises(SlackwaterError) as caught:
        CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert caught.value.code == code
    assert words in str(caught.value)


def test_option_out_of_range_is_a_mistake_of_usage() -> None:
    assert CliRunner().invoke(app, ["orders.py", "--limit", "0"]).exit_code == 2
    assert CliRunner().invoke(app, ["--log", "log", "--time", "at", "--format", "csv"]).exit_code == 2


def test_help_teaches_with_examples() -> None:
    said = run("--help")
    options = ("--log", "--time", "--schema", "--format", "--target", "--limit", "--picture", "--json", "--max-ahead")
    assert all(option in said for option in options)
    assert "slackwater lateness --log data/orders --time placed_at" in said


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def reading() -> StreamToRead:
    def chunks() -> Iterator[Chunk]:
        for file in ("a", "a", "b"):
            frame = pl.DataFrame({"__payload": [b""] * 500})
            yield Chunk(frame=frame, partition="0", file=file, first_offset=0, source="", ingestion_ms=0)

    return StreamToRead(stream="orders", chunks=chunks(), files=2)


def test_progress_is_a_line_now_and_then_where_there_is_no_terminal() -> None:
    out = io.StringIO()
    progress = ReadingProgress(out=out, every_s=0)
    assert len(list(progress.watched(reading()))) == 3
    progress.end()
    lines = out.getvalue().splitlines()
    assert len(lines) == 3
    assert lines[-1].startswith("orders: 1,500 records  file 2 of 2  ")


def test_progress_on_a_terminal_is_one_line_that_is_wiped_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter(range(100))
    monkeypatch.setattr("slackwater.tools.cli.lateness.clock.monotonic", lambda: next(moments))
    out = Terminal()
    progress = ReadingProgress(out=out)
    list(progress.watched(reading()))
    progress.end()
    said = out.getvalue()
    assert "\n" not in said
    assert said.count("\r") == 5
    assert said.endswith("\r")


def test_quiet_says_nothing() -> None:
    out = io.StringIO()
    list(ReadingProgress(out=out, every_s=0, quiet=True).watched(reading()))
    assert out.getvalue() == ""
