"""The engine: a topology as a Spark query, and the only home of pyspark.

On the driver: ``engine`` runs a ``query``, for which a ``planner`` decides what each micro-batch (``batch``) reads. On
the workers: a ``level``, behind a ``level_processor`` if there is state, runs its tasks through a ``task_runner``,
which keeps each one as a ``live_task`` above its ``working_copy``; a ``task_batch`` is what one of them does in one
micro-batch. ``chunks`` are the state. ``layout`` says which task is where, and ``receipts`` is what travels.
``session``, ``jvm``, ``java`` and ``class_archive`` start Spark.
"""
