"""Development tools: what stands in for a cluster on one machine, and something to feed it with.

| package or module | command | |
|---|---|---|
| ``kafka_broker`` | ``headrace kafka`` | a Kafka broker of one node |
| ``schema_registry`` | ``headrace registry`` | a schema registry, its content in a topic of the log |
| ``load`` | ``headrace generate`` | streams of records, the same for the same seed |
| ``demo`` | ``headrace demo`` | a pipeline of purchases, its input and its results |
| ``background_process`` | | processes that outlive the one that starts them |

The commands themselves are in ``headrace.cli``.
"""
