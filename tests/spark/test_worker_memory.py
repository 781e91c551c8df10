"""Workers keep the memory they have needed: asked for anew, it comes back zeroed, page by page."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Final

import pytest

from slackwater.spark.session_conf import WORKER_ENV

_FORKED: Final = """
import os, resource, sys
import polars as pl

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

if os.fork() == 0:
    column = pl.Series(range(2_000_000))
    for _ in range(5):
        before = faults()
        column + 1  # 16 MB, let go of at once
    print(faults() - before, flush=True)
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
"""
"""A worker is forked from the daemon, and asks for the same blocks in every batch."""

_PAGES: Final = 16_000_000 // 4096


def _faults(environment: Mapping[str, str]) -> int:
    command = [sys.executable, "-c", _FORKED]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="counts page faults as Linux does")
def test_a_forked_worker_is_given_large_blocks_once() -> None:
    assert _faults(WORKER_ENV) < _PAGES // 10


@pytest.mark.skipif(sys.platform != "linux", reason="counts page faults as Linux does")
def test_a_delay_is_not_enough_for_a_forked_worker() -> None:
    """Else the setting would be stranger than it need be."""
    environment = {**WORKER_ENV, "_RJEM_MALLOC_CONF": "dirty_decay_ms:60000,muzzy_decay_ms:60000"}
    assert _faults(environment) > _PAGES // 2
