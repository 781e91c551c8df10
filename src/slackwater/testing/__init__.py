"""Testing without Spark: scripted input, a manual clock, restarts, and every output by name.

Tests use the same operators, packing and clock rules as on Spark, in one process and without waiting.
"""

from typing import TYPE_CHECKING

from slackwater.base.foreign_names import hinting
from slackwater.testing.harness import Harness, Outcome, rows_source, run
from slackwater.testing.sinks import SinkHarness

__all__ = ["Harness", "Outcome", "SinkHarness", "rows_source", "run"]

if not TYPE_CHECKING:  # with `__getattr__`, a type checker would accept any name
    __getattr__ = hinting(__name__, __all__)
