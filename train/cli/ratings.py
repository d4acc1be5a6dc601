"""The command that rates players in one pool (`elo`)."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Literal

from train.cli import options
from train.cli.options import Positional, arg
from train.runtime.errors import UsageError
from train.runtime.files import names_of_runs

ANCHORS = ("random", "greedy", "wjx", "heuristic-search:wjx@64")
Axis = Literal["iteration", "positions"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Elo(options.MatchSettings):
    """Rate the checkpoints of runs, other players and some anchors in one pool, with 95 %
    intervals. Games are kept: the same command plays on for as long, a larger budget adds only new
    games."""

    EXAMPLES = (
        "elo runs/quickstart --out out/elo",
        "elo runs/a runs/b --budget 8000 --zero wjx --png out/curve.png",
    )

    players: Annotated[
        Positional[tuple[str, ...]],
        arg("[RUN|PLAYER ...]", "(default: the anchors alone)"),
    ] = ()
    """Run directories, each for all its checkpoints, and other players (docs/players.md)."""
    games: int = 40
    """Games at least each time that a pairing or a table is chosen, so that each opening is played
    in every order of the players: half of them with each colour."""
    minutes: Annotated[float, options.without("budget")] = 10.0
    """Minutes to play for; longer where the games that connect all players take longer."""
    budget: Annotated[int | None, arg("INT", "(default: as many as the minutes have room for)")] = (
        None
    )
    """Games in all, kept ones included, however long they take."""
    anchors: Annotated[tuple[str, ...], arg("PLAYER ...")] = ANCHORS
    """Players that every pool has, the weakest first."""
    zero: Annotated[str, arg("PLAYER")] = "random"
    """Player whose rating is 0; if it is not in the pool, the mean rating is 0."""
    simulations: int = 64
    """Simulations a move of checkpoints and exported folders; 0 for their raw policy."""
    checkpoints: int = 0
    """Most checkpoints of a run to rate, evenly spread; 0 for all."""
    cache: options.OptionalFile = None
    """File that keeps the games; by default in the first run's directory."""
    axis: Annotated[Axis, options.only("png", "out")] = "iteration"
    """Horizontal axis of the curve: iterations or training positions."""
    out: Annotated[Path | None, arg("FOLDER", "")] = None
    """Directory for elo.json and elo.png, where no other files are named."""
    png: options.Picture = None
    """File to draw the curve into."""

    def run(self) -> int:
        """Returns the exit code."""
        from train.api.players import rules_for
        from train.api.ratings import MEAN, elo
        from train.api.results import positions_after
        from train.checkpoints.weights import is_run
        from train.metrics.plot_style import save_figure
        from train.ratings import pool
        from train.runtime.display import Display

        rules = rules_for((*self.players, *self.anchors), self.rules)
        runs = [Path(text) for text in self.players if is_run(Path(text))]
        json = self.json or (self.out and self.out / "elo.json")
        png = self.png or (self.out and self.out / "elo.png")
        for run in runs if self.axis == "positions" else ():
            positions_after(run, [])  # What the curve needs is read before the games.
        players = self.players_of([*dict.fromkeys((*self.anchors, *self._singles()))], rules)
        folder = next(iter(runs), self.out)
        if self.cache is None and folder is None:
            raise UsageError("elo: no run is named: --cache FILE says where games are to be kept")
        name = pool.CACHE_FILE if rules.players == 2 else pool.TABLES_FILE
        cache = self.cache or Path(folder or "") / name
        options.check_files(cache, json, png)
        zeros = {player.name for player in players}
        is_there = self.zero in zeros or self.zero.rpartition("/")[0] in names_of_runs(runs)
        rated = elo(
            [*runs, *players],
            rules=rules,
            games=self.games,
            budget=self.budget,
            minutes=self.minutes,
            simulations=self.simulations,
            checkpoints=self.checkpoints,
            zero=self.zero if is_there else MEAN,
            opening_plies=self.opening_plies,
            seed=self.seed,
            cache=cache,
            transfer=self.transfer,
            progress=Display(),
        )
        if png is not None:
            save_figure(rated.figure(axis=self.axis), png, caption=rated.caption)
        kept = f"the games of finished pairings are kept in {cache}; the same command goes on"
        return options.finish(rated, json, (png, "curves"), kept=kept)

    def _singles(self) -> list[str]:
        """Names of the players that are no runs; a bare path's budget is that of checkpoints."""
        from train.checkpoints.weights import is_run
        from train.players import registry

        kind, budget = ("search", f"@{self.simulations}") if self.simulations else ("net", "")
        names = [registry.read_name(text) for text in self.players if not is_run(Path(text))]
        return [
            f"{kind}:{name.target}{budget}{name.options_text}"
            if name.is_bare and not name.has_budget
            else name.text
            for name in names
        ]
