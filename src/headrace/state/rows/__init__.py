"""Rows: objects between a store and its engine, and how they lie there as bytes.

| module | |
|---|---|
| ``codec`` | keys and values to bytes, or kept as objects |
| ``row_buffer`` | rows of key-value stores |
| ``segmented_rows``, ``segments`` | rows with a retention, by segments of time |
| ``window_rows``, ``window_starts``, ``duplicate_rows``, ``session_rows`` | rows of window and session stores |
| ``versioned_rows`` | rows of versioned stores |
| ``buffered_records`` | records in the layout of Kafka Streams' buffers |
| ``cache_budget``, ``window_cache``, ``session_cache`` | record caches, and the memory they share |
| ``expiry`` | time to live, and the index of rows that are over |
"""
