"""What holds for a join of every kind; what each finds is compared with a model in its own tests."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from tests.property import test_as_of_joins as as_of
from tests.property import test_interval_joins as interval
from tests.property import test_window_joins as windows
from tests.property.join_streams import batches, joined, pipeline, run

JOINS: dict[str, st.SearchStrategy[interval.Setup | as_of.Setup | windows.Setup]] = {
    "interval": interval.setups,
    "as of": as_of.setups,
    "windows": windows.setups(),
}
each = pytest.mark.parametrize("kind", JOINS)


@each
@given(data=st.data())
def test_nothing_is_remembered_after_the_end(kind: str, data: st.DataObject) -> None:
    harness = run(data.draw(JOINS[kind]), data.draw(batches())).harness
    assert harness.pieces == 0
    assert not any(harness.engine.state.values())


@each
@given(data=st.data())
def test_no_result_is_late_for_the_next_step(kind: str, data: st.DataObject) -> None:
    _, results = data.draw(JOINS[kind]).pipeline()
    counted = results.select("id").key_by("id").window(sw.tumbling("10ms"), name="counted").aggregate(n=sw.count())
    ended = pipeline(results, counted, counted.late, results.dead_letters, key_groups=4)
    done = joined(ended, results, data.draw(batches()))
    assert done.harness.output(counted.late).is_empty()
    assert done.harness.output(counted)["n"].sum() == done.results.height
