"""Chains against their model for as long as you like: `python -m tests.property.hour --minutes 60 [--mixed]`.

Chains are of windows; with `--mixed`, of joins, deduplication, patterns, processes and windows, by turns without and
with late rows. Examples come in rounds, each with a seed of its own. The first that fails is printed as it was found,
and again when Hypothesis has made it as small as it can.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

os.environ["POLARS_MAX_THREADS"] = "1"  # before Polars is loaded

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from tests.property.chain_strategies import chains, streams
from tests.property.chains import Chain, run
from tests.property.mixed_runs import in_any_batches, with_late_rows
from tests.property.streams import Batch

EXAMPLES_A_ROUND = 50
_SETTINGS = settings(
    max_examples=EXAMPLES_A_ROUND,
    deadline=None,
    database=None,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)


@dataclass
class Tally:
    """What was run so far."""

    examples: int = 0
    batches: int = 0
    has_failed: bool = False

    @contextmanager
    def example(self, *shown: object) -> Iterator[None]:
        """Run an example; show the first that fails as it is."""
        try:
            yield
        except Exception:
            if not self.has_failed:
                print(f"fails after {self.examples} examples", *shown, sep="\n", flush=True)
            self.has_failed = True
            raise
        self.examples += 1

    def __str__(self) -> str:
        return f"{self.examples} examples, {self.batches} batches"


def windows(tally: Tally) -> list[Callable[[], None]]:
    """Return the test of chains of windows."""

    @_SETTINGS
    @given(chains(), streams(), st.randoms(use_true_random=False), st.booleans())
    def example(chain: Chain, stream: list[Batch], files: random.Random, shuffled: bool) -> None:  # noqa: FBT001
        with tally.example(f"shuffled files: {shuffled}", chain, stream):
            run(chain, stream, files if shuffled else None)
        tally.batches += len(stream)

    return [example]


def mixed(tally: Tally) -> list[Callable[[], None]]:
    """Return the tests of mixed chains, without and with late rows."""

    def of(kind: Callable[[st.DataObject], int]) -> Callable[[], None]:
        @_SETTINGS
        @given(st.data())
        def example(data: st.DataObject) -> None:
            with tally.example(kind.__name__):
                # Each batch is run twice.
                tally.batches += 2 * kind(data)

        return example

    return [of(in_any_batches), of(with_late_rows)]


def main() -> int:
    """Run rounds of examples until the time is over; raise the error of the first that fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--mixed", action="store_true", help="chains of all kinds of steps, not only windows")
    parser.add_argument("--seed", type=int, default=None, help="of the first round; the next is one more")
    arguments = parser.parse_args()
    first = random.SystemRandom().randrange(10**9) if arguments.seed is None else arguments.seed
    began = said = time.monotonic()
    tally = Tally()
    tests = (mixed if arguments.mixed else windows)(tally)
    for number in range(first, sys.maxsize):
        try:
            seed(number)(tests[number % len(tests)])()
        except BaseException:
            print(f"seed {number}", flush=True)
            raise
        now = time.monotonic()
        is_over = now - began >= arguments.minutes * 60
        if now - said >= 60 or is_over:
            said = now
            print(f"{(now - began) / 60:5.1f} min, seed {number}: {tally}", flush=True)
        if is_over:
            break
    print(f"{tally.examples} examples of chains agree with the model")
    return 0


if __name__ == "__main__":
    sys.exit(main())
