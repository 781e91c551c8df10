"""Hints for public names that do not exist: misspelled ones, and those of other engines."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NoReturn

from slackwater.base.errors import near_miss

_FOREIGN: Final = {
    name: ours
    for names, ours in (
        ("avg average", "sw.mean"),
        ("std stdev stddev_samp", "sw.stddev"),
        ("var var_samp", "sw.variance"),
        ("nunique n_unique countDistinct count_unique", "sw.count_distinct"),
        ("approx_count_distinct hll", "sw.approx_distinct"),
        ("percentile percentile_approx approx_percentile", "sw.quantile"),
        ("array_agg collect", "sw.collect_list"),
        ("tumble tumbling_window window TumblingEventTimeWindows", "sw.tumbling"),
        ("hop hopping_window slide SlidingEventTimeWindows", "sw.hopping"),
        ("sliding_window", "sw.sliding"),
        ("session_window sessions EventTimeSessionWindows", "sw.session"),
        ("AggregateFunction", "sw.Accumulator"),
        ("ProcessFunction KeyedProcessFunction StatefulProcessor", "sw.Process"),
        ("ValueState ValueStateDescriptor", "sw.value_state"),
        ("ListState ListStateDescriptor", "sw.list_state"),
        ("MapState MapStateDescriptor", "sw.map_state"),
        ("OutputTag", "sw.side_output"),
        ("read readStream from_source source", 'sw.stream("name", sw.sources.kafka(...))'),
        ("col expr lit when", "pl.col, with `import polars as pl`, or a SQL string"),
        ("delta", "sw.sources.delta or sw.sinks.delta"),
        ("run", 'sw.Pipeline("name", ...).run()'),
        *((name, f"sw.sources.{name}") for name in ("log", "dataframe")),
        *((name, f"sw.formats.{name}") for name in ("json", "avro", "protobuf", "csv", "debezium")),
        *((name, f"sw.sinks.{name}") for name in ("files", "console", "memory", "foreach_batch")),
        *((name, f"sw.sinks.{name} or sw.lookups.{name}") for name in ("postgres", "redis", "http")),
    )
    for name in names.split()
}
"""Names that people look for in `sw`, each with its equivalent."""


def hinting(module: str, known: Iterable[str]) -> Callable[[str], NoReturn]:
    """Return a `__getattr__` for a public module, which raises errors with hints."""

    def refuse_name(name: str) -> NoReturn:
        raise no_such_name(module, name, known)

    return refuse_name


def no_such_name(module: str, name: str, known: Iterable[str]) -> AttributeError:
    """Return the error for a name that a public module does not have, with the name that was probably meant."""
    hint = near_miss(name, known)
    if module == "slackwater" and name in _FOREIGN:
        hint = f" (write {_FOREIGN[name]})"
    return AttributeError(f"module {module!r} has no attribute {name!r}{hint}")
