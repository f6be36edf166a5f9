"""The failure of a query in the words of its statement."""

from __future__ import annotations

import re
from collections.abc import Mapping

from headrace.sql.catalog.persistent_query import PersistentQuery
from headrace.sql.server.console.node_texts import NodeText

_WHERE = re.compile(r"^(?:task \d+_\d+|sub-topology \d+): ")
_AT_RECORD = re.compile(r" failed for the record at \S+ offset \d+: ")
_RAISED = re.compile(r"\b([A-Z]\w*(?:Error|Exception))\((?:'([^']*)'|\"([^\"]*)\")\)")
_FUNCTION = re.compile(r"; raised in <[^>]*> \([^)]*\)")
_QUOTED = re.compile(r"'([^']+)'")
_NODE = re.compile(r"(?:node|source|sink|processor) '([^']+)'")


def failed_node(error: str, texts: Mapping[str, NodeText]) -> str | None:
    """Returns the node that a message is about, if it names one of the query's."""
    return next((name for name in _NODE.findall(error) if name in texts), None)


def failure_text(error: str, query: PersistentQuery, application: str, texts: Mapping[str, NodeText]) -> str:
    """Returns what the engine says of a failed query as one line that names clauses, streams and tables.

    Nodes become the clauses that they carry out, topics the streams and tables that they hold. What has no
    counterpart in the statement stays as it is.
    """
    found = _WHERE.sub("", " ".join(error.split()))
    found = _NODE.sub(lambda match: texts[match[1]].sql if match[1] in texts else match[0], found)
    found = _AT_RECORD.sub(" fails for a row: ", found)
    found = _FUNCTION.sub("", found)
    found = _RAISED.sub(lambda match: f"{match[1]}: {match[2] or match[3] or ''}", found)
    holds = {source.topic: f"{source.kind.lower()} {source.name}" for source in (query.plan.sink, *query.plan.sources)}
    found = _QUOTED.sub(lambda match: f"{match[0]} of {holds[match[1]]}" if match[1] in holds else match[0], found)
    found = re.sub(rf"(?:application )?'?{re.escape(application)}(?![\w-])'?", f"query {query.id}", found)
    return re.sub(r"\b(the|an) application\b", lambda match: "the query" if match[1] == "the" else "a query", found)
