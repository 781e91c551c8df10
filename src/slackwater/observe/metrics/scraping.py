"""What `--metrics-port` serves: the metrics of a collector, at every path."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from slackwater.observe.metrics.prometheus import TEXT, Collector, exposition


def scraped(collector: Collector) -> Starlette:
    """Return the application that serves a collector's metrics."""

    async def answer(request: Request) -> Response:  # noqa: ARG001  every request gets the same answer
        return Response(exposition(collector), media_type=TEXT)

    return Starlette(routes=[Route("/{path:path}", answer)])
