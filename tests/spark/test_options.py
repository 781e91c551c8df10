"""The options of a run: one definition behind `Pipeline.run`, `Pipeline.start` and the command line."""

from __future__ import annotations

import inspect
from dataclasses import fields
from types import SimpleNamespace
from typing import Any

import pytest

import slackwater as sw
from slackwater.spark.options import RunOptions
from slackwater.tools.cli.run import run as run_command

FIELDS = {each.name: (each.type, each.default) for each in fields(RunOptions)}
OF_THE_COMMAND = {"file", "fail_if_dead", "port", "host", "metrics_host", "quiet", "verbose"}
"""What the command line asks for besides the options of a run."""
OF_PYTHON = {"spark", "partitions", "on_batch"}
"""Options of a run that the command line does not have."""


@pytest.mark.parametrize("method", [sw.Pipeline.run, sw.Pipeline.start])
def test_keywords_are_the_fields_with_their_types_and_defaults(method: Any) -> None:  # noqa: ANN401  a method
    _self, *given = inspect.signature(method).parameters.values()
    assert {each.name: (each.annotation, each.default) for each in given} == FIELDS
    assert [each.kind for each in given[1:]] == [inspect.Parameter.KEYWORD_ONLY] * (len(given) - 1)


def test_command_line_has_every_option_that_can_be_written_there() -> None:
    assert set(inspect.signature(run_command).parameters) - OF_THE_COMMAND == set(FIELDS) - OF_PYTHON


@pytest.mark.parametrize(
    "given, code",
    [
        ({"trigger": "soon"}, "DURATION_UNREADABLE"),
        ({"trigger": "-1s"}, "DURATION_TOO_SHORT"),
        ({"master": "spark:host"}, "SPARK_MASTER"),
        (
            {"spark": type("Session", (SimpleNamespace,), {"__module__": "pyspark.sql.connect.session"})()},
            "SPARK_CONNECT",
        ),
    ],
)
def test_options_are_checked_when_they_are_made(given: dict[str, Any], code: str) -> None:
    with pytest.raises(sw.SlackwaterError) as raised:
        RunOptions(**given)
    assert raised.value.code == code
