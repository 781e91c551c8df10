"""The checkpoint: Spark's own logs, and alongside them Slackwater's manifest, clocks and delivery marks.

- `<checkpoint>/offsets`, `commits`, `state`, `sources`: Spark's
- `<checkpoint>/slackwater/manifest.json`: the pipeline and layout that the checkpoint belongs to
- `<checkpoint>/slackwater/clock/<batch>`: the clock of each batch
- `<checkpoint>/slackwater/delivering.json`: the batch whose delivery was last started, its code, its slots, its answers
- `<checkpoint>/slackwater/attempts.json`: the last batch attempted for each at-most-once sink
- `<checkpoint>/slackwater/lookups/<step>/<batch>/`: the answers that a batch's lookups received
- `<checkpoint>/slackwater/tables/<step>/`: the versions of a table that batches were joined with
- `<checkpoint>/slackwater/history/`: the figures of batches and the number of starts; nothing depends on them

All of Slackwater's files but the last are sealed (`base/sealed.py`), and those that a batch needs must be there.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NotRequired, TypedDict

import polars as pl

from slackwater.base.durable import space_for
from slackwater.base.errors import RunError, fault, listed
from slackwater.base.sealed import SealedFolder, checkpoint_folder
from slackwater.base.stored import DamageError, damaged, readable, shaped
from slackwater.base.version import VERSION
from slackwater.connectors.intake import RETAIN
from slackwater.connectors.sink import Mark
from slackwater.engine.checkpoint.step_changes import Definition
from slackwater.engine.enrichment.answers import FolderAnswers
from slackwater.engine.enrichment.snapshots import FolderSnapshots
from slackwater.engine.next_clock import first_clock
from slackwater.eventtime.clock import Clock, Marks
from slackwater.plan.plan import STAGE, Plan

FORMAT: Final = 5
_FORMAT_BEFORE: Final = re.compile(rb'(?:\{"sealed": 1,[^\n]*\n)?\{\s*"format": ([1-4]),')
"""Matches a manifest from before there were seals, or with a seal that did not have a form yet."""
_MANIFEST: Final = "manifest.json"
_DELIVERING: Final = "delivering.json"
_ATTEMPTS: Final = "attempts.json"


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """An open checkpoint folder that has been checked against a plan."""

    path: Path
    incarnation: str
    partitions: int
    """Spark's shuffle partitions, fixed when the checkpoint was created."""
    accepts_changes: bool = False
    """Whether the user allows a partly delivered batch to be finished with different code or files."""

    @property
    def home(self) -> Path:
        """Slackwater's own subfolder."""
        return self.path / "slackwater"

    @property
    def files(self) -> SealedFolder:
        """Slackwater's own files."""
        return checkpoint_folder(self.home, self.incarnation)

    def next_batch(self) -> int:
        """Return the next batch that Spark will run: the last one started, if it was not committed."""
        begun, committed = _newest(self.path / "offsets"), _newest(self.path / "commits")
        return begun if begun > committed else committed + 1

    def committed_batch(self) -> int:
        """Return the last committed batch, or -1."""
        return _newest(self.path / "commits")

    def is_amid_batch(self) -> bool:
        """Return whether a batch was started and is not committed."""
        return _newest(self.path / "offsets") > _newest(self.path / "commits")

    def clock(self, batch: int) -> Clock:
        """Read the clock of a batch."""
        clock: Clock = self.files.read_json(_clock(batch), Clock)
        return clock

    def readable(self, path: Path) -> AbstractContextManager[None]:
        """Report errors inside as damage to a file of this checkpoint."""
        return readable(path, damaged(self.path))

    def write_clock(self, clock: Clock) -> None:
        """Write the clock of a batch durably, and delete the one that Spark can no longer replay."""
        owned = replace(clock, incarnation=self.incarnation, token_before=self._token(clock.batch - 1))
        self.files.write(_clock(clock.batch), owned.to_json().encode())
        self.files.at(_clock(clock.batch - RETAIN - 1)).unlink(missing_ok=True)
        self.answers.forget(clock.batch - RETAIN - 1)

    @property
    def answers(self) -> FolderAnswers:
        """The stored answers of lookups."""
        return FolderAnswers(files=self.files)

    @property
    def snapshots(self) -> FolderSnapshots:
        """The stored versions of tables."""
        return FolderSnapshots(files=self.files)

    def complete_clock(self, clock: Clock) -> None:
        """Persist which tables a batch joins with, before its first task; delete versions that no batch can use."""
        self.write_clock(replace(self.clock(clock.batch), tables=clock.tables))
        kept = []
        for batch in self._clocks():
            with suppress(RunError):  # damaged, so its batch cannot be replayed
                kept.append(self.clock(batch).tables)
        for step in clock.tables:
            self.snapshots.forget(step, {tables[step].version for tables in kept if step in tables})

    def next_clock(self) -> Clock:
        """Return the clock of the next batch that Spark will run.

        Batch N is replayed if its commit is missing, even if clock N + 1 is already written; that clock is rewritten
        before batch N + 1 reads it.
        """
        return self.clock(self.next_batch())

    def begun_clock(self, batch: int) -> Clock:
        """Read the clock of a batch that Spark has started, with the processing time that Spark logged for it."""
        clock = self.clock(batch)
        if clock.now_ms is not None:
            return clock  # pinned by a test
        path = self.path / "offsets" / str(batch)
        with self.readable(path):
            _, facts = [*path.read_text().splitlines(), "", ""][:2]
            if not facts:
                raise DamageError("it ends before the line with the batch's time")
            return clock.begun(shaped(json.loads(facts), _Begun)["batchTimestampMs"])

    def source_offsets(self, batch: int) -> list[str]:
        """Return each source's end offset for a batch, in the source's own format; empty if Spark has none."""
        path = self.path / "offsets" / str(batch)
        with self.readable(path):
            return path.read_text().splitlines()[2:] if path.exists() else []

    def begun_mark(self, batch: int) -> Mark:
        """Return the mark of a batch; if Spark has not started it yet, a mark that no sink can hold."""
        return Mark(incarnation=self.incarnation, batch=batch, token=self._token(batch))

    def check_offsets(self) -> None:
        """Raise if Spark's offset log is not the one that the batches ran with."""
        begun, committed, clocks = _newest(self.path / "offsets"), self.committed_batch(), self._clocks()
        if begun > committed + 1 and begun not in clocks:
            raise self._not_offsets(begun, f"it does not follow batch {committed}, the last in `commits`")
        for clock in map(self.clock, {self.next_batch(), *clocks[-1:]} & {*clocks}):
            self._check_entry(clock.batch - 1, clock.token_before)
        if (note := self._delivering())["batch"] == self.next_batch():
            self._check_entry(note["batch"], note["token"])

    def _check_entry(self, batch: int, token: str) -> None:
        if token and self._token(batch) != token:
            is_there = (self.path / "offsets" / str(batch)).exists()
            raise self._not_offsets(batch, f"batch {batch} ran with other offsets" if is_there else "it is missing")

    def _not_offsets(self, batch: int, why: str) -> RunError:
        return damaged(self.path)(self.path / "offsets" / str(batch), why)

    def _token(self, batch: int) -> str:
        """Return a hash of a batch's entry in Spark's offset log; empty if there is none."""
        entry = self.path / "offsets" / str(batch)
        return hashlib.blake2b(entry.read_bytes(), digest_size=8).hexdigest() if entry.exists() else ""

    def noted_marks(self, clock: Clock) -> Marks:
        """Return the last batch recorded for every slot: from before this batch, or after it if it was delivered."""
        following = clock.batch + 1
        return self.clock(following).marks if self.files.at(_clock(following)).exists() else clock.marks

    def begin_delivery(self, batch: int, fingerprint: str, slots: Mapping[str, int]) -> dict[str, int]:
        """Record, before the first sink is called, which code delivers the batch and through which slots.

        Returns the slots: a batch whose delivery had already started keeps its own.
        """
        slots, before, answers = dict(slots), self._delivering(), self.answers.written(batch)
        if before["batch"] == batch:
            slots |= {sink: number for sink, number in before["slots"].items() if sink in slots}
            answers |= {step: sorted({*answers.get(step, ()), *names}) for step, names in before["answers"].items()}
        facts = {"batch": batch, "fingerprint": fingerprint, "slots": slots}
        self.files.write_json(_DELIVERING, {**facts, "token": self._token(batch), "answers": answers})
        return slots

    def begin_attempt(self, sink: str, batch: int) -> bool:
        """Record that a sink is about to be sent a batch; return False if that was already recorded."""
        attempts = self.files.read_json(_ATTEMPTS, dict[str, int])
        if attempts.get(sink, -1) >= batch:
            return False
        self.files.write_json(_ATTEMPTS, {**attempts, sink: batch})
        return True

    def check_begun_delivery(self, batch: int) -> None:
        """Raise unless the delivery of a batch is recorded, which a sink has."""
        if (found := self._delivering()["batch"]) != batch:
            with self.files.readable(_DELIVERING):
                raise DamageError(f"it is of batch {found}, and a sink has batch {batch}")

    def check_answers(self, batch: int) -> None:
        """Raise if a file of answers is missing with which a partly delivered batch was evaluated."""
        if (note := self._delivering())["batch"] == batch:
            self.answers.check_written(batch, note["answers"])

    def check_half_delivered(self, fingerprint: str) -> None:
        """Refuse to finish a partly delivered batch with different code."""
        before = self._delivering()
        if before["batch"] == self.next_batch() and before["fingerprint"] != fingerprint:
            raise fault("BATCH_HALF_DELIVERED", batch=before["batch"], path=self.path)

    def _delivering(self) -> _Delivering:
        found: _Delivering = self.files.read_json(_DELIVERING, _Delivering)
        return found

    def mark_finished(self) -> None:
        """Record that a bounded run has ended: its watermark is the end of time."""
        self.files.write_json(_MANIFEST, {**read_manifest(self.path), "finished": True}, indent=1)

    def is_finished(self) -> bool:
        """Return whether a bounded run has ended here."""
        return bool(read_manifest(self.path)["finished"])

    def _clocks(self) -> list[int]:
        """Return the batches that have a clock, in order."""
        with self.files.readable("clock"):
            return sorted(int(entry.name) for entry in (self.home / "clock").iterdir() if entry.name.isdigit())


def existing_checkpoint(path: Path, plan: Plan, *, accept_changes: bool = False) -> Checkpoint | None:
    """Return the checkpoint at `path` without changing it, or None; raises if `plan` cannot continue from it."""
    if not (path / "slackwater" / "manifest.json").exists():
        if (path / "offsets").exists() and (path / "slackwater").exists():
            raise damaged(path)(path / "slackwater" / _MANIFEST, "it is missing")
        if (path / "offsets").exists():
            raise fault("CHECKPOINT_FOREIGN", path=path)
        return None
    manifest = read_manifest(path)
    _check(manifest, plan, path)
    found = Checkpoint(
        path=path,
        incarnation=manifest["incarnation"],
        partitions=manifest["partitions"],
        accepts_changes=accept_changes,
    )
    found.check_offsets()
    if not accept_changes:
        found.check_half_delivered(plan.fingerprint)
    return found


def open_checkpoint(path: Path, plan: Plan, *, partitions: int, accept_changes: bool = False) -> Checkpoint:
    """Open or create the checkpoint at `path` for `plan`; raises if that would continue from the wrong state."""
    if (found := existing_checkpoint(path, plan, accept_changes=accept_changes)) is not None:
        _clear(found)
        manifest = read_manifest(path)
        steps = {step.name: plan.placed(step, step.spec.continued(manifest["steps"][step.name])) for step in plan.steps}
        found.files.write_json(_MANIFEST, {**manifest, "steps": steps, **_code(plan)}, indent=1)
        return found
    with space_for(path):
        (path / "slackwater" / "clock").mkdir(parents=True, exist_ok=True)
    checkpoint = Checkpoint(path=path, incarnation=str(uuid.uuid4()), partitions=partitions)
    checkpoint.write_clock(first_clock(plan))
    # Later on, the absence of a note is damage.
    checkpoint.files.write_json(_DELIVERING, {"batch": -1, "fingerprint": "", "slots": {}, "token": "", "answers": {}})
    checkpoint.files.write_json(_ATTEMPTS, {})
    manifest = {
        "format": FORMAT,
        "pipeline": plan.name,
        "incarnation": checkpoint.incarnation,
        "key_groups": plan.key_groups,
        "partitions": partitions,
        "sources": {source.name: type(source.source).__name__ for source in plan.sources},
        "steps": plan.layout,
        "finished": False,
        **_code(plan),
    }
    checkpoint.files.write_json(_MANIFEST, manifest, indent=1)
    return checkpoint


def marked_outputs(plan: Plan) -> str:
    """Return the sinks that store batch marks, for an error that asks for new ones; "" if there are none."""
    sinks = [sink for output in plan.outputs for sink in output.sinks if sink.uses_marks]
    return f" and change the outputs, currently {listed(sinks, most=3)}" if sinks else ""


def _clear(checkpoint: Checkpoint) -> None:
    """Delete the unfinished files of a killed driver; a replaced driver can then no longer rename them into place."""
    for left in [*checkpoint.home.glob(".*"), *(checkpoint.home / "clock").glob(".*")]:
        left.unlink()


class _Begun(TypedDict):
    """The fields that are read from Spark's metadata of a batch."""

    batchTimestampMs: int


class _Delivering(TypedDict):
    batch: int
    fingerprint: str
    slots: dict[str, int]
    token: str
    answers: dict[str, list[str]]
    """The files of answers that the batch was evaluated with, by step."""


class _Format(TypedDict):
    format: int


class _Manifest(_Format):
    """The fields that are read from a manifest."""

    pipeline: str
    incarnation: str
    key_groups: int
    partitions: int
    sources: dict[str, str]
    steps: dict[str, dict[str, str]]
    rules: NotRequired[dict[str, str]]
    """Each step's definition as users wrote it, besides its layout, when the checkpoint was last opened."""
    finished: bool


def read_manifest(path: Path) -> dict[str, Any]:
    """Read a manifest; if it has another format, only the format is checked."""
    files = checkpoint_folder(path / "slackwater", None)
    with files.readable(_MANIFEST):
        if (older := _FORMAT_BEFORE.match(files.at(_MANIFEST).read_bytes())) is not None:
            return {"format": int(older[1])}
    found: dict[str, Any] = files.read_json(_MANIFEST, _Format)
    if found["format"] != FORMAT:
        return found
    return dict(checkpoint_folder(files.path, found.get("incarnation")).read_json(_MANIFEST, _Manifest))


def _code(plan: Plan) -> dict[str, Any]:
    import pyspark  # noqa: PLC0415  checks before Spark starts should not wait for this import

    versions = {"slackwater": VERSION, "pyspark": pyspark.__version__, "polars": pl.__version__}
    rules = {step.name: step.spec.rules for step in plan.steps}
    return {"fingerprint": plan.fingerprint, "rules": rules, "versions": versions}


def _check(manifest: Mapping[str, Any], plan: Plan, path: Path) -> None:
    if manifest["format"] != FORMAT:
        raise fault("CHECKPOINT_FORMAT", path=path, got=manifest["format"], known=FORMAT)
    if manifest["pipeline"] != plan.name:
        raise fault("CHECKPOINT_OF_ANOTHER", path=path, found=manifest["pipeline"], mine=plan.name)
    if manifest["finished"]:
        raise fault("CHECKPOINT_FINISHED", path=path, outputs=marked_outputs(plan))
    sources = {source.name: type(source.source).__name__ for source in plan.sources}
    if list(manifest["sources"].items()) != list(sources.items()):
        raise fault("CHECKPOINT_SOURCES", path=path, found=manifest["sources"], mine=sources)
    if manifest["key_groups"] != plan.key_groups:
        raise fault("CHECKPOINT_KEY_GROUPS", path=path, found=manifest["key_groups"], mine=plan.key_groups)
    _check_steps(manifest, plan, path)


def _check_steps(manifest: Mapping[str, Any], plan: Plan, path: Path) -> None:
    found: dict[str, dict[str, str]] = manifest["steps"]
    for name in sorted({*found, *plan.layout}):
        if name not in plan.layout:
            raise fault("CHECKPOINT_STEP_GONE", path=path, step=name)
        if name not in found:
            raise fault("CHECKPOINT_STEP_NEW", path=path, step=name)
    for step in plan.steps:
        before = Definition(layout=found[step.name], rules=manifest.get("rules", {}).get(step.name, ""))
        now = Definition(layout=plan.layout[step.name], rules=step.spec.rules)
        moved = before.layout[STAGE] != now.layout[STAGE]
        difference = step.spec.difference(before.layout)
        if moved or difference is not None:
            is_named = difference is not None and difference.part not in now.layout
            changes = str(difference) if is_named else before.changes(now, step.spec)
            raise fault("CHECKPOINT_STEP_CHANGED", path=path, step=step.name, changes=changes)


def _clock(batch: int) -> str:
    return f"clock/{batch}"


def _newest(folder: Path) -> int:
    if not folder.is_dir():
        return -1
    return max((int(entry.name) for entry in folder.iterdir() if entry.name.isdigit()), default=-1)
