"""Window definitions, and which windows a row belongs to."""

from slackwater.windows.definitions import (
    CumulativeWindow,
    GlobalWindow,
    HoppingWindow,
    SessionWindow,
    SlidingWindow,
    TumblingWindow,
    Window,
    cumulative,
    global_window,
    hopping,
    session,
    sliding,
    tumbling,
)

__all__ = [
    "CumulativeWindow",
    "GlobalWindow",
    "HoppingWindow",
    "SessionWindow",
    "SlidingWindow",
    "TumblingWindow",
    "Window",
    "cumulative",
    "global_window",
    "hopping",
    "session",
    "sliding",
    "tumbling",
]
