"""The token of a page that is not limited to the loopback: the user's own, or a new one for each start."""

from __future__ import annotations

import re
import secrets
from typing import Final

from slackwater.base.errors import fault
from slackwater.base.secrets import Secret

PAGE_TOKEN: Final = Secret("SLACKWATER_PAGE_TOKEN")
_LEAST: Final = 16
"""The minimum length of a token; shorter ones can be guessed."""
_USABLE: Final = re.compile(rf"[A-Za-z0-9_-]{{{_LEAST},}}")
"""Tokens that need no escaping in an address."""


def kept_token() -> str | None:
    """Return the user's own token, or None; reject a weak one. It is never shown."""
    token = PAGE_TOKEN.reveal_if_given()
    if token is not None and not _USABLE.fullmatch(token):
        got = f"{len(token)} characters" if len(token) < _LEAST else "other characters"
        raise fault("PAGE_TOKEN", name=PAGE_TOKEN.name, least=_LEAST, got=got)
    return token


def page_token() -> str:
    """Return the user's own token, or a new one."""
    return kept_token() or secrets.token_urlsafe(_LEAST)
