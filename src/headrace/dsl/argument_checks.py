"""Checks of arguments: a wrong one is reported by the call that got it, not by a record years later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from headrace.arguments import values
from headrace.arguments.signatures import count_of, deferred, describe_function, parameters_of, takes
from headrace.config.named_objects import find_partitioner
from headrace.errors import TopologyError, describe_value
from headrace.record import WithKey

T = TypeVar("T")


def check_function(
    where: str, argument: str, function: Any, signature: str, *, with_key: bool = False, generators: bool = False
) -> None:
    """Raises unless ``function`` can be called so and gives its result at once.

    ``with_key`` also allows one that was wrapped to take the key, ``generators`` one that yields its results.
    """
    count = count_of(signature)
    if isinstance(function, WithKey):
        if not with_key:
            message = (
                f"{where}: {argument} always gets the key; found with_key(…), pass the function {signature} itself"
            )
            raise TopologyError(message)
        function, signature, count = function.function, f"(key, {signature[1:]}", count + 1
        remedy = "leave out with_key(…)" if takes(function, count - 1) else ""
    else:
        remedy = "wrap it in with_key(…) to get the key as well" if with_key and takes(function, count + 1) else ""
    if not callable(function):
        message = f"{where}: {argument} must be a function {signature}; found {describe_value(function)}"
        raise TopologyError(message)
    if (why := deferred(function, generators=generators)) is not None:
        hint = "return the value, or use flat_map or flat_map_values" if "generator" in why else "pass a plain function"
        message = (
            f"{where}: {argument} must be a function {signature}; found {describe_function(function)}, {why}; {hint}"
        )
        raise TopologyError(message)
    if not takes(function, count):
        message = (
            f"{where}: {argument} must be a function {signature}; found {describe_function(function)}, which takes "
            f"{parameters_of(function)}; {remedy or 'give it these parameters'}"
        )
        raise TopologyError(message)


def check_partitioner(
    where: str, argument: str, partitioner: Callable[..., Any] | str | None
) -> Callable[..., Any] | None:
    """Returns the partitioner, or the one that a text names; raises unless it can be called as one."""
    if isinstance(partitioner, str):
        partitioner = find_partitioner(f"{where}: {argument}", partitioner)
    if partitioner is not None:
        check_function(where, argument, partitioner, "(topic, key, value, partitions)")
    return partitioner


def check_initializer(where: str, initializer: Any) -> None:
    """Raises unless ``initializer`` is a function without parameters; people write the first value itself, too."""
    if callable(initializer) and takes(initializer, 0):
        return check_function(where, "initializer", initializer, "()")
    if callable(initializer):
        found, remedy = f"{describe_function(initializer)}, which takes {parameters_of(initializer)}", "lambda: 0"
    else:
        literal = repr(initializer) if isinstance(initializer, int | float | str | list | dict | tuple) else "…"
        found, remedy = describe_value(initializer), f"lambda: {literal if len(literal) < 40 else '…'}"
    message = f"{where}: initializer must be a function () without parameters; found {found}; write `{remedy}`"
    raise TopologyError(message)


def check_option(where: str, argument: str, option: Any, kind: type[T], default: T) -> T:
    """Returns the option, or the default if it was left out; raises if it is something else."""
    if option is None:
        return default
    return check_type(where, argument, option, kind)


def check_type(where: str, argument: str, value: Any, kind: type[T]) -> T:
    """Returns the value if it has the type, else raises."""
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        hint = _option_hint(kind.__name__, value)
        message = f"{where}: {argument} must be {article} {kind.__name__}; found {describe_value(value)}{hint}"
        raise TopologyError(message)
    return value


def _option_hint(kind: str, value: Any) -> str:
    """Returns how to write an option for those who pass what belongs into it."""
    if isinstance(value, type) and value.__name__ == kind:
        return f"; write {kind}(…)"
    if isinstance(value, str) and value:
        if kind == "Materialized":
            return f"; write Materialized({str(value)!r}) to name its store, or name={str(value)!r} to name its node"
        return f"; write {kind}({str(value)!r})" if kind in {"Branched", "Grouped", "Repartitioned"} else ""
    if kind == "Repartitioned" and isinstance(value, int) and not isinstance(value, bool):
        return f"; write Repartitioned(partitions={value})"
    return ""


def check_serde(where: str, argument: str, serde: Any) -> None:
    """Raises unless ``serde`` is a serde or None, which stands for the application's default."""
    values.serde(serde, f"{where}: {argument}")


def check_schema(where: str, schema: Any) -> None:
    """Raises unless ``schema`` is a pyarrow schema or None; told by its class's name, because pyarrow is optional."""
    kind = type(schema)
    if schema is not None and (kind.__name__ != "Schema" or not kind.__module__.startswith("pyarrow")):
        message = (
            f"{where}: schema must be a pyarrow.Schema; found {describe_value(schema)}; "
            "write for example pyarrow.schema([('amount', pyarrow.float64())])"
        )
        raise TopologyError(message)


def check_topic(where: str, topic: Any) -> str:
    """Returns the topic's name if it is one."""
    if not isinstance(topic, str) or not topic:
        message = f"{where}: a topic must be a str that is not empty; found {describe_value(topic)}"
        raise TopologyError(message)
    return topic
