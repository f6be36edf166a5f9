"""The server: statements over HTTP, as clients of ksqlDB send them.

``service`` is everything but HTTP: the catalogue that follows the command topic, the queries that run, what each
statement answers. ``routes`` has a file for each family of addresses, ``asgi_application`` puts them together,
``entities`` are the answers as values, ``console`` is a page for people, and ``headless`` runs the statements of a file
without taking any others.
"""
