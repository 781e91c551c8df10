"""The status of a job as values: what `slackwater status --json` prints."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from slackwater.metrics.record import Quantiles

State = Literal["new", "running", "stopped", "finished", "dead"]
"""A job is dead if its driver is gone, or silent, and did not release the checkpoint."""


@dataclass(frozen=True, kw_only=True)
class StreamStatus:
    """A source stream."""

    rows: int
    """Rows read in this run."""
    rows_per_s: float
    """Over the last minute of the job."""
    watermark_ms: int | None
    watermark_lag_ms: int | None
    """How far the watermark is behind the clock; of a job that does not run, behind its last batch."""
    held_by: str
    held_since_ms: int | None
    held_back_ms: int
    """How much further the watermark would be without the partition that holds it."""
    waits_for: str
    waits_ms: int
    idle: list[str]
    """Partitions that are set aside."""
    lag: int | None
    """Records that wait in Kafka."""
    lag_per_s: float | None
    lateness_s: Quantiles
    out_of_orderness_ms: int | None
    ahead_of_clock: int
    """Rows of this run that were ahead of the clock."""


@dataclass(frozen=True, kw_only=True)
class StepStatus:
    """A keyed step."""

    counts: dict[str, int]
    """On time, late, refired and so on, in this run."""
    state_bytes: int
    state_rows: int
    state_keys: int | None
    """About how many keys that is; None if it is not known."""
    open_rows: int
    bytes_per_hour: float | None
    """How fast its state grew over the last hour; None if the job has not run for long enough."""
    largest_key: str
    largest_share: float | None


@dataclass(frozen=True, kw_only=True)
class OutputStatus:
    """An output."""

    rows: int
    rows_per_s: float
    event_s: Quantiles
    """From event time to delivery, in the last batch that had rows for it."""
    ingestion_s: Quantiles


@dataclass(frozen=True, kw_only=True)
class SinkStatus:
    """A sink."""

    output: str
    rows: int
    seconds: float
    """In the last batch that had rows for it."""
    waited_s: float
    """In this run."""
    retries: int
    last_batch: int | None


@dataclass(frozen=True, kw_only=True)
class JobStatus:
    """A job, at one moment."""

    pipeline: str
    checkpoint: str
    state: State
    since_ms: int | None
    """Since when it is in that state; of a dead one, its last heartbeat."""
    owner: str = ""
    """The process that runs it, or ran it last."""
    starts: int = 0
    run_since_ms: int | None = None
    """When its last run was started."""
    batch: int | None = None
    """The last batch that was delivered."""
    batch_at_ms: int | None = None
    batches: int = 0
    """Batches of this run."""
    rows: int = 0
    rows_out: int = 0
    rows_per_s: float = 0.0
    batch_s: float = 0.0
    """How long a batch took on average, over the last minute of the job."""
    phases_s: dict[str, float] = field(default_factory=dict)
    """What that is made of."""
    streams: dict[str, StreamStatus] = field(default_factory=dict)
    steps: dict[str, StepStatus] = field(default_factory=dict)
    outputs: dict[str, OutputStatus] = field(default_factory=dict)
    sinks: dict[str, SinkStatus] = field(default_factory=dict)
    history_loss: str = ""
    """What cannot be shown because the history is damaged; "" if it is whole."""
    dead: dict[str, dict[str, int]] = field(default_factory=dict)
    """Dead letters of this run, by stream or step and reason."""

    def to_json(self) -> dict[str, Any]:
        """Return the status as plain values."""
        return asdict(self)
