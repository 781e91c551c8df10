"""Secrets: named in a pipeline, read where they are used, and shown nowhere."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote_plus

from slackwater.base.errors import fault, refuse

_TELLING: Final = re.compile(r"pass(word|wd|phrase)|pwd|secret|token|apikey|accesskey|credential|signature")
_ALONE: Final = frozenset({"auth", "authorization", "bearer", "jwt", "pass", "sig"})
_MOUNTED: Final = Path("/run/secrets")
_SCHEME: Final = re.compile(r"(?:[a-z][a-z0-9+.-]*://)?", re.IGNORECASE)
_PLACE: Final = re.compile(r"([^/?#;]*)((?:/[^/?#;]*)?)(.*)", re.DOTALL)
_HOSTS: Final = re.compile(r"[\w.,:%\[\]-]*")
_LONGEST_SHOWN: Final = 24
"""The most letters of a path's first part that are shown; a longer part is more likely a token than a name."""


@dataclass(frozen=True)
class Secret:
    """The name of a secret. It does not contain the value, so it may be printed, pickled and stored."""

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

    def reveal_if_given(self) -> str | None:
        """Read the value as `reveal` does; return None if it is not set in any of these places."""
        is_named = self.file is not None or self.name in os.environ or f"{self.name}_FILE" in os.environ
        return self.reveal() if is_named or (_MOUNTED / self.name).exists() else None

    def __str__(self) -> str:
        return f"secret {self.name}"


def is_confidential(name: str) -> bool:
    """Return whether a setting of this name, in any spelling, most likely holds a secret."""
    plain = re.sub(r"[^a-z]", "", name.lower())
    return plain in _ALONE or _TELLING.search(plain) is not None


def shown_url(url: str) -> str:
    """Return an address that is safe to show in messages and files: scheme, hosts and the first part of the path.

    User, password, parameters, query, fragment and the rest of the path, as of a webhook, may contain a secret: they
    are not shown.
    """
    scheme, rest = _split(url)
    _, at, rest = rest.rpartition("@")
    hosts, first, tail = _PLACE.findall(rest)[0]
    hosts = hosts if _HOSTS.fullmatch(hosts) else "…"
    first = first if len(first) <= 1 + _LONGEST_SHOWN else "/…"
    return f"{scheme}{'…@' if at else ''}{hosts}{first}{tail if tail in ('', '/') else f'{tail[0]}…'}"


def holds_credentials(url: str) -> bool:
    """Return whether an address has a password, or a parameter whose name suggests a secret."""
    user, _, _ = _split(url)[1].partition("/")[0].rpartition("@")
    names = (setting.partition("=")[0] for setting in re.split(r"[?&;#]", url)[1:])
    return ":" in user or any(is_confidential(unquote_plus(name)) for name in names)


def _split(url: str) -> tuple[str, str]:
    scheme = _SCHEME.findall(url)[0]
    return scheme, url.removeprefix(scheme)


def secret(name: str, *, file: str | Path | None = None) -> Secret:
    """Refer to a secret by name: `secret("KAFKA_PASSWORD")`; it is read on use, never when the pipeline is built.

    Lookup order: `file` if given; the environment variable `name`; the file named by the variable `<name>_FILE`;
    the file `/run/secrets/<name>`.
    """
    if not isinstance(name, str) or not name:
        raise refuse("SECRET_NAME", got=type(name).__name__)
    return Secret(name, None if file is None else os.path.expanduser(file))  # noqa: PTH111  as `ground.folders`
