"""`slackwater demo`: a live stream with everything that goes wrong, and an account of every record."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from slackwater.tools.cli.options import Port, at_home


def demo(
    *,
    seconds: Annotated[float, typer.Option(min=1, max=600, help="How long the stream runs.")] = 60,
    rate: Annotated[int, typer.Option(min=10, max=100_000, help="Purchases per second.")] = 3_000,
    folder: Annotated[
        Path,
        typer.Option(callback=at_home, help="Folder for log, results and checkpoint; an earlier demo in it is wiped."),
    ] = Path("demo-run"),
    seed: Annotated[int, typer.Option(help="Random seed; the same seed generates the same purchases.")] = 17,
    sink: Annotated[
        Literal["kafka", "postgres", "delta", "redis", "http"] | None,
        typer.Option(
            metavar="NAME",
            help="Also write purchases per user and minute to kafka, postgres, delta, redis or http.",
        ),
    ] = None,
    page: Annotated[bool, typer.Option("--page/--no-page", help="Show the stream live in a browser.")] = True,
    port: Port = 0,
    show_data: Annotated[
        bool, typer.Option("--show-data", help="Show the contents of late rows and dead letters on the page.")
    ] = False,
) -> None:
    """Run a live stream with late, broken and future records, and account for each.

    Customers buy. Some phones are offline and send their purchases minutes or
    hours later, some records arrive broken, and one phone's clock is ahead.
    The pipeline computes purchases per user per minute and active users, live.
    Then the demo accounts for every record and recomputes every window from the
    raw log. The exit code is 0 only if nothing is missing and nothing differs.
    Open the address that it prints in a browser, and watch the watermark move.

    With --sink, results also go to a local Kafka, Postgres or Redis server, which
    the demo starts, to a Delta table, or over HTTP. The demo reads them back with
    a stock client and compares them too.

    [dim]Examples:[/dim]

      slackwater demo --sink postgres --seconds 20
    """
    from slackwater.tools.demo.show import run_demo  # noqa: PLC0415  `--help` should not wait for Spark

    place = port if page else None
    account = run_demo(
        folder=folder, seconds=seconds, rate=rate, seed=seed, sink=sink, page_port=place, show_data=show_data
    )
    raise typer.Exit(0 if account.is_balanced else 1)
