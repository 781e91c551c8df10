"""Nothing that a job holds grows with the number of its batches."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.soak.run import LIMITS, Figures

FLAT = Figures(
    batch=0,
    descriptors=(18, 350, 50),
    half_closed=0,
    threads=(18, 280, 20),
    memory_mb=(200, 1_000, 850),
    heap_mb=100,
    checkpoint_files=1_300,
    sink_files=300,
)


def grown(change: Callable[[Figures, int], Figures]) -> list[str]:
    """Return what is said to have grown in a run of which each of forty figures is changed by its number."""
    figures = [change(FLAT, number) for number in range(40)]
    return [said for limit in LIMITS if (said := limit.grown(figures)) is not None]


def test_figures_that_only_swing_have_not_grown() -> None:
    assert not grown(lambda flat, number: replace(flat, checkpoint_files=1_200 + 400 * (number % 4)))


def test_two_sockets_a_batch_have_grown() -> None:
    leaking = grown(
        lambda flat, number: replace(flat, half_closed=14 * number, descriptors=(18, 350 + 14 * number, 50))
    )
    assert leaking == [
        "half-closed connections: 266 in the second quarter, 546 in the last",
        "descriptors of the JVM: 616 in the second quarter, 896 in the last",
    ]


def test_heap_that_a_collection_does_not_free_has_grown() -> None:
    [said] = grown(lambda flat, number: replace(flat, heap_mb=100 + 2 * number))
    assert said == "the JVM's live heap, MB: 138 in the second quarter, 178 in the last"


def test_file_a_batch_in_the_checkpoint_has_grown() -> None:
    [said] = grown(lambda flat, number: replace(flat, checkpoint_files=50 * number))
    assert said.startswith("files of the checkpoint: ")


@pytest.mark.spark
@pytest.mark.long
def test_two_thousand_batches_leave_descriptors_threads_memory_and_checkpoint_flat(tmp_path: Path) -> None:
    """In a process of its own: what other tests hold in theirs is no part of it."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.soak.run", "--batches", "2000"],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
