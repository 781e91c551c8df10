"""How a live page begins, with the phases of the start, and how it ends: finished, stopped on request, or failed."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

import slackwater as sw
from slackwater.observe.page.job_feed import JobFeed
from slackwater.observe.page.live import LivePage
from slackwater.observe.page.recording import Takers
from slackwater.spark import start
from slackwater.spark.handle import RunningJob
from slackwater.tools.cli.main import app

PIPELINE = (
    "import slackwater as sw\n"
    "rows = sw.stream('rows', sw.sources.log('log')).decode(sw.formats.json('t long')).event_time('t')\n"
    "pipeline = sw.Pipeline('shop', rows.to(sw.sinks.memory()), rows.dead_letters.drop())\n"
)
ENDS = pytest.mark.parametrize("is_finished, state", [(True, "finished"), (False, "stopped")])


@pytest.fixture
def states(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Give the states that pages have shown."""
    shown: list[str] = []
    change = JobFeed.change

    def noted(feed: JobFeed, state: str, **facts: Any) -> None:  # noqa: ANN401  as the original's
        shown.append(state)
        change(feed, state, **facts)

    monkeypatch.setattr(JobFeed, "change", noted)
    return shown


def pipeline() -> sw.Pipeline:
    rows = sw.stream("rows", sw.testing.rows_source("t long")).event_time("t")
    return sw.Pipeline("shop", rows.to(sw.sinks.memory()), rows.dead_letters.drop())


def ran(*, is_finished: bool) -> Any:  # noqa: ANN401  what stands in for a job
    plan = pipeline().plan()
    return SimpleNamespace(plan=plan, is_finished=is_finished, owed=None, on_record=None, run=lambda: None)


@ENDS
def test_run_from_python_ends_as_its_job(
    monkeypatch: pytest.MonkeyPatch, states: list[str], *, is_finished: bool, state: str
) -> None:
    monkeypatch.setattr(start, "run_pipeline", lambda *_given, **_hooks: ran(is_finished=is_finished))
    pipeline().run(page=True)
    assert states == [state]


@ENDS
def test_run_of_the_command_line_ends_as_its_job(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, states: list[str], *, is_finished: bool, state: str
) -> None:
    monkeypatch.setattr(start, "run_pipeline", lambda *_given, **_hooks: ran(is_finished=is_finished))
    (tmp_path / "shop.py").write_text(PIPELINE)
    assert CliRunner().invoke(app, ["run", str(tmp_path / "shop.py"), "--page"]).exit_code == 0
    assert states == [state]


@ENDS
def test_job_beside_other_code_ends_its_page_as_itself(states: list[str], *, is_finished: bool, state: str) -> None:
    job, opened = ran(is_finished=is_finished), ExitStack()
    takers = Takers(page=opened.enter_context(LivePage(job.plan)))
    RunningJob(job, takers=takers, opened=opened).wait()
    assert states == [state]


def test_error_ends_a_page_as_failed_and_a_page_without_a_run_is_stopped(states: list[str]) -> None:
    with pytest.raises(ValueError, match="no"), LivePage(pipeline().plan()):
        raise ValueError("no")
    with LivePage(pipeline().plan()):
        pass
    assert states == ["failed", "stopped"]


def test_page_shows_the_phases_of_a_start_until_the_first_batch() -> None:
    with LivePage(pipeline().plan()) as page:
        feed = page._feed
        for name in ("starting the JVM", "running batch 0", ""):
            page.phase(name)
        assert [name for name, _at_ms in feed.job["phases"]] == ["starting the JVM", "running batch 0"]
        feed.change("running")
        page.phase("running batch 1")
        assert len(feed.job["phases"]) == 2
