// Scripts for a server that has nothing yet: each makes what it needs, so they can be run in any order, and again.

const ORDERS = `CREATE STREAM IF NOT EXISTS example_orders (id INT KEY, region STRING, cents BIGINT)
  WITH (KAFKA_TOPIC='example_orders', VALUE_FORMAT='JSON', PARTITIONS=1);
INSERT INTO example_orders VALUES (1, 'north', 250);
INSERT INTO example_orders VALUES (2, 'south', 1200);
INSERT INTO example_orders VALUES (3, 'north', 700);
`;

export const PREFIX = "EXAMPLE_";

// `shown` is what an example is about; `before` makes what it needs.
export const EXAMPLES = [
  { title: "Follow a stream", says: "Rows that pass a condition: those that are there, and those that come.", before: ORDERS,
    shown: `SELECT id, region, cents
  FROM example_orders
  WHERE cents > 500
  EMIT CHANGES;` },
  { title: "Count in a table", says: "A query that goes on by itself, and keeps a row for each region.", before: ORDERS,
    shown: `CREATE TABLE IF NOT EXISTS
  example_regions AS
  SELECT region, COUNT(*) AS orders,
    SUM(cents) AS cents
  FROM example_orders
  GROUP BY region;

SELECT * FROM example_regions
  EMIT CHANGES;` },
  { title: "Join two streams", says: "Orders that are paid within an hour.",
    before: `${ORDERS}CREATE STREAM IF NOT EXISTS example_payments (id INT KEY, method STRING)
  WITH (KAFKA_TOPIC='example_payments', VALUE_FORMAT='JSON', PARTITIONS=1);
INSERT INTO example_payments VALUES (1, 'card');
INSERT INTO example_payments VALUES (3, 'cash');
`,
    shown: `CREATE STREAM IF NOT EXISTS
  example_paid AS
  SELECT o.id AS id, region, method
  FROM example_orders o
  JOIN example_payments p
  WITHIN 1 HOUR ON o.id = p.id;

SELECT * FROM example_paid
  EMIT CHANGES;` },
];
