"""`slackwater`: the command line."""

from __future__ import annotations

import sys
import warnings
from typing import Annotated, TextIO

import typer

from slackwater.cli.bridge import bridge
from slackwater.cli.check import check
from slackwater.cli.dead_letters import dead_letters
from slackwater.cli.demo import demo
from slackwater.cli.explain import explain
from slackwater.cli.kafka import kafka
from slackwater.cli.lateness import lateness
from slackwater.cli.monitor import monitor
from slackwater.cli.page import page
from slackwater.cli.produce import log, produce
from slackwater.cli.run import run
from slackwater.cli.schema import schema
from slackwater.cli.simulate import simulate
from slackwater.cli.state import state
from slackwater.cli.status import status
from slackwater.errors import SlackwaterError, SlackwaterWarning
from slackwater.ground.version import VERSION

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _show_version(*, wanted: bool) -> None:
    if wanted:
        typer.echo(f"slackwater {VERSION}")
        raise typer.Exit


@app.callback()
def options(
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Event-time stream processing on Spark that never loses an event and never counts one twice."""


app.command()(run)
app.command()(explain)
app.command()(status)
app.command()(page)
app.command()(check)
app.command()(state)
app.command()(demo)
app.command()(simulate)
app.command()(lateness)
app.command()(produce)
app.add_typer(kafka, name="kafka")
app.add_typer(log, name="log")
app.add_typer(schema, name="schema")
app.add_typer(dead_letters, name="dead-letters")
app.add_typer(bridge, name="bridge")
app.add_typer(monitor, name="monitor")


def main() -> None:
    """Run the command line; Slackwater's errors and warnings are printed as a sentence, without a traceback."""
    warnings.simplefilter("always", SlackwaterWarning)
    warnings.showwarning = _show_warning
    try:
        app()
    except SlackwaterError as error:
        where = "" if error.where is None else f" ({error.where})"
        sys.stderr.write(f"{error}{where}\n")
        sys.exit(1)


_show_others = warnings.showwarning


def _show_warning(  # noqa: PLR0917  Python's signature
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    if issubclass(category, SlackwaterWarning):
        erased = "\r\033[K" if sys.stderr.isatty() else ""  # a line that is rewritten may be there
        sys.stderr.write(f"{erased}warning: {message}\n")
    else:
        _show_others(message, category, filename, lineno, file, line)
