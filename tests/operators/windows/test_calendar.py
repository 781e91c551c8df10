"""Calendar windows: units of a time zone's calendar, whatever its clocks do at midnight."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import accumulate, groupby
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.base.errors import DefinitionError
from slackwater.operators.windows.calendar import Unit
from slackwater.testing import Harness, rows_source

HOUR = 3_600_000
ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/Sao_Paulo",
    "America/Havana",
    "Asia/Beirut",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "Pacific/Apia",
]
UNITS: list[Unit] = ["day", "week", "month", "quarter", "year"]


def ms(zone: str, *parts: int) -> int:
    return round(datetime(*parts, tzinfo=ZoneInfo(zone)).timestamp() * 1000)  # type: ignore[arg-type, misc]


def label(unit: Unit, ts_ms: int, zone: str) -> tuple[int, ...]:
    """Return what tells one unit from another on the clocks of a zone, by Python's own calendar."""
    local = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ts_ms)).astimezone(ZoneInfo(zone))
    names = {
        "day": (local.year, local.month, local.day),
        "week": tuple(local.isocalendar())[:2],
        "month": (local.year, local.month),
        "quarter": (local.year, (local.month - 1) // 3),
        "year": (local.year,),
    }
    return names[unit]


@pytest.mark.parametrize(
    "parts, hours", [((2026, 3, 29), 23), ((2026, 10, 25), 25), ((2026, 7, 1), 24)], ids=["spring", "autumn", "summer"]
)
def test_day_in_which_clocks_change_has_another_length(parts: tuple[int, int, int], hours: int) -> None:
    zone = "Europe/Berlin"
    [(start, end)] = sw.calendar("day", zone=zone).windows_of(ms(zone, *parts, 12))
    assert start == ms(zone, *parts)
    assert end - start == hours * HOUR


def test_month_begins_at_midnight_there_and_not_in_utc() -> None:
    [window] = sw.calendar("month", zone="Europe/Berlin").windows_of(ms("UTC", 2026, 1, 31, 23, 30))
    assert window == (ms("Europe/Berlin", 2026, 2, 1), ms("Europe/Berlin", 2026, 3, 1))


def test_week_may_start_on_any_day() -> None:
    sunday = sw.calendar("week", zone="UTC", week_start="sunday")
    assert sunday.windows_of(ms("UTC", 2026, 11, 17)) == [(ms("UTC", 2026, 11, 15), ms("UTC", 2026, 11, 22))]
    assert sunday.windows_of(ms("UTC", 2026, 11, 15)) == sunday.windows_of(ms("UTC", 2026, 11, 21, 23))


def test_midnight_that_clocks_leap_over_is_the_first_time_after_it() -> None:
    zone = "America/Sao_Paulo"  # on 2018-11-04 clocks went from 00:00 to 01:00
    [(start, end)] = sw.calendar("day", zone=zone).windows_of(ms(zone, 2018, 11, 4, 12))
    assert (start, end - start) == (ms(zone, 2018, 11, 4, 1), 23 * HOUR)


def test_day_that_a_zone_skipped_is_between_two_others_and_takes_no_time() -> None:
    zone = "Pacific/Apia"  # there was no 2011-12-30
    [(_, end)] = sw.calendar("day", zone=zone).windows_of(ms(zone, 2011, 12, 29, 12))
    [(start, _)] = sw.calendar("day", zone=zone).windows_of(ms(zone, 2011, 12, 31, 12))
    assert end == start


@pytest.mark.parametrize("zone, hours", [("Europe/Berlin", None), ("Australia/Sydney", None), ("Asia/Kolkata", 24)])
def test_days_have_one_size_only_where_clocks_do_not_change(zone: str, hours: int | None) -> None:
    band = sw.calendar("day", zone=zone).band()
    assert (band and band[0] // HOUR) == hours


@given(st.sampled_from(UNITS), st.sampled_from(ZONES), st.integers(0, 2 * 10**12))
def test_window_holds_the_instants_of_its_unit_and_no_others(unit: Unit, zone: str, ts_ms: int) -> None:
    [(start, end)] = sw.calendar(unit, zone=zone).windows_of(ts_ms)
    assert start <= ts_ms < end
    here = label(unit, ts_ms, zone)
    assert label(unit, start, zone) == here == label(unit, end - 1, zone)
    assert label(unit, start - 1, zone) != here != label(unit, end, zone)


@pytest.mark.parametrize("unit", ["day", "month"])
@pytest.mark.parametrize(
    "zone, parts",
    [
        ("America/St_Johns", (2009, 11, 1)),  # at 00:01 clocks went back to 23:01 of the day before
        ("America/Goose_Bay", (2010, 11, 7)),  # the same
        ("America/St_Johns", (1988, 10, 30)),  # at 00:01 by two hours, to 22:01
        ("America/Sao_Paulo", (2018, 2, 18)),  # at midnight to 23:00, so that midnight is shown once
        ("America/Havana", (2026, 11, 1)),
        ("Pacific/Apia", (2011, 12, 30)),
    ],
)
def test_windows_follow_one_another_where_clocks_show_the_old_day_again(
    unit: Unit, zone: str, parts: tuple[int, int, int]
) -> None:
    minutes = range(ms("UTC", *parts) - 30 * HOUR, ms("UTC", *parts) + 60 * HOUR, 60_000)
    start, end = sw.calendar(unit, zone=zone).bounds(pl.col("ts"))
    windows = pl.DataFrame({"ts": minutes}).select("ts", start.alias("start"), end.alias("end")).rows()
    assert [ts for ts, start_ms, end_ms in windows if not start_ms <= ts < end_ms] == []
    # A unit has begun when clocks first show it, whatever they show later.
    begun = list(accumulate((label(unit, ts, zone) for ts in minutes), max))
    by_window = groupby(zip(windows, begun, strict=True), key=lambda pair: pair[0][1:])
    assert [len({unit for _, unit in group}) for _, group in by_window] == [1] * len(set(begun))


def test_rows_at_a_midnight_that_clocks_show_twice_are_counted_alike_in_any_batches() -> None:
    times = [ms("UTC", 2009, 11, 1, *clock) for clock in ((2, 0, 0), (2, 30, 30), (3, 0, 0))]

    def counted(batches: list[list[int]]) -> list[tuple[object, ...]]:
        stream = sw.stream("s", rows_source("k string, ts long")).event_time("ts", out_of_orderness="0s")
        window = sw.calendar("month", zone="America/St_Johns")
        results = stream.key_by("k").window(window).aggregate(n=sw.count())
        ends = [results.to(sw.sinks.memory()), results.late.to(sw.sinks.memory()), stream.dead_letters.drop()]
        harness = Harness(sw.Pipeline("p", *ends))
        for batch in batches:
            harness.send("s", [{"k": "a", "ts": ts} for ts in batch]).run_batch()
        harness.finish()
        assert harness.output(results.late).is_empty()
        return harness.output(results).select("window_start", "window_end", "n").sort("window_start").rows()

    assert counted([[ts] for ts in times]) == counted([times])


def test_results_are_by_day_of_the_zone() -> None:
    stream = sw.stream("s", rows_source("k string, ts long")).event_time("ts", out_of_orderness="0s")
    results = stream.key_by("k").window(sw.calendar("day", zone="Europe/Berlin")).aggregate(n=sw.count())
    ends = [results.to(sw.sinks.memory()), results.late.to(sw.sinks.memory()), stream.dead_letters.drop()]
    harness = Harness(sw.Pipeline("p", *ends, key_groups=2))
    midnight = ms("Europe/Berlin", 2026, 3, 30)
    times = [midnight - 1, midnight, midnight + 30 * HOUR]
    harness.send("s", pl.DataFrame({"k": "a", "ts": times})).run_batch()
    harness.run_batch()
    harness.send("s", [{"k": "a", "ts": midnight - 2}])
    harness.finish()
    shown = harness.output(results).sort("window_start")
    assert shown["n"].to_list() == [1, 1, 1]
    assert shown["window_end"][0] - shown["window_start"][0] == timedelta(hours=23)
    [late] = harness.output(results.late).to_dicts()
    assert late["windows"] == [{"start": shown["window_start"][0], "end": shown["window_end"][0]}]


@pytest.mark.parametrize(
    "options, text",
    [
        ({"unit": "fortnight", "zone": "UTC"}, 'CALENDAR_OPTION.*"day", "week".*got \'fortnight\''),
        ({"unit": "week", "zone": "UTC", "week_start": "mon"}, "CALENDAR_OPTION.*`week_start`.*got 'mon'"),
        ({"unit": "day", "zone": "Europe/Berlni"}, "CALENDAR_ZONE.*did you mean `Europe/Berlin`"),
        ({"unit": "day", "zone": None}, "CALENDAR_ZONE.*got None"),
        ({"unit": "day", "zone": "../etc"}, "CALENDAR_ZONE"),
        ({"unit": "day", "zone": "posixrules"}, "CALENDAR_ZONE.*got 'posixrules'"),
        ({"unit": "day", "zone": "Factory"}, "CALENDAR_ZONE.*got 'Factory'"),
        ({"unit": "day", "zone": "Europe"}, "CALENDAR_ZONE.*got 'Europe'; "),
        ({"unit": "day", "zone": "GMT+1"}, r"got 'GMT\+1'; name a city's zone, .*Etc/GMT-1"),
        ({"unit": "day", "zone": "UTC", "week_start": "sunday"}, "CALENDAR_WEEK_START.*with unit .day.;"),
        ({"unit": "week", "zone": "UTC", "week_start": "Sun"}, 'write, for example, week_start="sunday"'),
    ],
)
def test_calendar_that_there_is_not_is_refused(options: dict[str, str], text: str) -> None:
    with pytest.raises(DefinitionError, match=text):
        sw.calendar(**options)  # type: ignore[arg-type]
