"""The kill test: jobs are killed at named points and random moments, started again, and must lose nothing.

    python -m tests.crash.run --kills 50 [--seed 1] [--sink files|kafka|postgres|redis|http|delta]

One undisturbed run is the reference. Each job is then started, killed and started again with the same
checkpoint until it ends; its output must equal the reference's. Closes with
`crash: 50 kills, 0 lost, 0 doubled`; the exit code is 0 only if both are 0.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from slackwater.crash_points import POINTS
from tests.crash.comparison import Verdict, compare
from tests.crash.log import ROUNDS, write_log
from tests.crash.processes import Started, Victim
from tests.matrix.targets import TARGETS, Target

VICTIMS: Final[tuple[Victim, ...]] = ("driver", "everything", "worker", "jvm", "server")
_KILLS_A_JOB: Final = 8
FAILS_FAST: Final = "local[2]"
"""A dead worker fails the batch, and with it the query: the driver must be started again."""
TRIES_AGAIN: Final = "local[2,4]"
"""A dead worker's task is tried again, as on a cluster."""


@dataclass(frozen=True, kw_only=True)
class Kill:
    """One way to die: at a named point of a batch, or some seconds after a batch has begun."""

    batch: int
    point: str | None = None
    victim: Victim = "driver"
    after_s: float = 0.0
    master: str = FAILS_FAST

    def __str__(self) -> str:
        if self.point is not None:
            return f"at the point `{self.point}` of batch {self.batch} ({self.master})"
        return f"{self.victim}, {self.after_s:.2f} s after the beginning of batch {self.batch} ({self.master})"


@dataclass(kw_only=True)
class Ground:
    """A folder with the log, the undisturbed run and the jobs that are killed."""

    folder: Path
    target: Target | None = None
    """Where results go; None for files in the job's folder."""
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

    def prepare(self) -> None:
        """Write the log and run a job over it undisturbed."""
        self.events = write_log(self.log)
        self.run_on(self.reference)

    def run_on(self, job: Path, master: str = FAILS_FAST) -> None:
        """Run a job to its end, undisturbed from now on."""
        started = Started.start(job, self.log, master=master, point=None, once=job / "unused", sink=self.sink)
        if (code := started.ended()) != 0:
            message = f"a job that nobody killed ended with exit code {code}:\n{started.last_words()}"
            raise AssertionError(message)

    def suffer(self, kills: Iterator[Kill]) -> Iterator[Kill]:
        """Run one job through `kills` to its end, yield each kill that took place, then judge its output."""
        self.jobs += 1
        job = self.folder / f"job-{self.jobs}"
        for number, kill in enumerate(kills):
            once = job / f"killed-{number}"
            point = None if kill.point is None else f"{kill.point}@{kill.batch}"
            started = Started.start(job, self.log, master=kill.master, point=point, once=once, sink=self.sink)
            struck = False
            if kill.point is None and started.ended(until_batch=kill.batch) is None:
                time.sleep(kill.after_s)
                struck = self._strike(started, kill.victim, random.Random(number))
            code = started.ended()
            struck = struck or once.exists()
            if struck:
                yield kill
            elif code != 0:
                message = f"a job that was not killed ended with exit code {code}:\n{started.last_words()}"
                raise AssertionError(message)
            if code == 0:
                break
        else:
            self.run_on(job)
        self.verdicts.append(compare(job, self.reference, self.events, self.target))

    @property
    def sink(self) -> tuple[str, str]:
        """The kind and the address of the sink that results go to."""
        return ("files", "") if self.target is None else (self.target.kind, self.target.address)

    def _strike(self, started: Started, victim: Victim, dice: random.Random) -> bool:
        if victim != "server":
            return started.kill(victim, dice)
        return self.target is not None and self.target.crash(gone_s=dice.uniform(0.0, 3.0))


def random_kills(dice: random.Random, most: int) -> Iterator[Kill]:
    """Yield kills of one job, each a little further on, down to the final batch: half of them at named points."""
    batch = dice.randrange(ROUNDS - most // 2)
    for _ in range(most):
        batch = min(batch + dice.randrange(3), ROUNDS)
        master = dice.choice([FAILS_FAST, TRIES_AGAIN])
        if dice.random() < 0.5:
            yield Kill(batch=batch, point=dice.choice(POINTS), master=master)
        else:
            yield Kill(batch=batch, victim=dice.choice(VICTIMS), after_s=dice.uniform(0.0, 3.0), master=master)


def main() -> int:
    """Run the long form; returns the exit code."""
    parser = argparse.ArgumentParser(prog="tests.crash.run", description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sink", choices=list(TARGETS), default="files", help="where results go (files)")
    options = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="slackwater-crash-") as folder:
        target = None if options.sink == "files" else TARGETS[options.sink](Path(folder))
        try:
            ground = Ground(folder=Path(folder), target=target)
            kills = _kill(ground, options, began)
        finally:
            if target is not None:
                target.close()
    lost = sum(verdict.lost for verdict in ground.verdicts)
    doubled = sum(verdict.doubled for verdict in ground.verdicts)
    print(f"crash: {kills} kills, {lost} lost, {doubled} doubled", flush=True)
    return 1 if lost or doubled else 0


def _kill(ground: Ground, options: argparse.Namespace, began: float) -> int:
    """Kill jobs as often as asked for, saying so; return how often it was."""
    dice = random.Random(options.seed)
    ground.prepare()
    whole = compare(ground.reference, ground.reference, ground.events, ground.target)
    print(f"undisturbed run: {ground.events} events, {ROUNDS} rounds, {time.monotonic() - began:.0f} s", flush=True)
    ground.verdicts.append(whole)
    kills = 0
    while kills < options.kills:
        for kill in ground.suffer(random_kills(dice, min(_KILLS_A_JOB, options.kills - kills))):
            kills += 1
            print(f"kill {kills}/{options.kills}, job {ground.jobs}: {kill}", flush=True)
        verdict = ground.verdicts[-1]
        batches = "same batches" if verdict.same_batches else "other batches"
        print(
            f"job {ground.jobs} ended: {verdict.lost} lost, {verdict.doubled} doubled, {batches}, "
            f"{time.monotonic() - began:.0f} s so far",
            *verdict.examples,
            sep="\n  ",
            flush=True,
        )
    return kills


if __name__ == "__main__":
    sys.exit(main())
