"""The join of two tables by a foreign key: questions travel to the right table's partitions, answers come back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from headrace.dsl.argument_checks import check_partitioner
from headrace.dsl.graph import NodeId, Process, Sink, StreamSource
from headrace.dsl.materialized import Materialized
from headrace.dsl.options import Consumed, TableJoined
from headrace.dsl.requests import ask_for_old_values, lookup_name, rows_of
from headrace.dsl.stores import subscription_store
from headrace.errors import TopologyError
from headrace.record import WithKey
from headrace.serdes import Serde
from headrace.topology import operations as ops
from headrace.topology.wire import SubscriptionResponseSerde, SubscriptionSerde, response_partitioner

if TYPE_CHECKING:
    from headrace.dsl.ktable import KTable

_REGISTRATION = "KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-"
_PROCESSOR = "KTABLE-FK-JOIN-SUBSCRIPTION-PROCESSOR-"
_OUTPUT = "KTABLE-FK-JOIN-OUTPUT-"


@dataclass(frozen=True, slots=True)
class KeyOnlyPartitioner:
    """Asks a user's partitioner of a join's topic, for whom the internal value is none of his business."""

    partitioner: Callable[..., Any]

    def __call__(self, topic: str, key: Any, _value: Any, partitions: int) -> int | None:
        """Returns the partition of a key."""
        chosen = self.partitioner(topic, key, None, partitions)
        if chosen is None or isinstance(chosen, int):
            return chosen
        several = list(chosen)
        if len(several) != 1:
            message = (
                f"topic '{topic}': the partitioner of a foreign-key join must choose one partition; found {several}"
            )
            raise TopologyError(message)
        only: int = several[0]
        return only


def _by_key_alone(argument: str, partitioner: Callable[..., Any] | str | None) -> KeyOnlyPartitioner | None:
    found = check_partitioner("TableJoined", argument, partitioner)
    return None if found is None else KeyOnlyPartitioner(found)


def join_on_foreign_key(
    table: KTable[Any, Any],
    other: KTable[Any, Any],
    foreign_key: Callable[..., Any] | WithKey[Any],
    joiner: Callable[..., Any] | WithKey[Any],
    joined: TableJoined[Any, Any],
    materialized: Materialized[Any, Any] | None,
    *,
    left: bool,
) -> KTable[Any, Any]:
    """Joins each row of a table with the row of another table whose key it names."""
    draft, names, name = table._draft, table._draft.names, joined.name
    # Old values tell which subscription to take back on the left, and whether anything changed on the right.
    ask_for_old_values(draft, other._node, force=True)
    ask_for_old_values(draft, table._node, force=True)
    topic = names.suffixed(name, "-subscription-registration", _REGISTRATION) + "-topic"
    key_serde, foreign_serde = table._key_serde, other._key_serde
    subscriptions = SubscriptionSerde(key_serde)
    send = draft.add(
        Process,
        names.suffixed(name, "-subscription-registration-processor", _REGISTRATION),
        (table._node,),
        operation=ops.SubscriptionSend(
            foreign_key, left, foreign_serde, f"{topic}-fk", table._value_serde, f"{topic}-vh"
        ),
    )
    by_foreign_key = _by_key_alone("other_partitioner", joined.other_partitioner)
    question = _Crossing(table, topic, foreign_serde, subscriptions, by_foreign_key)
    asked = question.sink(names.suffixed(name, "-subscription-registration-sink", "KTABLE-SINK-"), send)
    source = question.source(names.suffixed(name, "-subscription-registration-source", "KTABLE-SOURCE-"), asked)
    draft.copartition(other._sources | {draft.nodes[source].name})

    store_name = names.suffixed(name, "-subscription-store", "KTABLE-FK-JOIN-SUBSCRIPTION-STATE-STORE-")
    store = subscription_store(store_name, foreign_serde, key_serde)
    receive = draft.add(
        Process,
        names.suffixed(name, "-subscription-receive", _PROCESSOR),
        (source,),
        operation=ops.SubscriptionReceive(store_name),
        stores=(store,),
    )
    answer = draft.add(
        Process,
        names.suffixed(name, "-subscription-join-foreign", _PROCESSOR),
        (receive,),
        operation=ops.SubscriptionJoin(lookup_name(draft, other._node)),
        uses=rows_of(draft, other._node),
    )
    update = draft.add(
        Process,
        names.suffixed(name, "-foreign-join-subscription", _PROCESSOR),
        (other._node,),
        operation=ops.ForeignTableJoin(store_name),
        stores=(store,),
    )

    response_topic = names.suffixed(name, "-subscription-response", "KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-") + "-topic"
    responses = SubscriptionResponseSerde(other._value_serde)
    back = _by_key_alone("partitioner", joined.partitioner) or response_partitioner
    response = _Crossing(table, response_topic, key_serde, responses, back)
    answered = response.sink(names.suffixed(name, "-subscription-response-sink", "KTABLE-SINK-"), answer, update)
    returned = response.source(names.suffixed(name, "-subscription-response-source", "KTABLE-SOURCE-"), answered)
    sources = draft.copartition(table._sources | {draft.nodes[returned].name})

    resolve = draft.add(
        Process,
        names.suffixed(
            name,
            "-subscription-response-resolver",
            "KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-RESOLVER-PROCESSOR-",
        ),
        (returned,),
        operation=ops.ResponseJoin(
            lookup_name(draft, table._node),
            draft.nodes[send].name,
            foreign_key,
            joiner,
            left,
            table._value_serde,
            f"{topic}-vh",
        ),
        uses=rows_of(draft, table._node),
    )
    return _result(table, resolve, names.suffixed(name, "-result", _OUTPUT), sources, materialized)


@dataclass(frozen=True, slots=True)
class _Crossing:
    """One of the join's two topics."""

    table: KTable[Any, Any]
    topic: str
    key_serde: Serde[Any] | None
    value_serde: Serde[Any]
    partitioner: Callable[..., Any] | None

    def sink(self, name: str, *parents: NodeId) -> NodeId:
        return self.table._draft.add(
            Sink,
            name,
            parents,
            topic=self.topic,
            key_serde=self.key_serde,
            value_serde=self.value_serde,
            partitioner=self.partitioner,
            internal=True,
        )

    def source(self, name: str, sink: NodeId) -> NodeId:
        consumed = Consumed(self.key_serde, self.value_serde)
        return self.table._draft.add(StreamSource, name, (sink,), topics=frozenset((self.topic,)), consumed=consumed)


def _result(
    table: KTable[Any, Any],
    parent: NodeId,
    name: str,
    sources: frozenset[str],
    materialized: Materialized[Any, Any] | None,
) -> KTable[Any, Any]:
    draft = table._draft
    store = draft.store(materialized or Materialized(), _OUTPUT, key_serde=table._key_serde)
    queryable_name = store.name if store.queryable else None
    node = draft.add(
        Process,
        name,
        (parent,),
        operation=ops.TableSource(store.name if store.kept else None),
        stores=(store,),
        versioned=store.versioned,
    )
    return replace(
        table,
        _node=node,
        _name=name,
        _value_serde=store.value_serde,
        _sources=sources,
        _queryable_name=queryable_name,
    )
