"""All functions that come with the language."""

from __future__ import annotations

from headrace.sql.functions import (
    arrays,
    conditionals,
    dates,
    encodings,
    json_text,
    maps,
    masks,
    numbers,
    regexes,
    strings,
    tables,
    trigonometry,
    urls,
)
from headrace.sql.functions.aggregates import AGGREGATES
from headrace.sql.functions.registry import FunctionRegistry

_SCALARS = (
    *arrays.FUNCTIONS,
    *conditionals.FUNCTIONS,
    *dates.FUNCTIONS,
    *encodings.FUNCTIONS,
    *json_text.FUNCTIONS,
    *maps.FUNCTIONS,
    *masks.FUNCTIONS,
    *numbers.FUNCTIONS,
    *regexes.FUNCTIONS,
    *strings.FUNCTIONS,
    *trigonometry.FUNCTIONS,
    *urls.FUNCTIONS,
)

BUILTIN_FUNCTIONS = FunctionRegistry((*AGGREGATES, *_SCALARS, *tables.FUNCTIONS))
"""Every function that comes with the language."""
