"""The zombie matrix: every sink, a writer frozen at every step of a delivery, woken when its successor has gone on.

zombie      0  1  2  3  4 … frozen                        wakes: 4 at last, then 5 with rows of its own
successor                     4  5  6  7  8  9 (merging)                                               10  11

The sink alone must shut the zombie out of the slot that it has open; from opening it once more the checkpoint's lock
keeps it, and from writing to a receiver over HTTP, which knows no writers.
"""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Final

import pytest

from slackwater.base.errors import RunError
from slackwater.connectors.delivery import OpenSlot
from slackwater.connectors.postgres import connection as connecting
from tests.connectors.sink_grounds import Ground, each
from tests.connectors.zombies import FROZEN_IN, Freezer, Zombie, job, rows

LAST: Final = 9
"""The batch up to which the successor has gone when the zombie wakes."""
KINDS: Final = ("files", "files, merged", "postgres", "redis", "http", "kafka", "delta")
LONG: Final = ("kafka", "delta")
POINTS: Final = ("opened", "written", "committed")


@pytest.mark.filterwarnings("ignore::slackwater.connectors.delivery.SinkWarning")
@pytest.mark.parametrize("point", POINTS)
@each(*KINDS, long=LONG)
def test_writer_that_wakes_after_its_successor_went_on_loses_nothing_and_doubles_nothing(
    ground: Ground, point: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go_soon(monkeypatch)
    place = f"z{uuid.uuid4().hex[:8]}"
    old, freezer = job(ground.sink(place)), Freezer()
    for batch in range(FROZEN_IN):
        old.deliver(rows(batch))
    zombie = Zombie(act=lambda: old.deliver(rows(FROZEN_IN), batch=FROZEN_IN))
    new = job(ground.sink(place), noted=FROZEN_IN - 1)
    with freezer.at(point, FROZEN_IN, tmp_path):
        zombie.start()
        assert freezer.frozen.wait(60)
        for batch in range(FROZEN_IN, LAST + 1):
            new.deliver(rows(batch))
        assert ground.content(place) == ground.expected(LAST)
        lose_lock(old.start(), writes_too=ground.kind == "http")
        freezer.woken.set()
        zombie.join()
    assert isinstance(zombie.error, RunError) or point == "committed" or ground.kind == "http", zombie.error
    assert ground.content(place) == ground.expected(LAST)

    with pytest.raises(RunError) as refused:
        old.deliver(rows(FROZEN_IN + 1, of="other "), batch=FROZEN_IN + 1)
    assert "--take-over" not in str(refused.value)
    assert ground.content(place) == ground.expected(LAST)
    for batch in (LAST + 1, LAST + 2):
        new.deliver(rows(batch))
    assert ground.content(place) == ground.expected(LAST + 2)
    old.close()
    new.close()
    assert ground.content(place) == ground.expected(LAST + 2)


def let_go_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Postgres end the transaction of a client that froze after a second instead of twenty."""
    assert b"'20s'" in connecting._TRANSACTION
    monkeypatch.setattr(connecting, "_TRANSACTION", connecting._TRANSACTION.replace(b"'20s'", b"'1s'"))


def lose_lock(open_slot: OpenSlot, *, writes_too: bool) -> None:
    """Let a driver know that another has its checkpoint: before it opens a slot once more, or before it writes, too."""

    def check() -> None:
        if writes_too or open_slot._writer is None:
            raise RunError("CHECKPOINT_LOST", "another driver has it")

    open_slot.check_owner = check
