"""Windows: the kinds for users, and the window step with its panes, late rows, FRONT part and KEYED part."""

from typing import TYPE_CHECKING

from slackwater.ground.foreign_names import hinting
from slackwater.windows.aligned import AlignedWindow
from slackwater.windows.base import Window
from slackwater.windows.calendar import CalendarWindow, calendar
from slackwater.windows.counted import CountWindow, count_window
from slackwater.windows.cumulative import CumulativeWindow, cumulative
from slackwater.windows.global_window import GlobalWindow, global_window
from slackwater.windows.hopping import HoppingWindow, hopping
from slackwater.windows.session import SessionWindow, session
from slackwater.windows.sliding import SlidingWindow, sliding
from slackwater.windows.tumbling import TumblingWindow, tumbling

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
