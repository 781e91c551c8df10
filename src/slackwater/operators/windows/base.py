"""The contract of a kind of window: everything that depends on which windows a row belongs to."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Final

import polars as pl

from slackwater.base.errors import refuse
from slackwater.base.stable_text import stable_text
from slackwater.operators.ports import Port
from slackwater.operators.state.shown import moment
from slackwater.operators.step import KeyedStep
from slackwater.operators.windows.triggers import Trigger, schedule

if TYPE_CHECKING:
    from slackwater.formats.undecoded import Undecoded
    from slackwater.operators.windows.aligned import AlignedWindow
    from slackwater.operators.windows.definition import WindowDefinition
    from slackwater.operators.windows.front import WindowFront
    from slackwater.operators.windows.operator import WindowOperator
    from slackwater.operators.windows.spec import Accumulation, WindowSpec

_KIND: Final = re.compile(r"\b([A-Z][a-z]+)Window(?=\()")


class Window(ABC):
    """A kind of window, as a frozen dataclass. Other code calls its methods, and never checks which kind it is.

    Windows cover [start, end) in event time, in epoch milliseconds. A kind whose windows depend only on a row's time
    derives from `AlignedWindow` and implements a single method, `bounds`.
    """

    has_end: ClassVar[bool] = True
    """Whether the watermark ever completes a window of this kind."""
    may_move: ClassVar[bool] = False
    """Whether later rows may change the bounds of a window."""
    is_aligned: ClassVar[bool] = False
    """Whether windows are the same for every key, so that separately combined rows can be merged by their bounds."""
    is_whole: ClassVar[bool] = True
    """Whether a state row covers all rows of its window, so that the window's final result can be computed from it."""
    cells_meet: ClassVar[bool] = False
    """Whether separately combined rows may belong to the same window."""

    def check(self, schema: pl.Schema, *, step: str) -> None:  # noqa: B027  most kinds read no column
        """Reject rows with `schema` that this kind cannot window, when the pipeline is built."""

    def check_options(self, trigger: Trigger, accumulation: Accumulation) -> None:  # noqa: B027  most kinds accept any
        """Reject a trigger or an accumulation that makes no sense for this kind."""

    def reads(self) -> list[pl.Expr]:
        """Return the expressions that are evaluated on rows, other than their time."""
        return []

    def state_types(self) -> dict[str, pl.DataType]:
        """Return the additional state columns of this kind."""
        return {}

    def may_update(self, spec: WindowSpec) -> bool:
        """Return whether a window of a key may fire more than once."""
        if spec.schedule.once:
            return False
        refires = spec.lateness_ms > 0 and not spec.schedule.finish_on_time
        return not spec.schedule.is_lazy or refires

    def band(self) -> tuple[int, int] | None:
        """Return the size and offset if all windows have one size and follow each other without gaps, else None."""
        return None

    def session_gap_ms(self) -> int | None:
        """Return the gap that ends a window, for sessions whose rows all have one gap, else None."""
        return None

    def windows_of(self, ts_ms: int) -> list[tuple[int, int]]:  # noqa: ARG002  for subclasses
        """Return the windows of an event that is the only one of its key: (start, end) in milliseconds, oldest first.

        The list is empty if they depend on other rows or columns.
        """
        return []

    @property
    def trails_ms(self) -> int:
        """How long after its end a window may still get an on-time row."""
        return 0

    def longest_ms(self) -> int | None:
        """Return the maximum length of a window; None if it depends on the rows, or if windows never end."""
        return None

    def joinable(self) -> AlignedWindow:
        """Return the windows for a window join, or reject the kind: they must depend only on time."""
        raise refuse("JOIN_WINDOW_KIND", got=self)

    def missed(self) -> tuple[pl.Expr, pl.Expr]:
        """Return the starts and ends, as lists, of the windows that a late row missed.

        They are computed from `__start` and `__end` as set by the FRONT part of the kind.
        """
        alone = pl.int_ranges(0, pl.lit(1)) * 0
        return pl.col("__start") + alone, pl.col("__end") + alone

    def specify(self, definition: WindowDefinition, name: str, port: Port) -> KeyedStep:
        """Return the step that computes `definition` over the rows of `port`."""
        from slackwater.operators.windows.spec import WindowSpec  # noqa: PLC0415  it imports this module

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
        """The text that identifies this window in a checkpoint."""
        return stable_text(self)

    def shown_bounds(self) -> dict[str, pl.Expr]:
        """Return the columns that show the times of a state row in readable state, by name."""
        return {"window_start": moment(pl.col("__start")), "window_end": moment(pl.col("__end"))}

    @abstractmethod
    def front(self, spec: WindowSpec, undecoded: Undecoded | None) -> WindowFront:
        """Return the FRONT part."""

    @abstractmethod
    def operator(self, spec: WindowSpec) -> WindowOperator:
        """Return the KEYED part, which stores and fires the windows of a key group."""

    @abstractmethod
    def __str__(self) -> str:
        """Return the kind and its sizes, as shown by `explain`."""


def written_kind(layout_text: str) -> str:
    """Return a layout's text with the name that users write for the kind: `tumbling(size_ms=…)`."""
    return _KIND.sub(lambda found: found[1].lower(), layout_text)
