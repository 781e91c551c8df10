"""The messages of dead letters that are counted: the frequent ones, whichever task reports first."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable

import polars as pl

from slackwater.engine.losses import MOST_MESSAGES, Losses


def noted(messages: Iterable[str]) -> Losses:
    """Return the losses of one task."""
    losses = Losses()
    losses.note(pl.DataFrame({"message": [*messages]}).with_columns(reason=pl.lit("failed")))
    return losses


def summed(tasks: Iterable[Losses]) -> Losses:
    """Return the losses of a batch, as its tasks report them."""
    total = Losses()
    for task in tasks:
        total.add(Losses.from_json(json.loads(json.dumps(task.to_json()))))
    total.settle()
    return total


def test_the_sample_is_the_most_frequent_message_and_not_the_smallest() -> None:
    tasks = [noted(["a", "z", "z"]), noted(["b", "b", "z"]), noted(["b"])]
    assert summed(tasks).sample("failed") == "b"
    assert summed([*tasks, noted(["z"])]).sample("failed") == "z"


def test_a_frequent_message_is_found_among_any_number_of_others() -> None:
    tasks = [noted([*(f"{task}-{each}" for each in range(500)), *["frequent"] * 50]) for task in range(20)]
    total = summed(tasks)
    assert total.sample("failed") == "frequent"
    assert total.reasons == {"failed": 11_000}
    assert len(total.messages["failed"]) <= MOST_MESSAGES


def test_the_order_in_which_tasks_report_does_not_matter() -> None:
    tasks = [noted(f"{(each * task) % 40:02d}" for each in range(60)) for task in range(1, 6)]
    found = [summed(order) for order in itertools.permutations(tasks)]
    assert all(each == found[0] for each in found)


def test_the_smallest_is_the_sample_if_all_are_different() -> None:
    assert noted(f"row {number:03d}" for number in range(100)).sample("failed") == "row 000"


def test_long_messages_and_none_are_counted() -> None:
    losses = noted(["x" * 100_000] * 2)
    losses.note(pl.DataFrame({"reason": ["failed"], "message": [None]}, schema_overrides={"message": pl.String}))
    assert losses.reasons["failed"] == 3
    assert len(losses.sample("failed")) == 1_000
