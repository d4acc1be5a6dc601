"""The command that rates players in one pool (`elo`)."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from train.cli.common import options
from train.cli.common.unused import refuse_unused
from train.config import read_config
from train.runtime.errors import UsageError
from train.runtime.files import names_of_runs, reason_of
from train.runtime.interrupts import EXIT_INTERRUPTED
from train.search.config import MAX_SIMULATIONS
from wallgo_jax.game.rules import Rules, name_of

if TYPE_CHECKING:
    from train.api.games import RatedPool
    from train.players.names import PlayerName
    from train.players.registry import Player
    from train.ratings.pool import Entrant

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
    """Games at least each time that a pairing or a table is chosen, so that each opening is played
    in every order of the players: half of them with each colour."""
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
        from train.api.games import rate_pool
        from train.cli.games.watching import watch_pool
        from train.ratings import pool
        from train.runtime.display import Display

        rules = self.rules_for((*self.players, *self.anchors))
        self._check()
        entrants = self._entrants(rules)
        cache = self._cache(pool.CACHE_FILE if rules.players == 2 else pool.TABLES_FILE)
        pictures = self._files(self.png, "elo.png")
        options.check_pictures(*pictures)
        written = cache, *self._files(self.json, "elo.json"), *pictures
        options.check_files(*written, inputs=self.inputs)
        names = [entrant.name for entrant in entrants]
        rated = rate_pool(
            entrants,
            rules,
            games=self.games,
            budget=self.budget,
            zero=self.zero if self.zero in names else None,
            opening_plies=self.opening_plies,
            seed=self.seed,
            cache=cache,
            terms=self._terms(entrants),
            progress=watch_pool(Display()),
        )
        self._show(rated, rules, cache)
        return EXIT_INTERRUPTED if rated.measured.is_interrupted else 0

    def _check(self) -> None:
        from train.api.games import check_checkpoints

        if not 0 <= self.simulations <= MAX_SIMULATIONS:
            raise UsageError(
                f"elo: simulations ({self.simulations}) must be from 0 to {MAX_SIMULATIONS}"
            )
        check_checkpoints(self.checkpoints)
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

    def _terms(self, entrants: Sequence[Entrant]) -> dict[str, float]:
        """What else decides kept games: the time of a program's moves where it is not the default.
        Games of pools without a program do not depend on it."""
        from train.arena.host_match import is_external

        players = [entrant.player for entrant in entrants if entrant.player is not None]
        is_told = self.move_seconds != type(self).move_seconds and any(map(is_external, players))
        return {"move_seconds": self.move_seconds} if is_told else {}

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

    def _show(self, rated: RatedPool, rules: Rules, cache: Path) -> None:
        from rich.console import Console

        measured = rated.measured
        searches = f"{self.simulations} simulations · " if self._is_budget_used() else ""
        caption = (
            f"{rated.zero} · {measured.games} games, {measured.new} of them new · "
            f"seed {self.seed} · {searches}{self.opening_plies} random opening plies"
        )
        title = f"Elo on {name_of(rules)}"
        Console().print(rated.table(title=title, caption=caption))
        if measured.is_interrupted:
            print(
                f"stopped; the games of finished pairings are kept in {cache}; those of the "
                f"pairing that was being played, {self.games} at most, are not",
                file=sys.stderr,
            )
        for path in self._files(self.json, "elo.json"):
            options.write_json(path, self._asked(rules) | rated.summary())
        for path in self._files(self.png, "elo.png"):
            self._draw(rated, path, title=title, caption=caption)
            options.say_written(path, "curves")

    def _draw(self, rated: RatedPool, path: Path, *, title: str, caption: str) -> None:
        from train.metrics.plot_style import save_figure

        if self.axis == "positions":
            figure = rated.figure(
                title=title,
                x_label="training positions",
                x_of=lambda run, iterations: positions_after(Path(run), iterations),
            )
        else:
            figure = rated.figure(title=title)
        save_figure(figure, path, caption=caption)

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
