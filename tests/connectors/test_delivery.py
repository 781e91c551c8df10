"""The protocol of all sinks: what becomes of a batch, whatever the slot's mark is and whatever breaks."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl
import pytest

from slackwater.base.errors import RunError
from slackwater.connectors import delivery
from slackwater.connectors.delivery import SinkWarning, StoppedWaitingError
from slackwater.connectors.sink import Delivery, Mark, Sink, SinkBatch, SinkWriter, Slot, Unavailable
from slackwater.testing import SinkHarness

SCHEMA = pl.Schema({"id": pl.Int64()})
ONE, TWO = (pl.DataFrame({"id": ids}, schema=SCHEMA) for ids in ([1, 2], [3]))


@dataclass(kw_only=True)
class Store:
    """What a server would hold, and what goes wrong with it."""

    rows: list[int] = field(default_factory=list)
    mark: Mark | None = None
    trouble: list[str] = field(default_factory=list)
    """What goes wrong in the next attempts: on opening, before or after the commit."""
    opened: int = 0

    def fails(self, where: str) -> None:
        if self.trouble and self.trouble[0] == where:
            self.trouble.pop(0)
            raise Unavailable(f"gone {where}")


@dataclass(kw_only=True)
class _Writer(SinkWriter):
    store: Store

    def mark(self) -> Mark | None:
        return self.store.mark

    def write(self, batch: SinkBatch, mark: Mark | None) -> None:
        self.store.fails("before")
        self.store.rows += [number for frame in batch.frames() for number in frame["id"]]
        self.store.mark = mark or self.store.mark
        self.store.fails("after")


@dataclass(frozen=True, kw_only=True, eq=False)
class StoreSink(Sink):
    store: Store = field(default_factory=Store)

    def open(self, slot: Slot) -> SinkWriter:
        self.store.opened += 1
        self.store.fails("opening")
        return _Writer(store=self.store)

    def __str__(self) -> str:
        return "store"


def job(delivered: Delivery = "exactly_once", **run: Any) -> SinkHarness:  # noqa: ANN401  a SinkHarness's own
    return SinkHarness(sink=StoreSink(delivery=delivered, retry_for_ms=1_000), schema=SCHEMA, **run)


def store(run: SinkHarness) -> Store:
    assert isinstance(run.sink, StoreSink)
    return run.sink.store


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "BACKOFF", replace(delivery.BACKOFF, first_s=0.001))


def test_batch_that_is_marked_is_not_written_again() -> None:
    run = job()
    run.deliver(ONE)
    run.restart().deliver(ONE, batch=0)
    run.deliver(TWO)
    assert store(run).rows == [1, 2, 3]


@pytest.mark.filterwarnings("ignore::slackwater.connectors.delivery.SinkWarning")
@pytest.mark.parametrize("where", ["before", "after"])
def test_trouble_that_passes_is_waited_for_and_nothing_doubles(where: str) -> None:
    run = job()
    run.start()
    store(run).trouble = [where, "opening", "opening"]
    run.deliver(ONE)
    assert store(run).rows == [1, 2]
    assert store(run).opened == 4


def test_trouble_is_reported_when_it_begins_now_and_then_and_when_it_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    run = job()
    run.start()
    store(run).trouble = ["before", "before"]
    with pytest.warns(SinkWarning, match=r"SINK_WAITING.*store of .*`results` is unavailable: gone before") as said:
        run.deliver(ONE)
    assert len(said) == 2
    assert "[SINK_BACK] store of output" in str(said[1].message)
    assert str(said[1].message).endswith("batch 0 delivered")
    monkeypatch.setattr(delivery, "REPORTED_EVERY_MS", 0)
    store(run).trouble = ["before", "before"]
    with pytest.warns(SinkWarning) as said:
        run.deliver(TWO)
    assert [str(each.message).partition(" ")[0] for each in said] == ["[SINK_WAITING]"] * 2 + ["[SINK_BACK]"]


def test_mark_of_another_writer_is_an_error() -> None:
    run = job()
    store(run).mark = {"batch": 3}  # type: ignore[assignment]
    with pytest.raises(RunError, match=r"SINK_MARK\b.*store of output `results` returned {'batch': 3}"):
        run.deliver(ONE)


def test_sink_that_opens_nothing_is_an_error() -> None:
    class Shut(Sink):
        def open(self, slot: object) -> None:  # type: ignore[override]
            """Forget to return a writer."""

        def __str__(self) -> str:
            return "shut"

    with pytest.raises(RunError, match=r"SINK_WRITER.*got `NoneType` from shut of output `results`"):
        SinkHarness(sink=Shut(), schema=ONE.schema).deliver(ONE)


@pytest.mark.filterwarnings("ignore::slackwater.connectors.delivery.SinkWarning")
def test_trouble_that_does_not_pass_fails_the_job_and_the_batch_is_delivered_later() -> None:
    run = job()
    run.start()
    store(run).trouble = ["before"] * 1_000
    with pytest.raises(RunError, match=r"SINK_GAVE_UP.*did not accept batch 0 .*gone before"):
        run.deliver(ONE)
    store(run).trouble = []
    run.restart().deliver(ONE)
    assert store(run).rows == [1, 2]


@pytest.mark.filterwarnings("ignore::slackwater.connectors.delivery.SinkWarning")
def test_stop_ends_the_waiting() -> None:
    run = job()
    open_slot = run.start()
    open_slot.is_stopping = lambda: True
    store(run).trouble = ["before"]
    with pytest.raises(StoppedWaitingError):
        run.deliver(ONE)


def test_sink_that_is_not_there_at_the_start_is_reported_at_once() -> None:
    run = job()
    store(run).trouble = ["opening"]
    with pytest.raises(RunError, match=r"SINK_UNREACHABLE.*cannot connect to store for output `results`: gone opening"):
        run.start()
    assert store(run).opened == 1


def test_other_errors_are_not_tried_again() -> None:
    run = job()
    with pytest.raises(pl.exceptions.ColumnNotFoundError):
        run.deliver(ONE.rename({"id": "other"}))
    assert store(run).opened == 1


def test_mark_of_another_run_is_an_error() -> None:
    run = job()
    run.deliver(ONE)
    other = replace(run, incarnation="second", marked=[], _open_slot=None)
    with pytest.raises(RunError, match="SINK_OF_ANOTHER_RUN"):
        other.start()


def test_mark_that_is_missing_is_an_error() -> None:
    run = job()
    run.deliver(ONE)
    store(run).mark = None
    with pytest.raises(RunError, match=r"SINK_MARK_MISSING.*has no mark in slot 0.*this run wrote batch 0"):
        run.restart().deliver(TWO)


def test_mark_that_is_missing_of_the_very_batch_that_was_noted_is_an_error() -> None:
    run = job(marked=[0])
    open_slot = SinkHarness(sink=run.sink, schema=SCHEMA).start()
    noted = delivery.Expected(mark=Mark(incarnation="first", batch=0, token="t"), before=0)  # noqa: S106  not a secret
    with pytest.raises(RunError, match=r"SINK_MARK_MISSING.*this run wrote batch 0"):
        open_slot.check(noted)


def test_mark_that_went_back_is_an_error() -> None:
    run = job()
    run.deliver(ONE)
    backup = store(run).mark
    run.deliver(TWO)
    store(run).mark = backup
    with pytest.raises(RunError, match=r"SINK_MARK_MISSING.*has the mark of batch 0 .*this run wrote batch 1"):
        run.restart().deliver(TWO)


def test_copy_of_a_checkpoint_neither_skips_nor_doubles() -> None:
    run = job()
    run.deliver(ONE)
    copy = replace(run, token="copy", marked=[0], _open_slot=None)  # noqa: S106  not a secret
    run.deliver(TWO)
    with pytest.raises(RunError, match=r"SINK_OF_A_COPY.*has batch 1 .*now at batch 1"):
        copy.deliver(TWO)
    run.deliver(TWO)
    with pytest.raises(RunError, match=r"SINK_OF_A_COPY.*has batch 2 .*now at batch 1"):
        copy.deliver(TWO)


@pytest.mark.parametrize("marked", [None, Mark(incarnation="other", batch=7, token="")])
def test_taking_over_goes_on_from_any_mark(marked: Mark | None) -> None:
    run = job(marked=[3], take_over=True)
    store(run).mark = marked
    run.deliver(ONE)
    assert store(run).rows == [1, 2]
    assert store(run).mark == Mark(incarnation="first", batch=4, token="token-4")  # noqa: S106  not a secret


@pytest.mark.filterwarnings("ignore::slackwater.connectors.delivery.SinkWarning")
def test_at_least_once_writes_no_mark_and_writes_again() -> None:
    run = job("at_least_once")
    store(run).trouble = ["after"]
    run.deliver(ONE)
    assert store(run).rows == [1, 2, 1, 2]
    assert store(run).mark is None


def test_at_most_once_does_not_try_again_and_says_what_is_lost() -> None:
    run = job("at_most_once")
    store(run).trouble = ["before"]
    with pytest.warns(SinkWarning, match="SINK_LOST"):
        run.deliver(ONE)
    run.deliver(TWO)
    assert store(run).rows == [3]
