"""`python -m benchmarks.backpressure`: a sink becomes twenty times as slow for a while, and then itself again.

A real Kafka topic is filled at a steady rate. The job reads it in bounded batches into a sink that takes its time: a
little at first, then twenty times as much, then as before. While it is slow, the source waits: lag grows and is
reported, and memory does not. Afterwards the job catches up, with every record counted once.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import polars as pl
import psutil
from confluent_kafka import Producer
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

import slackwater as sw
from slackwater.connectors.kafka import broker
from slackwater.connectors.kafka.client import Cluster
from slackwater.connectors.kafka.connection import connection
from slackwater.connectors.sink import Change, Delivery, Mark, Sink, SinkBatch, SinkWriter, Slot
from slackwater.observe.metrics.report import BatchReport
from slackwater.spark.options import RunOptions
from slackwater.spark.session import spark_session
from slackwater.spark.start import make_job

RATE: Final = 4_000
"""Records a second."""
USUAL_S: Final = 0.1
SLOWER: Final = 20
PHASE_S: Final = 20.0
MOST_RECORDS: Final = 5_000
"""Of a batch."""
MOST_GROWTH: Final = 1.25
"""How much more memory the slow phase may take than the one before it."""


@dataclass(kw_only=True)
class SlowWriter(SinkWriter):
    """Takes its time, and remembers what it was given, batch by batch."""

    wait_s: float = USUAL_S
    rows: dict[int, pl.DataFrame] = field(default_factory=dict)

    def write(self, batch: SinkBatch, mark: Mark | None) -> None:  # noqa: ARG002
        """Keep the rows, after a while."""
        time.sleep(self.wait_s)
        self.rows[batch.batch] = pl.concat(list(batch.frames()))


@dataclass(frozen=True, kw_only=True, eq=False)
class SlowSink(Sink):
    """A sink that can be slowed down."""

    takes: frozenset[Change] = frozenset({"append"})
    delivery: Delivery = "exactly_once"
    keeps_marks: bool = False
    writer: SlowWriter = field(default_factory=SlowWriter)

    def open(self, slot: Slot) -> SinkWriter:  # noqa: ARG002
        """Return the one writer."""
        return self.writer

    def __str__(self) -> str:
        return "slow"

    def __reduce__(self) -> tuple[type[SlowSink], tuple[()]]:
        return (SlowSink, ())


@dataclass(kw_only=True)
class Phase:
    """What was seen while the sink was as it was."""

    name: str
    batches: int = 0
    most_lag: int = 0
    most_mb: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of it all."""

    sent: int
    counted: int
    phases: tuple[Phase, ...]
    last_lag: int


def measure(
    spark: SparkSession, servers: str, folder: Path, *, phase_s: float = PHASE_S, say: Callable[[str], None] = print
) -> Outcome:
    """Run the job through the three phases and until it has caught up."""
    topic = "backpressure"
    Cluster(connection=connection(servers)).create_topic(topic, partitions=2)
    sink = SlowSink()
    phases = [Phase(name="usual")]
    lags: list[int] = []

    def on_batch(report: BatchReport) -> None:
        phase = phases[-1]
        lags.append(report.lag_records)
        phase.batches += 1
        phase.most_lag = max(phase.most_lag, lags[-1])
        phase.most_mb = max(phase.most_mb, _memory_mb())

    source = sw.sources.kafka(servers, topic=topic, start="earliest", max_records_per_batch=MOST_RECORDS)
    events = sw.stream("events", source).decode(sw.formats.json("id long, ts long")).event_time("ts")
    pipeline = sw.Pipeline("backpressure", events.to(sink), events.dead_letters.drop(), key_groups=2)
    job = make_job(
        pipeline.plan(),
        RunOptions(spark=spark, checkpoint=folder / "checkpoint", partitions=2, trigger="0s", on_batch=on_batch),
    )
    running = threading.Thread(target=job.run, daemon=True)
    over = threading.Event()
    sent = [0]
    sending = threading.Thread(target=_send, args=(servers, topic, over, sent), daemon=True)
    running.start()
    _until(lambda: len(lags) > 1, 120)
    sending.start()
    for name, wait_s in (("usual", USUAL_S), (f"{SLOWER} times slower", SLOWER * USUAL_S), ("usual again", USUAL_S)):
        if name != "usual":
            phases.append(Phase(name=name))
        sink.writer.wait_s = wait_s
        say(f"sink: {name}")
        time.sleep(phase_s)
    over.set()
    sending.join()
    _until(lambda: _rows(sink) >= sent[0] and lags[-1] == 0, 120)
    job.stop()
    running.join(60)
    return Outcome(sent=sent[0], counted=_rows(sink), phases=tuple(phases), last_lag=lags[-1])


def _rows(sink: SlowSink) -> int:
    return sum(frame.height for frame in list(sink.writer.rows.values()))


def _memory_mb() -> float:
    """Return what Spark's Python workers hold, resident."""
    total = 0.0
    for child in psutil.Process().children(recursive=True):
        try:
            if any("pyspark" in part for part in child.cmdline()[:4]):
                total += child.memory_info().rss / 1e6
        except psutil.Error:
            continue
    return total


def _send(servers: str, topic: str, over: threading.Event, sent: list[int]) -> None:
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 20})
    began = time.monotonic()
    while not over.wait(0.05):
        due = int((time.monotonic() - began) * RATE)
        for number in range(sent[0], due):
            producer.produce(topic, f'{{"id":{number},"ts":{number}}}', partition=number % 2)
            producer.poll(0)
        sent[0] = due
    producer.flush()


def _until(is_so: Callable[[], bool], patience_s: float) -> None:
    deadline = time.monotonic() + patience_s
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.1)


def main() -> int:
    """Print the table; 1 if something was lost or doubled, or memory has grown with the lag."""
    console = Console()
    with tempfile.TemporaryDirectory(prefix="slackwater-backpressure-") as folder:
        started = broker.up(Path(folder) / "broker", port=broker.free_port())
        spark = spark_session(master="local[2]", name="backpressure")
        try:
            outcome = measure(spark, started.servers, Path(folder))
        finally:
            spark.stop()
            broker.down(Path(folder) / "broker")
    table = Table(title=f"{RATE:,} records a second, at most {MOST_RECORDS:,} in a batch")
    for title in ("sink", "batches", "most records waiting", "Python workers, MB"):
        table.add_column(title, justify="left" if title == "sink" else "right")
    for phase in outcome.phases:
        table.add_row(phase.name, str(phase.batches), f"{phase.most_lag:,}", f"{phase.most_mb:,.0f}")
    console.print(table)
    console.print(f"sent {outcome.sent:,}, counted {outcome.counted:,}, waiting at the end {outcome.last_lag:,}")
    usual, slow, _ = outcome.phases
    return 0 if outcome.sent == outcome.counted and slow.most_mb <= MOST_GROWTH * usual.most_mb else 1


if __name__ == "__main__":
    sys.exit(main())
