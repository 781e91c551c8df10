"""The status of a job, from its checkpoint alone: whether it is running, how far it is, and what its rows became.

Nothing is written and no lock is taken, so a running job is not disturbed and a dead one can be inspected.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from slackwater.base.errors import fault
from slackwater.engine.checkpoint.checkpoint import read_manifest
from slackwater.engine.checkpoint.lock import last_holding
from slackwater.observe.metrics.failing import failing_batch
from slackwater.observe.metrics.history import history_folder, read_history
from slackwater.observe.metrics.history_loss import history_loss
from slackwater.observe.metrics.job_status import JobStatus, OutputStatus, SinkStatus, State, StepStatus, StreamStatus
from slackwater.observe.metrics.merging import merged
from slackwater.observe.metrics.record import BatchRecord, StepRecord
from slackwater.observe.metrics.runs import last_run

_MINUTE_MS: Final = 60_000
_HOUR_MS: Final = 3_600_000
_LEAST_GROWTH_MS: Final = 10_000
"""The shortest time from which a growth per hour is computed; less would mean nothing."""


def read_status(checkpoint: Path, *, clock_s: Callable[[], float] = time.time) -> JobStatus:
    """Return the status of the job with this checkpoint."""
    if not (checkpoint / "slackwater" / "manifest.json").exists():
        raise fault("STATUS_NOWHERE", path=checkpoint)
    manifest, now_s = read_manifest(checkpoint), clock_s()
    state, since_ms, owner = _state(checkpoint, finished=bool(manifest.get("finished")), now_s=now_s)
    run, records = last_run(history_folder(checkpoint)), read_history(history_folder(checkpoint))
    status = JobStatus(
        pipeline=manifest.get("pipeline", checkpoint.name),
        checkpoint=str(checkpoint),
        state=state,
        since_ms=run.since_ms if state == "running" and run.since_ms else since_ms,
        owner=owner,
        starts=run.starts,
        run_since_ms=run.since_ms or None,
        history_loss=history_loss(checkpoint, records),
        failing=failing_batch(checkpoint),
    )
    if not records:
        return status
    return status_of(records, status, now_ms=round(now_s * 1_000) if state == "running" else records[-1].at_ms)


def _state(checkpoint: Path, *, finished: bool, now_s: float) -> tuple[State, int | None, str]:
    holding = last_holding(checkpoint)
    if holding is None:
        return "new", None, ""
    at_ms, owner = round(holding.beat_s * 1_000), str(holding.owner)
    if holding.is_alive(now_s):
        return "running", at_ms, owner
    if finished:
        return "finished", at_ms, owner
    return "stopped" if holding.owner.is_released else "dead", at_ms, owner


def status_of(records: Sequence[BatchRecord], head: JobStatus, *, now_ms: int) -> JobStatus:
    """Return `head` completed with the last run's figures from `records`, oldest first."""
    last = records[-1]
    of_run = [record for record in records if record.run == last.run]
    total, lately = merged(of_run), _lately(of_run, now_ms)
    recent, batches = lately.total, max(1, lately.total.batches)
    return replace(
        head,
        batch=last.batch,
        batch_at_ms=last.at_ms,
        batches=total.batches,
        rows=total.rows,
        rows_out=total.rows_out,
        rows_per_s=recent.rows / lately.seconds,
        batch_s=recent.seconds / batches,
        phases_s={name: seconds / batches for name, seconds in recent.phases_s.items()},
        streams={name: _stream(name, last, total, lately, now_ms=now_ms) for name in last.streams},
        steps={name: _step(name, of_run, total.steps[name]) for name in last.steps},
        outputs={name: _output(name, of_run, total, lately) for name in last.outputs},
        sinks={name: _sink(name, of_run, total) for name in last.sinks},
        dead=_dead(total),
    )


@dataclass(frozen=True, kw_only=True)
class _Lately:
    """The merged record of the last minute's batches; empty if there were none."""

    total: BatchRecord
    seconds: float
    """The time covered: from the delivery of the batch before, or the start of the first batch, until now."""


def _lately(of_run: Sequence[BatchRecord], now_ms: int) -> _Lately:
    recent = [record for record in of_run if record.at_ms > now_ms - _MINUTE_MS]
    if not recent:
        nothing = BatchRecord(batch=of_run[-1].batch, batches=0, at_ms=now_ms, now_ms=now_ms)
        return _Lately(total=nothing, seconds=_MINUTE_MS / 1_000)
    earlier = of_run[: len(of_run) - len(recent)]
    since_ms = earlier[-1].at_ms if earlier else recent[0].at_ms - round(recent[0].seconds * 1_000)
    return _Lately(total=merged(recent), seconds=max(1.0, (now_ms - since_ms) / 1_000))


def _stream(name: str, last: BatchRecord, total: BatchRecord, lately: _Lately, *, now_ms: int) -> StreamStatus:
    found, run = last.streams[name], total.streams[name]
    holder = found.partitions.get(found.held_by)
    growths = [part.lag_per_s for part in found.partitions.values() if part.lag_per_s is not None]
    return StreamStatus(
        rows=run.rows,
        rows_per_s=lately.total.streams[name].rows / lately.seconds if name in lately.total.streams else 0.0,
        watermark_ms=found.watermark_ms,
        watermark_lag_ms=None if found.watermark_ms is None else now_ms - found.watermark_ms,
        held_by=found.held_by,
        held_since_ms=found.held_since_ms,
        held_back_ms=found.held_back_ms,
        is_held_by_none=holder is not None and holder.max_ts_ms is None,
        aside=found.aside,
        waits_for=found.waits_for,
        waits_ms=found.waits_ms,
        idle=[part for part, facts in found.partitions.items() if facts.is_idle],
        lag=found.lag,
        lag_per_s=sum(growths) if growths else None,
        lateness_s=lately.total.streams[name].lateness_s if name in lately.total.streams else found.lateness_s,
        out_of_orderness_ms=found.out_of_orderness_ms,
        ahead_of_clock=run.ahead_of_clock,
    )


def _step(name: str, of_run: Sequence[BatchRecord], total: StepRecord) -> StepStatus:
    last = of_run[-1].steps[name]
    return StepStatus(
        counts=total.counts,
        state_bytes=last.state_bytes,
        state_rows=last.state_rows,
        state_keys=last.state_keys,
        open_rows=last.open_rows,
        bytes_per_hour=_growth(name, of_run),
        largest_key=last.largest_key,
        largest_share=last.largest_share,
    )


def _growth(name: str, of_run: Sequence[BatchRecord]) -> float | None:
    last = of_run[-1]
    first = next(record for record in of_run if record.at_ms > last.at_ms - _HOUR_MS)
    took_ms = last.at_ms - first.at_ms
    if took_ms < _LEAST_GROWTH_MS or name not in first.steps:
        return None
    return (last.steps[name].state_bytes - first.steps[name].state_bytes) * _HOUR_MS / took_ms


def _output(name: str, of_run: Sequence[BatchRecord], total: BatchRecord, lately: _Lately) -> OutputStatus:
    parts = [record.outputs[name] for record in of_run if name in record.outputs]
    last = next((part for part in reversed(parts) if part.rows), parts[-1])
    return OutputStatus(
        rows=total.outputs[name].rows,
        rows_per_s=lately.total.outputs[name].rows / lately.seconds if name in lately.total.outputs else 0.0,
        event_s=last.event_s,
        ingestion_s=last.ingestion_s,
    )


def _sink(name: str, of_run: Sequence[BatchRecord], total: BatchRecord) -> SinkStatus:
    parts = [record.sinks[name] for record in of_run if name in record.sinks]
    last = next((part for part in reversed(parts) if part.rows), parts[-1])
    run = total.sinks[name]
    return SinkStatus(
        output=last.output,
        rows=run.rows,
        seconds=last.seconds,
        waited_s=run.waited_s,
        retries=run.retries,
        last_batch=parts[-1].last_batch,
    )


def _dead(total: BatchRecord) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for (name, reason), count in sorted(total.dead.items()):
        found.setdefault(name, {})[reason] = count
    return found
