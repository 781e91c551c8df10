"""Attempts that cut a batch into other chunks: a row keeps the answer that it was first given."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.connectors.chunk import Chunk
from slackwater.engine.enrichment.answers import MemoryAnswers
from slackwater.engine.memory import MemoryEngine
from slackwater.engine.next_clock import first_clock
from slackwater.plan.plan import Plan
from tests.engine.enrichment.scripted import Script, looked_up, orders

SCHEMA = {"user": pl.String(), "ts": pl.Int64(), "x": pl.Int64()}


def planned(script: Script) -> Plan:
    """Return a pipeline with a lookup whose store answers otherwise each time."""
    stream = looked_up(orders(), script, cache=None)
    return sw.Pipeline("p", stream.to(sw.sinks.memory()), stream.dead_letters.drop()).plan()


def attempt(plan: Plan, answers: MemoryAnswers, users: list[str], cuts: list[int]) -> dict[int, int]:
    """Run a batch in a new process, its rows cut into chunks; return what each row got, by its place."""
    clock = replace(first_clock(plan), now_ms=0)
    rows = pl.DataFrame({"user": users, "ts": range(len(users)), "x": range(len(users))}, schema=SCHEMA)
    chunks = [
        Chunk(frame=rows[a:b], partition="0", file="0/0", first_offset=a, source="orders", ingestion_ms=0)
        for a, b in pairwise(cuts)
    ]
    shown = MemoryEngine(plan=plan, answers=answers).run({"orders": chunks}, clock).outputs["orders.rows"]
    return dict(zip(shown["ts"].to_list(), shown["seen"].to_list(), strict=True))


@pytest.mark.parametrize("first", [[0, 100], [50, 100], [0, 150], [100, 200]])
def test_answers_of_an_attempt_that_died_are_not_mixed_with_those_of_the_next(first: list[int]) -> None:
    script, answers, users = Script(), MemoryAnswers(), ["ada", "bob"] * 100
    plan = planned(script)
    died = attempt(plan, answers, users, first)
    delivered = attempt(plan, answers, users, [0, 200])
    assert {at: delivered[at] for at in died} == died
    assert attempt(plan, answers, users, [0, 200]) == delivered
    assert attempt(plan, answers, users, [0, 30, 77, 120, 200]) == delivered


@given(st.lists(st.sampled_from(["ada", "bob", "eve"]), min_size=2, max_size=12), st.randoms(use_true_random=False))
def test_whatever_was_asked_before_a_row_keeps_its_first_answer(users: list[str], dice: random.Random) -> None:
    script, answers, end = Script(), MemoryAnswers(), len(users)
    plan, known = planned(script), dict[int, int]()
    for _ in range(4):
        cuts = sorted(dice.sample(range(end + 1), k=dice.randint(2, min(5, end + 1))))
        found = attempt(plan, answers, users, cuts)
        assert {at: found[at] for at in {*known} & {*found}} == {at: known[at] for at in {*known} & {*found}}
        known |= found
    whole = attempt(plan, answers, users, [0, end])
    assert {at: whole[at] for at in known} == known
