"""The server: statements over HTTP, as clients of ksqlDB send them.

``service`` is everything but HTTP: the catalogue that follows the command topic, the queries that run, what each
statement answers. ``routes`` has a file for each family of addresses, ``asgi_application`` puts them together,
``entities`` are the answers as values, ``console`` is a page for people, and ``headless`` runs the statements of a file
without taking any others.

| module | |
|---|---|
| ``sql_server``, ``asgi_application`` | everything together, and its HTTP |
| ``service``, ``statements``, ``querying``, ``session``, ``settings`` | statements and queries of clients |
| ``showing``, ``describing``, ``query_info``, ``printing``, ``asserting`` | SHOW, DESCRIBE and EXPLAIN, PRINT, ASSERT |
| ``connectors``, ``inserting_rows`` | statements about connectors; rows as JSON objects |
| ``open_queries``, ``pump``, ``streaming``, ``json_rows``, ``protobuf_rows`` | rows on their way to a client |
| ``headless``, ``errors`` | the statements of a file; errors as clients know them |
"""
