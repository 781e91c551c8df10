"""The version, in the one place that the package, its metadata and checkpoints take it from."""

from __future__ import annotations

from typing import Final

VERSION: Final = "0.1.0"
