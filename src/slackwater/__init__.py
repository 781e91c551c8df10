"""Slackwater: event-time stream processing on Spark that never loses an event and never counts one twice.

Public names are imported on first use. Spark starts Python processes that need little of Slackwater, and importing all
of it would take each of them a second.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from slackwater.base.version import VERSION

if TYPE_CHECKING:
    from slackwater import formats, kafka, lookups, sinks, sources, testing, windows
    from slackwater.base.durations import FOREVER, duration
    from slackwater.base.errors import DefinitionError, RunError, SlackwaterError
    from slackwater.base.secrets import secret
    from slackwater.connectors.log.writing import LogWriter
    from slackwater.connectors.table import table
    from slackwater.operators.aggregates import (
        Accumulator,
        Aggregate,
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
    from slackwater.operators.patterns import absent, sequence, step, times
    from slackwater.operators.process import (
        Context,
        FrameContext,
        FrameProcess,
        Process,
        list_state,
        map_state,
        set_state,
        side_output,
        value_state,
    )
    from slackwater.operators.windows.spec import Semantics
    from slackwater.operators.windows.triggers import (
        after_count,
        after_watermark,
        any_of,
        every,
        every_event_time,
        never,
    )
    from slackwater.pipeline import Pipeline
    from slackwater.plan.streams import stream
    from slackwater.windows import (
        calendar,
        count_window,
        cumulative,
        global_window,
        hopping,
        session,
        sliding,
        tumbling,
    )

__version__ = VERSION

__all__ = [
    "FOREVER",
    "Accumulator",
    "Aggregate",
    "Context",
    "DefinitionError",
    "FrameContext",
    "FrameProcess",
    "LogWriter",
    "Pipeline",
    "Process",
    "RunError",
    "Semantics",
    "SlackwaterError",
    "absent",
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
    "count_window",
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
    "list_state",
    "lookups",
    "map_state",
    "max",
    "mean",
    "median",
    "min",
    "never",
    "quantile",
    "quantiles",
    "secret",
    "sequence",
    "session",
    "set_state",
    "side_output",
    "sinks",
    "sliding",
    "sources",
    "stddev",
    "step",
    "stream",
    "sum",
    "table",
    "testing",
    "times",
    "top",
    "tumbling",
    "value_state",
    "variance",
    "windows",
]

_PLACES = {
    "slackwater.operators.process": (
        "Context FrameContext FrameProcess Process list_state map_state set_state side_output value_state"
    ),
    "slackwater.operators.patterns": "absent sequence step times",
    "slackwater.operators.aggregates": (
        "Accumulator Aggregate accumulator approx_distinct collect_list collect_set count count_distinct ewma first "
        "last max mean median min quantile quantiles stddev sum top variance"
    ),
    "slackwater.base.errors": "DefinitionError RunError SlackwaterError",
    "slackwater.base.durations": "FOREVER duration",
    "slackwater.pipeline": "Pipeline",
    "slackwater.base.secrets": "secret",
    "slackwater.connectors.log.writing": "LogWriter",
    "slackwater.plan.streams": "stream",
    "slackwater.connectors.table": "table",
    "slackwater.operators.windows.triggers": "after_count after_watermark any_of every every_event_time never",
    "slackwater.windows": "calendar count_window cumulative global_window hopping session sliding tumbling",
    "slackwater.operators.windows.spec": "Semantics",
}
"""The modules of the public names; names not listed here are modules themselves."""
_PLACE_OF = {name: place for place, names in _PLACES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    if name not in __all__:
        from slackwater.base.foreign_names import no_such_name  # noqa: PLC0415  few names are missing

        raise no_such_name(__name__, name, __all__)
    place = _PLACE_OF.get(name)
    found = import_module(f"{__name__}.{name}") if place is None else getattr(import_module(place), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
