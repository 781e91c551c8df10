"""What a join keeps of a side: found again, read sparingly, dropped in time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.base.stable_hash import hash_columns
from slackwater.eventtime.step_time import StepTime
from slackwater.operators.joins import kept_rows, nodes
from slackwater.operators.joins.kept_rows import Kept, KeptRows
from slackwater.operators.state.packets import Packet
from slackwater.operators.state.packing import pack
from slackwater.operators.state.pieces import StepState
from slackwater.operators.state.store import DictStore

DAY_MS = 86_400_000
TYPES = pl.Schema({"key": pl.Int64(), "note": pl.String(), "__end": pl.Int64()})


class CountingStore(DictStore):
    """Counts the bytes that are read and written."""

    read = 0
    written = 0

    def put(self, key: str, blob: bytes) -> None:
        super().put(key, blob)
        self.written += len(blob)

    def get(self, key: str) -> bytes | None:
        blob = super().get(key)
        self.read += len(blob or b"")
        return blob


def rows(keys: range, at: int, spread: int = 1) -> pl.DataFrame:
    numbers = np.array(keys)
    times = at + numbers * 7919 % spread
    return pl.DataFrame({"key": numbers, "note": [f"note {n * 7919}" for n in keys], "__end": times}, schema=TYPES)


def packet(frame: pl.DataFrame) -> Packet:
    first, last = frame["__end"].min(), frame["__end"].max()
    return Packet(0, "left", "step", "", frame.height, first, last, pack(frame, "step"))  # type: ignore[arg-type]  # whole numbers


def backfilled(of: StepState, batches: int, size: int = 3_000, days: int = 1, **options: object) -> CountingStore:
    """Add large batches, with keys and times of their own in each; return the store, with nothing counted."""
    for number in range(batches):
        at = number * DAY_MS * days // batches
        frame = rows(range(number * size, (number + 1) * size), at, DAY_MS * days // batches)
        batch(of, frame, **options)
    store = of.store
    assert isinstance(store, CountingStore)
    store.read = store.written = 0
    return store


def batch(of: StepState, frame: pl.DataFrame, **options: object) -> None:
    side = kept(of, **options)
    side.add([packet(frame)] if frame.height else [], frame)
    side.tidy(time(0), stagger=0)


def lookup(of: StepState, sought: pl.DataFrame, **options: object) -> pl.DataFrame:
    """Run a batch that looks for partners of `sought`, and adds nothing; return the rows that it reads."""
    side = kept(of, **options)
    width, times = side.kept.width_ms or 0, sought["__end"].to_numpy()
    found = side.read(side.near(hash_columns(sought, ["key"]), times - width // 2, times + width // 2))
    side.tidy(time(0), stagger=0)
    return found


def stored_bytes(of: StepState) -> int:
    return sum(piece.bytes for piece in of.pieces)


def state() -> StepState:
    return StepState(step="step", store=CountingStore())


def kept(of: StepState, **options: object) -> KeptRows:
    options = {"part": 0, "types": TYPES, "keys": ("key",), "reach_ms": 100, "width_ms": 100, **options}
    return KeptRows(of, Kept(**options))  # type: ignore[arg-type]  # as they are given


def time(watermark_ms: int, previous_ms: int = 0) -> StepTime:
    return StepTime(previous_ms=previous_ms, watermark_ms=watermark_ms, now_ms=0)


@contextmanager
def small_pieces(large_bytes: int = 6_000) -> Iterator[None]:
    with mock.patch.multiple(kept_rows, LARGE_BYTES=large_bytes, COMPACT_AT=4):
        yield


def filled(of: StepState, batches: int = 60, size: int = 200, **options: object) -> KeptRows:
    """Return rows of so many batches, each of all keys, merged and split on the way."""
    for number in range(batches):
        side = kept(of, **options)
        frame = rows(range(size), number)
        if side.kept.is_marked:
            side.add([packet(frame)], frame.with_columns(__met=pl.lit(value=False)))
        else:
            side.add([packet(frame)], frame)
        side.tidy(time(0), stagger=0)
    return kept(of, **options)


def test_rows_of_any_key_are_found_after_all_merging_and_splitting() -> None:
    with small_pieces(2_000):
        side = filled(state(), batches=150)
        assert max(nodes.depth(piece.bucket) for piece in side.pieces) >= 2
        for key in range(0, 200, 17):
            sought = hash_columns(pl.DataFrame({"key": [key]}), ["key"])
            found = side.read(side.near(sought, 10, 20)).filter(
                pl.col("key") == key, pl.col("__end").is_between(10, 20)
            )
            assert sorted(found["__end"].to_list()) == list(range(10, 21))


def test_one_key_is_looked_up_without_reading_the_others() -> None:
    with small_pieces():
        of = state()
        side = filled(of)
        store = of.store
        assert isinstance(store, CountingStore)
        held, store.read = sum(len(blob) for blob in store.blobs.values()), 0
        sought = hash_columns(pl.DataFrame({"key": [5]}), ["key"])
        side.read(side.near(sought, 0, 100))
        assert store.read < held / 4


def test_pieces_of_other_times_are_not_read() -> None:
    of = state()
    side = kept(of)
    for at in (0, 1_000, 2_000):
        frame = rows(range(10), at)
        side.add([packet(frame)], frame)
    every = hash_columns(rows(range(10), 0), ["key"])
    assert [piece.min_end_ms for piece in side.near(every, 900, 1_100)] == [1_000]


def test_packets_are_kept_as_they_came() -> None:
    of = state()
    frame = rows(range(10), 0)
    sent = packet(frame)
    kept(of).add([sent], frame)
    assert of.store.get("step/0") == sent.payload


def test_rows_that_were_taken_out_of_a_packet_are_not_kept() -> None:
    of = state()
    frame = rows(range(10), 0)
    side = kept(of)
    side.add([packet(frame)], frame.head(3))
    assert side.read(side.pieces).equals(frame.head(3))


def test_pieces_are_dropped_unread_when_their_last_row_is_over() -> None:
    of = state()
    side = kept(of)
    frame = rows(range(50), 0, spread=40)
    side.add([packet(frame)], frame)
    side.forget(139)
    assert side.pieces
    side.forget(140)
    assert not side.pieces
    assert isinstance(of.store, CountingStore)
    assert of.store.read == 0


@pytest.mark.parametrize("is_marked", [False, True])
def test_every_row_comes_out_once_when_it_is_over(is_marked: bool) -> None:  # noqa: FBT001
    with small_pieces():
        side = kept(state(), is_awaited=True, is_marked=is_marked)
        frame = rows(range(3_000), 0, spread=1_000)
        if is_marked:
            frame = frame.with_columns(__met=pl.col("key") % 3 == 0)
        side.add([packet(frame)], frame)
        seen = []
        for watermark in range(10, 1_200, 10):
            over = side.over(time(watermark, watermark - 10))
            assert over.filter(~pl.col("__end").is_between(watermark - 110, watermark - 101)).is_empty()
            seen.append(over)
            side.tidy(time(watermark, watermark - 10), stagger=0)
        assert pl.concat(seen).sort("key").equals(frame)
        assert not side.state.pieces


def test_rows_that_wait_are_not_written_again_with_every_batch() -> None:
    of = state()
    side = kept(of, is_awaited=True)
    frame = rows(range(20_000), 0, spread=10_000)
    side.add([packet(frame)], frame)
    written = 0
    with mock.patch.object(of, "append_blob", wraps=of.append_blob) as append:
        for watermark in range(10, 10_200, 10):
            side.over(time(watermark, watermark - 10))
            side.tidy(time(watermark, watermark - 10), stagger=0)
        written = sum(call.kwargs["rows"] for call in append.call_args_list)
    assert written < 5 * frame.height


def test_a_mark_is_written_beside_its_piece_and_read_with_it() -> None:
    of = state()
    side = kept(of, is_marked=True)
    frame = rows(range(10), 0)
    for _ in range(2):
        side.add([packet(frame)], frame.with_columns(__met=pl.lit(value=False)))
    before = side.read(side.pieces)["__met"]
    blobs = {piece.seq: of.store.get(f"step/{piece.seq}") for piece in side.pieces}
    side.mark(side.pieces, before, pl.Series([n == 13 for n in range(20)]))
    assert side.read(side.pieces)["__met"].arg_true().to_list() == [13]
    assert {piece.seq: of.store.get(f"step/{piece.seq}") for piece in side.pieces} == blobs
    assert len(of.pieces) == 3


def test_marks_survive_merging_and_go_with_their_rows() -> None:
    with small_pieces():
        of = state()
        side = filled(of, batches=3, is_marked=True, is_awaited=True)
        every = side.read(side.pieces)
        side.mark(side.pieces, every["__met"], every["key"] == 7)
        side.add([packet(rows(range(200), 3))], rows(range(200), 3).with_columns(__met=pl.lit(value=False)))
        side.tidy(time(0), stagger=0)
        assert side.read(side.pieces).filter("__met").select("key", "__end").sort("__end").rows() == [
            (7, 0),
            (7, 1),
            (7, 2),
        ]
        assert side.over(time(1_000)).height == 800
        assert not of.pieces


def test_after_large_batches_one_row_reads_little() -> None:
    of, day = state(), {"width_ms": 2 * DAY_MS, "reach_ms": DAY_MS}
    with small_pieces():
        store = backfilled(of, batches=10, **day)
        first = lookup(of, rows(range(7, 8), DAY_MS // 2), **day)
        # The last batches may still be as they came: they are read once more, and moved.
        assert store.read < stored_bytes(of)
        store.read = store.written = 0
        again = lookup(of, rows(range(7, 8), DAY_MS // 2), **day)
        assert store.read < 3 * 6_000
        assert store.written == 0
    assert first.filter(pl.col("key") == 7).equals(again.filter(pl.col("key") == 7))
    assert again.filter(pl.col("key") == 7).height == 1


def test_an_empty_batch_moves_what_large_batches_left() -> None:
    of, day = state(), {"width_ms": 2 * DAY_MS, "reach_ms": DAY_MS}
    with small_pieces():
        store = backfilled(of, batches=2, **day)
        for _ in range(10):
            batch(of, rows(range(0), 0), **day)
        store.read = 0
        lookup(of, rows(range(7, 8), DAY_MS // 2), **day)
        assert store.read < 3 * 6_000


def test_rows_of_one_key_are_split_by_time() -> None:
    of, minute = state(), {"width_ms": 60_000, "reach_ms": DAY_MS}
    with small_pieces():
        for number in range(10):
            at = number * DAY_MS // 10
            batch(of, rows(range(3_000), at, DAY_MS // 10).with_columns(key=pl.lit(1, pl.Int64)), **minute)
        for _ in range(10):
            batch(of, rows(range(0), 0), **minute)
        store = of.store
        assert isinstance(store, CountingStore)
        store.read = 0
        lookup(of, pl.DataFrame({"key": [1], "__end": [DAY_MS // 2]}), **minute)
        assert 0 < store.read < stored_bytes(of) / 10


def test_one_old_row_does_not_make_the_others_read_what_is_old() -> None:
    of, minute = state(), {"width_ms": 60_000, "reach_ms": DAY_MS}
    with small_pieces():
        store = backfilled(of, batches=20, **minute)
        for _ in range(10):
            batch(of, rows(range(0), 0), **minute)
        new = rows(range(57_000, 57_300), DAY_MS - 60_000)
        lookup(of, new, **minute)
        alone, store.read = store.read, 0
        lookup(of, pl.concat([rows(range(1), 0), new]), **minute)
        assert store.read < alone + 5 * 6_000


def test_rows_are_rewritten_a_few_times_however_many_batches_bring_them() -> None:
    of, day = state(), {"width_ms": 2 * DAY_MS, "reach_ms": DAY_MS}
    with small_pieces():
        store = backfilled(of, batches=0)
        for number in range(150):
            batch(of, rows(range(number * 100, (number + 1) * 100), number * 1_000, 1_000), **day)
        assert store.written < 6 * stored_bytes(of)


def test_large_batches_that_expire_soon_are_dropped_as_they_came() -> None:
    of = state()
    with small_pieces():
        store = backfilled(of, batches=0)
        for number in range(20):
            frame = rows(range(3_000), number * 1_000, 1_000)
            side = kept(of)
            side.forget(number * 1_000)
            side.add([packet(frame)], frame)
            side.tidy(time(number * 1_000), stagger=0)
            assert len(side.pieces) <= 2
    assert store.read == 0
    assert store.written < 20 * 1.01 * max(piece.bytes for piece in of.pieces)


@given(st.integers(0, 1 << 30), st.sampled_from([0, 50, 5_000, 1 << 40]), st.booleans())
def test_every_row_that_has_not_expired_is_found_once_whatever_the_batches(
    seed: int,
    width_ms: int,
    is_awaited: bool,  # noqa: FBT001
) -> None:
    dice, of, added = np.random.default_rng(seed), state(), []
    options = {"width_ms": width_ms, "reach_ms": 300, "is_awaited": is_awaited}
    watermark_ms = 0
    with small_pieces(2_000):
        for number in range(15):
            previous_ms, watermark_ms = watermark_ms, watermark_ms + int(dice.integers(0, 3)) * 100
            now = time(watermark_ms, previous_ms)
            side = kept(of, **options)
            if is_awaited:
                side.over(now)
            else:
                side.forget(watermark_ms)
            size, lag = int(dice.choice([0, 1, 5, 400])), int(dice.choice([1, 100, 20_000]))
            keys = dice.integers(0, int(dice.choice([1, 5, 1_000])), size)
            times = watermark_ms + dice.integers(0, lag, size)
            notes = [f"{number} {n}" for n in range(size)]
            frame = pl.DataFrame({"key": keys, "note": notes, "__end": times}, schema=TYPES)
            added.append(frame)
            side.add([packet(frame)] if size else [], frame)
            side.tidy(now, stagger=number)
            stored = pl.concat(added).filter(pl.col("__end") + 300 >= watermark_ms)
            sought = pl.DataFrame({"key": dice.integers(0, 6, 3), "__end": watermark_ms + dice.integers(0, 5_000, 3)})
            asked = sought["__end"].to_numpy()
            pieces = side.near(hash_columns(sought, ["key"]), asked - width_ms, asked + width_ms)
            expected = stored.join(sought, on="key", suffix="_sought").filter(
                (pl.col("__end") - pl.col("__end_sought")).abs() <= width_ms
            )
            found = side.read(pieces)["note"]
            assert {*expected["note"]} <= {*found}
            assert found.n_unique() == found.len()
            assert {*stored["note"]} <= {*side.read(side.pieces)["note"]}
