"""Size of the game: branching, length, estimates of the game tree, counts of positions.

The paper estimates about 10^87 for 7×7 and does not say how ("WallZero", Chen, Arjonilla, Wu and
Wu, slide "Game Tree Complexity").

A leaf of the game tree is a whole game. Knuth ("Estimating the efficiency of backtrack programs",
1975): in a random descent, the product of the numbers of legal actions has the number of leaves as
its mean; over random play it estimates the number of all games without bias, but from finitely many
games it comes out too small, because rare games hold most of the sum. A typical game is the mean of
the product's logarithm. Over strong play neither counts the tree; they say how many choices a good
game passes.

Positions of 3×3 are counted by enumerating them; the lower bound of other boards is the number of
placements, the upper bound all sets of stones and walls.

The intervals count games; all games of a player are of one training.
"""

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from train.experiments.lib.pages import Picture, Report
from train.experiments.lib.work import Work, selfplay_games, states_of
from train.metrics.intervals import Interval, intervals_figure
from train.runtime.devices import broadcast_boards
from train.runtime.display import Table
from train.runtime.host import fetch, in_batches
from train.solver.positions import reachable_levels
from wallgo_jax.game import actions, chance, referee
from wallgo_jax.game.rules import Rules, named
from wallgo_jax.game.state import Position, State, initial_position, make_variant

PAPER_EXPONENT = 87
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


Sizes = Mapping[str, Mapping[str, TreeSize]]
"""By rules, then by kind of play."""


def report(work: Work) -> Report:
    """Measure the size of each rule set."""
    scale = work.scale.size
    sizes = {name: {"random play": _random_size(work, name)} for name in scale.rules}
    for player in scale.players:
        settings = {"simulations": scale.simulations, "games": scale.strong_games}
        games = selfplay_games(work, player, **settings)
        by_rules = next((name for name in scale.rules if named(name) == games.rules), player)
        examples = games.examples()
        game, count = np.asarray(examples.game), len(games.plies)
        (legal,) = in_batches(lambda some: (_legal_of(some),), states_of(examples), 8 * _BATCH)
        logs = np.bincount(game, np.log10(np.maximum(legal, 1)), minlength=count)
        sums = np.bincount(game, legal, minlength=count).astype(int)
        descents = Descents(logs, np.bincount(game, minlength=count), sums)
        strong = size_of(descents, seed=work.seed)
        sizes.setdefault(by_rules, {})[f"{player}@{scale.simulations}"] = strong
    # Reachable positions of 3×3 that a game goes on from, by plies played.
    counts = work.cached(
        "positions",
        {"rules": SOLVED.to_dict()},
        lambda: {"by_ply": [len(level.position.ply) for level in reachable_levels(SOLVED)]},
    )
    by_play = [(rules, *each) for rules, kinds in sizes.items() for each in kinds.items()]
    figure = intervals_figure(
        [Interval(f"{rules}, {play}", *size.knuth) for rules, play, size in by_play],
        title="Size of the game tree by Knuth's estimator",
        x_label="decimal exponent of the number of games; dashed: the paper's 87",
        middle=PAPER_EXPONENT,
    )
    heads = ("legal actions a ply", "plies a game", "exponent of a typical game")
    heads += ("exponent by Knuth's estimate",)
    rows = [
        [f"`{rules}`", play, f"{size.games:,}"]
        + [f"{middle:.2f} ({low:.2f} to {high:.2f})" for middle, low, high in size[1:]]
        for rules, play, size in by_play
    ]
    title = "The game tree, as powers of ten, with 95 % intervals"
    trees = Table(title, ("rules", "play", "games", *heads), rows)
    return Report(
        title="How large the game is",
        tables=[trees, _position_table(scale.rules, sum(counts["by_ply"]))],
        pictures=[Picture("game_tree", "intervals by resampling games", figure)],
        data={
            "estimates": sizes,
            "paper_exponent": PAPER_EXPONENT,
            "positions_of_3x3": counts,
        },
    )


def _random_size(work: Work, name: str) -> TreeSize:
    rules, games, seed = named(name), work.scale.size.random_games, work.seed

    def make() -> list[Any]:
        parts = []
        with work.task(f"random games of {name}", games, "games") as on_progress:
            for first in range(0, games, _BATCH):
                parts.append(random_descents(rules, min(_BATCH, games - first), seed, first))
                on_progress(min(first + _BATCH, games))
        joined = Descents(*(np.concatenate(part) for part in zip(*parts, strict=True)))
        return list(size_of(joined, seed=seed))

    settings = {"rules": rules.to_dict(), "games": games, "seed": seed}
    return TreeSize(*work.cached(f"random-play-{name}", settings, make))


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
    rows = [["3×3, one stone each", f"exactly {exact:,}", f"{math.log10(exact):.2f}", ""]]
    for name in presets:
        low, high = lower_bound(named(name)), upper_bound(named(name))
        rows.append([f"`{name}`", "bounds", f"at least {low:.2f}", f"at most {high:.2f}"])
    title = "Positions that a game goes on from, up to the colours of walls"
    return Table(title, ("rules", "positions", "exponent", ""), rows)
