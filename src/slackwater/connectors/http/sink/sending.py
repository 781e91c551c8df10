"""Sends requests concurrently, each until it is answered: a failed request never causes another to be resent."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

from slackwater.base.backoff import Backoff, came_true
from slackwater.base.errors import fault
from slackwater.base.secrets import shown_url
from slackwater.connectors.delivery import SinkWarning, StoppedWaitingError
from slackwater.connectors.http.connection import explained, http_library
from slackwater.connectors.http.sink.requests import Request
from slackwater.connectors.sink import Unavailable

BACKOFF: Final = Backoff(first_s=0.1, longest_s=15.0)
REPORTED_AFTER_S: Final = 2.0
"""A warning is issued when requests wait longer than this."""
IN_WORK_S: Final = 30.0
"""How long a 409 counts as "this key is being processed", after an attempt without an answer."""
_CONFLICT: Final = 409
_PASSING: Final = frozenset({408, 425, 429})
_DENIED: Final = frozenset({401, 407})
_READ_BYTES: Final = 1 << 16
_SHOWN: Final = 500


@dataclass(frozen=True, kw_only=True)
class Rejection:
    """A request that the receiver has rejected for good."""

    request: Request
    message: str


@dataclass(frozen=True, kw_only=True)
class _Answer:
    status: int
    text: str
    wait_s: float
    location: str


@dataclass(kw_only=True)
class Unaccepted:
    """The requests that were not accepted."""

    rejections: list[Rejection] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    """Why requests were given up, if each is sent at most once."""


@dataclass(kw_only=True)
class RequestSender:
    """Persistent connections to one receiver, and the threads that use them."""

    name: str
    """The receiver, for error messages."""
    url: str
    method: str
    headers: Mapping[str, str] = field(repr=False)
    hidden: tuple[str, ...] = field(repr=False)
    """Values that are never shown, even if the receiver repeats them."""
    concurrency: int
    timeout_ms: int
    patience_ms: int
    sends_once: bool
    ca: str | None
    say_waiting: Callable[[str], str]
    """Returns the text of the warning about waiting requests."""
    is_stopping: Callable[[], bool] = lambda: False
    """Whether the job was asked to stop: waiting requests then give up."""
    _pool: Any = None
    _threads: ThreadPoolExecutor | None = None
    _over: threading.Event = field(default_factory=threading.Event)
    _has_reported: threading.Event = field(default_factory=threading.Event)

    def open(self) -> None:
        """Create the threads and the connection pool, which connects when first used."""
        trust = {"ca_certs": self.ca} if self.ca else {}
        self._pool = http_library().PoolManager(
            num_pools=1,
            maxsize=self.concurrency,
            timeout=self.timeout_ms / 1_000,
            retries=False,
            **trust,
        )
        self._threads = ThreadPoolExecutor(self.concurrency, thread_name_prefix="slackwater-http")

    def send(self, lanes: Iterable[list[Request]], outcome: Unaccepted) -> None:
        """Send all requests, those in a lane one after another, and wait until each is answered.

        Returns with the rejected ones in `outcome`. Raises the error of a lane that failed, preferring one that is not
        transient; the other lanes then stop after their current request.
        """
        assert self._threads is not None, "the sender is open"
        self._over.clear()
        self._has_reported.clear()
        running = [self._threads.submit(self._lane, lane, outcome) for lane in lanes if lane]
        try:
            errors = [future.exception() for future in running]
        finally:
            self._over.set()
        failed = [error for error in errors if error is not None]
        if failed:
            raise min(failed, key=lambda error: isinstance(error, Unavailable))

    def close(self) -> None:
        """End the threads and close the connections."""
        self._over.set()
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)
        if self._pool is not None:
            self._pool.clear()

    def _lane(self, lane: list[Request], outcome: Unaccepted) -> None:
        try:
            for request in lane:
                if self._over.is_set():
                    return
                self._deliver(request, outcome)
        except BaseException:
            self._over.set()
            raise

    def _deliver(self, request: Request, outcome: Unaccepted) -> None:
        errors = http_library().exceptions
        began, pauses, had_no_answer = time.monotonic(), BACKOFF.pauses(), False
        while not self._over.is_set():
            waited_s = time.monotonic() - began
            wait_s = 0.0
            try:
                answer = self._ask(request)
            except errors.HTTPError as error:
                why, had_no_answer = explained(error, timeout_ms=self.timeout_ms), True
            else:
                may_be_in_work = answer.status == _CONFLICT and had_no_answer and waited_s < IN_WORK_S
                if not may_be_in_work and not _is_passing(answer.status):
                    self._judge(answer, request, outcome)
                    return
                why, wait_s = f"HTTP {answer.status} {answer.text}".rstrip(), answer.wait_s
            if self.sends_once:
                outcome.lost.append(why)
                return
            left_s = self.patience_ms / 1_000 - waited_s
            if left_s <= 0:
                raise Unavailable(why)
            if waited_s > REPORTED_AFTER_S and not self._has_reported.is_set():
                self._has_reported.set()
                warnings.warn(self.say_waiting(why), SinkWarning, stacklevel=2)
            self._wait(min(left_s, max(wait_s, next(pauses))))

    def _wait(self, seconds: float) -> None:
        def is_over() -> bool:
            return self._over.is_set() or self.is_stopping()

        if came_true(is_over, within_s=seconds, sleep=self._over.wait) and not self._over.is_set():
            raise StoppedWaitingError

    def _ask(self, request: Request) -> _Answer:
        response = self._pool.request(
            self.method,
            self.url,
            body=request.body,
            headers={**self.headers, "Idempotency-Key": request.key},
            redirect=False,
            preload_content=False,
        )
        try:
            text = response.read(_READ_BYTES)
            if response.read(1):
                response.close()
        finally:
            response.release_conn()
        return _Answer(
            status=response.status,
            text=self._shown(text.decode(errors="replace")),
            wait_s=_retry_after(response.headers.get("Retry-After", "")),
            location=shown_url(self._shown(response.headers.get("Location", "none"))),
        )

    def _judge(self, answer: _Answer, request: Request, outcome: Unaccepted) -> None:
        status = answer.status
        if status < 300:  # noqa: PLR2004  HTTP status classes are hundreds
            return
        if status < 400:  # noqa: PLR2004  as above
            raise fault("HTTP_REDIRECT", sink=self.name, status=status, location=answer.location)
        if status in _DENIED:
            raise fault("HTTP_DENIED", sink=self.name, status=status, response=answer.text or "no details")
        outcome.rejections.append(Rejection(request=request, message=f"HTTP {status} {answer.text}".rstrip()))

    def _shown(self, text: str) -> str:
        for value in self.hidden:
            text = text.replace(value, "…")
        return text[:_SHOWN]


def _is_passing(status: int) -> bool:
    return status in _PASSING or not 200 <= status < 500  # noqa: PLR2004  HTTP status classes are hundreds


def _retry_after(value: str) -> float:
    """Return the seconds to wait according to `Retry-After`, a number or a date; 0 if it cannot be parsed."""
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        until = parsedate_to_datetime(value)
    except ValueError:
        return 0.0
    return max(0.0, (until.replace(tzinfo=until.tzinfo or UTC) - datetime.now(UTC)).total_seconds())
