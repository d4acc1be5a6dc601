"""The scale of experiments: how many games, positions and seeds each takes, read from TOML.

The values stand in configs/study/ alone: a file's tables change keys of those of `cpu.toml`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import pydantic
from pydantic import AfterValidator, Field

from train.config.rule_sets import read_rule_sets
from train.runtime.errors import UsageError, check_two_players, distinct, usage_errors
from train.runtime.fields import Real, Whole
from train.runtime.files import read_toml
from wallgo_jax.formats.option_names import argument
from wallgo_jax.game.rules import Rules, named

_Table = TypeVar("_Table", bound="Scale")
_SET = ("name", "seed", "evaluation", "checkpoint", "tracking", "init_from")


def _refuse_keys(config: Mapping[str, Any], *keys: str) -> None:
    """Refuse keys of a run's config, such as `network.blocks`, that an experiment sets."""
    for key in keys:
        table, _, name = key.rpartition(".")
        fields = config.get(table) if table else config
        if isinstance(fields, Mapping) and name in fields:
            raise ValueError(f"config: {key} is set by the experiment: leave it out")


def _free_keys(config: dict[str, Any]) -> dict[str, Any]:
    _refuse_keys(config, *_SET)
    return config


def _rising(values: tuple[int, ...]) -> tuple[int, ...]:
    if list(values) != sorted(set(values)) or len(values) < 2:
        raise ValueError("must be two or more rising numbers")
    return values


def _preset_for_two(name: str) -> str:
    if name:
        check_two_players(named(name), name)
    return name


Count = Annotated[Whole, Field(ge=1)]
Pairs = Annotated[Whole, Field(ge=2, multiple_of=2)]
Plies = Annotated[Whole, Field(ge=0)]
Keys = Annotated[dict[str, Any], AfterValidator(_free_keys)]
Games = Annotated[Whole, Field(ge=2)]
Name = Annotated[str, Field(min_length=1)]
Preset = Annotated[str, AfterValidator(lambda name: named(name) and name)]
PresetForTwo = Annotated[str, AfterValidator(_preset_for_two)]
Players = Annotated[tuple[Name, ...], Field(min_length=1)]
Names = Annotated[tuple[Name, ...], AfterValidator(distinct)]
SomeNames = Annotated[Names, Field(min_length=1)]
SeveralNames = Annotated[Names, Field(min_length=2)]
Counts = Annotated[tuple[Count, ...], Field(min_length=1)]


class Scale(pydantic.BaseModel):
    """A table of a scale."""

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")


class TrainingScale(Scale):
    """Trainings of one config's variants, and matches among them."""

    SETS: ClassVar[tuple[str, ...]] = ()
    """Keys of the config that the experiment sets."""

    config: Keys  # keys of the run's config that differ from the quickstart's, as tables
    seeds: Count  # trainings of each variant
    games: Pairs  # of each two players of a seed
    simulations: Count  # of a move in these games
    opening_plies: Plies  # random plies that games start with

    def model_post_init(self, context: Any) -> None:
        _refuse_keys(self.config, *self.SETS)


class FeaturesScale(TrainingScale):
    """Plane sets, trained with equal games and settings."""

    SETS = ("network.planes", "network.blocks")
    planes: SeveralNames  # plane sets
    blocks: SomeNames  # block strings, each with every plane set


class BlocksScale(TrainingScale):
    """Block strings, trained on equal positions."""

    SETS = ("network.blocks",)
    blocks: SeveralNames  # block strings


class SizeScale(Scale):
    """The size of the game; games of networks against themselves stand for strong play."""

    rules: tuple[Preset, ...]  # presets
    random_games: Games  # of each
    players: Players  # networks, each of the rules that it has learned
    simulations: Count  # of their moves
    strong_games: Games  # of each


class BalanceScale(Scale):
    """Balance and openings: games of networks against themselves."""

    players: Players  # each for the rules that it has learned
    simulations: Counts  # numbers of simulations a move
    games: Games  # of each player at each number
    opening_depth: Games  # plies that the table of openings goes down to


class MobilityScale(Scale):
    """Mobility, moves that give up territory for reach, implicit passes."""

    player: Name  # a network; its games against itself are looked at
    simulations: Count  # of its moves in those games
    games: Games  # of those
    searched_games: Games  # games whose moves are searched again
    search_simulations: Count  # of those searches


class FootingScale(Scale):
    """Search budgets: a player with fewer simulations, a player that considers fewer actions."""

    player: Name  # a network
    doublings: Annotated[Counts, AfterValidator(_rising)]  # simulations, matched with the next
    doubling_games: Pairs  # of each of these matches
    considering: tuple[Name, ...]  # players without a budget that are matched with themselves
    considered: tuple[Plies, ...]  # actions that they consider; 0 for what they choose
    considered_simulations: Counts  # of both sides
    most_considered: Count  # actions that the other side considers
    considered_games: Pairs  # of each of these matches
    opening_plies: Plies  # random plies that games start with


FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.+-]*$")]


class TransferCase(Scale):
    """A training that begins with the weights of another one; an entry of a list, so what it leaves
    out is said here."""

    name: FileName
    source: str = ""  # a network; empty to train one, with each seed
    source_config: Keys = Field(default_factory=dict)  # changes of that training
    config: Keys = Field(default_factory=dict)  # changes of the training proper
    freeze: tuple[str, ...] = ("trunk=5",)  # of a third training, as `learner.freeze`


class TransferScale(TrainingScale):
    """Warm starts against training from nothing. The network is that of a source that is named."""

    cases: Annotated[tuple[TransferCase, ...], Field(min_length=1), AfterValidator(distinct)]
    opponent: Name  # a player that needs no weights, against which the curves are drawn
    points: Games  # of a curve, the last one included
    curve_games: Pairs  # of each of its matches


class MixedScale(TrainingScale):
    """One network for several rule sets, and a specialist of each; `games` are those of each match.

    The mixed network is trained as long as one specialist, and as long as all of them together.
    """

    SETS = ("rules", "iterations", "grid")
    rules: Annotated[tuple[Any, ...], Field(min_length=2)]  # as a run's key `rules` lists them
    minutes: Annotated[Real, Field(gt=0, allow_inf_nan=False)]  # of each specialist
    unseen: dict[str, Any]  # a table of rules that no training has
    opponents: SomeNames  # players that need no weights, met with the unseen rules

    def model_post_init(self, context: Any) -> None:
        super().model_post_init(context)
        rule_sets, unseen = read_rule_sets(self.rules), Rules.from_dict(self.unseen)
        check_two_players(rule_sets[0].rules, "rules")
        check_two_players(unseen, "unseen")
        if unseen in [each.rules for each in rule_sets]:
            raise ValueError("unseen must be none of rules")


class PpoVariant(Scale):
    """A training without search; an entry of a list, so what it leaves out is said here."""

    name: FileName
    config: Keys = Field(default_factory=dict)  # changes of the config of all variants
    pool_every: Plies = 0  # iterations from one policy of the pool to the next; 0 for no pool


class PpoScale(TrainingScale):
    """Trainings without search against those of the config."""

    variants: Annotated[tuple[PpoVariant, ...], Field(min_length=1), AfterValidator(distinct)]
    changes: Keys  # of the config, in all variants
    iterations: Count  # of each variant, for about the minutes of the config's
    epochs: Count  # steps learn from each ply so many times
    clip: Annotated[Real, Field(gt=0, lt=1)]  # of the ratio of chances, from 1
    entropy: Annotated[Real, Field(ge=0, allow_inf_nan=False)]  # weight of its bonus
    trace: Annotated[Real, Field(ge=0, le=1)]  # λ of the returns

    def model_post_init(self, context: Any) -> None:
        super().model_post_init(context)
        for changes in (self.changes, *(each.config for each in self.variants)):
            _refuse_keys(
                changes, *(f"learner.{key}" for key in ("symmetry", "value_mix", "weights"))
            )


class SetupsScale(Scale):
    """Values of setups by networks, games from the best ones, and a book of balanced ones.

    `beam` and `frontier` count choices of each turn of placements, 0 for all: those that are kept,
    in every turn but the last, and those whose setups are searched again.
    """

    players: SomeNames  # networks
    rules: PresetForTwo  # preset; empty for what they have learned
    beam: tuple[Plies, ...]
    frontier: tuple[Plies, ...]
    rounds: Count  # of searches, at most
    simulations: Count  # of a search
    lines: Count  # first placements whose lines are played, the best for Red first
    games: Games  # from each of these lines
    book: Count  # setups of the book
    book_games: Games  # from each of them
    game_simulations: Count  # of a move in games
    temperature: Annotated[Real, Field(ge=0, allow_inf_nan=False)]  # of a move in games


class ExactScale(Scale):
    """Exact values of small boards."""

    boards: Annotated[tuple[dict[str, Any], ...], Field(min_length=1)]  # tables of rules
    node_limit: Count  # of one question to alpha-beta search
    asked: Annotated[tuple[Literal["draw", "win"], ...], AfterValidator(distinct)]  # of larger ones
    minutes: Annotated[Real, Field(gt=0, allow_inf_nan=False)]  # of one question to proof numbers
    entries: Count  # of their table, at 24 bytes each


class SupervisedScale(Scale):
    """Networks trained on the solver's answers; their config is that of the first player."""

    players: SomeNames  # networks of self-play, of equal rules
    learned: Annotated[tuple[Count, ...], AfterValidator(distinct)]  # positions of each network
    steps: Count  # of learning
    held_out: Count  # positions that all are asked about
    min_walls: Plies  # fewest walls of a position
    simulations: Counts  # of searches
    kinds: Annotated[tuple[Literal["gumbel", "puct"], ...], Field(min_length=1)]  # of searches


class Scales(Scale):
    """The scale of each experiment."""

    seed: Annotated[Whole, Field(ge=0, lt=2**31)]  # decides openings and noise
    features: FeaturesScale
    blocks: BlocksScale
    size: SizeScale
    balance: BalanceScale
    mobility: MobilityScale
    footing: FootingScale
    transfer: TransferScale
    mixed: MixedScale
    ppo: PpoScale
    setups: SetupsScale
    exact: ExactScale
    supervised: SupervisedScale


def validated(kind: type[_Table], fields: Mapping[str, Any], *, where: str) -> _Table:
    """A table of a kind; the message of a `UsageError` begins with `where`.

    Raises:
      UsageError: a key or a value is not allowed.
    """
    with usage_errors(where):
        return kind.model_validate(fields)


def read_scales(source: Path | Mapping[str, Any] | None = None) -> Scales:
    """The scales of a TOML file or of tables; keys that they leave out are those of a CPU.

    Raises:
      UsageError: the file cannot be read, or a key or value is not allowed.
    """
    is_file = isinstance(source, Path)
    shipped = Path(__file__).with_name("cpu.toml")  # in an installed package, else of a clone
    if not shipped.exists():
        shipped = Path(__file__).parents[3] / "configs/study/cpu.toml"
    fields, given = read_toml(shipped), read_toml(source) if is_file else source or {}
    for key, value in given.items():
        is_table = isinstance(value, Mapping) and isinstance(fields.get(key), dict)
        fields[key] = {**fields[key], **value} if is_table else value
    return validated(Scales, fields, where=str(source) if is_file else "scale")


def with_players(scales: Scales, name: str, players: tuple[str, ...]) -> Scales:
    """The scales with other networks for an experiment.

    Raises:
      UsageError: the experiment takes none, or not these.
    """
    table = getattr(scales, name)
    if "players" not in type(table).model_fields:
        raise UsageError(f"experiment: {argument('players')} is not for {name}")
    changed = validated(type(table), dict(table) | {"players": players}, where=name)
    return scales.model_copy(update={name: changed})
