"""`slackwater`: the command line."""

from __future__ import annotations

import sys
import warnings
from typing import Annotated, TextIO

import typer

from slackwater.base.errors import SlackwaterError, SlackwaterWarning
from slackwater.base.terminal_line import above_the_line, leave_the_line
from slackwater.base.version import VERSION
from slackwater.tools.cli.bridge import bridge
from slackwater.tools.cli.check import check
from slackwater.tools.cli.dead_letters import dead_letters
from slackwater.tools.cli.demo import demo
from slackwater.tools.cli.explain import explain
from slackwater.tools.cli.kafka import kafka
from slackwater.tools.cli.lateness import lateness
from slackwater.tools.cli.monitor import monitor
from slackwater.tools.cli.new import new
from slackwater.tools.cli.page import page
from slackwater.tools.cli.produce import log, produce
from slackwater.tools.cli.run import run
from slackwater.tools.cli.schema import schema
from slackwater.tools.cli.simulate import simulate
from slackwater.tools.cli.state import state
from slackwater.tools.cli.status import status

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


app.command()(new)
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
        leave_the_line()
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
        with above_the_line(sys.stderr):
            sys.stderr.write(f"warning: {message}\n")
    else:
        _show_others(message, category, filename, lineno, file, line)
