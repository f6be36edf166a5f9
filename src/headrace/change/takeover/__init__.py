"""An application that goes from Kafka Streams to Headrace and back, with its state, under the same name.

Changelogs have the same formats on both sides, so nothing is converted and nothing is copied: what changes hands are
positions, partition times and the times up to which closed windows were emitted, which Kafka Streams keeps in the
offsets of its consumer group and Headrace in its journal.

| module | |
|---|---|
| ``kafka_streams_application`` | what Kafka Streams has left: offsets, topics, and whether anybody still writes |
| ``stored_rows`` | rows of changelogs: whether serdes, formats and partitions are those of the topology |
| ``task_memory`` | offsets with metadata as memory of tasks, and back |
| ``taking_over`` | from Kafka Streams to Headrace |
| ``handing_back`` | from Headrace to Kafka Streams |
"""
