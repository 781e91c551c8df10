"""The page of a job that starts, in a real browser: the phases until the first batch, with their seconds."""

from __future__ import annotations

import time

from slackwater.observe.page.job_feed import JobFeed
from slackwater.observe.page.server import PageServer
from tests.browser import Tab
from tests.observe.page.made_up import job

LINE = "document.getElementById('starting').innerText"


def test_phases_of_the_start_are_shown_until_the_first_batch(tab: Tab) -> None:
    now_ms = time.time_ns() // 1_000_000
    phases = [["checking sources and sinks", now_ms - 34_000], ["starting the JVM", now_ms - 31_500]]
    feed = JobFeed({**job(), "state": "starting", "phases": phases[:1]})
    with PageServer([feed]) as server:
        tab.open(server.address)
        tab.until(f"{LINE}.startsWith('checking sources and sinks 3')")
        feed.change("starting", phases=phases)
        tab.until(f"/^checking sources and sinks 2.5 s · starting the JVM 3[1-9] s$/.test({LINE})")
        feed.change("running")
        tab.until("document.getElementById('starting').hidden")
