"""Proves late positions of recorded games, one game after the other, into a file that grows."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from train.analysis.late_positions import (
    LateGame,
    LatePosition,
    TakeOptions,
    pairs_of_plies,
    plies_left,
    read_late,
    states_of,
    to_line,
)
from train.arena.figures import wilson_interval
from train.data.record_dataset import Examples, RecordedGames, check_rules, make_examples
from train.runtime import files
from train.runtime.display import Table
from train.runtime.errors import UsageError
from train.runtime.host import fetch
from train.runtime.results import Result
from train.solver.boards import board_of
from train.solver.claims import check_provable
from train.solver.late import Refusal, prove
from wallgo_jax.formats.option_names import argument
from wallgo_jax.formats.records import Record
from wallgo_jax.game.rules import Rules


@dataclasses.dataclass(frozen=True)
class Proofs(Result):
    """Proven late positions of games.

    Attributes:
      games: all games of the file, with their proven positions.
      late: the file that grows.
      is_interrupted: a signal ended the work.
    """

    games: Sequence[LateGame]
    late: Path
    is_interrupted: bool = False
    written: Mapping[Path, str] = dataclasses.field(default_factory=dict)

    @property
    def proven(self) -> int:
        """Number of proven positions."""
        return sum(len(game.proven) for game in self.games)

    @property
    def on_stop(self) -> str:
        """Message printed after an interrupt."""
        return f"the games that are proven are kept in {self.late}; the same command goes on"

    def rows(self) -> list[dict[str, Any]]:
        """A dict for each proven position."""
        return [
            {"game": number, "ply": each.ply, "plies_left": plies_left(game, each.ply)}
            | {"value": each.value, "margin": each.margin}
            for number, game in enumerate(self.games)
            for each in game.proven
        ]

    def summary(self) -> dict[str, Any]:
        """What `prove --json` writes: how many were proven, refused and left unclear."""
        return {
            "games": len(self.games),
            "proven": self.proven,
            "refused": sum(len(game.refused) for game in self.games),
            "unclear": sum(len(game.unclear) for game in self.games),
        }

    def table(self) -> Table:
        """Positions tried, and the shares that were proven and refused, by plies left."""
        return proofs_table(self.games)


class ProofOptions(NamedTuple):
    """Options of proving positions of games; see `TakeOptions` for those that are tried."""

    positions: int  # proven positions to stop at, those of the file included
    per_game: int
    max_plies_left: int
    node_limit: int  # most positions that one proof may look at
    seed: int


def prove_games(
    recorded: RecordedGames,
    out: Path,
    options: ProofOptions,
    *,
    on_progress: Callable[[int], None] = lambda proven: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> list[LateGame]:
    """Prove positions of the games that are not in the file yet, and add each game to it.

    Args:
      recorded: finished games of one rule set.
      out: the file; what it holds is kept.
      options: how many, and which.
      on_progress: called with the number of positions proven so far.
      should_stop: asked after each game.

    Returns:
      All games of the file.

    Raises:
      UsageError: the rules cannot be proven, the file cannot be read or written, or games of it
        have other rules or were made with other options.
    """
    rules = recorded.records[0].rules
    check_provable(rules)
    if out.suffix == ".gz":
        raise UsageError(
            f"{out}: lines are added to it, so it cannot be compressed: choose a name without .gz"
        )
    games = read_late(out, is_growing=True)
    for number, game in enumerate(games, start=1):
        _check_same(f"{out}, line {number}", game, rules, options)
    known = {game.record.actions for game in games}
    examples, total = fetch(make_examples(recorded)), sum(len(game.proven) for game in games)
    on_progress(total)
    for index, record in enumerate(recorded.records):
        if total >= options.positions or should_stop():
            break
        if record.actions in known:
            continue
        known.add(record.actions)
        games.append(_prove_game(record, examples, index, options))
        files.append_line(out, to_line(games[-1]))
        total += len(games[-1].proven)
        on_progress(total)
    return games


def _check_same(where: str, game: LateGame, rules: Rules, options: ProofOptions) -> None:
    """Refuse a file whose games have other rules, or whose tables would mix positions that were
    taken in several ways."""
    check_rules(game.record, rules, where)
    recorded = {} if game.options is None else game.options._asdict()
    recorded |= {"node_limit": game.node_limit} if game.node_limit else {}
    for key, old in recorded.items():
        if old != getattr(options, key):
            raise UsageError(
                f"{where}: {key} was {old} when the game was proven and is "
                f"{getattr(options, key)} now; choose another {argument('late')}, or "
                f"{argument(key, old)}"
            )


def _prove_game(record: Record, examples: Examples, index: int, options: ProofOptions) -> LateGame:
    rules, last = record.rules, len(record.actions)
    latest = np.arange(max(len(rules.order), last - options.max_plies_left), last)
    rng = np.random.default_rng([options.seed, *record.actions])
    tried = sorted(rng.choice(latest, min(options.per_game, len(latest)), replace=False))
    start = int(np.searchsorted(examples.game, index))
    proven = []
    refused: dict[Refusal, list[int]] = {reason: [] for reason in Refusal}
    for ply in map(int, tried):
        position = jax.tree.map(lambda x, at=start + ply: x[at], examples.position)
        proof = prove(board_of(position, rules.size), rules, node_limit=options.node_limit)
        if isinstance(proof, Refusal):
            refused[proof].append(ply)
        else:
            proven.append(LatePosition(ply, proof.value, proof.best, proof.margin, proof.margins))
    reasons = tuple(refused[Refusal.NODES]), tuple(refused[Refusal.WAITS])
    taken = TakeOptions(options.per_game, options.max_plies_left, options.seed)
    return LateGame(record, tuple(proven), *reasons, options.node_limit, taken)


def telling_positions(games: Sequence[LateGame]) -> set[tuple[int, int]]:
    """The proven positions in which some legal play loses value, as `spread` takes them."""
    places = [(index, each.ply) for index, game in enumerate(games) for each in game.proven]
    can_err = states_of(games).can_err if places else ()
    return {place for place, can in zip(places, can_err, strict=True) if can}


def proofs_table(games: Sequence[LateGame]) -> Table:
    """Positions tried, and the shares that were proven and refused, by plies left."""
    positions = [(plies_left(game, each.ply), each) for game in games for each in game.proven]
    groups = {
        "proven": [left for left, _ in positions],
        "margin": [left for left, each in positions if each.margin is not None],
        "margins": [left for left, each in positions if each.margins is not None],
        "refused": [plies_left(game, ply) for game in games for ply in game.refused],
        "unclear": [plies_left(game, ply) for game in games for ply in game.unclear],
    }
    rows, every = [], [left for lefts in groups.values() for left in lefts]
    for name, wanted in [*pairs_of_plies(every).items(), ("all", set(every))]:
        counts = {key: sum(left in wanted for left in lefts) for key, lefts in groups.items()}
        tried = counts["proven"] + counts["refused"] + counts["unclear"]
        shares = [f"{count / tried:.1%}" if tried else "-" for count in counts.values()]
        low, high = wilson_interval(counts["proven"] / max(1, tried), tried)
        rows.append([name, f"{tried:,}", *shares])
        rows[-1][2] += f" ({100 * low:.1f}–{100 * high:.1f})"
    caption = (
        "95 % intervals by Wilson; margin: of best play; margins: of all plays; refused: more "
        "nodes needed; unclear: bounds too coarse"
    )
    return Table("late positions proven", ("plies left", "tried", *groups), rows, caption)
