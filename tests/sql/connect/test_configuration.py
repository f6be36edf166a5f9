"""Configuration of connectors from their statements."""

from __future__ import annotations

import pytest

from headrace.sql.connect.configuration import connector_config, masked_text
from headrace.sql.errors import SqlStatementError
from headrace.sql.syntax.parser import parse_statement
from headrace.sql.syntax.statements import CreateConnector


def created(text: str) -> CreateConnector:
    statement = parse_statement(text)
    assert isinstance(statement, CreateConnector)
    return statement


def test_values_are_texts_and_names_keep_their_case_in_quotes() -> None:
    text = "CREATE SOURCE CONNECTOR `my-lines` WITH ('tasks.max' = 2, \"errors.log\" = TRUE, `Mode` = 'x', batch = 1.5)"
    assert connector_config(created(text)) == {
        "name": "my-lines",
        "tasks.max": "2",
        "errors.log": "true",
        "Mode": "x",
        "BATCH": "1.5",
    }


def test_null_is_refused() -> None:
    with pytest.raises(SqlStatementError, match=r"The property 'file' of a connector cannot be NULL; leave it out"):
        connector_config(created("CREATE SINK CONNECTOR c WITH ('file' = NULL)"))


def test_key_of_a_jdbc_source_becomes_transforms() -> None:
    source = "io.confluent.connect.jdbc.JdbcSourceConnector"
    text = f"CREATE SOURCE CONNECTOR c WITH ('connector.class' = '{source}', 'key' = 'id', 'transforms' = 'mine')"
    assert connector_config(created(text)) == {
        "name": "C",
        "connector.class": source,
        "tasks.max": "1",
        "transforms": "mine,ksqlCreateKey,ksqlExtractString",
        "transforms.ksqlCreateKey.type": "org.apache.kafka.connect.transforms.ValueToKey",
        "transforms.ksqlCreateKey.fields": "id",
        "transforms.ksqlExtractString.type": "org.apache.kafka.connect.transforms.ExtractField$Key",
        "transforms.ksqlExtractString.field": "id",
    }
    assert connector_config(created("CREATE SOURCE CONNECTOR c WITH ('connector.class' = 'X', 'key' = 'id')")) == {
        "name": "C",
        "connector.class": "X",
        "key": "id",
    }


@pytest.mark.parametrize(
    ("written", "masked"),
    [
        ("'url' = 'jdbc:a?b=c,d)e', \"connector.class\" = 'X'", "'url' = '[string]', \"connector.class\" = 'X'"),
        ("`tasks.max`=2,'it''s'='it''s'", "`tasks.max`='[string]','it''s'='[string]'"),
        ("'a' = -- 'secret'\n 'b'", "'a' = -- 'secret'\n '[string]'"),
    ],
)
def test_only_the_class_is_shown(written: str, masked: str) -> None:
    assert masked_text(created(f"CREATE SINK CONNECTOR c WITH ({written})")) == (
        f"CREATE SINK CONNECTOR c WITH ({masked})"
    )
