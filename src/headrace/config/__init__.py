"""Configuration of an application: ``StreamsConfig`` and its settings.

| module | |
|---|---|
| ``streams_config`` | the settings of an application, checked, from arguments or from a mapping of Kafka's names |
| ``settings`` | one setting: its Kafka name, its values, and the settings that have no effect |
| ``client_settings`` | settings of Kafka's clients that are named without a prefix |
| ``named_objects`` | serdes, handlers and functions that a setting names as text |
"""

from headrace.config.streams_config import DEFAULT_STATE_DIR, StreamsConfig, known_names

__all__ = ["DEFAULT_STATE_DIR", "StreamsConfig", "known_names"]
