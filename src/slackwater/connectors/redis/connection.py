"""Connections to a Redis server: its client library, its address, and what its errors mean."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final
from urllib.parse import urlsplit

from slackwater.base.errors import fault
from slackwater.base.secrets import Secret, holds_credentials, shown_url
from slackwater.connectors.sink import Unavailable

_PASSING: Final = {
    "BUSY": "it is running a script",
    "CLUSTERDOWN": "its cluster is down",
    "LOADING": "it is loading its data",
    "MASTERDOWN": "its primary is down",
    "MISCONF": "it cannot write its data to disk",
    "OOM": "it is out of memory (see its `maxmemory`)",
    "READONLY": "it is a read-only replica",
    "TRYAGAIN": "its cluster is being changed",
}
"""Replies, by error prefix, that may be transient."""
_WORDS: Final = {
    "ClusterDownError": "CLUSTERDOWN",
    "MasterDownError": "MASTERDOWN",
    "OutOfMemoryError": "OOM",
    "ReadOnlyError": "READONLY",
    "TryAgainError": "TRYAGAIN",
}
"""The server's error prefixes that the client turns into exception classes and removes from the message."""
_DATABASE: Final = re.compile(r"^(unix://[^?#;]*|rediss?://[^/?#;]*(/\d*)?)(\?db=\d+)?$")
_WORD: Final = re.compile(r"(?:@user_script: ?\d+: )?-?([A-Z]+) ")
"""The server's error prefix, at the start of one of its own errors or of an error in a script."""


def client_library() -> ModuleType:
    """Return the module `redis`; raises with instructions if it is not installed."""
    try:
        import redis  # noqa: PLC0415  only Redis users need it
    except ModuleNotFoundError as error:
        raise fault("REDIS_CLIENT_MISSING") from error
    return redis


def way_in(url: str, password: Secret | None, ca: str | None) -> dict[str, Any]:
    """Return the client's settings for TLS and the password."""
    settings: dict[str, Any] = {}
    if url.startswith("rediss:"):
        settings = {"ssl_ca_certs": ca, "ssl_cert_reqs": "required", "ssl_check_hostname": True}
    if password is not None:
        settings["password"] = password.reveal()
    return settings


def check_url(url: str, *, has_ca: bool, option: Callable[[str, str, str, str], Exception]) -> None:
    """Reject anything that is not a server's address or that contains a password; `option` creates the error."""
    rule = "a URL such as redis://host:6379/0, rediss://… (TLS) or unix:///path/to/socket"
    if not isinstance(url, str):
        raise option("url", rule, type(url).__name__, "write it as a string")
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  raises if it is not a number
    except ValueError as error:
        raise option("url", rule, "an invalid URL", "correct it") from error
    if holds_credentials(url):
        remedy = 'write password=sw.secret("REDIS_PASSWORD")'
        raise option("url", "a URL without a password", shown_url(url), remedy)
    where = parts.path if parts.scheme == "unix" else parts.hostname
    if parts.scheme not in ("redis", "rediss", "unix") or not where:
        raise option("url", rule, repr(shown_url(url)), "correct it")
    if not _DATABASE.search(url):
        raise option("url", "a URL without settings", shown_url(url), "remove them")
    if has_ca and parts.scheme != "rediss":
        raise option("ca", "used only with a rediss:// URL", repr(shown_url(url)), "write rediss:// for TLS")


def server_words(error: Exception, password: Secret | None) -> str:
    """Return the server's reply, with the error prefix that the client turned into an exception class.

    A server that does not know AUTH repeats its arguments, the password among them.
    """
    text = f"{_WORDS.get(type(error).__name__, '')} {error}".strip()
    return text if password is None else text.replace(password.reveal(), "…")


def passing(cause: str) -> Unavailable | None:
    """Return the reply as `Unavailable` if it may be transient; None if not."""
    word = error_prefix(cause)
    return Unavailable(_PASSING[word]) if word in _PASSING else None


def error_prefix(cause: str) -> str:
    """Return the first word of the server's error, such as WRONGTYPE; empty if it has none."""
    found = _WORD.match(cause)
    return found[1] if found else ""
