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

_ALWAYS = (
    *("search.value_scale", "search.visit_offset", "search.c_init", "search.c_base"),
    *("search.dirichlet_alpha", "selfplay.opening_prob", "selfplay.final_temperature"),
    *("selfplay.temperature_halflife", "learner.learning_rate", "learner.final_rate"),
    *("learner.momentum", "learner.weight_decay", "learner.max_grad_norm"),
    *(f"learner.weights.{head}" for head in ("policy", "value", "ownership", "margin", "reply")),
)
_UNLESS_OFF = (
    *("search.dirichlet_fraction", "search.temperature", "selfplay.cheap_policy_weight"),
    *("selfplay.policy_surprise_weight", "selfplay.setup_prob", "selfplay.random_opening_prob"),
    *("selfplay.temperature", "learner.ema_decay", "learner.value_mix"),
)
NUMBERS: dict[str, float | None] = {
    **dict.fromkeys(_ALWAYS),
    **dict.fromkeys(_UNLESS_OFF, 0.0),
    **{"selfplay.full_search_prob": 1.0, "search.least_spread": 1e-8},
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

    def changed(table: Any, names: list[str], value: Any) -> Any:
        name, *rest = names
        value = changed(getattr(table, name), rest, value) if rest else value
        return unchecked(table, **{name: value})

    for path, value in numbers.items():
        config = changed(config, path.split("."), value)
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
