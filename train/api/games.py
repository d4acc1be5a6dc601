"""Games between players: matches, tournaments, ratings."""

import contextlib
import dataclasses
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import jax

from train.api.players import Act, Player, make_players
from train.api.tables import MAX_SEED, key_of, progress_bar, to_dataframe
from train.arena import tournament as tournament_lib
from train.arena.config import parse_sprt
from train.arena.elo import Ratings, pair_counts
from train.arena.match import MatchOptions, check_rules, play_match, play_rounds
from train.arena.result import MatchResult
from train.arena.sprt import UNDECIDED, decide
from train.arena.tournament import Meeting, Score, Standing
from train.players.config import HeuristicsConfig
from train.ratings import pool
from train.ratings.pool import MAX_BATCH, Entrant, Measured
from train.ratings.results_cache import ResultsCache
from train.ratings.tables import rating_rows, standing_record
from train.runtime.errors import UsageError
from wallgo_jax.game.rules import Rules

Opponent = str | Player | Act
"""A player by name, one that is made, or a function (states [B], key) -> slots int32[B]."""
AnyRules = Rules | Mapping[str, Any] | str


def match(
    first: Opponent,
    second: Opponent,
    *,
    games: int = 400,
    rules: AnyRules | None = None,
    batch: int = 400,
    opening_plies: int = 2,
    seed: int = 0,
    sprt: str = "",
    progress: bool = False,
) -> MatchResult:
    """Play a match; the games are those of `python -m train match` with the same options.

    Args:
      first: the player that the result is for.
      second: the player that it meets.
      games: an even number, half of them with each colour.
      rules: by default those that a trained player has learned, else `wallzero-4stone`.
      batch: games in parallel.
      opening_plies: random plies that both games of a pair start with.
      seed: random seed.
      sprt: `ELO0,ELO1`: stop once a sequential test has decided.
      progress: show a bar.

    Raises:
      UsageError: a player, the rules or a number is not allowed.
    """
    one, other = made = make_players([first, second], rules)
    with _usage_errors():
        check_rules(one.rules)
        test = parse_sprt(sprt) if sprt else None
        how = MatchOptions(
            games=games,
            batch=batch,
            opening_plies=opening_plies,
            round_games=batch if test else games,
        )
    title = " against ".join(player.name for player in made)
    with progress_bar(title, games, is_shown=progress) as on_progress:
        return play_rounds(
            one.registered,
            other.registered,
            one.rules,
            how,
            key=key_of("match", seed),
            is_decided=lambda found: (
                test is not None and decide(test, pair_counts(found.outcome)).decision != UNDECIDED
            ),
            on_progress=on_progress,
        )


@dataclasses.dataclass(frozen=True)
class TournamentResult:
    """A finished tournament.

    Attributes:
      standings: a row a player, the first place first; points in a round robin, places in an
        elimination.
      meetings: in the order of play.
    """

    standings: tuple[Standing, ...]
    meetings: tuple[Meeting, ...]

    def to_dataframe(self) -> Any:
        """The standings as a table of pandas."""
        return to_dataframe([standing_record(row) for row in self.standings])


def tournament(
    players: Sequence[Opponent],
    *,
    rules: AnyRules | None = None,
    form: Literal["round-robin", "double-elimination"] = "round-robin",
    games: int = 2,
    opening_plies: int = 2,
    seed: int = 0,
    progress: bool = False,
) -> TournamentResult:
    """Play a tournament; the games are those of `python -m train tournament`.

    Args:
      players: in an elimination the strongest first.
      rules: as in `match`.
      form: each player meets each, or is out after two losses.
      games: of a meeting, an even number.
      opening_plies: as in `match`.
      seed: random seed.
      progress: show a bar.

    Raises:
      UsageError: as `match`, or a player stands there twice.
    """
    made = make_players(list(players), rules)
    key = key_of("tournament", seed)
    by_name = {player.name: player for player in made}
    names = [player.name for player in made]
    pairs, total = games // 2, games * len(made) * (len(made) - 1) // 2
    with _usage_errors():
        how = MatchOptions(games=games, batch=min(games, MAX_BATCH), opening_plies=opening_plies)
        tournament_lib.check_field(names, pairs)
        check_rules(made[0].rules)
    met: list[Meeting] = []
    with progress_bar(form, total, is_shown=progress) as on_progress:
        done = 0

        def play(first: str, second: str, pairs: int, before: int) -> Score:
            nonlocal done
            who = zlib.crc32("\n".join(sorted((first, second))).encode()) % MAX_SEED
            result = play_match(
                by_name[first].registered,
                by_name[second].registered,
                made[0].rules,
                dataclasses.replace(how, games=2 * pairs, batch=min(2 * pairs, MAX_BATCH)),
                key=jax.random.fold_in(jax.random.fold_in(key, who), before),
            )
            done += 2 * pairs
            on_progress(done)
            own, other = result.territory.sum(axis=0)
            return Score(result.wins, result.draws, result.losses, int(own), int(other))

        if form == "round-robin":
            met = tournament_lib.round_robin(names, play, pairs=pairs)
            return TournamentResult(tuple(tournament_lib.standings(names, met)), tuple(met))
        found = tournament_lib.double_elimination(names, play, pairs=pairs)
    by_place = {row.name: row for row in tournament_lib.standings(names, found.meetings)}
    return TournamentResult(tuple(by_place[name] for name in found.places), found.meetings)


@dataclasses.dataclass(frozen=True)
class RatedPool:
    """Players rated in one pool.

    Attributes:
      measured: with every pairing's games.
    """

    measured: Measured

    @property
    def ratings(self) -> Ratings:
        """Elo points with 95 % intervals and their covariance."""
        return self.measured.ratings

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A dict for each player, the strongest first."""
        return rating_rows(self.measured)

    def to_dataframe(self) -> Any:
        """`rows` as a table of pandas."""
        return to_dataframe(self.rows)


def elo(
    players: Sequence[Opponent | Path],
    *,
    rules: AnyRules | None = None,
    budget: int = 4000,
    games: int = 40,
    simulations: int = 64,
    checkpoints: int = 0,
    zero: str | None = None,
    opening_plies: int = 2,
    seed: int = 0,
    cache: str | Path | None = None,
    progress: bool = False,
) -> RatedPool:
    """Rate players in one pool, as `python -m train elo` does.

    Args:
      players: of the pool, the weakest first; a `Path` is a run's directory and stands for its
        checkpoints.
      rules: as in `match`.
      budget: games in all, those of the cache included.
      games: each time that a pairing is chosen.
      simulations: of the checkpoints; 0 for their raw policy.
      checkpoints: most checkpoints of a run; 0 for all.
      zero: name of the player whose rating is 0; by default the first one's that is no run's, else
        the mean is 0.
      opening_plies: as in `match`.
      seed: random seed.
      cache: file that keeps games between calls; None keeps none.
      progress: show a bar.

    Raises:
      UsageError: a player or a number is not allowed, or the budget is too small.
    """
    key_of("elo", seed)
    runs = [player for player in players if isinstance(player, Path)]
    singles = [player for player in players if not isinstance(player, Path)]
    given: list[Opponent] = [*singles, *(str(run) for run in runs)]
    made = (
        make_players(given, rules)[: len(singles)]
        if rules is None
        else make_players(singles, rules)
    )
    played = make_players(given[:1], rules)[0].rules if not made else made[0].rules
    with _usage_errors():
        MatchOptions(games=games, batch=games, opening_plies=opening_plies)
        check_rules(played)
    entrants = [
        entrant
        for run in runs
        for entrant in pool.entrants_of_run(
            run, played, name=run.name, simulations=simulations, count=checkpoints
        )
    ]
    own = [_entrant(player, given) for player, given in zip(made, singles, strict=True)]
    anchor = zero if zero is not None else (own[0].name if own else None)
    with contextlib.ExitStack() as stack:
        if cache is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            cache = Path(folder) / pool.CACHE_FILE
        settings = pool.settings_of(played, opening_plies=opening_plies, seed=seed)
        on_progress = stack.enter_context(progress_bar("elo", budget, is_shown=progress))
        measured = pool.measure(
            [*entrants, *own],
            ResultsCache(Path(cache), settings),
            pool.make_play(played, games=games, opening_plies=opening_plies, seed=seed),
            games=games,
            budget=budget,
            anchor=anchor,
            on_progress=lambda found: on_progress(found.games),
        )
    return RatedPool(measured)


def _entrant(player: Player, given: Opponent) -> Entrant:
    """A player of a pool; one that has no name in the registry is itself and nobody else."""
    if isinstance(given, str):
        (found,) = pool.entrants_of_names(
            [given],
            player.rules,
            heuristics=HeuristicsConfig(),
            make_player=lambda name, rules: player.registered,
        )
        return found
    return Entrant(player.name, f"python:{player.name}:{id(player.registered)}", player.registered)


@contextlib.contextmanager
def _usage_errors() -> Iterator[None]:
    """Turn the errors of options into UsageErrors of the same line."""
    try:
        yield
    except ValueError as error:
        raise error if isinstance(error, UsageError) else UsageError(str(error)) from None
