"""The layout of the page with a large pipeline: everything is in sight, at any width."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from slackwater.observe.metrics.job_facts import job_facts
from slackwater.observe.page.job_feed import JobFeed
from slackwater.observe.page.server import PageServer
from tests.browser import Tab
from tests.observe.page.made_up import MadeUp, job
from tests.plan.test_drawing import EXAMPLES, example

FOLDER = "/srv/data/warehouse/streams/europe-west/departures/production"
SINKS = [f"per_minute to files at {FOLDER}/{name}" for name in ("counts", "alerts", "archive")]


def large_feed() -> JobFeed:
    made = MadeUp(time.time_ns() // 1_000_000 - 60_000)
    records = [made.record() for _ in range(20)]
    for record in records:
        sink = record["sinks"].popitem()[1]
        record["sinks"] = dict.fromkeys(SINKS, sink)
    facts = job_facts(example("fraud/pipeline.py").plan())
    drawn = {name: facts[name] for name in ("svg", "svg_upright")}
    known = {name: {"output": "per_minute", "sink": name, "promise": "exactly once"} for name in SINKS}
    started = records[0]["at"] - 5_000
    return JobFeed(job(**drawn, sinks=known, started=started), records, made.lateness(), made.samples())


@pytest.fixture
def shown(tab: Tab) -> Any:  # noqa: ANN401  what opens the page
    feed = large_feed()
    with PageServer([feed]) as server:

        def at(width: int) -> Tab:
            tab.resize(width, 900)
            tab.open(server.address)
            tab.until("document.querySelector('#plan img')?.complete")
            tab.until("document.querySelectorAll('#sinks tbody tr').length === 3")
            return tab

        yield at


WIDTHS = pytest.mark.parametrize("width", [400, 768, 1440, 1920])


@WIDTHS
def test_plan_is_in_sight_and_readable_or_scrolls(shown: Any, width: int) -> None:  # noqa: ANN401  as above
    tab = shown(width)
    figure, image, natural = tab.value(
        "(() => { const [f, i] = ['figure', 'figure img'].map((each) => document.querySelector(`#plan ${each}`)); "
        "return [f.clientWidth, i.getBoundingClientRect().width, i.naturalWidth]; })()"
    )
    assert image / natural > 0.75, "letters are not too small"
    if width >= 768:
        assert image <= figure + 1
    assert tab.value("document.documentElement.scrollWidth") <= width


@WIDTHS
def test_sinks_and_samples_are_in_sight_with_lines_of_some_length(shown: Any, width: int) -> None:  # noqa: ANN401  as above
    tab = shown(width)
    assert tab.value("document.documentElement.scrollWidth") <= width
    for name in ("sinks", "samples"):
        inside, needed = tab.value(
            f"(() => {{ const box = document.getElementById('{name}'); return [box.clientWidth, box.scrollWidth]; }})()"
        )
        assert needed <= inside + 1, name
    narrowest = tab.value(
        "Math.min(...[...document.querySelectorAll('#sinks td:first-child')].map((td) => td.clientWidth))"
    )
    assert narrowest >= 200
    assert "purchases / 1 / " in tab.text("#samples")


@WIDTHS
def test_panels_leave_no_hole(shown: Any, width: int) -> None:  # noqa: ANN401  as above
    tab = shown(width)
    boxes = tab.value(
        "[...document.querySelectorAll('main > section:not([hidden])')].map((each) => each.getBoundingClientRect())"
        ".map(({ top, right }) => [Math.round(top), Math.round(right)])"
    )
    inner = max(right for _, right in boxes)
    for line in {top for top, _ in boxes}:
        assert max(right for top, right in boxes if top == line) >= inner - 2


def test_one_start_has_one_time(shown: Any) -> None:  # noqa: ANN401  as above
    tab = shown(1440)
    times = tab.value("document.getElementById('starts').innerText.match(/\\d\\d:\\d\\d:\\d\\d/g).length")
    assert times == 1
    assert "1 start so far." in tab.text("#starts")


def test_starts_and_small_panels_leave_no_place_of_their_own_empty(shown: Any) -> None:  # noqa: ANN401  as above
    tab = shown(1440)
    beside = tab.value(
        "(() => { const top = (id) => document.getElementById(id).closest('section').getBoundingClientRect().top; "
        "return [top('starts') === top('partitions'), "
        "[...document.querySelectorAll('main > section:not([hidden])')].filter((each) => "
        "each.getBoundingClientRect().top === top('outputs')).length]; })()"
    )
    assert beside == [True, 1]


OVERFLOW = """[...document.querySelectorAll('svg g[role=group]')].flatMap((group) => {
  const right = (each) => each.getBBox().x + each.getBBox().width;
  const end = right(group.querySelector('rect'));
  return [...group.querySelectorAll('text')].filter((each) => right(each) > end - 4).map((each) => each.textContent);
})"""


@pytest.mark.parametrize("name", EXAMPLES)
def test_texts_of_the_plan_are_inside_their_boxes(tab: Tab, tmp_path: Path, name: str) -> None:
    (tmp_path / "plan.html").write_text(f"<!doctype html><meta charset=utf-8>{example(name).svg()}", encoding="utf-8")
    tab.open((tmp_path / "plan.html").as_uri())
    assert tab.value(OVERFLOW) == []
