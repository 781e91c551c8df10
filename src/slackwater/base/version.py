"""The version, defined once for the package, its metadata and checkpoints."""

from __future__ import annotations

from typing import Final

VERSION: Final = "0.1.0"
