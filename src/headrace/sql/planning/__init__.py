"""From a query to a topology: names and types, then a plan of frozen values, then the calls of the DSL.

Read ``plan`` first: it has the steps. ``planner`` makes them, with a file for each clause beside it; ``build`` turns
them into a topology, with the functions that run per record in ``record_functions``.
"""

from headrace.sql.planning.build import build
from headrace.sql.planning.plan import QueryPlan
from headrace.sql.planning.planner import plan_query
from headrace.sql.planning.sink_request import SinkRequest

__all__ = ["QueryPlan", "SinkRequest", "build", "plan_query"]
