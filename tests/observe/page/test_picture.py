"""The picture fits what it shows: a month that is replayed in minutes, the last minutes, or milliseconds."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import pytest

from slackwater.observe.page.export import one_file
from slackwater.observe.page.job_feed import JobFeed
from slackwater.observe.page.server import PageServer
from tests.browser import Tab
from tests.observe.page.made_up import job, made_up_feed
from tests.observe.page.replays import DAY_MS, JANUARY_MS, brief_feed, replayed_feed, replayed_sessions

GEOMETRY = """import("./static/picture.js").then(async ({ Picture }) => {
  const [job, records] = await Promise.all(
    ["api/job", "api/history"].map((path) => fetch(path).then((each) => each.json())),
  );
  const [from, to] = [records[0].at - 1000 * records[0].seconds, records.at(-1).at];
  const picture = new Picture(document.getElementById("picture"));
  picture.draw(records, { stream: job.streams[0].name, step: job.steps[0], from, to });
  const { dots, ticks, low, high, windows, height } = picture;
  const marks = picture.line((record) => record.streams[job.streams[0].name].watermark);
  return {
    ticks, low, high, height, dots, marks, together: windows.together,
    bands: (windows.all ?? []).map(({ start, end }) => [start, end, picture.y(start) - picture.y(end)]),
    shades: windows.shades, first: picture.bars(0).map(([from]) => from), records,
    text: document.getElementById("picture-text").innerText,
  };
})"""
"""What the picture of all records has where."""


def live_feed() -> JobFeed:
    return made_up_feed(time.time_ns() // 1_000_000 - 200_000, 100)[0]


def geometry(tab: Tab, feed: JobFeed) -> dict[str, Any]:
    with PageServer([feed]) as server:
        tab.open(server.address)
        tab.until("document.querySelector('#figures').children.length > 3")
        found: dict[str, Any] = tab.value(GEOMETRY)
    return found


def is_below(dot: list[float], marks: list[list[float]]) -> bool:
    """Return whether a dot is below the watermark that its batch met: the corner of the line at or left of it."""
    x, y, _ = dot
    met = [mark for mark in marks if mark[0] <= x]
    return y >= (min(met, key=lambda mark: mark[1])[1] if met else 0)


@pytest.mark.parametrize("width", [400, 1440])
def test_month_that_is_replayed_spans_the_month(tab: Tab, width: int) -> None:
    tab.resize(width, 900)
    found = geometry(tab, replayed_feed())
    assert JANUARY_MS - 3 * DAY_MS < found["low"] < JANUARY_MS < JANUARY_MS + 29 * DAY_MS < found["high"]
    assert found["high"] < JANUARY_MS + 33 * DAY_MS
    assert len(found["ticks"]["event"]) >= 3
    assert all(
        re.fullmatch(r"\d+ Jan", tick["text"])
        for tick in found["ticks"]["event"]
        if tick["ms"] < JANUARY_MS + 31 * DAY_MS
    )
    assert found["ticks"]["event"][0]["text"] == "1 Jan"
    assert all(re.fullmatch(r"\d\d:\d\d(:\d\d)?", tick["text"]) for tick in found["ticks"]["processing"])


def test_windows_too_low_to_see_are_drawn_together(tab: Tab) -> None:
    found = geometry(tab, replayed_feed())
    assert 5 <= len(found["bands"]) <= 40
    assert all(pixels >= 10 for _, _, pixels in found["bands"])
    assert found["together"] in (24, 48)
    assert f"Each band stands for {found['together']} windows of 1h." in found["text"]


@pytest.mark.parametrize("feed", [replayed_feed, brief_feed, live_feed], ids=["month", "milliseconds", "live"])
def test_late_rows_are_below_the_watermark(tab: Tab, feed: Callable[[], JobFeed]) -> None:
    found = geometry(tab, feed())
    assert len(found["dots"]) > 20
    assert [dot for dot in found["dots"] if not is_below(dot, found["marks"])] == []


@pytest.mark.parametrize("batches", [1, 2, 12])
def test_first_batch_of_a_replay_is_whole(tab: Tab, batches: int) -> None:
    found = geometry(tab, replayed_feed(batches=batches))
    oldest = found["records"][0]["streams"]["departures"]["oldest"]
    assert found["low"] <= oldest
    assert min(found["first"]) == oldest
    assert found["bands"][0][0] <= oldest < found["bands"][0][1]


def test_row_from_1970_does_not_squeeze_the_rest(tab: Tab) -> None:
    feed = replayed_feed(batches=12)
    [first, *others] = feed.records
    departures = first["streams"]["departures"] | {"oldest": 0}
    found = geometry(tab, JobFeed(feed.job, [first | {"streams": {"departures": departures}}, *others]))
    assert found["high"] - found["low"] < 800 * DAY_MS


def test_picture_begins_with_the_first_row(tab: Tab) -> None:
    records = made_up_feed(time.time_ns() // 1_000_000 - 100_000, 30)[0].records
    for record in records:
        record["streams"]["purchases"]["ages"] = [[0, 5_000, 400]]
    described = job(steps=[{**job()["steps"][0], "lateness_ms": 150_000}])
    found = geometry(tab, JobFeed(described, records))
    assert found["high"] - found["low"] < 120_000, "there are no windows to correct before it"


def test_rows_some_minutes_old_are_in_bars_of_their_ages(tab: Tab) -> None:
    records = []
    for record in made_up_feed(time.time_ns() // 1_000_000 - 200_000, 30)[0].records:
        own = record["streams"]["purchases"]
        ages = [[600_000 + low, 600_000 + min(high, low + 9_000), rows] for low, high, rows in own["ages"]]
        parts = {name: {**part, "max_ts": part["max_ts"] - 600_000} for name, part in own["partitions"].items()}
        own |= {"ages": ages, "partitions": parts, "watermark": own["watermark"] - 600_000, "behind": [[0, 9_000, 400]]}
        own["oldest"] = record["now"] - ages[-1][0] - 1
        records.append(record)
    found = geometry(tab, JobFeed(job(), records))
    own, now = records[0]["streams"]["purchases"], records[0]["now"]
    assert sorted(found["first"]) == sorted(max(own["oldest"], now - high) for _, high, _ in own["ages"])


def test_sessions_are_shades_that_follow_the_watermark(tab: Tab) -> None:
    found = geometry(tab, replayed_sessions())
    marks = {record["at"]: record["streams"]["departures"]["watermark"] for record in found["records"]}
    shades = found["shades"]
    assert len(shades["open"]) == len(shades["correctable"]) == 11
    assert all(low == marks[at] - DAY_MS for at, _, low, _ in shades["open"])
    assert all(high == marks[at] - DAY_MS for at, _, _, high in shades["correctable"])
    assert all(high == marks[at] - 3 * DAY_MS for at, _, _, high in shades["forgotten"])
    assert "A session of visits ends 1d after its last event" in found["text"]


def test_late_rows_of_all_steps_are_dots(tab: Tab) -> None:
    found = geometry(tab, replayed_sessions())
    assert len({round(x) for x, _, _ in found["dots"]}) >= 11, "the chosen step has none"


def test_windows_of_live_data_are_drawn_one_by_one(tab: Tab) -> None:
    found = geometry(tab, live_feed())
    assert found["together"] == 1
    assert "Each band" not in found["text"]
    assert {end - start for start, end, _ in found["bands"]} == {60_000}


def test_milliseconds_have_ticks_of_their_own(tab: Tab) -> None:
    found = geometry(tab, brief_feed())
    assert found["high"] - found["low"] < 2_000
    for axis in ("event", "processing"):
        texts = [tick["text"] for tick in found["ticks"][axis]]
        assert len(texts) >= 3
        assert all(re.fullmatch(r"\d\d:\d\d:\d\d\.\d{3}", text) for text in texts)


TICKS = """import("./static/axes.js").then(({ timeTicks }) => timeTicks({low}, {high}, 6).map(({ text }) => text))"""


@pytest.mark.parametrize(
    "hours, texts",
    [
        ((22, 26), ["1 Jan 22:00", "23:00", "2 Jan 00:00", "01:00", "02:00"]),
        ((3, 5), ["03:00", "03:30", "04:00", "04:30", "05:00"]),
        ((0, 24 * 5), ["1 Jan", "2 Jan", "3 Jan", "4 Jan", "5 Jan", "6 Jan"]),
        ((0, 24 * 800), ["Jan 2024", "Jul 2024", "Jan 2025", "Jul 2025", "Jan 2026"]),
        ((0, 24 * 8_000), ["2025", "2030", "2035", "2040", "2045"]),
    ],
)
def test_ticks_are_round_and_have_dates_where_days_matter(tab: Tab, hours: tuple[int, int], texts: list[str]) -> None:
    low, high = (JANUARY_MS + hour * 3_600_000 for hour in hours)
    with PageServer([replayed_feed(batches=2)]) as server:
        tab.open(server.address)
        assert tab.value(TICKS.replace("{low}", str(low)).replace("{high}", str(high))) == texts


def test_exported_replay_is_drawn(tab: Tab, tmp_path: Any) -> None:  # noqa: ANN401  a path
    (tmp_path / "page.html").write_text(one_file(replayed_feed(batches=20)), encoding="utf-8")
    tab.open((tmp_path / "page.html").as_uri())
    tab.until("document.querySelector('#picture-text').innerText.includes('Each band stands for')")
