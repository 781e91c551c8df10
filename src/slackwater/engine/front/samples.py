"""Samples of a task's late rows and dead letters, for the people who monitor a job.

Every sample has the reason and the position of the row in its source; its content only if the plan `shows_data`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import polars as pl

from slackwater.formats.row_payloads import row_payloads

MOST_SAMPLES: Final = 20
"""The most samples that a task reports, and that a batch shows."""
MOST_BYTES: Final = 2_048
"""The most bytes of a row's content; the rest is cut off."""
_OF_A_KIND: Final = 5
"""The most samples per step and reason, so that one kind does not crowd out the others."""
_LONGEST_NAME: Final = 200
_MARGIN: Final = 8
Sample = dict[str, Any]
"""A sample as JSON: kind, step, reason, source, partition, offset; late rows have late_by_ms; message and data if
shown."""


@dataclass(kw_only=True)
class Sampler:
    """Samples the first few rows of each step and reason."""

    shows_data: bool
    taken: list[Sample] = field(default_factory=list)
    _of_a_kind: Counter[tuple[str, str]] = field(default_factory=Counter)

    def late(self, rows: pl.DataFrame, step: str, *, place_of: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
        """Sample rows on their way to the late output of a step; `place_of` returns their places."""
        rows = self._first(rows, step, "late")
        if rows.is_empty():
            return
        nothing = [None] * rows.height
        places = place_of(rows).rows(named=True)
        data = row_payloads(rows.select(pl.exclude(r"^__.*$"))) if self.shows_data else nothing
        for place, late_by_ms, shown in zip(places, rows["late_by_ms"], data, strict=True):
            self._take("late", step, "late", place, late_by_ms=late_by_ms, data=shown)

    def dead(self, letters: pl.DataFrame) -> None:
        """Sample dead letters."""
        for (step, reason), part in letters.group_by("step", "reason", maintain_order=True):
            for letter in self._first(part, str(step), str(reason)).iter_rows(named=True):
                place = {name: letter[name] for name in ("source", "partition", "offset")}
                message, payload = letter["message"], letter["payload"]
                self._take("dead", str(step), str(reason), place, message=message, data=payload)

    def _first(self, rows: pl.DataFrame, step: str, reason: str) -> pl.DataFrame:
        """Return as many of the first `rows` as the limits allow."""
        room = min(_OF_A_KIND - self._of_a_kind[step, reason], MOST_SAMPLES - len(self.taken))
        return rows.head(max(0, room))

    def _take(self, kind: str, step: str, reason: str, place: Sample, **known: Any) -> None:  # noqa: ANN401  columns
        self._of_a_kind[step, reason] += 1
        sample: Sample = {"kind": kind, "step": step, "reason": reason, **place}
        for name, value in known.items():
            if name == "late_by_ms" or (self.shows_data and value is not None):
                sample[name] = value if name == "late_by_ms" else readable(value)
        self.taken.append({name: _short(value) if name in place else value for name, value in sample.items()})


def readable(value: str | bytes) -> str:
    """Return at most two kilobytes of a value as text, with unprintable characters escaped."""
    raw = value[: MOST_BYTES + _MARGIN].encode(errors="replace") if isinstance(value, str) else value
    text = raw[:MOST_BYTES].decode(errors="replace")
    spelled = "".join(each if each.isprintable() or each == "\n" else f"\\x{ord(each):02x}" for each in text)
    return f"{spelled[:MOST_BYTES]} …" if len(raw) > MOST_BYTES or len(spelled) > MOST_BYTES else spelled


def _short(value: Any) -> Any:  # noqa: ANN401  a name, or a number
    return f"{value[:_LONGEST_NAME]}…" if isinstance(value, str) and len(value) > _LONGEST_NAME else value
