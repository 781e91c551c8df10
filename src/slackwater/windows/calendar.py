"""Calendar windows: days, weeks, months, quarters and years in a time zone, including days of 23 and 25 hours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Literal, get_args
from zoneinfo import ZoneInfo, available_timezones

import polars as pl

from slackwater.errors import near_miss, refuse
from slackwater.windows.aligned import AlignedWindow

Unit = Literal["day", "week", "month", "quarter", "year"]
Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_STEPS: Final[dict[str, str]] = {"day": "1d", "week": "1w", "month": "1mo", "quarter": "1q", "year": "1y"}
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
        clock = pl.from_epoch(ts, time_unit="ms").dt.convert_time_zone(self.zone).dt.replace_time_zone(None)
        days = f"{get_args(Weekday).index(self.week_start)}d" if self.unit == "week" else "0d"
        start = clock.dt.offset_by(f"-{days}").dt.truncate(_STEPS[self.unit]).dt.offset_by(days)
        return self._instant(start), self._instant(start.dt.offset_by(_STEPS[self.unit]))

    def _instant(self, midnight: pl.Expr) -> pl.Expr:
        """Return the instant at which clocks first show `midnight`, or the first time after it if they skip it."""
        instants = [
            midnight.dt.offset_by(f"{leap}m")
            .dt.replace_time_zone(self.zone, ambiguous="earliest", non_existent="null")
            .dt.epoch("ms")
            for leap in _LEAPS_MIN
        ]
        return pl.coalesce(instants)

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
            raise refuse("CALENDAR_OPTION", what=what, known=choices, got=repr(given))
    if week_start != "monday" and unit != "week":
        raise refuse(
            "CALENDAR_OPTION", what="week_start", known='"monday" unless the unit is "week"', got=repr(week_start)
        )
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, TypeError, OSError) as error:
        hint = near_miss(zone, available_timezones()) if isinstance(zone, str) else ""
        raise refuse("CALENDAR_ZONE", got=repr(zone), hint=hint) from error
    return CalendarWindow(unit=unit, zone=zone, week_start=week_start)
