"""Secrets: named in a pipeline, read where they are used, and shown nowhere."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from slackwater.errors import fault, refuse

_TELLING: Final = re.compile(r"pass(word|wd|phrase)|pwd|secret|token|apikey|accesskey|credential|signature")
_ALONE: Final = frozenset({"auth", "authorization", "bearer", "jwt", "pass", "sig"})
_MOUNTED: Final = Path("/run/secrets")


@dataclass(frozen=True)
class Secret:
    """The name of a secret. Its value is no part of it, so that it may be printed, pickled and written down."""

    name: str
    file: str | None = None

    def reveal(self) -> str:
        """Read the value: from `file`, the environment, the file that `<NAME>_FILE` names, or /run/secrets."""
        if self.file is None and self.name in os.environ:
            return os.environ[self.name]
        named = self.file or os.environ.get(f"{self.name}_FILE")
        path = _MOUNTED / self.name if named is None else Path(named)
        try:
            return path.read_text(encoding="utf-8").rstrip("\r\n")
        except OSError as error:
            raise fault("SECRET_MISSING", name=self.name, path=path, cause=error.strerror) from error

    def __str__(self) -> str:
        return f"secret {self.name}"


def is_confidential(name: str) -> bool:
    """Return whether a setting of this name, however it is spelt, most likely holds a secret."""
    plain = re.sub(r"[^a-z]", "", name.lower())
    return plain in _ALONE or _TELLING.search(plain) is not None


def secret(name: str, *, file: str | Path | None = None) -> Secret:
    """Name a secret: `secret("KAFKA_PASSWORD")`; it is read where it is used, never when the pipeline is built.

    Looked up in this order: `file` if given; the environment variable `name`; the file that the
    variable `<name>_FILE` names; the file `/run/secrets/<name>`.
    """
    if not isinstance(name, str) or not name:
        raise refuse("SECRET_NAME", got=type(name).__name__)
    return Secret(name, None if file is None else str(file))
