"""Sources that users write: what they add to a record, and those that Spark cannot read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl
import pytest

import slackwater as sw
from slackwater.base.errors import DefinitionError, RunError
from slackwater.connectors.log.source import LogSource
from slackwater.plan.streams import Stream
from slackwater.spark.intake import check_intake
from slackwater.testing import Harness, rows_source


@dataclass(frozen=True, kw_only=True, eq=False)
class Labelled(LogSource):
    """A log whose records know their partition, by a name of its own."""

    @property
    def metadata(self) -> Mapping[str, tuple[pl.DataType, pl.Expr]]:
        return {"mqtt_topic": (pl.String(), pl.col("__part").str.to_uppercase())}


def pipeline(rows: Stream) -> sw.Pipeline:
    return sw.Pipeline("p", rows.to(sw.sinks.memory()), rows.dead_letters.drop(), key_groups=1)


def test_source_adds_columns_to_what_is_decoded() -> None:
    source = Labelled(**vars(sw.sources.log("log")))
    rows = sw.stream("s", source).decode(sw.formats.json("a long"))
    run = Harness(pipeline(rows)).send("s", ['{"a": 1}', "broken", '{"a": 2}'], partition="berlin")
    run.finish()
    assert run.output(rows).rows() == [(1, "BERLIN"), (2, "BERLIN")]


def test_rows_of_a_test_are_refused_before_spark_starts() -> None:
    plan = pipeline(sw.stream("s", rows_source("a long"))).plan()
    with pytest.raises(RunError, match="in memory only") as caught:
        check_intake(plan, None)
    assert caught.value.code == "TEST_SOURCE_ON_SPARK"


def test_source_whose_schema_is_text_is_refused() -> None:
    class Texted(LogSource):
        schema = "k string"  # type: ignore[assignment]

    source = Texted(**vars(sw.sources.log("log")))
    with pytest.raises(DefinitionError, match=r"got 'k string' of .* for stream `s`") as caught:
        pipeline(sw.stream("s", source))
    assert caught.value.code == "SOURCE_SCHEMA"
