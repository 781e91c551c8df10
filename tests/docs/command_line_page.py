"""`docs/reference/command-line.md`, made from every `--help`: `python -m tests.docs.command_line_page` writes it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import typer.main

from slackwater.tools.cli.main import app
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "reference" / "command-line.md"

_HEAD = """\
# Command line

Every command and its options, as `slackwater COMMAND --help` prints them. (`python -m tests.docs.command_line_page`
generates this page from the commands; a test checks that it is current.)
"""


def page() -> str:
    """Return the page as it should be."""
    root = typer.main.get_command(app)
    return "\n".join([_HEAD, *(_section(command, context) for command, context in _commands(root, None, "slackwater"))])


def _commands(command: Any, parent: Any, name: str) -> Iterator[tuple[Any, Any]]:  # noqa: ANN401  Click ships no types of its own here
    """Yield a command and those below it, each with the context that `--help` runs in."""
    context = type(command).context_class(command, info_name=name, parent=parent)
    yield command, context
    for each in command.list_commands(context) if hasattr(command, "list_commands") else ():
        yield from _commands(command.get_command(context, each), context, each)


def _section(command: Any, context: Any) -> str:  # noqa: ANN401
    """Return one command: usage, description, examples, arguments, options, and the commands below it."""
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    text, _, examples = inspect.cleandoc(command.help or "").partition("[dim]Examples:[/dim]")
    parts = [f"## `{context.command_path}`", f"    {usage}", text.strip()]
    if examples:
        parts += ["Examples:", "\n".join(f"    {line.strip()}" for line in examples.splitlines() if line.strip())]
    if below := [command.get_command(context, name) for name in getattr(command, "commands", ())]:
        lines = [f"| `{each.name}` | {_cell(each.get_short_help_str(limit=1_000))} |" for each in below]
        parts += ["\n".join(["| command | |", "|---|---|", *lines])]
    params = [param for param in command.get_params(context) if param.name != "help"]
    for kind in ("argument", "option"):
        if records := [param.get_help_record(context) for param in params if param.param_type_name == kind]:
            rows = [f"| `{name}` | {_cell(text)} |" for name, text in records]
            parts += ["\n".join([f"| {kind} | |", "|---|---|", *rows])]
    return "\n\n".join(parts) + "\n"


def _cell(text: str) -> str:
    """Return text that may stand in a table: pipes and angle brackets mean themselves."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
