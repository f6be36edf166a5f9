"""The console of a server: statements typed into a page, and the queries that run.

``script`` carries out what is typed, statement by statement; ``server_view`` is what the pages show of the server;
``node_texts`` and ``failures`` put it into the words of the statement; ``topics`` says how topics are read; ``routes``
serves all of it. The page itself is in ``headrace.console``.
"""
