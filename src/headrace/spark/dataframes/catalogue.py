"""Tables and streams of a SQL server, asked over HTTP."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, StringType, StructType

from headrace.errors import ConfigError, LogError, describe_value
from headrace.http.tls import certificate_problem, client_context
from headrace.sql.catalog.source_json import ReadableSource
from headrace.sql.types.schema import Column

_PATH = "/headrace/sources"
_TIMEOUT_S = 30.0
_COLUMN = StructType().add("name", StringType()).add("type", StringType())
_LIST = (
    StructType()
    .add("name", StringType())
    .add("topic", StringType())
    .add("key_format", StringType())
    .add("value_format", StringType())
    .add("window", StringType())
    .add("key_columns", ArrayType(_COLUMN))
    .add("value_columns", ArrayType(_COLUMN))
    .add("statement", StringType())
)


@dataclass(frozen=True)
class ServerSources:
    """Sources of a server, as it has described them."""

    log: Mapping[str, str]
    """Settings that name its log."""
    sources: Mapping[str, ReadableSource]
    """By name."""


def tables(
    spark: SparkSession,
    *,
    server: str,
    token: str | None = None,
    user: str | None = None,
    authority: str | os.PathLike[str] | None = None,
) -> DataFrame:
    """Returns the tables of a SQL server: name, topic, formats, window, columns of key and value, and statement.

    Each can be read with ``spark.read.format("headrace").option("server", server).option("table", name).load()``.
    ``token``, or ``user`` as ``name:password``, is for a server that asks for it.
    ``authority`` is ``http.tls.authority`` for its certificate.

    >>> tables(None, server="shop")
    Traceback (most recent call last):
    ...
    headrace.errors.ConfigError: the address of a SQL server must be such as http://localhost:8088; found str 'shop'
    """
    found = fetch_sources(server, token=token, user=user, authority=authority).sources.values()
    rows = [_row(source) for source in found if source.definition.is_table]
    return spark.createDataFrame(rows, _LIST)


def _row(source: ReadableSource) -> tuple[Any, ...]:
    table = source.definition
    window = None if table.window is None else table.window.kind
    keys, values = map(_columns, (table.schema.key, table.schema.value))
    return table.name, table.topic, table.key_format, table.value_format, window, keys, values, table.text


def _columns(columns: tuple[Column, ...]) -> list[tuple[str, str]]:
    return [(each.name, str(each.type)) for each in columns]


def fetch_sources(
    server: str,
    *,
    token: str | None = None,
    user: str | None = None,
    authority: str | os.PathLike[str] | None = None,
) -> ServerSources:
    """Asks a server for its streams and tables."""
    scheme = urlsplit(server).scheme
    if scheme not in ("http", "https"):
        message = f"the address of a SQL server must be such as http://localhost:8088; found {describe_value(server)}"
        raise ConfigError(message)
    headers = {"Accept": "application/json"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    elif user is not None:
        headers["Authorization"] = f"Basic {b64encode(user.encode()).decode()}"
    tls = client_context(authority) if scheme == "https" else None
    try:
        with urlopen(Request(server.rstrip("/") + _PATH, headers=headers), timeout=_TIMEOUT_S, context=tls) as answer:
            found = json.load(answer)
    except HTTPError as error:
        remedy = "give a token or a user" if error.code == 401 else "is it a SQL server of Headrace?"
        message = f"the SQL server at {server} refuses the list of its tables: {error.code} {error.reason}; {remedy}"
        raise LogError(message) from error
    except (URLError, TimeoutError, ValueError) as error:
        remedy = "is it running there?" if certificate_problem(error) is None else "set http.tls.authority"
        message = f"the SQL server at {server} cannot list its tables: {error}; {remedy}"
        raise LogError(message) from error
    sources = (ReadableSource.from_json(each) for each in found["sources"])
    return ServerSources(found["log"], {each.definition.name: each for each in sources})
