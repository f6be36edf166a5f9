from __future__ import annotations

from itertools import islice

import pytest

from examples import page_views_by_region
from headrace.devtools.demo import retail_purchases
from headrace.devtools.load import LOADS, stamped
from headrace.topics.embedded import EmbeddedLog
from tests.cli.conftest import Command

KINDS = list(LOADS)


@pytest.mark.parametrize("kind", KINDS)
def test_same_seed_same_records_however_they_are_cut(kind: str) -> None:
    def take(count: int, size: int, seed: int) -> list[tuple[bytes | None, bytes]]:
        blocks = LOADS[kind].blocks(keys=50, seed=seed, size=size)
        return [pair for block in islice(blocks, count // size) for pair in block]

    assert take(120, 120, seed=1) == take(120, 10, seed=1)
    assert take(120, 120, seed=1) != take(120, 120, seed=2)


def test_purchases_fit_the_example() -> None:
    read = retail_purchases.PURCHASE.deserializer("transactions", is_key=False)
    found = [read(value) for _, value in next(LOADS["purchases"].blocks(keys=20, seed=3))]
    assert len({purchase.customer_id for purchase in found}) == 20
    assert {"cafe", "electronics"} < {purchase.department for purchase in found}
    assert all(len({each.card_number for each in found if each.customer_id == one.customer_id}) == 1 for one in found)


def test_page_views_and_profiles_fit_the_example() -> None:
    views = next(LOADS["page-views"].blocks(keys=20))
    profiles = next(LOADS["user-profiles"].blocks(keys=20, size=20))
    assert {key for key, _ in views} == {key for key, _ in profiles}
    for _, value in views:
        page_views_by_region.VIEW.deserialize(value)
    for _, value in profiles:
        page_views_by_region.PROFILE.deserialize(value)


def test_word_lines_use_all_words_and_no_others() -> None:
    block = next(LOADS["word-lines"].blocks(keys=300, size=20_000))
    words = {word for _, line in block for word in line.split()}
    assert len(words) == 300


def test_stamped_goes_on_evenly() -> None:
    records = [
        record for block in stamped([[(None, b"x")] * 3] * 3, start_ms=5, interval_ms=0.5, count=7) for record in block
    ]
    assert [timestamp_ms for _, timestamp_ms, _, _, _ in records] == [5, 5, 6, 6, 7, 7, 8]


@pytest.mark.parametrize("kind", KINDS)
def test_generate_makes_the_topic(headrace: Command, log: EmbeddedLog, kind: str) -> None:
    done = headrace("generate", kind, "load", "--count", 123, "--partitions", 3, "--start", 1000, "--interval-ms", 2)
    assert "created topic 'load' with 3 partitions" in done.err
    assert "wrote 123 records to 'load'" in done.err
    records = [record for partition in range(3) for record in log.read("load", partition, 0)]
    assert sorted(record[1] for record in records) == list(range(1000, 1246, 2))


def test_at_a_rate(headrace: Command, log: EmbeddedLog) -> None:
    headrace("generate", "sensor-readings", "load", "--rate", 100_000, "--count", 500, "--keys", 5, "--start", 0)
    records = log.read("load", 0, 0)
    assert [record[1] for record in records] == [number // 100 for number in range(500)]
    assert len({record[2] for record in records}) == 5


def test_an_existing_topic_keeps_its_partitions(headrace: Command) -> None:
    headrace("generate", "word-lines", "load", "--count", 1, "--partitions", 2)
    headrace("generate", "word-lines", "load", "--count", 1, "--quiet")
    assert "leave out --partitions" in headrace("generate", "word-lines", "load", "--partitions", 3, code=2).err


def test_unknown_kind_lists_the_known_ones(headrace: Command) -> None:
    assert "purchases" in headrace("generate", "coffee", "load", code=2).err
