"""A run whose records are mostly dead letters says so at once, and may end as a failure."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from slackwater.base.errors import RunError
from slackwater.spark.dead_letter_share import DeadLetterWarning
from slackwater.tools.cli.run import run
from tests.on_spark.jobs import record, write_log

pytestmark = pytest.mark.spark

PIPELINE = """
import slackwater as sw
events = sw.stream("events", sw.sources.log({log!r})).decode(sw.formats.json("k long, ts long")).event_time("ts")
accept = dict(SW403="the subject of the test")
pipeline = sw.Pipeline("dead", events.to(sw.sinks.memory()), events.dead_letters.drop(), key_groups=2, accept=accept)
"""


def test_one_wrong_type_in_the_schema_is_reported_and_fails_the_run(spark: SparkSession, tmp_path: Path) -> None:
    write_log(tmp_path / "log", [[record(number, number) for number in range(20)]])
    (tmp_path / "pipeline.py").write_text(PIPELINE.format(log=str(tmp_path / "log")))
    app = typer.Typer()
    app.command()(run)
    arguments = [str(tmp_path / "pipeline.py"), "--bounded", "--checkpoint", str(tmp_path / "c")]
    with pytest.warns(DeadLetterWarning, match=r"20 of 20 records of stream `events` \(100\.0%\).*`wrong_type`"):
        done = CliRunner().invoke(app, [*arguments, "--fail-if-dead", "0.5"])
    assert isinstance(done.exception, RunError)
    assert done.exception.code == "DEAD_LETTERS_EXCEEDED"
