"""Examples of mixed chains: drawn, run in several batchings, and compared."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from hypothesis import strategies as st

from slackwater.operators.deduplication import seen
from tests.operators.state.bucket_sizes import tiny_buckets
from tests.property.join_streams import tiny_pieces
from tests.property.mixed_chains import Batch, check, check_late
from tests.property.mixed_strategies import arrivals, chains, cut

_ENDS = st.lists(st.integers(0, 14), max_size=6)
_RESTARTS = st.lists(st.booleans(), min_size=1, max_size=4)
_LATER = st.lists(st.sampled_from([0, 5, 15, 50]), min_size=1, max_size=4)
_DICE = st.integers(0, 9).map(random.Random)


def in_any_batches(data: st.DataObject) -> int:
    """Run a chain in which no row is late: all rows at once, one by one, and in random batches; return the batches."""
    one_partition = data.draw(st.booleans(), label="one partition")
    chain = data.draw(chains(one_partition=one_partition), label="chain")
    rows = data.draw(arrivals(chain.kind, chain.sources, one_partition=one_partition), label="rows")
    some = cut(rows, data.draw(_ENDS, label="cuts"), data.draw(_RESTARTS, label="restarts"), [0])
    batchings = [[Batch(tuple(rows))], some, [Batch((row,)) for row in rows]]
    with _crowded(data):
        return check(chain, rows, batchings, data.draw(_DICE))


def with_late_rows(data: st.DataObject) -> int:
    """Run a chain in which rows are late and streams fall silent; return the batches."""
    one_partition = data.draw(st.booleans(), label="one partition")
    chain = data.draw(chains(one_partition=one_partition, may_idle=True), label="chain")
    late = data.draw(st.sampled_from([10, 40]), label="most late")
    rows = data.draw(arrivals(chain.kind, chain.sources, one_partition=one_partition, most_late=late), label="rows")
    ends, restarts = data.draw(_ENDS, label="cuts"), data.draw(_RESTARTS, label="restarts")
    batches = cut(rows, ends, restarts, data.draw(_LATER, label="later"))
    with _crowded(data):
        return check_late(chain, batches, data.draw(_DICE))


@contextmanager
def _crowded(data: st.DataObject) -> Iterator[None]:
    """Make pieces and buckets of state so small, in some examples, that a few rows split and merge them."""
    if not data.draw(st.booleans(), label="crowded"):
        yield
        return
    with tiny_buckets(), tiny_pieces(), mock.patch.multiple(seen, COMPACT_AT=2, _MOST_KEYS=2):
        yield
