"""The state of one key group, opened for reading.

The owner of the groups (a checkpoint, the engine in memory) passes the blobs of each to a `GroupQuery`, where they are
stored: only the answers travel, even if the state is gigabytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from slackwater.operators.state.pieces import StepState
from slackwater.operators.state.store import read_index
from slackwater.operators.step import KeyedStep


@dataclass(frozen=True, kw_only=True)
class StoredStep:
    """A step with state in a checkpoint."""

    name: str
    stage: int
    spec: KeyedStep | None
    """None if the pipeline has no such step, or it differs from the stored one: then only its sizes are known."""
    changes: str = ""
    """Why its rows cannot be read."""


class Answer(NamedTuple):
    """The result of a reading for one step in one key group."""

    step: str
    facts: str
    """Facts as JSON."""
    rows: bytes
    """A packed frame, or empty."""


class GroupQuery(Protocol):
    """A query on each key group. It is pickled, and called where the state is stored."""

    def __call__(self, step: StoredStep, state: StepState) -> Answer | None:
        """Return the answer for one step in one key group."""


class StateGroups(Protocol):
    """A set of key groups: in a checkpoint as of a batch, or in memory."""

    def ask(
        self, steps: Sequence[StoredStep], reading: GroupQuery, groups: Iterable[int] | None = None
    ) -> list[Answer]:
        """Return the answers of all key groups, or of those with the given labels."""


class MemoryGroups:
    """The key groups of the engine in memory, by stage and label."""

    def __init__(self, state: Mapping[tuple[int, int], Mapping[str, bytes]]) -> None:
        self._state = state

    def ask(
        self, steps: Sequence[StoredStep], reading: GroupQuery, groups: Iterable[int] | None = None
    ) -> list[Answer]:
        """Return the answers of all key groups, or of those with the given labels."""
        wanted = None if groups is None else {*groups}
        found: list[Answer] = []
        for (stage, label), blobs in self._state.items():
            if wanted is None or label in wanted:
                found += answers(blobs, [step for step in steps if step.stage == stage], reading)
        return found


def answers(blobs: Mapping[str, bytes], steps: Iterable[StoredStep], reading: GroupQuery) -> Iterator[Answer]:
    """Yield the answers of `reading` for the blobs of one key group."""
    index = read_index(Blobs(blobs), None, None)
    for step in steps:
        if step.name in index:
            state = StepState.from_index(step.name, Blobs(blobs), index[step.name])
            if (answer := reading(step, state)) is not None:
                yield answer


class Blobs:
    """A read-only store: inspecting state must not change it."""

    def __init__(self, blobs: Mapping[str, bytes]) -> None:
        self._blobs = blobs

    def get(self, key: str) -> bytes | None:
        """Return a blob, or None."""
        return self._blobs.get(key)

    def put(self, key: str, blob: bytes) -> None:
        """Fail: the store is read-only."""
        raise AssertionError(key, blob)

    def remove(self, key: str) -> None:
        """Fail: the store is read-only."""
        raise AssertionError(key)
