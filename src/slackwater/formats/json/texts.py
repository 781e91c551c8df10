"""Parses values that JSON writes as strings (times, dates, bytes), exactly and one at a time.

Each function raises `ValueError` for an invalid value, `OverflowError` for one out of range and `UnicodeEncodeError`
for half of a surrogate pair.
"""

from __future__ import annotations

import base64
import re
from datetime import UTC, date, datetime, timedelta
from typing import Final

_TIME: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(?:Z|([+-])(\d\d)(?::?(\d\d))?)?", re.ASCII
)
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def read_string(value: str) -> str:
    """Return `value`; raise if it cannot be encoded as UTF-8."""
    if not value.isascii():
        value.encode()
    return value


def read_time(value: str) -> datetime:
    """Parse an ISO 8601 time, in UTC; digits beyond microseconds are truncated."""
    match = _TIME.fullmatch(value)
    if match is None:
        raise ValueError("not an ISO 8601 time such as 2024-01-31T12:00:00.5Z")
    day, clock, seconds, fraction, sign, hours, minutes = match.groups()
    moment = datetime.fromisoformat(f"{day}T{clock}:{seconds or '00'}").replace(
        microsecond=int((fraction or "0").ljust(6, "0")[:6]), tzinfo=UTC
    )
    if sign is None:
        return moment
    if int(hours) > 23 or int(minutes or 0) > 59:  # noqa: PLR2004  the hours and minutes of a clock
        raise ValueError("not a valid offset from UTC")
    offset = timedelta(hours=int(hours), minutes=int(minutes or 0))
    return moment - offset if sign == "+" else moment + offset


def read_date(value: str) -> date:
    """Parse an ISO 8601 date."""
    if _DATE.fullmatch(value) is None:
        raise ValueError("not an ISO 8601 date such as 2024-01-31")
    return date.fromisoformat(value)


def read_base64(value: str) -> bytes:
    """Decode base64."""
    if not value.isascii():
        raise ValueError("not base64")
    return base64.b64decode(value, validate=True)
