"""The config of a run: frozen dataclasses, read from TOML, changed from the command line.

Importing this loads no JAX, so a config is read, checked and printed at once.
"""

import dataclasses
import difflib
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pydantic

from train.arena.config import parse_sprt
from train.data.config import ReplayConfig, SelfPlayConfig
from train.functions import refuse_functions
from train.learning.config import LearnerConfig
from train.network.config import NetworkConfig
from train.players.config import HeuristicsConfig
from train.runtime.errors import UsageError
from train.search.config import SearchConfig
from wallgo_jax.formats.rules_text import read_rules
from wallgo_jax.game import rules as rules_lib
from wallgo_jax.game.rules import Rules
from wallgo_jax.planes import check_planes

BEST = "best"
"""Stands for the best checkpoint so far where a player is named."""
SHIPPED = "pretrained:wallzero-4stone"
"""The player that commands take where none is named."""
CONFIG_FILE = "config.json"
"""File of a run directory that holds the run's config."""
MAX_WHOLE = 10**15
"""The largest whole number of a config; sizes of arrays made from it can still be computed."""


@dataclasses.dataclass(frozen=True)
class EvaluationConfig:
    """Matches of the newest weights against other players.

    Attributes:
      every: iterations between the short matches of a run; 0 for none [iterations].
      opponents: players of the final matches (`docs/players.md`); empty for a run without matches
        [list of players].
      anchors: players of the short matches; `best` is the strongest checkpoint so far [list of
        players]. The strongest is the one that has won most against the first other anchor.
      games: games of a short match, even [games].
      sprt: `ELO0,ELO1`: ends a short match once a sequential test has decided; empty to play all
        games [Elo points]. The test is asked after each batch (see `train.arena.sprt`).
      final_games: games against each opponent at the end of the run, even [games].
      batch: games played in parallel, even [games].
      simulations: search budget of a move in matches, without exploration noise [simulations].
      opening_plies: random plies that both games of a pair start with [plies].
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
        for key in ("games", "final_games", "batch"):
            if getattr(self, key) < 2 or getattr(self, key) % 2:
                raise ValueError(f"{key} must be even, at least 2")
        for key, least in (("every", 0), ("opening_plies", 0), ("simulations", 1)):
            if getattr(self, key) < least:
                raise ValueError(f"{key} must be at least {least}")
        if self.sprt:
            parse_sprt(self.sprt)


@dataclasses.dataclass(frozen=True)
class CheckpointConfig:
    """Choice of the checkpoints that are saved and kept.

    Attributes:
      every: iterations between checkpoints [iterations].
      keep: newest weights that are kept [checkpoints]. What resuming needs is kept for the newest
        two.
      keep_best: further weights kept, those with the best short matches [checkpoints].
      keep_every: weights of multiples of this are kept for ever; 0 for none [iterations].
    """

    every: int = 10
    keep: int = 5
    keep_best: int = 1
    keep_every: int = 0

    def __post_init__(self) -> None:
        for key, least in (("every", 1), ("keep", 1), ("keep_best", 0), ("keep_every", 0)):
            if getattr(self, key) < least:
                raise ValueError(f"{key} must be at least {least}")


@dataclasses.dataclass(frozen=True)
class TrackingConfig:
    """Services that mirror a run's metrics.

    Attributes:
      wandb: project in Weights & Biases, which the extra `wandb` installs; empty for none
        [project].
    """

    wandb: str = ""


def _read_rules(given: Any) -> Any:
    """Rules for a preset's name, JSON or a file; all else is left to the reader of tables."""
    if isinstance(given, int | float | list):
        raise ValueError("rules: must be the name of a preset or a table of rules")
    return read_rules(given) if isinstance(given, str) else given


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
      seed: random seed [0 to 2³¹ − 1].
      iterations: length of the run [iterations]. An iteration plays, adds to the replay and learns.
      rules: a preset's name, or a table of rules (`wallgo_jax/RULES.md`) [text or table]. The
        command line also takes a JSON object or a file.
      start_weights: a trained player whose weights the run begins with; empty for random weights
        [player]. It must have the same rules and network; optimizer, replay and schedules begin
        anew.
    """

    # Unknown keys, NaN and infinities are errors, in the tables as well: they take this over.
    __pydantic_config__: ClassVar = pydantic.ConfigDict(extra="forbid", allow_inf_nan=False)

    name: str = "quickstart"
    seed: int = 0
    iterations: int = 26
    rules: RulesField = rules_lib.PRESETS["wallzero-4stone"]
    start_weights: str = ""
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
        try:
            check_planes(self.network.planes)
        except ValueError as error:
            raise ValueError(f"network.{error}") from None
        if self.selfplay.opening_plies >= self.rules.max_plies:
            raise ValueError(
                f"selfplay.opening_plies ({self.selfplay.opening_plies}) must be below "
                f"{self.rules.max_plies}, the most plies of a game by these rules"
            )
        if self.learner.value_mix > 0 and self.network.value == "wdl" and self.rules.players != 2:
            raise ValueError(
                "learner.value_mix must be 0 for network.value 'wdl' and rules of "
                f"{self.rules.players} players: a search knows the value of one of them"
            )
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
    _assign_all(fields, overrides)
    where = "config" if path is None else f"config {path}"
    refuse_functions({}, fields, where=where)
    return config_from_dict(fields, where=where)


def read_saved_config(directory: Path) -> RunConfig:
    """The config that a run directory holds.

    Raises:
      UsageError: the directory holds none, or it cannot be read.
    """
    path = directory / CONFIG_FILE
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        reason = "no such directory"
        if directory.exists():
            reason = f"it has no {CONFIG_FILE}" if directory.is_dir() else "it is a file"
        raise UsageError(f"{directory}: not a run directory: {reason}") from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(_one_line(f"{path}: not JSON: {error}")) from None
    return config_from_dict(fields, where=str(path))


def change_config(config: RunConfig, overrides: Sequence[str]) -> RunConfig:
    """The config changed by `--some.key value` words.

    Raises:
      UsageError: a key or a value that is not allowed: which, and what is.
    """
    fields = config_to_dict(config)
    _assign_all(fields, overrides)
    refuse_functions(config_to_dict(config), fields, where="command line")
    return config_from_dict(fields, where="command line")


def _default_fields() -> dict[str, Any]:
    """The fields that `RunConfig()` sets to other values than the defaults of its tables."""
    return {"selfplay": dataclasses.asdict(RunConfig().selfplay)}


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"config {path}: no such file") from None
    except IsADirectoryError:
        is_run = (path / CONFIG_FILE).is_file()
        hint = f"; --resume {path} goes on with the run in it" if is_run else ""
        raise UsageError(f"config {path}: is a directory, not a TOML file{hint}") from None
    except OSError as error:
        raise UsageError(f"config {path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"config {path}: not a text file (UTF-8)") from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"config {path}: not TOML: {_one_line(str(error))}") from None


def config_from_dict(fields: Mapping[str, Any], *, where: str) -> RunConfig:
    """A config from nested tables; the message of a `UsageError` begins with `where`."""
    complaint = _wrong_number(fields, RunConfig())
    if complaint:
        raise UsageError(_one_line(f"{where}: {complaint}"))
    try:
        return _ADAPTER.validate_python(fields)
    except pydantic.ValidationError as error:
        raise UsageError(_one_line(f"{where}: {_describe(error)}")) from None


def _wrong_number(fields: Any, table: Any, path: str = "") -> str | None:
    """What is wrong with the first number that the validation would let pass.

    It takes `true` for 1, and whole numbers that no array can be built from.
    """
    for key, given in fields.items() if isinstance(fields, dict) else ():
        name, usual = f"{path}{key}", getattr(table, key, None)
        if dataclasses.is_dataclass(usual):
            complaint = _wrong_number(given, usual, f"{name}.")
            if complaint:
                return complaint
        is_number = usual is None or type(usual) in (int, float)
        if is_number and hasattr(table, key) and isinstance(given, bool):
            return f"{name}: Input should be a number (got {str(given).lower()})"
        if type(usual) is int and isinstance(given, int | float) and given > MAX_WHOLE:
            return f"{name} must be at most {MAX_WHOLE} (got {given})"
    return None


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
    keys, given, message = _keys_of(first), first["input"], first["msg"]
    message, subject = message.removeprefix("Value error, "), ".".join(keys)
    if first["type"] != "value_error" or not isinstance(given, dict):
        # Rules that are text are named by their reader.
        is_told = isinstance(given, dict) or repr(given) in message
        is_told |= keys == ["rules"] and isinstance(given, str)
        told = "" if is_told else f" (got {given!r})"
        opening = f"{subject}: " if subject else ""
        return f"{opening}{message.removeprefix(f'{subject}: ')}{told}"
    # A table's own check opens with the key that it is about.
    key = re.split(r"\W", message, maxsplit=1)[0]
    if key not in _fields_of(keys):
        is_whole = not subject or message.startswith(f"{subject}: ")
        return message if is_whole else f"{subject}: {message}"
    is_told = key not in given or isinstance(given[key], dict)
    is_told |= bool(re.match(rf"{key}(:| is)? {re.escape(repr(given.get(key)))}", message))
    return ".".join([*keys, message]) + ("" if is_told else f" (got {given[key]!r})")


def _fields_of(tables: Sequence[str]) -> list[str]:
    """The keys of a table of the config; none where the keys lead to no table."""
    table: Any = RunConfig()
    for name in tables:
        table = getattr(table, name, None)
    return [field.name for field in dataclasses.fields(table)] if table is not None else []


def _keys_of(error: Any) -> list[str]:
    """Keys that lead to an error."""
    return [str(part) for part in error["loc"]]


def _describe_unknown_key(keys: list[str]) -> str:
    """An unknown key with the keys of its table, and the nearest of them if one is near."""
    *tables, key = keys
    known = _fields_of(tables)
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


def _assign_all(fields: dict[str, Any], overrides: Sequence[str]) -> None:
    for key, value in _pair_up(overrides):
        _assign(fields, key, value)


def _assign(fields: dict[str, Any], key: str, text: str) -> None:
    *tables, last = key.replace("-", "_").split(".")
    if tables == ["rules"] and isinstance(fields.get("rules", RunConfig.rules), str | Rules):
        fields["rules"] = _table_of_rules(fields.get("rules", RunConfig.rules))
    for name in tables:
        inner = fields.setdefault(name, {})
        if not isinstance(inner, dict):
            raise UsageError(f"command line: --{key}: {name} is not a table")
        fields = inner
    fields[last] = _read_value(text)


def _table_of_rules(given: str | Rules) -> dict[str, Any]:
    """The rules as a table, of which one key is to be changed."""
    try:
        return (read_rules(given) if isinstance(given, str) else given).to_dict()
    except ValueError as error:
        raise UsageError(f"config: {error}") from None


def _read_value(text: str) -> Any:
    """A TOML value where the text is one, else the text itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _one_line(text: str) -> str:
    return " ".join(text.split())
