"""Answers are written down: a batch that is run again gives the same rows, though the store answers otherwise now."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import slackwater as sw
from slackwater.base import durable
from slackwater.base.errors import RunError
from slackwater.base.sealed import checkpoint_folder
from slackwater.connectors.chunk import Chunk
from slackwater.engine.enrichment.answers import AnswerFiles, Answers, FolderAnswers, MemoryAnswers, Span
from slackwater.engine.enrichment.cached_lookups import CachedLookups
from slackwater.engine.enrichment.enrichment import Enrichment
from slackwater.engine.enrichment.snapshots import MemorySnapshots
from slackwater.engine.front.front import Front
from slackwater.engine.memory import MemoryEngine
from slackwater.engine.next_clock import first_clock
from slackwater.operators.state.packing import unpack
from slackwater.plan.plan import Plan
from slackwater.plan.streams import Output, Stream
from slackwater.testing import Harness
from tests.engine.enrichment.scripted import Script, looked_up, orders, rows

Where = Callable[[], Answers]


def folder_answers(checkpoint: Path) -> FolderAnswers:
    return FolderAnswers(files=checkpoint_folder(checkpoint / "slackwater", "incarnation"))


@pytest.fixture(params=["folder", "memory"])
def answers(request: pytest.FixtureRequest, tmp_path: Path) -> Answers:
    return folder_answers(tmp_path) if request.param == "folder" else MemoryAnswers()


def planned(script: Script, **options: Any) -> Plan:  # noqa: ANN401  those of `.lookup`
    stream = looked_up(orders(), script, cache=None, **options)
    return sw.Pipeline("p", stream.to(sw.sinks.memory()), stream.dead_letters.to(sw.sinks.memory())).plan()


def chunk(*users: str | None, first: int = 0, partition: str = "0") -> Chunk:
    frame = pl.DataFrame(rows(*users, first=first), schema={"user": pl.String(), "ts": pl.Int64(), "x": pl.Int64()})
    return Chunk(
        frame=frame,
        partition=partition,
        file=f"{partition}/{first}",
        first_offset=first,
        source="orders",
        ingestion_ms=0,
    )


def task(plan: Plan, answers: Answers, *chunks: Chunk, batch: int = 0) -> pl.DataFrame:
    """Run FRONT over chunks as a task does, with lookups of its own, and return the rows that leave it."""
    clock = replace(first_clock(plan), now_ms=0, batch=batch)
    enrichment = Enrichment(clock=clock, answers=answers, snapshots=MemorySnapshots(), lookups=CachedLookups())
    front = Front(plan, plan.sources[0], clock, enrichment)
    packets = [packet for each in chunks for packet in front.process(each)] + front.finish("0")
    frames = [unpack(packet.payload or b"", packet.target) for packet in packets if packet.target == "orders.rows"]
    return pl.concat(frames).sort("ts") if frames else pl.DataFrame()


def test_a_task_that_runs_again_gets_the_answers_it_had(answers: Answers) -> None:
    script = Script()
    plan = planned(script)
    first = task(plan, answers, chunk("ada", "bob", "ada"))
    assert_frame_equal(task(plan, answers, chunk("ada", "bob", "ada")), first)
    assert len(script.asked) == 2


def test_another_batch_asks_anew(answers: Answers) -> None:
    script = Script()
    plan = planned(script)
    first = task(plan, answers, chunk("ada"))
    assert task(plan, answers, chunk("ada"), batch=1)["seen"].to_list() != first["seen"].to_list()


def test_another_partition_with_the_same_offsets_asks_for_itself(answers: Answers) -> None:
    script = Script()
    plan = planned(script)
    task(plan, answers, chunk("ada"))
    task(plan, answers, chunk("ada", partition="1"))
    assert script.asked == ["ada", "ada"]


def test_rows_cut_into_other_chunks_get_the_answers_they_had(answers: Answers) -> None:
    script = Script()
    plan = planned(script)
    first = task(plan, answers, chunk("ada", "bob", "eve"), chunk("ada", "kim", first=3))
    again = task(plan, answers, chunk("ada", first=0), chunk("bob", "eve", "ada", first=1), chunk("kim", first=4))
    assert_frame_equal(again.select("user", "name", "seen"), first.select("user", "name", "seen"))
    assert len(script.asked) == 5


def test_only_rows_that_are_not_covered_are_asked_for(answers: Answers) -> None:
    script = Script()
    plan = planned(script)
    task(plan, answers, chunk("ada", "bob"))
    task(plan, answers, chunk("ada", "bob", "eve", "ada"))
    assert sorted(script.asked[2:]) == ["ada", "eve"], "the row at offset 3 is another one than that at 0"


def test_a_batch_is_the_same_again_though_its_first_attempt_ended_amid_its_chunks(answers: Answers) -> None:
    script = Script()
    plan = planned(script)
    half = task(plan, answers, chunk("ada", "bob"))
    whole = task(plan, answers, chunk("ada", "bob"), chunk("ada", first=2))
    assert_frame_equal(whole.head(2), half)


@pytest.mark.parametrize("on_error, reason", [("dead_letter", "lookup_failed"), ("null", None)])
def test_a_failure_that_was_shown_is_shown_again_though_the_store_is_back(
    answers: Answers, on_error: str, reason: str | None
) -> None:
    script = Script(fails={"bob"}, lacks={"eve"})
    plan = planned(script, on_error=on_error)
    first = task(plan, answers, chunk("ada", "bob", "eve"))
    script.fails.clear()
    script.lacks.clear()
    assert_frame_equal(task(plan, answers, chunk("ada", "bob", "eve")), first)
    assert first.height == (2 if reason else 3)


def test_answers_that_came_before_a_wait_are_used_after_it(answers: Answers) -> None:
    script = Script(fails={"bob"})
    plan = planned(script)
    with pytest.raises(RunError, match="LOOKUP_UNAVAILABLE"):
        task(plan, answers, chunk("ada", "bob"))
    script.fails.clear()
    assert task(plan, answers, chunk("ada", "bob"))["seen"].to_list() == [1, 3]


def test_other_columns_after_an_agreed_change_are_asked_for(answers: Answers) -> None:
    script = Script()
    task(planned(script), answers, chunk("ada"))
    again = task(planned(script, output="name string"), answers, chunk("ada"))
    assert again["name"].to_list() == ["ada at 2"]


def test_of_two_tasks_that_do_the_same_work_the_first_one_that_writes_decides(answers: Answers) -> None:
    script = Script()
    plan = planned(script)
    both_asked = threading.Barrier(2)
    whole = type(answers).write

    def write(self: Any, *given: Any) -> pl.DataFrame:  # noqa: ANN401  as the method has them
        both_asked.wait(10)
        return whole(self, *given)

    got: dict[int, pl.DataFrame] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(answers), "write", write)
        tasks = [
            threading.Thread(target=lambda at=at: got.update({at: task(plan, answers, chunk("ada"))})) for at in (0, 1)
        ]
        for each in tasks:
            each.start()
        for each in tasks:
            each.join(20)
    assert len(script.asked) == 2
    assert_frame_equal(got[0], got[1])
    assert_frame_equal(task(plan, answers, chunk("ada")), got[0])


def test_a_crash_before_the_file_has_its_name_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script()
    plan, home = planned(script), folder_answers(tmp_path)

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", crash)
        with pytest.raises(KeyboardInterrupt):
            task(plan, home, chunk("ada"))
    assert task(plan, home, chunk("ada"))["seen"].to_list() == [2]
    assert task(plan, home, chunk("ada"))["seen"].to_list() == [2]


def test_a_damaged_file_of_answers_is_named(tmp_path: Path) -> None:
    plan, home = planned(Script()), folder_answers(tmp_path)
    task(plan, home, chunk("ada"))
    [path] = home.folder.rglob("*.arrow")
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(RunError, match=rf"CHECKPOINT_DAMAGED.*{path.name}"):
        task(plan, home, chunk("ada"))


def test_files_are_named_by_step_batch_partition_and_offsets(tmp_path: Path) -> None:
    plan, home = planned(Script(), name="users"), folder_answers(tmp_path)
    task(plan, home, chunk("ada", "bob", first=40), batch=7)
    [path] = (tmp_path / "slackwater" / "lookups" / "users" / "7").iterdir()
    assert "_40_41_" in path.name
    home.forget(6)
    assert path.exists()
    home.forget(7)
    assert not path.exists()


def test_a_listing_knows_which_files_are_about_the_rows_of_a_span(answers: Answers) -> None:
    for partition, first, last in (("0", 0, 9), ("0", 0, 10), ("0", 19, 25), ("0", 20, 25), ("1", 0, 99)):
        found = pl.DataFrame({"__key": [f"{first} to {last}"]})
        answers.write("s", 0, Span(partition=partition, first=first, last=last), found)
    covering = AnswerFiles(answers, "s", 0).covering(Span(partition="0", first=10, last=19))
    assert sorted((each.first, each.last, each.answers["__key"][0]) for each in covering) == [
        (0, 10, "0 to 10"),
        (19, 25, "19 to 25"),
    ]


def test_strange_files_beside_answers_are_left_alone(tmp_path: Path) -> None:
    plan, home = planned(Script()), folder_answers(tmp_path)
    first = task(plan, home, chunk("ada"))
    (home.folder / "orders.lookup" / "0" / "readme.txt").write_text("hello")
    assert_frame_equal(task(plan, home, chunk("ada")), first)


def test_a_file_is_written_once(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "c"
    assert durable.write_once(path, b"first")
    assert not durable.write_once(path, b"second")
    assert path.read_bytes() == b"first"
    assert [each.name for each in path.parent.iterdir()] == ["c"]


USERS = st.sampled_from(["ada", "bob", "eve", "kim", None])


@given(
    st.lists(st.lists(st.tuples(USERS, st.integers(0, 2)), max_size=8), min_size=1, max_size=4),
    st.randoms(use_true_random=False),
    st.sampled_from(["dead_letter", "null"]),
)
def test_batches_run_again_give_the_same_rows_however_they_are_cut(
    batches: list[list[tuple[str | None, int]]], dice: random.Random, on_error: str
) -> None:
    """Against a store whose answers change with every request, lack keys and fail at random."""
    script = Script(keys=2)
    chance = random.Random(dice.random())

    def judge(keys: Any) -> None:  # noqa: ANN401  as the store is asked
        script.lacks = {key for key in keys if chance.random() < 0.2}
        if chance.random() < 0.2:
            raise ConnectionError("gone")

    script.judge = judge
    cache, missing = dice.choice(["1m", None]), dice.choice(["null", "dead_letter"])
    stream = looked_up(orders(), script, cache=cache, on_error=on_error, missing=missing)
    per_name = stream.key_by("name").window(sw.tumbling("5ms")).aggregate(n=sw.count(), last=sw.max("seen"))
    again = looked_up(per_name, script, key="n", output="label string", name="labels", on_error=on_error)
    ended: list[Stream | Output] = [stream, again, per_name.late, stream.dead_letters, again.dead_letters]
    pipeline = sw.Pipeline("p", *(each.to(sw.sinks.memory()) for each in ended), key_groups=2)
    harness = Harness(pipeline)
    places: dict[str, int] = {}
    for batch in batches:
        chunks = []
        for partition in ("0", "1"):
            users = [user for user, part in batch if str(part) == partition]
            if users:
                chunks.append(chunk(*users, first=places.get(partition, 0), partition=partition))
                places[partition] = places.get(partition, 0) + len(users)
        state = {place: dict(blobs) for place, blobs in harness.engine.state.items()}
        clock = replace(harness.clock, now_ms=harness.now_ms)
        harness._sent = {"orders": chunks}
        first = harness.run_batch()
        cut = [part for each in chunks for part in split(each, dice)]
        dice.shuffle(cut)
        engine = MemoryEngine(plan=pipeline.plan(), state=state, answers=harness.engine.answers)
        second = engine.run({"orders": cut}, clock)
        for name, frame in first.items():
            assert_frame_equal(frame, second.outputs[name], check_row_order=False)


def split(whole: Chunk, dice: random.Random) -> list[Chunk]:
    """Return the rows of a chunk in two, as other tasks might read them."""
    at = dice.randint(0, whole.frame.height)
    parts = [(whole.first_offset, whole.frame[:at]), (whole.first_offset + at, whole.frame[at:])]
    return [
        replace(whole, frame=frame, first_offset=first, file=f"{whole.partition}/{first}")
        for first, frame in parts
        if frame.height
    ]
