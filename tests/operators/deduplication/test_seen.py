"""The keys that were seen: 128 bits each, forgotten by time, found however their pieces lie."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.operators.deduplication import seen as module
from slackwater.operators.deduplication.seen import KeyHashes, SeenKeys, slice_ms
from slackwater.operators.state.pieces import StepState
from slackwater.operators.state.store import DictStore

Key = tuple[int, int, int]
# Few values for each part, so that heads, and all but one part, are often equal.
KEYS = st.tuples(st.integers(0, 2), st.integers(0, 1), st.integers(0, 1))
BATCHES = st.lists(
    st.tuples(st.lists(st.tuples(KEYS, st.integers(0, 40)), max_size=8), st.integers(0, 12)), min_size=1, max_size=12
)


def hashes(keys: list[Key]) -> KeyHashes:
    parts: Any = np.array(keys, dtype=np.uint64).reshape(-1, 3)
    return KeyHashes(parts[:, 0].astype(np.uint32), parts[:, 1].astype(np.uint32), parts[:, 2])


def empty() -> StepState:
    return StepState(step="s", store=DictStore())


@given(BATCHES, st.integers(1, 20), st.integers(0, 3), st.sampled_from([0, 1000]))
def test_a_key_is_known_as_long_as_the_watermark_is_not_past_its_time(
    batches: list[tuple[list[tuple[Key, int]], int]], slice_: int, stagger: int, closed_ms: int
) -> None:
    state, known = empty(), dict[Key, int]()
    watermark = 0
    for added, moved in batches:
        watermark += moved
        seen = SeenKeys(state, slice_)
        seen.forget(watermark)
        asked = [key for key, _ in added]
        remembered = [known.get(key, -1) >= watermark for key in asked]
        assert seen.known(hashes(asked), watermark).tolist() == remembered
        new = {key: watermark + after for key, after in added if known.get(key, -1) < watermark}
        if new:
            seen.add(hashes(list(new)), np.array(list(new.values()), dtype=np.int64))
        known |= new
        seen.compact(watermark, closed_ms=closed_ms, stagger=stagger)
        state.commit()
        state = StepState.from_index("s", state.store, state.to_index())
    SeenKeys(state, slice_).forget(watermark + 100)
    assert not state.pieces
    state.commit()
    assert not state.store.blobs  # type: ignore[attr-defined]  # a dictionary


def test_pieces_of_a_slice_are_merged_and_split_when_they_are_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_KEYS", 25)
    state = empty()
    for number in range(16):
        seen = SeenKeys(state, 1000)
        seen.add(hashes([(number, 7, 7), (number + 100, 7, 7)]), np.array([10, 990]))
        seen.compact(0, closed_ms=0, stagger=0)
    assert [piece.rows for piece in state.pieces] == [25, 0, 7, 0]
    asked = hashes([(number, 7, 7) for number in (*range(16), *range(100, 116), 50)])
    assert SeenKeys(state, 1000).known(asked, 10).tolist() == [True] * 32 + [False]
    assert SeenKeys(state, 1000).known(asked, 11).tolist() == [False] * 16 + [True] * 16 + [False]


def test_a_closed_slice_becomes_one_piece_without_what_is_forgotten() -> None:
    state = empty()
    for number in range(3):
        SeenKeys(state, 100).add(hashes([(number, 0, 0)]), np.array([10 * number]))
    SeenKeys(state, 100).compact(15, closed_ms=100, stagger=0)
    assert [piece.rows for piece in state.pieces] == [1, 0]


def test_tails_are_read_only_where_a_head_is_equal() -> None:
    class Watched(DictStore):
        asked: list[str]

        def get(self, key: str) -> bytes | None:
            self.asked.append(key)
            return super().get(key)

    store = Watched()
    store.asked = []
    state = StepState(step="s", store=store)
    for head in range(3):
        SeenKeys(state, 10).add(hashes([(head, 1, 1)]), np.array([head * 10]))
    assert SeenKeys(state, 10).known(hashes([(1, 1, 1), (9, 1, 1)]), 0).tolist() == [True, False]
    assert store.asked == ["s/4", "s/2", "s/3", "s/0"]


@pytest.mark.parametrize("within, expected", [(1, 1), (16_000, 1_000), (1 << 60, 1 << 31)])
def test_slices_are_a_sixteenth_of_the_time_that_keys_are_remembered(within: int, expected: int) -> None:
    assert slice_ms(within) == expected
