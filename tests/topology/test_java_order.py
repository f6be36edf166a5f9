from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headrace.topology.java_order import TreeSet, hash_order, hash_order_of_copy, string_hash


def test_string_hash_counts_utf16_units() -> None:
    assert string_hash("") == 0
    assert string_hash("Aa") == string_hash("BB") == 2112
    assert string_hash("😀") == 31 * 0xD83D + 0xDE00


def test_names_of_one_bucket_keep_their_order() -> None:
    assert hash_order(["Aa", "BB"]) == ("Aa", "BB")
    assert hash_order(["BB", "Aa"]) == ("BB", "Aa")


# The two orders below were printed by java.util.HashSet of OpenJDK 17.


def test_names_come_in_the_order_of_a_java_set() -> None:
    order = (0, 1, 4, 5, 2, 3, 8, 11, 9, 6, 7, 10)
    assert hash_order(f"processor{n}" for n in range(12)) == tuple(f"processor{n}" for n in order)


def test_crowded_bucket_doubles_a_small_table() -> None:
    crowd = ["".join("Aa" if n >> bit & 1 else "BB" for bit in range(4)) for n in range(9)]
    assert len({string_hash(name) for name in crowd}) == 1
    assert hash_order([*crowd, "b", "r", "a"]) == ("a", "b", *crowd, "r")


@given(st.lists(st.text(max_size=6), max_size=80))
def test_hash_orders_have_each_name_once(names: list[str]) -> None:
    for ordered in (hash_order(names), hash_order_of_copy(names)):
        assert len(ordered) == len(set(ordered))
        assert set(ordered) == set(names)


@given(st.lists(st.integers(), max_size=200))
def test_tree_set_sorts_when_comparisons_do_not_change(numbers: list[int]) -> None:
    tree = TreeSet[int](lambda a, b: a - b)
    for number in numbers:
        tree.add(number)
    assert list(tree) == sorted(set(numbers))
