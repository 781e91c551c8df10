"""Two writers in one folder: the later one shuts the earlier one out, at whatever step that was frozen."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import slackwater as sw
from slackwater.base.errors import RunError
from slackwater.testing import SinkHarness
from tests.connectors.zombies import FROZEN_IN, SCHEMA, Freezer, Zombie, job, rows
from tests.sealing import content_of

CHANGES = ("mkdir", "rename", "replace", "open")
"""Methods of a path by which the sink changes what is on disk."""


@contextmanager
def frozen_before(freezer: Freezer, change: int, thread: list[threading.Thread | None]) -> Iterator[None]:
    """Stop one thread before its n-th change of what is on disk."""
    count = 0

    with pytest.MonkeyPatch.context() as patch:
        for name in CHANGES:
            whole = getattr(Path, name)

            def counted(path: Path, *args: Any, whole: Any = whole, **more: Any) -> Any:  # noqa: ANN401  as a path's own
                nonlocal count
                if threading.current_thread() is thread[0]:
                    count += 1
                    if count == change:
                        freezer.stop()
                return whole(path, *args, **more)

            patch.setattr(Path, name, counted)
        yield


def seen(folder: Path, *, merging: bool) -> Counter[tuple[str, int]]:
    """Return what readers see: those of the manifest, or any that take every file."""
    if merging:
        return Counter(sw.sinks.read_files(folder).collect().rows())
    return Counter(row for part in folder.glob("*/part-*.parquet") for row in pl.read_parquet(part).rows())


def deliver(run: SinkHarness, *batches: int) -> None:
    """Deliver batches, starting again if another has the folder, as an operator would."""
    for batch in batches:
        try:
            run.deliver(rows(batch), batch=batch)
        except RunError as error:
            assert error.code == "SINK_FENCED"  # noqa: PT017  some of the writers are shut out
            run.restart().deliver(rows(batch), batch=batch)


@pytest.mark.parametrize("merging", [False, True])
@pytest.mark.parametrize("reopens", [False, True])
def test_writer_frozen_before_any_change_on_disk_loses_nothing_and_doubles_nothing(
    tmp_path: Path, *, merging: bool, reopens: bool
) -> None:
    for change in range(1, 100):
        folder, freezer = tmp_path / str(change), Freezer()
        old = job(sw.sinks.files(folder, merge_after=3 if merging else None))
        deliver(old, *range(FROZEN_IN))
        if reopens:
            old.restart()
        thread: list[threading.Thread | None] = [None]

        def act(old: SinkHarness = old, thread: list[threading.Thread | None] = thread) -> None:
            thread[0] = threading.current_thread()
            old.deliver(rows(FROZEN_IN), batch=FROZEN_IN)

        with frozen_before(freezer, change, thread):
            zombie = Zombie(act=act)
            zombie.start()
            while not freezer.frozen.wait(0.01) and zombie.is_alive:
                pass
            if not freezer.frozen.is_set():
                zombie.join()
                assert change > (6 if merging or reopens else 3), "it was frozen at some steps"
                return
            new = job(sw.sinks.files(folder, merge_after=3 if merging else None), noted=FROZEN_IN - 1)
            deliver(new, *range(FROZEN_IN, 9))
            freezer.woken.set()
            zombie.join()
        expected = Counter(pl.concat([rows(batch) for batch in range(9)]).rows())
        assert seen(folder, merging=merging) == expected, f"change {change}: {zombie.error}"
        deliver(new, 9, 10)
        new.close()
        old.close()
        expected += Counter(pl.concat([rows(9), rows(10)]).rows())
        assert seen(folder, merging=merging) == expected, f"change {change}: {zombie.error}"
        assert not list(folder.glob(".*")), "nothing is left of either"
    pytest.fail("it never came to an end")


def test_two_writers_at_once_in_one_process_leave_every_batch_whole(tmp_path: Path) -> None:
    """The first is frozen before each of its changes, the second is begun and frozen as well, and then both wake."""
    frame = pl.DataFrame({"k": [str(number) for number in range(1_000)], "batch": 0}, schema=SCHEMA)
    for first, second in itertools.product(range(1, 8), repeat=2):
        folder, freezers = tmp_path / f"{first}-{second}", (Freezer(), Freezer())
        threads: list[list[threading.Thread | None]] = [[None], [None]]
        writers = []
        for mine in threads:

            def write(folder: Path = folder, mine: list[threading.Thread | None] = mine) -> None:
                run = job(sw.sinks.files(folder))
                run.start()
                mine[0] = threading.current_thread()
                run.deliver(frame, batch=0)

            writers.append(Zombie(act=write))
        with frozen_before(freezers[0], first, threads[0]), frozen_before(freezers[1], second, threads[1]):
            for writer, freezer in zip(writers, freezers, strict=True):
                writer.start()
                while not freezer.frozen.wait(0.01) and writer.is_alive:
                    pass
            for writer, freezer in zip(writers, freezers, strict=True):
                freezer.woken.set()
                writer.join()
                assert isinstance(writer.error, RunError | None), writer.error
        [mark] = folder.glob("batch-*/_mark.json")
        assert content_of(mark)["rows"] == 1_000
        assert sw.sinks.read_files(folder).collect().height == 1_000, "the one that came later has written it"
