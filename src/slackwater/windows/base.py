"""The contract of a window kind: everything that depends on which windows a row belongs to."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Final

import polars as pl

from slackwater.errors import refuse
from slackwater.ground.stable_text import stable_text
from slackwater.state.shown import moment
from slackwater.state.step import KeyedStep, Port
from slackwater.triggers import Trigger, schedule

if TYPE_CHECKING:
    from slackwater.formats.undecoded import Undecoded
    from slackwater.windows.aligned import AlignedWindow
    from slackwater.windows.definition import WindowDefinition
    from slackwater.windows.front import WindowFront
    from slackwater.windows.operator import WindowOperator
    from slackwater.windows.spec import Accumulation, WindowSpec

_KIND: Final = re.compile(r"\b([A-Z][a-z]+)Window(?=\()")


class Window(ABC):
    """A kind of window, as a frozen dataclass. Others ask it; nobody asks which kind it is.

    Windows cover [start, end) in event time, in epoch milliseconds. A kind whose windows depend on a row's time alone
    derives from `AlignedWindow` and has one method of its own, `bounds`.
    """

    has_end: ClassVar[bool] = True
    """Whether the watermark ever completes a window of this kind."""
    may_move: ClassVar[bool] = False
    """Whether rows that come later change the bounds of a window."""
    is_aligned: ClassVar[bool] = False
    """Whether windows are the same for every key, so that rows combined apart from each other merge by their bounds."""
    is_whole: ClassVar[bool] = True
    """Whether a state row holds all rows of its window, so that it gives the window's last result."""
    cells_meet: ClassVar[bool] = False
    """Whether rows that were combined apart from each other may meet in one window."""

    def check(self, schema: pl.Schema, *, step: str) -> None:  # noqa: B027  most kinds read no column
        """Refuse rows of `schema`, when the pipeline is built."""

    def check_options(self, trigger: Trigger, accumulation: Accumulation) -> None:  # noqa: B027  most take any
        """Refuse a trigger or an accumulation that means nothing for this kind."""

    def reads(self) -> list[pl.Expr]:
        """Return the expressions that are evaluated on rows, besides their time."""
        return []

    def state_types(self) -> dict[str, pl.DataType]:
        """Return the columns that a state row of this kind has besides those of all kinds."""
        return {}

    def may_update(self, spec: WindowSpec) -> bool:
        """Return whether a window of a key may show more than one pane."""
        if spec.schedule.once:
            return False
        refires = spec.lateness_ms > 0 and not spec.schedule.finish_on_time
        return not spec.schedule.is_lazy or refires

    def band(self) -> tuple[int, int] | None:
        """Return the size and the offset of windows that all are of one size and follow each other, else None."""
        return None

    def windows_of(self, ts_ms: int) -> list[tuple[int, int]]:  # noqa: ARG002  some kinds cannot tell
        """Return the windows of an event that is alone with its key, as (start, end) in milliseconds, oldest first.

        None where other rows decide, or other columns.
        """
        return []

    def longest_ms(self) -> int | None:
        """Return how long a window of this kind can be; None where only rows decide, or if it never ends."""
        return None

    def joinable(self) -> AlignedWindow:
        """Return the windows that the rows of two streams can share, or refuse: they follow from time alone."""
        raise refuse("JOIN_WINDOW_KIND", got=self)

    def missed(self) -> tuple[pl.Expr, pl.Expr]:
        """Return the starts and the ends, as lists, of the windows that a late row came too late for.

        They are made of `__start` and `__end`, as the kind's front part has set them.
        """
        alone = pl.int_ranges(0, pl.lit(1)) * 0
        return pl.col("__start") + alone, pl.col("__end") + alone

    def specify(self, definition: WindowDefinition, name: str, port: Port) -> KeyedStep:
        """Return the step that computes `definition` over the rows of `port`."""
        from slackwater.windows.spec import WindowSpec  # noqa: PLC0415  it holds windows

        if not self.has_end and definition.lateness_ms:
            raise refuse("GLOBAL_LATENESS", step=name)
        return WindowSpec(
            name=name,
            keys=port.keys,
            row_schema=port.schema,
            window=self,
            lateness_ms=definition.lateness_ms,
            schedule=schedule(definition.trigger),
            accumulation=definition.accumulation,
            aggregates=dict(definition.aggregates),
            semantics=definition.semantics,
        )

    @property
    def layout_text(self) -> str:
        """What tells this window from another one in a checkpoint."""
        return stable_text(self)

    def shown_bounds(self) -> dict[str, pl.Expr]:
        """Return what a state row's place in time is called, where people read state."""
        return {"window_start": moment(pl.col("__start")), "window_end": moment(pl.col("__end"))}

    @abstractmethod
    def front(self, spec: WindowSpec, undecoded: Undecoded | None) -> WindowFront:
        """Return what FRONT does to the rows."""

    @abstractmethod
    def operator(self, spec: WindowSpec) -> WindowOperator:
        """Return what keeps and fires the windows of a key group."""

    @abstractmethod
    def __str__(self) -> str:
        """Return the kind and its sizes as `explain` shows them."""


def written_kind(layout_text: str) -> str:
    """Return a layout's text with the kind as users call it: `tumbling(size_ms=…)`."""
    return _KIND.sub(lambda found: found[1].lower(), layout_text)
