"""The HTTP client, an optional dependency, and its errors in plain text."""

from __future__ import annotations

from types import ModuleType

from slackwater.errors import fault
from slackwater.ground.durations import render_ms


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
    return f"TLS failed: {error}" if isinstance(error, errors.SSLError) else "the connection was closed"
