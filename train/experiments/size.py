"""Size of the game: branching, length, estimates of the game tree, counts of positions.

The paper estimates about 10^87 for 7×7 and does not say how ("WallZero", Chen, Arjonilla, Wu and
Wu, slide "Game Tree Complexity").

A leaf of the game tree is a whole game. Knuth ("Estimating the efficiency of backtrack programs",
1975): in a random descent, the product of the numbers of legal actions has the number of leaves as
its mean; over random play it estimates the number of all games without bias, but from finitely many
games it comes out too small, because rare games hold most of the sum. A typical game is the mean of
the product's logarithm. Over strong play, neither figure estimates the tree; they say how many
choices a good game passes.

Positions of 3×3 are counted by enumerating them; the lower bound of other boards is the number of
placements, the upper bound all sets of stones and walls.

Intervals are over games; all games of a player are of one training.
"""

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from train.experiments import lab
from train.experiments.selfplay_games import selfplay, states_of
from train.experiments.tables import Table
from train.runtime.devices import broadcast_boards
from train.runtime.host import fetch, in_batches
from train.solver.positions import reachable_levels
from wallgo_jax.game import actions, chance, referee
from wallgo_jax.game.rules import Rules, named
from wallgo_jax.game.state import Position, State, initial_position, make_variant

SOLVED = Rules(size=3, stones=1, order=(0, 1))
_BATCH = 1024
_RESAMPLES = 1000


class Descents(NamedTuple):
    """Descents of a game tree, one a game."""

    logs: np.ndarray  # float64[G], decimal logarithm of the product of legal slots over the game
    plies: np.ndarray  # int[G]
    legal: np.ndarray  # int[G], the sum of legal slots over the game


class TreeSize(NamedTuple):
    """Figures of one kind of play, each with the ends of its 95 % interval."""

    games: int
    branching: Sequence[float]  # legal slots a ply
    length: Sequence[float]
    typical: Sequence[float]  # mean decimal logarithm of the product
    knuth: Sequence[float]  # decimal logarithm of the product's mean


@dataclasses.dataclass(frozen=True)
class Scale(lab.Options):
    """The scale of the page."""

    rules: tuple[str, ...] = (
        "wallzero-4stone",
        "wallzero-empty",
        "hkoi",
        "playwallgo-2p",
        "playwallgo-3p",
        "playwallgo-4p",
    )
    """Presets."""
    random_games: int = 20_000
    """Random games of each."""
    players: tuple[str, ...] = ()
    """Networks whose games against themselves stand for strong play."""
    simulations: int = 16
    """Simulations of their moves."""
    strong_games: int = 5000
    """Games of each."""


def main(work: lab.Lab) -> dict[str, Any]:
    """Measure the size of each rule set."""
    scale = work.scale
    sizes = [(name, "random play", _random_size(work, name)) for name in scale.rules]
    for player in scale.players:
        options = {"simulations": scale.simulations, "games": scale.strong_games}
        games = selfplay(work, player, **options)
        presets = [name for name in scale.rules if named(name) == games.rules]
        examples = games.examples()
        game, count = np.asarray(examples.game), len(games.plies)
        (legal,) = in_batches(lambda some: (_legal_of(some),), states_of(examples), 8 * _BATCH)
        logs = np.bincount(game, np.log10(np.maximum(legal, 1)), minlength=count)
        sums = np.bincount(game, legal, minlength=count).astype(int)
        strong = size_of(Descents(logs, games.plies, sums), seed=scale.seed)
        sizes.append((presets[0] if presets else "", f"{player}@{scale.simulations}", strong))
    # Reachable positions of 3×3 that a game goes on from, by plies played.
    counts = work.keep(
        "positions",
        {"rules": SOLVED.to_dict()},
        lambda: {"by_ply": [len(level.position.ply) for level in reachable_levels(SOLVED)]},
    )
    heads = {
        "branching": "actions a ply",
        "length": "plies",
        "typical": "typical game",
        "knuth": "Knuth's estimate",
    }
    rows = []
    for rules, play, size in sizes:
        row: dict[str, Any] = {"rules": f"`{rules}`", "play": play, "games": size.games}
        for field in heads:
            row[field] = dict(zip(("mean", "low", "high"), getattr(size, field), strict=True))
        rows.append(row)
    columns = [["rules", "rules"], ["play", "play"], ["games", "games"]]
    columns += [[head, field, "plain"] for field, head in heads.items()]
    tables = {
        "table": Table("The game tree; games as powers of ten, intervals resample", columns, rows),
        "positions": _position_table(scale.rules, sum(counts["by_ply"])),
    }
    return work.finish(tables, positions_of_3x3=counts)


def _random_size(work: lab.Lab, name: str) -> TreeSize:
    rules = named(name)
    games = work.scale.random_games
    seed = work.scale.seed

    def make() -> dict[str, Any]:
        firsts = range(0, games, _BATCH)
        parts = [random_descents(rules, min(_BATCH, games - at), seed, at) for at in firsts]
        joined = Descents(*(np.concatenate(part) for part in zip(*parts, strict=True)))
        return size_of(joined, seed=seed)._asdict()

    key = {"rules": rules.to_dict(), "games": games, "seed": seed}
    return TreeSize(**work.keep("random-play", key, make))


def random_descents(rules: Rules, games: int, seed: int, first: int = 0) -> Descents:
    """Play this many random games at once, each legal slot as likely as any other; another number
    of the first game gives other games."""
    key = jax.random.fold_in(jax.random.key(seed), first)
    counts = fetch(_descend(rules, games)(key))  # [T, G], 0 once a game is over
    logs = np.log10(np.maximum(counts, 1)).sum(axis=0)
    return Descents(logs, (counts > 0).sum(axis=0), counts.sum(axis=0))


@functools.cache
def _descend(rules: Rules, games: int) -> Any:
    variants = broadcast_boards(jax.tree.map(jnp.asarray, make_variant(rules)), games)

    def ply(position: Position, key: jax.Array) -> tuple[Position, jax.Array]:
        states = State(variants, position)
        words = jax.vmap(actions.legal_words)(states)
        counts = jnp.where(position.terminated, 0, _bits(words))
        slots = jax.vmap(chance.choose_bit)(jax.random.bits(key, counts.shape, jnp.uint32), words)
        after, _ = jax.vmap(referee.step)(states, slots)
        return after.position, counts

    @jax.jit
    def descend(key: jax.Array) -> jax.Array:
        start = jax.vmap(initial_position)(variants)
        return jax.lax.scan(ply, start, jax.random.split(key, rules.max_plies))[1]

    return descend


def _bits(words: jax.Array) -> jax.Array:
    return jax.lax.population_count(words).sum(axis=-1).astype(jnp.int32)


@jax.jit
def _legal_of(states: State) -> jax.Array:
    return _bits(jax.vmap(actions.legal_words)(states))


def size_of(descents: Descents, *, seed: int) -> TreeSize:
    """Estimates with 95 % intervals by resampling whole games (percentile bootstrap)."""
    rng, games = np.random.default_rng(seed), len(descents.logs)
    samples = [_figures(descents, rng.integers(games, size=games)) for _ in range(_RESAMPLES)]
    low, high = np.percentile(np.array(samples), [2.5, 97.5], axis=0)
    middle = _figures(descents, np.arange(games))
    return TreeSize(games, *(tuple(map(float, row)) for row in zip(middle, low, high, strict=True)))


def _figures(descents: Descents, chosen: np.ndarray) -> tuple[float, float, float, float]:
    logs, plies, legal = (each[chosen] for each in descents)
    most = float(logs.max())
    knuth = most + math.log10(float(np.mean(10.0 ** (logs - most))))
    return float(legal.sum() / plies.sum()), float(plies.mean()), float(logs.mean()), knuth


def upper_bound(rules: Rules) -> float:
    """Decimal logarithm of a number that positions, walls without colours, cannot exceed.

    Stones of a player are alike; any set of inner edges may be walled; any player may be to move.
    """
    edges = 2 * rules.size * (rules.size - 1)
    stones = [rules.stones] * rules.players
    return _arrangements(rules.size**2, stones) + math.log10(2**edges * rules.players)


def lower_bound(rules: Rules) -> float:
    """Decimal logarithm of the number of positions in which all stones are placed, all reached."""
    placed = [rules.order.count(player) for player in range(rules.players)]
    return _arrangements(rules.size**2 - len(rules.start), placed)


def _arrangements(cells: int, stones: Sequence[int]) -> float:
    """Decimal logarithm of the number of ways that players' stones stand on cells."""
    total = 0.0
    for count in stones:
        total += math.log10(math.comb(cells, count))
        cells -= count
    return total


def _position_table(presets: Sequence[str], exact: int) -> Table:
    rows = [{"rules": "3×3, one stone each", "low": f"exactly {exact:,}"}]
    for name in presets:
        low, high = lower_bound(named(name)), upper_bound(named(name))
        ends = {"low": f"at least {low:.2f}", "high": f"at most {high:.2f}"}
        rows.append({"rules": f"`{name}`", **ends})
    title = "Positions that a game goes on from, up to the colours of walls, as powers of ten"
    return Table(title, [["rules", "rules"], ["positions", "low"], ["", "high"]], rows)


if __name__ == "__main__":
    lab.start(main, Scale, __file__)
