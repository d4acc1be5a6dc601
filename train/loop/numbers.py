"""The plain numbers of a config, which a run's programs take as arguments.

Runs whose configs differ in nothing else share their compiled programs.
"""

import copy
import operator
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

Table = TypeVar("Table")

Numbers = dict[str, Any]
"""float32[] of each key, such as `learner.learning_rate`."""

NUMBERS: dict[str, float | None] = {
    "search.value_scale": None,
    "search.visit_offset": None,
    "search.least_spread": 1e-8,
    "search.c_init": None,
    "search.c_base": None,
    "search.dirichlet_fraction": 0,
    "search.dirichlet_alpha": None,
    "search.temperature": 0,
    "selfplay.full_search_prob": 1,
    "selfplay.cheap_policy_weight": 0,
    "selfplay.policy_surprise_weight": 0,
    "selfplay.setup_prob": 0,
    "selfplay.opening_prob": None,
    "selfplay.random_opening_prob": 0,
    "selfplay.temperature": 0,
    "selfplay.final_temperature": None,
    "selfplay.temperature_halflife": None,
    "learner.learning_rate": None,
    "learner.final_rate": None,
    "learner.momentum": None,
    "learner.weight_decay": None,
    "learner.max_grad_norm": None,
    "learner.ema_decay": 0,
    "learner.value_mix": 0,
    "learner.weights.policy": None,
    "learner.weights.value": None,
    "learner.weights.ownership": None,
    "learner.weights.margin": None,
    "learner.weights.reply": None,
}
"""The keys, each with the value that switches something off: there it stays a constant, and the
programs are others."""


def numbers_of(config: Any) -> Numbers:
    """The numbers of a run's config that its programs take as arguments."""
    values = {path: operator.attrgetter(path)(config) for path in NUMBERS}
    return {path: np.float32(x) for path, x in values.items() if x != NUMBERS[path]}


def with_numbers(config: Table, numbers: Mapping[str, Any]) -> Table:
    """The config with other numbers, arrays of a program that is traced among them; they are not
    checked."""
    for path, value in numbers.items():
        config = _with(config, path.split("."), value)
    return config


def without_numbers(config: Table) -> Table:
    """The config of all runs that share programs with this one: numbers which are arguments are
    infinite, which is equal in all of them, as NaN would not be."""
    return with_numbers(config, dict.fromkeys(numbers_of(config), np.inf))


def unchecked(table: Table, **changes: Any) -> Table:
    """`dataclasses.replace` for tables whose numbers may be arrays: nothing is checked."""
    changed = copy.copy(table)
    for name, value in changes.items():
        object.__setattr__(changed, name, value)
    return changed


def _with(table: Any, names: list[str], value: Any) -> Any:
    name, *rest = names
    return unchecked(table, **{name: _with(getattr(table, name), rest, value) if rest else value})
