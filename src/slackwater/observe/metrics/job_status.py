"""The status of a job as plain values, as printed by `slackwater status --json`."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from slackwater.observe.metrics.failing import FailingBatch
from slackwater.observe.metrics.record import Quantiles

State = Literal["new", "running", "stopped", "finished", "dead"]
"""The state of a job. It is dead if its driver is gone or silent and did not release the checkpoint."""


@dataclass(frozen=True, kw_only=True)
class StreamStatus:
    """The status of a source stream."""

    rows: int
    """Rows read in this run."""
    rows_per_s: float
    """Rows read per second over the last minute of the job."""
    watermark_ms: int | None
    watermark_lag_ms: int | None
    """How far the watermark is behind the clock or, if the job is not running, behind its last batch."""
    held_by: str
    held_since_ms: int | None
    held_back_ms: int
    """How much further the watermark would be without the partition that holds it back."""
    is_held_by_none: bool
    """Whether the partition that holds it back has had no usable record yet."""
    aside: str
    """Why no step that reads several streams waits for this one: "idle" or "finished"; "" if they do."""
    waits_for: str
    waits_ms: int
    idle: list[str]
    """The idle partitions."""
    lag: int | None
    """Unread records in Kafka."""
    lag_per_s: float | None
    lateness_s: Quantiles
    out_of_orderness_ms: int | None
    ahead_of_clock: int
    """Rows of this run that were ahead of the clock."""


@dataclass(frozen=True, kw_only=True)
class StepStatus:
    """The status of a keyed step."""

    counts: dict[str, int]
    """Rows of this run that were on time, late, refired and so on."""
    state_bytes: int
    state_rows: int
    state_keys: int | None
    """The approximate number of keys in state; None if unknown."""
    open_rows: int
    bytes_per_hour: float | None
    """The growth of the state over the last hour; None if the job has not run long enough."""
    largest_key: str
    largest_share: float | None


@dataclass(frozen=True, kw_only=True)
class OutputStatus:
    """The status of an output."""

    rows: int
    rows_per_s: float
    event_s: Quantiles
    """Latency from event time to delivery, in the last batch with rows for this output."""
    ingestion_s: Quantiles


@dataclass(frozen=True, kw_only=True)
class SinkStatus:
    """The status of a sink."""

    output: str
    rows: int
    seconds: float
    """How long the sink took in the last batch with rows for it."""
    waited_s: float
    """How long this run has waited for the sink."""
    retries: int
    last_batch: int | None


@dataclass(frozen=True, kw_only=True)
class JobStatus:
    """The status of a job at one point in time."""

    pipeline: str
    checkpoint: str
    state: State
    since_ms: int | None
    """When it entered that state; for a dead job, its last heartbeat."""
    owner: str = ""
    """The process that runs it or last ran it."""
    starts: int = 0
    run_since_ms: int | None = None
    """When its last run started."""
    batch: int | None = None
    """The last delivered batch."""
    batch_at_ms: int | None = None
    batches: int = 0
    """The number of batches of this run."""
    rows: int = 0
    rows_out: int = 0
    rows_per_s: float = 0.0
    batch_s: float = 0.0
    """The mean duration of a batch over the last minute of the job."""
    phases_s: dict[str, float] = field(default_factory=dict)
    """The phases of `batch_s`."""
    streams: dict[str, StreamStatus] = field(default_factory=dict)
    steps: dict[str, StepStatus] = field(default_factory=dict)
    outputs: dict[str, OutputStatus] = field(default_factory=dict)
    sinks: dict[str, SinkStatus] = field(default_factory=dict)
    history_loss: str = ""
    """What cannot be shown because the history is damaged; "" if it is intact."""
    failing: FailingBatch | None = None
    """The batch that failed last, if it has not been committed since."""
    dead: dict[str, dict[str, int]] = field(default_factory=dict)
    """Dead letters of this run, by stream or step and reason."""

    def to_json(self) -> dict[str, Any]:
        """Return the status as plain values."""
        return asdict(self)
