"""How much the next batch of a query reads from each source: up to its limit, or nothing.

Spark asks a source for its limit once, when the query starts, and keeps the limits in a map that it consults before
each batch. The driver changes the map during a batch, when nothing reads it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from slackwater.plan.plan import Plan

Limit = Literal["files", "rows"]


class ReadLimits:
    """The limits of one query's sources."""

    def __init__(self, plan: Plan, query: Any, jvm: Any) -> None:  # noqa: ANN401  PySpark's, and its private parts
        self._execution = query._jsq.streamingQuery()  # noqa: SLF001  no public way
        self._read_limit = jvm.org.apache.spark.sql.connector.read.streaming.ReadLimit
        self._sources = [(source.name, source.source.read_limit) for source in plan.sources]
        self._usual: dict[str, Any] = {}

    def hold(self, streams: Collection[str]) -> None:
        """Make the next batch read nothing from `streams`, and up to the limit from all others."""
        limits, sources = self._execution.uniqueSources(), self._execution.sources()
        for place, (name, kind) in enumerate(self._sources):
            if name not in streams and name not in self._usual:
                continue
            source = sources.apply(place)  # Spark keeps them in plan order
            self._usual.setdefault(name, limits.apply(source))
            limits = limits.updated(source, self._nothing(kind) if name in streams else self._usual.pop(name))
        getattr(self._execution, "uniqueSources_$eq")(limits)

    def _nothing(self, kind: Limit | None) -> Any:  # noqa: ANN401  as above
        return self._read_limit.maxFiles(0) if kind == "files" else self._read_limit.maxRows(0)
