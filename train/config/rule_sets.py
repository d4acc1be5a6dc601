"""The rule sets of a run: one, or a list with weights, as files and the command line write them."""

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import pydantic
from pydantic.dataclasses import dataclass

from train.runtime.errors import message_of
from train.runtime.fields import STRICT, Real
from wallgo_jax.formats.rules_text import read_rules, write_rules
from wallgo_jax.game.rules import PRESETS, Rules, name_of, named

_NAME = r"[A-Za-z0-9][\w.+-]*"


def read_any_rules(given: Any) -> Rules:
    """Rules from a preset's name, a JSON object, a file, a table, or as they are.

    Raises:
      ValueError: what is wrong with them.
    """
    return read_rules(given) if isinstance(given, str) else named(given)


@dataclass(frozen=True, config=STRICT)
class RuleSet:
    """One of the rule sets that a run learns.

    Attributes:
      rules: of its boards.
      weight: its boards over those of a rule set of weight 1, from 0.001 to a million.
      name: in tables and metrics, different from the others'.
    """

    rules: Annotated[Rules, pydantic.PlainValidator(read_any_rules)]
    weight: Annotated[Real, pydantic.Field(ge=0.001, le=1_000_000)] = 1.0
    name: Annotated[str, pydantic.Field(pattern=rf"^({_NAME})?$")] = ""


def _as_table(entry: Any) -> Any:
    return entry if isinstance(entry, Mapping | RuleSet) else {"rules": entry}


_Entry = Annotated[RuleSet, pydantic.BeforeValidator(_as_table)]
_ENTRIES = pydantic.TypeAdapter(Annotated[tuple[_Entry, ...], pydantic.Field(min_length=1)])


def only_set(rules: Rules) -> RuleSet:
    """The rule set of a run that learns one."""
    return RuleSet(rules, name=_usual_name(rules))


def read_rule_sets(entries: Sequence[Any]) -> tuple[RuleSet, ...]:
    """Read a list of rule sets.

    Args:
      entries: each a preset's name, `Rules`, a `RuleSet`, or a table of `rules`, and `weight` and
        `name` if it likes.

    Raises:
      ValueError: in one line, which entry is wrong and what is allowed.
    """
    rule_sets: list[RuleSet] = []
    for entry in _ENTRIES.validate_python(entries):
        rule_sets.append(_named(entry, rule_sets))
    return tuple(rule_sets)


def _named(entry: RuleSet, before: Sequence[RuleSet]) -> RuleSet:
    """The entry with a name of its own, and rules that no entry before it has."""
    names, place = [other.name for other in before], f"entry {len(before) + 1}"
    for other in before:
        if entry.rules == other.rules:
            raise ValueError(f"{place} has the rules of {other.name} again")
        if entry.rules.players != other.rules.players:
            raise ValueError(f"{place} is not for {other.rules.players} players, as {other.name}")
        if entry.name == other.name:
            raise ValueError(f"{place} has the name of another, {other.name!r}")
    usual = _usual_name(entry.rules)
    name, number = entry.name or usual, 2
    while name in names:
        name, number = f"{usual}-{number}", number + 1
    return dataclasses.replace(entry, name=name)


def _usual_name(rules: Rules) -> str:
    name = name_of(rules)
    return name if name in PRESETS else f"{rules.size}x{rules.size}"


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
    """Rules of a name, an object or a file, or the entries of a list: `NAME=WEIGHT,NAME`, JSON."""
    if text.lstrip().startswith("["):
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            # Python refuses whole numbers of thousands of digits, and a list in a list in a list.
            raise ValueError(f"not JSON: {str(error)[:100]}") from None
    word = rf"({_NAME}(=[^,=]*)?)?"
    is_list = re.fullmatch(rf"{word}(,{word})*", text) and set(",=") & {*text}
    if not is_list or Path(text).exists():
        return read_rules(text)
    words = [word.partition("=") for word in text.split(",")]
    return [{"rules": name, "weight": weight if equals else 1.0} for name, equals, weight in words]


def _read(given: Any) -> Rules | tuple[RuleSet, ...]:
    """The rules of a run, or its rule sets."""
    try:
        if isinstance(given, str):
            given = _read_text(given)
        return read_rule_sets(given) if isinstance(given, list | tuple) else read_any_rules(given)
    except ValueError as error:
        raise ValueError(message_of(error).removeprefix("rules: ")) from None


RulesField = Annotated[Rules, pydantic.PlainValidator(_read), pydantic.PlainSerializer(write_rules)]
"""Rules; a file, a saved config and the command line may name a preset, or list several rule sets,
which `RunConfig` splits."""
