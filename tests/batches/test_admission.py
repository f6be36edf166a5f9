"""Admission: the number of records that a micro-batch may read."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headrace.batches.admission import Admission, fitting, share
from headrace.topics.log import TopicPartition

COUNTS = st.dictionaries(st.tuples(st.sampled_from("ab"), st.integers(0, 9)), st.integers(0, 1_000_000), max_size=12)


@given(available=COUNTS, limit=st.integers(0, 2_000_000))
def test_shares_are_fair_and_never_more_than_there_is(available: dict[TopicPartition, int], limit: int) -> None:
    shares = share(available, limit)
    # Everybody who has something gets something, or it would wait for ever.
    assert shares.keys() == {target for target, count in available.items() if count}
    assert all(1 <= shares[target] <= available[target] for target in shares)
    assert sum(shares.values()) <= max(limit, len(shares))
    cut = [shares[target] for target in shares if shares[target] < available[target]]
    if cut:
        assert max(shares.values()) <= max(cut)
        assert max(cut) - min(cut) <= 1


@given(batches=st.lists(st.tuples(st.integers(0, 1_000_000), st.floats(1, 100_000)), max_size=30))
def test_batches_stay_within_bounds_and_change_by_a_factor_of_four_at_most(batches: list[tuple[int, float]]) -> None:
    admission = Admission(target_ms=1_000, max_records=500_000)
    for records, duration_ms in batches:
        records = min(records, admission.records)
        before = admission.records
        admission.learn(records, duration_ms)
        assert 1_000 <= admission.records <= 500_000
        if records >= before // 2:
            assert records // 4 - 1 <= admission.records <= max(records * 4, 1_000)
        else:
            assert admission.records == before


def test_batches_come_to_take_the_time_that_they_should() -> None:
    admission = Admission(target_ms=1_000, max_records=10_000_000)
    for _ in range(20):
        # A tenth of a second for every batch, and 5 µs for each record.
        duration_ms = 100 + admission.records * 0.005
        admission.learn(admission.records, duration_ms)
    assert 700 < 100 + admission.records * 0.005 < 1_300


def test_a_small_limit_holds_from_the_first_batch_on() -> None:
    assert Admission(target_ms=1_000, max_records=300).records == 300


def test_large_records_are_cut_to_what_fits_into_memory() -> None:
    targets: list[TopicPartition] = [("in", 0), ("in", 1)]
    shares = dict.fromkeys(targets, 1_000)
    assert fitting(shares, dict.fromkeys(targets, 100)) == 1.0
    assert fitting(shares, dict.fromkeys(targets, 1 << 20)) == 256 / 2_000
    assert fitting({}, {}) == 1.0
