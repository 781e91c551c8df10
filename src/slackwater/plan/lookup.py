"""`.lookup(...)` as a row function: the key, the store, and what happens to rows without an answer."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final, Literal

import polars as pl

from slackwater.base.durations import Duration, duration_ms, render_ms
from slackwater.base.errors import listed, near_miss, refuse
from slackwater.base.stable_text import stable_text
from slackwater.connectors.lookup import KEY_TYPES, Lookup, Question
from slackwater.formats.schemas import SchemaSpec, as_schema, shown

Missing = Literal["null", "dead_letter"]
OnError = Literal["wait", "dead_letter", "null"]
_MOST_RETRIES: Final = 100
_HOW: Final = frozenset({"concurrency", "timeout_ms", "retries", "cache_ms"})
"""Options that affect how a store is queried, but not the result for a row."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LookUp:
    """Adds a store's answer for each row's key; answers are persisted before they are used."""

    lookup: Lookup
    key: str
    output: pl.Schema
    concurrency: int
    timeout_ms: int
    retries: int
    cache_ms: int | None
    missing: Missing
    on_error: OnError
    name: str | None
    label = "lookup"

    def question(self, step: str) -> Question:
        """Return the question to ask the store."""
        return Question(
            step=step, key=self.key, output=self.output, timeout_ms=self.timeout_ms, concurrency=self.concurrency
        )

    def schema_after(self, schema: pl.Schema, step: str) -> pl.Schema:
        """Return the columns of rows after the lookup; raises if the lookup is not possible."""
        if self.key not in schema:
            known = listed(schema, near=self.key)
            hint = near_miss(self.key, schema)
            raise refuse("UNKNOWN_COLUMN", step=step, name=self.key, known=known, hint=hint)
        dtype = schema[self.key]
        if not (dtype.is_integer() or isinstance(dtype, KEY_TYPES)):
            raise refuse("LOOKUP_KEY_TYPE", step=step, key=self.key, dtype=dtype)
        for name in self.output:
            if name in schema:
                raise refuse("LOOKUP_COLUMN_TAKEN", step=step, column=name)
        self.lookup.check(self.question(step))
        return pl.Schema({**schema, **self.output})

    @property
    def rules(self) -> str:
        """Everything that the result for a row depends on."""
        parts = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in _HOW}
        return stable_text(parts)

    @property
    def written(self) -> str:
        """The lookup as shown by `explain`."""
        cache = "no cache" if self.cache_ms is None else f"cache {render_ms(self.cache_ms)}"
        at_once = min(self.concurrency, self.lookup.most_at_once)
        how = f"{at_once} at once, timeout {render_ms(self.timeout_ms)}, {self.retries} retries, {cache}"
        else_ = f"missing: {self.missing}, error: {self.on_error}"
        return f"{self.key} in {self.lookup}: {shown(self.output)}   {how}   {else_}"


def look_up(
    lookup: Lookup,
    *,
    stream: str,
    key: str,
    output: SchemaSpec,
    concurrency: int,
    timeout: Duration,
    retries: int,
    cache: Duration | None,
    missing: Missing,
    on_error: OnError,
    name: str | None,
) -> LookUp:
    """Return a lookup of `stream` with its options checked."""
    if not isinstance(lookup, Lookup):
        raise refuse("NOT_A_LOOKUP", stream=stream, got=repr(lookup))
    if not isinstance(key, str) or not key:
        raise _option(stream, "key", "the name of a column", repr(key), 'write, for example, key="user_id"')
    for what, number, least, most in (("concurrency", concurrency, 1, 10_000), ("retries", retries, 0, _MOST_RETRIES)):
        if type(number) is not int or not least <= number <= most:
            rule = f"a whole number from {least} to {most:,}"
            raise _option(stream, what, rule, repr(number), "omit it to use the default")
    for what, given, choices in (
        ("missing", missing, ("null", "dead_letter")),
        ("on_error", on_error, ("wait", "dead_letter", "null")),
    ):
        if given not in choices:
            rule = "one of " + ", ".join(f'"{choice}"' for choice in choices)
            raise _option(stream, what, rule, repr(given), f'omit it to use "{choices[0]}"')
    return LookUp(
        lookup=lookup,
        key=key,
        output=as_schema(output),
        concurrency=concurrency,
        timeout_ms=duration_ms(timeout, what="`timeout` of a lookup"),
        retries=retries,
        cache_ms=None if cache is None else duration_ms(cache, what="`cache` of a lookup"),
        missing=missing,
        on_error=on_error,
        name=name,
    )


def _option(stream: str, what: str, rule: str, got: str, remedy: str) -> Exception:
    return refuse("LOOKUP_OPTION", lookup=f"`{stream}.lookup`", what=what, rule=rule, got=got, remedy=remedy)
