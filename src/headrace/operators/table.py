"""Tables: where records become rows, and the operations that derive one table's rows from another's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from headrace.errors import SerializationError, TopologyError
from headrace.operators.aggregate_rows import expiring, forward_flushes, rows, saver
from headrace.operators.base import Edge, Node, ValueGetter, getter, operator
from headrace.operators.process import initialise
from headrace.record import WithKey
from headrace.state.stores.versioned import PUT_RETURN_CODE_NOT_PUT, VALID_TO_UNDEFINED
from headrace.topics.log import Headers
from headrace.topology.operations import (
    TableFilter,
    TableMapValues,
    TablePassThrough,
    TableSource,
    TableToStream,
    TableTransformValues,
)

# (key, value) -> the derived table's value; None is a row that is not there.
Derive = Callable[[Any, Any], Any]
Row = tuple[Any, int] | None
# (timestamp_ms, headers): tells the context which row the transformer works on
AtRow = Callable[[int, Headers], None]


@operator.register
def _source(operation: TableSource, node: Node) -> Edge:
    if operation.store is None:
        return _forward_unstored(node)
    store = node.store(operation.store)
    if store.kind == "versioned":
        return _store_versions(store, node, send_old=operation.send_old)
    if store.cached:
        forward_flushes(store, node, send_old=operation.send_old)
        return expiring(_store_cached(store, node), store, node, send_old=operation.send_old)
    return expiring(
        _store_and_forward(store, node, send_old=operation.send_old), store, node, send_old=operation.send_old
    )


def _forward_unstored(node: Node) -> Edge:
    drop, forward = node.drop, node.forward

    def update(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        if key is None:
            return drop()
        forward(key, value, None, timestamp_ms, headers, True)

    return update


def _store_cached(store: Any, node: Node) -> Edge:
    drop, fail, put_pair = node.drop, node.fail, store.put_pair

    def update(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        if key is None:
            return drop()
        try:
            put_pair(key, value, timestamp_ms, headers)
        except SerializationError as error:
            return fail(error, key, value, timestamp_ms, headers)
        return None

    return update


def _store_and_forward(store: Any, node: Node, *, send_old: bool) -> Edge:
    drop, fail, forward, get_pair, put_pair = node.drop, node.fail, node.forward, store.get_pair, store.put_pair

    def update(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        if key is None:
            return drop()
        try:
            put_pair(key, value, timestamp_ms, headers)
        except SerializationError as error:
            return fail(error, key, value, timestamp_ms, headers)
        return forward(key, value, None, timestamp_ms, headers, True)

    def update_with_old(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        if key is None:
            return drop()
        try:
            row = get_pair(key)
            put_pair(key, value, timestamp_ms, headers)
        except SerializationError as error:
            return fail(error, key, value, timestamp_ms, headers)
        return forward(key, value, None if row is None else row[0], timestamp_ms, headers, True)

    return update_with_old if send_old else update


def _store_versions(store: Any, node: Node, *, send_old: bool) -> Edge:
    drop, fail, forward, get, put = node.drop, node.fail, node.forward, rows(store).get, store.put

    def update(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        if key is None:
            return drop()
        try:
            row = get(key) if send_old else None
            valid_to_ms = put(key, value, timestamp_ms)
        except SerializationError as error:
            return fail(error, key, value, timestamp_ms, headers)
        # A version older than the history is refused by the store, which counts it.
        if valid_to_ms == PUT_RETURN_CODE_NOT_PUT:
            return None
        old = None if row is None else row[0]
        return forward(key, value, old, timestamp_ms, headers, valid_to_ms == VALID_TO_UNDEFINED)

    return update


@operator.register
def _pass_through(operation: TablePassThrough, node: Node) -> Edge:
    return node.forward


@operator.register
def _to_stream(operation: TableToStream, node: Node) -> Edge:
    forward = node.forward

    def to_stream(key: Any, new: Any, old: Any, timestamp_ms: int, headers: Headers, latest: bool) -> None:
        forward(key, new, timestamp_ms, headers)

    return to_stream


@operator.register
def _filter(operation: TableFilter, node: Node) -> Edge:
    # Old values that the parent sends anyway save tombstones for rows that were not there before either. A versioned
    # table keeps those tombstones: they are versions.
    use_old = operation.send_old or operation.use_old
    derive = _filtering(operation)
    return _derived(node, operation.store, derive, use_old=use_old, skip_absent=use_old and not operation.versioned)


@operator.register
def _map_values(operation: TableMapValues, node: Node) -> Edge:
    return _derived(node, operation.store, _mapping(operation), use_old=operation.send_old)


@operator.register
def _transform_values(operation: TableTransformValues, node: Node) -> Edge:
    transform, at_row = _transforming(operation, node)
    update = _derived(node, operation.store, transform, use_old=operation.send_old)

    def transform_row(key: Any, new: Any, old: Any, timestamp_ms: int, headers: Headers, latest: bool) -> None:
        at_row(timestamp_ms, headers)
        update(key, new, old, timestamp_ms, headers, latest)

    return transform_row


def _filtering(operation: TableFilter) -> Derive:
    predicate, negate = operation.predicate, operation.negate

    def derive(key: Any, value: Any) -> Any:
        return value if value is not None and (not predicate(key, value)) is negate else None

    return derive


def _mapping(operation: TableMapValues) -> Derive:
    mapper = operation.mapper
    if isinstance(mapper, WithKey):
        with_key = mapper.function
        return lambda key, value: None if value is None else with_key(key, value)
    return lambda key, value: None if value is None else mapper(value)


def _transforming(operation: TableTransformValues, node: Node) -> tuple[Derive, AtRow]:
    transformer = operation.supplier()
    context = node.processor_context(forwarding=False)
    node.on_init(lambda: initialise(transformer, context))
    node.on_close(transformer.close)
    return transformer.transform, context.at_row


def _derived(node: Node, store_name: str | None, derive: Derive, *, use_old: bool, skip_absent: bool = False) -> Edge:
    if store_name is not None:
        return _derived_stored(node, node.store(store_name), derive, use_old=use_old, skip_absent=skip_absent)
    forward, fail = node.forward, node.fail

    def update(key: Any, new: Any, old: Any, timestamp_ms: int, headers: Headers, latest: bool) -> None:
        try:
            derived = derive(key, new)
            before = derive(key, old) if use_old else None
        except Exception as error:
            return fail(error, key, new, timestamp_ms, headers)
        if skip_absent and derived is None and before is None:
            return None
        return forward(key, derived, before, timestamp_ms, headers, latest)

    return update


def _derived_stored(node: Node, store: Any, derive: Derive, *, use_old: bool, skip_absent: bool) -> Edge:
    get, save, fail = rows(store).get, saver(store, node, send_old=use_old), node.fail

    def update(key: Any, new: Any, old: Any, timestamp_ms: int, headers: Headers, latest: bool) -> None:
        try:
            derived = derive(key, new)
            row = get(key) if use_old else None
        except Exception as error:
            return fail(error, key, new, timestamp_ms, headers)
        if skip_absent and derived is None and row is None:
            return None
        return save(key, derived, None if row is None else row[0], timestamp_ms, timestamp_ms, headers)

    return expiring(update, store, node, send_old=use_old)


@getter.register
def _source_rows(operation: TableSource, node: Node) -> ValueGetter:
    if operation.store is None:
        message = f"table '{node.name}': its rows are needed but it has no store; give it one with Materialized"
        raise TopologyError(message)
    return rows(node.store(operation.store))


@getter.register
def _filter_rows(operation: TableFilter, node: Node) -> ValueGetter:
    return _derived_rows(node, operation.store, operation.parent, lambda: _filtering(operation))


@getter.register
def _map_values_rows(operation: TableMapValues, node: Node) -> ValueGetter:
    return _derived_rows(node, operation.store, operation.parent, lambda: _mapping(operation))


@getter.register
def _transform_values_rows(operation: TableTransformValues, node: Node) -> ValueGetter:
    if operation.store is not None:
        return rows(node.store(operation.store))
    parent, (transform, at_row), task = node.getter(operation.parent), _transforming(operation, node), node.task

    def transformed(key: Any, row: Row) -> Row:
        value, timestamp_ms = (None, -1) if row is None else row
        # The row was made by another record than the one that looks it up.
        origin, offset = task.origin, task.offset
        task.origin, task.offset = None, -1
        at_row(timestamp_ms, ())
        try:
            result = transform(key, value)
        finally:
            task.origin, task.offset = origin, offset
        return None if result is None else (result, timestamp_ms)

    return _through(parent, transformed)


def _derived_rows(node: Node, store_name: str | None, parent: str, derive: Callable[[], Derive]) -> ValueGetter:
    if store_name is not None:
        return rows(node.store(store_name))
    compute = derive()

    def derived(key: Any, row: Row) -> Row:
        if row is None:
            return None
        value = compute(key, row[0])
        return None if value is None else (value, row[1])

    return _through(node.getter(parent), derived)


def _through(parent: ValueGetter, derive: Callable[[Any, Row], Row]) -> ValueGetter:
    get, get_as_of, held_back = parent.get, parent.get_as_of, parent.held_back
    if get_as_of is not None:
        return ValueGetter(
            lambda key: derive(key, get(key)),
            lambda key, timestamp_ms: derive(key, get_as_of(key, timestamp_ms)),
        )
    if held_back is not None:
        told = held_back.told
        held_back = replace(held_back, told=lambda key: derive(key, told(key)))
    return ValueGetter(lambda key: derive(key, get(key)), held_back=held_back)
