"""Chains against their model for as long as you like: `python -m tests.property.hour --minutes 60 [--seed N]`.

Examples come in rounds, each with a seed of its own. The first that fails is printed as it was found, and again when
Hypothesis has made it as small as it can.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time

os.environ["POLARS_MAX_THREADS"] = "1"  # before Polars is loaded

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from tests.property.chain_strategies import chains, streams
from tests.property.chains import Chain, run
from tests.property.streams import Batch

EXAMPLES_A_ROUND = 50


def main() -> int:
    """Run rounds of examples until the time is over; return 1 at the first that fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=None, help="of the first round; the next is one more")
    arguments = parser.parse_args()
    first = random.SystemRandom().randrange(10**9) if arguments.seed is None else arguments.seed
    began = said = time.monotonic()
    done = batches = rows = 0
    has_failed = False

    @settings(
        max_examples=EXAMPLES_A_ROUND,
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(chains(), streams(), st.randoms(use_true_random=False), st.booleans())
    def example(chain: Chain, stream: list[Batch], files: random.Random, shuffled: bool) -> None:  # noqa: FBT001
        nonlocal done, batches, rows, has_failed
        try:
            run(chain, stream, files if shuffled else None)
        except Exception:
            if not has_failed:
                print(f"fails after {done} examples, shuffled files: {shuffled}\n{chain}\n{stream}", flush=True)
            has_failed = True
            raise
        done, batches, rows = done + 1, batches + len(stream), rows + sum(len(batch.records) for batch in stream)

    for number in range(first, sys.maxsize):
        try:
            seed(number)(example)()
        except BaseException:
            print(f"seed {number}", flush=True)
            raise
        now = time.monotonic()
        is_over = now - began >= arguments.minutes * 60
        if now - said >= 60 or is_over:
            said = now
            minutes = (now - began) / 60
            print(f"{minutes:5.1f} min, seed {number}: {done} examples, {batches} batches, {rows} rows", flush=True)
        if is_over:
            print(f"{done} examples of chains agree with the model")
            return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
