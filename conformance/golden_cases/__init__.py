"""Golden cases: topologies as data, with the answers that Apache Kafka Streams gave to them.

``case`` loads them, ``dsl`` and ``papi`` build their topologies with Headrace's public API, ``drive`` runs them on an
engine and ``compare`` looks for the first difference.
"""
