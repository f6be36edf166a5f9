// The examples of ksqldb-client's page, one after the other; what each of them finds is written as a line of JSON.

const KsqldbClient = require("ksqldb-client");

const [host, port] = process.argv.slice(2);
const tell = (name, found) => console.log(JSON.stringify([name, found]));

const examples = async () => {
    const client = new KsqldbClient({ host, port });
    await client.connect();
    tell("streams", await client.listStreams());

    const created = await client.executeStatement(
        "CREATE STREAM IF NOT EXISTS ${STREAM_NAME} (word VARCHAR) WITH (KAFKA_TOPIC='${TOPIC_NAME}', PARTITIONS=1, VALUE_FORMAT='JSON');",
        { sessionVariables: { STREAM_NAME: "words", TOPIC_NAME: "words_topic" } },
    );
    tell("create", [created.status, created.error]);
    const table = await client.executeStatement("CREATE TABLE counts AS SELECT word, COUNT(*) AS n FROM words GROUP BY word EMIT CHANGES;");
    tell("create as select", [table.status, table.error]);

    for (const word of ["tree", "wind", "tree"]) {
        const { status, error } = await client.insertInto("words", { word });
        tell("insert", [status, error]);
    }

    // Promise resolves after the push query ends.
    const pushed = [];
    const push = await client.streamQuery("SELECT word, n FROM counts EMIT CHANGES LIMIT 3;", ({ rows }) => {
        pushed.push(...(rows ?? []));
    }, { properties: { "auto.offset.reset": "earliest" } });
    tell("push", [push.status, pushed]);

    const pull = await client.query("SELECT * FROM ${TABLE_NAME} WHERE WORD in ('${FIRST_WORD}', '${SECOND_WORD}');", {
        sessionVariables: { TABLE_NAME: "counts", FIRST_WORD: "tree", SECOND_WORD: "wind" },
    });
    tell("pull", [pull.status, pull.data.metadata.columnNames, pull.data.rows]);

    // A push query that is terminated from outside.
    let terminated;
    const ended = await client.streamQuery("SELECT * FROM words EMIT CHANGES;", ({ metadata }) => {
        terminated ??= client.terminatePushQuery(metadata.queryId);
    });
    tell("terminated", [ended.status, (await terminated).error ?? null]);

    const described = await client.describeSource("words");
    tell("describe", [described.name, described.fields.map((field) => [field.name, field.schema.type])]);

    const wrong = await client.query("SELECT *;");
    tell("wrong", [wrong.status, wrong.error.error_code]);

    const dropped = await client.executeStatement("DROP TABLE IF EXISTS counts;");
    tell("drop", [dropped.status, dropped.error]);
    await client.disconnect();
};

examples().catch((error) => {
    console.error(error);
    process.exit(1);
});
