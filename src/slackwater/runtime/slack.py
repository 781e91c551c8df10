"""Whether a stream's out-of-orderness is enough for the lateness that its rows turn out to have."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Final

from slackwater.errors import render
from slackwater.eventtime.durations import render_ms
from slackwater.eventtime.lateness import LatenessSketch
from slackwater.plan import Plan

_ENOUGH_ROWS: Final = 10_000
_TARGET: Final = 0.99


class SlackWarning(UserWarning):
    """A stream's out-of-orderness is below what was measured."""


def report_short_slack(plan: Plan, measured: Mapping[str, Mapping[str, LatenessSketch]], reported: set[str]) -> None:
    """Warn, once per stream, when more than one row in a hundred is further behind than the stream allows for."""
    for source in plan.sources:
        if source.name in reported or source.time is None or source.name not in measured:
            continue
        sketch = LatenessSketch.merged(measured[source.name].values())
        if sketch.count < _ENOUGH_ROWS:
            continue
        slack_ms = source.time.out_of_orderness_ms
        if (p99_ms := sketch.quantile(_TARGET)) > slack_ms:
            reported.add(source.name)
            facts = {"stream": source.name, "slack": render_ms(slack_ms), "measured": render_ms(round(p99_ms))}
            share = f"{sketch.share_later_than(slack_ms):.1%}"
            words = render("LATENESS_ABOVE_SLACK", **facts, share=share)
            warnings.warn(f"[LATENESS_ABOVE_SLACK] {words}", SlackWarning, stacklevel=2)
