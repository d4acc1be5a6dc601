"""Players rated in one pool."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from train.api.arguments import (
    AnyRules,
    File,
    Flag,
    Games,
    MoveSeconds,
    Progress,
    Rated,
    ReadFile,
    arg,
)
from train.api.signatures import verb, without
from train.runtime.errors import UsageError
from train.runtime.fields import AtLeastOne, Count, Real, Seed
from train.search.config import Simulations
from wallgo_jax.formats.option_names import argument

if TYPE_CHECKING:
    from train.ratings.pool import Entrant
    from train.ratings.rated import RatedPool

MEAN = ""
"""The `zero` of a pool whose mean rating is 0."""


def _not_one(count: int) -> int:
    if count == 1:
        raise PydanticCustomError("not_one", "Input should be 0, or 2 or more")
    return count


@verb
def elo(
    players: Annotated[Sequence[Rated], arg("[RUN|PLAYER ...]", "(default: the anchors alone)")],
    *,
    games: Games = 40,
    minutes: Annotated[Real, Field(gt=0, allow_inf_nan=False), without("budget")] = 10.0,
    budget: Annotated[
        AtLeastOne | None, arg("INT", "(default: as many as the minutes have room for)")
    ] = None,
    simulations: Simulations = 64,
    checkpoints: Annotated[Count, AfterValidator(_not_one), arg("INT")] = 0,
    zero: Annotated[str | None, arg("PLAYER")] = None,
    cache: File | None = None,
    opening_plies: Count = 2,
    rules: AnyRules | None = None,
    seed: Seed = 0,
    config: ReadFile | None = None,
    transfer: Flag = False,
    move_seconds: MoveSeconds = 60.0,
    progress: Progress = False,
) -> RatedPool:
    """Rate the checkpoints of runs and other players in one pool, with 95 % intervals. Games are
    kept: the same call plays on for as long, a larger budget adds only new games.

    Args:
      players: run directories, each for all its checkpoints, and other players (docs/players.md),
        the weakest first; in Python a `Path` is a run's directory.
      games: smallest number of games each time that a pairing is chosen. It is rounded up so that
        each opening is played in every order of the players.
      minutes: minutes to play. The games that connect all players are always played: one pairing
        for each player but one. After the first, a line says how long they will take.
      budget: total number of games, including kept ones, in place of a time.
      simulations: simulations a move of checkpoints and exported folders; 0 for their raw policy.
      checkpoints: largest number of checkpoints of a run to rate, evenly spread; 0 for all.
      zero: player whose rating is 0; an empty name for a mean of 0. By default the first that is no
        run's, else the mean is 0.
      cache: file that keeps the games; without one they are kept by nothing but the result. Players
        of a name and weights are the same there in every process, a function in this one alone.
      opening_plies: random plies with which all games of an opening start.
      rules: preset's name, JSON object, or file (JSON or TOML); Python also takes `Rules` and their
        fields.
      seed: random seed.
      config: TOML file of a run; its tables [heuristics] weigh the players ethen and wjx.
      transfer: let networks play rules that they were not trained on.
      move_seconds: seconds that a program (external:COMMAND) may take for a move; else it loses the
        game.
      progress: show a bar with the newest rating.

    Raises:
      UsageError: a player or a number is not allowed, or the budget is too small.
      KeyboardInterrupt: Ctrl-C came; the games of finished pairings are in the cache's file.

    Example:
      `train.elo([Path("runs/quickstart"), "random", "wjx"], budget=2000).table()`
    """
    from train.api.players import make_players, rules_for
    from train.arena import match as match_lib
    from train.arena.match_programs import check_opening
    from train.config import read_config
    from train.players import registry
    from train.ratings import pool
    from train.ratings.batches import Batches
    from train.ratings.pool import Entrant
    from train.ratings.rated import RatedPool
    from train.ratings.results_cache import ResultsCache
    from train.runtime.display import Display
    from train.runtime.files import names_of_runs
    from train.runtime.interrupts import follow

    runs = [each for each in players if isinstance(each, Path)]
    singles = [each for each in players if not isinstance(each, Path | Entrant)]
    played = rules_for([*singles, *map(str, runs)], rules)
    make = functools.partial(registry.make_player, transfer=transfer)
    entrants = [
        entrant
        for run, name in zip(runs, names_of_runs(runs), strict=True)
        for entrant in pool.entrants_of_run(
            run, played, name=name, simulations=simulations, count=checkpoints, make_player=make
        )
    ]
    entrants += [each for each in players if isinstance(each, Entrant)]
    others = make_players(
        singles,
        played,
        heuristics=read_config(config).heuristics,
        transfer=transfer,
        move_seconds=move_seconds,
    )
    entrants += [Entrant(each.name, each.identity, each.registered) for each in others]
    anchor = _zero_of(entrants, zero)
    check_opening(played, opening_plies)
    match_lib.check_players([each.player for each in entrants if each.player], played)
    terms = pool.settings_of(played, opening_plies=opening_plies, seed=seed)
    answer = "finished pairings are kept, the games of the one being played are not"
    with (
        tempfile.TemporaryDirectory() as folder,
        follow(progress, "elo", budget or 0, answer=answer) as work,
    ):
        batches = Batches(
            work,
            played,
            games=games,
            budget=budget,
            minutes=minutes,
            opening_plies=opening_plies,
            seed=seed,
        )
        kept_in = Path(folder) / pool.CACHE_FILE if cache is None else Path(cache)
        measured = pool.measure(
            entrants,
            ResultsCache(kept_in, terms | _seconds_of(entrants)),
            batches.play,
            seats=played.players,
            games=games,
            budget=budget,
            is_over=batches.is_over,
            anchor=anchor or None,
            on_progress=batches.begin,
        )
    if measured.is_interrupted and not isinstance(progress, Display):
        raise KeyboardInterrupt
    settings: dict[str, Any] = {
        "seed": seed,
        "simulations": simulations,
        "opening_plies": opening_plies,
        "budget": budget,
        "games_a_pairing": games,
    }
    if budget is None:
        settings["minutes"] = minutes
    return RatedPool(measured, played, settings, None if cache is None else Path(cache))


def _zero_of(entrants: Sequence[Entrant], zero: str | None) -> str:
    """The name of the player whose rating is 0, or `MEAN`."""
    if zero is None:
        return next((entrant.name for entrant in entrants if entrant.run is None), MEAN)
    names = [entrant.name for entrant in entrants]
    if zero and zero not in names:
        raise UsageError(f"elo: {argument('zero', zero)} is not one of {', '.join(names)}")
    return zero


def _seconds_of(entrants: Sequence[Entrant]) -> dict[str, Any]:
    """The time of a program's moves, which decides games, where it is not the default. Games of
    pools without a program do not depend on it."""
    from train.arena.host_match import is_external
    from train.players.names import MOVE_SECONDS

    programs = [each.player for each in entrants if each.player and is_external(each.player)]
    seconds = sorted({program.act.seconds for program in programs} - {MOVE_SECONDS})  # type: ignore
    return {"move_seconds": seconds[0] if len(seconds) == 1 else seconds} if seconds else {}
