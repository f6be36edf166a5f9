"""ASSERT: a wait until a topic or a schema is there, or is gone."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

from headrace.errors import UnknownTopicError
from headrace.serdes.registry.registry import SchemaRegistry
from headrace.sql.server.entities.status import AssertedSchema, AssertedTopic
from headrace.sql.server.errors import ASSERTION_FAILED, NO_SCHEMA_REGISTRY, RequestError
from headrace.sql.syntax.nodes import Literal
from headrace.sql.syntax.statements import AssertSchema, AssertTopic
from headrace.topics.log import ReadableLog

_PATIENCE = timedelta(seconds=1)
_STEP_SECONDS = 0.05


def assert_topic(statement: AssertTopic, log: ReadableLog, text: str) -> AssertedTopic:
    """Waits for a topic, and for what it is to be like."""
    wanted = {name: literal.value for name, literal in statement.properties if isinstance(literal, Literal)}

    def problem() -> str | None:
        try:
            found = log.describe_topic(statement.topic)
        except UnknownTopicError:
            return f"Topic {statement.topic} does not exist" if statement.exists else None
        if not statement.exists:
            return f"Topic {statement.topic} exists"
        known = {"PARTITIONS": found.partitions, "REPLICAS": 1}
        for name, value in wanted.items():
            if name not in known:
                return f"Cannot assert unknown topic property: {name}"
            if int(str(value)) != known[name]:
                found_text = f"For config {name.lower()}, expected {value} got {known[name]}"
                return f"Mismatched configuration for topic {statement.topic}: {found_text}"
        return None

    _wait(problem, statement.timeout)
    return AssertedTopic(statement_text=text, topic_name=statement.topic, exists=statement.exists)


def assert_schema(statement: AssertSchema, registry: SchemaRegistry | None, text: str) -> AssertedSchema:
    """Waits for a schema."""
    if registry is None:
        message = "There is no schema registry; set ksql.schema.registry.url"
        raise RequestError(NO_SCHEMA_REGISTRY, message)
    known = registry
    subject, number = statement.subject, statement.schema_id
    named = " ".join(
        part
        for part in (
            None if subject is None else f"subject name {subject}",
            None if number is None else f"id {number}",
        )
        if part
    )

    def problem() -> str | None:
        there = _has_schema(known, subject, number)
        if there == statement.exists:
            return None
        return f"Schema with {named} {'does not exist' if statement.exists else 'exists'}"

    _wait(problem, statement.timeout)
    return AssertedSchema(statement_text=text, subject=subject, id=number, exists=statement.exists)


def _has_schema(registry: SchemaRegistry, subject: str | None, number: int | None) -> bool:
    if number is not None and registry.find(number) is None:
        return False
    if subject is None:
        return True
    latest = registry.latest(subject)
    return latest is not None and (number is None or latest.id == number)


def _wait(problem: Callable[[], str | None], timeout: timedelta | None) -> None:
    deadline = time.monotonic() + (timeout or _PATIENCE).total_seconds()
    while (found := problem()) is not None:
        if time.monotonic() >= deadline:
            raise RequestError(ASSERTION_FAILED, found)
        time.sleep(_STEP_SECONDS)
