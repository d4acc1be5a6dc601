"""Docstrings that are data: help pages, meanings of a config's keys, texts of result pages."""

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable
from types import ModuleType
from typing import Any


def docstring_of(thing: ModuleType | type | Callable[..., Any]) -> str:
    """The docstring of a module, class or function, empty where it has none.

    `python -OO` drops docstrings; then it is read from the source, where that is there.
    """
    if sys.flags.optimize < 2:
        return thing.__doc__ or ""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(thing)))
    except (OSError, TypeError, SyntaxError):
        return thing.__doc__ or ""  # of a class that was made, which has no source
    node = tree if isinstance(thing, ModuleType) else tree.body[0]
    has_docstring = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
    return (ast.get_docstring(node, clean=False) if has_docstring else None) or ""
