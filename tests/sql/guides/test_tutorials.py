"""Three of ksqlDB's tutorials, with INSERTs where they use connectors, and AVRO throughout."""

from __future__ import annotations

import json

from headrace.serdes.registry import AvroSerde, subject_of
from tests.sql.guides.kit import Guide


def test_materialized_cache(guide: Guide) -> None:
    guide.run("""
        CREATE STREAM calls (name VARCHAR KEY, reason VARCHAR, duration_seconds INT)
            WITH (kafka_topic='call-center-db.calls', partitions=2, value_format='avro');
        CREATE TABLE support_view AS
            SELECT name, count_distinct(reason) AS distinct_reasons, latest_by_offset(reason) AS last_reason
            FROM calls GROUP BY name EMIT CHANGES;
        CREATE TABLE lifetime_view AS
            SELECT name, count(reason) AS total_calls, (sum(duration_seconds) / 60) AS minutes_engaged
            FROM calls GROUP BY name EMIT CHANGES;
        INSERT INTO calls (name, reason, duration_seconds) VALUES ('michael', 'purchase', 540);
        INSERT INTO calls (name, reason, duration_seconds) VALUES ('michael', 'help', 224);
        INSERT INTO calls (name, reason, duration_seconds) VALUES ('colin', 'help', 802);
        INSERT INTO calls (name, reason, duration_seconds) VALUES ('derek', 'purchase', 10204);
        INSERT INTO calls (name, reason, duration_seconds) VALUES ('derek', 'help', 600);
        INSERT INTO calls (name, reason, duration_seconds) VALUES ('colin', 'refund', 105);
        INSERT INTO calls (name, reason, duration_seconds) VALUES ('michael', 'help', 2030);
        INSERT INTO calls (name, reason, duration_seconds) VALUES ('colin', 'purchase', 800);
        INSERT INTO calls (name, reason, duration_seconds) VALUES ('derek', 'help', 2514);
        INSERT INTO calls (name, reason, duration_seconds) VALUES ('derek', 'refund', 325);
    """)
    select = "SELECT name, distinct_reasons, last_reason FROM support_view WHERE name = 'derek';"
    assert guide.rows(select) == [["derek", 3, "refund"]]
    # 540 + 224 + 2030 seconds are 46 whole minutes.
    select = "SELECT name, total_calls, minutes_engaged FROM lifetime_view WHERE name = 'michael';"
    assert guide.rows(select) == [["michael", 3, 46]]


def test_streaming_etl_pipeline(guide: Guide) -> None:
    guide.run("""
        CREATE STREAM customers (id VARCHAR KEY, name VARCHAR, age INT)
            WITH (kafka_topic='customers.public.customers', partitions=1, value_format='avro');
        INSERT INTO customers VALUES ('1', 'fred', 34);
        INSERT INTO customers VALUES ('2', 'sue', 25);
        INSERT INTO customers VALUES ('3', 'bill', 51);
        CREATE TABLE customers_by_key AS
            SELECT id, latest_by_offset(name) AS name, latest_by_offset(age) AS age
            FROM customers GROUP BY id EMIT CHANGES;
    """)
    guide.run("""
        CREATE STREAM orders (customer_id VARCHAR KEY, order_id VARCHAR, price DOUBLE, currency VARCHAR, ts VARCHAR)
            WITH (kafka_topic='my-replica-set.logistics.orders', partitions=1, value_format='avro', timestamp='ts',
                  timestamp_format='yyyy-MM-dd''T''HH:mm:ss');
        CREATE STREAM shipments (shipment_id VARCHAR, order_id VARCHAR KEY, origin VARCHAR, ts VARCHAR)
            WITH (kafka_topic='my-replica-set.logistics.shipments', partitions=1, value_format='avro', timestamp='ts',
                  timestamp_format='yyyy-MM-dd''T''HH:mm:ss');
        CREATE STREAM enriched_orders AS
            SELECT o.order_id, o.price, o.currency, c.id AS customer_id, c.name AS customer_name, c.age AS customer_age
            FROM orders AS o LEFT JOIN customers_by_key c ON o.customer_id = c.id EMIT CHANGES;
        CREATE STREAM shipped_orders WITH (kafka_topic='shipped_orders') AS
            SELECT o.order_id, s.shipment_id, o.customer_id, o.customer_name, s.origin, o.price, o.currency
            FROM enriched_orders o INNER JOIN shipments s WITHIN 7 DAYS ON s.order_id = o.order_id EMIT CHANGES;
    """)
    guide.run("""
        INSERT INTO orders VALUES ('2', '13', 50.50, 'usd', '2020-04-03T11:20:00');
        INSERT INTO orders VALUES ('1', '29', 15.00, 'aud', '2020-04-02T12:36:00');
        INSERT INTO orders VALUES ('3', '17', 17.25, 'eur', '2020-04-02T17:22:00');
        INSERT INTO orders VALUES ('2', '15', 13.75, 'usd', '2020-04-03T02:55:00');
        INSERT INTO orders VALUES ('3', '44', 29.71, 'aud', '2020-04-04T23:12:00');
    """)
    # One after the other: time goes on with the latest record, and an order that comes behind it would be late.
    for values in (
        "('42', '13', 'texas', '2020-04-04T19:20:00')",
        "('90', '44', 'california', '2020-04-05T05:00:00')",
        "('99', '29', 'iowa', '2020-04-20T12:00:00')",
    ):
        guide.run(f"INSERT INTO shipments (shipment_id, order_id, origin, ts) VALUES {values};")
    # The shipment of order 29 comes after more than seven days.
    columns = "o_order_id, shipment_id, customer_id, customer_name, origin, price, currency"
    rows = guide.rows(f"SELECT {columns} FROM shipped_orders EMIT CHANGES LIMIT 2;")
    assert sorted(rows) == [
        ["13", "42", "2", "sue", "texas", 50.5, "usd"],
        ["44", "90", "3", "bill", "california", 29.71, "aud"],
    ]


def test_event_driven_microservice(guide: Guide) -> None:
    guide.run("""
        CREATE STREAM transactions (
            tx_id VARCHAR KEY, email_address VARCHAR, card_number VARCHAR, timestamp VARCHAR, amount DECIMAL(12, 2)
        ) WITH (
            kafka_topic = 'transactions', partitions = 8, value_format = 'avro',
            timestamp = 'timestamp', timestamp_format = 'yyyy-MM-dd''T''HH:mm:ss'
        );
        CREATE TABLE possible_anomalies WITH (
            kafka_topic = 'possible_anomalies',
            VALUE_AVRO_SCHEMA_FULL_NAME = 'io.ksqldb.tutorial.PossibleAnomaly'
        ) AS
            SELECT card_number AS `card_number_key`, as_value(card_number) AS `card_number`,
                   latest_by_offset(email_address) AS `email_address`, count(*) AS `n_attempts`,
                   sum(amount) AS `total_amount`, collect_list(tx_id) AS `tx_ids`,
                   WINDOWSTART AS `start_boundary`, WINDOWEND AS `end_boundary`
            FROM transactions WINDOW TUMBLING (SIZE 30 SECONDS, RETENTION 1000 DAYS)
            GROUP BY card_number HAVING count(*) >= 3 EMIT CHANGES;
    """)
    payments = [
        ("1", "a@example.com", "358579699410099", "2020-04-22T03:19:58", "50.25"),
        ("2", "a@example.com", "358579699410099", "2020-04-22T03:19:59", "0.75"),
        ("3", "b@example.com", "352642227248344", "2020-04-22T12:50:30", "18.97"),
        ("4", "a@example.com", "358579699410099", "2020-04-22T03:19:59", "9.00"),
        ("5", "b@example.com", "352642227248344", "2020-04-22T12:50:31", "12.50"),
    ]
    for tx_id, email, card, time, amount in payments:
        guide.run(f"INSERT INTO transactions VALUES ('{tx_id}', '{email}', '{card}', '{time}', {amount});")
    [row] = guide.rows("SELECT * FROM possible_anomalies WHERE `card_number_key` = '358579699410099';")
    # The half minute from 03:19:30 on; those before it have no third payment.
    start, end = 1587525570000, 1587525600000
    expected = ["358579699410099", "a@example.com", 3, 60.0, ["1", "2", "4"], start, end]
    assert row == ["358579699410099", start, end, *expected]
    # The microservice reads with the schema of the registry.
    latest = guide.registry.latest(subject_of("possible_anomalies", is_key=False))
    assert latest is not None
    schema = json.loads(latest.schema.text)
    assert (schema["namespace"], schema["name"]) == ("io.ksqldb.tutorial", "PossibleAnomaly")
    serde = AvroSerde[dict[str, object]](guide.registry, latest.schema.text)
    values = [raw[3] for raw in guide.client.records("possible_anomalies")]
    found = [serde.deserialize(value, "possible_anomalies") for value in values if value is not None]
    assert [(each["card_number"], each["n_attempts"], each["tx_ids"]) for each in found if each is not None] == [
        ("358579699410099", 3, ["1", "2", "4"])
    ]
