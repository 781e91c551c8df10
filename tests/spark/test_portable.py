"""Code that Spark's workers cannot load is refused before Spark starts, with the step and what is in the way."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import slackwater as sw
from slackwater.base.errors import DefinitionError
from slackwater.plan.streams import Stream, WindowResults
from slackwater.spark.options import RunOptions
from slackwater.spark.portable import check_portable
from slackwater.spark.start import make_job


class Locked(sw.Process):
    """Holds a lock."""

    n = sw.value_state("long", ttl="1h")

    def __init__(self) -> None:
        self.clients = {"scores": threading.Lock()}

    def on_event(self, event: dict[str, Any], ctx: sw.Context) -> Any:  # noqa: ANN401  nothing
        """Do nothing."""


class LockedFrames(sw.FrameProcess):
    """Holds a lock."""

    state = "n long"
    ttl = "1h"

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def on_rows(
        self, rows: pl.DataFrame, state: pl.DataFrame, ctx: sw.FrameContext
    ) -> tuple[pl.DataFrame | None, pl.DataFrame]:
        return None, state


class Lazy(sw.Process):
    """Opens what it needs on first use, once per worker process."""

    lock: threading.Lock | None = None

    def on_event(self, event: dict[str, Any], ctx: sw.Context) -> Any:  # noqa: ANN401  nothing
        if Lazy.lock is None:
            Lazy.lock = threading.Lock()


def total() -> Any:  # noqa: ANN401  an aggregate
    held = threading.Lock()

    class Total(sw.Accumulator):
        """Uses a lock from outside."""

        output = pl.Int64

        def create(self) -> int:
            return 0

        def add(self, acc: int, value: int) -> int:
            with held:
                return acc + value

        def merge(self, a: int, b: int) -> int:
            return a + b

        def result(self, acc: int) -> int:
            return acc

    return sw.accumulator(Total, "v")


def mapped(rows: Stream) -> Stream:
    held = threading.Lock()

    def tidy(frame: pl.DataFrame) -> pl.DataFrame:
        with held:
            return frame

    return rows.map(tidy)


def looked_up(rows: Stream) -> Stream:
    client = threading.Lock()

    async def fetch(key: str) -> dict[str, Any]:
        return {"name": f"{key} {client}"}

    return rows.lookup(sw.lookups.function(fetch), key="k", output="name string")


def plan_of(step: Callable[[Stream], Stream]) -> Any:  # noqa: ANN401  a plan
    rows = sw.stream("rows", sw.sources.log("data")).decode(sw.formats.json("k string, v long, t long"))
    made = step(rows.event_time("t"))
    ends = [made.to(sw.sinks.console()), rows.dead_letters.drop()]
    if isinstance(made, WindowResults):
        ends.append(made.late.drop())
    return sw.Pipeline("p", *ends)


CASES: dict[str, tuple[Callable[[Stream], Stream], str]] = {
    "process": (
        lambda rows: rows.key_by("k").process(Locked(), output="n long", name="scores"),
        "got class Locked with `clients.scores` in step `scores`: ",
    ),
    "frames": (
        lambda rows: rows.key_by("k").process(LockedFrames(), output="n long", name="scores"),
        "got class LockedFrames with `lock` in step `scores`: ",
    ),
    "accumulator": (
        lambda rows: rows.key_by("k").window(sw.tumbling("1m"), name="w").aggregate(x=total()),
        "got class total.<locals>.Total with `add.held` in step `w`: ",
    ),
    "map": (mapped, "got function mapped.<locals>.tidy with `held` in step `rows.map`: "),
    "lookup": (looked_up, "got function looked_up.<locals>.fetch with `client` in step `rows.lookup`: "),
}


@pytest.mark.parametrize("case", CASES)
def test_what_cannot_be_pickled_is_known_before_spark_starts(case: str, tmp_path: Path) -> None:
    step, words = CASES[case]
    pipeline = plan_of(step)
    with pytest.raises(DefinitionError) as refused:
        make_job(
            pipeline.plan(),
            RunOptions(checkpoint=tmp_path / "c"),
            on_start=lambda: pytest.fail("Spark would be started now"),
        )
    assert refused.value.code == "CODE_NOT_PORTABLE"
    assert words in refused.value.message
    assert "cannot pickle '_thread.lock' object" in refused.value.message
    assert not (tmp_path / "c").exists()
    with pytest.raises(DefinitionError, match="CODE_NOT_PORTABLE"):
        pipeline.check()


@pytest.mark.parametrize(
    "case, line",
    [
        ("process", 'self.clients = {"scores": threading.Lock()}'),
        ("frames", "self.lock = threading.Lock()"),
        ("accumulator", "held = threading.Lock()"),
        ("map", "return rows.map(tidy)"),
        ("lookup", 'return rows.lookup(sw.lookups.function(fetch), key="k", output="name string")'),
    ],
)
def test_what_cannot_be_pickled_is_named_with_its_line(case: str, line: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        check_portable(plan_of(CASES[case][0]).plan())
    file, _, number = str(refused.value.where).rpartition(", line ")
    assert file == __file__
    assert Path(file).read_text().splitlines()[int(number) - 1].strip() == line


def test_validate_with_a_function_that_cannot_be_pickled_is_refused_when_it_is_built() -> None:
    held = threading.Lock()
    rule = pl.col("v").map_batches(lambda values: values.is_in([held.locked()]), return_dtype=pl.Boolean)
    with pytest.raises(DefinitionError, match=r"EXPRESSION_NOT_PORTABLE.*cannot pickle '_thread.lock' object"):
        plan_of(lambda rows: rows.validate(positive=rule))


def test_what_is_opened_on_first_use_travels() -> None:
    Lazy.lock = None
    check_portable(plan_of(lambda rows: rows.key_by("k").process(Lazy(), output="n long")).plan())


SCRIPT = """
import threading
import slackwater as sw
from slackwater.spark.portable import check_portable

lock = threading.Lock()

class Guarded(sw.Process):
    def on_event(self, event, ctx):
        with lock:
            yield {"n": 1}

rows = sw.stream("rows", sw.testing.rows_source("k string, t long")).event_time("t")
results = rows.key_by("k").process(Guarded(), output="n long", name="guarded")
plan = sw.Pipeline("p", results.to(sw.sinks.memory()), rows.dead_letters.drop()).plan()
try:
    check_portable(plan)
except sw.DefinitionError as error:
    print(error)
"""


def test_globals_of_the_file_that_is_run_are_looked_at_for_they_travel_too() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert "got class Guarded with `on_event.lock` in step `guarded`: TypeError" in done.stdout
