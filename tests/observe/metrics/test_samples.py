"""Samples of late rows and dead letters: why and where always, what was in them only if data is shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import slackwater as sw
from slackwater.engine.front.samples import MOST_BYTES, Sample, readable
from slackwater.engine.memory import MemoryEngine
from slackwater.observe.metrics.monitor import Live, Monitor
from slackwater.observe.metrics.report import BatchReport
from slackwater.observe.metrics.samples import MOST_KEPT, KeptSamples, chosen, read_samples
from slackwater.testing import Harness

MINUTE = 60_000
PRIVATE = "4929-1234"


class Watched:
    """A run in memory with the monitor of a driver."""

    def __init__(self, checkpoint: Path, *, shows_data: bool) -> None:
        rows = sw.stream("orders", sw.sources.log("log")).decode(sw.formats.json("user string, t long"))
        timed = rows.event_time("t")
        counts = timed.key_by("user").window(sw.tumbling("1m"), name="per_minute").aggregate(n=sw.count())
        outputs = [each.to(sw.sinks.memory()) for each in (counts, counts.late, timed.dead_letters)]
        self.harness = Harness(sw.Pipeline("shop", *outputs))
        plan = replace(self.harness.plan, shows_data=shows_data)
        self.harness.engine, self.lives = MemoryEngine(plan=plan), list[Live]()
        self.monitor = Monitor(plan=plan, checkpoint=checkpoint, on_record=self.lives.append)

    def batch(self, *payloads: str | bytes) -> list[Sample]:
        harness, clock = self.harness, self.harness.clock
        harness.send("orders", payloads, partition="p7").run_batch()
        stats: dict[str, Any] = {"stats": harness.last, "clock": clock, "next_clock": harness.clock}
        report = BatchReport(batch=clock.batch, seconds=0.5, rows_out={}, **stats)
        self.monitor.note(report, delivered_at_ms=0, sinks={}, spark_s={})
        return list(self.lives[-1].samples)


def order(user: str, t: int) -> str:
    return json.dumps({"user": user, "t": t})


@pytest.fixture
def careful(tmp_path: Path) -> Iterator[Watched]:
    made = Watched(tmp_path, shows_data=False)
    with closing(made.monitor):
        yield made


@pytest.fixture
def open_hearted(tmp_path: Path) -> Iterator[Watched]:
    made = Watched(tmp_path, shows_data=True)
    with closing(made.monitor):
        yield made


def test_samples_say_why_and_where_and_nothing_of_what_was_in_the_rows(careful: Watched, tmp_path: Path) -> None:
    careful.batch(order("ada", 10 * MINUTE))
    dead, late = careful.batch(order(PRIVATE, MINUTE), f"{{{PRIVATE}")
    assert {name: dead[name] for name in ("kind", "reason", "source", "partition", "offset", "batch")} == {
        "kind": "dead",
        "reason": "malformed",
        "source": "orders",
        "partition": "p7",
        "offset": 2,
        "batch": 1,
    }
    assert (late["kind"], late["step"], late["offset"]) == ("late", "per_minute", 1)
    assert late["late_by_ms"] == 9 * MINUTE
    for path in (tmp_path / "slackwater").rglob("*.json*"):
        assert PRIVATE not in path.read_text(), path.name


def test_samples_have_what_was_in_the_rows_if_data_is_shown(open_hearted: Watched, tmp_path: Path) -> None:
    open_hearted.batch(order("ada", 10 * MINUTE))
    dead, late = open_hearted.batch(order(PRIVATE, MINUTE), f"{{{PRIVATE}")
    assert dead["data"] == f"{{{PRIVATE}"
    assert dead["message"]
    assert json.loads(late["data"])["user"] == PRIVATE
    folder = tmp_path / "slackwater" / "history"
    assert [sample["data"] for sample in read_samples(folder, show_data=True)] == [dead["data"], late["data"]]
    assert "data" not in str(read_samples(folder))
    again = Watched(tmp_path, shows_data=False)
    again.monitor.close()
    assert PRIVATE not in (folder / "samples.json").read_text()
    assert len(read_samples(folder)) == 2


def test_samples_are_few_and_small_and_those_of_every_reason(open_hearted: Watched, tmp_path: Path) -> None:
    huge = b"\x00<script>\x1b[31m" + b"x" * 100_000
    for _ in range(8):
        found = open_hearted.batch(*[huge] * 40, *[order("ada", 10 * MINUTE)], *["{}"] * 30)
        assert len(found) <= 20
        assert {sample["reason"] for sample in found} == {"malformed", "no_event_time"}
        assert max(len(json.dumps(sample)) for sample in found) < 2 * MOST_BYTES + 2_000
    kept = read_samples(tmp_path / "slackwater" / "history", show_data=True)
    assert len(kept) <= MOST_KEPT
    assert kept[-1]["batch"] == 7
    assert kept[0]["data"].startswith("\\x00<script>\\x1b[31mxxx")


def test_chosen_takes_turns() -> None:
    def made(reason: str, offset: int) -> Sample:
        return {"kind": "dead", "step": "s", "reason": reason, "partition": "0", "offset": offset}

    found = chosen([*(made("common", at) for at in range(40)), made("rare", 7)], batch=3)
    assert len(found) == 20
    assert [each["reason"] for each in found[:3]] == ["common", "rare", "common"]
    assert [each["offset"] for each in found[:3]] == [0, 7, 1]
    assert {each["batch"] for each in found} == {3}


@pytest.mark.parametrize("given", [b"\xff\xfe\x00", "a\u202eb\x07", b"caf\xc3\xa9\n", "", "é" * 5_000, b"\x01" * 9_000])
def test_anything_is_readable_text_of_bounded_size(given: str | bytes) -> None:
    text = readable(given)
    assert len(text) <= MOST_BYTES + 2
    assert all(each.isprintable() or each == "\n" for each in text)


def test_file_that_is_damaged_counts_as_empty(tmp_path: Path) -> None:
    for text in ("", "[]", '{"samples": 3}', '{"samples": [1, "x"]}'):
        (tmp_path / "samples.json").write_text(text)
        assert read_samples(tmp_path) == []
        assert not KeptSamples(folder=tmp_path).newest
