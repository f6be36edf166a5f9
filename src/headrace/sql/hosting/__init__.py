"""Hosts of persistent queries.

``host`` is the seam; ``streams_host`` runs each query as an application of its own, on Spark or, with
``headrace.app.engine.local_engine``, in this process.
"""
