"""Games between players: matches, tournaments, ratings."""

import contextlib
import dataclasses
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from train.api.common.tables import (
    callback_errors,
    check_whole,
    key_of,
    progress_bar,
    to_dataframe,
)
from train.api.players import HasPlayer, MoveFunction, Player, make_players
from train.arena import tournament as tournament_lib
from train.arena.elo import Ratings
from train.arena.match import MatchOptions, play_meeting
from train.arena.openings import choose_opening
from train.arena.report import match_record
from train.arena.result import MatchResult, wilson_interval
from train.arena.seats.match import SeatOptions
from train.arena.sprt import play_until_decided
from train.arena.tournament import Meeting, Score, Standing, score_of
from train.config.sprt import parse_sprt
from train.metrics.intervals import Interval, intervals_figure
from train.ratings import curves, pool, table_pool
from train.ratings.pool import MAX_BATCH, Entrant, Measured
from train.ratings.results_cache import ResultsCache
from train.ratings.tables import rating_rows, standing_record
from train.runtime.errors import UsageError, usage_errors
from train.runtime.files import names_of_runs
from wallgo_jax.game.rules import Rules

Opponent = str | Player | MoveFunction | HasPlayer
"""A player by name, one that is made, or a function (states [B], key) -> slots int32[B]."""
FORMS = ("round-robin", "double-elimination")
AnyRules = Rules | Mapping[str, Any] | str


class PlayedMatch(MatchResult):
    """A match with its table and its figure."""

    def __repr__(self) -> str:
        low, high = self.interval
        return (
            f"<{self.first} against {self.second}: {self.win_rate:.1%} ({low:.1%} to {high:.1%}), "
            f"{self.wins} won, {self.draws} drawn, {self.losses} lost>"
        )

    def to_dataframe(self) -> Any:
        """A table of pandas with a line for each game."""
        return to_dataframe(
            [
                {
                    "game": number,
                    "red": self.first if is_red else self.second,
                    "outcome": int(outcome),
                    "plies": len(actions),
                    "territory": int(own),
                    "territory_of_second": int(other),
                }
                for number, (is_red, outcome, actions, (own, other)) in enumerate(
                    zip(self.first_is_red, self.outcome, self.games, self.territory, strict=True)
                )
            ]
        )

    def summary(self) -> dict[str, Any]:
        """What `match --json` writes: win rates with intervals, territory, lengths."""
        return match_record(self)

    def figure(self) -> Any:
        """The first player's win rates as a figure of matplotlib: all games, each colour that it
        had."""
        rows = [Interval("all games", self.win_rate, *self.interval)]
        for name, is_red in (("as Red", True), ("as Blue", False)):
            rate, games = self.win_rate_as(red=is_red), int((self.first_is_red == is_red).sum())
            if rate is not None:
                rows.append(Interval(name, rate, *wilson_interval(rate, games)))
        return intervals_figure(
            rows,
            title=f"{self.first} against {self.second}",
            x_label=f"win rate of {self.first} in {len(self.outcome)} games, 95 % intervals",
            middle=0.5,
            is_share=True,
        )


@callback_errors()
def match(
    first: Opponent,
    second: Opponent,
    *,
    games: int = 400,
    rules: AnyRules | None = None,
    batch: int = 400,
    opening_plies: int = 2,
    players_place: bool = False,
    openings: str | Path | None = None,
    seed: int = 0,
    sprt: str = "",
    progress: bool = False,
) -> PlayedMatch:
    """Play a match; the games are those of `python -m train match` with the same options.

    Args:
      first: the player that the result is for.
      second: the player that it meets.
      games: an even number, half of them with each colour.
      rules: by default those that a trained player has learned, else `wallzero-4stone`.
      batch: games in parallel.
      opening_plies: random plies that both games of a pair start with.
      players_place: the players place all stones; the random plies come after.
      openings: file of positions to start from in place of random plies: the ends of recorded
        games, or diagrams.
      seed: random seed.
      sprt: `ELO0,ELO1`: stop once a sequential test has decided.
      progress: show a bar.

    Raises:
      UsageError: a player, the rules or a number is not allowed.
    """
    one, other = made = make_players([first, second], rules)
    _check_two("match", one.rules)
    check_whole("match", games=games, batch=batch, opening_plies=opening_plies)
    with usage_errors():
        test = parse_sprt(str(sprt)) if sprt else None
        opening = choose_opening(
            opening_plies, players_place=players_place, path=openings, rules=one.rules
        )
        how = MatchOptions(games, batch, *opening)
    title = " against ".join(player.name for player in made)
    with progress_bar(title, games, is_shown=progress) as on_progress:
        found = play_until_decided(
            one.registered,
            other.registered,
            one.rules,
            how,
            test,
            key=key_of("match", seed),
            on_progress=on_progress,
        )
    return PlayedMatch(**vars(found))


@dataclasses.dataclass(frozen=True, repr=False)
class TournamentResult:
    """A finished tournament.

    Attributes:
      standings: a row a player, the first place first; points in a round robin, places in an
        elimination.
      meetings: in the order of play.
    """

    standings: tuple[Standing, ...]
    meetings: tuple[Meeting, ...]

    def __repr__(self) -> str:
        table = ", ".join(f"{row.name} {row.points:g}" for row in self.standings)
        return f"<tournament of {len(self.meetings)} meetings: {table}>"

    def to_dataframe(self) -> Any:
        """The standings as a table of pandas."""
        return to_dataframe([standing_record(row) for row in self.standings])

    def figure(self) -> Any:
        """The standings as a figure of matplotlib: shares of the points, with intervals."""
        rows = []
        for row in self.standings:
            games = sum(row.score[:3])
            share = row.points / max(games, 1)
            rows.append(Interval(row.name, share, *wilson_interval(share, games)))
        return intervals_figure(
            rows,
            title="Tournament",
            x_label="share of the points, 95 % intervals",
            middle=0.5,
            is_share=True,
        )


@callback_errors()
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
    _check_list("tournament", players)
    made = make_players(list(players), rules)
    _check_two("tournament", made[0].rules)
    key_of("tournament", seed)
    check_whole("tournament", games=games, opening_plies=opening_plies)
    if form not in FORMS:
        raise UsageError(f"tournament: form {form!r} is not one of {', '.join(FORMS)}")
    by_name = {player.name: player for player in made}
    names = [player.name for player in made]
    pairs, total = games // 2, games * len(made) * (len(made) - 1) // 2
    with usage_errors():
        how = MatchOptions(games=games, batch=min(games, MAX_BATCH), opening_plies=opening_plies)
        tournament_lib.check_field(names, pairs)
    met: list[Meeting] = []
    with progress_bar(form, total, is_shown=progress) as on_progress:
        done = 0

        def play(first: str, second: str, pairs: int, before: int) -> Score:
            nonlocal done
            result = play_meeting(
                by_name[first].registered,
                by_name[second].registered,
                made[0].rules,
                dataclasses.replace(how, games=2 * pairs, batch=min(2 * pairs, MAX_BATCH)),
                seed=seed,
                before=before,
            )
            done += 2 * pairs
            on_progress(done)
            return score_of(result)

        if form == "round-robin":
            met = tournament_lib.round_robin(names, play, pairs=pairs)
            return TournamentResult(tuple(tournament_lib.standings(names, met)), tuple(met))
        found = tournament_lib.double_elimination(names, play, pairs=pairs)
    by_place = {row.name: row for row in tournament_lib.standings(names, found.meetings)}
    return TournamentResult(tuple(by_place[name] for name in found.places), found.meetings)


@dataclasses.dataclass(frozen=True, repr=False)
class RatedPool:
    """Players rated in one pool.

    Attributes:
      measured: with every pairing's games.
    """

    measured: Measured

    def __repr__(self) -> str:
        ratings = ", ".join(f"{row['player']} {row['elo']:.0f}" for row in self.rows)
        return f"<ratings of {self.measured.games} games: {ratings}>"

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

    def figure(self) -> Any:
        """The Elo curves of the runs as a figure of matplotlib; without runs, each rating with its
        95 % interval."""
        anchor = self.ratings.anchor
        title = f"Elo, {anchor} = 0" if anchor else "Elo, mean = 0"
        runs = {row["run"]: Path(row["run"]).name for row in self.rows if row["run"]}
        if runs:
            drawn, others = curves.curves_of(self.rows, runs)
            return curves.curves_figure(
                drawn, others, title=title, x_label="iteration", y_label="Elo"
            )
        rows = [Interval(row["player"], row["elo"], row["low"], row["high"]) for row in self.rows]
        return intervals_figure(rows, title=title, x_label="Elo points, 95 % intervals")


@callback_errors()
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
      games: each time that a pairing is chosen, or a table where the rules have more seats.
      simulations: of the checkpoints; 0 for their raw policy.
      checkpoints: most checkpoints of a run, at least 2; 0 for all.
      zero: name of the player whose rating is 0; by default the first one's that is no run's, else
        the mean is 0.
      opening_plies: as in `match`.
      seed: random seed.
      cache: file that keeps games between calls; None keeps none. Players of a name and weights
        are the same in every process, a function in this one alone.
      progress: show a bar.

    Raises:
      UsageError: a player or a number is not allowed, or the budget is too small.
      KeyboardInterrupt: Ctrl-C came; the games of finished pairings are in the cache's file.
    """
    _check_list("elo", players)
    key_of("elo", seed)
    check_whole("elo", games=games, budget=budget, simulations=simulations, checkpoints=checkpoints)
    if checkpoints < 0 or checkpoints == 1:
        raise UsageError(f"elo: checkpoints ({checkpoints}) must be 0, or at least 2")
    runs = [player for player in players if isinstance(player, Path)]
    singles = [player for player in players if not isinstance(player, Path)]
    given: list[Opponent] = [*singles, *(str(run) for run in runs)]
    made = (
        make_players(given, rules)[: len(singles)]
        if rules is None
        else make_players(singles, rules)
    )
    played = make_players(given[:1], rules)[0].rules if not made else made[0].rules
    is_pairs = played.players == 2
    with usage_errors():
        if is_pairs:
            MatchOptions(games=games, batch=games, opening_plies=opening_plies)
        else:
            SeatOptions(games=games, batch=games, opening_plies=opening_plies)
    entrants = [
        entrant
        for run, name in zip(runs, names_of_runs(runs), strict=True)
        for entrant in pool.entrants_of_run(
            run, played, name=name, simulations=simulations, count=checkpoints
        )
    ]
    own = [Entrant(player.name, player.identity, player.registered) for player in made]
    names = [entrant.name for entrant in (*own, *entrants)]
    if zero is not None and zero not in names:
        raise UsageError(f"elo: zero {zero!r} is not one of {', '.join(names)}")
    anchor = zero if zero is not None else (own[0].name if own else None)
    with contextlib.ExitStack() as stack:
        if cache is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            cache = Path(folder) / pool.CACHE_FILE
        settings = pool.settings_of(played, opening_plies=opening_plies, seed=seed)
        on_progress = stack.enter_context(progress_bar("elo", budget, is_shown=progress))
        how: dict[str, Any] = {"games": games, "opening_plies": opening_plies, "seed": seed}
        asked: dict[str, Any] = {
            "games": games,
            "budget": budget,
            "anchor": anchor,
            "on_progress": lambda found: on_progress(found.games),
        }
        entrants += own
        if is_pairs:
            results, play = ResultsCache(Path(cache), settings), pool.make_play(played, **how)
            measured = pool.measure(entrants, results, play, **asked)
        else:
            kept, seat = table_pool.TableCache(Path(cache), settings), table_pool.make_play
            measured = table_pool.measure(entrants, kept, seat(played, **how), played, **asked)
    if measured.is_interrupted:
        raise KeyboardInterrupt
    return RatedPool(measured)


def _check_two(what: str, rules: Rules) -> None:
    if rules.players != 2:
        raise UsageError(
            f"{what}: the rules are for {rules.players} players, a {what} is for 2; "
            f"train.seated_{what} has tables of more"
        )


def _check_list(what: str, players: Any) -> None:
    if isinstance(players, str) or not isinstance(players, Sequence):
        raise UsageError(f"{what}: players must be a list, not {players!r}")
    if len(players) < (1 if what == "elo" else 2):
        raise UsageError(f"{what}: {len(players)} players are too few")
