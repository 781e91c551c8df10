"""Attaching a branch of a stream to the stream's rows again: an interval join on a key and the same event time."""

from __future__ import annotations

from collections.abc import Sequence

from slackwater.base.errors import refuse
from slackwater.operators.joins.windowed import WindowedDefinition
from slackwater.operators.windows.definition import WindowDefinition
from slackwater.operators.windows.sliding import SlidingWindow
from slackwater.plan.streams.keyed import KeyedStream, Results
from slackwater.plan.streams.stream import Step, Stream, branches, called


def attached(
    stream: Stream, branch: Stream, on: str | Sequence[str], suffixes: tuple[str, str], name: str | None
) -> Results:
    """Return the rows of `stream` with the columns of the rows of `branch` that have the same key and event time."""
    if not isinstance(branch, Stream):
        remedy = "remove .key_by(...): `on` is the key" if isinstance(branch, KeyedStream) else "pass the stream itself"
        got = f"{branch.stream.name}.key_by(...)" if isinstance(branch, KeyedStream) else called(branch)
        raise refuse("JOIN_OTHER", stream=stream.name, takes="a stream", got=got, remedy=remedy)
    if not isinstance(on, Sequence):
        raise refuse("ATTACH_ON", stream=stream.name, got=f"{on!r:.80}")
    mine, others = _times_of(stream), _times_of(branch)
    if not mine.keys() & others.keys():
        facts = {"of_stream": ", ".join(mine.values()), "of_branch": ", ".join(others.values())}
        raise refuse("ATTACH_TIMES", stream=stream.name, branch=branch.name, **facts)
    keys = (on,) if isinstance(on, str) else tuple(on)
    return stream.key_by(*keys).join(
        branch.key_by(*keys),
        between=("0s", "0s"),
        how="left",
        suffixes=suffixes,
        name=f"{stream.name}.attach" if name is None else name,
    )


def _times_of(stream: Stream) -> dict[int, str]:
    """Return where the event times of a stream's rows come from, by identity: sources, and steps that set a new one."""
    found = dict[int, str]()
    for branch in branches(stream):
        origin = branch.origin
        if not isinstance(origin, Step) or _sets_time(origin):
            found[id(origin)] = branch.name
        else:
            for keyed in origin.inputs.values():
                found |= _times_of(keyed.stream)
    return found


def _sets_time(step: Step) -> bool:
    """Return whether results have another time than the rows: those of windows, which end later, except sliding."""
    definition = step.definition
    if isinstance(definition, WindowDefinition):
        return not isinstance(definition.window, SlidingWindow)
    return isinstance(definition, WindowedDefinition)
