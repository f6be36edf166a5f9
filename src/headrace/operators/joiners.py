"""One shape for all joiners: the user's function may take the key or not, and each side of a join has its own view."""

from __future__ import annotations

from typing import Any

from headrace.record import WithKey
from headrace.topology.operations import Function, Side


def keyed(joiner: Function | WithKey[Any]) -> Function:
    """Returns the joiner as a function of (key, left, right).

    >>> keyed(lambda left, right: left + right)("k", 1, 2)
    3
    """
    if isinstance(joiner, WithKey):
        return joiner.function
    return lambda key, left, right: joiner(left, right)


def seen_from(side: Side, joiner: Function | WithKey[Any]) -> Function:
    """Returns the joiner as a function of (key, this side's value, the other side's value).

    >>> seen_from(Side.RIGHT, lambda left, right: (left, right))("k", "this", "other")
    ('other', 'this')
    """
    if side is Side.LEFT:
        return keyed(joiner)
    if isinstance(joiner, WithKey):
        with_key = joiner.function
        return lambda key, this, other: with_key(key, other, this)
    return lambda key, this, other: joiner(other, this)
