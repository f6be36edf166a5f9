"""Checks of what users pass to a topology; an error names the node, the requirement, what was found and the remedy."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from headrace.arguments.signatures import count_of, deferred, describe_function, parameters_of, takes
from headrace.errors import TopologyError, describe_value
from headrace.processor import FixedKeyProcessor, Processor, ValueTransformerWithKey, stores_of
from headrace.state import StoreBuilder

_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def invalid(where: str, requirement: str, found: str, remedy: str) -> TopologyError:
    """Returns the error for a call that cannot be carried out.

    >>> print(invalid("sink 'out'", "a sink needs a parent", "none was given", "name the node whose records it writes"))
    sink 'out': a sink needs a parent; none was given; name the node whose records it writes
    """
    return TopologyError(f"{where}: {requirement}; {found}; {remedy}")


def check_name(kind: str, name: object) -> str:
    """Returns the name of a node or store.

    >>> check_name("source", 5)
    Traceback (most recent call last):
    ...
    headrace.errors.TopologyError: source: its name must be a non-empty string; found int 5; pass a string
    """
    if isinstance(name, str) and name:
        return name
    raise invalid(kind, "its name must be a non-empty string", f"found {describe_value(name)}", "pass a string")


def check_names(where: str, kind: str, names: Iterable[object]) -> tuple[str, ...]:
    """Returns the names of other nodes or stores that a node refers to."""
    checked = []
    for name in names:
        if not isinstance(name, str) or not name:
            remedy = f"pass each {kind} name as an argument of its own"
            raise invalid(where, f"a {kind} is named by a string", f"found {describe_value(name)}", remedy)
        checked.append(name)
    return tuple(checked)


def check_topic(where: str, topic: object) -> str:
    """Returns the name of a topic if a log can have a topic of that name.

    >>> check_topic("sink 'out'", "two words")
    Traceback (most recent call last):
    ...
    headrace.errors.TopologyError: sink 'out': a topic name has 1 to 249 letters, digits, dots, underscores, hyphens; \
found str 'two words'; choose another name
    """
    if isinstance(topic, re.Pattern):
        raise invalid(where, "a topic is named by a string", f"found {describe_value(topic)}", "pass it as pattern=…")
    if isinstance(topic, list | tuple | set | frozenset):
        remedy = "pass each topic as an argument of its own"
        raise invalid(where, "a topic is named by a string", f"found {describe_value(topic)}", remedy)
    if isinstance(topic, str) and _TOPIC.fullmatch(topic) and topic not in (".", ".."):
        return topic
    requirement = "a topic name has 1 to 249 letters, digits, dots, underscores, hyphens"
    raise invalid(where, requirement, f"found {describe_value(topic)}", "choose another name")


def check_target(where: str, topic: object) -> None:
    """Refuses what a sink cannot write to: it takes the name of a topic or a function that chooses one."""
    if isinstance(topic, str):
        check_topic(where, topic)
    elif callable(topic):
        check_function(where, "topic name extractor", topic, "(key, value, context)")
    else:
        remedy = "pass the topic's name, or a function (key, value, context) -> topic"
        raise invalid(where, "a sink writes to a topic", f"found {describe_value(topic)}", remedy)


def check_pattern(where: str, pattern: object) -> re.Pattern[str]:
    """Returns a compiled pattern of text."""
    if isinstance(pattern, re.Pattern) and isinstance(pattern.pattern, str):
        return pattern
    found = f"found {describe_value(pattern)}"
    raise invalid(where, "the pattern must be a compiled regular expression", found, "pass re.compile('…')")


def check_serde(where: str, role: str, serde: Any) -> None:
    """Refuses what is neither None nor a serde.

    >>> check_serde("source 'in'", "key serde", str)
    Traceback (most recent call last):
    ...
    headrace.errors.TopologyError: source 'in': the key serde must be a serde; found type <class 'str'>; \
pass one of Serdes, such as Serdes.string(), or leave it out to use the application's default
    """
    if serde is None:
        return
    is_serde = callable(getattr(serde, "serializer", None)) and callable(getattr(serde, "deserializer", None))
    if is_serde and not isinstance(serde, type):
        return
    remedy = "pass one of Serdes, such as Serdes.string(), or leave it out to use the application's default"
    raise invalid(where, f"the {role} must be a serde", f"found {describe_value(serde)}", remedy)


def check_function(where: str, role: str, function: object, call: str) -> None:
    """Refuses what is neither None nor callable; a class is refused too, as its instances are meant.

    >>> check_function("source 'in'", "timestamp extractor", 5, "(record, partition_time_ms)")
    Traceback (most recent call last):
    ...
    headrace.errors.TopologyError: source 'in': the timestamp extractor must be callable as \
(record, partition_time_ms); found int 5; pass a function, or an object with __call__
    """
    if function is None:
        return
    if callable(function) and not isinstance(function, type):
        if (why := deferred(function)) is not None:
            found = f"found {describe_function(function)}, {why}"
            raise invalid(where, f"the {role} must be callable as {call}", found, "pass a plain function")
        if takes(function, count_of(call)):
            return
        found = f"found {describe_function(function)}, which takes {parameters_of(function)}"
        raise invalid(where, f"the {role} must be callable as {call}", found, "give it these parameters")
    remedy = "pass an instance of it" if isinstance(function, type) else "pass a function, or an object with __call__"
    raise invalid(where, f"the {role} must be callable as {call}", f"found {describe_value(function)}", remedy)


def check_supplier(where: str, supplier: Any, *, fixed_key: bool | None = None) -> bool:
    """Checks that a supplier makes a new processor with each call; tells whether it is one that keeps the key.

    With ``fixed_key`` it must be one that does, or one that does not.

    >>> from headrace.processor import Processor
    >>> check_supplier("processor 'p'", Processor())
    Traceback (most recent call last):
    ...
    headrace.errors.TopologyError: processor 'p': a supplier is called without arguments and returns a new processor; \
found an instance of Processor; pass the class itself, or a function that makes an instance
    """
    requirement = "a supplier is called without arguments and returns a new processor"
    if not callable(supplier):
        what = f"an instance of {type(supplier).__name__}" if hasattr(supplier, "process") else describe_value(supplier)
        remedy = "pass the class itself, or a function that makes an instance"
        raise invalid(where, requirement, f"found {what}", remedy)
    try:
        first, second = supplier(), supplier()
    except Exception as error:
        found = f"{_label(supplier)} raised {type(error).__name__}: {error}"
        raise invalid(where, requirement, found, "pass a callable that needs no arguments") from error
    if not callable(getattr(first, "process", None)):
        found = f"{_label(supplier)} returned {describe_value(first)}, which has no method `process`"
        raise invalid(where, requirement, found, "return a subclass of Processor or FixedKeyProcessor")
    if first is second:
        found = f"{_label(supplier)} returned the same object twice"
        raise invalid(where, requirement, found, "make a new object in each call, as every task has its own")
    _check_method(where, first, "process", "(record)", (Processor, FixedKeyProcessor))
    _check_fixed_key(where, first, fixed_key)
    return isinstance(first, FixedKeyProcessor)


def check_transformer_supplier(where: str, supplier: Any) -> None:
    """Checks that a supplier makes a transformer of a table's values."""
    requirement = "a supplier is called without arguments and returns a new transformer"
    try:
        made = supplier()
    except Exception as error:
        found = f"{_label(supplier)} raised {type(error).__name__}: {error}"
        raise invalid(where, requirement, found, "pass a callable that needs no arguments") from error
    if not callable(getattr(made, "transform", None)):
        found = f"{_label(supplier)} returned {describe_value(made)}, which has no method `transform`"
        raise invalid(where, requirement, found, "return a subclass of ValueTransformerWithKey")
    _check_method(where, made, "transform", "(key, value)", (ValueTransformerWithKey,))


def _check_method(where: str, made: Any, name: str, call: str, bases: tuple[type, ...]) -> None:
    owner, method = type(made).__name__, getattr(made, name)
    if any(getattr(type(made), name, None) is getattr(base, name) for base in bases):
        found, remedy = f"{owner} does not define it", f"write `def {name}(self, {call[1:]}:` in {owner}"
        raise invalid(where, f"a method `{name}{call}` is needed", found, remedy)
    if (why := deferred(method)) is not None:
        found = f"found {describe_function(method)}, {why}"
        raise invalid(where, f"`{name}{call}` must be a plain method", found, "make it one")
    if not takes(method, count_of(call)):
        found = f"found {describe_function(method)}, which takes {parameters_of(method)}"
        remedy = "key and value are in the record: record.key, record.value" if name == "process" else "change it"
        raise invalid(where, f"`{name}` must take {call}", found, remedy)


def _check_fixed_key(where: str, made: Any, fixed_key: bool | None) -> None:  # noqa: FBT001 - passed on
    if fixed_key is False and isinstance(made, FixedKeyProcessor):
        found = f"found {type(made).__name__}, a FixedKeyProcessor"
        raise invalid(where, "process() takes a Processor", found, "use process_values(), or make it a Processor")
    if fixed_key is True and isinstance(made, Processor):
        found = f"found {type(made).__name__}, a Processor"
        remedy = "use process(), or make it a FixedKeyProcessor, which keeps the key"
        raise invalid(where, "process_values() takes a FixedKeyProcessor", found, remedy)


def check_store_builder(where: str, builder: Any) -> StoreBuilder:
    """Returns the builder of a store.

    >>> check_store_builder("state store", "counts")
    Traceback (most recent call last):
    ...
    headrace.errors.TopologyError: state store: a store is added by its builder; found str 'counts'; \
pass a builder made by Stores, such as Stores.key_value_store_builder(…)
    """
    if not isinstance(builder, type) and all(hasattr(builder, each) for each in ("name", "kind", "logging")):
        check_name("state store", builder.name)
        found: StoreBuilder = builder
        return found
    remedy = "pass a builder made by Stores, such as Stores.key_value_store_builder(…)"
    raise invalid(where, "a store is added by its builder", f"found {describe_value(builder)}", remedy)


def brought_stores(where: str, supplier: Callable[[], Any]) -> tuple[StoreBuilder, ...]:
    """Returns the builders of the stores that a supplier brings along."""
    try:
        builders = stores_of(supplier)
    except TypeError as error:
        requirement = "`stores` of a supplier is an iterable of store builders, or a method that returns one"
        remedy = "make it a class attribute or a class method when the supplier is a class"
        raise invalid(where, requirement, f"{_label(supplier)} raised {error}", remedy) from error
    return tuple(check_store_builder(where, builder) for builder in builders)


def _label(function: Any) -> str:
    return f"'{getattr(function, '__qualname__', type(function).__name__)}'"
