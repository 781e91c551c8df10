"""From sketches of lateness to a report: how late events arrive, and the effect of each out-of-orderness."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Final

from slackwater.base.errors import counted, fault, refuse
from slackwater.base.times import MAX_MS, MIN_MS
from slackwater.eventtime.measured_lateness import LatenessSketch
from slackwater.tools.lateness.ladder import COARSE_MS, round_up_ms, rungs, shorten_ms
from slackwater.tools.lateness.remarks import clock_ahead, far_worse, remarks

DEFAULT_TARGET: Final = 0.99
QUANTILES: Final = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}
"""The share of events that are not later, by label."""
_RUNGS: Final = 8
_FILE_TIMES: Final = (
    "its files were probably copied without their modification times: copy them again with `cp -p` or `rsync -t`, "
    "or measure the log without max_ahead"
)


@dataclass(frozen=True, kw_only=True)
class ClocksAhead:
    """Events left out because their clocks run ahead, in a stream without `max_ahead`."""

    events: int
    furthest_ms: int
    """How far the furthest was ahead of the time it was received."""
    partitions: tuple[str, ...]
    """The partitions they are in, the one with the most first."""


@dataclass(kw_only=True)
class MeasuredStream:
    """The measurement of one source stream: a sketch per partition, and counts of records without a usable time."""

    name: str
    sketches: dict[str, LatenessSketch] = field(default_factory=dict)
    records: int = 0
    filtered: int = 0
    """Records that the stream's own `where` removed before the event time was taken."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Dead letters, by reason: records that cannot be decoded or have no usable time are not measured."""
    examples: dict[str, str] = field(default_factory=dict)
    """The message of the first dead letter for each reason."""
    first_ms: int = MAX_MS
    last_ms: int = MIN_MS
    out_of_orderness_ms: int | None = None
    """The pipeline's current value; None if there is no pipeline."""
    ahead: ClocksAhead | None = None
    overtaken: list[str] = field(default_factory=list)
    """Files of a log whose events are all older than those of a file that is read earlier."""
    doubtful: str = ""
    """Why the modification times of the log's files cannot be the times of arrival; empty if they can."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One out-of-orderness, which is also the delay of results, and the events it would leave behind."""

    out_of_orderness_ms: int
    share_behind: float
    rows_behind: int
    labels: tuple[str, ...] = ()
    """Why it is in the table: "p99", "recommended", "now"."""


@dataclass(frozen=True, kw_only=True)
class HistogramBin:
    """The events that were late by at most `up_to_ms` and by more than the previous bin; 0 means in order."""

    up_to_ms: int
    rows: int
    share: float


@dataclass(frozen=True, kw_only=True)
class PartitionLateness:
    """A summary of one partition."""

    name: str
    events: int
    p50_ms: int
    target_ms: int
    """The lateness that covers the target's share of its events."""
    max_ms: int
    is_far_worse: bool


@dataclass(frozen=True, kw_only=True)
class StreamReport:
    """How late the events of one stream arrive."""

    name: str
    records: int
    events: int
    """Records with a usable time; the others are `filtered` or `left_out`."""
    filtered: int
    left_out: Mapping[str, int]
    first_ms: int
    last_ms: int
    quantiles_ms: Mapping[str, int]
    max_ms: int
    histogram: tuple[HistogramBin, ...]
    candidates: tuple[Candidate, ...]
    recommended: Candidate
    configured: Candidate | None
    partitions: tuple[PartitionLateness, ...]
    """The worst first."""
    remarks: tuple[str, ...]
    sketches: Mapping[str, LatenessSketch]

    @property
    def whole(self) -> LatenessSketch:
        """The sketches of all partitions, merged."""
        return LatenessSketch.merged(self.sketches.values())


@dataclass(frozen=True, kw_only=True)
class LatenessReport:
    """How late the events of each stream arrive, and the recommended out-of-orderness."""

    target: float
    streams: tuple[StreamReport, ...]
    unmeasured: Mapping[str, str] = field(default_factory=dict)
    """Streams that are not in the report, with the reason."""

    def to_json(self) -> str:
        """Return the report as JSON, without the sketches."""
        streams = [
            {name: _plain(value) for name, value in vars(stream).items() if name != "sketches"}
            for stream in self.streams
        ]
        return json.dumps({"target": self.target, "streams": streams, "unmeasured": dict(self.unmeasured)}, indent=2)


def make_report(
    measured: Sequence[MeasuredStream],
    *,
    target: float = DEFAULT_TARGET,
    unmeasured: Mapping[str, str] | None = None,
) -> LatenessReport:
    """Return the report on the measured streams; `target` is the share of events that should be in time.

    A stream without events is `unmeasured`; it is an error if there is no other.
    """
    check_target(target)
    missing = dict(unmeasured or {})
    streams = []
    for stream in measured:
        if stream.doubtful:
            missing[stream.name] = f"{stream.doubtful}; {_FILE_TIMES}"
        elif any(sketch.count for sketch in stream.sketches.values()):
            streams.append(_stream_report(stream, target))
        else:
            missing[stream.name] = _nothing(stream)
    doubtful = next((stream for stream in measured if stream.doubtful), None)
    if not streams and doubtful is not None:
        raise fault("LATENESS_FILE_TIMES", stream=doubtful.name, found=doubtful.doubtful, remedy=_FILE_TIMES)
    if not streams:
        found = ", ".join(f"stream `{name}` {why}" for name, why in missing.items()) or "no stream"
        raise fault("LATENESS_NO_EVENTS", found=found)
    return LatenessReport(target=target, streams=tuple(streams), unmeasured=missing)


def check_target(target: float) -> None:
    """Reject a target that is not a share."""
    if isinstance(target, bool) or not isinstance(target, int | float) or not 0 < target <= 1:
        raise refuse("LATENESS_TARGET", got=target)


def _stream_report(stream: MeasuredStream, target: float) -> StreamReport:
    sketches = {name: sketch for name, sketch in stream.sketches.items() if sketch.count}
    whole = LatenessSketch.merged(sketches.values())
    recommended_ms = round_up_ms(whole.covering(target))
    quantiles = {name: whole.covering(share) for name, share in QUANTILES.items()}
    labels: dict[int, list[str]] = {recommended_ms: ["recommended"]}
    if stream.out_of_orderness_ms is not None:
        labels.setdefault(stream.out_of_orderness_ms, []).append("now")
    for name, milliseconds in (*quantiles.items(), ("max", whole.max_ms)):
        labels.setdefault(shorten_ms(milliseconds), []).append(name)
    # Below this the curve is flat: nine in ten of the late events are later.
    least = max(quantiles["p50"], whole.quantile(1 - 0.9 * (1 - whole.zeros / whole.count)), 1)
    between = [step for step in rungs(least, whole.max_ms, at_most=_RUNGS) if step < whole.max_ms]
    steps = {0, *between, *labels}
    candidates = {step: _candidate(whole, step, labels.get(step, ())) for step in sorted(steps)}
    worse = far_worse(sketches, target)
    configured = None if stream.out_of_orderness_ms is None else candidates[stream.out_of_orderness_ms]
    return StreamReport(
        name=stream.name,
        records=stream.records,
        events=whole.count,
        filtered=stream.filtered,
        left_out=dict(sorted(stream.left_out.items())),
        first_ms=stream.first_ms,
        last_ms=stream.last_ms,
        quantiles_ms=quantiles,
        max_ms=whole.max_ms,
        histogram=_histogram(whole),
        candidates=tuple(candidates.values()),
        recommended=candidates[recommended_ms],
        configured=configured,
        partitions=_partitions(sketches, target, worse),
        remarks=(
            *_ahead(stream.ahead),
            *remarks(
                sketches,
                whole,
                target=target,
                recommended_ms=recommended_ms,
                worse=worse,
                last_ms=stream.last_ms,
                overtaken=stream.overtaken,
            ),
        ),
        sketches=sketches,
    )


def _ahead(ahead: ClocksAhead | None) -> tuple[str, ...]:
    return () if ahead is None else (clock_ahead(ahead.events, ahead.furthest_ms, ahead.partitions),)


def _candidate(whole: LatenessSketch, step: int, labels: Sequence[str]) -> Candidate:
    behind = whole.rows_later_than(step)
    return Candidate(
        out_of_orderness_ms=step, share_behind=behind / whole.count, rows_behind=round(behind), labels=tuple(labels)
    )


def _histogram(whole: LatenessSketch) -> tuple[HistogramBin, ...]:
    """Return bins about a factor of ten wide, without empty ones at either end."""
    late, widest_ms = whole.count - whole.zeros, max(whole.max_ms, round_up_ms(whole.max_ms))
    bins = [HistogramBin(up_to_ms=0, rows=whole.zeros, share=whole.zeros / whole.count)]
    before = late
    for edge in (*COARSE_MS, MAX_MS):
        beyond = round(whole.rows_later_than(edge))
        rows = before - beyond
        if rows or before < late:
            bins.append(HistogramBin(up_to_ms=min(edge, widest_ms), rows=rows, share=rows / whole.count))
        before = beyond
        if not beyond:
            break
    return tuple(bins)


def _partitions(
    sketches: Mapping[str, LatenessSketch], target: float, worse: Sequence[str]
) -> tuple[PartitionLateness, ...]:
    rows = [
        PartitionLateness(
            name=name,
            events=sketch.count,
            p50_ms=sketch.covering(QUANTILES["p50"]),
            target_ms=sketch.covering(target),
            max_ms=sketch.max_ms,
            is_far_worse=name in worse,
        )
        for name, sketch in sketches.items()
    ]
    return tuple(sorted(rows, key=lambda row: (-row.target_ms, -row.max_ms, row.name)))


def _nothing(stream: MeasuredStream) -> str:
    if not stream.records:
        return "holds no records"
    lost = [f"{number:,} {reason}" for reason, number in stream.left_out.most_common()]
    if stream.filtered:
        lost.append(f"{stream.filtered:,} filtered")
    text = f"has no event in {counted(stream.records, 'record')} ({', '.join(lost)})"
    return f"{text}, for example: {next(iter(stream.examples.values()))}" if stream.examples else text


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "__dataclass_fields__"):
        return asdict(value)  # type: ignore[call-overload]  # an instance, not a class
    return dict(value) if isinstance(value, Mapping) else value
