"""The metrics of a job at one point in time: all families with their samples, the same for all exporters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from slackwater.base.version import VERSION
from slackwater.observe.metrics.families import FAMILIES
from slackwater.observe.metrics.monitor import Live

INFO: Final = "slackwater_info"
"""A metric that is always 1 and has the version as a label; it exists from the start of a job to its end."""


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A family with its samples at one point in time; their first label is the pipeline."""

    name: str
    help: str
    labels: tuple[str, ...]
    is_counter: bool
    samples: Sequence[tuple[tuple[str, ...], float]]


def shown(live: Live) -> Iterator[Shown]:
    """Yield all metrics that have samples; before the first batch only counters do."""
    info = [((live.pipeline, VERSION), 1.0)]
    text = "The pipeline and the version it runs on."
    yield Shown(name=INFO, help=text, labels=("pipeline", "version"), is_counter=False, samples=info)
    for family in FAMILIES:
        if not family.is_counter and not live.has_batch:
            continue
        found = [((live.pipeline, *labels), value) for labels, value in family.samples(live) if value is not None]
        if found:
            yield Shown(
                name=family.name,
                help=family.help,
                labels=("pipeline", *family.labels),
                is_counter=family.is_counter,
                samples=found,
            )
