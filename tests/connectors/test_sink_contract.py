"""The contract of every sink that promises exactly once, on its real server and without a job around it.

What is special to a sink stands in the folder named after it; here is what holds for all of them.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from slackwater.base.errors import RunError
from slackwater.connectors import delivery
from slackwater.connectors.delivery import OpenSlot, StoppedWaitingError
from slackwater.connectors.http.sink import sending as http_sending
from slackwater.connectors.sink import SinkWriter
from slackwater.testing import SinkHarness
from tests.connectors.sink_grounds import SINKS, Ground, each
from tests.connectors.zombies import job, rows
from tests.matrix.jobs import crashing
from tests.on_spark.jobs import CrashError

pytestmark = pytest.mark.filterwarnings("ignore::slackwater.connectors.delivery.SinkWarning")

LONG: Final = ("delta", "delta, merged")
"""Where a commit, which takes Delta seconds, is one of several."""
KNOWS_WRITERS: Final = tuple(kind for kind in SINKS if kind != "http")
"""The kinds that keep marks: a receiver over HTTP knows a row again by its key, whoever sends it."""
HAS_SLOTS: Final = ("postgres", "redis", "kafka")
HAS_SERVER: Final = ("postgres", "redis", "http", "kafka")
SHUT_OUT: Final = r"(SINK_FENCED|POSTGRES_SHUT_OUT|REDIS_FENCED)"
POINTS: Final = ("opened", "written", "committed")


@pytest.fixture
def place() -> str:
    """Give a place that nobody has written to."""
    return f"c{uuid.uuid4().hex[:8]}"


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "BACKOFF", replace(delivery.BACKOFF, first_s=0.05))


@pytest.fixture(autouse=True)
def _close_the_dead(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close, in the end, what jobs that are as good as dead have left open, as processes that hang do."""
    opened: list[SinkWriter] = []
    whole = OpenSlot._open

    def open_and_note(open_slot: OpenSlot) -> SinkWriter:
        writer = whole(open_slot)
        opened.append(writer)
        return writer

    monkeypatch.setattr(OpenSlot, "_open", open_and_note)
    yield
    for writer in opened:
        writer.close()


def begun(ground: Ground, place: str) -> SinkHarness:
    """Return a job that has delivered batches 0 and 1."""
    run = job(ground.sink(place))
    run.deliver(rows(0))
    run.deliver(rows(1))
    return run


@each(*SINKS, long=LONG)
def test_batch_delivered_again_changes_nothing(ground: Ground, place: str) -> None:
    run = begun(ground, place)
    run.deliver(rows(1), batch=1)
    run.restart().deliver(rows(1), batch=1)
    assert ground.content(place) == ground.expected(1)
    run.deliver(rows(2))
    assert ground.content(place) == ground.expected(2)


@each(*SINKS, long=LONG)
@pytest.mark.parametrize("point", POINTS)
def test_writer_that_dies_leaves_all_of_a_batch_or_nothing_and_the_repeat_writes_it_once(
    ground: Ground, place: str, point: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = job(ground.sink(place))
    run.deliver(rows(0))
    assert ground.content(place) == ground.expected(0)
    with crashing(monkeypatch, tmp_path, point, 1), pytest.raises(CrashError):
        run.deliver(rows(1))
    is_there = point == "committed" or (ground.kind == "http" and point == "written")
    assert ground.content(place, is_open=not is_there) == ground.expected(1 if is_there else 0)
    run.restart().deliver(rows(1))
    run.deliver(rows(2))
    assert ground.content(place) == ground.expected(2)


@each(*KNOWS_WRITERS, long=LONG)
def test_new_checkpoint_is_an_error_unless_it_takes_over(ground: Ground, place: str) -> None:
    old = begun(ground, place)
    new = replace(old, incarnation="second", marked=[], _open_slot=None)
    with pytest.raises(RunError, match=r"SINK_OF_ANOTHER_RUN.*start from the checkpoint that wrote them"):
        new.deliver(rows(9))
    assert ground.content(place) == ground.expected(1)
    old.restart().deliver(rows(2))
    assert ground.content(place) == ground.expected(2)
    if not ground.kind.startswith("files"):  # whose batches are folders, and the folder of a batch is there
        replace(new, take_over=True).deliver(rows(3))
        assert ground.content(place) == ground.expected(3)


@each(*KNOWS_WRITERS, long=LONG)
def test_copied_checkpoint_neither_skips_nor_doubles(ground: Ground, place: str) -> None:
    run = begun(ground, place)
    copy = replace(run, token="copy", marked=[0, 1], _open_slot=None)  # noqa: S106  not a secret
    run.deliver(rows(2))
    with pytest.raises(RunError, match=r"SINK_OF_A_COPY.*has batch 2 .*now at batch 2.*--take-over"):
        copy.deliver(rows(9))
    assert ground.content(place) == ground.expected(2)
    run.restart().deliver(rows(3))
    with pytest.raises(RunError, match=r"SINK_OF_A_COPY.*has batch 3 .*now at batch 2"):
        copy.restart().deliver(rows(9))
    assert ground.content(place) == ground.expected(3)


@each(*(kind for kind in KNOWS_WRITERS if kind != "files, merged"), long=LONG)
def test_lost_mark_is_an_error_unless_the_job_takes_over(ground: Ground, place: str) -> None:
    run = begun(ground, place)
    ground.target.forget_mark(place)
    with pytest.raises(RunError, match=r"SINK_MARK_MISSING.*has no mark in slot 0.*wrote batch 1.*--take-over"):
        run.restart().deliver(rows(9), batch=2)
    assert ground.content(place) == ground.expected(1)
    replace(run, take_over=True, _open_slot=None).deliver(rows(2), batch=2)
    assert ground.content(place) == ground.expected(2)


@each(*KNOWS_WRITERS, long=LONG)
def test_older_writer_of_a_slot_is_shut_out(ground: Ground, place: str) -> None:
    older = begun(ground, place)
    newer = replace(older, sink=ground.sink(place), _open_slot=None)
    newer.start(2)
    with pytest.raises(RunError, match=SHUT_OUT):
        older.deliver(rows(9))
    assert ground.content(place) == ground.expected(1)
    newer.deliver(rows(2))
    with pytest.raises(RunError, match=SHUT_OUT):
        older.deliver(rows(9))
    assert ground.content(place) == ground.expected(2)


@each(*HAS_SLOTS)
def test_slots_have_marks_and_writers_of_their_own(ground: Ground, place: str) -> None:
    first, second = (replace(job(ground.sink(place)), slot=number) for number in (1, 2))
    first.deliver(rows(0)[:1])
    second.deliver(rows(0)[1:])
    first.deliver(rows(1)[:1])
    second.restart().deliver(rows(0)[1:], batch=0)
    first.restart().deliver(rows(1)[:1], batch=1)
    second.deliver(rows(1)[1:])
    assert ground.content(place) == ground.expected(1)


@each(*HAS_SERVER, long=("kafka",))
def test_stop_ends_the_waiting_for_a_server_and_the_batch_is_delivered_later(
    ground: Ground, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "BACKOFF", replace(delivery.BACKOFF, first_s=60.0, longest_s=60.0))
    monkeypatch.setattr(http_sending, "BACKOFF", replace(http_sending.BACKOFF, first_s=60.0, longest_s=60.0))
    run = begun(ground, place)
    server = ground.target.server
    assert server is not None
    # A broker that is killed before it has written a commit's markers may skip them when it starts again, as if the
    # new topic were deleted: Kafka then leaves a transaction that hangs. If rows are visible, markers are there.
    assert ground.content(place) == ground.expected(1)
    server.kill()
    try:
        open_slot, began = run.start(2), time.monotonic()
        open_slot.is_stopping = lambda: time.monotonic() > began + 0.3
        with pytest.raises(StoppedWaitingError):
            run.deliver(rows(2))
        assert time.monotonic() < began + 45
    finally:
        server.start()
    run.restart().deliver(rows(2))
    assert ground.content(place) == ground.expected(2)
