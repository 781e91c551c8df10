"""User-defined processing: your own code on the events of a key, with state and timers."""

from slackwater.operators.process.base import Context, FrameContext, FrameProcess, Process
from slackwater.operators.process.declarations import list_state, map_state, set_state, side_output, value_state

__all__ = [
    "Context",
    "FrameContext",
    "FrameProcess",
    "Process",
    "list_state",
    "map_state",
    "set_state",
    "side_output",
    "value_state",
]
