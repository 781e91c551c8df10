"""Delta tables through crashes: whatever dies and whenever, each row is there once.

What holds for every sink is in tests/connectors/test_sink_contract.py; here is what happens around a commit in the
table's log.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from slackwater.base.errors import RunError
from slackwater.connectors import delivery
from slackwater.connectors.delivery import SinkWarning
from slackwater.connectors.delta.sink import DeltaSink
from slackwater.connectors.sink import SinkWriter, Slot
from tests.connectors.delta.tables import CHANGES, Lake, changes, in_a_thread, totals

pytestmark = pytest.mark.spark

ONE, TWO, THREE = totals(("ann", 1), ("bob", 2)), totals(("ann", 10), ("cid", 3)), totals(("bob", 20))
FIRST = [("ann", 1), ("bob", 2)]
APPENDED = [("ann", 1), ("ann", 10), ("bob", 2), ("cid", 3)]
MERGED = [("ann", 10), ("bob", 2), ("cid", 3)]

WAYS = pytest.mark.parametrize(
    "options, rows",
    [
        pytest.param({}, APPENDED, id="append"),
        pytest.param({"merge_on": ["user"]}, MERGED, id="merge", marks=pytest.mark.long),
    ],
)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "BACKOFF", replace(delivery.BACKOFF, first_s=0.01))


class DiedError(Exception):
    """Raised where a process would have died."""


def dies() -> None:
    raise DiedError


@WAYS
def test_what_dies_before_the_commit_leaves_nothing_visible_and_the_repeat_writes_once(
    lake: Lake, options: dict[str, Any], rows: list[Any]
) -> None:
    job = lake.job(**options)
    job.deliver(ONE)
    stored = lake.stored()
    with lake.at_commit(dies), pytest.raises(RunError, match="DELTA_REFUSED"):
        job.deliver(TWO)
    assert lake.stored() > stored, "its rows were in files"
    assert lake.rows() == FIRST
    job.restart().deliver(TWO, batch=1)
    assert lake.rows() == rows


@pytest.mark.long
@WAYS
def test_trouble_at_the_commit_is_waited_for_and_each_row_is_there_once(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], rows: list[Any]
) -> None:
    job = lake.job(**options)
    job.deliver(ONE)
    opened = DeltaSink.open

    def reopen(sink: DeltaSink, slot: Slot) -> SinkWriter:
        lake.find()
        return opened(sink, slot)

    monkeypatch.setattr(DeltaSink, "open", reopen)
    with lake.at_commit(lake.lose), pytest.warns(SinkWarning, match="SINK_WAITING"):
        job.deliver(TWO)
    assert lake.rows() == rows


@pytest.mark.long
def test_mark_of_a_commit_that_is_no_longer_in_the_log_is_missing(lake: Lake) -> None:
    job = lake.job()
    job.deliver(ONE)
    lake.sql("ALTER TABLE {table} SET TBLPROPERTIES ('delta.checkpointInterval' = '1')")
    lake.write([("eve", 5)], "user string, total long")
    for commit in sorted((lake.path() / "_delta_log").glob("*.json"))[:-1]:
        commit.unlink()
    lake.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]
    with pytest.raises(RunError, match="SINK_MARK_MISSING"):
        job.restart().deliver(TWO)
    assert lake.rows() == [*FIRST, ("eve", 5)]
    replace(job, _open_slot=None, take_over=True).deliver(TWO)
    assert lake.rows() == [*APPENDED, ("eve", 5)]


@pytest.mark.long
@WAYS
def test_whoever_was_about_to_commit_when_another_opened_the_table_is_shut_out(
    lake: Lake, options: dict[str, Any], rows: list[Any]
) -> None:
    zombie = lake.job(**options)
    zombie.deliver(ONE)
    job = replace(zombie, _open_slot=None)
    with lake.at_commit(in_a_thread(lambda: job.start(1))), pytest.raises(RunError, match="SINK_FENCED"):
        zombie.deliver(THREE)
    assert lake.rows() == FIRST
    job.deliver(TWO)
    assert lake.rows() == rows


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::slackwater.connectors.delivery.SinkWarning")
def test_merge_that_meets_another_change_is_tried_again(lake: Lake) -> None:
    job = lake.job(merge_on="user")
    job.deliver(ONE)
    with lake.at_commit(in_a_thread(lambda: lake.sql("UPDATE {table} SET total = 7 WHERE user = 'bob'"))):
        job.deliver(TWO)
    assert lake.rows() == [("ann", 10), ("bob", 7), ("cid", 3)]


@pytest.mark.long
def test_batch_that_changes_nothing_is_marked_as_well(lake: Lake) -> None:
    job = lake.job(schema=CHANGES, merge_on="user")
    job.deliver(changes(("ann", 1, False)))
    job.deliver(changes(("nobody", 1, True)))
    before = lake.versions()
    job.restart().deliver(changes(("nobody", 1, True)), batch=1)
    assert lake.rows() == [("ann", 1)]
    assert lake.versions() == before + 1, "only the opening"


@pytest.mark.long
def test_at_least_once_leaves_no_mark_and_writes_again(lake: Lake) -> None:
    job = lake.job(delivery="at_least_once")
    job.deliver(ONE)
    job.restart().deliver(ONE, batch=0)
    assert lake.rows() == sorted(FIRST * 2)
    assert all("slackwater" not in path.read_text() for path in (lake.path() / "_delta_log").glob("*.json"))


@pytest.mark.long
def test_outputs_of_one_table_do_not_see_each_others_marks(lake: Lake) -> None:
    lake.job().deliver(ONE)
    lake.job(run={"output": "more", "incarnation": "second"}).deliver(TWO)
    lake.job(run={"marked": [0]}).deliver(THREE)
    assert lake.rows() == sorted([*APPENDED, ("bob", 20)])
