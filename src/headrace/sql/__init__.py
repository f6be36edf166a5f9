"""ksqlDB's dialect of SQL, compiled to topologies.

Reading order: ``types`` (what a column is, and what its values do), ``syntax`` (text to statements), ``functions`` and
``expressions`` (a typed expression becomes a Python function once), ``formats`` (rows to bytes and back), ``catalog``
(what exists), ``planning`` (a query becomes a plan, a plan becomes a topology), ``sql_engine`` (statements, one after
the other), ``reading`` (pull and push queries), ``hosting`` (persistent queries), ``server``.
"""
