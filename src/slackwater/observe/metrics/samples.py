"""Samples of late rows and dead letters: the newest of a job, in `<checkpoint>/slackwater/history/samples.json`.

The reason and the row's position in its source are always kept. Its data is kept and written only by a run with
`show_data`; the next run without it removes the data.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from slackwater.engine.front.samples import MOST_SAMPLES, Sample
from slackwater.observe.metrics.job_facts import read_facts, write_facts

SAMPLES: Final = "samples.json"
MOST_KEPT: Final = 100
_DATA: Final = ("message", "data")
"""Fields that may contain values of rows, because error messages quote them."""


def chosen(samples: Sequence[Sample], **facts: Any) -> list[Sample]:  # noqa: ANN401  such as the batch
    """Return at most twenty samples of a batch, taken from all steps and reasons in turn, each with `facts`."""
    by_kind = {
        kind: list(each) for kind, each in groupby(sorted(samples, key=_kind), key=lambda sample: _kind(sample)[:3])
    }
    turns = [(turn, kind) for kind, each in by_kind.items() for turn in range(len(each))]
    return [{**facts, **by_kind[kind][turn]} for turn, kind in sorted(turns)[:MOST_SAMPLES]]


def _kind(sample: Sample) -> tuple[str, str, str, str, int]:
    # Tasks report in any order, so the position breaks ties.
    place = str(sample.get("partition")), sample.get("offset") or 0
    return (sample["kind"], sample["step"], sample["reason"], *place)


def without_data(samples: Iterable[Sample]) -> list[Sample]:
    """Return samples without the data of their rows."""
    return [{name: value for name, value in sample.items() if name not in _DATA} for sample in samples]


@dataclass(kw_only=True)
class KeptSamples:
    """The newest samples of one checkpoint, whose lock the job holds."""

    folder: Path
    shows_data: bool = False
    newest: deque[Sample] = field(init=False)

    def __post_init__(self) -> None:
        found = read_samples(self.folder, show_data=self.shows_data)
        self.newest = deque(found, maxlen=MOST_KEPT)
        if found and not self.shows_data:
            self._write()

    def add(self, samples: Sequence[Sample]) -> None:
        """Add the samples of a batch."""
        if samples:
            self.newest.extend(samples if self.shows_data else without_data(samples))
            self._write()

    def _write(self) -> None:
        write_facts(self.folder / SAMPLES, {"samples": list(self.newest)})


def read_samples(folder: Path, *, show_data: bool = False) -> list[Sample]:
    """Return the samples in a history's folder, oldest first; the data of rows only with `show_data`."""
    found = read_facts(folder / SAMPLES).get("samples", [])
    known = [sample for sample in found if isinstance(sample, dict)] if isinstance(found, list) else []
    return known[-MOST_KEPT:] if show_data else without_data(known[-MOST_KEPT:])
