"""Hints for methods called on the wrong handle: the step that is missing before the call."""

from __future__ import annotations

from headrace.arguments.hints import each

_AGGREGATIONS = ("count", "reduce", "aggregate")
_OF_TABLES = ("filter", "filter_not", "join", "left_join", "map_values", "outer_join", "suppress", "to_stream")
_OF_STREAMS = (
    "flat_map",
    "flat_map_values",
    "for_each",
    "map",
    "map_batches",
    "merge",
    "peek",
    "print",
    "process",
    "process_values",
    "repartition",
    "select_key",
    "split",
    "to",
)

STREAM = {
    **each(
        "group the stream first: group_by_key().{}(…), or group_by(…).{}(…)", *_AGGREGATIONS, "windowed_by", "cogroup"
    ),
    **each("use process(), or process_values() if the key stays", "transform", "flat_transform"),
    **each("use process_values(), or map_values() without state", "transform_values", "flat_transform_values"),
    **each(
        "use distinct(within=…), and by=… if more than the key decides",
        "deduplicate",
        "deduplicate_by_key",
        "deduplicate_by_key_value",
    ),
    "branch": "call split() first: split().branch(…)",
    "foreach": "did you mean 'for_each'?",
    "suppress": "only the updates of a table can be held back: to_table().suppress(…)",
    "through": "use repartition(), or write to the topic with to() and read it with builder.stream()",
    "to_stream": "it is a stream already",
}

TABLE = {
    **each("make a stream of the table first: to_stream().{}(…)", *_OF_STREAMS),
    **each("group the table first: group_by(…).{}(…)", *_AGGREGATIONS),
    **each("only streams have windows: to_stream().group_by_key().{}(…)", "windowed_by"),
    "branch": "make a stream of the table first: to_stream().split().branch(…)",
    "foreach": "make a stream of the table first: to_stream().for_each(…)",
    "group_by_key": "rows are grouped by a new key: group_by(lambda key, value: (new_key, value))",
    "to_table": "it is a table already",
}

GLOBAL_TABLE = each(
    "a global table is for lookups only: stream.join(global_table, joiner, key_selector=…)",
    *_OF_TABLES,
    *_OF_STREAMS,
    "group_by",
)

GROUPED = {
    **each("aggregate first, with count(), reduce(…) or aggregate(…): the result is a table", *_OF_TABLES),
    **each(
        "aggregate first, with count(), reduce(…) or aggregate(…), and make a stream of it: to_stream().{}(…)",
        *_OF_STREAMS,
    ),
}

GROUPED_TABLE = {**GROUPED, "windowed_by": "only streams have windows: table.to_stream().group_by_key().windowed_by(…)"}

COGROUPED = {
    **each("aggregate first, with aggregate(…): the result is a table", *_OF_TABLES),
    **each("aggregate first, with aggregate(…), and make a stream of it: to_stream().{}(…)", *_OF_STREAMS),
    **each("a cogroup has an aggregator per stream, so only aggregate(…) is possible", "count", "reduce"),
    "emit_strategy": "a cogroup forwards every update; call suppress(…) on the table for final results",
}

BRANCHED = each(
    "finish the split first: default_branch() and no_default_branch() return the streams by name",
    *_OF_STREAMS,
    "filter",
    "filter_not",
    "group_by",
    "group_by_key",
    "map_values",
)

SUPPRESSED = {"buffer_config": "it is a class of its own: from headrace import BufferConfig"}

OPTION = {
    "as_": "call the class itself: {owner}(name='…')",
    "number_of_partitions": "call the class itself: {owner}(partitions=…)",
    "stream_partitioner": "call the class itself: {owner}(partitioner=…)",
    "with_": "call the class itself: {owner}(key_serde=…, value_serde=…)",
    "with_consumer": "call the class itself: {owner}(consumer=…)",
    "with_function": "call the class itself: {owner}(function=…)",
    **{
        f"with_{field}": f"pass it when you make the option: {field}=…"
        for field in ("key_serde", "value_serde", "other_value_serde", "name", "retention", "grace_period")
    },
    "with_caching_disabled": "pass it when you make the option: caching=False",
    "with_caching_enabled": "pass it when you make the option: caching=True",
    "with_logging_disabled": "pass it when you make the option: logging=False",
    "with_logging_enabled": "pass it when you make the option: logging=True, log_config=…",
    "with_number_of_partitions": "pass it when you make the option: partitions=…",
    "with_offset_reset_policy": "pass it when you make the option: offset_reset=…",
    "with_stream_partitioner": "pass it when you make the option: partitioner=…",
    "with_store_type": "pass it when you make the option: store_type=…",
    "with_timestamp_extractor": "pass it when you make the option: timestamp_extractor=…",
}

MATERIALIZED = {**OPTION, "as_": "call the class itself with the name of the store: {owner}('…')"}
