"""The state in a checkpoint as of one committed batch, read without locking or writing anything.

A committed batch no longer changes, so reading it is consistent, whatever a running job does meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from slackwater.base.errors import RunError, fault, listed, near_miss
from slackwater.base.stored import damaged, readable
from slackwater.engine.checkpoint.checkpoint import FORMAT, read_manifest
from slackwater.engine.checkpoint.step_changes import Definition
from slackwater.observe.state_reading.groups import StoredStep
from slackwater.observe.state_reading.keys import key_given
from slackwater.plan.plan import Plan


@dataclass(frozen=True, kw_only=True)
class StoredState:
    """The state in a checkpoint as of `batch`."""

    path: Path
    batch: int
    key_groups: int
    partitions: int
    steps: tuple[StoredStep, ...]

    def chosen(self, step: str | None) -> list[StoredStep]:
        """Return the steps to read: all, or the requested one."""
        names = [each.name for each in self.steps]
        if step is not None and step not in names:
            known = listed(names, near=step)
            raise fault("STATE_READ_STEP", path=self.path, step=step, hint=near_miss(step, names), known=known)
        return [each for each in self.steps if step in (None, each.name)]

    def with_key(self, text: str, step: str | None) -> dict[str, pl.DataFrame]:
        """Return the key that a user entered, for each step whose key it can be."""
        found: dict[str, pl.DataFrame] = {}
        refused: list[RunError] = []
        for each in self.chosen(step):
            try:
                if each.spec is None:
                    raise fault("STATE_READ_STEP_CHANGED", path=self.path, step=each.name, changes=each.changes)
                found[each.name] = key_given(text, each.spec)
            except RunError as error:
                refused.append(error)
        if refused and not found:
            raise refused[0]
        return found

    def operator(self, stage: int) -> int:
        """Return Spark's operator number for a stage; Spark counts stages from the last one."""
        for folder in sorted((self.path / "state").glob("*/_metadata/v2")):
            notes = [int(note.name) for note in folder.iterdir() if note.name.isdigit()]
            if not (known := [number for number in notes if number <= self.batch]):
                continue
            note = folder / str(max(known))
            with readable(note, damaged(self.path)):
                facts: dict[str, Any] = json.loads(note.read_text(encoding="utf-8").splitlines()[1])
                variables = json.loads(facts["operatorPropertiesJson"])["stateVariables"]
                if any(variable["stateName"] == state_name(stage) for variable in variables):
                    return int(facts["operatorInfo"]["operatorId"])
        raise damaged(self.path)(self.path / "state", f"it has no state of stage {stage}")


def state_name(stage: int) -> str:
    """Return the name of a stage's state in Spark."""
    return f"stage_{stage}"


def stored_state(path: Path, plan: Plan, batch: int | None = None) -> StoredState:
    """Find the state of `plan` in the checkpoint at `path`, as of `batch` or the newest committed batch.

    The pipeline may have changed since: the manifest describes what is stored.
    """
    if not (path / "slackwater" / "manifest.json").exists():
        if (path / "offsets").exists():
            raise fault("CHECKPOINT_FOREIGN", path=path)
        raise fault("STATE_READ_CHECKPOINT", path=path)
    manifest = read_manifest(path)
    if manifest["format"] != FORMAT:
        raise fault("CHECKPOINT_FORMAT", path=path, got=manifest["format"], known=FORMAT)
    if manifest["pipeline"] != plan.name:
        raise fault("CHECKPOINT_OF_ANOTHER", path=path, found=manifest["pipeline"], mine=plan.name)
    return StoredState(
        path=path,
        batch=chosen_batch(path, batch),
        key_groups=manifest["key_groups"],
        partitions=manifest["partitions"],
        steps=tuple(_stored(name, layout, manifest, plan) for name, layout in manifest["steps"].items()),
    )


def chosen_batch(path: Path, batch: int | None) -> int:
    """Return `batch` if its state can be read; by default, the newest batch whose state can."""
    folder = path / "commits"
    committed = [int(entry.name) for entry in folder.iterdir() if entry.name.isdigit()] if folder.is_dir() else []
    if not committed:
        raise fault("STATE_READ_NOTHING", path=path)
    if batch is not None and batch not in committed:
        raise fault("STATE_READ_BATCH", path=path, batch=batch, first=min(committed), last=max(committed))
    return max(committed) if batch is None else batch


def _stored(name: str, layout: Mapping[str, str], manifest: Mapping[str, Any], plan: Plan) -> StoredStep:
    stage = int(layout["stage"])
    if name not in plan.by_name:
        return StoredStep(name=name, stage=stage, spec=None, changes="is not in the pipeline")
    spec = plan.by_name[name].spec
    if spec.difference(layout) is None:
        return StoredStep(name=name, stage=stage, spec=spec)
    before = Definition(layout=layout, rules=manifest.get("rules", {}).get(name, ""))
    changes = before.changes(Definition(layout=plan.layout[name], rules=spec.rules), spec)
    return StoredStep(name=name, stage=stage, spec=None, changes=f"is not as it was stored: {changes}")
