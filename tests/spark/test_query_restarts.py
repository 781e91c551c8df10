"""The loop that waits for a query, with a query that is made up: after a step of the clock it is started again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from slackwater.engine.checkpoint.checkpoint import Checkpoint
from slackwater.spark import job as module
from slackwater.spark.job import Job
from slackwater.spark.options import RunOptions
from tests.observe.checker.pipelines import rows, windowed


@dataclass(kw_only=True)
class Query:
    """Runs until it is stopped."""

    looks: int = 0
    is_over: bool = False
    runId: str = "run"  # noqa: N815  Spark's name

    def awaitTermination(self, _seconds: float) -> bool:  # noqa: N802  as above
        self.looks += 1
        assert self.looks < 100, "nobody stops it"
        return self.is_over

    def stop(self) -> None:
        self.is_over = True


@dataclass(kw_only=True)
class Started:
    """A job whose queries are made up, and the queries."""

    job: Job
    queries: list[Query] = field(default_factory=list)
    steps: Iterator[bool] = field(default_factory=lambda: iter(()))
    measured: int = 0
    """How often the clock began to be measured."""


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Started:
    checkpoint = Checkpoint(path=tmp_path, incarnation="i", partitions=1)
    plan = windowed(rows()).plan()
    made = Started(job=Job(plan=plan, spark=MagicMock(), checkpoint=checkpoint))
    made.job._intakes = MagicMock()
    made.job._between.set()

    def start(*_: object, **__: object) -> Query:
        made.queries.append(Query())
        return made.queries[-1]

    class Steps:
        def __init__(self) -> None:
            made.measured += 1

        def is_set_back(self) -> bool:
            is_back = next(made.steps, None)
            if is_back is None:
                made.job.stop()
            return bool(is_back)

    for name in ("check_alone", "ReadLimits", "SourceLister", "hush", "unhush"):
        monkeypatch.setattr(module, name, MagicMock())
    monkeypatch.setattr(module, "start_query", start)
    monkeypatch.setattr(module, "ClockSteps", Steps)
    return made


def test_query_is_started_again_after_each_step_back_until_the_job_is_stopped(started: Started) -> None:
    started.steps = iter([False, True, False, False, True, False])
    started.job._query(available_now=False)
    assert len(started.queries) == 3
    assert all(query.is_over for query in started.queries)
    assert started.measured == 1, "a step while a query is started again is noticed"


def test_query_is_stopped_only_between_two_batches(started: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    started.steps = iter([False, True, False])
    started.job._between.clear()
    stopped = []
    first = Query()

    def look(_seconds: float) -> bool:
        first.looks += 1
        if first.looks == 10:
            stopped.append(first.is_over)
            started.job._between.set()
        return first.is_over

    monkeypatch.setattr(first, "awaitTermination", look)
    queries, start = iter([first]), vars(module)["start_query"]
    monkeypatch.setattr(
        module, "start_query", lambda *given, **options: next(queries, None) or start(*given, **options)
    )
    started.job._query(available_now=False)
    assert stopped == [False], "while a batch ran"
    assert first.is_over


@pytest.mark.parametrize("available_now, trigger_ms", [(True, 1_000), (False, 0)])
def test_query_that_waits_for_no_time_is_left_alone(started: Started, available_now: bool, trigger_ms: int) -> None:  # noqa: FBT001  a case
    started.job.options = RunOptions(trigger=f"{trigger_ms}ms")
    started.steps = iter([True] * 10)
    started.job.stop()
    started.job._query(available_now=available_now)
    assert len(started.queries) == 1
