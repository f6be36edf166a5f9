"""Foreign-key joins of two tables: a left row subscribes to the right row that it names, and gets its changes.

A change on the left travels to the partition of the right row as a subscription (send, receive, join) and comes back
as an answer; a change on the right answers all its subscriptions. The answer carries a hash of the left value that
asked, so that one that was overtaken by a change of the left row is thrown away. One that takes a result back is not:
the change that has overtaken it may get no answer, and the result would stay for ever. Kafka Streams has this race.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.errors import SerializationError
from headrace.operators.base import DECIDED, Edge, Node, operator
from headrace.operators.joiners import keyed
from headrace.record import WithKey
from headrace.serdes import Serde
from headrace.serdes.base import resolved
from headrace.topics.log import Headers
from headrace.topology.murmur3 import murmur3_128
from headrace.topology.operations import (
    ForeignTableJoin,
    Function,
    ResponseJoin,
    SubscriptionJoin,
    SubscriptionReceive,
    SubscriptionSend,
)
from headrace.topology.wire import Instruction, Subscription, SubscriptionResponse

_FORGET = Instruction.DELETE_KEY_NO_PROPAGATE
_FORGET_AND_ANSWER = Instruction.DELETE_KEY_AND_PROPAGATE
_ANSWER = Instruction.PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE
_ANSWER_IF_FOUND = Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE

Order = tuple[Any, Instruction]
Plan = Callable[[Any, Any, Any], tuple[Order, ...]]


@operator.register
def _send(operation: SubscriptionSend, node: Node) -> Edge:
    plan = _left_plan(operation, node) if operation.left else _inner_plan(operation, node)
    value_hash = _hasher(node, operation.value_serde, operation.value_topic)
    forward, drop, fail, task, versioned = node.forward, node.drop, node.fail, node.task, operation.versioned
    skips_without_key = not operation.left

    def send(key: Any, new: Any, old: Any, timestamp_ms: int, headers: Headers, latest: bool) -> None:
        if versioned and not latest:
            return drop()
        if new is None and old is None:
            return None
        try:
            orders = plan(key, new, old)
            digest = None if new is None or not orders else value_hash(new)
        except Exception as error:
            return fail(error, key, new, timestamp_ms, headers)
        if not orders and skips_without_key:
            return drop()
        for foreign_key, instruction in orders:
            forward(foreign_key, Subscription(digest, instruction, key, 1, task.partition), timestamp_ms, headers)
        return None

    return send


def _left_plan(operation: SubscriptionSend, node: Node) -> Plan:
    extract, write = _extractor(operation.foreign_key), _key_bytes(operation, node)

    def plan(key: Any, new: Any, old: Any) -> tuple[Order, ...]:
        old_key = None if old is None else extract(key, old)
        new_key = None if new is None else extract(key, new)
        if old_key is not None and (new_key is None or write(new_key) != write(old_key)):
            return (old_key, _FORGET), (new_key, _ANSWER)
        return ((new_key, _ANSWER),)

    return plan


def _inner_plan(operation: SubscriptionSend, node: Node) -> Plan:
    extract, write = _extractor(operation.foreign_key), _key_bytes(operation, node)

    def plan(key: Any, new: Any, old: Any) -> tuple[Order, ...]:
        old_key = None if old is None else extract(key, old)
        new_key = None if new is None else extract(key, new)
        if new_key is None:
            return () if old_key is None else ((old_key, _FORGET_AND_ANSWER),)
        if old_key is None or write(new_key) == write(old_key):
            return ((new_key, _ANSWER_IF_FOUND),)
        # The earlier result has to go even if the new key finds no row.
        return (old_key, _FORGET), (new_key, _ANSWER)

    return plan


def _extractor(foreign_key: Function | WithKey[Any]) -> Function:
    if isinstance(foreign_key, WithKey):
        return foreign_key.function
    return lambda key, value: foreign_key(value)


def _key_bytes(operation: SubscriptionSend, node: Node) -> Callable[[Any], bytes]:
    serde = resolved(operation.foreign_key_serde, node.config.default_key_serde)
    return serde.serializer(f"{node.config.application_id}-{operation.foreign_key_topic}", is_key=True)


def _hasher(node: Node, value_serde: Serde[Any] | None, topic: str) -> Callable[[Any], bytes]:
    serde = resolved(value_serde, node.config.default_value_serde)
    write = serde.serializer(f"{node.config.application_id}-{topic}", is_key=False)
    return lambda value: murmur3_128(write(value))


@operator.register
def _receive(operation: SubscriptionReceive, node: Node) -> Edge:
    store = node.store(operation.store)
    put, delete, forward, drop = store.put, store.delete, node.forward, node.drop

    def receive(key: Any, subscription: Subscription, timestamp_ms: int, headers: Headers) -> None:
        instruction = subscription.instruction
        if key is None:
            if instruction is not _ANSWER:
                return drop()
        elif instruction is _FORGET or instruction is _FORGET_AND_ANSWER:
            delete(key, subscription.primary_key)
        else:
            put(key, subscription.primary_key, subscription, timestamp_ms)
        return forward(key, subscription, timestamp_ms, headers)

    return receive


@operator.register
def _subscription_join(operation: SubscriptionJoin, node: Node) -> Edge:
    get, forward, fail = node.getter(operation.table).for_joins(), node.forward, node.fail

    def answer(key: Any, subscription: Subscription, timestamp_ms: int, headers: Headers) -> None:
        digest, instruction, primary_key, _, partition = subscription
        if instruction is _FORGET:
            return None
        try:
            row = None if key is None else get(key)
        except DECIDED:
            raise
        except Exception as error:
            return fail(error, key, subscription, timestamp_ms, headers)
        if row is None:
            if instruction is _ANSWER_IF_FOUND:
                return None
            return forward(primary_key, SubscriptionResponse(digest, None, partition), timestamp_ms, headers)
        value, row_ms = row
        response = SubscriptionResponse(digest, None if instruction is _FORGET_AND_ANSWER else value, partition)
        return forward(primary_key, response, max(timestamp_ms, row_ms), headers)

    return answer


@operator.register
def _foreign_table_join(operation: ForeignTableJoin, node: Node) -> Edge:
    subscribers, versioned = node.store(operation.store).prefix_scan, operation.versioned
    forward, drop, fail = node.forward, node.drop, node.fail

    def answer_all(key: Any, new: Any, old: Any, timestamp_ms: int, headers: Headers, latest: bool) -> None:
        if key is None or (versioned and not latest):
            return drop()
        try:
            subscriptions = subscribers(key)
        except SerializationError as error:
            return fail(error, key, new, timestamp_ms, headers)
        for primary_key, subscription, _ in subscriptions:
            response = SubscriptionResponse(subscription.hash, new, subscription.primary_partition)
            forward(primary_key, response, timestamp_ms, headers)
        return None

    return answer_all


@operator.register
def _response_join(operation: ResponseJoin, node: Node) -> Edge:
    get, left = node.getter(operation.table).get, operation.left
    extract, task = _extractor(operation.foreign_key), node.task
    value_hash = _hasher(node, operation.value_serde, operation.value_topic)
    unite, forward, drop, fail = keyed(operation.joiner), node.forward, node.drop, node.fail

    def join(key: Any, response: SubscriptionResponse, timestamp_ms: int, headers: Headers) -> None:
        try:
            row = get(key)
            value, digest = (None, None) if row is None else (row[0], value_hash(row[0]))
            right = response.value
            if response.hash != digest:
                drop()
                # In a left join every change of the left row is answered.
                if left or right is not None or not task.pipelined:
                    return None
                foreign_key = None if row is None else extract(key, value)
                if foreign_key is not None:
                    again = Subscription(digest, _ANSWER, key, 1, task.partition)
                    return node.forward_from(operation.sender)(foreign_key, again, timestamp_ms, headers)
            # The row may be gone on either side; a left join keeps the left one.
            gone = right is None and (not left or row is None)
            result = None if gone else unite(key, value, right)
        except Exception as error:
            return fail(error, key, response, timestamp_ms, headers)
        return forward(key, result, timestamp_ms, headers)

    return join
