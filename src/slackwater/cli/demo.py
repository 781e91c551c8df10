"""`slackwater demo`: a live stream with everything that goes wrong, and an account of every record."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer


def demo(
    *,
    seconds: Annotated[float, typer.Option(min=1, max=600, help="How long the stream runs.")] = 60,
    rate: Annotated[int, typer.Option(min=10, max=100_000, help="Purchases a second.")] = 3_000,
    folder: Annotated[
        Path, typer.Option(help="Where log, results and checkpoint go; a folder of an earlier demo is wiped.")
    ] = Path("demo-run"),
    seed: Annotated[int, typer.Option(help="The dice: the same seed makes the same purchases.")] = 17,
    sink: Annotated[
        Literal["kafka", "postgres", "delta", "redis", "http"] | None,
        typer.Option(
            metavar="NAME",
            help="Where purchases per user and minute go as well: kafka, postgres, delta, redis or http.",
        ),
    ] = None,
) -> None:
    """Run a live stream with late, broken and future records, and account for every single one.

    Customers buy; some phones are offline and send their purchases minutes or
    hours later, some records arrive broken, and one phone's clock is ahead.
    Purchases per user per minute and active users are computed live. Then every
    record is accounted for, and every window is computed again from the raw log.
    The exit code is 0 only if nothing is missing and nothing differs.

    With --sink the results also go to a Kafka, Postgres or Redis server that is
    started on this machine, to a Delta table or over HTTP; what a stock client
    reads there is part of the account.

    [dim]Examples:[/dim]

      slackwater demo --sink postgres --seconds 20
    """
    from slackwater.demo.show import run_demo  # noqa: PLC0415  `--help` should not wait for Spark

    account = run_demo(folder=folder, seconds=seconds, rate=rate, seed=seed, sink=sink)
    raise typer.Exit(0 if account.is_balanced else 1)
