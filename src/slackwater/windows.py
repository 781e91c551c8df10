"""Windows: the kinds for users, and the window step with its panes, late rows, FRONT part and KEYED part."""

from typing import TYPE_CHECKING

from slackwater.base.foreign_names import hinting
from slackwater.operators.windows.aligned import AlignedWindow
from slackwater.operators.windows.base import Window
from slackwater.operators.windows.calendar import CalendarWindow, calendar
from slackwater.operators.windows.counted import CountWindow, count_window
from slackwater.operators.windows.cumulative import CumulativeWindow, cumulative
from slackwater.operators.windows.global_window import GlobalWindow, global_window
from slackwater.operators.windows.hopping import HoppingWindow, hopping
from slackwater.operators.windows.session import SessionWindow, session
from slackwater.operators.windows.sliding import SlidingWindow, sliding
from slackwater.operators.windows.tumbling import TumblingWindow, tumbling

__all__ = [
    "AlignedWindow",
    "CalendarWindow",
    "CountWindow",
    "CumulativeWindow",
    "GlobalWindow",
    "HoppingWindow",
    "SessionWindow",
    "SlidingWindow",
    "TumblingWindow",
    "Window",
    "calendar",
    "count_window",
    "cumulative",
    "global_window",
    "hopping",
    "session",
    "sliding",
    "tumbling",
]

if not TYPE_CHECKING:  # a type checker reports missing names itself
    __getattr__ = hinting(__name__, __all__)
