"""The rule sets of a run: one, or a list with weights, as files and the command line write them."""

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import pydantic

from wallgo_jax.formats.rules_text import read_rules
from wallgo_jax.game import rules as rules_lib
from wallgo_jax.game.rules import PRESETS, Rules, name_of

_NAME = r"[A-Za-z0-9][\w.+-]*"
_LEAST_WEIGHT, _MOST_WEIGHT = 0.001, 1_000_000
_ENTRY = 'a preset\'s name or a table { rules = ..., weight = 1, name = "..." }'


@dataclasses.dataclass(frozen=True)
class RuleSet:
    """One of the rule sets that a run learns.

    Attributes:
      rules: of its boards.
      weight: its boards over those of a rule set of weight 1, from 0.001 to a million.
      name: in tables and metrics, different from the others'.
    """

    rules: Rules
    weight: float = 1.0
    name: str = ""


def only_set(rules: Rules) -> RuleSet:
    """The rule set of a run that learns one."""
    return RuleSet(rules, name=_usual_name(rules))


def read_rule_sets(entries: Sequence[Any]) -> tuple[RuleSet, ...]:
    """Read a list of rule sets.

    Args:
      entries: each a preset's name, `Rules`, a `RuleSet`, or a table of `rules`, and `weight` and
        `name` if it likes.

    Raises:
      ValueError: in one line that begins with `rules: `, which entry is wrong and what is allowed.
    """
    if not entries:
        raise ValueError(f"rules: the list is empty; an entry is {_ENTRY}")
    found: list[RuleSet] = []
    for number, entry in enumerate(entries, start=1):
        try:
            found.append(_named(_read_entry(entry), found))
        except ValueError as error:
            reason = str(error).removeprefix("rules: ")
            raise ValueError(f"rules: entry {number}: {reason}") from None
    return tuple(found)


def _read_entry(entry: Any) -> RuleSet:
    if isinstance(entry, RuleSet):
        given = entry
    elif isinstance(entry, str | Rules):
        given = RuleSet(read_rules(entry) if isinstance(entry, str) else entry)
    elif isinstance(entry, Mapping) and "rules" in entry:
        known = [field.name for field in dataclasses.fields(RuleSet)]
        for key in entry:
            if key not in known:
                raise ValueError(f"unknown key {key!r}; known keys: {', '.join(known)}")
        rules = entry["rules"]
        if isinstance(rules, Mapping):
            rules = Rules.from_dict(rules)
        elif not isinstance(rules, str | Rules):
            raise ValueError(f"rules {rules!r} is neither a preset's name nor a table of rules")
        rules = read_rules(rules) if isinstance(rules, str) else rules
        given = dataclasses.replace(RuleSet(rules), **{**entry, "rules": rules})
    else:
        raise ValueError(f"{entry!r} is not {_ENTRY}")
    weight = given.weight
    if isinstance(weight, bool) or not isinstance(weight, int | float):
        raise ValueError(f"weight is {weight!r}, not a number above 0")
    if not _LEAST_WEIGHT <= weight <= _MOST_WEIGHT:
        raise ValueError(
            f"weight is {str(weight)[:20]}, not from {_LEAST_WEIGHT} to {_MOST_WEIGHT:,}"
        )
    return dataclasses.replace(given, weight=float(weight))


def _named(entry: RuleSet, before: Sequence[RuleSet]) -> RuleSet:
    """The entry with a name of its own, and rules that no entry before it has."""
    names = [other.name for other in before]
    for other in before:
        if other.rules == entry.rules:
            raise ValueError(f"has the rules of {other.name} again; give one of them more weight")
        if other.rules.players != entry.rules.players:
            raise ValueError(
                f"is for {entry.rules.players} players, {other.name} for {other.rules.players}; "
                "all rule sets of a run have the same number"
            )
    if entry.name:
        if not isinstance(entry.name, str) or not re.fullmatch(_NAME, entry.name):
            raise ValueError(f"name {entry.name!r} must be plain letters, digits, -+._")
        if entry.name in names:
            raise ValueError(f"name {entry.name!r} is another entry's already")
        return entry
    name, number = _usual_name(entry.rules), 2
    while name in names:
        name, number = f"{_usual_name(entry.rules)}-{number}", number + 1
    return dataclasses.replace(entry, name=name)


def _usual_name(rules: Rules) -> str:
    name = name_of(rules)
    return name if name in PRESETS else f"{rules.size}x{rules.size}"


def write_rules(rules: Rules) -> str | dict[str, Any]:
    """The name of a preset, or a table of rules."""
    name = name_of(rules)
    return name if name in PRESETS else rules.to_dict()


def write_rule_sets(rule_sets: Sequence[RuleSet]) -> list[dict[str, Any]]:
    """A list that `read_rule_sets` reads back."""
    return [
        {"rules": write_rules(each.rules), "weight": each.weight, "name": each.name}
        for each in rule_sets
    ]


def rule_sets_in_words(rule_sets: Sequence[RuleSet]) -> str:
    """The names, with weights where they differ: `hkoi=2, 5x5=1`."""
    if len({each.weight for each in rule_sets}) < 2:
        return ", ".join(each.name for each in rule_sets)
    return ", ".join(f"{each.name}={each.weight:g}" for each in rule_sets)


def _read_text(text: str) -> Any:
    """Rules of a name, an object or a file, or a list: `NAME=WEIGHT,NAME`, or JSON."""
    if text.lstrip().startswith("["):
        try:
            entries = json.loads(text)
        except (ValueError, RecursionError) as error:
            # Python refuses whole numbers of thousands of digits, and a list in a list in a list.
            raise ValueError(f"rules: not JSON: {str(error)[:100]}") from None
        return read_rule_sets(entries)
    word = rf"({_NAME}(=[^,=]*)?)?"
    is_list = re.fullmatch(rf"{word}(,{word})*", text) and set(",=") & {*text}
    if not is_list or Path(text).exists():
        return read_rules(text)
    entries: list[dict[str, Any]] = []
    for number, word in enumerate(text.split(","), start=1):
        if not word:
            raise ValueError(f"rules: entry {number} of {text[:60]!r} is empty")
        name, equals, weight = word.partition("=")
        try:
            entries.append({"rules": name, "weight": float(weight) if equals else 1.0})
        except ValueError:
            raise ValueError(f"rules: {word!r}: {weight!r} is not a weight above 0") from None
    return read_rule_sets(entries)


def _read(given: Any, read_table: pydantic.ValidatorFunctionWrapHandler) -> Any:
    """Rules of a text or a table, or the rule sets of a list."""
    if isinstance(given, str):
        given = _read_text(given)
    if isinstance(given, list | tuple):
        return read_rule_sets(given)
    if isinstance(given, int | float):
        raise ValueError(
            "rules: must be the name of a preset, a table of rules or a list of rule sets"
        )
    return read_table(given)


RulesField = Annotated[Rules, pydantic.WrapValidator(_read), pydantic.PlainSerializer(write_rules)]
"""Rules; a file, a saved config and the command line may name a preset, or list several rule sets,
which `RunConfig` takes apart."""


def take_apart(rules: Any, mix: tuple[RuleSet, ...]) -> tuple[Rules, tuple[RuleSet, ...]]:
    """The first rules of a run, and all its rule sets where there are several, else ().

    Args:
      rules: rules, a preset's name, or a list of rule sets.
      mix: the rule sets of a config that was made before, whose first rules are `rules`.

    Raises:
      ValueError: they are not allowed, or do not fit one another.
    """
    if isinstance(rules, list | tuple):
        mix = read_rule_sets(rules)
        rules = mix[0].rules
    rules = rules_lib.named(rules)
    if mix and mix[0].rules != rules:
        raise ValueError("rules: are not the first of the run's rule sets; give the whole list")
    return rules, mix if len(mix) > 1 else ()
