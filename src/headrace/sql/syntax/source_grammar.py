"""The grammar of statements about streams, tables and types."""

from __future__ import annotations

from headrace.sql.syntax.expression_grammar import read_expression, read_literal
from headrace.sql.syntax.nodes import Literal
from headrace.sql.syntax.query_grammar import read_query
from headrace.sql.syntax.statements import (
    AlterSource,
    ColumnDefinition,
    CreateAsSelect,
    CreateConnector,
    CreateFunction,
    CreateSource,
    CreateType,
    DropConnector,
    DropFunction,
    DropSource,
    DropType,
    InsertInto,
    InsertValues,
    Properties,
    SetProperty,
    Statement,
)
from headrace.sql.syntax.token_reader import Reader
from headrace.sql.syntax.type_grammar import read_type


def read_create(reader: Reader) -> Statement:
    """Reads ``CREATE …``."""
    reader.expect("CREATE")
    or_replace = reader.accept("OR", "REPLACE")
    if reader.accept("TYPE"):
        if_not_exists = reader.accept("IF", "NOT", "EXISTS")
        name = reader.name()
        reader.expect("AS")
        return CreateType(name, read_type(reader), if_not_exists)
    if reader.accept("FUNCTION"):
        if_not_exists = reader.accept("IF", "NOT", "EXISTS")
        name = reader.name()
        reader.expect("AS")
        return CreateFunction(name, reader.string(), or_replace, if_not_exists)
    if reader.at_any("SINK", "SOURCE") and reader.at("CONNECTOR", ahead=1):
        return _create_connector(reader)
    is_source = reader.accept("SOURCE")
    if not reader.at_any("STREAM", "TABLE"):
        reader.fail()
    kind = reader.advance().text
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    name = reader.source_name()
    elements = read_elements(reader) if reader.at("(") else ()
    properties = read_properties(reader) if reader.at("WITH") else ()
    if not elements and not is_source and reader.accept("AS"):
        return CreateAsSelect(kind, name, properties, read_query(reader), or_replace, if_not_exists)
    return CreateSource(kind, name, elements, properties, or_replace, if_not_exists, is_source)


def _create_connector(reader: Reader) -> CreateConnector:
    kind = reader.advance().text
    reader.expect("CONNECTOR")
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    name = reader.name()
    return CreateConnector(kind, name, read_properties(reader, folded=False), if_not_exists)


def read_elements(reader: Reader) -> tuple[ColumnDefinition, ...]:
    """Reads the columns of a source in their parentheses; there may be none."""
    reader.expect("(")
    if reader.accept(")"):
        return ()
    return reader.listed(lambda: _element(reader), close=")")


def _element(reader: Reader) -> ColumnDefinition:
    position = reader.position
    name = reader.name()
    kind = read_type(reader)
    role, header_key = "VALUE", None
    if reader.accept("PRIMARY"):
        reader.expect("KEY")
        role = "PRIMARY KEY"
    elif reader.accept("KEY"):
        role = "KEY"
    elif reader.accept("HEADERS"):
        role = "HEADERS"
    elif reader.accept("HEADER"):
        role = "HEADER"
        reader.expect("(")
        header_key = reader.string()
        reader.expect(")")
    return ColumnDefinition(name, kind, role, header_key, position=position)


def read_properties(reader: Reader, *, folded: bool = True) -> Properties:
    """Reads ``WITH (name = literal, …)``."""
    reader.expect("WITH", "(")
    return reader.listed(lambda: _property(reader, folded=folded), close=")")


def _property(reader: Reader, *, folded: bool) -> tuple[str, Literal]:
    name = reader.string() if reader.token.kind.value == "string" else reader.name()
    reader.expect("=")
    return (name.upper() if folded else name), read_literal(reader)


def read_drop(reader: Reader) -> Statement:
    """Reads ``DROP …``."""
    reader.expect("DROP")
    what = reader.choose("STREAM", "TABLE", "TYPE", "FUNCTION", "CONNECTOR")
    if_exists = reader.accept("IF", "EXISTS")
    name = reader.source_name() if what in ("STREAM", "TABLE") else reader.name()
    if what == "TYPE":
        return DropType(name, if_exists)
    if what == "FUNCTION":
        return DropFunction(name, if_exists)
    if what == "CONNECTOR":
        return DropConnector(name, if_exists)
    return DropSource(what, name, if_exists, reader.accept("DELETE", "TOPIC"))


def read_alter(reader: Reader) -> Statement:
    """Reads ``ALTER …``."""
    reader.expect("ALTER")
    if reader.accept("SYSTEM"):
        name = reader.string()
        reader.expect("=")
        return SetProperty(name, reader.string(), system=True)
    kind = reader.choose("STREAM", "TABLE")
    name = reader.source_name()
    return AlterSource(kind, name, reader.listed(lambda: _added_column(reader)))


def _added_column(reader: Reader) -> ColumnDefinition:
    reader.expect("ADD")
    if reader.at("COLUMN") and not reader.at("COLUMN", "STRING"):
        reader.advance()
    position = reader.position
    return ColumnDefinition(reader.name(), read_type(reader), position=position)


def read_insert(reader: Reader) -> Statement:
    """Reads ``INSERT INTO …``."""
    reader.expect("INSERT", "INTO")
    position = reader.position
    target = reader.source_name()
    if reader.at("SELECT") or reader.at("WITH"):
        properties = read_properties(reader) if reader.at("WITH") else ()
        return InsertInto(target, read_query(reader), properties, position)
    columns: tuple[str, ...] = ()
    if reader.accept("("):
        columns = reader.listed(reader.name, close=")")
    if not reader.accept("VALUES"):
        reader.fail()
    reader.expect("(")
    return InsertValues(target, columns, reader.listed(lambda: read_expression(reader), close=")"))
