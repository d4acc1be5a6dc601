"""Tables of options as trees of JAX: numbers are leaves, all else decides the program."""

import dataclasses
import typing
from typing import TypeVar

import jax
import numpy as np

Table = TypeVar("Table")


def register_table(table: type) -> None:
    """Register a dataclass of options with JAX.

    Fields that hold floats, or tables that are registered, are children; all others are static, and
    so must have a hash. Programs of two tables that differ in their floats alone are the same.
    """
    hints = typing.get_type_hints(table)
    children = [name for name, hint in hints.items() if _is_child(hint)]
    names = [field.name for field in dataclasses.fields(table)]
    jax.tree_util.register_dataclass(
        table,
        data_fields=[name for name in names if name in children],
        meta_fields=[name for name in names if name not in children],
    )
    _registered.add(table)


_registered: set[type] = set()


def _is_child(hint: object) -> bool:
    kinds = set(typing.get_args(hint)) or {hint}
    return bool(kinds & {float, *_registered})


def as_leaves(table: Table) -> Table:
    """The table with its floats as float32 on the host, of the type that programs take.

    A Python float is weakly typed, so that it would compile another program.
    """
    return jax.tree.map(np.float32, table)
