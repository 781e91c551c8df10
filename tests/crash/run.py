"""The kill test: jobs are struck at named points and random moments, started again, and must lose nothing.

    python -m tests.crash.run --kills 50 [--seed 1] [--sink files|kafka|postgres|redis|http|delta] [--large | --steps]

One undisturbed run is the reference. Each job is then started, struck and, where it died of it, started again with the
same checkpoint until it ends; its output must equal the reference's. The first jobs go through the matrix: every step
of the protocol, times the driver, the worker, the sink's connection and its server; then chance decides. Ends with a
table of what was struck where, and `crash: 50 kills, 0 lost, 0 doubled`; the exit code is 0 only if both are 0.
With `--large` the job has two stages and outputs of more than 100,000 rows a key group, written by the executors. With
`--steps` it has every keyed step that is no plain window: joins, deduplications, processes, patterns, count windows.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil

from slackwater.base.crash_points import POINTS
from tests.crash.comparison import OUTPUTS, Pipeline, Verdict, compare
from tests.crash.log import ROUNDS, write_large_log, write_log
from tests.crash.processes import Started, Victim
from tests.matrix.targets import TARGETS, Target

VICTIMS: Final[tuple[Victim, ...]] = ("driver", "everything", "worker", "jvm", "connection", "server")
_KILLS_A_JOB: Final = 8
FAILS_FAST: Final = "local[2,1]"
"""A dead worker fails the batch, and with it the query: the driver must be started again."""
TRIES_AGAIN: Final = None
"""The default master, on which a dead worker's task is tried again, as on a cluster."""
OF_THE_SINK: Final = ("evaluated", "opened", "written", "committed", "delivering", "delivered", "clock")
"""The points around and inside a sink."""
IN_A_WORKER: Final = ("front", "keyed", "opened", "written", "committed")
"""The points that a worker reaches when the executors write."""
_FIRST_BATCH: Final = 3
"""From here on every batch has results."""


@dataclass(frozen=True, kw_only=True)
class Kill:
    """One stroke: at a named point of a batch, or some seconds after a batch has begun."""

    batch: int
    point: str | None = None
    victim: Victim = "driver"
    after_s: float = 0.0

    @property
    def at(self) -> str | None:
        """The point as a job is told of it."""
        return None if self.point is None else f"{self.point}@{self.batch}"

    def __str__(self) -> str:
        where = f"`{self.point}`" if self.point else f"{self.after_s:.2f} s after the beginning"
        return f"{self.victim}, at {where} of batch {self.batch}"


@dataclass(frozen=True, kw_only=True)
class Course:
    """What one job has to go through."""

    kills: Sequence[Kill]
    master: str | None = FAILS_FAST
    slots: bool = False
    """Whether the executors write, each its own slot, or the driver does, in one go."""

    def __str__(self) -> str:
        return f"{self.master or 'default master'}, written by {'executors' if self.slots else 'the driver'}"


@dataclass(kw_only=True)
class Ground:
    """A folder with the log, the undisturbed run and the jobs that are killed."""

    folder: Path
    target: Target | None = None
    """Where results go; None for files in the job's folder."""
    pipeline: Pipeline = "pipeline"
    """Windows; `steps_pipeline`, every other keyed step; `large_pipeline`, two stages and large outputs."""
    events: int = 0
    jobs: int = 0
    verdicts: list[Verdict] = field(default_factory=list)

    @property
    def log(self) -> Path:
        """The log that every run reads."""
        return self.folder / "log"

    @property
    def reference(self) -> Path:
        """The undisturbed run."""
        return self.folder / "reference"

    @property
    def sink(self) -> tuple[str, str]:
        """The kind and the address of the sink that results go to."""
        return ("files", "") if self.target is None else (self.target.kind, self.target.address)

    def prepare(self) -> None:
        """Write the log and run a job over it undisturbed."""
        self.events = write_large_log(self.log) if self.pipeline == "large_pipeline" else write_log(self.log)
        assert not list(self._run(self.reference, Course(kills=())))

    def suffer(self, course: Course) -> Iterator[Kill]:
        """Run one job through its course to its end, yield each kill that took place, then judge its output."""
        self.jobs += 1
        job = self.folder / f"job-{self.jobs}"
        yield from self._run(job, course)
        self.verdicts.append(self.judged(job))

    def judged(self, job: Path) -> Verdict:
        """Compare a job's output with that of the undisturbed run."""
        return compare(job, self.reference, self.events, self.target, OUTPUTS[self.pipeline])

    def _run(self, job: Path, course: Course) -> Iterator[Kill]:
        """Start a job again and again until it ends well."""
        ahead = list(course.kills)
        code: int | None = None
        while code != 0:
            points = [kill.at for kill in ahead if kill.at]
            started = Started.start(
                job,
                self.log,
                pipeline=f"{self.pipeline}.py",
                master=course.master,
                points=points,
                sink=self.sink,
                slots=course.slots,
            )
            struck = 0
            while (code := started.ended()) is None:
                for kill in self._due(started, ahead):
                    ahead.remove(kill)
                    if self._strike(started, kill):
                        struck += 1
                        yield kill
                time.sleep(0.02)
            if code != 0 and not struck:
                message = f"a job that was not killed ended with exit code {code}:\n{started.last_words()}"
                raise AssertionError(message)

    def _due(self, started: Started, ahead: Sequence[Kill]) -> list[Kill]:
        """Return the kill whose moment has come."""
        for kill in ahead:
            if kill.at is not None and started.standing_at(kill.at) is not None:
                return [kill]
        at_random = [kill for kill in ahead if kill.at is None][:1]
        return [kill for kill in at_random if started.since_batch(kill.batch) >= kill.after_s]

    def _strike(self, started: Started, kill: Kill) -> bool:
        """Strike, then let go of the process that stands at the point, if it still lives."""
        dice = random.Random(kill.batch)
        holder = started.standing_at(kill.at) if kill.at else None
        try:
            if kill.victim == "server":
                return self.target is not None and self.target.crash(gone_s=dice.uniform(0.0, 3.0))
            if kill.victim == "connection":
                return self.target is not None and self.target.cut()
            return started.kill(kill.victim, dice, holder)
        finally:
            if holder is not None:
                _let_go(holder)


def _let_go(holder: psutil.Process) -> None:
    try:
        holder.resume()
    except psutil.NoSuchProcess:
        return  # it was the victim


def matrix(*, has_slots: bool, has_server: bool) -> Iterator[Course]:
    """Yield the jobs that together go through every step with every victim."""

    def at(points: Sequence[str], victim: Victim) -> list[Kill]:
        return [Kill(batch=_FIRST_BATCH + number, point=point, victim=victim) for number, point in enumerate(points)]

    yield Course(kills=at(OF_THE_SINK, "driver"))
    yield Course(kills=at(IN_A_WORKER if has_slots else IN_A_WORKER[:2], "worker"), master=TRIES_AGAIN, slots=has_slots)
    if has_slots:
        yield Course(kills=at(IN_A_WORKER, "driver"), slots=True)
    if has_server:
        yield Course(kills=at(OF_THE_SINK, "connection"))
        yield Course(kills=at(OF_THE_SINK, "server"), slots=has_slots)


def at_random(dice: random.Random, *, has_slots: bool, has_server: bool) -> Iterator[Course]:
    """Yield jobs that are struck anywhere, half of the times at named points, each time a little further on."""
    victims = [victim for victim in VICTIMS if has_server or victim not in ("connection", "server")]
    while True:
        batch, kills = dice.randrange(ROUNDS - _KILLS_A_JOB // 2), []
        for _ in range(_KILLS_A_JOB):
            batch = min(batch + dice.randrange(3), ROUNDS)
            point = dice.choice([None, dice.choice(POINTS)])
            after_s = 0.0 if point else dice.uniform(0.0, 3.0)
            kills.append(Kill(batch=batch, point=point, victim=dice.choice(victims), after_s=after_s))
        distinct = list(dict.fromkeys(kills))
        yield Course(
            kills=distinct, master=dice.choice([FAILS_FAST, TRIES_AGAIN]), slots=has_slots and dice.random() < 0.5
        )


def main() -> int:
    """Run the long form; returns the exit code."""
    parser = argparse.ArgumentParser(prog="tests.crash.run", description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50, help="how many kills (50); the matrix comes first")
    parser.add_argument("--seed", type=int, default=1, help="what the dice begin with (1)")
    parser.add_argument("--sink", choices=list(TARGETS), default="files", help="where results go (files)")
    parser.add_argument("--large", action="store_true", help="two stages, and more than 100,000 rows a key group")
    parser.add_argument("--steps", action="store_true", help="every keyed step that is no plain window, into files")
    options = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="slackwater-crash-") as folder:
        target = None if options.sink == "files" else TARGETS[options.sink](Path(folder))
        try:
            pipeline: Pipeline = (
                "large_pipeline" if options.large else "steps_pipeline" if options.steps else "pipeline"
            )
            ground = Ground(folder=Path(folder), target=target, pipeline=pipeline)
            struck = _kill(ground, options, began)
        finally:
            if target is not None:
                target.close()
    lost = sum(verdict.lost for verdict in ground.verdicts)
    doubled = sum(verdict.doubled for verdict in ground.verdicts)
    print(f"\n{table(struck)}\n\ncrash: {len(struck)} kills, {lost} lost, {doubled} doubled", flush=True)
    return 1 if lost or doubled else 0


def _kill(ground: Ground, options: argparse.Namespace, began: float) -> list[Kill]:
    """Kill jobs as often as asked for, saying so; return the kills."""
    ground.prepare()
    whole = ground.judged(ground.reference)
    print(f"undisturbed run: {ground.events} events, {time.monotonic() - began:.0f} s", flush=True)
    ground.verdicts.append(whole)
    struck: list[Kill] = []
    every = large_courses(ground.target) if options.large else courses(ground.target, random.Random(options.seed))
    for course in every:
        left = options.kills - len(struck)
        if left <= 0:
            break
        print(f"job {ground.jobs + 1}: {course}", flush=True)
        shortened = Course(kills=course.kills[:left], master=course.master, slots=course.slots)
        for kill in ground.suffer(shortened):
            struck.append(kill)
            print(f"  {len(struck)}/{options.kills} {kill}", flush=True)
        verdict = ground.verdicts[-1]
        batches = "same batches" if verdict.same_batches else "other batches"
        print(
            f"  ended: {verdict.lost} lost, {verdict.doubled} doubled, {batches}, "
            f"{time.monotonic() - began:.0f} s so far",
            *verdict.examples,
            sep="\n  ",
            flush=True,
        )
    return struck


def courses(target: Target | None, dice: random.Random) -> Iterator[Course]:
    """Yield the matrix, then jobs at random, for ever."""
    has_slots = target is not None and target.sink("any").has_slots
    has_server = target is not None and target.server is not None
    yield from matrix(has_slots=has_slots, has_server=has_server)
    yield from at_random(dice, has_slots=has_slots, has_server=has_server)


def large_courses(target: Target | None) -> Iterator[Course]:
    """Yield jobs that are struck between the slots of a large batch, for ever: some have it then, others have not."""
    has_slots = target is not None and target.sink("any").has_slots
    points = ("opened", "written", "committed") if has_slots else ("written", "committed", "delivering")
    while True:
        for victim, master in (("driver", FAILS_FAST), ("worker", TRIES_AGAIN)):
            struck: Victim = victim if has_slots else "driver"  # type: ignore[assignment]  # one of two literals
            kills = [Kill(batch=number, point=point, victim=struck) for number, point in enumerate(points)]
            yield Course(kills=kills, master=master, slots=has_slots)


def table(struck: Sequence[Kill]) -> str:
    """Return how often each victim was struck at each point."""
    cells = Counter((kill.point or "any moment", kill.victim) for kill in struck)
    rows = [[point, *(str(cells[point, victim] or "") for victim in VICTIMS)] for point in (*POINTS, "any moment")]
    lines = [["struck at", *VICTIMS], ["---", *("--:" for _ in VICTIMS)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
