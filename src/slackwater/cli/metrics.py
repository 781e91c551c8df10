"""Where `slackwater run` sends the figures of its batches: the page, Prometheus, a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path

from slackwater.metrics.monitor import Live, MetricsFile, OnRecord
from slackwater.metrics.prometheus import LOCAL, Collector, exposition, serving
from slackwater.planning.plan import Plan


@contextmanager
def recording(
    plan: Plan,
    *,
    page: tuple[str, int] | None = None,
    port: int | None = None,
    host: str | None = None,
    file: Path | None = None,
    say: Callable[[str], None],
) -> Iterator[OnRecord | None]:
    """Give what takes the records of a run; None if nobody wants them. `page` is the host and the port of the page."""
    takers: list[OnRecord] = []
    with ExitStack() as stack:
        if file is not None:
            takers.append(stack.enter_context(closing(MetricsFile(path=file))).note)
        if page is not None:
            takers += _page(plan, page, stack, say)
        if port is not None:
            collector, address = Collector(), host or LOCAL
            served = stack.enter_context(serving(collector, port=port, host=address))
            takers.append(collector.note)
            say(f"metrics at http://{address}:{served}/metrics")

        def note(live: Live) -> None:
            for take in takers:
                take(live)

        yield note if takers else None


def _page(plan: Plan, place: tuple[str, int], stack: ExitStack, say: Callable[[str], None]) -> list[OnRecord]:
    from slackwater.page.live import LivePage  # noqa: PLC0415  most runs have none

    collector, (host, port) = Collector(), place
    shown = stack.enter_context(LivePage(plan, host=host, port=port, metrics=partial(exposition, collector)))
    say(f"page: {shown.address}")
    return [collector.note, shown.note]
