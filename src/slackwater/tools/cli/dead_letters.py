"""`slackwater dead-letters list | show | stats | retry`: inspect and retry records that could not be processed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import polars as pl
import typer
from rich.console import Console

from slackwater.base.errors import counted
from slackwater.tools.cli.options import at_home
from slackwater.tools.cli.progress import Counter
from slackwater.tools.dead_letters.ledger import Book, ledger_path, read_ledger
from slackwater.tools.dead_letters.places import Where, where_of
from slackwater.tools.dead_letters.reading import scan_letters
from slackwater.tools.dead_letters.repair import load_repair
from slackwater.tools.dead_letters.retry import RetryPlan, open_retry, plan_retry, target_of
from slackwater.tools.dead_letters.selecting import Filters, only_letter, since_time
from slackwater.tools.dead_letters.text import By, count_by, letter_text, print_letters, print_stats, time_text

dead_letters = typer.Typer(help="Inspect, repair and retry records that could not be processed.", no_args_is_help=True)
_WIDTH: Final = 160
_LEAST_WIDTH: Final = 120
_SHOWN: Final = 20
Place = Annotated[str, typer.Argument(metavar="WHERE", help="Folder of sw.sinks.files, or kafka://SERVERS/TOPIC.")]
Reason = Annotated[str | None, typer.Option(help="Only letters with this reason, such as malformed.")]
Step = Annotated[str | None, typer.Option(help="Only letters from this step, such as orders.decode.")]
Source = Annotated[
    str | None, typer.Option(metavar="GLOB", help="Only letters from matching sources, such as '*/phones/*'.")
]
Since = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Only letters since then: 2026-03-01T12:00 (UTC), or 2h for the last two hours."),
]
LedgerFile = Annotated[
    Path | None,
    typer.Option(
        "--ledger",
        callback=at_home,
        help="Ledger of retries; default _retried.jsonl in the folder, or .slackwater/retried-TOPIC.jsonl.",
    ),
]


@dead_letters.command("list")
def list_letters(
    where: Place,
    *,
    reason: Reason = None,
    step: Step = None,
    source: Source = None,
    since: Since = None,
    limit: Annotated[int, typer.Option(min=1, help="Number of letters to list, the newest ones.")] = 20,
    ledger: LedgerFile = None,
) -> None:
    """List dead letters, newest last, with abbreviated ids and whether they were retried.

    [dim]Examples:[/dim]

      slackwater dead-letters list out/dead_letters

      slackwater dead-letters list out/dead_letters --reason malformed --since 2h

      slackwater dead-letters list kafka://localhost:9092/orders.dead --limit 100
    """
    place, filters = _asked(where, reason=reason, step=step, source=source, since=since)
    book = read_ledger(ledger_path(place, ledger))
    columns = ("id", "processed_at", "partition", "offset", "step", "reason", "message")
    wanted = scan_letters(place).filter(filters.expression()).select(columns)
    found = wanted.select(pl.len()).collect().item()
    if not found:
        typer.echo(f"no matching dead letters in {place}")
        return
    shown = wanted.sort("processed_at", "partition", "offset", maintain_order=True).tail(limit).collect()
    print_letters(_with_retries(shown, book), _console())
    if found > shown.height:
        typer.echo(f"the newest {shown.height:,} of {found:,}; --limit shows more")


@dead_letters.command()
def show(
    where: Place,
    letter: Annotated[str, typer.Argument(metavar="ID", help="The id, or an unambiguous prefix.")],
    *,
    ledger: LedgerFile = None,
) -> None:
    """Show one dead letter in full: formatted JSON, plain text, or hexadecimal.

    [dim]Examples:[/dim]

      slackwater dead-letters show out/dead_letters 3f8a6c1d
    """
    place = where_of(where, what="WHERE")
    book = read_ledger(ledger_path(place, ledger))
    found = only_letter(scan_letters(place), letter, where=place)
    typer.echo(letter_text(found, _fate(str(found["id"]), book)), nl=False)


@dead_letters.command("stats")
def count_letters(
    where: Place,
    *,
    by: Annotated[By, typer.Option(help="What to group by.")] = "reason",
    reason: Reason = None,
    step: Step = None,
    source: Source = None,
    since: Since = None,
) -> None:
    """Count dead letters by reason, step, source or hour, with first and last time and an example.

    [dim]Examples:[/dim]

      slackwater dead-letters stats out/dead_letters

      slackwater dead-letters stats out/dead_letters --by hour --reason malformed
    """
    place, filters = _asked(where, reason=reason, step=step, source=source, since=since)
    counts = count_by(scan_letters(place).filter(filters.expression()), by)
    if not counts.height:
        typer.echo(f"no matching dead letters in {place}")
        return
    print_stats(counts, by, _console())
    typer.echo(f"{counted(int(counts['letters'].sum()), 'dead letter')} in {place}")


@dead_letters.command()
def retry(
    where: Place,
    *,
    to: Annotated[str, typer.Option(metavar="TARGET", help="Log of JSON lines, or kafka://SERVERS/TOPIC.")],
    repair: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.py:FUNCTION", help="Function of (payload, letter) that returns bytes, or None to skip."
        ),
    ] = None,
    reason: Reason = None,
    step: Step = None,
    source: Source = None,
    since: Since = None,
    ledger: LedgerFile = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Repair and report, but send nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Send dead letters back to the source, optionally repaired; each record once.

    A ledger records what was sent, so rerunning the command sends nothing twice, even after a crash.
    The exit code is 1 if a letter could not be sent.

    [dim]Examples:[/dim]

      slackwater dead-letters retry out/dead_letters --to data/orders --dry-run

      slackwater dead-letters retry out/dead_letters --to data/orders --reason malformed --repair repair.py:repair

      slackwater dead-letters retry out/dead_letters --to kafka://localhost:9092/orders --since 1d --yes
    """
    place, filters = _asked(where, reason=reason, step=step, source=source, since=since)
    target = where_of(to, what="--to")
    path = ledger_path(place, ledger)
    repair_record = None if repair is None else load_repair(repair)
    if dry_run:
        sender = target_of(target)
        sender.check()
        plan = plan_retry(place, sender, path, filters, repair_record)
        _tell(plan)
        typer.echo(f"would send {counted(plan.letters.height, 'record')} to {target}; nothing was sent")
    else:
        with open_retry(place, target, path) as opened:
            plan = opened.plan(filters, repair_record)
            _tell(plan)
            if plan.letters.height:
                if not yes:
                    typer.confirm(f"send {counted(plan.letters.height, 'record')} to {target}?", abort=True)
                counter = Counter("sent")
                sent = opened.send(plan, on_progress=counter.update)
                counter.end(f"sent {counted(sent, 'record')} to {target}; recorded in {path}")
            else:
                typer.echo("nothing to send")
    if plan.left:
        raise typer.Exit(code=1)


def _tell(plan: RetryPlan) -> None:
    for count, words in (
        (plan.before, "already sent"),
        (plan.siblings, "skipped: another letter of the same record is sent"),
        (plan.declined, "skipped by the repair function"),
        (len(plan.left), "cannot be sent:"),
    ):
        if count:
            typer.echo(f"{count:,} {words}")
    for left in plan.left[:_SHOWN]:
        typer.echo(f"  {left}")
    if len(plan.left) > _SHOWN:
        typer.echo(f"  … and {len(plan.left) - _SHOWN:,} more")


def _asked(
    where: str, *, reason: str | None, step: str | None, source: str | None, since: str | None
) -> tuple[Where, Filters]:
    moment = None if since is None else since_time(since)
    return where_of(where, what="WHERE"), Filters(reason=reason, step=step, source=source, since=moment)


def _with_retries(letters: pl.DataFrame, book: Book) -> pl.DataFrame:
    known = letters.join(book.retried, on="id", how="left", maintain_order="left")
    return known.with_columns(unsettled=pl.col("id").is_in(book.unsettled))


def _fate(letter: str, book: Book) -> str:
    if letter in book.unsettled:
        return "unsettled: a retry was interrupted; the next one finds out"
    times = book.retried.filter(pl.col("id") == letter)["retried"]
    return time_text(times[0]) if len(times) else "no"


def _console() -> Console:
    """Return the console; a narrow terminal wraps lines, and a file or a pipe gets wide ones, so that no id is cut."""
    console = Console()
    return Console(width=max(_LEAST_WIDTH, console.width) if console.is_terminal else _WIDTH)
