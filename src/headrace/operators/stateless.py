"""Operators that look at one record and nothing else."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from headrace.operators.base import Edge, Node, operator
from headrace.operators.mapper_results import not_a_pair, not_iterable, pair_of
from headrace.record import WithKey
from headrace.topics.log import Headers
from headrace.topology import operations as ops


@operator.register
def _pass_through(operation: ops.PassThrough, node: Node) -> Edge:
    return node.forward


@operator.register
def _filter(operation: ops.Filter, node: Node) -> Edge:
    forward, fail = node.forward, node.fail
    predicate = operation.predicate

    def keep(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        try:
            wanted = predicate(key, value)
        except Exception as error:
            return fail(error, key, value, timestamp_ms, headers)
        if wanted:
            forward(key, value, timestamp_ms, headers)
        return None

    def leave_out(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        try:
            unwanted = predicate(key, value)
        except Exception as error:
            return fail(error, key, value, timestamp_ms, headers)
        if not unwanted:
            forward(key, value, timestamp_ms, headers)
        return None

    return leave_out if operation.negate else keep


@operator.register
def _null_key_filter(operation: ops.NullKeyFilter, node: Node) -> Edge:
    forward = node.forward

    def keep(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        if key is not None:
            forward(key, value, timestamp_ms, headers)

    return keep


@operator.register
def _map_values(operation: ops.MapValues, node: Node) -> Edge:
    forward, fail = node.forward, node.fail
    mapper = operation.mapper

    if isinstance(mapper, WithKey):
        keyed = mapper.function

        def map_with_key(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
            try:
                mapped = keyed(key, value)
            except Exception as error:
                return fail(error, key, value, timestamp_ms, headers)
            return forward(key, mapped, timestamp_ms, headers)

        return map_with_key

    plain = mapper

    def map_value(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        try:
            mapped = plain(value)
        except Exception as error:
            return fail(error, key, value, timestamp_ms, headers)
        return forward(key, mapped, timestamp_ms, headers)

    return map_value


@operator.register
def _flat_map_values(operation: ops.FlatMapValues, node: Node) -> Edge:
    forward, fail = node.forward, node.fail
    mapper = operation.mapper
    with_key = isinstance(mapper, WithKey)
    function = mapper.function if isinstance(mapper, WithKey) else mapper

    def flat_map_values(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        try:
            results = function(key, value) if with_key else function(value)
        except Exception as error:
            return fail(error, key, value, timestamp_ms, headers)
        if isinstance(results, str | bytes):
            one_text = not_iterable("flat_map_values", function, results, TypeError())
            return fail(one_text, key, value, timestamp_ms, headers)
        try:
            values = iter(results)
        except Exception as error:
            return fail(not_iterable("flat_map_values", function, results, error), key, value, timestamp_ms, headers)
        # The iterable may be a generator of the user's: its errors are this node's, a child's are not.
        while True:
            try:
                mapped = next(values)
            except StopIteration:
                return None
            except Exception as error:
                return fail(error, key, value, timestamp_ms, headers)
            forward(key, mapped, timestamp_ms, headers)

    return flat_map_values


@operator.register
def _map(operation: ops.Map, node: Node) -> Edge:
    forward, fail = node.forward, node.fail
    mapper = operation.mapper

    def map_pair(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        try:
            pair = mapper(key, value)
        except Exception as error:
            return fail(error, key, value, timestamp_ms, headers)
        try:
            new_key, new_value = pair if type(pair) is tuple else pair_of(pair)
        except (TypeError, ValueError):
            return fail(not_a_pair("map", mapper, pair), key, value, timestamp_ms, headers)
        return forward(new_key, new_value, timestamp_ms, headers)

    return map_pair


@operator.register
def _flat_map(operation: ops.FlatMap, node: Node) -> Edge:
    forward, fail = node.forward, node.fail
    mapper = operation.mapper

    def flat_map(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        try:
            results = mapper(key, value)
        except Exception as error:
            return fail(error, key, value, timestamp_ms, headers)
        try:
            pairs = iter(results)
        except Exception as error:
            return fail(not_iterable("flat_map", mapper, results, error), key, value, timestamp_ms, headers)
        while True:
            try:
                pair = next(pairs)
            except StopIteration:
                return None
            except Exception as error:
                return fail(error, key, value, timestamp_ms, headers)
            try:
                new_key, new_value = pair if type(pair) is tuple else pair_of(pair)
            except (TypeError, ValueError):
                return fail(not_a_pair("flat_map", mapper, pair, each=True), key, value, timestamp_ms, headers)
            forward(new_key, new_value, timestamp_ms, headers)

    return flat_map


@operator.register
def _select_key(operation: ops.SelectKey, node: Node) -> Edge:
    forward, fail = node.forward, node.fail
    selector = operation.selector

    def select_key(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        try:
            new_key = selector(key, value)
        except Exception as error:
            return fail(error, key, value, timestamp_ms, headers)
        return forward(new_key, value, timestamp_ms, headers)

    return select_key


@operator.register
def _peek(operation: ops.Peek, node: Node) -> Edge:
    forward, fail = node.forward, node.fail
    action = operation.action

    def peek(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        try:
            action(key, value)
        except Exception as error:
            return fail(error, key, value, timestamp_ms, headers)
        return forward(key, value, timestamp_ms, headers)

    return peek


@operator.register
def _for_each(operation: ops.ForEach, node: Node) -> Edge:
    fail = node.fail
    action = operation.action

    def for_each(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        try:
            action(key, value)
        except Exception as error:
            return fail(error, key, value, timestamp_ms, headers)
        return None

    return for_each


@operator.register
def _print(operation: ops.Print, node: Node) -> Edge:
    fail = node.fail
    formatter, label = operation.formatter, operation.label
    out = None
    if operation.path is not None:
        out = Path(operation.path).open("a", encoding="utf-8")  # noqa: SIM115 - closed with the task
        node.on_close(out.close)

    def print_record(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        try:
            text = f"{key}, {value}" if formatter is None else formatter(key, value)
            # sys.stdout is looked up per call: programs and tests replace it.
            print(f"[{label}]: {text}", file=sys.stdout if out is None else out, flush=True)
        except Exception as error:
            return fail(error, key, value, timestamp_ms, headers)
        return None

    return print_record


@operator.register
def _branch(operation: ops.Branch, node: Node) -> Edge:
    fail = node.fail
    branches = tuple(zip(operation.predicates, map(node.forward_to, operation.children), strict=True))
    default = None if operation.default is None else node.forward_to(operation.default)

    def branch(key: Any, value: Any, timestamp_ms: int, headers: Headers) -> None:
        for predicate, child in branches:
            try:
                wanted = predicate(key, value)
            except Exception as error:
                return fail(error, key, value, timestamp_ms, headers)
            if wanted:
                return child(key, value, timestamp_ms, headers)
        if default is not None:
            default(key, value, timestamp_ms, headers)
        return None

    return branch
