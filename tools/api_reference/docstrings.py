"""First sentences of docstrings, also of the strings under fields, which Python itself does not keep."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Any


def summary_of(value: Any) -> str:
    """Returns the first sentence of a docstring."""
    return first_sentence(inspect.getdoc(value) or "")


def first_sentence(text: str) -> str:
    """Returns the first sentence of a text, on one line.

    >>> first_sentence('''Keeps what is left,
    ...    for good. And more.''')
    'Keeps what is left, for good.'
    """
    paragraph = " ".join(text.strip().split("\n\n")[0].split())
    return re.split(r"(?<=[.!?]) ", paragraph)[0].replace("``", "`")


@cache
def field_docs(owner: type) -> dict[str, str]:
    """Returns the fields of a class and its bases, and what ``__init__`` sets, with the strings under them."""
    docs: dict[str, str] = {}
    for base in reversed(owner.__mro__):
        if base.__module__.startswith("headrace"):
            found = dict(_documented(_classes(base.__module__)[base.__name__]))
            docs |= {name: text or docs.get(name, "") for name, text in found.items()}
    return docs


@cache
def _classes(module: str) -> dict[str, ast.ClassDef]:
    # Once per module: inspect.getsource of a class would read the whole file again for each.
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {statement.name: statement for statement in tree.body if isinstance(statement, ast.ClassDef)}


@cache
def alias_docs(module: ModuleType) -> dict[str, str]:
    """Returns the names that a module, or a module of this package, assigns, with the strings under them."""
    inside = [one for one in vars(module).values() if isinstance(one, ModuleType)]
    trees = [ast.parse(inspect.getsource(one)) for one in [module, *inside] if one.__name__.startswith("headrace")]
    return {name: text for tree in trees for name, text in _documented(tree)}


def _documented(tree: ast.AST) -> Iterator[tuple[str, str]]:
    body: list[ast.stmt] = getattr(tree, "body", [])
    for place, statement in enumerate(body):
        text = _text(body[place + 1]) if place + 1 < len(body) else ""
        yield from ((name, text) for name in _targets(statement, inside=tree))
        if isinstance(tree, ast.ClassDef) and isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
            yield from _documented(statement)


def _targets(statement: ast.stmt, inside: ast.AST) -> Iterator[str]:
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    for target in [statement.target] if isinstance(statement, ast.AnnAssign) else targets:
        if isinstance(target, ast.Name) and not isinstance(inside, ast.FunctionDef):
            yield target.id
        elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
            yield target.attr


def _text(statement: ast.stmt) -> str:
    constant = statement.value if isinstance(statement, ast.Expr) else None
    text = constant.value if isinstance(constant, ast.Constant) else None
    return first_sentence(text) if isinstance(text, str) else ""
