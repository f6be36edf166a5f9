"""Topics and tables as data frames: the data source ``headrace`` of PySpark.

``source`` is the data source and ``options`` what it was told. ``topic_reader``, ``store_reader`` and ``sql_reader``
make rows of topics, of stores of an application, and of tables and streams of SQL; ``writer`` writes to topics. Below
them: ``scanning`` of ranges within bounds, ``filters`` that set the bounds, ``columns`` of serdes, ``batches`` of
Arrow, and ``store_rows``, which has the last row of each key. ``catalogue`` asks a server which tables there are.
"""
