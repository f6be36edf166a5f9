"""The page of what stands in WITH and SET: properties, formats, types, pseudo columns, settings."""

from __future__ import annotations

from collections.abc import Callable

from headrace.sql.catalog.with_properties import WithProperties, insert_properties, sink_properties, source_properties
from headrace.sql.formats import FORMATS
from headrace.sql.hosting.statement_settings import NAMED, OF_STATEMENTS
from headrace.sql.server.settings import KNOWN, is_editable
from headrace.sql.syntax.parser import parse_statement
from headrace.sql.syntax.statements import CreateSource, Properties
from headrace.sql.types import SqlBaseType
from headrace.sql.types.schema import PSEUDO_COLUMNS, WINDOW_BOUNDS

_PROPERTIES = {
    "KAFKA_TOPIC": ("'orders'", "the topic; it is created if PARTITIONS is given"),
    "PARTITIONS": ("2", "of a topic that is created"),
    "REPLICAS": ("1", "of a topic that is created; an embedded log has one"),
    "RETENTION_MS": ("86400000", "how long a topic that is created keeps records"),
    "CLEANUP_POLICY": ("'compact'", "of a topic that is created"),
    "FORMAT": ("'JSON'", "of keys and values both"),
    "KEY_FORMAT": ("'KAFKA'", "of keys; KAFKA unless `ksql.persistence.default.format.key` says otherwise"),
    "VALUE_FORMAT": ("'JSON'", "of values"),
    "KEY_DELIMITER": ("';'", "between the columns of DELIMITED keys"),
    "VALUE_DELIMITER": ("'TAB'", "between the columns of DELIMITED values: a letter, SPACE or TAB"),
    "KEY_SCHEMA_ID": ("1", "the schema of the registry with which keys are written and read"),
    "VALUE_SCHEMA_ID": ("1", "the same for values"),
    "KEY_SCHEMA_FULL_NAME": ("'shop.Key'", "the name of the schema that is registered for keys"),
    "VALUE_SCHEMA_FULL_NAME": ("'shop.Order'", "the same for values"),
    "VALUE_AVRO_SCHEMA_FULL_NAME": ("'shop.Order'", "an old name of the same"),
    "KEY_PROTOBUF_NULLABLE_REPRESENTATION": ("'WRAPPER'", "how Protobuf keys hold NULL: OPTIONAL or WRAPPER"),
    "VALUE_PROTOBUF_NULLABLE_REPRESENTATION": ("'OPTIONAL'", "the same for values"),
    "WRAP_SINGLE_VALUE": ("false", "whether the only value column is a field of an object, or stands alone"),
    "TIMESTAMP": ("'at'", "the column that gives records their time, ROWTIME"),
    "TIMESTAMP_FORMAT": ("'yyyy-MM-dd'", "how that column is read, if it is a STRING"),
    "WINDOW_TYPE": ("'TUMBLING'", "keys have windows: TUMBLING, HOPPING or SESSION"),
    "WINDOW_SIZE": ("'10 SECONDS'", "of TUMBLING and HOPPING windows"),
    "TTL": (
        "'7 DAYS'",
        "how long rows of a table live after ROWTIME: see [Rows that expire](../guide/tables.md#rows-that-expire)",
    ),
    "TTL_CLOCK": ("'WALL_CLOCK'", "the clock that TTL goes by: STREAM_TIME, which is the default, or WALL_CLOCK"),
    "SOURCE_CONNECTOR": ("'jdbc'", "the connector that fills the topic"),
    "SOURCED_BY_CONNECTOR": ("'jdbc'", "another name of the same"),
    "QUERY_ID": ("'copy'", "the id of the query"),
}
_WORDS = {
    "KAFKA": "what Kafka's own serializers write: one INT, BIGINT, DOUBLE, STRING or BYTES",
    "JSON": "objects; names of fields are looked up exactly, then in upper case",
    "DELIMITED": "CSV; no nested types",
    "NONE": "nothing: sources without key columns",
    "AVRO": "Avro with a schema registry",
    "JSON_SR": "JSON with a schema registry",
    "PROTOBUF": "Protobuf with a schema registry",
    "PROTOBUF_NOSR": "Protobuf without one",
}
_TYPES = {
    SqlBaseType.BOOLEAN: "true or false",
    SqlBaseType.INTEGER: "32 bits; also written INT",
    SqlBaseType.BIGINT: "64 bits",
    SqlBaseType.DOUBLE: "64 bits, floating",
    SqlBaseType.DECIMAL: "`DECIMAL(precision, scale)`, exact",
    SqlBaseType.STRING: "text; also written VARCHAR",
    SqlBaseType.BYTES: "bytes; base64 in JSON",
    SqlBaseType.DATE: "a day",
    SqlBaseType.TIME: "a time of day, milliseconds",
    SqlBaseType.TIMESTAMP: "a moment, milliseconds since 1970 in UTC",
    SqlBaseType.ARRAY: "`ARRAY<type>`; `a[1]` is the first item, `a[-1]` the last",
    SqlBaseType.MAP: "`MAP<key, value>`; `m['k']`",
    SqlBaseType.STRUCT: "`STRUCT<name type, ...>`; `s->name`",
}
_SETTINGS = {
    "ksql.functions.python.modules": "which modules `CREATE FUNCTION` may load functions from, with commas between "
    "them",
    "ksql.functions.python.timeout.ms": "how long a function in Python may take where a statement waits for its one "
    "value: in INSERT VALUES, and where a pull query names a key",
    "ksql.streams.shutdown.timeout.ms": "how long the end of a query, or of the server, waits for a micro-batch in "
    "which a function may hang, before it is cancelled",
    "ksql.service.id": "the name of a server, before the names of its applications and of its command topic",
    "ksql.output.topic.name.prefix": "before the name of a topic that a statement does not name",
    "ksql.persistence.default.format.key": "KEY_FORMAT where a statement gives none",
    "ksql.persistence.default.format.value": "VALUE_FORMAT where a statement gives none",
    "ksql.persistence.wrap.single.values": "WRAP_SINGLE_VALUE where a statement gives none",
    "ksql.new.query.planner.enabled": "a query over one source need not select the key",
    "ksql.timestamp.throw.on.invalid": "a timestamp that cannot be read ends the query, instead of leaving the "
    "record out",
    "ksql.functions.substring.legacy.args": "SUBSTRING counts from 0",
    "ksql.functions.collect_list.limit": "how many items COLLECT_LIST keeps",
    "ksql.functions.collect_set.limit": "how many items COLLECT_SET keeps",
    "ksql.pull.queries.enable": "whether the server answers pull queries",
    "ksql.query.pull.enable.standby.reads": "known, for programs that set it; without effect",
    "ksql.query.pull.extensions.enabled": "whether pull queries on tables may do more than ksqlDB's: JOIN, GROUP BY, "
    "HAVING, ORDER BY, OFFSET, conditions of any form",
    "ksql.query.pull.limit.clause.enabled": "whether pull queries may have LIMIT",
    "ksql.query.pull.range.scan.enabled": "whether pull queries may have ranges of keys",
    "ksql.query.pull.stream.enabled": "whether streams may be pulled",
    "ksql.query.pull.table.scan.enabled": "whether a pull query may read a whole table",
    "ksql.query.push.v2.enabled": "whether push queries on what another query writes are of ksqlDB's second kind",
    "ksql.schema.registry.url": "the schema registry",
    "ksql.connect.url": "the address of the Connect worker, such as `http://localhost:8083`",
    "ksql.connect.request.timeout.ms": "how long the Connect worker may take to answer",
    "ksql.connect.basic.auth.credentials.source": "`FILE` if the Connect worker asks for a name and a password",
    "ksql.connect.basic.auth.credentials.file": "the file with the lines `username=…` and `password=…`",
    "ksql.streams.auto.offset.reset": "where persistent queries begin to read",
    "ksql.variable.substitution.enable": "known, for programs that set it; without effect",
    "ksql.headers.columns.enabled": "known, for programs that set it; without effect",
    "ksql.suppress.enabled": "whether queries may have EMIT FINAL",
}

_READERS = (source_properties, sink_properties, insert_properties)


def settings_page() -> str:
    """Returns the page."""
    assert set(_WORDS) == set(FORMATS), "a format has no words"
    assert set(_TYPES) == set(SqlBaseType), "a type has no words"
    lines = [
        "# Settings and formats of SQL",
        "",
        "<!-- made by tools/sql_reference from the code: run `make docs` -->",
        "",
        "## Properties in WITH",
        "",
        "Names may be written in any case. A property that a statement does not take is an error.",
        "",
        "| property | for example | source | `AS SELECT` | `INSERT INTO` | |",
        "|---|---|---|---|---|---|",
    ]
    for name, (example, words) in _PROPERTIES.items():
        taken = " | ".join("yes" if _takes(name, example, read) else "" for read in _READERS)
        lines.append(f"| `{name}` | `{example}` | {taken} | {words} |")
    lines += ["", "## Formats", "", "| format | |", "|---|---|"]
    lines += [f"| `{name}` | {_WORDS[name]} |" for name in FORMATS]
    lines += ["", "## Types", "", "| type | |", "|---|---|"]
    lines += [f"| `{one.value}` | {_TYPES[one]} |" for one in SqlBaseType]
    lines += ["", "## Columns that nobody declares", "", "| column | type | where |", "|---|---|---|"]
    lines += [f"| `{name}` | {type} | every source |" for name, type in PSEUDO_COLUMNS.items()]
    lines += [f"| `{name}` | {type} | sources whose keys have windows |" for name, type in WINDOW_BOUNDS.items()]
    lines += [
        "",
        "## Settings",
        "",
        "Of a server by `--set` or `--config`, of a session or a request by `SET 'name' = 'value'` or",
        "`streamsProperties`. A session may set those that say so, and these of the application that runs its queries,",
        "with or without `ksql.streams.` before them; see [Configuration](../guide/configuration.md):",
        "",
        *(f"- `{name}`{_choices(name)}" for name in sorted(OF_STATEMENTS)),
        "",
        "All others, which name directories, addresses, programs, topics and credentials, are the operator's. Names",
        "that begin with `ksql.` and are none of these are taken, and have no effect. `auto.offset.reset` says where",
        "push queries begin: `latest`, which is the default, or `earliest`.",
        "",
        "| setting | default | session | |",
        "|---|---|---|---|",
    ]
    for name, default in KNOWN.items():
        shown = f"`{default}`" if default else ""
        lines.append(f"| `{name}` | {shown} | {'yes' if is_editable(name) else ''} | {_SETTINGS[name]} |")
    return "\n".join(lines) + "\n"


def _choices(name: str) -> str:
    kinds = NAMED.get(name)
    return "" if kinds is None else f": {', '.join(f'`{kind}`' for kind in kinds)}"


def _takes(name: str, example: str, read: Callable[[Properties], WithProperties]) -> bool:
    needed = {"KAFKA_TOPIC": "'t'", name: example}
    if name.startswith("WINDOW_"):
        needed |= {"WINDOW_TYPE": "'TUMBLING'", "WINDOW_SIZE": "'10 SECONDS'"}
    if name == "TTL_CLOCK":
        needed["TTL"] = "'7 DAYS'"
    if name == "TIMESTAMP_FORMAT":
        needed["TIMESTAMP"] = "'at'"
    if read is insert_properties:
        needed.pop("KAFKA_TOPIC", None)
        needed[name] = example
    given = ", ".join(f"{key}={value}" for key, value in needed.items())
    statement = parse_statement(f"CREATE STREAM s WITH ({given})")
    assert isinstance(statement, CreateSource)
    try:
        return isinstance(read(statement.properties), WithProperties)
    except ValueError:
        return False
