"""The stream methods that add columns from outside the stream: `lookup` and `join_table`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from slackwater.base.durations import Duration
from slackwater.base.names import checked_name
from slackwater.connectors.lookup import Lookup
from slackwater.connectors.table import Table
from slackwater.formats.schemas import SchemaSpec
from slackwater.plan.join_table import How, join_table
from slackwater.plan.lookup import Missing, OnError, look_up
from slackwater.plan.row_functions import RowOp

if TYPE_CHECKING:
    from slackwater.plan.streams import Stream


class Enriching(ABC):
    """The enriching methods of a stream."""

    name: str

    @abstractmethod
    def _then(self, op: RowOp) -> Stream: ...

    def lookup(
        self,
        lookup: Lookup,
        *,
        key: str,
        output: SchemaSpec,
        concurrency: int = 100,
        timeout: Duration = "200ms",
        retries: int = 2,
        cache: Duration | None = "5m",
        missing: Missing = "null",
        on_error: OnError = "wait",
        name: str | None = None,
    ) -> Stream:
        """Add columns from a store: `lookup(sw.lookups.redis(...), key="user_id", output="name string, tier string")`.

        Each distinct key of a chunk of rows is requested once. Each request takes at most `timeout` and is retried
        `retries` times. Answers, including missing keys, are cached in each worker process for `cache` of processing
        time; None turns the cache off. A missing key gives null columns or, with `missing="dead_letter"`, a dead
        letter. While the store is down, the batch waits; with `on_error="dead_letter"` or `"null"` it continues
        without it. A null key gives null columns. Answers are written to the checkpoint before they are used, so that
        a replayed batch gives the same rows.
        """
        name = None if name is None else checked_name(name, "step")
        return self._then(
            look_up(
                lookup,
                stream=self.name,
                key=key,
                output=output,
                concurrency=concurrency,
                timeout=timeout,
                retries=retries,
                cache=cache,
                missing=missing,
                on_error=on_error,
                name=name,
            )
        )

    def join_table(
        self,
        table: Table,
        *,
        on: str | Sequence[str] | Mapping[str, str],
        how: How = "left",
        columns: Sequence[str] | None = None,
        suffix: str | None = None,
        name: str | None = None,
    ) -> Stream:
        """Add columns from a small table: `join_table(sw.table("rates.parquet", refresh="5m"), on="currency")`.

        `on` names the key columns; a mapping maps the stream's names to the table's. The table has one row per key;
        null joins with nothing. A row without a partner gets null columns or, with `how="inner"`, is left out and
        counted as filtered. `columns` are the columns of the table to add, by default all but the key; `suffix` is
        appended to their names. All rows of a batch see the same version of the table, also when the batch is replayed.
        """
        name = None if name is None else checked_name(name, "step")
        made = join_table(table, stream=self.name, on=on, how=how, columns=columns, suffix=suffix, name=name)
        return self._then(made)
