"""The rows of a step's state in readable form: all of them, or those of one key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from slackwater.observe.state_reading.groups import Answer, Blobs, StateGroups, StoredStep
from slackwater.observe.state_reading.keys import label_of
from slackwater.operators.state.packing import pack, unpack
from slackwater.operators.state.pieces import StepState


@dataclass(frozen=True, kw_only=True)
class Showing:
    """Reads the state of one key in each step, or of all keys, from a key group."""

    keys: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    """The key of each step, as one row."""

    def __call__(self, step: StoredStep, state: StepState) -> Answer | None:
        """Return the rows of the key, if there are any."""
        assert step.spec is not None
        rows = step.spec.shown_state(state, self.keys.get(step.name))
        return Answer(step.name, "", pack(rows, step.name)) if rows.height else None


def all_rows(groups: StateGroups, step: StoredStep) -> pl.DataFrame:
    """Return all state rows of a step."""
    assert step.spec is not None
    return _together(step, groups.ask([step], Showing()))


def rows_of_key(
    groups: StateGroups, steps: Sequence[StoredStep], keys: Mapping[str, pl.DataFrame], key_groups: int
) -> dict[str, pl.DataFrame]:
    """Return the state rows of a key, by step; a step without any is left out."""
    found: list[Answer] = []
    labels = {step.name: label_of(keys[step.name], key_groups) for step in steps}
    for label in sorted({*labels.values()}):
        here = [step for step in steps if labels[step.name] == label]
        found += groups.ask(here, Showing(keys=keys), [label])
    named = {answer.step for answer in found}
    return {step.name: _together(step, found) for step in steps if step.name in named}


def _together(step: StoredStep, found: Sequence[Answer]) -> pl.DataFrame:
    assert step.spec is not None
    empty = step.spec.shown_state(StepState(step=step.name, store=Blobs({})))
    frames = [unpack(answer.rows, step.name) for answer in found if answer.step == step.name]
    rows = pl.concat([empty, *frames], how="diagonal_relaxed")
    order = [name for name in (*step.spec.keys, "event_time", "window_start") if name in rows.columns]
    plain = [name for name in order if not rows.schema[name].is_nested()]
    rows = rows.select(*(key for key in step.spec.keys if key in rows.columns), pl.exclude(step.spec.keys))
    return rows.sort(plain, maintain_order=True) if plain else rows
