"""The page in a real browser."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from slackwater.engine.front.samples import readable
from slackwater.observe.page import event_streams
from slackwater.observe.page.export import one_file
from slackwater.observe.page.job_feed import JobFeed
from slackwater.observe.page.server import PageServer
from tests.browser import Tab
from tests.observe.page.made_up import SLACK_MS, MadeUp, job, made_up_feed
from tests.observe.page.test_app import HOSTILE

READY = "document.querySelector('#figures').children.length > 3"
ORANGE = """(() => {
  const canvas = document.getElementById("picture");
  const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  let lit = 0;
  for (let at = 0; at < pixels.length; at += 4) lit += pixels[at] > 200 && pixels[at + 1] < 110 && pixels[at + 2] < 30;
  return lit;
})()"""
"""How many pixels of the picture have the colour of late rows, in the light."""
DRAWN_AGAIN = """new Promise((done) => {
  document.getElementById("span").dispatchEvent(new Event("input"));
  requestAnimationFrame(() => requestAnimationFrame(() => done(document.getElementById("state").innerText)));
})"""
"""What the badge says once the page was drawn again."""


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def shown(tab: Tab, server: PageServer) -> None:
    tab.open(server.address)
    tab.until(READY)


def test_watermark_is_the_one_of_the_last_batch(tab: Tab) -> None:
    feed, made = made_up_feed(now_ms() - 100_000, 40)
    with PageServer([feed]) as server:
        shown(tab, server)
        for _ in range(3):
            record = made.record()
            feed.publish(record)
            watermark = record["streams"]["purchases"]["watermark"]
            text = datetime.fromtimestamp(watermark // 1_000, UTC).strftime("%Y-%m-%d %H:%M:%S")
            tab.until(f"document.querySelector('#figures').innerText.includes('{text}')")


def test_late_rows_light_up(tab: Tab) -> None:
    feed, made = made_up_feed(now_ms() - 60_000, 0)
    quiet = [in_time(made) for _ in range(20)]
    for record in quiet:
        feed.publish(record)
    with PageServer([feed]) as server:
        shown(tab, server)
        tab.until(f"{ORANGE} === 0")
        late = in_time(made)
        late["streams"]["purchases"]["ages"].append([40_000, 60_000, 30])
        feed.publish(late)
        tab.until(f"{ORANGE} > 20")


DOTS = """import("./static/windows.js").then(({ Windows }) => {
  const dots = [], nothing = () => {};
  const record = (batch, watermark, newest, ages) => ({
    batch, at: 10 + 10 * batch, now: 10 + 10 * batch,
    streams: { s: { watermark, ages, partitions: { 0: { max_ts: newest } } } },
  });
  const known = [
    record(0, 0, 9, [[1, 5, 1]]), record(1, 45, 55, [[2, 4, 1]]), record(2, 62, 72, []),
    record(3, 62, 72, [[12, 20, 1]]),
  ];
  const ink = { arc: (x, y) => dots.push(y), beginPath: nothing, fill: nothing };
  const shown = { low: -25, high: 99, stream: "s", step: { name: "w", size_ms: 10 }, columns: known, known, ink };
  const windows = new Windows({ ...shown, x: (ms) => ms, y: (ms) => ms, width: 0 });
  windows.panes();
  return [windows.all.map((window) => [window.start, window.opened]), dots];
})"""
"""Windows of ten with when they open, and the ends of those with a dot.

Events are up to 9; up to 18, and at 55, ahead of the clock; at 72; and up to 28, which are late.
"""


def test_only_windows_with_rows_are_drawn(tab: Tab) -> None:
    feed, _ = made_up_feed(now_ms(), 1)
    with PageServer([feed]) as server:
        shown(tab, server)
        windows, dots = tab.value(DOTS)
    assert windows == [[0, 10], [10, 20], [20, 40], [50, 20], [70, 30]]
    assert dots == [10, 20, 60]


def in_time(made: MadeUp) -> dict[str, Any]:
    """Return a batch of which every row is in time."""
    record = made.record()
    record["streams"]["purchases"]["ages"] = [[0, 5_000, 400]]
    record["streams"]["purchases"]["dead"] = {}
    for step in record["steps"].values():
        step.update(late=0, refired=0)
    return record


def test_slider_says_what_the_sketch_says(tab: Tab) -> None:
    feed, made = made_up_feed(now_ms() - 100_000, 40)
    with PageServer([feed]) as server:
        shown(tab, server)
        later = made.sketch.share_later_than(SLACK_MS)
        assert f'out_of_orderness="10s": {later * 100:.1f} % of the rows' in tab.text("#price")
        assert "as they do now" in tab.text("#price")
        tab.value(
            "{ const slider = document.getElementById('slider'); slider.value = 1000; "
            "slider.dispatchEvent(new Event('input')); }"
        )
        assert "later than now" in tab.text("#price")


def test_page_hears_from_a_job_that_was_started_again(tab: Tab) -> None:
    feed, made = made_up_feed(now_ms() - 100_000, 5)
    with PageServer([feed]) as server:
        shown(tab, server)
        port = urlsplit(server.address).port or 0
    tab.until("document.querySelector('#state').innerText.includes('retrying')")
    # A page that is drawn again still says so; while the server ends, it may be reached for a moment once more.
    tab.until(f"({DRAWN_AGAIN}).then((text) => text.includes('retrying'))")
    for _ in range(3):
        feed.publish(made.record())
    with PageServer([feed], port=port):
        tab.until("document.querySelector('#figures').innerText.includes('7')")
        tab.until("document.querySelector('#state').innerText === 'running'")
    # While the job was away, the browser could not but say so.
    tab.forget()


def test_page_that_may_not_listen_says_why(tab: Tab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_streams, "MOST_STREAMS", 0)
    feed, _ = made_up_feed(now_ms() - 100_000, 5)
    with PageServer([feed]) as server:
        shown(tab, server)
        tab.until("document.querySelector('#state').innerText.startsWith('this page has 0 listeners')")
        assert "the most it takes" in tab.value(DRAWN_AGAIN)
        tab.forget()  # the browser notes each refusal


def test_page_of_a_job_that_has_finished_says_so(tab: Tab) -> None:
    feed, _ = made_up_feed(now_ms() - 100_000, 5)
    with PageServer([feed]) as server:
        shown(tab, server)
        feed.change("finished")
        tab.until("document.querySelector('#state').innerText === 'finished'")
    assert tab.value(DRAWN_AGAIN) == "finished"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [360, 1200, 3840])
def test_page_fits_and_follows_the_wish_for_the_dark(tab: Tab, width: int, dark: bool) -> None:  # noqa: FBT001  a case
    feed, _ = made_up_feed(now_ms() - 100_000, 10)
    tab.resize(width, 900, dark=dark)
    with PageServer([feed]) as server:
        shown(tab, server)
        assert tab.value("document.documentElement.scrollWidth") <= width
        ground = tab.value("getComputedStyle(document.body).backgroundColor")
        assert ground == ("rgb(16, 21, 27)" if dark else "rgb(246, 247, 249)")


def test_hostile_text_is_text(tab: Tab) -> None:
    record = MadeUp(now_ms() - 4_000).record()
    stream = record["streams"].pop("purchases")
    huge = HOSTILE + "x" * 1_000_000 + "\x00\x1b[31m"
    stream |= {"dead": {HOSTILE: 3}, "partitions": {HOSTILE: stream["partitions"]["0"]}, "held_by": HOSTILE}
    record |= {"streams": {HOSTILE: stream}, "outputs": {HOSTILE: {"rows": 1}}}
    record["steps"] = {HOSTILE: record["steps"].pop("per_minute")}
    place = dict.fromkeys(("kind", "step", "reason", "source", "partition", "message", "data"), HOSTILE)
    samples: list[dict[str, Any]] = [{**place, "data": readable(huge)}, {**place, "offset": 3, "data": huge}]
    described = job(pipeline=HOSTILE, streams=[{"name": HOSTILE, "slack_ms": 0}])
    described["steps"][0]["name"] = HOSTILE
    with PageServer([JobFeed(described, [record], samples=samples)]) as server:
        shown(tab, server)
        tab.until("document.querySelector('#losses').innerText.includes('onerror')")
        tab.until("document.querySelectorAll('#samples code').length === 2")
        assert "\\x00\\x1b[31m" not in tab.text("#samples code"), "cut before that"
        assert HOSTILE in tab.text("#samples")
        assert tab.text("#name") == HOSTILE
        assert tab.value("typeof hacked") == "undefined"
        assert tab.value("document.images.length") == 0


def test_exported_page_works_without_a_server(tab: Tab, tmp_path: Path) -> None:
    feed, made = made_up_feed(now_ms() - 100_000, 30)
    feed.change("finished")
    (tmp_path / "page.html").write_text(one_file(feed), encoding="utf-8")
    tab.open((tmp_path / "page.html").as_uri())
    tab.until(READY)
    assert tab.text("#state") == "finished"
    assert f"{made.batch}" in tab.text("#figures")


def test_keys_move_through_the_batches(tab: Tab) -> None:
    feed, made = made_up_feed(now_ms() - 20_000, 8)
    with PageServer([feed]) as server:
        shown(tab, server)
        tab.value("document.getElementById('picture').focus()")
        for _ in range(2):
            tab.value(
                "document.getElementById('picture').dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowLeft'}))"
            )
        assert tab.text("#picture-text").startswith(f"batch {made.batch - 1},")
