"""The kill test, short form: a random moment, a point, and a worker whose task is tried again.

Every point at which a driver can die is tried in `tests/matrix`, without killing a process.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from slackwater.observe.metrics.history import history_folder
from slackwater.observe.metrics.runs import last_run
from slackwater.tools.cli.loading import load_pipeline
from tests.conftest import Needs
from tests.crash.comparison import OUTPUTS, compare, read
from tests.crash.log import write_log
from tests.crash.processes import PIPELINES
from tests.crash.run import TRIES_AGAIN, Course, Ground, Kill, large_courses
from tests.matrix.targets import TARGETS
from tests.on_spark.jobs import run

pytestmark = [
    pytest.mark.crash,
    pytest.mark.slow,
    pytest.mark.filterwarnings(r"ignore:\[DEAD_LETTERS_MANY\]"),  # of a batch of 68 records, 10 are broken on purpose
]

ROUNDS = 8
"""Enough for rows that correct, and for rows that are late for good."""
EVERYTHING = Kill(batch=5, victim="everything", after_s=0.9)
WORKER = Kill(batch=7, point="keyed", victim="worker")


@pytest.fixture(scope="module")
def ground(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Ground:
    """Give the log and the undisturbed run, which needs no process of its own."""
    made = Ground(folder=tmp_path_factory.mktemp("crash"))
    made.events = write_log(made.log, rounds=ROUNDS)
    environment = {"LOG": made.log, "OUT": made.reference / "out", "SINK": "files", "ADDRESS": "", "SLOTS": ""}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(f"CRASH_{name}", str(value))
        run(spark, load_pipeline(PIPELINES / "pipeline.py"), made.reference / "checkpoint")
    return made


def test_undisturbed_run_accounts_for_every_event(ground: Ground) -> None:
    verdict = compare(ground.reference, ground.reference, ground.events)
    assert (verdict.lost, verdict.doubled) == (0, 0)


@pytest.mark.parametrize(
    "kills",
    [
        pytest.param([EVERYTHING, WORKER], id="once"),
        pytest.param([Kill(batch=4, point="written"), EVERYTHING, WORKER], id="twice", marks=pytest.mark.long),
    ],
)
def test_job_that_is_killed_loses_nothing_and_doubles_nothing(ground: Ground, kills: list[Kill]) -> None:
    course = Course(kills=kills, master=TRIES_AGAIN)
    assert list(ground.suffer(course)) == kills, "every kill took place"
    history = history_folder(ground.folder / f"job-{ground.jobs}" / "checkpoint")
    assert last_run(history).starts == 1 + sum(kill.victim != "worker" for kill in kills), "a worker's task is retried"
    verdict = ground.verdicts[-1]
    assert (verdict.lost, verdict.doubled, verdict.examples) == (0, 0, ())


JVM = Kill(batch=7, victim="jvm", after_s=0.9)
STEPS = [Kill(batch=4, point="keyed", victim="worker"), Kill(batch=6, point="written"), JVM]


@pytest.mark.long
def test_killed_joins_processes_patterns_and_deduplications_lose_and_double_nothing(
    tmp_path: Path, needs: Needs
) -> None:
    needs(shutil.which("java") or "JAVA_HOME" in os.environ, "Spark needs Java 17 or newer")
    ground = Ground(folder=tmp_path, pipeline="steps_pipeline")
    ground.prepare()
    empty = [name for name in OUTPUTS["steps_pipeline"] if read(ground.reference / "out" / name).is_empty()]
    assert empty == [], "every step has something to lose"
    assert list(ground.suffer(Course(kills=STEPS, master=TRIES_AGAIN))) == STEPS, "every kill took place"
    [verdict] = ground.verdicts
    assert (verdict.lost, verdict.doubled, verdict.examples) == (0, 0, ())
    said = (tmp_path / "job-1" / "output.txt").read_text()
    assert said.count("[JVM_ENDED]") == 1
    assert "socketserver" not in said
    assert "py4j" not in said


@pytest.mark.long
@pytest.mark.parametrize("kind", ["files", "kafka", "postgres"])
def test_large_outputs_of_two_stages_leave_by_the_same_slots_after_a_kill(
    kind: str, tmp_path: Path, needs: Needs
) -> None:
    needs(shutil.which("java") or "JAVA_HOME" in os.environ, "Spark needs Java 17 or newer")
    target = None if kind == "files" else TARGETS[kind](tmp_path)
    try:
        large = Ground(folder=tmp_path, target=target, pipeline="large_pipeline")
        large.prepare()
        course = next(large_courses(target))
        assert list(large.suffer(course)) == list(course.kills), "every kill took place"
        [verdict] = large.verdicts
        assert (verdict.lost, verdict.doubled, verdict.examples) == (0, 0, ())
    finally:
        if target is not None:
            target.close()


def test_comparison_sees_a_batch_that_is_missing_and_one_that_came_twice(ground: Ground, tmp_path: Path) -> None:
    shutil.copytree(ground.reference, tmp_path / "tampered")
    out = tmp_path / "tampered" / "out"
    shutil.rmtree(out / "per_minute.late" / "batch-000000000005")
    shutil.copytree(out / "visits" / "batch-000000000004", out / "visits" / "batch-000000000099")
    verdict = compare(tmp_path / "tampered", ground.reference, ground.events)
    assert (verdict.missing_rows, verdict.lost_events) == (8, 8)
    assert verdict.extra_rows > 0
    assert verdict.doubled_events > 0
