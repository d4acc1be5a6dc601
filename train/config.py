"""The config of a run: frozen dataclasses, read from TOML, changed from the command line.

Importing this loads no JAX, so a config is read, checked and printed at once.
"""

import dataclasses
import difflib
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pydantic

from train.arena.config import parse_sprt
from train.data.config import ReplayConfig, SelfPlayConfig
from train.learning.config import LearnerConfig
from train.network.config import NetworkConfig
from train.players.config import HeuristicsConfig
from train.runtime.errors import UsageError
from train.search.config import SearchConfig
from wallgo_jax.game import rules as rules_lib
from wallgo_jax.game.rules import Rules
from wallgo_jax.planes import check_planes

BEST = "best"
"""Stands for the best checkpoint so far where a player is named."""


@dataclasses.dataclass(frozen=True)
class EvaluationConfig:
    """Matches of the newest weights against other players.

    Attributes:
      every: iterations between the short matches of a run; 0 for no short match.
      opponents: players (names as in `train.registry`) of the final matches; empty for no matches.
      anchors: players of the short matches; `best` is the checkpoint that has won most against the
        first other one.
      games: games of a short match.
      sprt: `ELO0,ELO1`: ends a short match as soon as a sequential test after a batch tells these
        two leads apart (see `train.arena.sprt`); empty to play all games.
      final_games: games against each opponent at the end of the run.
      batch: games played in parallel.
      simulations: simulations a move, without exploration noise.
      opening_plies: random plies at the start of a pair of games.
    """

    every: int = 10
    opponents: tuple[str, ...] = ("random", "greedy")
    anchors: tuple[str, ...] = ("greedy",)
    games: int = 100
    sprt: str = ""
    final_games: int = 400
    batch: int = 100
    simulations: int = 16
    opening_plies: int = 0

    def __post_init__(self) -> None:
        if min(self.games, self.final_games, self.batch) < 2 or (
            self.games % 2 or self.final_games % 2 or self.batch % 2
        ):
            raise ValueError("games, final_games and batch must be even, at least 2")
        if self.every < 0 or self.opening_plies < 0 or self.simulations < 1:
            raise ValueError("every and opening_plies must not be negative, simulations at least 1")
        if self.sprt:
            parse_sprt(self.sprt)


@dataclasses.dataclass(frozen=True)
class CheckpointConfig:
    """Choice of the checkpoints that are saved and kept.

    Attributes:
      every: iterations between checkpoints.
      keep: how many of the newest weights are kept; of what resuming needs the newest two are.
      keep_best: how many more weights are kept, those that won most of a short match.
      keep_every: weights saved in multiples of this iteration are kept for ever; 0 for none.
    """

    every: int = 10
    keep: int = 5
    keep_best: int = 1
    keep_every: int = 0

    def __post_init__(self) -> None:
        if self.every < 1 or self.keep < 1:
            raise ValueError("every and keep must be at least 1")
        if self.keep_best < 0 or self.keep_every < 0:
            raise ValueError("keep_best and keep_every must not be negative")


@dataclasses.dataclass(frozen=True)
class TrackingConfig:
    """Services that mirror a run's metrics.

    Attributes:
      wandb: project in Weights & Biases, which the extra `wandb` installs; empty for none.
    """

    wandb: str = ""


def _read_rules(given: Any) -> Any:
    """Rules for a preset's name; all else is left to the reader of tables."""
    if isinstance(given, int | float | list):
        raise ValueError("rules: must be the name of a preset or a table of rules")
    return rules_lib.named(given) if isinstance(given, str) else given


def _write_rules(rules: Rules) -> str | dict[str, Any]:
    """The name of a preset, or a table of rules: what `_read_rules` takes."""
    name = rules_lib.name_of(rules)
    return name if name in rules_lib.PRESETS else rules.to_dict()


RulesField = Annotated[
    Rules, pydantic.BeforeValidator(_read_rules), pydantic.PlainSerializer(_write_rules)
]
"""Rules; a file, a saved config and the command line may name a preset."""


@dataclasses.dataclass(frozen=True)
class RunConfig:
    """A training run; the defaults are those of `configs/quickstart.toml`.

    Attributes:
      name: directory of the run below the directory of all runs.
      seed: random seed.
      iterations: how often the run plays and learns.
      rules: the rules; where a config is read or built a preset's name stands for its rules.
      heuristics: weights of the players `ethen` and `wjx`.
    """

    # Unknown keys are errors, in the tables as well: they take this over.
    __pydantic_config__: ClassVar = pydantic.ConfigDict(extra="forbid")

    name: str = "quickstart"
    seed: int = 0
    iterations: int = 26
    rules: RulesField = rules_lib.PRESETS["wallzero-4stone"]
    network: NetworkConfig = dataclasses.field(default_factory=NetworkConfig)
    search: SearchConfig = dataclasses.field(default_factory=SearchConfig)
    selfplay: SelfPlayConfig = dataclasses.field(
        default_factory=lambda: SelfPlayConfig(full_search_prob=0.25)
    )
    replay: ReplayConfig = dataclasses.field(default_factory=ReplayConfig)
    learner: LearnerConfig = dataclasses.field(default_factory=LearnerConfig)
    evaluation: EvaluationConfig = dataclasses.field(default_factory=EvaluationConfig)
    checkpoint: CheckpointConfig = dataclasses.field(default_factory=CheckpointConfig)
    tracking: TrackingConfig = dataclasses.field(default_factory=TrackingConfig)
    heuristics: HeuristicsConfig = dataclasses.field(default_factory=HeuristicsConfig)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", rules_lib.named(self.rules))
        is_plain = self.name.isprintable() and Path(self.name).name == self.name
        if not self.name or not is_plain or self.name.startswith("."):
            raise ValueError(f"name {self.name!r} must be a plain directory name")
        if self.iterations < 1:
            raise ValueError("iterations must be at least 1")
        if not 0 <= self.seed < 2**31:
            raise ValueError("seed must be from 0 to 2147483647")
        check_planes(self.network.planes)
        if self.rules.players != 2 and self.evaluation.opponents:
            raise ValueError(
                "evaluation.opponents: matches are between two players; for rules of "
                f"{self.rules.players} players it must be empty"
            )


_ADAPTER = pydantic.TypeAdapter(RunConfig)


def read_config(path: str | Path | None, overrides: Sequence[str] = ()) -> RunConfig:
    """The config of a TOML file, changed by `--some.key value` words.

    Without a file it is `RunConfig()`, the quickstart.

    Raises:
      UsageError: file or key missing, wrong type or value: which, where, what is allowed.
    """
    fields = _default_fields() if path is None else _read_toml(Path(path))
    for key, value in _pair_up(overrides):
        _assign(fields, key, value)
    return config_from_dict(fields, where="config" if path is None else f"config {path}")


def _default_fields() -> dict[str, Any]:
    """The fields that `RunConfig()` sets to other values than the defaults of its tables."""
    return {"selfplay": dataclasses.asdict(RunConfig().selfplay)}


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"config {path}: no such file") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"config {path}: {_one_line(str(error))}") from None


def config_from_dict(fields: Mapping[str, Any], *, where: str) -> RunConfig:
    """A config from nested tables; the message of a `UsageError` begins with `where`."""
    try:
        return _ADAPTER.validate_python(fields)
    except pydantic.ValidationError as error:
        raise UsageError(_one_line(f"{where}: {_describe(error)}")) from None


def config_to_dict(config: RunConfig) -> dict[str, Any]:
    """JSON-ready tables that `config_from_dict` reads back."""
    return _ADAPTER.dump_python(config, mode="json")


def _describe(failed: pydantic.ValidationError) -> str:
    """The first error of a validation, unknown keys before wrong values."""
    errors = failed.errors()
    unknown = [error for error in errors if error["type"] == "unexpected_keyword_argument"]
    if unknown:
        return _describe_unknown_key(_keys_of(unknown[0]))
    first = errors[0]
    place = ".".join(_keys_of(first))
    given = f" (got {first['input']!r})" if not isinstance(first["input"], dict) else ""
    subject = f"{place}: " if place else ""
    return f"{subject}{first['msg'].removeprefix('Value error, ').removeprefix(subject)}{given}"


def _keys_of(error: Any) -> list[str]:
    """Keys that lead to an error."""
    return [str(part) for part in error["loc"]]


def _describe_unknown_key(keys: list[str]) -> str:
    """An unknown key with the keys of its table, and the nearest of them if one is near."""
    *tables, key = keys
    table: Any = RunConfig()
    for name in tables:
        table = getattr(table, name)
    known = [field.name for field in dataclasses.fields(table)]
    near = difflib.get_close_matches(key, known, n=1)
    hint = f"; did you mean {'.'.join([*tables, *near])}? Known" if near else "; known"
    return f"unknown key {'.'.join(keys)}{hint} keys: {', '.join(known)}"


def _pair_up(words: Sequence[str]) -> list[tuple[str, str]]:
    """`--a.b value` and `--a.b=value` as pairs."""
    pairs, rest = [], list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--") or len(word) == 2:
            raise UsageError(f"command line: {word!r} is not an option; write --some.key value")
        key, equals, value = word[2:].partition("=")
        if not equals:
            if not rest:
                raise UsageError(f"command line: --{key} has no value")
            value = rest.pop(0)
        pairs.append((key, value))
    return pairs


def _assign(fields: dict[str, Any], key: str, text: str) -> None:
    *tables, last = key.replace("-", "_").split(".")
    for name in tables:
        inner = fields.setdefault(name, {})
        if not isinstance(inner, dict):
            raise UsageError(f"command line: --{key}: {name} is not a table")
        fields = inner
    fields[last] = _read_value(text)


def _read_value(text: str) -> Any:
    """A TOML value where the text is one, else the text itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _one_line(text: str) -> str:
    return " ".join(text.split())
