"""Checks of a study's scale: ValueErrors that name the topic and the key."""

from collections.abc import Mapping
from typing import Any


def check_own_keys(topic: str, config: Mapping[str, Any]) -> None:
    """Refuse keys of a run's config that a study sets."""
    for key in ("name", "seed", "evaluation", "checkpoint", "tracking", "init_from"):
        if key in config:
            raise ValueError(f"{topic}: config.{key} is set by the study: leave it out")


def check_network(topic: str, config: Mapping[str, Any], *keys: str) -> None:
    """Refuse keys of a run's network that a study sets."""
    network = config.get("network")
    for key in keys:
        if isinstance(network, Mapping) and key in network:
            raise ValueError(f"{topic}: config.network.{key} is set by the study: leave it out")


def check_players(topic: str, names: tuple[str, ...]) -> None:
    """Refuse an empty list of players, and empty names."""
    if not names or any(not name for name in names):
        raise ValueError(f"{topic}: name at least one player")


def check_distinct(topic: str, **names: tuple[str, ...]) -> None:
    """Refuse empty lists, and lists that say something twice."""
    for key, values in names.items():
        if not values or len(set(values)) < len(values):
            raise ValueError(f"{topic}: {key} must be at least one, each said once")


def check_counts(topic: str, **counts: tuple[int, ...]) -> None:
    """Refuse empty lists of numbers, and numbers below 1."""
    for name, values in counts.items():
        if not values or min(values) < 1:
            raise ValueError(f"{topic}: {name} must be numbers of at least 1")


def check_least(topic: str, least: int, **counts: int) -> None:
    """Refuse numbers below a least one."""
    for name, value in counts.items():
        if value < least:
            raise ValueError(f"{topic}: {name} ({value}) must be at least {least}")
