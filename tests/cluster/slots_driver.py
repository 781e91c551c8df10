"""The driver of a two-stage job whose large output is written twice, by executors of which one dies in between.

Run as `slots_driver.py MASTER LOG OUT`; writes what each slot was given, before and after, to OUT.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl

import slackwater as sw
from slackwater.connectors.sink import Change, Mark, Sink, SinkBatch, SinkWriter, Slot
from slackwater.engine.outputs import evaluated as outputs
from slackwater.spark.options import RunOptions
from slackwater.spark.session import spark_session
from slackwater.spark.start import make_job
from tests.cluster.driver import executors_with_blocks, process_of

LARGE = "counted"


@dataclass(kw_only=True)
class _Writer(SinkWriter):
    def write(self, batch: SinkBatch, mark: Mark | None) -> None:
        """Take the rows and forget them."""
        for _ in batch.frames():
            pass


@dataclass(frozen=True, kw_only=True, eq=False)
class SlotsSink(Sink):
    """A sink that executors write, each its own slot."""

    takes: frozenset[Change] = frozenset({"append", "update"})
    has_slots: bool = True

    def open(self, slot: Slot) -> SinkWriter:
        """Return a writer."""
        return _Writer()

    def __str__(self) -> str:
        return "slots"


def contents(batch: outputs.EvaluatedBatch, name: str, schema: pl.Schema, folder: Path) -> dict[str, tuple[int, str]]:
    """Return how many rows each slot is given, and a hash of them whatever their order."""
    folder.mkdir(parents=True)

    def note(part: int, rows: SinkBatch) -> None:
        keys = sorted(str(row) for frame in rows.frames() for row in frame.iter_rows())
        digest = hashlib.sha256("\n".join(keys).encode()).hexdigest()
        (folder / str(part)).write_text(json.dumps([len(keys), digest]))

    batch.in_parallel(name, schema, note)
    return {path.name: tuple(json.loads(path.read_text())) for path in sorted(folder.iterdir())}


def main() -> None:
    """Run the job; in the first large batch, look at the slots, kill an executor, and look again."""
    master, log, out = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    outputs.INLINE_BYTES = 0  # type: ignore[misc]  # no row travels with the statistics
    outputs.PARALLEL_BYTES = -1  # type: ignore[misc]  # and every output is large
    conf = {
        "spark.cores.max": "2",
        "spark.executor.cores": "1",
        "spark.executor.memory": "600m",
        "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"],
    }
    spark = spark_session(master=master, name="slots", conf=conf)
    seen: list[dict[str, tuple[int, str]]] = []
    evaluate: Callable[..., outputs.EvaluatedBatch] = outputs.EvaluatedBatch.evaluate

    def look(frame: object, number: int) -> outputs.EvaluatedBatch:
        batch = evaluate(frame, number)
        if batch.rows.get(LARGE) and not seen:
            schema = plan.by_name[LARGE].results.schema
            seen.append(contents(batch, LARGE, schema, out / "before"))
            held = executors_with_blocks(spark)
            os.kill(process_of(max(held, key=lambda executor: held[executor]), spark), signal.SIGKILL)
            seen.append(contents(batch, LARGE, schema, out / "after"))
        return batch

    vars(outputs)["EvaluatedBatch"].evaluate = staticmethod(look)
    events = sw.stream("events", sw.sources.log(log)).decode(sw.formats.json("id long, user string, ts long"))
    by_user = events.event_time("ts").key_by("user")
    at_once = sw.after_watermark(early=sw.after_count(1))
    counted = by_user.window(sw.tumbling("1h"), trigger=at_once, name=LARGE).aggregate(n=sw.count())
    per_minute = by_user.window(sw.tumbling("1m"), name="per_minute").aggregate(n=sw.count())
    per_hour = per_minute.key_by("n").window(sw.tumbling("1h"), name="per_hour").aggregate(users=sw.sum("n"))
    dropped = [step.late.drop() for step in (counted, per_minute, per_hour)]
    sinks = [counted.to(SlotsSink()), per_hour.to(sw.sinks.memory())]
    plan = sw.Pipeline("slots", *sinks, *dropped, events.dead_letters.drop(), key_groups=2).plan()
    make_job(plan, RunOptions(spark=spark, checkpoint=out / "checkpoint", bounded=True, partitions=2)).run()
    (out / "slots.json").write_text(json.dumps(seen))
    spark.stop()


if __name__ == "__main__":
    main()
