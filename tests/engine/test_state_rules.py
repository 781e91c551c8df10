"""The rules about state, as far as they show without Spark."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import slackwater as sw
from slackwater.base.errors import RunError
from slackwater.base.sealed import sealed, unsealed
from slackwater.engine.checkpoint.checkpoint import FORMAT, existing_checkpoint, open_checkpoint
from slackwater.engine.key_groups import labels, spark_hash
from slackwater.operators.aggregates.base import Aggregate
from slackwater.operators.state import pieces
from slackwater.operators.state.store import INDEX_FORM
from slackwater.plan.plan import Plan
from slackwater.spark.options import RunOptions
from slackwater.spark.start import make_job
from slackwater.testing import Harness
from slackwater.windows import Window
from tests.engine.pipelines import built, events, row, send
from tests.sealing import content_of, reseal

MINUTE = 60_000


def plan(
    window: Window | None = None, *, name: str = "per_minute", key_groups: int = 4, key: str = "k", pipeline: str = "p"
) -> Plan:
    windowed = (
        events("k string, j string, ts long, v double").key_by(key).window(window or sw.tumbling("1m"), name=name)
    )
    return built(windowed.aggregate(n=sw.count()), key_groups=key_groups, name=pipeline).plan()


@pytest.mark.parametrize(
    "changed, code",
    [
        (plan(sw.tumbling("2m")), "CHECKPOINT_STEP_CHANGED"),
        (plan(sw.session("1m")), "CHECKPOINT_STEP_CHANGED"),
        (plan(key="j"), "CHECKPOINT_STEP_CHANGED"),
        (plan(name="renamed"), "CHECKPOINT_STEP_GONE"),
        (plan(key_groups=8), "CHECKPOINT_KEY_GROUPS"),
        (plan(pipeline="other"), "CHECKPOINT_OF_ANOTHER"),
    ],
    ids=["window size", "window type", "key", "step name", "key groups", "pipeline"],
)
def test_rule_12_checkpoint_is_not_continued_by_what_does_not_fit_it(tmp_path: Path, changed: Plan, code: str) -> None:
    open_checkpoint(tmp_path, plan(), partitions=2)
    with pytest.raises(RunError, match=code):
        open_checkpoint(tmp_path, changed, partitions=2)


def of_format(path: Path, number: int) -> None:
    """Let the manifest of a checkpoint be of another version's format, in which nothing else is as it is here."""
    manifest = path / "slackwater" / "manifest.json"
    assert content_of(manifest)["format"] != number
    if number > 2:
        reseal(manifest, {"format": number})
    else:
        manifest.write_text(json.dumps({"format": number, "pipeline": "from before there were seals"}, indent=1))


def test_rule_12_checkpoint_whose_seals_have_no_form_is_of_an_older_format(tmp_path: Path) -> None:
    path = tmp_path / "orders"
    open_checkpoint(path, plan(), partitions=2)
    manifest = path / "slackwater" / "manifest.json"
    manifest.write_text(
        '{"sealed": 1, "place": "manifest.json", "of": "0b"}\n{\n "format": 4,\n "pipeline": "orders"\n}'
    )
    with pytest.raises(RunError, match=r"CHECKPOINT_FORMAT.* is in format 4, "):
        existing_checkpoint(path, plan())


@pytest.mark.parametrize("number", [1, 2, FORMAT - 1, 99], ids=["older", "old", "the one before", "newer"])
def test_rule_12_checkpoint_of_another_format_is_not_continued(tmp_path: Path, number: int) -> None:
    path = tmp_path / "orders"
    open_checkpoint(path, plan(), partitions=2)
    of_format(path, number)
    shown = rf"CHECKPOINT_FORMAT.*`{re.escape(str(path))}` is in format {number}, "
    with pytest.raises(RunError, match=shown):
        existing_checkpoint(path, plan())
    with pytest.raises(RunError, match=shown):
        make_job(plan(), RunOptions(checkpoint=path / ".." / "orders"))


def of(aggregate: Aggregate | None = None, *, v: str = "double", **options: Any) -> Plan:  # noqa: ANN401  as `window` takes them
    ddl = f"k string, ts long, v {v}, w double"
    windowed = events(ddl).key_by("k").window(**{"window": sw.tumbling("1m"), "name": "w", **options})
    return built(windowed.aggregate(t=aggregate or sw.count_distinct("v")), key_groups=4, name="p").plan()


@pytest.mark.parametrize(
    "before, changed, shown",
    [
        (of(), of(trigger=sw.every("10s")), 'trigger: after_watermark() -> every("10s")'),
        (
            of(trigger=sw.after_watermark(early=sw.after_count(3), late=None)),
            of(trigger=sw.any_of(sw.every("10s"), sw.after_count(2))),
            'trigger: after_watermark(early=after_count(3), late=None) -> any_of(after_count(2), every("10s"))',
        ),
        (of(), of(window=sw.tumbling("2m")), "window: tumbling(size=1m, offset=0s) -> tumbling(size=2m, offset=0s)"),
        (
            of(window=sw.session("1m", max_length="1h")),
            of(window=sw.session("2m")),
            "window: session(gap=1m, max_length=1h, touching=merge) -> session(gap=2m, touching=merge)",
        ),
        (of(), of(sw.count_distinct("w")), "aggregates: {t=count_distinct(v)} -> {t=count_distinct(w)}"),
        (of(), of(accumulation="retracting"), "accumulation: accumulating -> retracting"),
        (of(), of(v="string"), "column v: double -> string"),
    ],
    ids=["trigger", "two triggers", "window", "session", "aggregate", "accumulation", "type"],
)
def test_rule_12_refusal_says_what_was_changed_as_users_write_it(
    tmp_path: Path, before: Plan, changed: Plan, shown: str
) -> None:
    open_checkpoint(tmp_path, before, partitions=2)
    with pytest.raises(RunError) as caught:
        open_checkpoint(tmp_path, changed, partitions=2)
    assert caught.value.code == "CHECKPOINT_STEP_CHANGED"
    assert f"step `w` differs from what was saved in `{tmp_path}`: {shown}; revert the change" in str(caught.value)


def test_rule_12_refusal_compares_with_the_trigger_that_ran_last(tmp_path: Path) -> None:
    for trigger in (sw.every("10s"), sw.every("20s")):
        open_checkpoint(tmp_path, of(trigger=trigger), partitions=2)
    with pytest.raises(RunError, match=re.escape('trigger: every("20s") -> after_count(2)')):
        open_checkpoint(tmp_path, of(trigger=sw.after_count(2)), partitions=2)


def test_rule_12_refusal_of_a_checkpoint_without_rules_shows_the_state(tmp_path: Path) -> None:
    open_checkpoint(tmp_path, of(), partitions=2)
    manifest = tmp_path / "slackwater" / "manifest.json"
    reseal(manifest, {name: fact for name, fact in content_of(manifest).items() if name != "rules"})
    with pytest.raises(RunError, match="state: k String, __start Int64"):
        open_checkpoint(tmp_path, of(trigger=sw.every("10s")), partitions=2)


def test_rule_12_step_that_is_not_in_the_checkpoint_is_refused(tmp_path: Path) -> None:
    open_checkpoint(tmp_path, plan(), partitions=2)
    manifest = tmp_path / "slackwater" / "manifest.json"
    reseal(manifest, {**content_of(manifest), "steps": {}})
    with pytest.raises(RunError, match="CHECKPOINT_STEP_NEW"):
        open_checkpoint(tmp_path, plan(), partitions=2)


def test_rule_12_checkpoint_of_another_spark_query_is_refused(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    with pytest.raises(RunError, match="CHECKPOINT_FOREIGN"):
        open_checkpoint(tmp_path, plan(), partitions=2)


def renamed(index: bytes, place: str) -> bytes:
    """Return the index of a key group with step `b` in the place of `a`."""
    content = unsealed(index, place=place, of="", form=INDEX_FORM).replace(b'"a"', b'"b"', 1)
    return sealed(content, place=place, of="", form=INDEX_FORM)


def test_rule_12_state_of_another_step_is_never_read() -> None:
    """Two steps change places, as Spark would let them: it numbers stateful operators by position."""
    harness = Harness(built(events().key_by("k").window(sw.tumbling("1m"), name="a").aggregate(n=sw.count())))
    send(harness, row("k", 0)).run_batch()
    moved = {
        place: {
            key.replace("a/", "b/"): renamed(blob, f"state/{place[0]}/{place[1]}") if key == "index" else blob
            for key, blob in blobs.items()
        }
        for place, blobs in harness.engine.state.items()
    }
    other = Harness(built(events().key_by("k").window(sw.tumbling("1m"), name="b").aggregate(n=sw.count())))
    other.engine.state = moved
    with pytest.raises(RunError, match=r"STATE_OF_ANOTHER_STEP.*`b` found state of `a`"):
        other.advance_watermark(MINUTE)


def test_rule_12_layout_and_fingerprint_are_the_same_in_every_process() -> None:
    """An expression's repr holds an address, a set's its order: either would make every restart look like a change."""
    script = """
import polars as pl, slackwater as sw
from slackwater.testing import rows_source
chosen = lambda frame: frame.filter(pl.lit("a" in {"a", "b", "c", "d"}))
events = sw.stream("e", rows_source("k string, ts long")).event_time(pl.col("ts") + 1).where(pl.col("k").is_in(["a"]))
events = events.validate(positive="ts > 0").with_columns(pl.col("ts") * 2).map(chosen)
results = events.key_by("k").window(sw.session(pl.col("ts") % 5)).aggregate(n=sw.sum(pl.col("ts") + 1))
plan = sw.Pipeline("p", results.to(sw.sinks.memory()), results.late.drop(), events.dead_letters.drop()).plan()
print(plan.fingerprint, plan.layout)
"""
    said = set()
    for seed in "12":
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
        )
        said.add(done.stdout)
    assert len(said) == 1


def test_rule_13_no_piece_is_larger_than_state_calls_can_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "MOST_BYTES", 20_000)
    results = events().key_by("k").window(sw.tumbling("1m"), allowed_lateness="1h").aggregate(n=sw.count())
    harness = Harness(built(results, key_groups=1))
    for batch in range(4):
        send(harness, *[row(f"user-{batch}-{number}", number) for number in range(5_000)]).run_batch()
        assert max(sizes(harness)) <= 20_000, "as they come from FRONT"
    harness.advance_watermark(MINUTE)
    assert max(sizes(harness)) <= 20_000, "as they are rewritten when the window has fired"
    assert harness.output(results)["n"].sum() == 20_000


def sizes(harness: Harness) -> list[int]:
    """Return the bytes of each piece of state."""
    return [len(blob) for blobs in harness.engine.state.values() for name, blob in blobs.items() if name != "index"]


def test_rule_13_pieces_are_merged_before_there_are_too_many() -> None:
    results = events().key_by("k").window(sw.tumbling("1d"), allowed_lateness="1h").aggregate(n=sw.count())
    harness = Harness(built(results, key_groups=1))
    most = 0
    for batch in range(100):
        send(harness, row("a", batch), row("b", batch)).run_batch()
        most = max(most, harness.pieces)
    assert most <= 2 * 16 + 4
    harness.finish()
    assert sorted(harness.output(results)["n"]) == [100, 100]
    assert harness.pieces == 0


@pytest.mark.parametrize("groups", [1, 2, 8, 64, 256])
def test_rule_15_labels_land_one_per_partition_and_evenly_on_fewer(groups: int) -> None:
    partitions = groups
    while partitions:
        used = Counter(spark_hash(label) % partitions for label in labels(groups))
        assert set(used.values()) == {groups // partitions}
        partitions //= 2


def test_rule_15_plain_numbers_would_leave_partitions_empty() -> None:
    assert len({spark_hash(number) % 64 for number in range(64)}) == 37


def test_window_that_changed_is_shown_as_it_was_written(tmp_path: Path) -> None:
    open_checkpoint(tmp_path, plan(sw.tumbling("1h")), partitions=1)
    with pytest.raises(RunError) as raised:
        existing_checkpoint(tmp_path, plan(sw.session("30m")))
    assert "tumbling(size=1h, offset=0s)" in str(raised.value)
    assert "session(gap=30m" in str(raised.value)
