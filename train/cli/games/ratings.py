"""The command that rates players in one pool (`elo`)."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

import tyro

from train.cli.common import options
from train.cli.common.unused import refuse_unused
from train.config import read_config
from train.runtime.errors import UsageError
from train.runtime.files import names_of_runs, reason_of
from train.runtime.interrupts import EXIT_INTERRUPTED, interrupts
from train.search.config import MAX_SIMULATIONS
from wallgo_jax.game.rules import Rules, name_of

if TYPE_CHECKING:
    from train.arena.result import MatchResult
    from train.players.names import PlayerName
    from train.players.registry import Player
    from train.ratings.curves import Curve
    from train.ratings.pool import Entrant, Measured, Progress
    from train.ratings.results_cache import ResultsCache
    from train.ratings.table_pool import TableCache
    from train.runtime.display import Display, Task

ANCHORS = ("random", "greedy", "wjx", "heuristic-search:wjx@64")
Axis = Literal["iteration", "positions"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Elo(options.MatchSettings):
    """Rate the checkpoints of runs, other players and some anchors in one pool, with 95 %
    intervals. Games are kept, and a larger budget adds only new ones."""

    EXAMPLES = (
        "elo runs/quickstart --out out/elo",
        "elo runs/a runs/b --budget 8000 --zero wjx --png out/curve.png",
    )

    players: Annotated[
        tyro.conf.Positional[tuple[str, ...]],
        tyro.conf.arg(
            metavar="[RUN|PLAYER ...]", help_behavior_hint="(default: the anchors alone)"
        ),
    ] = ()
    """Run directories, each for all its checkpoints, and other players (docs/players.md)."""
    games: int = 40
    """Games each time that a pairing is chosen, half of them with each colour; with more than two
    players at least so many, in every order of a table."""
    budget: int = 4000
    """Games in all, kept ones included."""
    anchors: Annotated[tuple[str, ...], tyro.conf.arg(metavar="PLAYER ...")] = ANCHORS
    """Players that every pool has, the weakest first."""
    zero: Annotated[str, tyro.conf.arg(metavar="PLAYER")] = "random"
    """Player whose rating is 0; if it is not in the pool, the mean rating is 0."""
    simulations: int = 64
    """Simulations a move of checkpoints and exported folders; 0 for their raw policy."""
    checkpoints: int = 0
    """Most checkpoints of a run to rate, evenly spread; 0 for all."""
    cache: options.OptionalFile = None
    """File that keeps the games; by default in the first run's directory."""
    axis: Axis = "iteration"
    """Horizontal axis of the curve: iterations or training positions."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER", help_behavior_hint="")] = None
    """Directory to write elo.json and elo.png into."""
    png: options.OptionalFile = None
    """File to draw the curve into."""

    def run(self) -> int:
        """Returns the exit code."""
        from train.ratings import pool, table_pool
        from train.ratings.results_cache import ResultsCache
        from train.runtime.display import Display

        rules = self.rules_for((*self.players, *self.anchors))
        self._check(rules)
        entrants = self._entrants(rules)
        is_pairs = rules.players == 2
        cache = self._cache(pool.CACHE_FILE if is_pairs else table_pool.CACHE_FILE)
        results = (ResultsCache if is_pairs else table_pool.TableCache)(
            cache, self._settings(entrants, rules)
        )
        pictures = self._files(self.png, "elo.png")
        options.check_pictures(*pictures)
        written = cache, *self._files(self.json, "elo.json"), *pictures
        options.check_files(*written, inputs=self.inputs)
        names = [entrant.name for entrant in entrants]
        zero = self.zero if self.zero in names else None
        measured = rate(self, entrants, results, rules, title="elo", zero=zero, display=Display())
        self._show(measured, rules, cache)
        return EXIT_INTERRUPTED if measured.is_interrupted else 0

    def _check(self, rules: Rules) -> None:
        options.check_seed("elo", self.seed)
        if not 0 <= self.simulations <= MAX_SIMULATIONS:
            raise UsageError(
                f"elo: simulations ({self.simulations}) must be from 0 to {MAX_SIMULATIONS}"
            )
        if self.checkpoints < 0 or self.checkpoints == 1:
            raise UsageError(f"elo: checkpoints ({self.checkpoints}) must be 0, or at least 2")
        if rules.players == 2:
            options.check_games("elo", rules, games=self.games, opening_plies=self.opening_plies)
        elif self.games < 1 or self.opening_plies < 0:
            raise UsageError("elo: games must be at least 1, opening_plies at least 0")
        else:
            options.check_opening("elo", rules, self.opening_plies)
        if not self._files(self.png, "elo.png"):
            refuse_unused(self, "axis", where="without --png or --out")
        if self.axis == "positions":
            for run in self._runs():
                positions_after(run, [])  # What the curve needs is read before the games.

    def _entrants(self, rules: Rules) -> list[Entrant]:
        from train.ratings import pool

        heuristics, make = read_config(self.config).heuristics, self.player_maker(rules)

        def make_player(name: str, rules: Rules) -> Player:
            return make(name)

        found = []
        for run, name in self._runs().items():
            found += pool.entrants_of_run(
                run,
                rules,
                name=name,
                simulations=self.simulations,
                count=self.checkpoints,
                make_player=make_player,
            )
        singles = dict.fromkeys((*self.anchors, *self._singles()))
        return found + pool.entrants_of_names(
            singles, rules, heuristics=heuristics, make_player=make_player
        )

    def _settings(self, entrants: Sequence[Entrant], rules: Rules) -> dict[str, Any]:
        """The terms of kept games. The time of a program's moves is one of them where it is not the
        default: games of pools without a program do not depend on it."""
        from train.arena.host_match import is_external
        from train.ratings import pool

        found = pool.settings_of(rules, opening_plies=self.opening_plies, seed=self.seed)
        players = [entrant.player for entrant in entrants if entrant.player is not None]
        if self.move_seconds != type(self).move_seconds and any(map(is_external, players)):
            found["move_seconds"] = self.move_seconds
        return found

    def _runs(self) -> dict[Path, str]:
        """The run directories with their names, or, where two have the same, with their paths."""
        runs = [Path(text) for text in self.players if self._is_run(text)]
        return dict(zip(runs, names_of_runs(runs), strict=True))

    def _singles(self) -> list[str]:
        """Names of the players that are no runs; a bare path's budget is that of checkpoints."""
        kind, budget = ("search", f"@{self.simulations}") if self.simulations else ("net", "")
        return [
            f"{kind}:{name.target}{budget}{name.options_text}" if _takes_budget(name) else name.text
            for name in self._names()
        ]

    def _is_budget_used(self) -> bool:
        """Whether a player searches with `--simulations`."""
        return bool(self._runs()) or any(map(_takes_budget, self._names()))

    def _names(self) -> list[PlayerName]:
        """The players that are no runs."""
        from train.players import registry

        return [registry.read_name(text) for text in self.players if not self._is_run(text)]

    def _is_run(self, text: str) -> bool:
        from train.checkpoints import weights

        return weights.is_run(Path(text))

    def _cache(self, name: str) -> Path:
        if self.cache is not None:
            return self.cache
        for run in self._runs():
            return run / name
        if self.out is not None:
            return self.out / name
        raise UsageError("elo: no run is named: say with --cache FILE where games are to be kept")

    def _show(self, measured: Measured, rules: Rules, cache: Path) -> None:
        from rich.console import Console

        from train.ratings import tables
        from train.ratings.curves import draw_curves

        zero = f"{measured.ratings.anchor} = 0" if measured.ratings.anchor else "mean = 0"
        searches = f"{self.simulations} simulations · " if self._is_budget_used() else ""
        caption = (
            f"{zero} · {measured.games} games, {measured.new} of them new · seed {self.seed} · "
            f"{searches}{self.opening_plies} random opening plies"
        )
        title = f"Elo on {name_of(rules)}"
        Console().print(tables.rating_table(measured, title=title, caption=caption))
        if measured.is_interrupted:
            print(
                f"stopped; the games of finished pairings are kept in {cache}; those of the "
                f"pairing that was being played, {self.games} at most, are not",
                file=sys.stderr,
            )
        record = self._asked(rules) | tables.rating_record(measured)
        for path in self._files(self.json, "elo.json"):
            options.write_json(path, record)
        for path in self._files(self.png, "elo.png"):
            curves, anchors, x_label = self._curves(measured)
            draw_curves(
                path,
                curves,
                anchors,
                title=title,
                caption=caption,
                x_label=x_label,
                y_label="Elo",
            )
            options.say_written(path, "curves")

    def _files(self, path: Path | None, name: str) -> list[Path]:
        named = [*([path] if path else []), *([self.out / name] if self.out else [])]
        return list({path.resolve(): path for path in named}.values())

    def _asked(self, rules: Rules) -> dict[str, Any]:
        return {
            "rules": rules.to_dict(),
            "rules_name": name_of(rules),
            "seed": self.seed,
            "simulations": self.simulations,
            "opening_plies": self.opening_plies,
            "budget": self.budget,
            "games_a_pairing": self.games,
        }

    def _curves(self, measured: Measured) -> tuple[list[Curve], dict[str, float], str]:
        from train.ratings.curves import curves_of
        from train.ratings.tables import rating_rows

        def x_of(run: str, iterations: list[int]) -> Sequence[float]:
            return positions_after(Path(run), iterations)

        rows, runs = rating_rows(measured), {str(run): name for run, name in self._runs().items()}
        if self.axis == "positions":
            return *curves_of(rows, runs, x_of=x_of), "training positions"
        return *curves_of(rows, runs), "iteration"


def _takes_budget(name: PlayerName) -> bool:
    return name.is_bare and not name.has_budget


def positions_after(run: Path, iterations: Sequence[int]) -> list[float]:
    """Positions that a run had played by the end of each of these iterations.

    Raises:
      UsageError: its metrics do not say.
    """
    from train.metrics.rows import METRICS_FILE, read_rows

    path = run / METRICS_FILE
    try:
        rows = read_rows(path)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {reason_of(error)}") from None
    if not rows or not all(isinstance(row.get("positions"), int | float) for row in rows):
        raise UsageError(f"{path}: does not tell positions played, which --axis positions needs")
    return [sum(row["positions"] for row in rows if row["iteration"] <= n) for n in iterations]


class RatingOptions(Protocol):
    """What a command says of the games that it rates players by."""

    @property
    def games(self) -> int: ...
    @property
    def budget(self) -> int: ...
    @property
    def opening_plies(self) -> int: ...
    @property
    def seed(self) -> int: ...


def rate(
    how: RatingOptions,
    entrants: list[Entrant],
    results: ResultsCache | TableCache,
    rules: Rules,
    *,
    title: str,
    zero: str | None,
    display: Display,
) -> Measured:
    """Rate players in one pool, with a bar; an interrupt ends it with the pairings that are done.

    Args:
      how: the games.
      entrants: the players.
      results: keeps each finished pairing.
      rules: of the games.
      title: of the bar.
      zero: name of the player whose rating is 0; None for the mean.
      display: the console.
    """
    from train.arena.match_programs import check_opening
    from train.arena.report import forfeit_lines
    from train.ratings import pool, table_pool

    check_opening(rules, how.opening_plies)
    with (
        display,
        display.task(title, how.budget, "games") as task,
        # `measure` takes the interrupt; each finished pairing is in the cache already.
        interrupts("finished pairings are kept, the games of the one being played are not"),
    ):
        bar = RatingBar(display, task, how.budget)
        given: dict[str, Any] = {
            "games": how.games,
            "opening_plies": how.opening_plies,
            "seed": how.seed,
            "on_games": bar.on_games,
        }
        if isinstance(results, table_pool.TableCache):
            return table_pool.measure(
                entrants,
                results,
                table_pool.make_play(rules, **given),
                rules,
                games=how.games,
                budget=how.budget,
                anchor=zero,
                on_progress=bar.on_progress,
            )
        play_batch = pool.make_play(rules, **given)

        def play(first: Entrant, second: Entrant, number: int) -> MatchResult:
            result = play_batch(first, second, number)
            for line in forfeit_lines(result):
                display.say(line)
            return result

        return pool.measure(
            entrants,
            results,
            play,
            games=how.games,
            budget=how.budget,
            anchor=zero,
            on_progress=bar.on_progress,
        )


class RatingBar:
    """Games done and the newest checkpoint's rating so far: live on a terminal, elsewhere ten
    lines."""

    def __init__(self, display: Display, task: Task, budget: int) -> None:
        self._display, self._task, self._budget = display, task, budget
        self._before, self._said = 0, -1

    def on_progress(self, progress: Progress) -> None:
        """A batch begins."""
        self._before = progress.games
        figures = "connecting all players" if progress.ratings is None else _newest(progress)
        self._task(progress.games)
        self._task.keep(figures)
        self._task.compile()
        tenth = 10 * progress.games // self._budget
        if not self._display.is_live and tenth > self._said:
            self._said = tenth
            print(f"{progress.games} of {self._budget} games: {figures}", file=sys.stderr)

    def on_games(self, games: int) -> None:
        """Games of the batch are done."""
        self._task(self._before + games)


def _newest(progress: Progress) -> str:
    """The last checkpoint's rating, or the best player's where there is no run."""
    from train.arena.result import Z_95

    ratings = progress.ratings
    assert ratings is not None
    places = [place for place, name in enumerate(ratings.names) if name in progress.newest]
    place = places[-1] if places else int(ratings.elo.argmax())
    error = Z_95 * float(ratings.covariance[place, place]) ** 0.5
    return f"{ratings.names[place]} at {ratings.elo[place]:.0f} ± {error:.0f}"
