"""Warnings that a job issues once: too little slack, an incompatible schema, a hot key, an unusable partition."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Final

from slackwater.base.durations import render_ms, roughly
from slackwater.base.errors import SlackwaterWarning, listed, notice
from slackwater.engine.batch_stats import BatchStats
from slackwater.eventtime.clock import Clock, StreamTime
from slackwater.eventtime.measured_lateness import AHEAD_MS, LatenessSketch
from slackwater.eventtime.watermark import barren
from slackwater.plan.plan import Plan

_ENOUGH_ROWS: Final = 10_000
_TARGET: Final = 0.99
_HOT: Final = 0.2
"""The share of a batch's rows above which a key is hot."""
_SHOWN: Final = 5


class SlackWarning(SlackwaterWarning):
    """A stream's out-of-orderness is below its measured lateness."""


class BarrenPartitionWarning(SlackwaterWarning):
    """A partition is read, but none of its rows has a usable time."""


class SchemaWarning(SlackwaterWarning):
    """Records of a stream were written with a schema that is incompatible with the stream's."""


class HotKeyWarning(SlackwaterWarning):
    """One key has so many rows that its key group holds up the batch."""


def report_schemas(stats: BatchStats, reported: set[str]) -> None:
    """Warn, once per stream and incompatible schema, that its records are dead letters."""
    for name, stream in stats.streams.items():
        for cause in stream.reasons.get("incompatible_schema", ()):
            if f"{name} {cause}" not in reported:
                reported.add(f"{name} {cause}")
                warnings.warn(notice("SCHEMA_INCOMPATIBLE", stream=name, cause=cause), SchemaWarning, stacklevel=2)


def report_barren(plan: Plan, clock: Clock, reported: set[str]) -> None:
    """Warn of a partition that is set aside because none of its rows is usable; once, until it recovers."""
    for source in plan.sources:
        found = set(barren(clock.streams[source.name]))
        keys = {f"barren {source.name} {name}": name for name in found}
        known = {key for key in reported if key.startswith(f"barren {source.name} ")}
        reported -= known - set(keys)
        if fresh := sorted(keys[key] for key in set(keys) - known):
            reported.update(keys)
            assert source.time is not None
            assert source.time.idle_after_ms is not None
            facts = {"stream": source.name, "idle_after": render_ms(source.time.idle_after_ms)}
            partitions = listed((f"`{name}`" for name in fresh), most=_SHOWN)
            warnings.warn(
                notice("PARTITION_UNUSABLE", **facts, partitions=partitions), BarrenPartitionWarning, stacklevel=2
            )


def report_skew(stats: BatchStats, reported: set[str]) -> None:
    """Warn, once per step, when one key has more than a fifth of a batch's rows."""
    for step, skew in stats.skew.items():
        key, share = skew.largest
        if skew.rows >= _ENOUGH_ROWS and share > _HOT and f"skew {step}" not in reported:
            reported.add(f"skew {step}")
            warnings.warn(
                notice("HOT_KEY", step=step, key=key, share=f"{share:.0%}", rows=f"{skew.rows:,}"),
                HotKeyWarning,
                stacklevel=2,
            )


def report_short_slack(
    plan: Plan, measured: Mapping[str, Mapping[str, LatenessSketch]], clock: Clock, *, now_ms: int, reported: set[str]
) -> None:
    """Warn, once per stream, if more than one row in a hundred is later than the stream's out-of-orderness.

    Partitions with an event far ahead of processing time are left out: behind a wrong clock every row looks late, and
    no slack would help. If most rows are in such partitions, the events really are from the future, and all count.
    """
    for source in plan.sources:
        if source.name in reported or source.time is None or source.name not in measured:
            continue
        sketch = _believed(measured[source.name], clock.streams[source.name], now_ms)
        if sketch.count < _ENOUGH_ROWS:
            continue
        slack_ms = source.time.out_of_orderness_ms
        if (p99_ms := sketch.quantile(_TARGET)) > slack_ms:
            reported.add(source.name)
            facts = {"stream": source.name, "slack": render_ms(slack_ms), "measured": roughly(round(p99_ms))}
            share = f"{sketch.share_later_than(slack_ms):.1%}"
            warnings.warn(notice("LATENESS_ABOVE_SLACK", **facts, share=share), SlackWarning, stacklevel=2)


def _believed(measured: Mapping[str, LatenessSketch], time: StreamTime, now_ms: int) -> LatenessSketch:
    ahead = {name for name, known in time.partitions.items() if known.max_ts_ms > now_ms + AHEAD_MS}
    whole = LatenessSketch.merged(measured.values())
    believed = LatenessSketch.merged(sketch for name, sketch in measured.items() if name not in ahead)
    return believed if 2 * believed.count > whole.count else whole
