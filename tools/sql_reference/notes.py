"""Notes of the page of SQL statements: words beyond the code, and examples that are run one after the other."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.sql.syntax import statements as of
from headrace.sql.syntax.statements import Statement


@dataclass(frozen=True)
class Note:
    """A statement of the page, or several that belong together."""

    title: str
    kinds: tuple[type[Statement], ...]
    words: str
    example: str
    syntax: str | None = None
    """Instead of what the docstrings say."""
    runs: bool = True
    """Whether the example is carried out; else it is only parsed, because it needs something from outside."""


_QUERY = """\
SELECT [DISTINCT ON (expression, ...) WITHIN n unit] expression [AS name], * | source.* | struct->*, ...
FROM source [AS alias]
  [[INNER | LEFT | RIGHT | FULL] [OUTER] JOIN source
      [WITHIN n unit | WITHIN (n unit, n unit)] [GRACE PERIOD n unit] ON a = b ...]
[WINDOW TUMBLING (SIZE n unit [, RETENTION n unit] [, GRACE PERIOD n unit])
      | HOPPING (SIZE n unit, ADVANCE BY n unit ...)
      | SESSION (n unit ...)]
[WHERE condition] [GROUP BY expression, ...] [PARTITION BY expression, ...] [HAVING condition]
[ORDER BY expression [ASC | DESC], ...]
[EMIT CHANGES | EMIT FINAL]
[LIMIT n] [OFFSET n]"""

SECTIONS: tuple[tuple[str, tuple[Note, ...]], ...] = (
    (
        "Streams and tables",
        (
            Note(
                "CREATE STREAM and CREATE TABLE",
                (of.CreateSource,),
                "Declares a stream or a table on a topic. A stream's rows are events; of a table the last row of each "
                "key counts, and a record without value deletes it. Without columns, formats with a schema registry "
                "take them from there. `SOURCE` makes one that statements cannot write to, a table of which can be "
                "pulled. [Settings and formats](settings.md) lists the properties in `WITH`. Rows of a table with "
                "`TTL='7 DAYS'` expire seven days after their ROWTIME, in every query that reads it.",
                "CREATE STREAM orders (id INT KEY, customer STRING, item STRING, price DECIMAL(8, 2))\n"
                "  WITH (KAFKA_TOPIC='orders', PARTITIONS=1, VALUE_FORMAT='JSON');\n"
                "CREATE TABLE customers (name STRING PRIMARY KEY, city STRING)\n"
                "  WITH (KAFKA_TOPIC='customers', PARTITIONS=1, VALUE_FORMAT='JSON');",
            ),
            Note(
                "CREATE STREAM AS SELECT and CREATE TABLE AS SELECT",
                (of.CreateAsSelect,),
                "Starts a query that runs until it is terminated, and writes what it finds to the topic of a new "
                "stream "
                "or table. A query with GROUP BY makes a table, one over a stream without it a stream. `OR REPLACE` "
                "changes the query of one that is there. With `TTL='7 DAYS'` the rows of the new table are deleted so "
                "long after their ROWTIME; a group of a stream's rows then begins anew. `TTL_CLOCK` names the clock: "
                "see [Rows that expire](../guide/tables.md#rows-that-expire). Windows have a RETENTION instead, and "
                "for groups of a table's rows the TTL belongs to that table. `DISTINCT ON (…) WITHIN 10 MINUTES` "
                "leaves out rows of a stream that repeat one: with the same key, the same values of the expressions "
                "(NULL is like NULL), and a time at most so far away. It comes behind WHERE and PARTITION BY, so that "
                "the latter says what belongs together, and before table functions.",
                "CREATE STREAM dear AS SELECT id, customer, price FROM orders WHERE price > 10;\n"
                "CREATE TABLE spent AS SELECT customer, COUNT(*) AS n, SUM(price) AS total FROM orders\n"
                "  GROUP BY customer;\n"
                "CREATE STREAM firsts AS SELECT DISTINCT ON (item) WITHIN 1 DAY customer, item, id FROM orders\n"
                "  PARTITION BY customer;",
            ),
            Note(
                "ALTER STREAM and ALTER TABLE",
                (of.AlterSource,),
                "Adds columns at the end of one that was declared; records that lack them give NULL.",
                "ALTER TABLE customers ADD country STRING;",
            ),
            Note(
                "DROP STREAM and DROP TABLE",
                (of.DropSource,),
                "Forgets a stream or a table that no query reads, and ends the query that writes it. `DELETE TOPIC` "
                "deletes its topic.",
                "DROP STREAM dear DELETE TOPIC;",
            ),
        ),
    ),
    (
        "Rows",
        (
            Note(
                "INSERT INTO VALUES",
                (of.InsertValues,),
                "Writes a row. Columns that are not named are NULL; `ROWTIME` may be given.",
                "INSERT INTO orders VALUES (1, 'ada', 'tea', 12.50);\n"
                "INSERT INTO orders (id, customer, price, ROWTIME) VALUES (2, 'eve', 3, 1700000000000);\n"
                "INSERT INTO orders VALUES (3, 'ada', 'bun', 2.25);",
            ),
            Note(
                "INSERT INTO SELECT",
                (of.InsertInto,),
                "Starts a query that writes to a stream that is there.",
                "CREATE STREAM buns (id INT KEY, item STRING)\n"
                "  WITH (KAFKA_TOPIC='buns', PARTITIONS=1, VALUE_FORMAT='JSON');\n"
                "INSERT INTO buns WITH (QUERY_ID='find_buns') SELECT id, item FROM orders WHERE item = 'bun';",
            ),
        ),
    ),
    (
        "Queries",
        (
            Note(
                "SELECT",
                (of.SelectQuery,),
                "Without EMIT it is a *pull query*: it answers from what is there, and ends. It reads tables that "
                "queries write and source tables, and streams from their beginning to their end. Any "
                "condition may be asked for; keys and ranges of keys are looked up. ORDER BY, OFFSET, GROUP BY and "
                "joins "
                "of tables may be used. With EMIT CHANGES it is a *push query*: it continues with each change "
                "until it is terminated, or until LIMIT.",
                "SELECT * FROM spent WHERE customer = 'ada';\n"
                "SELECT customer, total FROM spent ORDER BY total DESC LIMIT 1;\n"
                "SET 'auto.offset.reset' = 'earliest';\n"
                "SELECT id, UCASE(item) AS item FROM orders EMIT CHANGES LIMIT 2;",
                syntax=_QUERY,
            ),
            Note(
                "PRINT",
                (of.PrintTopic,),
                "Shows the records of a topic, with a guess at their formats; those of registered schemas as JSON, "
                "keys of windowed sources with the bounds of their windows, `[key@start/end]`. `INTERVAL` leaves "
                "out all but every nth.",
                "PRINT 'orders' FROM BEGINNING LIMIT 3;",
                runs=False,
            ),
        ),
    ),
    (
        "Running queries",
        (
            Note(
                "PAUSE, RESUME and TERMINATE",
                (of.ControlQuery,),
                "Halts a query, lets it go on, or ends it for good. What it has written stays. TERMINATE also ends a "
                "push query, by the id that SHOW QUERIES has for it.",
                "PAUSE find_buns;\nRESUME find_buns;\nTERMINATE find_buns;",
            ),
            Note(
                "EXPLAIN",
                (of.Explain,),
                "Shows the topology of a query that runs, or of a statement that is not carried out.",
                "EXPLAIN SELECT id, price * 2 AS twice FROM orders EMIT CHANGES;",
            ),
        ),
    ),
    (
        "What there is",
        (
            Note(
                "SHOW and LIST",
                (of.ShowList,),
                "`LIST` is the same. What can be listed: PROPERTIES, [ALL] TOPICS, STREAMS, TABLES, FUNCTIONS, "
                "QUERIES, "
                "TYPES, VARIABLES, [SOURCE | SINK] CONNECTORS, CONNECTOR PLUGINS.",
                "SHOW STREAMS;\nSHOW QUERIES;",
            ),
            Note(
                "DESCRIBE",
                (of.Describe,),
                "Shows the columns of a stream or a table, or the ways to call a function.",
                "DESCRIBE spent;\nDESCRIBE FUNCTION ifnull;",
            ),
        ),
    ),
    (
        "The session",
        (
            Note(
                "SET, UNSET and ALTER SYSTEM",
                (of.SetProperty, of.UnsetProperty),
                "Settings for the statements after it: of the session at the prompt, of the request over HTTP. See "
                "[Settings](settings.md#settings).",
                "SET 'auto.offset.reset' = 'earliest';\nUNSET 'auto.offset.reset';",
            ),
            Note(
                "DEFINE and UNDEFINE",
                (of.DefineVariable, of.UndefineVariable),
                "Gives a text a name; `${name}` in later statements is replaced by it. `$${name}` is left alone.",
                "DEFINE who = 'eve';\nSELECT total FROM spent WHERE customer = '${who}';\nUNDEFINE who;",
            ),
            Note(
                "RUN SCRIPT",
                (of.RunScript,),
                "Carries out the statements of a file. At the prompt only.",
                "RUN SCRIPT 'orders.sql';",
                runs=False,
            ),
        ),
    ),
    (
        "Types and functions",
        (
            Note(
                "CREATE TYPE and DROP TYPE",
                (of.CreateType, of.DropType),
                "Gives a type a name, which declarations and casts may use.",
                "CREATE TYPE address AS STRUCT<street STRING, city STRING>;\n"
                "CREATE STREAM visits (id INT KEY, place address)\n"
                "  WITH (KAFKA_TOPIC='visits', PARTITIONS=1, VALUE_FORMAT='JSON');\n"
                "DROP TYPE address;",
            ),
            Note(
                "CREATE FUNCTION and DROP FUNCTION",
                (of.CreateFunction, of.DropFunction),
                "Makes a function of a Python module a function of SQL; see [User functions](user-functions.md).",
                "CREATE FUNCTION greet AS 'shop.functions:greet';\nDROP FUNCTION IF EXISTS greet;",
                runs=False,
            ),
        ),
    ),
    (
        "Connectors",
        (
            Note(
                "CREATE CONNECTOR",
                (of.CreateConnector,),
                "Makes a connector of the Kafka Connect worker at `ksql.connect.url`. `WITH` holds the "
                "connector's configuration; names of settings with dots stand in quotes. The worker checks it first, "
                "and all that it finds wrong is in the error. The name is folded to upper case unless it stands in "
                "backticks; one that differs only in case counts as the same. The worker keeps its connectors: they "
                "are not in the command topic, and stay when the server is gone. Answers and errors show the "
                "statement with `[string]` for all settings but the class, because some are secret.",
                "CREATE SOURCE CONNECTOR IF NOT EXISTS lines WITH (\n"
                "  'connector.class' = 'FileStreamSource', 'topic' = 'lines', 'file' = '/var/log/lines.txt');\n"
                "CREATE SINK CONNECTOR `totals-file` WITH (\n"
                "  'connector.class' = 'FileStreamSink', 'topics' = 'SPENT', 'file' = '/var/spool/totals.txt');",
                runs=False,
            ),
            Note(
                "SHOW CONNECTORS and DESCRIBE CONNECTOR",
                (of.ShowList, of.Describe),
                "Lists the connectors of the worker, however they were made, each with its state and how many of its "
                "tasks run; or what the worker can make connectors of. DESCRIBE shows the state of a connector and of "
                "its tasks with their errors, the topics that it has read or written, and the streams and tables on "
                "these topics.",
                "SHOW CONNECTORS;\nSHOW CONNECTOR PLUGINS;\nDESCRIBE CONNECTOR lines;",
                syntax="SHOW|LIST [SOURCE|SINK] CONNECTORS\nSHOW|LIST CONNECTOR PLUGINS\nDESCRIBE CONNECTOR name",
                runs=False,
            ),
            Note(
                "DROP CONNECTOR",
                (of.DropConnector,),
                "Deletes a connector from the worker. Its topics stay.",
                "DROP CONNECTOR IF EXISTS lines;",
                runs=False,
            ),
        ),
    ),
    (
        "Assertions",
        (
            Note(
                "ASSERT TOPIC and ASSERT SCHEMA",
                (of.AssertTopic, of.AssertSchema),
                "Fails unless the topic, or the schema in the registry, is there, or with NOT EXISTS is not there, "
                "within the time.",
                "ASSERT TOPIC orders TIMEOUT 5 SECONDS;\nASSERT NOT EXISTS TOPIC nowhere TIMEOUT 1 SECONDS;",
            ),
            Note(
                "ASSERT VALUES, ASSERT STREAM and ASSERT TABLE",
                (of.AssertValues, of.AssertSource),
                "Statements of ksqlDB's test scripts. They are read, so that such scripts can be checked, and no "
                "server "
                "takes them; [`headrace sql test`](../guide/from-ksqldb.md#tests) runs cases.",
                "ASSERT VALUES spent (customer, total) VALUES ('ada', 14.75);",
                runs=False,
            ),
        ),
    ),
)
