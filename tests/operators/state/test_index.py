"""The index of a key group's state: facts about pieces by name, in a form with a number."""

from __future__ import annotations

import json

import polars as pl
import pytest

from slackwater.base.errors import RunError
from slackwater.base.sealed import sealed, unsealed
from slackwater.operators.state.pieces import StepState
from slackwater.operators.state.store import INDEX, INDEX_FORM, DictStore, read_index, write_index

PLACE, OWNER = "state/0/1", "owner"
BY_ANOTHER = r"STATE_DAMAGED.*the index of `state/0/1` was written by another version: it has form 1, and .* reads 2;"


def stored() -> tuple[DictStore, StepState]:
    store = DictStore()
    state = StepState(step="s", store=store)
    for end in (5, 7):
        rows = pl.DataFrame({"__end": [end, end + 1]})
        state.append(rows, lambda part: {"min_end_ms": part["__end"].min(), "max_end_ms": 9, "wake_ms": 9})
    write_index(store, {"s": state.to_index()}, PLACE, OWNER)
    return store, state


def test_index_is_read_back_as_written() -> None:
    store, state = stored()
    index = read_index(store, PLACE, OWNER)
    assert StepState.from_index("s", store, index["s"]).pieces == state.pieces
    assert len(state.pieces) == 2


def test_facts_about_pieces_have_names() -> None:
    store, _ = stored()
    written = json.loads(unsealed(store.blobs[INDEX], place=PLACE, of=OWNER, form=INDEX_FORM))
    assert written["s"]["pieces"]["min_end_ms"] == [5, 7]


def test_facts_about_chunks_have_names() -> None:
    store, state = stored()
    _, size, _ = state.add_chunk(pl.DataFrame({"value": [1, 2, 3]}))
    written = state.to_index()
    assert written["chunks"] == {"number": 1, "rows": 3, "bytes": size}
    opened = StepState.from_index("s", store, json.loads(json.dumps(written)))
    assert opened.sizes == state.sizes
    opened.drop_chunk(2, rows=3, size=size)
    assert "chunks" not in opened.to_index()


def test_order_in_which_the_facts_are_written_does_not_matter() -> None:
    store, state = stored()
    index = read_index(store, PLACE, OWNER)["s"]
    index["pieces"] = dict(reversed(index["pieces"].items()))
    assert StepState.from_index("s", store, index).pieces == state.pieces


def test_index_of_another_form_is_refused() -> None:
    store, _ = stored()
    store.put(INDEX, sealed(b"{}", place=PLACE, of=OWNER, form=1))
    with pytest.raises(RunError, match=BY_ANOTHER):
        read_index(store, PLACE, OWNER)
