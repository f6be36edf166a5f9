"""SQL types from Python's type hints.

========================= ==========================================================
Hint                      SQL
========================= ==========================================================
``bool``                  BOOLEAN
``int``                   BIGINT; an INTEGER is passed too
``float``                 DOUBLE; other numbers are passed too
``str``, ``bytes``        STRING, BYTES
``Decimal``               DECIMAL of any size
``list[T]``               ARRAY
``dict[K, V]``            MAP
a ``TypedDict``           STRUCT with its fields, names in upper case
``Annotated[H, type]``    the SQL type, such as ``Annotated[int, DATE]``
a type variable           any type, the same wherever the variable stands
``Any``                   any type
========================= ==========================================================
"""

from __future__ import annotations

from decimal import Decimal
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints, is_typeddict

from headrace.sql.errors import SqlFunctionError
from headrace.sql.functions.signatures import (
    Accepted,
    AnyDecimal,
    AnyStruct,
    Anything,
    ArrayOf,
    Exactly,
    Generic,
    MapOf,
)
from headrace.sql.types import (
    ARRAY,
    BIGINT,
    BOOLEAN,
    BYTES,
    DOUBLE,
    MAP,
    STRING,
    STRUCT,
    SqlStruct,
    SqlType,
    StructField,
)

_PLAIN: dict[object, SqlType] = {bool: BOOLEAN, int: BIGINT, float: DOUBLE, str: STRING, bytes: BYTES}
_LISTS = ("list", "Sequence", "Iterable", "Iterator", "Generator", "Collection")


def without_none(hint: Any) -> tuple[Any, bool]:
    """Returns the hint without ``None``, and whether it was part of it."""
    if get_origin(hint) in (Union, UnionType):
        parts = [part for part in get_args(hint) if part is not NoneType]
        if len(parts) == 1 and len(get_args(hint)) == 2:
            return parts[0], True
    return hint, hint in (None, NoneType)


def accepted_of(hint: Any, where: str) -> Accepted:
    """Returns what a parameter with this hint takes; raises ``SqlFunctionError`` for a hint that means no SQL type."""
    hint = without_none(hint)[0]
    if hint is Any:
        return Anything()
    if isinstance(hint, TypeVar):
        return Generic(hint.__name__)
    if hint is Decimal:
        return AnyDecimal()
    if get_origin(hint) is list:
        return ArrayOf(accepted_of(get_args(hint)[0], where))
    if get_origin(hint) is dict:
        key, value = get_args(hint)
        return MapOf(accepted_of(key, where), accepted_of(value, where))
    found = type_of(hint, where)
    return AnyStruct() if isinstance(found, SqlStruct) else Exactly(found)


def type_of(hint: Any, where: str) -> SqlType:
    """Returns the one SQL type of a hint; raises ``SqlFunctionError`` if it means none, or more than one."""
    hint = without_none(hint)[0]
    if get_origin(hint) is Annotated:
        for part in get_args(hint)[1:]:
            if isinstance(part, SqlType):
                return part
        return type_of(get_args(hint)[0], where)
    if hint in _PLAIN:
        return _PLAIN[hint]
    if get_origin(hint) is list:
        return ARRAY(type_of(get_args(hint)[0], where))
    if get_origin(hint) is dict:
        key, value = get_args(hint)
        return MAP(type_of(key, where), type_of(value, where))
    if isinstance(hint, type) and is_typeddict(hint):
        parts = get_type_hints(hint, include_extras=True).items()
        return STRUCT(tuple(StructField(name.upper(), type_of(part, where)) for name, part in parts))
    size = " with its size, such as Annotated[Decimal, DECIMAL(10, 2)]" if hint is Decimal else ""
    message = (
        f"{where}: the hint {hint!r} means no SQL type{size}; use bool, int, float, str, bytes, list, dict, "
        "a TypedDict or Annotated[…, an SQL type]"
    )
    raise SqlFunctionError(message)


def item_hint(hint: Any, where: str) -> Any:
    """Returns the hint of the items of what a table function returns."""
    origin = get_origin(hint)
    if getattr(origin, "__name__", "") in _LISTS and get_args(hint):
        return get_args(hint)[0]
    message = (
        f"{where}: a table function returns rows; give it a result such as list[str] or Iterator[str], not {hint!r}"
    )
    raise SqlFunctionError(message)
