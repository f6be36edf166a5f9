"""The answers about connectors, as a person reads them."""

from __future__ import annotations

from typing import Any

from headrace.cli.sql.screen import Screen

# Any: the JSON of an answer.
Entity = dict[str, Any]


def print_connectors(entity: Entity, screen: Screen) -> None:
    """Prints a list of connectors."""
    rows = [
        [each["name"], each.get("type") or "", each.get("className") or "", each.get("state") or ""]
        for each in entity["connectors"]
    ]
    screen.table(["Connector", "Type", "Class", "State"], rows)


def print_plugins(entity: Entity, screen: Screen) -> None:
    """Prints the classes that connectors can be made of."""
    rows = [
        [each.get("className", each.get("class", "")), each.get("type") or "", each.get("version") or ""]
        for each in entity["connectorsPlugins"]
    ]
    screen.table(["Class", "Type", "Version"], rows)


def print_created_connector(entity: Entity, screen: Screen) -> None:
    """Says which connector is new."""
    screen.line(f"created connector {entity['info']['name']}")


def print_dropped_connector(entity: Entity, screen: Screen) -> None:
    """Says which connector is gone."""
    screen.line(f"dropped connector {entity['connectorName']}")


def print_connector(entity: Entity, screen: Screen) -> None:
    """Prints a connector, its tasks, its topics, and the sources on them."""
    status = entity["status"]
    state = status["connector"]
    facts = {
        "class": entity["connectorClass"],
        "type": status.get("type"),
        "state": state["state"],
        "worker": state.get("worker_id"),
        "error": _first_line(state.get("trace")),
    }
    screen.line(f"CONNECTOR {status['name']}")
    for name, value in facts.items():
        if value:
            screen.line(f"  {name}: {value}")
    tasks = [[each["id"], each["state"], _first_line(each.get("trace"))] for each in status.get("tasks") or ()]
    topics = [[name] for name in entity.get("topics") or ()]
    sources = [[each["name"], each["type"], each["topic"]] for each in entity.get("sources") or ()]
    for headings, rows in (
        (["Task", "State", "Error"], tasks),
        (["Topic"], topics),
        (["Source", "Type", "Read from"], sources),
    ):
        if rows:
            screen.table(headings, rows)


def _first_line(trace: str | None) -> str:
    # The rest is the stack of Java; the JSON of the answer has it.
    return (trace or "").partition("\n")[0]
