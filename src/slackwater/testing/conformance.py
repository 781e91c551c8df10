"""The conformance command: replays case files on an engine.

    python -m slackwater.testing.conformance FOLDER_OR_FILE... --engine memory [--replay all] [-v]

Prints every failing case with the step, the expected and the actual rows, and ends with a line
`N passed, M failed, K skipped`. Exit code 0: nothing failed; 1: something did; 2: no cases could be read.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import polars as pl

from slackwater.base.errors import DefinitionError
from slackwater.testing.case_pipelines import case_pipeline, stream_watermark
from slackwater.testing.cases import (
    STREAM,
    Case,
    Event,
    UnknownInCaseError,
    reason_to_skip,
    window_of,
)
from slackwater.testing.harness import Harness
from slackwater.testing.replays import REPLAYS, Mismatch, Replay, Runner, StepOutput, depends_on_batches, replay

_AT_ONCE: Final = 3


class MemoryRunner:
    """Runs a case on the engine without Spark.

    The engine fires by a batch's clock before it adds the batch's rows. A step of a case moves its clocks after its
    rows, so it takes two batches: one with the rows, and one under the moved clocks.
    """

    def __init__(self, case: Case) -> None:
        self.case = case_pipeline(case)
        self.harness = Harness(self.case.pipeline)
        first = case["params"].get("initial_watermark_ms")
        if first is not None:
            self.harness.advance_watermark(stream_watermark(self.case, first))

    def step(
        self, events: Sequence[Event], *, watermark_ms: int | None, processing_time_ms: int | None, restart: bool
    ) -> StepOutput:
        """Run one step; see `Runner`."""
        out = StepOutput()
        if restart:
            self.harness.restart()
        if events:
            self._collect(out, self.harness.send(STREAM, self.case.rows(events)).run_batch())
        if processing_time_ms is not None:
            self.harness.now_ms = max(self.harness.now_ms, processing_time_ms)
        if watermark_ms is not None:
            self._collect(out, self.harness.advance_watermark(stream_watermark(self.case, watermark_ms)))
        elif processing_time_ms is not None:
            self._collect(out, self.harness.run_batch())
        return out

    def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def _collect(self, out: StepOutput, outputs: Mapping[str, pl.DataFrame]) -> None:
        out.rows += self.case.shown(outputs[self.case.results.name])
        late = outputs.get(f"{self.case.results.name}.late")
        out.late += [] if late is None else self.case.late(late)


def _on_spark(case: Case) -> Runner:
    from slackwater.testing.spark_runner import SparkRunner  # noqa: PLC0415  the memory engine needs no Spark

    return SparkRunner(case)


RUNNERS: Final[dict[str, Callable[[Case], Runner]]] = {"memory": MemoryRunner, "spark": _on_spark}


def check(case: Case, engine: str, replays: Iterable[Replay]) -> list[str]:
    """Return the failures of `case` on `engine`, one paragraph each; none if it passes."""
    try:
        if case["operator"] == "assign":
            return _check_assignment(case)
        return [str(found) for how in replays for found in _replayed(case, RUNNERS[engine], how)]
    except (DefinitionError, UnknownInCaseError) as error:
        return [f"refused: {error}"]
    except Exception as error:  # noqa: BLE001  a crash fails this case, but must not stop the others
        return [f"crashed: {type(error).__name__}: {error}"]


def _replayed(case: Case, make: Callable[[Case], Runner], how: Replay) -> list[Mismatch]:
    """Replay `case`, and close all runners it used."""
    with ExitStack() as opened:

        def start() -> Runner:
            runner = make(case)
            opened.callback(runner.close)
            return runner

        return replay(case, start, how)


def _check_assignment(case: Case) -> list[str]:
    definition = case["params"]["window"]
    try:
        window = window_of(definition)
    except DefinitionError as error:
        return [] if case.get("expect_invalid") else [f"refused: {error}"]
    if case.get("expect_invalid"):
        return [f"the window must be refused, and was accepted: {window}"]
    found = []
    for number, step in enumerate(case["steps"]):
        [event] = step["events"]
        own = window_of({**definition, "gap_ms": event["gap_ms"]}) if "gap_ms" in event else window
        actual = own.windows_of(event["ts_ms"])
        expected = sorted(map(tuple, step["expect_windows"]))
        if actual != expected:
            found.append(f"step {number}, windows\n  expected: {expected}\n  actual:   {actual}")
    return found


def load(paths: Iterable[Path]) -> Iterator[tuple[Path, Case]]:
    """Yield the cases of files, and of all JSON files below folders, in order of file name."""
    for path in paths:
        for file in [path] if path.is_file() else sorted(path.rglob("*.json")):
            cases = json.loads(file.read_text(encoding="utf-8"))
            for case in cases:
                if missing := {"id", "operator", "params", "steps"} - set(case):
                    raise ValueError(f"a case of {file} lacks {', '.join(sorted(missing))}")
                yield file, case


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    options = _options(arguments)
    for path in options.paths:
        if not path.exists():
            return _unreadable(f"{path} does not exist")
    try:
        cases = list(load(options.paths))
    except (OSError, ValueError, TypeError) as error:
        return _unreadable(f"{type(error).__name__}: {error}")
    if not cases:
        return _unreadable(f"no cases in {', '.join(map(str, options.paths))}")
    wanted: tuple[Replay, ...] = REPLAYS if options.replay == "all" else (options.replay,)
    report = _Report(is_verbose=options.verbose)
    # A case on Spark mostly waits for Spark, so several run at once.
    pool = ThreadPoolExecutor(max_workers=_AT_ONCE if options.engine == "spark" else 1)
    plans = [_plan(case, wanted) for _, case in cases]
    checks = [
        None if isinstance(plan, str) else pool.submit(check, case, options.engine, plan)
        for (_, case), plan in zip(cases, plans, strict=True)
    ]
    for (file, case), plan, checked in zip(cases, plans, checks, strict=True):
        if checked is None:
            report.skip(case, str(plan))
        elif problems := checked.result():
            report.fail(case, file, problems)
        else:
            report.passes(case)
    report.end()
    return 1 if report.failed else 0


@dataclass(kw_only=True)
class _Report:
    """Prints the outcome of each case, and counts for the last line."""

    is_verbose: bool
    passed: int = 0
    failed: int = 0
    skipped: Counter[str] = field(default_factory=Counter)

    def skip(self, case: Case, reason: str) -> None:
        self.skipped[reason] += 1
        if self.is_verbose:
            print(f"skipped  {case['id']}: {reason}")

    def fail(self, case: Case, file: Path, problems: list[str]) -> None:
        self.failed += 1
        print(f"FAILED   {case['id']} ({file})")
        print("\n".join(f"    {line}" for problem in problems for line in problem.splitlines()))

    def passes(self, case: Case) -> None:
        self.passed += 1
        if self.is_verbose:
            print(f"passed   {case['id']}")

    def end(self) -> None:
        if not self.is_verbose:
            for reason, number in sorted(self.skipped.items()):
                print(f"skipped  {number} cases: {reason}")
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped.total()} skipped")


def _plan(case: Case, wanted: tuple[Replay, ...]) -> tuple[Replay, ...] | str:
    """Return how to replay `case`, or why to skip it."""
    if reason := reason_to_skip(case):
        return reason
    if case["operator"] == "assign" or (reason := depends_on_batches(case)) is None:
        return wanted
    if "whole" not in wanted:
        return f"cannot be cut into other batches: {reason}"
    return ("whole",)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m slackwater.testing.conformance", description="Replay conformance cases on an engine."
    )
    parser.add_argument("paths", nargs="+", type=Path, metavar="FOLDER_OR_FILE")
    parser.add_argument("--engine", choices=sorted(RUNNERS), default="memory")
    parser.add_argument(
        "--replay",
        choices=[*REPLAYS, "all"],
        default="whole",
        help="each step's rows as one batch, one by one, or in random batches",
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="name the cases that pass or are skipped, too")
    return parser.parse_args(arguments)


def _unreadable(why: str) -> int:
    print(f"cannot read the cases: {why}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
