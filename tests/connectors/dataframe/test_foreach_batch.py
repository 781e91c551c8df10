"""Functions for `foreach_batch`: those that cannot be called as they will be are refused when the sink is defined."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from slackwater.base.errors import DefinitionError
from slackwater.sinks import foreach_batch


class Writer:
    """Something with a method for batches."""

    def write(self, df: Any, batch: int) -> None:  # noqa: ANN401
        """Take both."""

    def show(self, df: Any) -> None:  # noqa: ANN401
        """Take one."""

    def __call__(self) -> None:
        """Take none."""


def named(df: Any, *, batch: int) -> None:  # noqa: ANN401
    """Take the number by name alone."""


def three(df: Any, batch: int, mode: str) -> None:  # noqa: ANN401
    """Take one more."""


@pytest.mark.parametrize(
    "function, shown",
    [
        (lambda df: None, "<lambda>(df)"),
        (lambda: None, "<lambda>()"),
        (Writer.write, "write(self, df: "),
        (Writer().show, "show(df: "),
        (Writer(), "Writer()"),
        (named, "named(df: "),
        (three, "three(df: "),
    ],
)
def test_function_that_cannot_take_a_frame_and_a_number_is_refused(function: Any, shown: str) -> None:  # noqa: ANN401
    with pytest.raises(DefinitionError, match=r"FOREACH_BATCH_SIGNATURE.*cannot take both; write, for") as said:
        foreach_batch(function)
    assert f"; `{shown}" in str(said.value)


@pytest.mark.parametrize(
    "function",
    [
        lambda df, batch: None,
        lambda *both: None,
        lambda df, batch, mode="append": None,
        Writer().write,
        partial(three, mode="append"),
        dict,  # tells no parameters
    ],
)
def test_function_that_can_or_does_not_tell_is_taken(function: Callable[[Any, int], None]) -> None:
    assert foreach_batch(function).function is function
