"""Docstrings that are data: help pages, meanings of a config's keys, texts of result pages."""

import ast
import inspect
import sys
import textwrap
from types import ModuleType


def docstring_of(thing: ModuleType | type) -> str:
    """The docstring of a module or class, empty where it has none.

    `python -OO` drops docstrings; then it is read from the source, where that is there.
    """
    if sys.flags.optimize < 2:
        return thing.__doc__ or ""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(thing)))
    except (OSError, TypeError, SyntaxError):
        return ""
    node = tree if isinstance(thing, ModuleType) else tree.body[0]
    has_docstring = isinstance(node, ast.Module | ast.ClassDef)
    return (ast.get_docstring(node, clean=False) if has_docstring else None) or ""
