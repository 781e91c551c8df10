"""The state of keys that are stored as hashes, in readable form."""

from __future__ import annotations

import polars as pl

from slackwater.base.times import MAX_MS
from slackwater.operators.deduplication.seen import KeyHashes, SeenKeys, slice_ms
from slackwater.operators.state.pieces import StepState
from slackwater.operators.state.shown import moment


def shown_hashes(state: StepState, within_ms: int, keys: tuple[str, ...], key: pl.DataFrame | None) -> pl.DataFrame:
    """Return until when keys are remembered; a hash does not reveal its key, so only `key` can be named."""
    hashes = None if key is None else KeyHashes.of(key, keys)
    untils = pl.DataFrame({"until": SeenKeys(state, slice_ms(within_ms)).untils(hashes)}, schema={"until": pl.Int64()})
    until = pl.col("until")
    time = pl.when(until < MAX_MS).then(until - within_ms) if within_ms < MAX_MS else pl.lit(None, dtype=pl.Int64())
    facts = untils.select(event_time=moment(time), remembered_until=moment(until))
    return facts if key is None else key.select(keys).join(facts, how="cross")
