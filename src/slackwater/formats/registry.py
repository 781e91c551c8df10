"""A schema registry client: the part of Confluent's REST API that reading and writing records needs.

A registry's answer for an id, a version of a subject or a registered schema never changes, so it is cached for the
life of the process. Credentials are revealed only to make a request, and never appear in a message or a `repr`.
"""

from __future__ import annotations

import base64
import http.client
import json
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Protocol, runtime_checkable

from slackwater.base.backoff import Backoff
from slackwater.base.durations import Duration, duration_ms
from slackwater.base.errors import fault, refuse
from slackwater.base.secrets import shown_url

SCHEMA_UNKNOWN: Final = 40403
SUBJECT_UNKNOWN: Final = 40401
VERSION_UNKNOWN: Final = 40402

_CONTENT: Final = "application/vnd.schemaregistry.v1+json"
_ATTEMPTS: Final = 4
_BACKOFF: Final = Backoff(first_s=0.2, longest_s=2.0, factor=4.0, jitter=0.0)
_PASSING: Final = frozenset({408, 429, 500, 502, 503, 504})
"""Status codes that are worth another attempt."""
_DENIED: Final = frozenset({401, 403})
_OK: Final = 200
_NOT_FOUND: Final = 404
_CONFLICT: Final = 409
_UNPROCESSABLE: Final = 422
_MOST_BYTES: Final = 16 << 20
_LARGEST_ID: Final = 2**31 - 1
_ADDRESS: Final = re.compile(r"https?://([\w.-]+|\[[0-9a-fA-F:.]+\])(:\d{1,5})?(/[^\s?#@;]*)?", re.ASCII)


@runtime_checkable
class Revealing(Protocol):
    """A secret whose value is read only when needed."""

    def reveal(self) -> str:
        """Return the secret's value."""


Auth = Revealing | tuple[str, Revealing]
"""A bearer token, or a user and a password; as secrets, because a definition is sent to the executors."""


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A reference from one schema to another."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, kw_only=True)
class RegisteredSchema:
    """A schema in the registry; `version` is its version under the subject it was requested by, if any."""

    id: int
    text: str
    kind: str = "AVRO"
    references: tuple[Reference, ...] = ()
    version: int | None = None


_known: dict[tuple[str, str, str], RegisteredSchema] = {}
_registered: dict[tuple[str, str, str, str, tuple[Reference, ...]], int] = {}


@dataclass(frozen=True, kw_only=True)
class Registry:
    """A schema registry and its credentials."""

    url: str
    auth: Auth | None = field(default=None, repr=False, hash=False)
    timeout_ms: int = 10_000

    def schema(self, schema_id: int) -> RegisteredSchema | None:
        """Return the schema with an id, or None if the registry does not have it."""
        if not 0 <= schema_id <= _LARGEST_ID:
            return None
        return self._kept(f"/schemas/ids/{schema_id}", {SCHEMA_UNKNOWN}, schema_id=schema_id)

    def version(self, subject: str, version: int) -> RegisteredSchema | None:
        """Return one version of a subject, or None if the registry does not have it."""
        return self._kept(_versions(subject, version), {SUBJECT_UNKNOWN, VERSION_UNKNOWN})

    def latest(self, subject: str) -> RegisteredSchema:
        """Return the latest version of a subject; refuse a subject that is not in the registry."""
        path = _versions(subject, "latest")
        found = self._ask(path, {SUBJECT_UNKNOWN, VERSION_UNKNOWN})
        if found is None:
            raise refuse("REGISTRY_SUBJECT", subject=subject, url=self)
        return self._parsed(path, found, None)

    def register(self, subject: str, schema: str, references: Sequence[Reference] = ()) -> int:
        """Register an Avro schema under a subject, unless it is already registered, and return its id.

        A schema that violates the subject's compatibility rule and a user without permission to register schemas are
        permanent errors; a registry that does not answer is a transient one.
        """
        key = (self.url, self._user, subject, schema, tuple(references))
        if key not in _registered:
            path = _versions(subject)
            body: dict[str, Any] = {"schema": schema}
            if references:
                body["references"] = [asdict(reference) for reference in references]
            answer = self._ask(path, set(), body=body)
            if answer is None or type(answer.get("id")) is not int or not 0 <= answer["id"] <= _LARGEST_ID:
                raise self._strange(path, "a response without an id")
            _registered[key] = int(answer["id"])
        return _registered[key]

    def __str__(self) -> str:
        return shown_url(self.url)

    @property
    def _user(self) -> str:
        """The user, since users may see different schemas; empty for a token, which does not identify the user."""
        return self.auth[0] if isinstance(self.auth, tuple) else ""

    def _kept(self, path: str, missing: set[int], schema_id: int | None = None) -> RegisteredSchema | None:
        key = (self.url, self._user, path)
        if key not in _known:
            found = self._ask(path, missing)
            if found is None:
                return None
            _known[key] = self._parsed(path, found, schema_id)
        return _known[key]

    def _parsed(self, path: str, answer: dict[str, Any], schema_id: int | None) -> RegisteredSchema:
        try:
            return RegisteredSchema(
                id=int(answer["id"]) if schema_id is None else schema_id,
                text=str(answer["schema"]),
                kind=str(answer.get("schemaType") or "AVRO"),
                references=tuple(
                    Reference(name=str(each["name"]), subject=str(each["subject"]), version=int(each["version"]))
                    for each in answer.get("references") or ()
                ),
                version=answer.get("version"),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise self._strange(path, f"a response without a schema ({type(error).__name__} {error})") from None

    def _ask(self, path: str, missing: set[int], body: dict[str, Any] | None = None) -> dict[str, Any] | None:
        """Return the registry's answer, or None if it reports one of the codes in `missing`; retry transient errors."""
        cause = ""
        for _ in _BACKOFF.attempts(_ATTEMPTS):
            try:
                status, text = self._request(path, body)
            except (OSError, http.client.HTTPException) as error:
                cause = f"{type(error).__name__}: {getattr(error, 'reason', None) or error}"
                continue
            if status not in _PASSING:
                return self._judged(path, status, text, missing, writes=body is not None)
            cause = f"HTTP {status}"
        raise fault("REGISTRY_UNREACHABLE", url=self, attempts=_ATTEMPTS, cause=cause[:200])

    def _judged(self, path: str, status: int, text: bytes, missing: set[int], *, writes: bool) -> dict[str, Any] | None:
        if status in _DENIED:
            if writes:
                raise fault("REGISTRY_WRITE_DENIED", url=self, path=path, status=status)
            raise fault("REGISTRY_DENIED", url=self, path=path, status=status)
        try:
            answer = json.loads(text)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise self._strange(path, f"HTTP {status} without a JSON object")
        if status == _NOT_FOUND and answer.get("error_code") in missing:
            return None
        if writes and status == _CONFLICT:
            raise fault("REGISTRY_INCOMPATIBLE", url=self, path=path, cause=f"{answer.get('message')!s:.500}")
        if writes and status == _UNPROCESSABLE:
            raise fault("REGISTRY_REFUSED", url=self, path=path, cause=f"{answer.get('message')!s:.500}")
        if status != _OK:
            raise self._strange(path, f"HTTP {status}, {str(answer.get('message'))!r:.200}")
        return answer

    def _request(self, path: str, body: dict[str, Any] | None) -> tuple[int, bytes]:
        headers = {"Accept": f"{_CONTENT}, application/json"} | self._authorization()
        data = None
        if body is not None:
            headers["Content-Type"] = _CONTENT
            data = json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, headers=headers)  # noqa: S310  http(s): checked
        opener = urllib.request.build_opener(_NoRedirects)
        try:
            with opener.open(request, timeout=self.timeout_ms / 1_000) as response:
                return response.status, response.read(_MOST_BYTES)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read(_MOST_BYTES)

    def _authorization(self) -> dict[str, str]:
        if self.auth is None:
            return {}
        if isinstance(self.auth, tuple):
            pair = f"{self.auth[0]}:{self.auth[1].reveal()}"
            return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
        token = self.auth.reveal()
        if not token.isascii() or not token.isprintable():
            # The HTTP library would include such a token in its error message.
            raise fault("REGISTRY_TOKEN", url=self)
        return {"Authorization": f"Bearer {token}"}

    def _strange(self, path: str, got: str) -> Exception:
        return fault("REGISTRY_ANSWER", url=self, path=path, got=got)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Does not follow redirects, which would send the credentials to another server."""

    def redirect_request(self, *_: object) -> None:
        return None


def registry(url: str, *, auth: Auth | None = None, timeout: Duration = "10s") -> Registry:
    """Refer to a schema registry with Confluent's API: `registry("http://registry:8081")`.

    `auth` is a pair of user and password, or a bearer token; passwords and tokens are secrets:
    `auth=("reader", sw.secret("REGISTRY_PASSWORD"))`. The registry is contacted on first use. A failed request is
    tried four times within a few seconds; then the batch fails, and is run again when the job restarts.
    """
    if not isinstance(url, str) or _ADDRESS.fullmatch(url) is None:
        raise refuse("REGISTRY_ADDRESS", got=repr(shown_url(url) if isinstance(url, str) else url))
    if isinstance(auth[-1] if isinstance(auth, tuple) and auth else auth, str):
        raise refuse("SECRET_EXPECTED", what="auth")
    if auth is not None and not _is_auth(auth):
        raise refuse("REGISTRY_AUTH", got=type(auth).__name__)
    return Registry(url=url.rstrip("/"), auth=auth, timeout_ms=duration_ms(timeout, what="registry `timeout`"))


def _is_auth(auth: object) -> bool:
    if isinstance(auth, tuple):
        return len(auth) == len(("user", "password")) and isinstance(auth[0], str) and isinstance(auth[1], Revealing)
    return isinstance(auth, Revealing)


def _versions(subject: str, version: int | str | None = None) -> str:
    path = f"/subjects/{urllib.parse.quote(subject, safe='')}/versions"
    return path if version is None else f"{path}/{version}"
