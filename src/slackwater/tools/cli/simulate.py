"""`slackwater simulate`: the in-memory engine on generated events, as a table, a plot or a page."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from slackwater.base.errors import fault
from slackwater.base.stopping import stopped_by_signals
from slackwater.tools.cli.options import Host, Port, at_home
from slackwater.tools.simulator.controls import CONTROLS, read, written
from slackwater.tools.simulator.presets import DEFAULT, PRESETS, Preset, preset_named
from slackwater.tools.simulator.settings import Settings


def _setting(name: str) -> Any:  # noqa: ANN401  as in Typer
    control = CONTROLS[name]
    metavar = {"duration": "DURATION", "whole": "NUMBER", "choice": "NAME"}[control.kind]
    shown = control.help + (f" One of {', '.join(control.steps)}." if control.kind == "choice" else "")
    return typer.Option(metavar=metavar, help=shown, rich_help_panel=_PANELS[control.group], show_default=False)


_PANELS = {"pipeline": "The pipeline", "events": "The events", "trouble": "What goes wrong"}


def simulate(
    preset: Annotated[str, typer.Argument(help="Preset to start from; --list shows them.")] = DEFAULT,
    *,
    out_of_orderness: Annotated[str | None, _setting("out_of_orderness")] = None,
    allowed_lateness: Annotated[str | None, _setting("allowed_lateness")] = None,
    window: Annotated[str | None, _setting("window")] = None,
    window_size: Annotated[str | None, _setting("window_size")] = None,
    hop: Annotated[str | None, _setting("hop")] = None,
    max_length: Annotated[str | None, _setting("max_length")] = None,
    trigger: Annotated[str | None, _setting("trigger")] = None,
    early_every: Annotated[str | None, _setting("early_every")] = None,
    accumulation: Annotated[str | None, _setting("accumulation")] = None,
    idle_after: Annotated[str | None, _setting("idle_after")] = None,
    max_ahead: Annotated[str | None, _setting("max_ahead")] = None,
    rate: Annotated[str | None, _setting("rate")] = None,
    duration: Annotated[str | None, _setting("duration")] = None,
    batch_every: Annotated[str | None, _setting("batch_every")] = None,
    keys: Annotated[str | None, _setting("keys")] = None,
    partitions: Annotated[str | None, _setting("partitions")] = None,
    delay: Annotated[str | None, _setting("delay")] = None,
    delay_p50: Annotated[str | None, _setting("delay_p50")] = None,
    delay_p99: Annotated[str | None, _setting("delay_p99")] = None,
    seed: Annotated[str | None, _setting("seed")] = None,
    offline_share: Annotated[str | None, _setting("offline_share")] = None,
    offline_for: Annotated[str | None, _setting("offline_for")] = None,
    offline: Annotated[str | None, _setting("offline")] = None,
    stall: Annotated[str | None, _setting("stall")] = None,
    bot_every: Annotated[str | None, _setting("bot_every")] = None,
    ahead_by: Annotated[str | None, _setting("ahead_by")] = None,
    sweep: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=FROM..TO[,STEP]",
            help="Run once for each of several values of a duration; after a comma, a step such as 10s or a number of "
            "values.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(callback=at_home, help="Write the plot of the sweep as SVG to this file.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
    page: Annotated[
        bool, typer.Option("--page", help="Serve the simulator to a browser, and print its address.")
    ] = False,
    port: Port = 0,
    host: Host = "127.0.0.1",
    list_: Annotated[bool, typer.Option("--list", help="List the presets and exit.")] = False,
) -> None:
    """Run the engine on generated events, and show what is on time, corrected or late, and how long results take.

    A preset is a story: phones on a mobile network, a train in a tunnel, a bot, a stalled partition, a clock that runs
    ahead. Without options, the preset runs with and without its remedy, side by side. Every setting has an option; a
    duration that can be switched off also takes `none`. The same settings give the same figures.

    With --page, the live page's picture has sliders above it, and its address contains the settings, so that a
    simulation can be shared.

    [dim]Examples:[/dim]

      slackwater simulate --list

      slackwater simulate tunnel

      slackwater simulate tunnel --allowed-lateness 3m --window hopping --hop 10s

      slackwater simulate phones --sweep out_of_orderness=0s..60s,10s --out slack.svg

      slackwater simulate clock-ahead --page
    """
    given = {name: value for name, value in locals().items() if name in CONTROLS and value is not None}
    console = Console()
    if list_:
        listed = Table.grid(padding=(0, 2))
        for each in PRESETS.values():
            listed.add_row(Text(each.name, style="bold"), each.about)
        console.print(listed, highlight=False)
        return
    chosen = preset_named(preset)
    settings = read(given, chosen.settings)
    if out is not None and sweep is None:
        raise fault("SIMULATE_OUT")
    if page:
        _serve({"preset": preset, **written(settings, chosen.settings)}, port=port, host=host)
    elif sweep is not None:
        _sweep(settings, sweep, out, console, as_json=as_json)
    else:
        _compare(chosen, settings, console, as_json=as_json)


def _compare(chosen: Preset, settings: Settings, console: Console, *, as_json: bool) -> None:
    from slackwater.tools.simulator.running import simulate as run  # noqa: PLC0415  `--help` should not wait
    from slackwater.tools.simulator.text import comparison  # noqa: PLC0415  as above

    changed = written(settings, chosen.settings)
    columns = {_named(changed) or chosen.name: settings}
    if not changed:
        columns[f"with {_named(chosen.remedy)}"] = chosen.remedied
    accounts = [(name, run(each).account) for name, each in columns.items()]
    if as_json:
        typer.echo(json.dumps([{"name": name, **asdict(account)} for name, account in accounts], indent=2))
        return
    console.print(Text(f"The preset {chosen.name}, changed." if changed else chosen.about))
    console.print(comparison(accounts), highlight=False)
    if not changed:
        console.print(Text(f"{chosen.then}\nTo watch it: slackwater simulate {chosen.name} --page"))


def _sweep(settings: Settings, text: str, out: Path | None, console: Console, *, as_json: bool) -> None:
    from slackwater.tools.lateness.picture import check_picture  # noqa: PLC0415  `--help` should not wait
    from slackwater.tools.simulator.picture import write_sweep  # noqa: PLC0415  as above
    from slackwater.tools.simulator.sweep import Sweep, swept  # noqa: PLC0415  as above
    from slackwater.tools.simulator.text import sweep_parts  # noqa: PLC0415  as above

    if out is not None:
        check_picture(out)
    sweep = Sweep.parse(text)
    points = list(swept(settings, sweep))
    if out is not None:
        write_sweep(sweep, points, out)
    if as_json:
        found = [{sweep.control.field: point.value_ms, **asdict(point.account)} for point in points]
        typer.echo(json.dumps(found, indent=2))
        return
    for part in sweep_parts(sweep, points):
        console.print(part, highlight=False)


def _serve(asked: dict[str, str], *, port: int, host: str) -> None:
    from slackwater.tools.simulator.server import SimulatorServer  # noqa: PLC0415  `--help` should not wait

    stopped = threading.Event()
    with SimulatorServer(asked, port=port, host=host) as server, stopped_by_signals(stopped.set):
        typer.echo(f"page: {server.printed}  (Ctrl-C stops)")
        stopped.wait()


def _named(texts: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={text}" for name, text in texts.items())
