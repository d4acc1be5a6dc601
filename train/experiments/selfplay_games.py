"""Games of a player against itself, kept in parts, and their positions.

G games, P players, N positions.
"""

from typing import Any, NamedTuple

import jax
import numpy as np

import train
from train.data.record_dataset import Examples, RecordedGames, make_examples
from train.experiments.lab import Lab
from train.runtime.host import fetch
from wallgo_jax.formats.records import Record
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State

ROUND = 256
"""Games that are played at once and kept together."""


class OwnGames(NamedTuple):
    """Finished games [G] of a player against itself."""

    rules: Rules
    actions: tuple[tuple[int, ...], ...]  # public ones
    rewards: np.ndarray  # float[G, P]

    @property
    def plies(self) -> np.ndarray:
        """int[G]: the length of each game."""
        return np.array([len(each) for each in self.actions])

    def examples(self) -> Examples:
        """Every position before a ply, on the host."""
        records = tuple(
            Record(rules=self.rules, actions=actions, result=tuple(rewards))
            for actions, rewards in zip(self.actions, self.rewards.tolist(), strict=True)
        )
        places = tuple(f"own game {number}" for number in range(1, len(records) + 1))
        return fetch(make_examples(RecordedGames(records, places)))


def states_of(examples: Examples) -> State:
    """The states [N] of examples on the host."""
    variants = jax.tree.map(lambda x: np.asarray(x)[examples.game], examples.variant)
    return State(variants, examples.position)


def selfplay(work: Lab, player: str, *, games: int, simulations: int) -> OwnGames:
    """Games of a player against itself with the noise of self-play, from the rules' start."""
    made = train.make_player(f"{player}@{simulations}")
    key = {"player": made.identity, "simulations": simulations, "seed": work.scale.seed}
    actions: list[list[int]] = []
    rewards: list[list[float]] = []

    def play(first: int, count: int) -> dict[str, Any]:
        seeds = np.random.SeedSequence([work.scale.seed, first]).generate_state(1)
        options: dict[str, Any] = {
            "games": count,
            "simulations": simulations,
            "seed": int(seeds[0]) % 2**31,
        }
        played = train.selfplay(made, explores=True, progress=work.progress, **options)
        lists = [record.actions for record in played.records()]
        return {"actions": lists, "rewards": played.rewards.tolist()}

    for first in range(0, games, ROUND):
        part = {"first": first, "games": min(ROUND, games - first)}
        found = work.keep("games", key | part, lambda part=part: play(*part.values()))
        actions += found["actions"]
        rewards += found["rewards"]
    return OwnGames(made.rules, tuple(map(tuple, actions)), np.array(rewards))
