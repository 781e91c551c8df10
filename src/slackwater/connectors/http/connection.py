"""Connections to an HTTP server: the client library, addresses and headers, and errors in plain text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from http.client import HTTPException, IncompleteRead
from types import ModuleType
from typing import Final
from urllib.parse import urlsplit

from slackwater.base.durations import render_ms
from slackwater.base.errors import fault, refuse
from slackwater.base.secrets import Secret, holds_credentials, is_confidential, shown_url

Option = Callable[[str, str, str, str], Exception]
"""Returns the error for an option: its name, the rule, what was found, and what to do."""
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE: Final = re.compile(r"[\t\x20-\x7e\xa0-\xff]*")
_OURS: Final = frozenset({"content-length", "host", "idempotency-key", "transfer-encoding"})
_CONFIDENTIAL: Final = frozenset({"api-key", "authorization", "cookie", "proxy-authorization", "x-api-key"})


def http_library() -> ModuleType:
    """Return the module `urllib3`, or raise an error that says how to install it."""
    try:
        import urllib3  # noqa: PLC0415  only those who use HTTP need it
    except ModuleNotFoundError as error:
        raise fault("HTTP_CLIENT_MISSING") from error
    return urllib3


def explained(error: Exception, *, timeout_ms: int) -> str:
    """Return why a request got no answer."""
    errors = http_library().exceptions
    if isinstance(error, errors.NameResolutionError):
        return "unknown host"
    if isinstance(error, errors.NewConnectionError):
        return f"cannot connect: {str(error).rpartition(': ')[2]}"
    if isinstance(error, errors.TimeoutError):
        return f"no response within {render_ms(timeout_ms)}"
    if isinstance(error, errors.SSLError):
        return f"TLS failed: {error}"
    if isinstance(error, errors.DecodeError):
        return "the response cannot be decompressed"
    is_garbled = isinstance(error, errors.InvalidHeader) or any(map(_is_garbled, error.args))
    return "the response is not HTTP" if is_garbled else "the connection was closed"


def _is_garbled(cause: object) -> bool:
    return isinstance(cause, HTTPException) and not isinstance(cause, ConnectionError | IncompleteRead)


def check_url(url: object, *, has_ca: bool, option: Option) -> None:
    """Reject anything that is not a server's address or that contains credentials."""
    rule, remedy = "a URL such as https://host/path", "correct it"
    if not isinstance(url, str) or not re.fullmatch(r"[!-~]+", url):
        raise option("url", f"{rule}, in ASCII", type(url).__name__, remedy)
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  raises if it is not a number
    except ValueError as error:
        raise option("url", rule, "an invalid URL", remedy) from error
    if "@" in parts.netloc or holds_credentials(url):
        remedy = 'write headers={"Authorization": sw.secret("TOKEN")}'
        raise option("url", "a URL without credentials", shown_url(url), remedy)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.fragment:
        raise option("url", rule, repr(shown_url(url)), remedy)
    if has_ca and parts.scheme != "https":
        raise option("ca", "used only with an https:// URL", parts.scheme, "write https:// for TLS")


def checked_headers(headers: object, *, option: Option) -> dict[str, str | Secret]:
    """Return the headers if they may be sent; confidential ones must be secrets."""
    if headers is None:
        return {}
    if not isinstance(headers, Mapping):
        remedy = 'write headers={"Authorization": sw.secret("TOKEN")}'
        raise option("headers", "a dictionary of names and values", type(headers).__name__, remedy)
    for name, value in headers.items():
        if not isinstance(name, str) or not _HEADER_NAME.fullmatch(name) or name.lower() in _OURS:
            rule = "valid HTTP header names that the sink does not set itself"
            raise option("headers", rule, repr(name), "choose another name")
        if (name.lower() in _CONFIDENTIAL or is_confidential(name)) and not isinstance(value, Secret):
            raise refuse("SECRET_EXPECTED", what=f"headers[{name!r}]")
        if not isinstance(value, Secret) and not (isinstance(value, str) and _HEADER_VALUE.fullmatch(value)):
            got = f"an invalid value for {name!r}"
            raise option("headers", "single lines of Latin-1 text, or secrets", got, "correct the value")
    return dict(headers)


def revealed_headers(headers: Mapping[str, str | Secret]) -> dict[str, str]:
    """Return the headers with secrets revealed."""
    revealed = {name: value.reveal() if isinstance(value, Secret) else value for name, value in headers.items()}
    for name, value in revealed.items():
        if not _HEADER_VALUE.fullmatch(value):
            raise fault("HTTP_HEADER_VALUE", name=name, secret=headers[name])
    return revealed


def hidden_values(values: list[str], url: str) -> tuple[str, ...]:
    """Return the texts never to be shown: secrets, including the token of "Bearer …", and what `shown_url` hides.

    The longest is first, since it may contain another.
    """
    shortest = len("Bearer") + 1
    words = {word for value in values for word in (value, *(w for w in value.split() if len(w) >= shortest)) if word}
    words |= {part for part in re.split(r"[/?&;=]", url)[4:] if len(part) >= shortest}
    return tuple(sorted(words, key=len, reverse=True))
