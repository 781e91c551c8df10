"""The destinations of a job's figures: the page, Prometheus, OTLP, a file."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from slackwater.base.errors import RunError, notice
from slackwater.base.secrets import shown_url
from slackwater.observe.metrics.monitor import Live, MetricsFile, OnRecord
from slackwater.observe.metrics.otlp import OtlpExport, OtlpWarning, endpoint_in
from slackwater.observe.metrics.prometheus import LOCAL, Collector, exposition, serving
from slackwater.plan.plan import Plan

if TYPE_CHECKING:
    from slackwater.observe.page.live import LivePage


@dataclass(kw_only=True)
class Takers:
    """The receivers of a run's figures."""

    of_runs: list[OnRecord] = field(default_factory=list)
    """Receivers that are also called when a run begins."""
    of_records: list[OnRecord] = field(default_factory=list)
    export: OtlpExport | None = None
    page: LivePage | None = None

    @property
    def on_run(self) -> OnRecord | None:
        """The callback for the start of a run; None if there are no receivers."""
        takers = self.of_runs if self.page is None else [*self.of_runs, self.page.begin]
        return partial(self._hand_on, takers) if takers else None

    @property
    def on_record(self) -> OnRecord | None:
        """The callback for each batch; None if there are no receivers."""
        return partial(self._hand_on, self.of_runs + self.of_records) if self.of_runs or self.of_records else None

    def end(self, *, is_finished: bool) -> None:
        """Show on the page that the run has ended without an error."""
        if self.page is not None:
            self.page.end(is_finished=is_finished)

    def on_phase(self, name: str) -> None:
        """Show a phase of the start on the page."""
        if self.page is not None:
            self.page.phase(name)

    def _hand_on(self, takers: list[OnRecord], live: Live) -> None:
        if self.export is not None:
            live = replace(live, export_failures=self.export.failures)
        for take in takers:
            take(live)


@contextmanager
def recording(
    plan: Plan,
    *,
    page: tuple[str, int] | None = None,
    port: int | None = None,
    host: str | None = None,
    file: Path | None = None,
    otlp: str | None = None,
    environ: Mapping[str, str] = os.environ,
    say: Callable[[str], None],
) -> Iterator[Takers]:
    """Open the receivers of a run's records. `page` is the host and port of the page, `otlp` an endpoint.

    Without `otlp`, the endpoint in OpenTelemetry's variables in `environ` is used, if there is one.
    """
    takers = Takers()
    with ExitStack() as stack:
        if file is not None:
            takers.of_records.append(stack.enter_context(closing(MetricsFile(path=file))).note)
        if page is not None:
            _page(plan, page, takers, stack, say)
        if port is not None:
            collector, address = Collector(), host or LOCAL
            served = stack.enter_context(serving(collector, port=port, host=address))
            takers.of_runs.append(collector.note)
            say(f"metrics at http://{address}:{served}/metrics")
        takers.export = _export(otlp, environ)
        if takers.export is not None:
            takers.of_runs.append(stack.enter_context(takers.export).note)
            say(f"metrics to {shown_url(takers.export.endpoint)}")
        yield takers


def _page(plan: Plan, place: tuple[str, int], takers: Takers, stack: ExitStack, say: Callable[[str], None]) -> None:
    from slackwater.observe.page.live import LivePage  # noqa: PLC0415  most runs have none

    collector, (host, port) = Collector(), place
    shown = stack.enter_context(LivePage(plan, host=host, port=port, metrics=partial(exposition, collector)))
    takers.page = shown
    say(f"page: {shown.printed}")
    takers.of_runs.append(collector.note)
    takers.of_records.append(shown.note)


def _export(endpoint: str | None, environ: Mapping[str, str]) -> OtlpExport | None:
    """Return the export to an endpoint. An endpoint from the environment must not keep the job from running."""
    if endpoint is not None:
        return OtlpExport(endpoint=endpoint)
    try:
        found = endpoint_in(environ)
        return None if found is None else OtlpExport(endpoint=found)
    except RunError as error:
        warnings.warn(notice("OTLP_SKIPPED", cause=error.message), OtlpWarning, stacklevel=2)
        return None
