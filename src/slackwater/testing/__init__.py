"""Testing without Spark: scripted input, a manual clock, restarts, and every output by name.

The same operators, packing and clock rules as on Spark, in one process and at once.
"""

from slackwater.testing.harness import Harness, Outcome, rows_source, run
from slackwater.testing.sinks import SinkHarness

__all__ = ["Harness", "Outcome", "SinkHarness", "rows_source", "run"]
