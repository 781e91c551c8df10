"""Slackwater: event-time stream processing on Spark that never loses an event and never counts one twice."""

from slackwater import formats, kafka, sinks, sources, testing, windows
from slackwater.aggregates import (
    Accumulator,
    accumulator,
    approx_distinct,
    collect_list,
    collect_set,
    count,
    count_distinct,
    ewma,
    first,
    last,
    max,
    mean,
    median,
    min,
    quantile,
    quantiles,
    stddev,
    sum,
    top,
    variance,
)
from slackwater.errors import DefinitionError, RunError, SlackwaterError
from slackwater.ground.durations import duration
from slackwater.ground.version import VERSION
from slackwater.pipeline import Pipeline
from slackwater.secrets import secret
from slackwater.sources.log.writing import LogWriter
from slackwater.streams import stream
from slackwater.triggers import after_count, after_watermark, any_of, every, every_event_time, never
from slackwater.windows import calendar, cumulative, global_window, hopping, session, sliding, tumbling
from slackwater.windows.spec import Semantics

__version__ = VERSION

__all__ = [
    "Accumulator",
    "DefinitionError",
    "LogWriter",
    "Pipeline",
    "RunError",
    "Semantics",
    "SlackwaterError",
    "accumulator",
    "after_count",
    "after_watermark",
    "any_of",
    "approx_distinct",
    "calendar",
    "collect_list",
    "collect_set",
    "count",
    "count_distinct",
    "cumulative",
    "duration",
    "every",
    "every_event_time",
    "ewma",
    "first",
    "formats",
    "global_window",
    "hopping",
    "kafka",
    "last",
    "max",
    "mean",
    "median",
    "min",
    "never",
    "quantile",
    "quantiles",
    "secret",
    "session",
    "sinks",
    "sliding",
    "sources",
    "stddev",
    "stream",
    "sum",
    "testing",
    "top",
    "tumbling",
    "variance",
    "windows",
]
