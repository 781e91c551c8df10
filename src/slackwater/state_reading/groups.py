"""The state of one key group, opened to be looked at.

The owner of the groups (a checkpoint, the engine in memory) gives the blobs of each to a `Reading`, where they lie:
only the answers travel, even if the state has gigabytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from slackwater.keyed.stage import INDEX
from slackwater.state.pieces import StepState
from slackwater.state.step import KeyedStep


@dataclass(frozen=True, kw_only=True)
class StoredStep:
    """A step that a checkpoint has state of."""

    name: str
    stage: int
    spec: KeyedStep | None
    """None if the pipeline has no such step, or not as it was stored: then only its sizes are known."""
    changes: str = ""
    """What keeps its rows from being read."""


class Answer(NamedTuple):
    """What a reading found of one step in one key group."""

    step: str
    facts: str
    """As JSON."""
    rows: bytes
    """A packed frame, or nothing."""


class Reading(Protocol):
    """What is asked of each key group. It is pickled, and called where the state is."""

    def __call__(self, step: StoredStep, state: StepState) -> Answer | None:
        """Return the answer of one step in one key group."""


class StateGroups(Protocol):
    """Where key groups are: in a checkpoint as of a batch, or in memory."""

    def ask(self, steps: Sequence[StoredStep], reading: Reading, groups: Iterable[int] | None = None) -> list[Answer]:
        """Return the answers of all key groups, or of some, by their labels."""


class MemoryGroups:
    """The key groups of the engine in memory, by stage and label."""

    def __init__(self, state: Mapping[tuple[int, int], Mapping[str, bytes]]) -> None:
        self._state = state

    def ask(self, steps: Sequence[StoredStep], reading: Reading, groups: Iterable[int] | None = None) -> list[Answer]:
        """Return the answers of all key groups, or of some, by their labels."""
        wanted = None if groups is None else {*groups}
        found: list[Answer] = []
        for (stage, label), blobs in self._state.items():
            if wanted is None or label in wanted:
                found += answers(blobs, [step for step in steps if step.stage == stage], reading)
        return found


def answers(blobs: Mapping[str, bytes], steps: Iterable[StoredStep], reading: Reading) -> Iterator[Answer]:
    """Yield what `reading` finds in the blobs of one key group."""
    index = json.loads(blobs.get(INDEX, b"{}"))
    for step in steps:
        if step.name in index:
            state = StepState.from_index(step.name, Blobs(blobs), index[step.name])
            if (answer := reading(step, state)) is not None:
                yield answer


class Blobs:
    """A store that is only read: what looks at state must not change it."""

    def __init__(self, blobs: Mapping[str, bytes]) -> None:
        self._blobs = blobs

    def get(self, key: str) -> bytes | None:
        """Return a blob, or None."""
        return self._blobs.get(key)

    def put(self, key: str, blob: bytes) -> None:
        """Fail: nothing is stored."""
        raise AssertionError(key, blob)

    def remove(self, key: str) -> None:
        """Fail: nothing is removed."""
        raise AssertionError(key)
