"""Records of batches for tests."""

from __future__ import annotations

from slackwater.connectors.delivery_stats import SinkStats
from slackwater.observe.metrics.record import (
    BatchRecord,
    LookupRecord,
    OutputRecord,
    PartitionRecord,
    StepRecord,
    StreamRecord,
)

START_MS = 1_767_225_600_000
QUANTILES = {"0.5": 1.5, "0.95": 2.5, "0.99": 4.0}


def record(batch: int, *, run: int = 1, rows: int = 100, state_bytes: int = 5_000) -> BatchRecord:
    """Return batch `batch`, delivered a second after the one before."""
    now_ms = START_MS + 1_000 * batch
    return BatchRecord(
        batch=batch,
        run=run,
        at_ms=now_ms + 400,
        now_ms=now_ms,
        seconds=0.4,
        phases_s={"front": 0.15, "keyed": 0.1, "sinks": 0.125, "clock": 0.025},
        spark_s={"queryPlanning": 0.05, "addBatch": 0.4},
        streams={
            "orders": StreamRecord(
                rows=rows,
                filtered=3,
                dead={"malformed": 2},
                watermark_ms=now_ms - 30_000,
                held_by="orders-1",
                held_since_ms=START_MS,
                held_back_ms=12_000,
                waits_for="payments",
                waits_ms=700,
                out_of_orderness_ms=5_000,
                lateness_s=QUANTILES,
                ages=((0, 1), (128, 7), (4_096, rows - 8)),
                ahead_of_clock=1,
                partitions={
                    "orders-0": PartitionRecord(rows=rows, max_ts_ms=now_ms - 10_000, lag=40, lag_per_s=2.5),
                    "orders-1": PartitionRecord(max_ts_ms=now_ms - 25_000, lag=2, lag_per_s=-0.5),
                    "orders-2": PartitionRecord(is_idle=True),
                },
            )
        },
        steps={
            "orders.window": StepRecord(
                counts={"on_time": rows - 4, "refired": 3, "late": 1, "ignored": 2, "filtered": 5, "panes": 9},
                dead={"failed": 1},
                state_bytes=state_bytes,
                state_rows=50,
                state_pieces=4,
                open_rows=40,
                state_keys=30,
                largest_key="ada",
                largest_share=0.25,
            )
        },
        outputs={
            "orders.window": OutputRecord(rows=9, event_s=QUANTILES),
            "orders": OutputRecord(rows=rows, event_s=QUANTILES, ingestion_s={"0.5": 0.5, "0.95": 0.75, "0.99": 0.875}),
        },
        sinks={
            "orders to files": SinkStats(
                output="orders", rows=rows, seconds=0.1, waited_s=0.03, retries=2, last_batch=batch
            )
        },
        lookups={"orders.look_up": LookupRecord(requests=5, hits=7, misses=5, errors=1, request_s=QUANTILES)},
    )
