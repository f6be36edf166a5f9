"""Typed expressions: ``analyse`` types a node and compiles it to Python source; row functions run the source.

| module | |
|---|---|
| ``analysis``, ``analyser``, ``typed`` | entry points, the rules by node, and what they give |
| ``values``, ``arithmetic``, ``comparisons``, ``conditions``, ``calls``, ``casts`` | the rules |
| ``coercion``, ``literals`` | common types of lists; values in a statement |
| ``row_functions``, ``call_timeout`` | compiled expressions over rows, and their time limit |
"""

from headrace.sql.expressions.analysis import (
    AggregateCall,
    TableCall,
    aggregate_call,
    analyse,
    analyse_as,
    table_call,
)
from headrace.sql.expressions.literals import constant
from headrace.sql.expressions.row_functions import PROCESSING_LOG, RowFunction, RowPredicate
from headrace.sql.expressions.typed import Scope, Slot, TypedExpression
from headrace.sql.types.type_names import type_text

__all__ = [
    "PROCESSING_LOG",
    "AggregateCall",
    "RowFunction",
    "RowPredicate",
    "Scope",
    "Slot",
    "TableCall",
    "TypedExpression",
    "aggregate_call",
    "analyse",
    "analyse_as",
    "constant",
    "table_call",
    "type_text",
]
