"""An experiment's work: its scale, finished pieces, progress, and games; G games, P players."""

import contextlib
import dataclasses
import datetime
import functools
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from train.arena.match import MatchOptions, play_match, play_meeting
from train.arena.match_openings import OpeningOptions, Positions
from train.arena.result import MatchResult
from train.config import written_values
from train.data.record_dataset import Examples, RecordedGames, make_examples
from train.players.basic import Player
from train.players.names import check_without_budget, read_network_name
from train.players.networks import network_config
from train.players.registry import make_player
from train.ratings.pool import identity
from train.review.own_games import play_own_games
from train.review.player import make_analysis_player
from train.runtime.devices import machine
from train.runtime.errors import check_two_players
from train.runtime.files import read_json, write_lines
from train.runtime.host import fetch
from train.runtime.showing import sparing
from wallgo_jax.formats.records import Record
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State

PIECES, RUNS = "pieces", "runs"
ROUND = 256
"""Games of a network against itself that are played at once and cached together."""
_BATCH = 200

Task = Callable[[int], Any]
"""Takes the number of parts done."""
TaskMaker = Callable[[str, int, str], contextlib.AbstractContextManager[Task]]
"""(title, parts in all, unit) -> a context with a bar."""


@contextlib.contextmanager
def no_task(title: str, total: int, unit: str) -> Iterator[Task]:
    """A bar that is not shown."""
    del title, total, unit
    yield lambda done: None


@dataclasses.dataclass(frozen=True)
class Work:
    """An experiment's work. Each finished piece is a file, which the next call reuses."""

    scale: Any  # how much each experiment does, see `train.experiments.lib.scales.Scales`
    directory: Path  # of all experiments, which share its folders of pieces and of trainings
    task: TaskMaker = no_task  # shows a bar
    _used: dict[Path, Mapping[str, Any]] = dataclasses.field(default_factory=dict)

    @property
    def seed(self) -> int:
        """Decides openings and noise."""
        return self.scale.seed

    @property
    def runs(self) -> Path:
        """The directory of the trainings."""
        return self.directory / RUNS

    def find(self, name: str, settings: Mapping[str, Any]) -> Any:
        """The result of a finished piece, or None."""
        path = self._path(name, settings)
        if not path.exists():
            return None
        self._used[path] = read_json(path)
        return self._used[path]["result"]

    def cached(
        self,
        name: str,
        settings: Mapping[str, Any],
        make: Callable[[], Any],
        *,
        seconds_before: float = 0.0,
    ) -> Any:
        """The result of a finished piece, or of one that is made now.

        `name` begins its file's name; `settings` are all that decides the result, and `make`
        returns it, both JSON-ready; `seconds_before` is time that interrupted calls have spent.
        A damaged file is a UsageError; a piece whose file cannot be written is used all the same.
        """
        finished = self.find(name, settings)
        if finished is not None:
            return finished
        began = time.perf_counter()
        result, path = make(), self._path(name, settings)
        piece = {
            "settings": settings,
            "seconds": seconds_before + time.perf_counter() - began,
            "where": machine(),
            "day": datetime.datetime.now(datetime.UTC).date().isoformat(),
            "result": result,
        }
        text = json.dumps(piece)
        with sparing(path, "the next call makes it again"):
            write_lines(path, [text])
        self._used[path] = json.loads(text)  # as it is read by the next call
        return self._used[path]["result"]

    @property
    def hours(self) -> float:
        """Hours that the used pieces took, whenever they were made."""
        return sum(piece["seconds"] for piece in self._used.values()) / 3600

    def noted(self, key: str) -> list[str]:
        """The machines (`where`) or the days (`day`) of the used pieces."""
        return sorted({piece[key] for piece in self._used.values() if key in piece})

    def _path(self, name: str, settings: Mapping[str, Any]) -> Path:
        text = json.dumps(settings, sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        return self.directory / PIECES / f"{name}-{digest}.json"


def play_games(
    work: Work,
    players: Sequence[Player],
    rules: Rules,
    *,
    games: int,
    opening_plies: int = 0,
    positions: Positions | None = None,
    key: jax.Array | None = None,
) -> MatchResult:
    """Play a match of two players, with a bar; the result is from the side of the first.

    Openings and draws follow from the key, by default from the names and the work's seed.
    """
    opening = OpeningOptions(opening_plies, positions=positions)
    options = MatchOptions(games, min(games, _BATCH), opening)
    title = " against ".join(player.name for player in players)
    with work.task(title, games, "games") as on_progress:
        if key is not None:
            return play_match(players, rules, options, key=key, on_progress=on_progress)
        return play_meeting(players, rules, options, seed=work.seed, on_progress=on_progress)


def played_counts(
    work: Work,
    piece: str,
    settings: Mapping[str, Any],
    players: Callable[[], Sequence[Player]],
    rules: Rules,
    *,
    games: int,
    opening_plies: int,
) -> list[int]:
    """Games won, drawn and lost by the first of two players, who are made where they have to play;
    `settings` are what decides the result besides games, opening plies and seed."""
    sizes: dict[str, Any] = {"games": games, "opening_plies": opening_plies}

    def play() -> list[int]:
        result = play_games(work, players(), rules, **sizes)
        return [result.wins, result.draws, result.losses]

    return work.cached(piece, {**settings, **sizes, "seed": work.seed}, play)


class SelfplayGames(NamedTuple):
    """Finished games of one player against itself, from the rules' start."""

    rules: Rules
    recorded: RecordedGames

    @property
    def plies(self) -> np.ndarray:
        """int[G]: the length of each game."""
        return np.array([len(record.actions) for record in self.recorded.records])

    @property
    def rewards(self) -> np.ndarray:
        """float[G, P]: the rewards, from -1 to 1."""
        return np.array([record.result for record in self.recorded.records])

    def examples(self) -> Examples:
        """Every position before a ply, on the host."""
        return fetch(make_examples(self.recorded))


def states_of(examples: Examples) -> State:
    """The states [N] of examples on the host."""
    variants = jax.tree.map(lambda x: np.asarray(x)[examples.game], examples.variant)
    return State(variants, examples.position)


def check_network(name: str) -> None:
    """Refuse the name of no network, one with simulations, and a network whose rules are for more
    than two players, with a UsageError."""
    read = read_network_name(name)
    check_without_budget(read)
    check_two_players(network_config(read).rules, f"experiment: {name}")


def analysis_player(name: str, simulations: int) -> Player:
    """The network of a name as it plays against itself, with the rules that it has learned."""
    read = read_network_name(name)
    check_without_budget(read)
    return make_analysis_player(read.full, network_config(read).rules, simulations=simulations)


def selfplay_games(work: Work, name: str, *, simulations: int, games: int) -> SelfplayGames:
    """Games of a network against itself, played or from the cache: with Gumbel noise, each ply
    searched in full, from the rules' start without random plies."""
    player = analysis_player(name, simulations)
    options, records = written_values(player.search), []
    digest = identity(player.name, make_player(player.name, player.rules), options)
    settings = {"player": digest, "rules": player.rules.to_dict(), "seed": work.seed}
    how = {"simulations": simulations, "opening_plies": 0}
    with work.task(f"{name}@{simulations} against itself", games, "games") as on_progress:

        def play(first: int, count: int) -> list[list[Any]]:
            seed = int(np.random.SeedSequence([work.seed, first]).generate_state(1)[0]) % 2**31
            played = play_own_games(
                player,
                games=count,
                boards=count,
                seed=seed,
                on_progress=lambda over: on_progress(first + over),
                **how,
            )
            return [[list(each.actions), list(each.result or ())] for each in played.records]

        for first in range(0, games, ROUND):
            count = min(ROUND, games - first)
            part, make = settings | {"first": first, "games": count}, functools.partial(play, first)
            records += work.cached(f"games-{simulations}", part, functools.partial(make, count))
            on_progress(len(records))
    played = tuple(
        Record(rules=player.rules, actions=tuple(actions), result=tuple(result))
        for actions, result in records
    )
    places = tuple(f"own game {number}" for number in range(1, len(played) + 1))
    return SelfplayGames(player.rules, RecordedGames(played, places))
