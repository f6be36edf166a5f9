// The answers of a server to statements, as people read them.

import { element, number, table } from "./dom.js";

const joined = (texts) => (texts ?? []).join(", ");
const queryLink = (id) => element("a", { href: `#/queries/${encodeURIComponent(id)}` }, id);
const said = (text) => element("p", {}, text);
const code = (text) => element("pre", {}, text);

// A type as it is written: ARRAY<INTEGER>.
export function typeText(schema) {
  if (typeof schema === "string") return schema;
  const { type, memberSchema, fields, parameters } = schema;
  if (type === "ARRAY") return `ARRAY<${typeText(memberSchema)}>`;
  if (type === "MAP") return `MAP<STRING, ${typeText(memberSchema)}>`;
  if (type === "STRUCT") return `STRUCT<${fields.map((one) => `${one.name} ${typeText(one.schema)}`).join(", ")}>`;
  return type === "DECIMAL" && parameters ? `DECIMAL(${parameters.precision}, ${parameters.scale})` : type;
}

function fieldsTable(fields, isTable) {
  const role = (field) => (field.type === "KEY" ? (isTable ? "PRIMARY KEY" : "KEY") : field.type === "HEADER" ? (field.headerKey ? `HEADER('${field.headerKey}')` : "HEADERS") : "");
  return table([["Column", (row) => row.name], ["Type", (row) => typeText(row.schema)], ["Role", role]], fields, "It has no columns.");
}

const facts = (pairs) => element("dl", { class: "facts" }, pairs.filter(([, value]) => value).map(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));

function queriesTable(queries) {
  return table([
    ["Query", (row) => (row.queryType === "PERSISTENT" ? queryLink(row.id) : row.id)], ["Type", (row) => row.queryType], ["State", (row) => row.state], ["Sink", (row) => joined(row.sinks)], ["Topic", (row) => joined(row.sinkKafkaTopics)], ["Statement", (row) => code(row.queryString)],
  ], queries, "No query runs.");
}

function source(one) {
  const linked = (queries) => (queries?.length ? element("span", {}, queries.flatMap((query, at) => [at ? ", " : "", queryLink(query.id), query.state ? ` (${query.state})` : ""])) : "");
  return element("div", { class: "stack described" },
    element("h2", {}, `${one.name} `, element("span", { class: "badge" }, one.type)),
    fieldsTable(one.fields, one.type === "TABLE"),
    facts([
      ["topic", element("a", { href: `#/topics/${encodeURIComponent(one.topic)}` }, one.topic)], ["partitions", one.partitions && number(one.partitions)],
      ["formats", `key ${one.keyFormat}, value ${one.valueFormat}`], ["window", one.windowType], ["timestamp", one.timestamp],
      ["read by", linked(one.readQueries)], ["written by", linked(one.writeQueries)], ["so far", one.statistics], ["made by", one.statement && code(one.statement)],
    ]));
}

function query(one) {
  return element("div", { class: "stack described" },
    facts([
      ["query", one.id && queryLink(one.id)], ["state", one.state], ["statement", one.statementText && code(one.statementText)], ["reads", joined(one.sources)], ["writes", joined(one.sinks)],
      ["settings", Object.entries(one.overriddenProperties ?? {}).map(([name, value]) => `${name}=${value}`).join(", ")],
    ]),
    (one.queryErrors ?? []).map((error) => element("p", { class: "error" }, error.errorMessage ?? "")),
    fieldsTable(one.fields ?? [], false),
    one.topology && element("details", {}, element("summary", {}, "Topology"), code(one.topology)));
}

const sourcesTable = (rows, text) => table([
  ["Name", (row) => row.name], ["Topic", (row) => row.topic], ["Key format", (row) => row.keyFormat], ["Value format", (row) => row.valueFormat], ["Windowed", (row) => (row.isWindowed ? "yes" : "")],
], rows, text);

const KINDS = {
  currentStatus: (one) => element("p", {}, one.commandStatus.message, one.commandStatus.queryId && [" · ", queryLink(one.commandStatus.queryId)]),
  warning_entity: (one) => said(one.message),
  streams: (one) => sourcesTable(one.streams, "There are no streams."),
  tables: (one) => sourcesTable(one.tables, "There are no tables."),
  queries: (one) => queriesTable(one.queries),
  kafka_topics: (one) => table([["Topic", (row) => row.name], ["Partitions", (row) => row.replicaInfo.length, "number"]], one.topics, "There are no topics."),
  kafka_topics_extended: (one) => table([["Topic", (row) => row.name], ["Partitions", (row) => row.replicaInfo.length, "number"], ["Consumers", (row) => row.consumerCount, "number"], ["Groups", (row) => row.consumerGroupCount, "number"]], one.topics, "There are no topics."),
  properties: (one) => table([["Property", (row) => row.name], ["Value", (row) => row.value ?? ""],
    ["From", (row) => (one.overwrittenProperties.includes(row.name) ? "this page" : one.defaultProperties.includes(row.name) ? "default" : "server")]], one.properties, "None."),
  function_names: (one) => table([["Function", (row) => row.name], ["Kind", (row) => row.type], ["Category", (row) => row.category]], one.functions, "None."),
  describe_function: (one) => element("div", { class: "stack" }, said(`${one.name}: ${one.description}`),
    one.functions.map((each) => code(`${one.name}(${each.arguments.map((each_) => `${each_.name} ${each_.type}${each_.isVariadic ? "..." : ""}`).join(", ")}) -> ${each.returnType}`))),
  type_list: (one) => table([["Type", ([name]) => name], ["Is", ([, schema]) => typeText(schema)]], Object.entries(one.types), "None."),
  variables: (one) => table([["Variable", (row) => row.name], ["Value", (row) => row.value]], one.variables, "None."),
  sourceDescription: (one) => source(one.sourceDescription),
  source_descriptions: (one) => element("div", { class: "stack" }, one.sourceDescriptions.map(source)),
  queryDescription: (one) => query(one.queryDescription),
  query_descriptions: (one) => element("div", { class: "stack" }, one.queryDescriptions.map(query)),
  terminate_query: (one) => said(`${one.queryId ?? "query"}: ${one.wasTerminated ? "terminated" : "not terminated"}`),
  connector_list: (one) => table([["Connector", (row) => row.name], ["Type", (row) => row.type], ["Class", (row) => row.className ?? ""], ["State", (row) => row.state ?? ""]], one.connectors, "There are no connectors."),
  connector_plugins_list: (one) => table([["Class", (row) => row.className], ["Type", (row) => row.type], ["Version", (row) => row.version ?? ""]], one.connectorsPlugins, "The worker has none."),
  connector_info: (one) => said(`created connector ${one.info.name}`),
  drop_connector: (one) => said(`dropped connector ${one.connectorName}`),
  assert_topic: (one) => said(`topic ${one.topicName} ${one.exists ? "exists" : "does not exist"}, as asserted`),
  assert_schema: (one) => said(`schema ${one.subject ?? one.id} ${one.exists ? "exists" : "does not exist"}, as asserted`),
};

// What is of a kind that is not known here is shown as it came.
export function answer(entity) {
  const shown = KINDS[entity["@type"]];
  return element("div", { class: "stack" }, shown ? shown(entity) : code(JSON.stringify(entity, null, 2)),
    (entity.warnings ?? []).map((warning) => element("p", { class: "warn" }, warning.message)));
}
