"""The HTTP client, an optional dependency, and its errors in plain text."""

from __future__ import annotations

from http.client import HTTPException, IncompleteRead
from types import ModuleType

from slackwater.base.durations import render_ms
from slackwater.base.errors import fault


def http_library() -> ModuleType:
    """Return the module `urllib3`, or raise an error that says how to install it."""
    try:
        import urllib3  # noqa: PLC0415  see the top
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
