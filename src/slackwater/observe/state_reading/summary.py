"""The size of each step's state, its oldest entry, and its largest keys."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import polars as pl

from slackwater.base.times import EPOCH
from slackwater.observe.state_reading.groups import Answer, StateGroups, StoredStep
from slackwater.observe.state_reading.keys import key_text
from slackwater.operators.state.packing import pack, unpack
from slackwater.operators.state.pieces import StepState

MOST_KEYS: Final = 5
"""Keys that a summary names for each step by default."""
_TIMES: Final = ("event_time", "window_start", "oldest_write")


@dataclass(kw_only=True)
class StepSummary:
    """The state of one step over all key groups."""

    step: str
    bytes: int = 0
    """As stored, before Spark compresses it."""
    rows: int = 0
    pieces: int = 0
    keys: int | None = 0
    """None if the pipeline cannot read the stored rows."""
    oldest: datetime | None = None
    """The oldest event time, window start or write."""
    largest: list[dict[str, Any]] = field(default_factory=list)
    """The keys with the most entries: `key`, `entries`."""


@dataclass(frozen=True, kw_only=True)
class Sizing:
    """Measures the state of a step in one key group."""

    most_keys: int

    def __call__(self, step: StoredStep, state: StepState) -> Answer | None:
        """Return sizes from the index, and keys from the rows."""
        facts: dict[str, Any] = {
            **state.sizes,
            "keys": None,
            "oldest_ms": None,
        }
        if step.spec is None:
            return Answer(step.name, json.dumps(facts), b"")
        shown = step.spec.shown_state(state)
        keys = [key for key in step.spec.keys if key in shown.columns]
        times = [name for name in _TIMES if isinstance(shown.schema.get(name), pl.Datetime)]
        oldest = [time for name in times if isinstance(time := shown[name].min(), datetime)]
        facts["oldest_ms"] = round((min(oldest) - EPOCH).total_seconds() * 1000) if oldest else None
        if not keys:
            # If only hashes are stored, there is one per key.
            return Answer(step.name, json.dumps(facts | {"keys": shown.height}), b"")
        # A key is in one key group, so the largest of all are among the largest of each.
        counts = shown.group_by(keys, maintain_order=True).agg(pl.len().cast(pl.Int64).alias("__entries"))
        most = counts.sort("__entries", descending=True, maintain_order=True).head(self.most_keys)
        texts = [key_text(values) for values in most.select(keys).rows()]
        named = pl.DataFrame({"key": texts, "entries": most["__entries"]}, schema=_LARGEST)
        return Answer(step.name, json.dumps(facts | {"keys": counts.height}), pack(named, step.name))


_LARGEST: Final = {"key": pl.String(), "entries": pl.Int64()}


def summarise(groups: StateGroups, steps: Sequence[StoredStep], *, most_keys: int = MOST_KEYS) -> list[StepSummary]:
    """Return the summaries of `steps`, in order; steps without state have zeros."""
    found = groups.ask(steps, Sizing(most_keys=most_keys))
    return [_summed(step, (answer for answer in found if answer.step == step.name), most_keys) for step in steps]


def _summed(step: StoredStep, found: Iterable[Answer], most_keys: int) -> StepSummary:
    summary = StepSummary(step=step.name, keys=None if step.spec is None else 0)
    largest = [pl.DataFrame(schema=_LARGEST)]
    oldest: list[int] = []
    for answer in found:
        facts = json.loads(answer.facts)
        summary.bytes += facts["bytes"]
        summary.rows += facts["rows"]
        summary.pieces += facts["pieces"]
        if summary.keys is not None:
            summary.keys += facts["keys"]
        oldest += [facts["oldest_ms"]] if facts["oldest_ms"] is not None else []
        largest += [unpack(answer.rows, step.name)] if answer.rows else []
    if oldest:
        summary.oldest = pl.select(pl.lit(min(oldest) * 1000).cast(pl.Datetime("us", "UTC"))).item()
    most = pl.concat(largest).sort("entries", "key", descending=[True, False]).head(most_keys)
    summary.largest = most.to_dicts()
    return summary
