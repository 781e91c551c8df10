"""Chains of steps show what the model of each step says, in any batches and files, with any restarts."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from tests.operators.state.bucket_sizes import tiny_buckets
from tests.property.chain_strategies import ALIGNED, LIMITED, SESSIONS, SLIDING, chains, streams
from tests.property.chains import Chain, run
from tests.property.streams import Batch


@given(chains(ALIGNED | SLIDING), streams())
def test_chains_of_aligned_and_sliding_windows_show_what_the_model_says(chain: Chain, stream: list[Batch]) -> None:
    run(chain, stream)


@given(chains(ALIGNED | SESSIONS), streams())
def test_chains_with_sessions_show_what_the_model_says(chain: Chain, stream: list[Batch]) -> None:
    with tiny_buckets():
        run(chain, stream)


@given(chains(ALIGNED | LIMITED), streams(most=5))
def test_sessions_with_a_maximum_length_are_the_greedy_cut_of_what_is_remembered(
    chain: Chain, stream: list[Batch]
) -> None:
    with tiny_buckets():
        run(chain, stream)


@given(chains(), streams(most=4), st.randoms(use_true_random=False))
def test_files_in_any_order_give_what_the_model_says(chain: Chain, stream: list[Batch], files: random.Random) -> None:
    run(chain, stream, files)
