"""Ctrl-C asks a job to stop, also while it is being prepared."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

import slackwater as sw
from slackwater.base.errors import fault
from slackwater.base.stopping import kept_handlers, stopped_by_signals
from slackwater.spark import start as jobs
from slackwater.spark.options import RunOptions


class Prepared:
    """A job of which only what was asked of it is kept."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def stop(self) -> None:
        self.asked.append("stop")

    def run(self) -> None:
        self.asked.append("run")


@pytest.mark.parametrize("number", [None, signal.SIGINT, signal.SIGTERM])
def test_signal_while_a_job_is_prepared_keeps_it_from_running(
    monkeypatch: pytest.MonkeyPatch, number: signal.Signals | None
) -> None:
    rows = sw.stream("rows", sw.testing.rows_source("ts long"))
    plan = sw.Pipeline("p", rows.to(sw.sinks.memory()), rows.dead_letters.drop()).plan()
    prepared = Prepared()

    def prepare(*_given: object, **_hooks: Any) -> Prepared:  # noqa: ANN401  as make_job's
        if number is not None:
            os.kill(os.getpid(), number)
        return prepared

    monkeypatch.setattr(jobs, "make_job", prepare)
    jobs.run_pipeline(plan, RunOptions())
    assert prepared.asked == (["run"] if number is None else [])


def test_handler_that_is_set_inside_does_not_stay() -> None:
    stops: list[bool] = []
    with stopped_by_signals(lambda: stops.append(True)):
        with kept_handlers():
            signal.signal(signal.SIGINT, signal.default_int_handler)
        os.kill(os.getpid(), signal.SIGINT)
    assert stops == [True]


def test_signal_that_also_ends_the_jvm_is_a_clean_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal to the process group, as `timeout` and service managers send it, reaches the JVM as well."""
    phases: list[str] = []

    def fail(*_given: object, **_hooks: Any) -> None:  # noqa: ANN401  as make_job's
        os.kill(os.getpid(), signal.SIGTERM)
        raise fault("SPARK_START", master="local[*]", cause="the JVM ended")

    monkeypatch.setattr(jobs, "make_job", fail)
    rows = sw.stream("rows", sw.testing.rows_source("ts long"))
    plan = sw.Pipeline("p", rows.to(sw.sinks.memory()), rows.dead_letters.drop()).plan()
    with pytest.raises(SystemExit) as ended:
        jobs.run_pipeline(plan, RunOptions(), on_phase=phases.append)
    assert ended.value.code == 0
    assert phases == ["stopping"]
