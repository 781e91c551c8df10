"""A definition that must be refused, and the pipelines that most of them are made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

import slackwater
from slackwater.base.errors import DefinitionError
from slackwater.plan.streams import Results, Step

sw: Any = slackwater  # untyped: half of these definitions are wrong in their types
DDL = "user_id string, amount double, placed_at timestamp, tags array<string>"


@dataclass(frozen=True)
class Bad:
    """A definition that must be refused, in a sentence, with its code and some of its words."""

    sentence: str
    code: str
    words: str
    define: Callable[..., Any]


def purchases(name: str = "purchases") -> Any:  # noqa: ANN401  as above
    """Return a stream of rows with an event time."""
    return sw.stream(name, sw.testing.rows_source(DDL)).event_time("placed_at")


def records() -> Any:  # noqa: ANN401
    """Return a stream of bytes, not decoded."""
    return sw.stream("purchases", sw.sources.log("data/purchases"))


def windowed(window: Any = None, **options: Any) -> Any:  # noqa: ANN401
    """Return a windowed stream of purchases."""
    return purchases().key_by("user_id").window(sw.tumbling("1m") if window is None else window, **options)


def built(results: Any, *more: Any, sink: Any = None) -> Any:  # noqa: ANN401
    """Build a pipeline whose outputs all end somewhere."""
    source = results
    while isinstance(source.origin, Step):
        source = next(iter(source.origin.inputs.values())).stream
    late = [results.late.drop()] if isinstance(results, Results) else []
    return sw.Pipeline("p", results.to(sink or sw.sinks.memory()), *late, source.dead_letters.drop(), *more)


def check_refused(bad: Bad, *given: Any) -> None:  # noqa: ANN401
    """See that a definition is refused with its code and words."""
    with pytest.raises(DefinitionError) as caught:
        bad.define(*given)
    assert caught.value.code == bad.code
    assert bad.words in str(caught.value)
