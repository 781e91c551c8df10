"""Sealed files as tests need them: their content, and other content under a seal that is right."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from slackwater.base.sealed import sealed


def seal_of(path: Path) -> dict[str, Any]:
    """Return the seal of a file."""
    return dict(json.loads(path.read_bytes().partition(b"\n")[0]))


def content_of(path: Path) -> Any:  # noqa: ANN401  whatever JSON it is
    """Return the JSON value in a sealed file."""
    return json.loads(path.read_bytes().partition(b"\n")[2])


def reseal(path: Path, value: object) -> None:
    """Write another JSON value to a sealed file, as if it had been written there by its owner."""
    seal = seal_of(path)
    path.write_bytes(sealed(json.dumps(value).encode(), place=seal["place"], of=seal["of"]))


def write_manifest(checkpoint: Path, facts: Mapping[str, object]) -> None:
    """Write the manifest of a checkpoint that nothing else is in."""
    path = checkpoint / "slackwater" / "manifest.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(sealed(json.dumps(facts).encode(), place=path.name, of=str(facts["incarnation"])))
