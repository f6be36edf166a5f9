"""The index of rows by time against a plain dict."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.serdes import Serdes
from headrace.serdes.base import StoreTopic
from headrace.state import MemoryEngine, OverlayEngine, Stores
from headrace.state.engines.changes import Changes
from headrace.state.rows import expiry
from headrace.state.rows.codec import key_codec
from headrace.state.rows.expiry import ExpiryIndex, index_name

KEYS = key_codec(Serdes.string(), StoreTopic("rows", "rows"))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), st.sampled_from("abcdefgh"), st.integers(-1, 20)),
        st.tuples(st.just("delete"), st.sampled_from("abcdefgh"), st.just(0)),
        st.sampled_from([("take", "", 0), ("flush", "", 0), ("commit", "", 0), ("reload", "", 0)]),
    ),
    max_size=60,
)


@given(STEPS, st.integers(1, 4))
def test_first_is_the_oldest_row_whatever_was_written_before(steps: list[tuple[str, str, int]], ahead: int) -> None:
    model: dict[str, int] = {}
    with patch.object(expiry, "_AHEAD", ahead):
        engine = OverlayEngine(MemoryEngine())
        index = ExpiryIndex(index_name("rows"), engine, KEYS, persistent=False)
        for action, key, time_ms in steps:
            if action == "set" and model.get(key) != time_ms:
                index.move(key, model.get(key), time_ms)
                model[key] = time_ms
            elif action == "delete" and key in model:
                index.move(key, model.pop(key), None)
            elif action == "take" and index.first() is not None:
                index.remove_first()
                del model[min(model, key=lambda each: (model[each], each))]
            elif action in ("flush", "commit", "reload"):
                index.flush_writes()
                if action == "commit":
                    engine.commit()
                if action == "reload":
                    index = ExpiryIndex(index_name("rows"), engine, KEYS, persistent=False)
            assert index.oldest_ms <= min(model.values(), default=index.oldest_ms)
            expected = min(((at_ms, each) for each, at_ms in model.items()), default=None)
            assert index.first() == expected
        index.flush_writes()
        assert engine.count() == len(model)


def test_what_comes_and_goes_between_two_flushes_is_never_written() -> None:
    engine = OverlayEngine(MemoryEngine())
    index = ExpiryIndex(index_name("rows"), engine, KEYS, persistent=False)
    for time_ms in range(100):
        index.move("hot", time_ms - 1 if time_ms else None, time_ms)
    index.move("gone", None, 5)
    index.move("gone", 5, None)
    index.flush_writes()
    assert len(engine.changes().rows) == 1


@pytest.mark.parametrize(("left", "kept"), [(1, True), (5, False)])
def test_index_that_does_not_fit_its_store_is_made_anew(
    caplog: pytest.LogCaptureFixture, left: int, *, kept: bool
) -> None:
    supplier = Stores.in_memory_key_value_store("rows")
    store = Stores.timestamped_key_value_store_builder(supplier).build(MemoryEngine())
    for number in range(5):
        store.put_pair(f"k{number}", number, 10 - number)
    store.flush_writes()
    engine = MemoryEngine()
    engine.apply(Changes(rows=dict.fromkeys((bytes((8 + number,)) * 9 for number in range(left)), b"")))
    caplog.set_level("INFO")
    index = store.index_by_time(engine, kept=kept)
    assert "store 'rows': its 5 rows get an index by time" in caplog.text
    assert engine.count() == 5
    assert index.first() == (6, "k4")
    store.put_pair("k4", "later", 20)
    assert index.first() == (7, "k3")
    store.flush_writes()
    store.restore([(b"k3", None, None), (b"old", b"1", 1)])
    assert index.first() == (1, "old")
