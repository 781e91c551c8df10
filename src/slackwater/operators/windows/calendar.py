"""Calendar windows: days, weeks, months, quarters and years in a time zone, including days of 23 and 25 hours."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, get_args
from zoneinfo import available_timezones

import numpy as np
import numpy.typing as npt
import polars as pl

from slackwater.base.errors import near_miss, refuse
from slackwater.operators.windows.aligned import AlignedWindow

Unit = Literal["day", "week", "month", "quarter", "year"]
Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_UNITS: Final[dict[str, str]] = {"day": "d", "week": "w", "month": "mo", "quarter": "q", "year": "y"}
"""The units in the notation of Polars."""
_EXAMPLES: Final = {"unit": 'sw.calendar("month", zone="Europe/Berlin")', "week_start": 'week_start="sunday"'}
_OFFSET: Final = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?\d\d)?", re.IGNORECASE)
_BOTH: Final = pl.Struct({"start": pl.Int64(), "end": pl.Int64()})
_LEAPS_MIN: Final = (0, 15, 30, 45, 60, 90, 120, 180, 1440)
"""By how many minutes clocks may be set forward at midnight, up to the day that Samoa skipped."""


@dataclass(frozen=True, kw_only=True)
class CalendarWindow(AlignedWindow):
    """Consecutive calendar units in a time zone, each from midnight to midnight local time."""

    unit: Unit
    zone: str
    week_start: Weekday = "monday"

    is_trusted: ClassVar[bool] = True

    def bounds(self, ts: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
        """Return the start and end of the unit that contains `ts`."""
        both = ts.map_batches(self._windows, return_dtype=_BOTH)
        return both.struct.field("start"), both.struct.field("end")

    def _windows(self, times: pl.Series) -> pl.Series:
        """Return the windows of `times`, found among the instants at which units begin.

        The unit that clocks show is only near the right one: clocks set back after midnight show the old day again.
        """
        unit = _UNITS[self.unit]
        shift = get_args(Weekday).index(self.week_start) if self.unit == "week" else 0
        clock = pl.from_epoch(pl.col("ts"), time_unit="ms").dt.convert_time_zone(self.zone).dt.replace_time_zone(None)
        shown = clock.dt.offset_by(f"-{shift}d").dt.truncate(f"1{unit}").unique().dt.offset_by(f"{shift}d")
        near = [shown.dt.offset_by(f"{number}{unit}").alias(str(number)) for number in (-1, 0, 1, 2)]
        begins = self._instants(pl.concat(times.to_frame("ts").select(near).get_columns()))
        place = np.searchsorted(begins, times.to_numpy(), side="right")
        return pl.DataFrame({"start": begins[place - 1], "end": begins[place]}).to_struct(times.name)

    def _instants(self, midnights: pl.Series) -> npt.NDArray[np.int64]:
        """Return when clocks first show each of `midnights`, or the first time after it if they skip it; sorted."""
        found, left = [], midnights.to_frame("at")
        for leap in _LEAPS_MIN:
            after = pl.col("at").dt.offset_by(f"{leap}m")
            instants = after.dt.replace_time_zone(self.zone, ambiguous="earliest", non_existent="null").dt.epoch("ms")
            shown = left.select(instants).to_series()
            found.append(shown.drop_nulls().to_numpy())
            left = left.filter(shown.is_null()) if shown.null_count() else left.clear()
            if left.is_empty():
                break
        return np.unique(np.concatenate(found))

    def __str__(self) -> str:
        starts = f", starting on {self.week_start}" if self.unit == "week" and self.week_start != "monday" else ""
        return f"calendar {self.unit} in {self.zone}{starts}"


def calendar(unit: Unit, *, zone: str, week_start: Weekday = "monday") -> CalendarWindow:
    """Windows of the calendar: `calendar("month", zone="Europe/Berlin")`.

    `unit` is "day", "week", "month", "quarter" or "year". Windows begin and end at midnight in `zone`, so a day in
    which clocks change has 23 or 25 hours. Weeks start on Monday unless `week_start` names another day.
    """
    for what, given, known in (("unit", unit, get_args(Unit)), ("week_start", week_start, get_args(Weekday))):
        if given not in known:
            choices = ", ".join(f'"{choice}"' for choice in known)
            raise refuse("CALENDAR_OPTION", what=what, known=choices, got=repr(given), example=_EXAMPLES[what])
    if week_start != "monday" and unit != "week":
        raise refuse("CALENDAR_WEEK_START", got=repr(week_start), unit=unit)
    try:
        pl.Series([0], dtype=pl.Datetime("ms", "UTC")).dt.convert_time_zone(zone)
    except (pl.exceptions.PolarsError, TypeError, ValueError) as error:
        raise refuse("CALENDAR_ZONE", got=repr(zone), **_zone_advice(zone)) from error
    return CalendarWindow(unit=unit, zone=zone, week_start=week_start)


def _zone_advice(zone: object) -> dict[str, str]:
    """Return the zone that was probably meant, and what to write instead."""
    text = str(zone)
    if offset := _OFFSET.fullmatch(text):
        inverted = f"Etc/GMT{'-' if offset[1] == '+' else '+'}{int(offset[2])}"
        return {"hint": "", "advice": f'name a city\'s zone, or write zone="{inverted}", whose sign is inverted'}
    zones = available_timezones()
    is_region = any(name.startswith(f"{text}/") for name in zones)
    hint = "" if is_region else near_miss(text, sorted(zones))
    return {"hint": hint, "advice": 'write, for example, zone="Europe/Berlin" or zone="UTC"'}
