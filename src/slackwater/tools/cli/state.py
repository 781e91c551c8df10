"""`slackwater state FILE`: the state of a job's keyed steps, even while it runs."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import polars as pl
import typer
from rich.console import Console
from rich.text import Text

from slackwater.base.errors import cause_of, fault
from slackwater.base.folders import plain_path
from slackwater.observe.state_reading.rows import rows_of_key
from slackwater.observe.state_reading.stored import StoredState, stored_state
from slackwater.observe.state_reading.summary import MOST_KEYS, StepSummary, summarise
from slackwater.observe.state_reading.text import as_json, print_rows, print_summary, summary_frame
from slackwater.tools.cli.loading import load_pipeline
from slackwater.tools.cli.options import PipelineFile, at_home

if TYPE_CHECKING:
    from slackwater.observe.state_reading.groups import StateGroups

Format = Literal["table", "json", "parquet"]
_WIDTH: Final = 160


def state(
    file: PipelineFile,
    *,
    checkpoint: Annotated[
        Path | None,
        typer.Option(callback=at_home, help="Checkpoint of the job; .slackwater/<pipeline> by default."),
    ] = None,
    step: Annotated[str | None, typer.Option(help="Only this step; `explain` lists them.")] = None,
    key: Annotated[
        str | None,
        typer.Option(help="Show what is held for this key: ada, or for several columns ada,3 or user=ada,shop=3."),
    ] = None,
    batch: Annotated[
        int | None, typer.Option(min=0, help="State after this batch; after the last committed one by default.")
    ] = None,
    top: Annotated[int, typer.Option(min=0, help="Number of largest keys to list for each step.")] = MOST_KEYS,
    form: Annotated[Format, typer.Option("--format", help="Output format.")] = "table",
    out: Annotated[Path | None, typer.Option(callback=at_home, help="Write to this file instead of printing.")] = None,
) -> None:
    """Show what the keyed steps of a job remember, from its checkpoint.

    Without --key: size, rows, keys, pieces and oldest event time of each step, and its largest keys. With --key: what
    the steps hold for that key, such as its open windows with their results so far, the rows that a join keeps for it,
    or the state and timers of a process.

    The job may be running. The command reads one committed batch, takes no lock, and writes nothing to the
    checkpoint. It starts its own local Spark, which takes a few seconds. It exits with code 1 if nothing is held for
    the key.

    [dim]Examples:[/dim]

      slackwater state orders.py

      slackwater state orders.py --step per_minute --top 20

      slackwater state orders.py --key ada

      slackwater state orders.py --step baskets --key user=ada,shop=3 --batch 41

      slackwater state orders.py --step per_minute --key ada --format parquet --out ada.parquet
    """
    if form == "parquet" and out is None:
        raise fault("STATE_READ_OUT", got="no --out")
    plan = load_pipeline(file).plan()
    stored = stored_state(plain_path(checkpoint or Path(".slackwater") / plan.name), plan, batch)
    report = Report(form=form, out=out, head={"pipeline": plan.name, "batch": stored.batch})
    if key is None:
        steps = stored.chosen(step)
        report.summary(summarise(_groups(stored, plan.name), steps, most_keys=top) if steps else [])
    else:
        report.rows(_rows_of_key(stored, plan.name, key, step), key)


def _rows_of_key(stored: StoredState, name: str, key: str, step: str | None) -> dict[str, pl.DataFrame]:
    keys = stored.with_key(key, step)
    steps = [each for each in stored.steps if each.name in keys]
    found = rows_of_key(_groups(stored, name), steps, keys, stored.key_groups) if steps else {}
    if not found:
        searched = ", ".join(f"`{each.name}`" for each in steps) or "no step"
        raise fault("STATE_READ_KEY_MISSING", steps=searched, key=key, batch=stored.batch)
    return found


def _groups(stored: StoredState, name: str) -> StateGroups:
    """Return the key groups, in a local session that ends with this command."""
    from slackwater.spark.session_conf import start_jvm  # noqa: PLC0415  errors should not wait for Spark

    jvm = start_jvm(master=None, name=name, conf={}, is_short=True)
    from slackwater.spark.session import spark_session  # noqa: PLC0415  imported while the JVM starts
    from slackwater.spark.state_groups import CheckpointGroups  # noqa: PLC0415  as above

    return CheckpointGroups(spark_session(master=None, name=name, jvm=jvm), stored)


@dataclass(frozen=True, kw_only=True)
class Report:
    """The destination and format of the answer."""

    form: Format
    out: Path | None
    head: dict[str, Any]

    def summary(self, summaries: Sequence[StepSummary]) -> None:
        """Write the sizes of the steps."""
        frame = summary_frame(summaries)
        if self.form == "table":
            with self._console() as console:
                if summaries:
                    print_summary(summaries, console)
                console.print(_after(self.head, "" if summaries else ": it has no keyed steps"), highlight=False)
        elif self.form == "json":
            self._write(as_json(self.head, steps=frame))
        else:
            self._parquet(frame)

    def rows(self, steps: Mapping[str, pl.DataFrame], key: str) -> None:
        """Write the state of a key, by step."""
        if self.form == "table":
            with self._console() as console:
                print_rows(steps, console)
                console.print(_after(self.head, ""), highlight=False)
        elif self.form == "json":
            self._write(as_json(self.head | {"key": key}, steps=steps))
        elif len(steps) > 1:
            raise fault("STATE_READ_OUT", got=f"the rows of {', '.join(steps)}")
        else:
            self._parquet(next(iter(steps.values())))

    @contextmanager
    def _console(self) -> Iterator[Console]:
        """Yield the console; a file or a pipe gets wide lines."""
        text = io.StringIO()
        terminal = Console()
        is_shown = self.out is None and terminal.is_terminal
        yield terminal if is_shown else Console(file=text, width=_WIDTH)
        if not is_shown:
            self._write(text.getvalue().rstrip("\n"))

    def _write(self, text: str) -> None:
        if self.out is None:
            typer.echo(text)
            return
        with self._written() as path:
            path.write_text(text + "\n", encoding="utf-8")

    def _parquet(self, frame: pl.DataFrame) -> None:
        with self._written() as path:
            frame.write_parquet(path)

    @contextmanager
    def _written(self) -> Iterator[Path]:
        assert self.out is not None
        try:
            yield self.out
        except OSError as error:
            raise fault("STATE_READ_OUT_FAILED", path=self.out, cause=cause_of(error)) from error


def _after(head: Mapping[str, Any], more: str) -> Text:
    return Text(f"state of {head['pipeline']} after batch {head['batch']}{more}")
