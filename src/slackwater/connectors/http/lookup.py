"""HTTP as a store: one request per key, or one for hundreds of keys."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from json.decoder import scanstring  # type: ignore[attr-defined]  # the stubs leave it out
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote

from slackwater.base.errors import fault
from slackwater.base.secrets import Secret, shown_url
from slackwater.connectors.http.connection import (
    check_url,
    checked_headers,
    explained,
    hidden_values,
    http_library,
    revealed_headers,
)
from slackwater.connectors.lookup import Answer, Lookup, LookupClient, Question, Refused, RefusedKeysError, Unavailable
from slackwater.connectors.lookup import bad_option as _bad_option
from slackwater.connectors.threads import CONNECT_S, ThreadedClient

_KEY: Final = "{key}"
_NAMES: Final = re.compile(r"\{[^{}]*\}")
_KEYS: Final = 500
_MOST_KEYS: Final = 10_000
_MOST_BYTES: Final = 64 << 20
_MOST_BYTES_OF_A_KEY: Final = 4 << 20
"""Hundreds of keys are asked for at once, and a worker holds all of their answers."""
_READ_BYTES: Final = 1 << 16
_SHOWN: Final = 200
_OK, _NOTHING = (200, 203), (204, 404, 410)
_DENIED: Final = (401, 403, 407)
_PASSING: Final = (408, 409, 425, 429)
_REST_OF_PART: Final = re.compile(r"[^/?#]*")
_OTHER_PLACES: Final = ("", ".", "..")
"""Parts of a path that lead somewhere else."""
_SPACE: Final = re.compile(r"[ \t\r\n]*")


@dataclass(frozen=True, kw_only=True, eq=False)
class HttpLookup(Lookup):
    """A service that answers in JSON."""

    most_at_once = 256
    url: str = field(repr=False)
    headers: Mapping[str, str | Secret]
    batch: int
    ca: str | None

    @property
    def is_by_key(self) -> bool:
        """Whether each key has its own URL."""
        return _KEY in self.url

    def url_of(self, key: Any) -> str:  # noqa: ANN401  of any type that a key may have
        """Return the URL of a key; raises for a key that would change the path.

        Clients and proxies take `..` for the parent, even as %2E%2E, and an empty part for the whole list.
        """
        before, _, after = self.url.partition(_KEY)
        text = quote(str(key), safe="")
        part = f"{before.rpartition('/')[2]}{text}{_REST_OF_PART.findall(after)[0]}"
        if "?" not in before and unquote(part) in _OTHER_PLACES:
            raise RefusedKeysError(f"a key that is part of a path must not be empty, `.` or `..`; got {str(key)!r}")
        return f"{before}{text}{after}"

    def open(self, question: Question) -> LookupClient:
        """Return a client that connects when first used."""
        http_library()
        return _HttpClient(self, question)

    def __str__(self) -> str:
        place, _, _ = self.url.partition(_KEY)
        return f"http GET {shown_url(place)}<key>" if self.is_by_key else f"http POST {shown_url(self.url)}"


class _HttpClient(ThreadedClient):
    """A connection pool, and the threads that use it."""

    def __init__(self, lookup: HttpLookup, question: Question) -> None:
        self._lookup = lookup
        self._question = question
        self.keys_per_request = 1 if lookup.is_by_key else lookup.batch
        at_once, seconds = min(question.concurrency, lookup.most_at_once), question.timeout_ms / 1_000
        super().__init__(at_once)
        revealed = revealed_headers(lookup.headers)
        secrets = [value for name, value in revealed.items() if isinstance(lookup.headers[name], Secret)]
        self._hidden = hidden_values(secrets, lookup.url)
        self._headers = {"Accept": "application/json", "User-Agent": "slackwater", **revealed}
        self._pool = http_library().PoolManager(
            num_pools=1,
            maxsize=at_once,
            # Connecting may take longer than a request: after a timeout, the next request finds the connection open.
            timeout=http_library().Timeout(connect=max(seconds, CONNECT_S), read=seconds),
            retries=False,
            **({"ca_certs": lookup.ca} if lookup.ca else {}),
        )

    def ask(self, keys: Sequence[Any]) -> Mapping[Any, Answer]:
        return self._by_key(keys) if self._lookup.is_by_key else self._by_list(keys)

    def _by_key(self, keys: Sequence[Any]) -> Mapping[Any, Answer]:
        [key] = keys
        status, body = self._response("GET", self._lookup.url_of(key), None)
        return {key: None if status in _NOTHING else body}

    def _by_list(self, keys: Sequence[Any]) -> Mapping[Any, Answer]:
        asked = json.dumps([key if isinstance(key, int | str) else str(key) for key in keys]).encode()
        status, body = self._response("POST", self._lookup.url, asked)
        if status in _NOTHING:
            raise Unavailable(f"HTTP {status}")  # an error of the service, not of the keys
        try:
            parts = members(body.decode())
        except (ValueError, RecursionError):
            why = f"a list of keys is answered with a JSON object of answers by key; got {self._shown(body)}"
            return dict.fromkeys(keys, Refused(why))
        return {key: parts.get(str(key)) for key in keys}

    def _response(self, method: str, url: str, body: bytes | None) -> tuple[int, bytes]:
        """Return the status and body of a usable response; raises for any other."""
        errors = http_library().exceptions
        headers = self._headers if body is None else {**self._headers, "Content-Type": "application/json"}
        until = time.monotonic() + self._question.timeout_ms / 1_000
        try:
            response = self._pool.request(
                method, url, body=body, headers=headers, redirect=False, preload_content=False
            )
            try:
                content = _read(response, until, _MOST_BYTES if body else _MOST_BYTES_OF_A_KEY)
            finally:
                response.release_conn()
        except errors.HTTPError as error:
            raise Unavailable(explained(error, timeout_ms=self._question.timeout_ms)) from error
        self._judge(response.status, content, response.headers.get("Location", ""))
        return response.status, content

    def _judge(self, status: int, content: bytes, location: str) -> None:
        if status in _OK or status in _NOTHING:
            return
        response = f"HTTP {status} {self._shown(content)}".rstrip()
        facts = {"lookup": self._lookup, "step": self._question.step}
        if 300 <= status < 400:  # noqa: PLR2004  HTTP status classes are hundreds
            why = f"{response}, with the address {shown_url(self._hide(location)) or 'none'}"
            raise fault("LOOKUP_REFUSED", why=why, remedy="give the lookup the final address", **facts)
        if status in _DENIED:
            raise fault("LOOKUP_REFUSED", why=response, remedy="correct the credentials in `headers`", **facts)
        if status in _PASSING or not 200 <= status < 500:  # noqa: PLR2004  as above
            raise Unavailable(response)
        raise RefusedKeysError(response)

    def _shown(self, content: bytes) -> str:
        return self._hide(content[: 4 * _SHOWN].decode(errors="replace"))[:_SHOWN]

    def _hide(self, text: str) -> str:
        for value in self._hidden:
            text = text.replace(value, "…")
        return text

    async def close(self) -> None:
        await super().close()
        self._pool.clear()


def _read(response: Any, until: float, most: int) -> bytes:  # noqa: ANN401  the library's own
    """Return a body; raises if it is too long, or still incomplete after the timeout."""
    parts, size = [], 0
    while part := response.read1(_READ_BYTES):
        parts.append(part)
        size += len(part)
        if size > most:
            response.close()
            raise RefusedKeysError(f"an answer has at most {most >> 20} MB; got more")
        if time.monotonic() > until:
            response.close()
            raise Unavailable("the response takes too long")
    return b"".join(parts)


def members(text: str) -> dict[str, bytes | None]:
    """Return the members of a JSON object as written, so that no number is rounded; null is None."""
    decoder = json.JSONDecoder()
    found: dict[str, bytes | None] = {}
    at = _after(text, 0, "{")
    if text.startswith("}", at):
        _end(text, at + 1)
        return found
    while True:
        if not text.startswith('"', at):
            raise ValueError("a member has no name")
        name, at = scanstring(text, at + 1)
        at = _after(text, at, ":")
        value, end = decoder.raw_decode(text, at)
        found[name] = None if value is None else text[at:end].encode()
        at = _space(text, end)
        if text.startswith("}", at):
            _end(text, at + 1)
            return found
        at = _after(text, at, ",")


def _after(text: str, at: int, mark: str) -> int:
    at = _space(text, at)
    if not text.startswith(mark, at):
        raise ValueError(f"no {mark!r} at character {at}")
    return _space(text, at + 1)


def _space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None  # it also matches the empty string
    return found.end()


def _end(text: str, at: int) -> None:
    if _space(text, at) < len(text):
        raise ValueError("there is more than one object")


def http(
    url: str,
    *,
    headers: Mapping[str, str | Secret] | None = None,
    batch: int | None = None,
    ca: str | Path | None = None,
) -> HttpLookup:
    """Look up in a service that answers in JSON: `http("https://host/users/{key}")` or `http("https://host/users")`.

    With `{key}` in the URL, each key is a GET, answered with the output columns as an object, or with 404. Without it,
    up to `batch` keys, by default 500, are a POST of a JSON array, answered with an object of such objects by key. An
    answer of 408, 409, 425, 429 or 5xx is a failed request, and 401, 403, 407 or a redirect ends the job; any other 4xx
    is an error of its key. So is an empty key, `.` or `..` if it would be a whole part of the path.
    """
    check_url(url, has_ca=ca is not None, option=_option)
    if url.count(_KEY) > 1 or (_KEY in url and "/" not in url.partition("://")[2].partition(_KEY)[0]):
        raise _option("url", "an address with {key} once, behind the host", shown_url(url), "correct it")
    if others := [name for name in _NAMES.findall(url) if name != _KEY]:
        raise _option("url", "an address whose only part in braces is {key}", shown_url(url), f"replace {others[0]}")
    if batch is not None and _KEY in url:
        raise _option("batch", "left out if the URL has {key}, as each key is then a request", repr(batch), "remove it")
    batch = _KEYS if batch is None else batch
    if type(batch) is not int or not 1 <= batch <= _MOST_KEYS:
        rule = f"a whole number from 1 to {_MOST_KEYS:,}"
        raise _option("batch", rule, repr(batch), "omit it to use the default")
    return HttpLookup(
        url=url,
        headers=checked_headers(headers, option=_option),
        batch=batch,
        ca=None if ca is None else str(ca),
    )


def _option(what: str, rule: str, got: str, remedy: str) -> Exception:
    return _bad_option("the HTTP lookup", what, rule=rule, got=got, remedy=remedy)
