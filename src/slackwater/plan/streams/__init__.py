"""The stream API: streams, keyed streams, windows and outputs.

Everything here is a frozen definition that never touches Spark. Every method returns a new definition.
"""

from slackwater.plan.streams.keyed import Deduplicated, KeyedStream, Results, SideOutput, WindowedStream, WindowResults
from slackwater.plan.streams.stream import Branch, Ended, Output, Step, Stream, Union, branches, stream

__all__ = [
    "Branch",
    "Deduplicated",
    "Ended",
    "KeyedStream",
    "Output",
    "Results",
    "SideOutput",
    "Step",
    "Stream",
    "Union",
    "WindowResults",
    "WindowedStream",
    "branches",
    "stream",
]
