"""The panels of the page in a real browser: what they show, that they explain themselves and hold their memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import slackwater as sw
from slackwater.eventtime.measured_lateness import LatenessSketch
from slackwater.observe.metrics.job_facts import lateness_facts
from slackwater.observe.page.job_feed import JobFeed
from slackwater.observe.page.server import PageServer
from slackwater.tools.lateness import make_report, measure_source
from tests.browser import Tab
from tests.observe.page.made_up import MadeUp, job, made_up_feed
from tests.observe.page.test_in_browser import now_ms, shown

UNEXPLAINED = """[...document.querySelectorAll("header *, main *")].filter((each) => {
  const own = [...each.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
  const is_thing = own || ["CANVAS", "INPUT", "SELECT", "BUTTON", "IMG"].includes(each.tagName);
  if (!is_thing || each.tagName === "OPTION" || !each.checkVisibility()) return false;
  const said = (name) => each.getAttribute(name);
  const sentence = each.closest("[title]")?.title || said("aria-description") || said("aria-describedby");
  return !sentence || sentence.length < 10;
}).map((each) => `${each.tagName} ${each.id} ${each.textContent}`.slice(0, 60))"""
"""Everything that can be seen and has no sentence."""
COLOURS = """(() => {
  const canvas = document.getElementById("picture");
  const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  const found = {};
  for (let at = 0; at < pixels.length; at += 4) {
    const key = `${pixels[at]},${pixels[at + 1]},${pixels[at + 2]},${pixels[at + 3]}`;
    found[key] = (found[key] || 0) + 1;
  }
  return Object.entries(found).filter(([, many]) => many > 400).map(([key]) => key);
})()"""

KEPT_SOURCE = """{
  const Own = EventSource;
  window.EventSource = class extends Own { constructor(...all) { super(...all); window.source = this; } };
}"""
FED = """(async (one, samples, from, to) => {
  for (let number = from; number < to; number += 1) {
    const record = { ...one, batch: 10 + number, at: one.at + 2000 * (1 + number), samples };
    window.source.onmessage({ data: JSON.stringify(record) });
    if (number %% 500 === 0) await new Promise(requestAnimationFrame);
  }
  await new Promise(requestAnimationFrame);
})(%s, %s, %d, %d)"""


def joined(made: MadeUp) -> dict[str, Any]:
    """Return a batch of a job that looks up and joins, too."""
    record = made.record()
    record["steps"]["pairs"] = {**record["steps"]["per_minute"], "ports": {"left": 1_200, "right": 34}}
    counts = {"requests": 5, "hits": 30, "misses": 10, "missing": 1, "errors": 2, "p99": 80}
    record["lookups"] = {"users": counts}
    return record


def test_every_thing_on_the_page_has_a_sentence(tab: Tab) -> None:
    feed, made = made_up_feed(now_ms() - 60_000, 20)
    feed.publish(joined(made), made.lateness(), [{**each, "data": "<b>", "message": "m"} for each in made.samples()])
    feed.change(
        "running", svg="<svg xmlns='http://www.w3.org/2000/svg' width='20' height='20'></svg>", starts=2, notice="<b>"
    )
    other = JobFeed(job(pipeline="alerts", state="dead"))
    with PageServer([feed, other]) as server:
        shown(tab, server)
        tab.until("document.querySelector('#plan img') && document.querySelectorAll('#samples td').length > 8")
        assert tab.value(UNEXPLAINED) == []
        assert "per_minute" in tab.text("#memory-text")
        assert ", about 640 keys" in tab.text("#memory-text")
        assert tab.text("#notice") == "<b>", "as text, and in sight"
        panels = tab.value("[...document.querySelectorAll('main section')].filter((s) => s.checkVisibility()).length")
        assert panels == 12
        for strip in ("phases", "throughput", "latency", "memory"):
            assert "batch" in tab.value(f"document.getElementById('{strip}').getAttribute('aria-description')")


def test_sinks_samples_lookups_and_joins_are_shown(tab: Tab) -> None:
    feed, made = made_up_feed(now_ms() - 60_000, 20)
    with PageServer([feed]) as server:
        shown(tab, server)
        assert tab.text("#sinks").split("\n")[1].split("\t") == [
            "per_minute to files", "exactly once", "19", "0.10 s", "10s", "20",
        ]  # fmt: skip
        assert "purchases / 1 / 190" in tab.text("#samples")
        assert "late by 1m 1s" in tab.text("#samples")
        assert not tab.value("document.querySelector('#lookups-panel, #joins-panel').checkVisibility()")
        feed.publish(joined(made), samples=made.samples())
        tab.until("document.querySelector('#joins').innerText.includes('1,200')")
        assert tab.text("#lookups").split("\n")[1].split("\t") == ["users", "5", "75.0 %", "2", "80 ms"]
        assert "purchases / 1 / 200" in tab.text("#samples")
        feed.change("running", starts=3, started=now_ms())
        tab.until("document.querySelector('#starts').innerText.includes('3 starts so far')")


def test_labels_of_an_axis_differ(tab: Tab) -> None:
    feed, _ = made_up_feed(now_ms(), 1)
    with PageServer([feed]) as server:
        tab.open(server.address)
        ticks = "({ ticks }) => [1.08, 2.2, 60].map((most) => ticks(most, 3, Math.round))"
        assert tab.value(f"import('./static/canvas.js').then({ticks})") == [[0, 1], [0, 1, 2], [0, 20, 40, 60]]


def test_jobs_are_chosen_between_and_those_that_run_come_first(tab: Tab) -> None:
    feed, _ = made_up_feed(now_ms() - 60_000, 5)
    dead = JobFeed(job(pipeline="alerts", state="dead"), [MadeUp(now_ms() - 900_000).record()])
    with PageServer([dead, feed]) as server:
        shown(tab, server)
        assert tab.text("#name") == "purchases"
        assert tab.value("[...document.querySelectorAll('#jobs option')].map((each) => each.textContent)") == [
            "purchases (running)",
            "alerts (dead)",
        ]
        tab.value("{ const s = document.querySelector('#jobs select'); s.value = 'alerts'; s.onchange({target: s}); }")
        tab.until("document.querySelector('#name')?.innerText === 'alerts'")
        tab.until("document.querySelector('#state')?.innerText === 'dead'")


def test_windows_look_open_correctable_and_forgotten(tab: Tab) -> None:
    feed, _ = made_up_feed(now_ms() - 400_000, 190)
    with PageServer([feed]) as server:
        shown(tab, server)
        tab.value("document.getElementById('span').value = '1800'")
        tab.value("document.getElementById('span').dispatchEvent(new Event('input'))")
        tab.until(f"{COLOURS}.length > 4")
        legend = tab.text(".legend")
        for state in ("window open", "on-time pane", "can still be corrected", "late pane", "forgotten"):
            assert state in legend
        fills = {tuple(map(int, key.split(","))) for key in tab.value(COLOURS)}
        yellow = [key for key in fills if key[0] > key[2] + 60 and key[3] and key[1] > 120]
        blue = [key for key in fills if key[2] > key[0] + 60 and 0 < key[3] < 90]
        assert yellow
        assert blue
        assert tab.value("document.querySelectorAll('.legend li').length") == 11


def test_slider_says_what_slackwater_lateness_says(tab: Tab, tmp_path: Path) -> None:
    lateness = np.random.default_rng(5).exponential(4_000, 3_000).astype(int)
    events = [{"k": "a", "t": 1_767_225_600_000 + 100 * number - int(late)} for number, late in enumerate(lateness)]
    with sw.LogWriter(tmp_path / "log") as writer:
        for event in events:
            writer.append(event)
    rows = sw.stream("purchases", sw.sources.log(tmp_path / "log")).decode(sw.formats.json("k string, t long"))
    timed = rows.event_time("t", out_of_orderness="10s")
    harness = sw.testing.Harness(
        sw.Pipeline("purchases", timed.to(sw.sinks.memory()), timed.dead_letters.drop()), now=1_767_226_000_000
    )
    [told] = make_report([measure_source(harness.plan.sources[0])]).streams
    measured: dict[str, dict[str, LatenessSketch]] = {}
    for first in range(0, 3_000, 500):
        harness.send("purchases", events[first : first + 500]).run_batch()
        harness.last.move_lateness(measured)
    facts = lateness_facts(measured)
    with PageServer([JobFeed(job(), [MadeUp(now_ms() - 4_000).record()], facts)]) as server:
        shown(tab, server)
        assert told.configured is not None
        share = told.configured.share_behind
        assert 0.01 < share < 0.2
        assert f'out_of_orderness="10s": {share * 100:.1f} % of the rows' in tab.text("#price")
        assert facts["purchases"]["p99_ms"] == told.quantiles_ms["p99"]


def test_a_tab_that_is_open_for_a_day_holds_its_memory(tab: Tab) -> None:
    feed, made = made_up_feed(now_ms() - 100_000, 3)
    record, samples = json.dumps(made.record()), json.dumps(made.samples())
    with PageServer([feed]) as server:
        tab.call("Page.addScriptToEvaluateOnNewDocument", source=KEPT_SOURCE)
        shown(tab, server)
        tab.value(FED % (record, samples, 0, 21_000))
        first = heap(tab)
        tab.value(FED % (record, samples, 21_000, 30_000))
        last = heap(tab)
    assert last["used"] < 1.1 * first["used"] + 3_000_000
    assert last["nodes"] < first["nodes"] + 3_000, "each of the 18 pictures since has made 1,000"
    assert last["listeners"] <= first["listeners"] + 5


def heap(tab: Tab) -> dict[str, int]:
    """Return what the page holds, after the garbage is collected."""
    tab.call("HeapProfiler.collectGarbage")
    counted = tab.call("Memory.getDOMCounters")
    used = tab.call("Runtime.getHeapUsage")["usedSize"]
    return {"used": used, "nodes": counted["nodes"], "listeners": counted["jsEventListeners"]}
