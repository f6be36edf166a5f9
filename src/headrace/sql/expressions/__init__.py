"""Typed expressions: ``analyse`` types a node and compiles it to Python source; row functions run the source."""

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
