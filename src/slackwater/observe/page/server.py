"""The server of the page: a thread next to the job, on the loopback by default."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from slackwater.base.errors import fault
from slackwater.observe.metrics.page_token import PAGE_TOKEN, kept_token, page_token
from slackwater.observe.page.job_feed import JobFeed

if TYPE_CHECKING:
    from slackwater.observe.page.app import Page

_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


class PageServer:
    """Serves feeds at `address` until it is closed."""

    def __init__(
        self,
        feeds: Sequence[JobFeed],
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        metrics: Callable[[], bytes] | None = None,
    ) -> None:
        is_local = host in _LOOPBACK
        token = None if is_local else page_token()
        self._kept = None if is_local else kept_token()
        try:
            from slackwater.observe.metrics.http_server import HttpServer, listening  # noqa: PLC0415  only a page needs it

            page = self._page(feeds, token, metrics)
        except ModuleNotFoundError as error:
            raise fault("PAGE_PACKAGES", package=error.name) from error
        self._feeds = feeds
        try:
            listener = listening(host, port)
        except (OSError, OverflowError) as error:
            raise fault("PAGE_PORT", host=host, port=port, cause=error) from error
        bound = listener.getsockname()[1]
        hosts = [*_LOOPBACK, "[::1]"] if is_local else ["*"]
        self._server = HttpServer(page.application(hosts), listener, name="slackwater-page")
        shown = f"[{host}]" if ":" in host else host
        self.address = f"http://{shown}:{bound}/" + ("" if token is None else f"?token={token}")

    @property
    def printed(self) -> str:
        """The address for the terminal and logs: a token that the user keeps is not repeated there."""
        return self.address if self._kept is None else self.address.replace(self._kept, f"<{PAGE_TOKEN.name}>")

    def close(self) -> None:
        """Stop serving."""
        for feed in self._feeds:
            feed.dismiss()
        self._server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _page(self, feeds: Sequence[JobFeed], token: str | None, metrics: Callable[[], bytes] | None) -> Page:
        """Return the page that is served."""
        from slackwater.observe.page.app import Page  # noqa: PLC0415  only a page needs its packages

        return Page(feeds, token=token, metrics=metrics)
