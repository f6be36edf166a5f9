"""Reading of streams and tables by queries: ``SELECT`` that gives rows to a client.

| package or module | |
|---|---|
| ``pull`` | ``SELECT`` without ``EMIT``: keys of the condition, rows of the view, joins, groups, order |
| ``push`` | ``SELECT … EMIT CHANGES``: record by record, or a transient topology |
| ``tables`` | the views of tables that pull queries read |
| ``record_rows``, ``row_query`` | records as rows; a filter and columns for one row at a time |
| ``results`` | what queries are given, and what they give back |
| ``orphaned_queries`` | transient topologies that a killed process has left |
"""
