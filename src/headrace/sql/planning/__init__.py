"""From a query to a topology: names and types, then a plan of frozen values, then the calls of the DSL.

Read ``plan`` first: it has the steps. ``planner`` makes them, with a file for each clause beside it; ``build`` turns
them into a topology, with the functions that run per record in ``record_functions``.

| module | |
|---|---|
| ``planner``, ``plan``, ``build`` | a query to a plan, and the plan to a topology |
| ``select``, ``from_clause``, ``group_by``, ``distinct``, ``table_functions`` | clauses |
| ``reads``, ``join_steps``, ``aggregate_steps``, ``keys``, ``projection``, ``sink`` | steps of the plan |
| ``sources``, ``layout``, ``names``, ``typing``, ``tree`` | names and types of a query |
| ``clause_checks``, ``sink_request`` | checks across clauses; the target of the rows |
"""

from headrace.sql.planning.build import build
from headrace.sql.planning.plan import QueryPlan
from headrace.sql.planning.planner import plan_query
from headrace.sql.planning.sink_request import SinkRequest

__all__ = ["QueryPlan", "SinkRequest", "build", "plan_query"]
