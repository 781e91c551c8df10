"""A batch of a real job that is partly delivered, and a file it needs is damaged: one sentence, and nothing changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from slackwater.base.errors import RunError
from slackwater.connectors.memory.sink import MemorySink
from tests.on_spark.jobs import CrashError, crash_after, run
from tests.on_spark.test_enrichment import Enriched, written

pytestmark = [pytest.mark.spark, pytest.mark.long]


def flipped(whole: bytes) -> bytes:
    """Return a file with one bit changed in its content."""
    at = len(whole) * 3 // 4
    return whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :]


DAMAGES: dict[str, tuple[str, Callable[[bytes], bytes | None], str]] = {
    "an answer": ("slackwater/lookups/events.lookup/1/*.arrow", flipped, "the checksum does not match"),
    "an answer that is gone": ("slackwater/lookups/events.lookup/1/*.arrow", lambda _: None, "it is missing"),
    "a table": ("slackwater/tables/*/*.arrow", flipped, "the checksum does not match"),
    "a table that is gone": ("slackwater/tables/*/*.arrow", lambda _: None, "it is missing"),
    "a clock": ("slackwater/clock/1", flipped, "the checksum does not match"),
    "a clock of the next batch": ("slackwater/clock/2", flipped, "the checksum does not match"),
    "an entry of the source's log": ("sources/0/1", lambda _: None, "it is missing"),
    "other offsets": ("offsets/1", lambda whole: whole.replace(b"batchTimestampMs", b"batchTimestampMS"), "offsets"),
    "other offsets before": ("offsets/0", lambda whole: whole.replace(b'"conf"', b'"conv"'), "offsets"),
}


def test_damaged_file_of_a_partly_delivered_batch_is_one_sentence(spark: SparkSession, tmp_path: Path) -> None:
    enriched: Enriched = written(tmp_path)
    checkpoint = tmp_path / "checkpoint"
    with pytest.raises(CrashError):
        run(spark, enriched.pipeline, checkpoint, on_batch=crash_after(1))
    before = enriched.sink.rows()
    asked = enriched.asked
    for what, (place, damage, why) in DAMAGES.items():
        path = min(checkpoint.glob(place))
        whole = path.read_bytes()
        changed = damage(whole)
        assert changed != whole, what
        path.unlink() if changed is None else path.write_bytes(changed)
        with pytest.raises(RunError) as refused:
            run(spark, enriched.pipeline, checkpoint, take_over=True)
        assert refused.value.code == "CHECKPOINT_DAMAGED", what
        assert f"`{path}` is damaged: " in refused.value.message, what
        assert why in refused.value.message, what
        assert "\n" not in refused.value.message, what
        path.write_bytes(whole)
    assert enriched.asked == asked
    enriched.sink = MemorySink()
    run(spark, enriched.pipeline, checkpoint, take_over=True)
    assert {*before["name"]} >= {*enriched.sink.rows().filter(enriched.sink.rows()["id"].is_in([2, 3]))["name"]}
