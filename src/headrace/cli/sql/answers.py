"""The answers of a server to statements, as a person reads them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from headrace.cli.sql.connector_answers import (
    print_connector,
    print_connectors,
    print_created_connector,
    print_dropped_connector,
    print_plugins,
)
from headrace.cli.sql.screen import Screen

# Any: the JSON of an answer.
Entity = dict[str, Any]


def print_answer(entity: Entity, screen: Screen) -> None:
    """Prints an answer; one of a kind that is not known here is printed as JSON."""
    if screen.as_json:
        screen.json(entity)
        return
    shown = _KINDS.get(entity.get("@type", ""))
    if shown is None:
        screen.json(entity)
    else:
        shown(entity, screen)
    for warning in entity.get("warnings") or ():
        screen.note(f"warning: {warning.get('message', warning)}")


def _status(entity: Entity, screen: Screen) -> None:
    status = entity["commandStatus"]
    screen.line(status["message"] if status["status"] == "SUCCESS" else f"{status['status']}: {status['message']}")


def _sources(entity: Entity, screen: Screen) -> None:
    rows = [
        [each["name"], each["topic"], each.get("keyFormat"), each.get("valueFormat"), each.get("isWindowed", False)]
        for each in (entity["streams"] if "streams" in entity else entity["tables"])
    ]
    screen.table(["Name", "Topic", "Key format", "Value format", "Windowed"], rows)


def _queries(entity: Entity, screen: Screen) -> None:
    _print_queries(entity["queries"], screen)


def _print_queries(queries: list[Entity], screen: Screen) -> None:
    rows = [
        [
            each["id"],
            each.get("queryType", ""),
            each.get("state") or ", ".join(each.get("statusCount") or ()),
            ", ".join(each.get("sinks", ())),
            ", ".join(each.get("sinkKafkaTopics", ())),
            " ".join(each.get("queryString", "").split()),
        ]
        for each in queries
    ]
    screen.table(["Query", "Type", "State", "Sink", "Topic", "Statement"], rows)


def _topics(entity: Entity, screen: Screen) -> None:
    rows = [[each["name"], len(each["replicaInfo"])] for each in entity["topics"]]
    screen.table(["Topic", "Partitions"], rows)


def _extended_topics(entity: Entity, screen: Screen) -> None:
    rows = [
        [each["name"], len(each["replicaInfo"]), each["consumerCount"], each["consumerGroupCount"]]
        for each in entity["topics"]
    ]
    screen.table(["Topic", "Partitions", "Consumers", "Groups"], rows)


def _properties(entity: Entity, screen: Screen) -> None:
    own = set(entity.get("overwrittenProperties") or ())
    defaults = set(entity.get("defaultProperties") or ())
    rows = [
        [
            each["name"],
            "" if each["value"] is None else each["value"],
            "SESSION" if each["name"] in own else "default" if each["name"] in defaults else "SERVER",
        ]
        for each in entity["properties"]
    ]
    screen.table(["Property", "Value", "From"], rows)


def _functions(entity: Entity, screen: Screen) -> None:
    rows = sorted([each["name"].upper(), each["type"], each.get("category", "")] for each in entity["functions"])
    screen.table(["Function", "Kind", "Category"], rows)


def _function(entity: Entity, screen: Screen) -> None:
    name = entity["name"].upper()
    screen.line(f"{name}: {entity['description']}")
    for each in entity["functions"]:
        arguments = ", ".join(
            f"{one['name']} {one['type']}{'...' if one.get('isVariadic') else ''}" for one in each["arguments"]
        )
        screen.line(f"  {name}({arguments}) -> {each['returnType']}")


def _types(entity: Entity, screen: Screen) -> None:
    screen.table(["Type", "Is"], [[name, _type(schema)] for name, schema in entity["types"].items()])


def _variables(entity: Entity, screen: Screen) -> None:
    screen.table(["Variable", "Value"], [[each["name"], each["value"]] for each in entity["variables"]])


def _source(entity: Entity, screen: Screen) -> None:
    _print_source(entity["sourceDescription"], screen)


def _several_sources(entity: Entity, screen: Screen) -> None:
    for number, each in enumerate(entity["sourceDescriptions"]):
        if number:
            screen.line()
        _print_source(each, screen)


def _print_source(source: Entity, screen: Screen) -> None:
    screen.line(f"{source['type']} {source['name']}")
    if source.get("extended"):
        facts = {
            "topic": f"{source['topic']} ({source['partitions']} partitions)",
            "key format": source["keyFormat"],
            "value format": source["valueFormat"],
            "window": source.get("windowType"),
            "timestamp": source.get("timestamp"),
            "statement": " ".join(source.get("statement", "").split()),
        }
        for name, value in facts.items():
            if value:
                screen.line(f"  {name}: {value}")
    _fields(source["fields"], screen, primary=source["type"] == "TABLE")
    for title, queries in (("read by", source.get("readQueries")), ("written by", source.get("writeQueries"))):
        for query in queries or ():
            screen.line(f"{title} {query['id']} ({query.get('state', '')})")
    for summary in source.get("queryOffsetSummaries") or ():
        _print_offsets(summary, screen)
    for text in (source.get("statistics"), source.get("errorStats")):
        if source.get("extended") and text:
            screen.line(text)


def _print_offsets(summary: Entity, screen: Screen) -> None:
    screen.line(f"read by the group {summary['groupId']}:")
    rows = [
        [
            topic["kafkaTopic"],
            each["partition"],
            each["logStartOffset"],
            each["logEndOffset"],
            each["consumerOffset"],
            each["logEndOffset"] - each["consumerOffset"],
        ]
        for topic in summary.get("topicSummaries") or ()
        for each in topic["offsets"]
    ]
    screen.table(["Topic", "Partition", "Start offset", "End offset", "Offset", "Lag"], rows)


def _fields(fields: list[Entity], screen: Screen, *, primary: bool = False) -> None:
    key = "PRIMARY KEY" if primary else "KEY"
    rows = [[each["name"], _type(each["schema"]), _role(each, key)] for each in fields]
    screen.table(["Column", "Type", ""], rows)


def _role(field: Entity, key: str) -> str:
    kind = field.get("type")
    if kind == "KEY":
        return key
    if kind == "HEADER":
        return f"HEADER('{field['headerKey']}')" if field.get("headerKey") else "HEADERS"
    return ""


def _type(schema: Entity | str) -> str:
    if isinstance(schema, str):
        return schema
    kind = schema["type"]
    parameters = schema.get("parameters")
    match kind:
        case "ARRAY":
            return f"ARRAY<{_type(schema['memberSchema'])}>"
        case "MAP":
            return f"MAP<STRING, {_type(schema['memberSchema'])}>"
        case "STRUCT":
            fields = (f"{each['name']} {_type(each['schema'])}" for each in schema["fields"])
            return f"STRUCT<{', '.join(fields)}>"
        case "DECIMAL" if parameters:
            return f"DECIMAL({parameters['precision']}, {parameters['scale']})"
        case _:
            return str(kind)


def _query(entity: Entity, screen: Screen) -> None:
    _print_query(entity["queryDescription"], screen)


def _several_queries(entity: Entity, screen: Screen) -> None:
    for each in entity["queryDescriptions"]:
        _print_query(each, screen)


def _print_query(query: Entity, screen: Screen) -> None:
    facts = {
        "query": query["id"],
        "type": query.get("queryType"),
        "state": query.get("state"),
        "lag": _lag(query),
        "restarts": query.get("restarts"),
        "statement": " ".join((query.get("statementText") or "").split()),
        "sources": ", ".join(query.get("sources") or ()),
        "sinks": ", ".join(query.get("sinks") or ()),
        "settings": ", ".join(f"{name}={value}" for name, value in (query.get("overriddenProperties") or {}).items()),
    }
    for name, value in facts.items():
        if value:
            screen.line(f"{name}: {value}")
    for error in query.get("queryErrors") or ():
        screen.error(_failure(error))
    _fields(query.get("fields") or [], screen)
    for title, text in (("plan", query.get("executionPlan")), ("topology", query.get("topology"))):
        if text:
            screen.line(f"\n{title}:\n{text.rstrip()}")


def _lag(query: Entity) -> str:
    lag = query.get("lag")
    return "" if lag is None else f"{lag} records"


def _failure(error: Entity | str) -> str:
    if isinstance(error, str):
        return error
    message = error.get("errorMessage", str(error))
    time_ms = error.get("timestamp")
    return f"{datetime.fromtimestamp(time_ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC: {message}" if time_ms else message


def _message(entity: Entity, screen: Screen) -> None:
    screen.line(entity.get("message", ""))


def _print_asserted(entity: Entity, screen: Screen) -> None:
    what = (
        f"topic {entity['topicName']}" if "topicName" in entity else f"schema {entity.get('subject') or entity['id']}"
    )
    screen.line(f"{what} {'exists' if entity['exists'] else 'does not exist'}, as asserted")


def _print_terminated(entity: Entity, screen: Screen) -> None:
    screen.line(
        f"{entity.get('queryId', 'query')}: {'terminated' if entity.get('wasTerminated') else 'not terminated'}"
    )


_KINDS: dict[str, Callable[[Entity, Screen], None]] = {
    "currentStatus": _status,
    "warning_entity": _message,
    "streams": _sources,
    "tables": _sources,
    "queries": _queries,
    "kafka_topics": _topics,
    "kafka_topics_extended": _extended_topics,
    "properties": _properties,
    "function_names": _functions,
    "describe_function": _function,
    "type_list": _types,
    "variables": _variables,
    "sourceDescription": _source,
    "source_descriptions": _several_sources,
    "queryDescription": _query,
    "query_descriptions": _several_queries,
    "assert_topic": _print_asserted,
    "assert_schema": _print_asserted,
    "terminate_query": _print_terminated,
    "connector_list": print_connectors,
    "connector_plugins_list": print_plugins,
    "connector_info": print_created_connector,
    "connector_description": print_connector,
    "drop_connector": print_dropped_connector,
}
