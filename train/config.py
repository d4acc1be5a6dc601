"""What a run is: frozen dataclasses, read from TOML, changed from the command line."""

import dataclasses
import difflib
import tomllib
import types
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pydantic

from train.arena.sprt import parse_sprt
from train.data.selfplay import SelfPlayConfig
from train.learning.learner import LearnerConfig
from train.network import NetworkConfig
from train.players.heuristics import HeuristicsConfig
from train.runtime.errors import UsageError
from train.search.search import SearchConfig
from wallgo_jax.game import rules as rules_lib
from wallgo_jax.game.rules import Rules
from wallgo_jax.planes import check_planes


@dataclasses.dataclass(frozen=True)
class ReplayConfig:
    """How much is remembered, and where.

    Attributes:
      positions: plies kept, rounded up to whole iterations.
      memory: `device`, or `host` where they do not fit there: samples are then drawn by the CPU.
    """

    positions: int = 200_000
    memory: str = "device"

    def __post_init__(self) -> None:
        if self.positions < 1:
            raise ValueError("positions must be at least 1")
        if self.memory not in ("device", "host"):
            raise ValueError(f"memory {self.memory!r} is not one of device, host")


BEST = "best"
"""In place of a player's name: the best checkpoint so far."""


@dataclasses.dataclass(frozen=True)
class EvaluationConfig:
    """Matches of the newest weights against other players.

    Attributes:
      every: iterations between the short matches of a run; 0 for none.
      opponents: names of players (see `train.registry`) that the final matches are against. None for
        a run without matches.
      anchors: names of players that short matches are against; `best` for the checkpoint that has
        won most against the first other one.
      games: games of a short match.
      sprt: ends a short match as soon as it is decided whether the lead is ELO0 or ELO1 points (see
        `train.arena.sprt`), `ELO0,ELO1`; looked at after each `batch` games. Empty for all games.
      final_games: games against each opponent at the end of the run.
      batch: games played at once.
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
    """What is saved.

    Attributes:
      every: iterations between checkpoints.
      keep: checkpoints of the weights that are kept, the newest; what resuming needs is kept twice.
      keep_best: further ones, those that won most of a short match; a checkpoint without a match in
        its iteration is not among them.
      keep_every: the weights of every so-manyth iteration are kept for ever, where they are saved;
        0 for none.
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
class RunConfig:
    """A training run; the defaults are those of `configs/quickstart.toml`.

    Attributes:
      name: directory of the run below the directory of all runs.
      seed: of everything random.
      iterations: the budget: self-play, then learning, this many times.
      rules: name of a preset, or a table of rules.
      heuristics: weights of the players `ethen` and `wjx`.
    """

    name: str = "quickstart"
    seed: int = 0
    iterations: int = 26
    rules: str | Rules = "wallzero-4stone"
    network: NetworkConfig = dataclasses.field(default_factory=NetworkConfig)
    search: SearchConfig = dataclasses.field(default_factory=SearchConfig)
    selfplay: SelfPlayConfig = dataclasses.field(
        default_factory=lambda: SelfPlayConfig(full_search_prob=0.25)
    )
    replay: ReplayConfig = dataclasses.field(default_factory=ReplayConfig)
    learner: LearnerConfig = dataclasses.field(default_factory=LearnerConfig)
    evaluation: EvaluationConfig = dataclasses.field(default_factory=EvaluationConfig)
    checkpoint: CheckpointConfig = dataclasses.field(default_factory=CheckpointConfig)
    heuristics: HeuristicsConfig = dataclasses.field(default_factory=HeuristicsConfig)

    def __post_init__(self) -> None:
        is_plain = self.name.isprintable() and Path(self.name).name == self.name
        if not self.name or not is_plain or self.name.startswith("."):
            raise ValueError(f"name {self.name!r} must be a plain directory name")
        if self.iterations < 1:
            raise ValueError("iterations must be at least 1")
        if not 0 <= self.seed < 2**31:
            raise ValueError("seed must be from 0 to 2147483647")
        check_planes(self.network.planes)
        if rules_lib.named(self.rules).players != 2 and self.evaluation.opponents:
            raise ValueError(
                "evaluation.opponents: matches are between two players; for rules of "
                f"{rules_lib.named(self.rules).players} players it must be empty"
            )

    @property
    def game(self) -> Rules:
        """The rules themselves."""
        return rules_lib.named(self.rules)


_ADAPTER = pydantic.TypeAdapter(RunConfig)


def read_config(path: Path | None, overrides: Sequence[str] = ()) -> RunConfig:
    """The config of a TOML file, changed by `--some.key value` words.

    Without a file it is `RunConfig()`, the quickstart.

    Raises:
      UsageError: file or key missing, wrong type or value: which, where, what is allowed.
    """
    fields = _embedded() if path is None else _read_toml(path)
    for key, value in _pair_up(overrides):
        _assign(fields, key, value)
    return config_from_dict(fields, where="config" if path is None else f"config {path}")


def _embedded() -> dict[str, Any]:
    """What `RunConfig()` sets apart from the defaults of its tables."""
    return {"selfplay": dataclasses.asdict(RunConfig().selfplay)}


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"config {path}: no such file") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"config {path}: {_one_line(str(error))}") from None


def config_from_dict(fields: Mapping[str, Any], *, where: str) -> RunConfig:
    """A config from nested tables; `where` opens the complaint of a `UsageError`."""
    _refuse_unknown_keys(RunConfig, fields, where=where, path="")
    try:
        return _ADAPTER.validate_python(fields)
    except pydantic.ValidationError as error:
        first = next(each for each in error.errors() if not _is_table_for_text(each))
        place = ".".join(str(part) for part in first["loc"] if part not in ("str", "Rules"))
        given = f" (got {first['input']!r})" if not isinstance(first["input"], dict) else ""
        subject = f"{place}: " if place else ""
        message = first["msg"].removeprefix("Value error, ").removeprefix(subject)
        raise UsageError(_one_line(f"{where}: {subject}{message}{given}")) from None


def _is_table_for_text(error: Any) -> bool:
    """Whether a table was refused only because it is no text, where either is allowed."""
    return error["loc"][-1:] == ("str",) and isinstance(error["input"], dict)


def config_to_dict(config: RunConfig) -> dict[str, Any]:
    """JSON-ready tables that `config_from_dict` reads back."""
    return _ADAPTER.dump_python(config, mode="json")


def _refuse_unknown_keys(kind: type, fields: Mapping[str, Any], *, where: str, path: str) -> None:
    types_of = typing.get_type_hints(kind)
    for key, value in fields.items():
        if key not in types_of:
            near = difflib.get_close_matches(key, types_of, n=1)
            hint = f"; did you mean {path}{near[0]}? Known" if near else "; known"
            known = ", ".join(types_of)
            raise UsageError(_one_line(f"{where}: unknown key {path}{key}{hint} keys: {known}"))
        table = _table_type(types_of[key])
        if table is not None and isinstance(value, Mapping):
            _refuse_unknown_keys(table, value, where=where, path=f"{path}{key}.")


def _table_type(hint: Any) -> type | None:
    """The dataclass that a table of this type fills, if any."""
    options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    tables = [option for option in options if isinstance(option, type)]
    return next((option for option in tables if dataclasses.is_dataclass(option)), None)


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
