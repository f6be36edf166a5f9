"""The contract of engines: all of them are the same ordered map."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.state import Changes, Engine, MemoryEngine, OverlayEngine
from headrace.state.engines.lmdb import LmdbEnvironment
from tests.state.conftest import MakeEngine

LONG = b"k" * 600

same_fixture = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def test_a_value_can_be_read_changed_and_deleted(engine: Engine) -> None:
    engine.put(b"a", b"1")
    engine.put(b"a", b"2")
    assert engine.get(b"a") == b"2"
    engine.delete(b"a")
    engine.delete(b"a")
    assert engine.get(b"a") is None


@pytest.mark.parametrize("key", [b"", b"\0", b"\0\0", b"\0a", b"\xff" * 3, LONG, b"\0" + LONG, LONG + b"\0"])
def test_any_key_is_a_key_and_any_value_a_value(engine: Engine, key: bytes) -> None:
    engine.put(key, b"")
    assert engine.get(key) == b""
    assert list(engine.scan()) == [(key, b"")]
    assert engine.count() == 1


def test_a_scan_is_in_the_order_of_keys_and_excludes_its_end(engine: Engine) -> None:
    for key in (b"b", b"", b"\0", b"a", b"ab", b"c"):
        engine.put(key, key)
    assert [key for key, _ in engine.scan()] == [b"", b"\0", b"a", b"ab", b"b", b"c"]
    assert [key for key, _ in engine.scan(b"a", b"b")] == [b"a", b"ab"]
    assert [key for key, _ in engine.scan(b"a", b"b", reverse=True)] == [b"ab", b"a"]
    assert [key for key, _ in engine.scan(None, b"a", reverse=True)] == [b"\0", b""]
    assert list(engine.scan(b"x", b"a")) == []


def test_long_keys_keep_their_order(engine: Engine) -> None:
    keys = sorted([LONG + bytes((number,)) for number in range(0, 250, 7)] + [LONG[:479], LONG[:478], LONG[:480], b"z"])
    for key in reversed(keys):
        engine.put(key, key[-1:])
    assert [key for key, _ in engine.scan()] == keys
    assert [key for key, _ in engine.scan(reverse=True)] == keys[::-1]
    low, high = keys[5], keys[20]
    assert [key for key, _ in engine.scan(low, high)] == keys[5:20]
    assert [key for key, _ in engine.scan(low, high, reverse=True)] == keys[5:20][::-1]
    engine.delete_range(low, high)
    assert [key for key, _ in engine.scan()] == keys[:5] + keys[20:]


def test_a_scan_goes_on_while_rows_are_written(engine: Engine) -> None:
    for number in range(100):
        engine.put(b"%03d" % number, b"")
    seen = []
    for key, _ in engine.scan():
        seen.append(key)
        engine.delete(key)
        engine.put(b"%03d" % (200 + len(seen)), b"") if len(seen) < 5 else None
    assert seen[:100] == [b"%03d" % number for number in range(100)]


def test_a_range_is_deleted_and_can_be_filled_again(engine: Engine) -> None:
    for key in (b"a", b"b", b"c", b"d"):
        engine.put(key, b"1")
    engine.delete_range(b"b", b"d")
    engine.delete_range(b"d", b"b")
    engine.put(b"c", b"2")
    assert list(engine.scan()) == [(b"a", b"1"), (b"c", b"2"), (b"d", b"1")]
    engine.delete_range(b"a", b"d")
    assert list(engine.scan()) == [(b"d", b"1")]


def test_changes_are_applied_ranges_first(engine: Engine) -> None:
    engine.put(b"a", b"1")
    engine.put(b"b", b"1")
    engine.apply(Changes(ranges=((b"a", b"b"),), rows={b"a": b"2", b"b": None}))
    assert list(engine.scan()) == [(b"a", b"2")]


def test_clear_removes_everything(engine: Engine) -> None:
    engine.put(b"a", b"1")
    engine.put(LONG, b"1")
    engine.clear()
    assert list(engine.scan()) == []
    assert engine.count() == 0


keys = st.one_of(
    st.binary(max_size=3),
    st.builds(lambda stem, tail: stem + tail, st.sampled_from([LONG[:478], LONG[:479], LONG]), st.binary(max_size=3)),
)
operations = st.lists(
    st.one_of(
        st.tuples(st.just("put"), keys, st.binary(max_size=4)),
        st.tuples(st.just("delete"), keys, st.none()),
        st.tuples(st.just("delete_range"), keys, keys),
        st.tuples(st.just("commit"), st.none(), st.none()),
    ),
    max_size=40,
)


@same_fixture
@given(operations=operations, low=st.none() | keys, high=st.none() | keys)
def test_an_engine_is_a_sorted_dict(
    engines: MakeEngine, operations: list[tuple[str, bytes, bytes]], low: bytes | None, high: bytes | None
) -> None:
    engine, model = engines(), dict[bytes, bytes]()
    for operation, key, argument in operations:
        if operation == "put":
            engine.put(key, argument)
            model[key] = argument
        elif operation == "delete":
            engine.delete(key)
            model.pop(key, None)
        elif operation == "delete_range":
            engine.delete_range(key, argument)
            model = {name: value for name, value in model.items() if not key <= name < argument}
        elif isinstance(engine, OverlayEngine):
            engine.commit()
    expected = sorted((k, v) for k, v in model.items() if (low is None or k >= low) and (high is None or k < high))
    assert list(engine.scan(low, high)) == expected
    assert list(engine.scan(low, high, reverse=True)) == expected[::-1]
    assert engine.count() == len(model)
    assert all(engine.get(key) == value for key, value in model.items())


@pytest.mark.parametrize("many", [10, 1_000])
def test_a_scan_sees_what_was_applied_after_an_earlier_one(engine: Engine, many: int) -> None:
    rows: dict[bytes, bytes | None] = {b"%06d" % (number * 7_919 % 100_000): b"" for number in range(100)}
    engine.apply(Changes(rows=rows))
    assert [key for key, _ in engine.scan()] == sorted(rows)
    # Some engines have put their keys in order now, and stop doing so when many are added.
    more: dict[bytes, bytes | None] = {b"%06d" % (number * 104_729 % 100_000): b"" for number in range(many)}
    engine.apply(Changes(rows=more))
    engine.delete_range(b"020000", b"050000")
    left = sorted(key for key in {**rows, **more} if not b"020000" <= key < b"050000")
    assert [key for key, _ in engine.scan()] == left
    assert [key for key, _ in engine.scan(reverse=True)] == left[::-1]


@given(operations=operations)
def test_the_changes_of_an_overlay_make_the_same_rows_elsewhere(operations: list[tuple[str, bytes, bytes]]) -> None:
    base, twin = MemoryEngine(), MemoryEngine()
    overlay = OverlayEngine(base)
    for operation, key, argument in operations:
        if operation == "put":
            overlay.put(key, argument)
        elif operation == "delete":
            overlay.delete(key)
        elif operation == "delete_range":
            overlay.delete_range(key, argument)
        else:
            twin.apply(Changes.unpack(overlay.changes().pack()))
            overlay.commit()
    twin.apply(Changes.unpack(overlay.changes().pack()))
    assert list(twin.scan()) == list(overlay.scan())
    before = list(base.scan())
    overlay.rollback()
    assert list(overlay.scan()) == before


def test_changes_of_another_format_are_refused() -> None:
    with pytest.raises(ValueError, match="format 9"):
        Changes.unpack(b"\x09" + Changes().pack()[1:])


def test_the_map_on_disk_grows(tmp_path: Path) -> None:
    environment = LmdbEnvironment(tmp_path, map_size=1 << 16)
    engine = environment.engine("large")
    engine.apply(Changes(rows={b"%d" % number: b"x" * 10_000 for number in range(200)}))
    assert engine.count() == 200
    environment.close()
