"""The commands that compare many players: `elo` and `tournament`."""

import contextlib
import dataclasses
import functools
import json
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import jax
import tyro
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from train import registry
from train.arena import match as match_lib
from train.arena import tournament
from train.arena.result import Z_95
from train.arena.tournament import Score
from train.cli import options
from train.cli.options import EXIT_INTERRUPTED
from train.config import read_config
from train.loop import run_directory
from train.loop.metrics import METRICS_FILE
from train.ratings import pool
from train.ratings import tables as tables_lib
from train.ratings.curves import Curve, draw_curves
from train.ratings.results_cache import ResultsCache
from train.runtime.display import Display
from train.runtime.errors import UsageError
from wallgo_jax.game.rules import Rules, name_of

ANCHORS = ("random", "greedy", "wjx", "heuristic-search:wjx@64")
Axis = Literal["iteration", "positions"]
Format = Literal["round-robin", "double-elimination"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Elo(options.MatchSettings):
    """Rate the checkpoints of runs and some anchors in one pool: chosen pairings, Bradley-Terry,
    95 % intervals. What was played is kept, and a larger budget adds only new games."""

    runs: tyro.conf.Positional[tuple[Path, ...]] = ()
    """Run directories."""
    games: int = 40
    """Of a pairing each time that it is chosen, half of them with each colour."""
    budget: int = 4000
    """Games in all, those played before counted."""
    anchors: tuple[str, ...] = ANCHORS
    """Further players, the weakest first."""
    zero: str = "random"
    """The player whose rating is 0; if it is not in the pool, the mean is."""
    simulations: int = 64
    """Of the checkpoints' search; 0 for their raw policy."""
    checkpoints: int = 0
    """At most so many of each run, evenly spread; 0 for all."""
    cache: Path | None = None
    """File of played games; in the first run's directory unless said."""
    axis: Axis = "iteration"
    """What the curve is drawn over."""
    out: Path | None = None
    """Write elo.json and elo.png into this directory."""
    png: Path | None = None
    """Draw the curve into this file."""

    def run(self, overrides: Sequence[str]) -> int:
        """Returns the exit code."""
        del overrides
        rules = options.read_rules(self.rules)
        self._check(rules)
        entrants = self._entrants(rules)
        cache = self._cache()
        results = ResultsCache(
            cache, pool.terms_of(rules, opening_plies=self.opening_plies, seed=self.seed)
        )
        names = [entrant.name for entrant in entrants]
        with _rating_bar(self.budget) as on_progress:
            measured = pool.measure(
                entrants,
                results,
                pool.make_play(
                    rules, games=self.games, opening_plies=self.opening_plies, seed=self.seed
                ),
                games=self.games,
                budget=self.budget,
                anchor=self.zero if self.zero in names else None,
                on_progress=on_progress,
            )
        self._show(measured, rules, cache)
        return EXIT_INTERRUPTED if measured.is_interrupted else 0

    def _check(self, rules: Rules) -> None:
        options.check_seed("elo", self.seed)
        if not 0 <= self.simulations <= registry.MAX_SIMULATIONS:
            raise UsageError(
                f"elo: simulations ({self.simulations}) must be from 0 to {registry.MAX_SIMULATIONS}"
            )
        if self.checkpoints < 0 or self.checkpoints == 1:
            raise UsageError(f"elo: checkpoints ({self.checkpoints}) must be 0, or at least 2")
        _check_match("elo", rules, games=self.games, opening_plies=self.opening_plies)

    def _entrants(self, rules: Rules) -> list[pool.Entrant]:
        heuristics = read_config(self.config).heuristics
        make_player = functools.partial(
            registry.make_player, heuristics=heuristics, transfer=self.transfer
        )
        found = []
        for run, name in zip(self.runs, self._run_names(), strict=True):
            found += pool.entrants_of_run(
                run,
                rules,
                name=name,
                simulations=self.simulations,
                count=self.checkpoints,
                make_player=make_player,
            )
        return found + pool.entrants_of_names(
            self.anchors, rules, heuristics=heuristics, make_player=make_player
        )

    def _run_names(self) -> list[str]:
        """The directories' names, or, where two have the same, their paths."""
        short = [run.resolve().name for run in self.runs]
        is_clear = len(set(short)) == len(short)
        return short if is_clear else [str(run) for run in self.runs]

    def _cache(self) -> Path:
        if self.cache is not None:
            return self.cache
        if self.runs:
            return self.runs[0] / pool.CACHE_FILE
        if self.out is not None:
            return self.out / pool.CACHE_FILE
        raise UsageError("elo: no run is named: say with --cache FILE where games are to be kept")

    def _show(self, measured: pool.Measured, rules: Rules, cache: Path) -> None:
        zero = f"{measured.ratings.anchor} = 0" if measured.ratings.anchor else "mean = 0"
        caption = (
            f"{zero} · {measured.games} games, {measured.new} of them new · seed {self.seed} · "
            f"{self.simulations} simulations · {self.opening_plies} random opening plies"
        )
        title = f"Elo on {name_of(rules)}"
        Console().print(tables_lib.rating_table(measured, title=title, caption=caption))
        if measured.is_interrupted:
            print(f"stopped; the games are kept in {cache}", file=sys.stderr)
        record = self._asked(rules) | tables_lib.rating_record(measured)
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
                y_label=f"Elo ({zero})",
            )

    def _files(self, path: Path | None, name: str) -> list[Path]:
        return [*([path] if path else []), *([self.out / name] if self.out else [])]

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

    def _curves(self, measured: pool.Measured) -> tuple[list[Curve], dict[str, float], str]:
        rows = tables_lib.rating_rows(measured)
        curves = []
        for run, name in zip(self.runs, self._run_names(), strict=True):
            own = [row for row in rows if row["run"] == str(run)]
            own.sort(key=lambda row: row["iteration"])
            x = [row["iteration"] for row in own]
            if self.axis == "positions":
                x = positions_after(run, x)
            band = ([row[key] for row in own] for key in ("elo", "low", "high"))
            curves.append(Curve(name, x, *band))
        anchors = {row["player"]: row["elo"] for row in rows if row["run"] is None}
        return curves, anchors, {"iteration": "iteration"}.get(self.axis, "training positions")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tournament(options.MatchSettings):
    """A tournament of any players, and its table."""

    players: tyro.conf.Positional[tuple[str, ...]]
    """Who plays; in an elimination without heats, the strongest first."""
    format: Format = "round-robin"
    """Each against each, or out after two losses."""
    games: int = 2
    """Of two players when they meet, half of them with each colour."""
    heats: int = 0
    """Before an elimination, play heats of so many; the last of each starts in the losers'
    bracket. 0 for none."""
    records: Path | None = None
    """Write the games to this file, a JSON object a line; compressed if it ends in .gz."""

    def run(self, overrides: Sequence[str]) -> int:
        """Returns the exit code."""
        del overrides
        rules = options.read_rules(self.rules)
        options.check_seed("tournament", self.seed)
        _check_match("tournament", rules, games=self.games, opening_plies=self.opening_plies)
        if self.heats and (self.format == "round-robin" or self.heats < 2):
            raise UsageError("tournament: heats are of 2 or more, and before an elimination")
        players = [*map(self.player_maker(rules), self.players)]
        names = [player.name for player in players]
        by_name = dict(zip(names, players, strict=True))
        if self.records is not None:
            run_directory.make_directory(self.records.parent)
        display = Display()
        try:
            tournament.check_field(names, self.games // 2)
            with display, display.match(self.format, self._expected_games()) as tick:
                play = self._make_play(by_name, rules, tick)
                found = self._play(names, play, display, name_of(rules))
        except ValueError as error:
            raise UsageError(str(error)) from None
        if self.json is not None:
            options.write_json(self.json, self._asked(rules) | found)
        return 0

    def _make_play(
        self, players: dict[str, Any], rules: Rules, tick: Callable[[int], None]
    ) -> tournament.Play:
        done = 0

        def play(first: str, second: str, pairs: int, before: int) -> Score:
            nonlocal done
            who = zlib.crc32("\n".join(sorted((first, second))).encode()) % options.MAX_SEED
            key = jax.random.fold_in(jax.random.fold_in(jax.random.key(self.seed), who), before)
            result = match_lib.play_match(
                players[first],
                players[second],
                rules,
                match_lib.MatchOptions(
                    games=2 * pairs,
                    batch=min(2 * pairs, pool.MAX_BATCH),
                    opening_plies=self.opening_plies,
                ),
                key=key,
                on_progress=lambda games: tick(done + games),
            )
            if self.records is not None:
                options.write_records(self.records, result, append=done > 0)
            done += 2 * pairs
            own, other = result.territory.sum(axis=0)
            return Score(result.wins, result.draws, result.losses, int(own), int(other))

        return play

    def _play(
        self, names: list[str], play: tournament.Play, display: Display, rules: str
    ) -> dict[str, Any]:
        pairs = self.games // 2
        caption = (
            f"{self.games} games a meeting · seed {self.seed} · "
            f"{self.opening_plies} random opening plies"
        )
        if self.format == "round-robin":
            met = tournament.round_robin(names, play, pairs=pairs)
            rows = tournament.standings(names, met)
            title = f"Round robin on {rules}"
            display.console.print(tables_lib.cross_table(rows, met, title=title, caption=caption))
            return _record(met) | {"table": [tables_lib.standing_record(row) for row in rows]}
        behind, met = [], []
        if self.heats:
            tables, met = tournament.heats(names, play, size=self.heats, pairs=pairs)
            for number, rows in enumerate(tables, start=1):
                title = f"Heat {number} on {rules}, by territory"
                table = tables_lib.cross_table(rows, met, title=title, caption=caption)
                display.console.print(table)
            names, behind = tournament.seeds_of(tables)
        played = tournament.double_elimination(names, play, pairs=pairs, starts_behind=behind)
        title = f"Double elimination on {rules}"
        display.console.print(tables_lib.bracket_tree(played, title=title, caption=caption))
        return _record([*met, *played.meetings]) | {"places": list(played.places)}

    def _expected_games(self) -> int:
        count = len(self.players)
        if self.format == "round-robin":
            return self.games * count * (count - 1) // 2
        in_heats = count * (self.heats - 1) // 2 if self.heats else 0
        return self.games * (in_heats + 2 * count - 2)

    def _asked(self, rules: Rules) -> dict[str, Any]:
        return {
            "format": self.format,
            "rules": rules.to_dict(),
            "rules_name": name_of(rules),
            "seed": self.seed,
            "games_a_meeting": self.games,
            "heats": self.heats,
            "opening_plies": self.opening_plies,
        }


def positions_after(run: Path, iterations: Sequence[int]) -> list[int]:
    """Positions that a run had played by the end of each of these iterations.

    Raises:
      UsageError: its metrics do not say.
    """
    path = run / METRICS_FILE
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        played = [(row["iteration"], row["positions"]) for row in rows]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path}: cannot be read for --axis positions: {error}") from None
    return [sum(count for place, count in played if place < each) for each in iterations]


def _record(met: Sequence[tournament.Meeting]) -> dict[str, Any]:
    return {"meetings": [tables_lib.meeting_record(meeting) for meeting in met]}


def _check_match(command: str, rules: Rules, *, games: int, opening_plies: int) -> None:
    try:
        match_lib.check_rules(rules)
        match_lib.MatchOptions(games=games, batch=games, opening_plies=opening_plies)
    except ValueError as error:
        raise UsageError(f"{command}: {str(error).removeprefix('match: ')}") from None


@contextlib.contextmanager
def _rating_bar(budget: int) -> Iterator[Callable[[pool.Progress], None]]:
    """Games done and the newest checkpoint's rating so far: a bar on a terminal, elsewhere ten
    lines."""
    console = Console()
    bar = Progress(
        TextColumn("elo"),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[figures]}", markup=False),
        console=console,
        disable=not console.is_terminal,
    )
    task = bar.add_task("games", total=budget, figures="connecting all players")
    said = -1

    def show(progress: pool.Progress) -> None:
        nonlocal said
        figures = "connecting all players"
        if progress.ratings is not None:
            figures = _newest(progress)
        bar.update(task, completed=progress.games, figures=figures)
        tenth = 10 * progress.games // budget
        if not console.is_terminal and tenth > said:
            said = tenth
            print(f"{progress.games} of {budget} games: {figures}", file=sys.stderr)

    with bar:
        yield show


def _newest(progress: pool.Progress) -> str:
    """The last checkpoint's rating, or the best player's where there is no run."""
    ratings = progress.ratings
    assert ratings is not None
    places = [place for place, name in enumerate(ratings.names) if name in progress.newest]
    place = places[-1] if places else int(ratings.elo.argmax())
    error = Z_95 * float(ratings.covariance[place, place]) ** 0.5
    return f"{ratings.names[place]} at {ratings.elo[place]:.0f} ± {error:.0f}"
