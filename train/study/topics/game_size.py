"""How large the game is: branching, length, estimates of the game tree, counts of positions.

Knuth ("Estimating the efficiency of backtrack programs", 1975): in a random descent of a tree, the
product of the numbers of children on the way has the number of leaves as its mean. A leaf of the
game tree is a whole game. The product of few descents is far from its mean, because most of the
mean comes from rare descents; so the mean of the product's logarithm stands beside it, which is
what a typical game multiplies to.

G games, T plies.
"""

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from train.runtime.devices import broadcast_boards
from train.runtime.host import fetch
from train.solver.reachable import reachable_levels
from train.study.frame.own_games import own_games
from train.study.frame.report import Picture, Report, Table
from train.study.frame.work import Work
from wallgo_jax.game import actions, chance, referee
from wallgo_jax.game.rules import Rules, named
from wallgo_jax.game.state import Position, State, Variant, initial_position, make_variant

PAPER_EXPONENT = 87
"""WallGo 7x7 in "WallZero" (Chen, Arjonilla, Wu, Wu), slide "Game Tree Complexity": about 10^87."""
SOLVED = Rules(size=3, stones=1, order=(0, 1))
_BATCH = 1024
_RESAMPLES = 1000


class Descents(NamedTuple):
    """What games tell of the tree that they are played in."""

    logs: np.ndarray  # float64[G], decimal logarithm of the product of legal slots over the game
    plies: np.ndarray  # int[G]
    legal: np.ndarray  # int[G], the sum of legal slots over the game


Figure = tuple[float, ...]
"""A figure and the ends of its 95 % interval."""


class Estimate(NamedTuple):
    """Figures of one kind of play."""

    games: int
    branching: Figure  # legal slots a ply
    length: Figure
    typical: Figure  # mean decimal logarithm of the product
    knuth: Figure  # decimal logarithm of the product's mean


def report(work: Work) -> Report:
    """Measure the size of each rule set."""
    scale, found = work.scale.size, {}
    for name in scale.rules:
        found[name] = {"random play": _random_estimate(work, named(name), name)}
    for player in scale.players:
        games = own_games(work, player, simulations=scale.simulations, games=scale.strong_games)
        by_rules = next((name for name in scale.rules if named(name) == games.rules), player)
        examples = games.examples()
        game = np.asarray(examples.game)
        legal = _legal_counts(examples.variant, examples.position, game)
        strong = estimate_of(_joined(legal, game, len(games.plies)), seed=work.scale.seed)
        found.setdefault(by_rules, {})[f"{player}@{scale.simulations}"] = strong
    counts = work.pieces.keep("positions", {"rules": SOLVED.to_dict()}, _solved_counts)
    return Report(
        title="How large the game is",
        text=_text(found, counts),
        tables=[_tree_table(found), _position_table(scale.rules, counts)],
        pictures=[_picture(found)],
        data={
            "estimates": {
                rules: {play: estimate._asdict() for play, estimate in kinds.items()}
                for rules, kinds in found.items()
            },
            "paper_exponent": PAPER_EXPONENT,
            "positions_of_3x3": counts,
        },
    )


def _random_estimate(work: Work, rules: Rules, name: str) -> Estimate:
    games, seed = work.scale.size.random_games, work.scale.seed
    settings = {"rules": rules.to_dict(), "games": games, "seed": seed}

    def make() -> dict[str, Any]:
        parts = []
        with work.task(f"random games of {name}", games, "games") as on_progress:
            for first in range(0, games, _BATCH):
                parts.append(random_descents(rules, min(_BATCH, games - first), seed, first))
                on_progress(min(first + _BATCH, games))
        logs, plies, legal = (np.concatenate(part) for part in zip(*parts, strict=True))
        return estimate_of(Descents(logs, plies, legal), seed=seed)._asdict()

    kept = work.pieces.keep(f"random-{name}", settings, make)
    return Estimate(
        kept["games"], *(tuple(kept[field]) for field in Estimate._fields if field != "games")
    )


def random_descents(rules: Rules, games: int, seed: int, first: int = 0) -> Descents:
    """Play random games, each legal slot as likely as any other.

    Args:
      rules: of the games.
      games: at most 1,024 are played side by side.
      seed: random seed.
      first: number of the first game; another gives other games.
    """
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
def _legal_of(variant: Variant, position: Position) -> jax.Array:
    return _bits(jax.vmap(actions.legal_words)(State(variant, position)))


def _legal_counts(variant: Variant, position: Position, game: np.ndarray) -> np.ndarray:
    """int32[N]: legal slots of positions [N], of the variants [G] of their games."""
    parts = []
    for first in range(0, len(game), _BATCH * 8):
        place = np.arange(first, first + _BATCH * 8) % len(game)  # one shape, one program
        own = jax.tree.map(lambda x, place=place: x[game[place]], variant)
        some = jax.tree.map(lambda x, place=place: x[place], position)
        parts.append(fetch(_legal_of(own, some)))
    return np.concatenate(parts)[: len(game)]


def _joined(legal: np.ndarray, game: np.ndarray, games: int) -> Descents:
    return Descents(
        np.bincount(game, np.log10(np.maximum(legal, 1)), minlength=games),
        np.bincount(game, minlength=games),
        np.bincount(game, legal, minlength=games).astype(int),
    )


def estimate_of(descents: Descents, *, seed: int) -> Estimate:
    """Estimates with 95 % intervals by resampling whole games (percentile bootstrap)."""
    rng, games = np.random.default_rng(seed), len(descents.logs)
    samples = []
    for _ in range(_RESAMPLES):
        samples.append(_figures(descents, rng.integers(games, size=games)))
    low, high = np.percentile(np.array(samples), [2.5, 97.5], axis=0)
    middle = _figures(descents, np.arange(games))
    return Estimate(games, *(tuple(map(float, row)) for row in zip(middle, low, high, strict=True)))


def _figures(descents: Descents, chosen: np.ndarray) -> tuple[float, float, float, float]:
    logs, plies = descents.logs[chosen], descents.plies[chosen]
    most = float(logs.max())
    knuth = most + math.log10(float(np.mean(10.0 ** (logs - most))))
    branching = float(descents.legal[chosen].sum() / plies.sum())
    return branching, float(plies.mean()), float(logs.mean()), knuth


def _solved_counts() -> dict[str, Any]:
    """Reachable positions of 3×3 that a game goes on from, by plies played."""
    return {"by_ply": [len(level.position.ply) for level in reachable_levels(SOLVED)]}


def upper_bound(rules: Rules) -> float:
    """Decimal logarithm of a number that positions, walls without colours, cannot exceed.

    Stones of a player are alike; any set of inner edges may be walled; any player may be to move.
    """
    cells, total = rules.size**2, 0.0
    for player in range(rules.players):
        total += math.log10(math.comb(cells - player * rules.stones, rules.stones))
    edges = 2 * rules.size * (rules.size - 1)
    return total + edges * math.log10(2) + math.log10(rules.players)


def lower_bound(rules: Rules) -> float:
    """Decimal logarithm of the number of positions in which all stones are placed, all reached."""
    cells, total = rules.size**2 - len(rules.start), 0.0
    for player in range(rules.players):
        own = rules.order.count(player)
        total += math.log10(math.comb(cells, own))
        cells -= own
    return total


def _tree_table(found: dict[str, dict[str, Estimate]]) -> Table:
    rows = []
    for rules, kinds in found.items():
        for play, each in kinds.items():
            spans = (_span(figure) for figure in each[1:])
            rows.append((f"`{rules}`", play, f"{each.games:,}", *spans))
    heads = (
        "rules",
        "play",
        "games",
        "legal actions a ply",
        "plies a game",
        "exponent of a typical game",
        "exponent by Knuth's estimate",
    )
    return Table("The game tree, as powers of ten, with 95 % intervals", heads, tuple(rows))


def _span(figure: Figure) -> str:
    return f"{figure[0]:.2f} ({figure[1]:.2f} to {figure[2]:.2f})"


def _position_table(presets: tuple[str, ...], counts: dict[str, Any]) -> Table:
    exact = sum(counts["by_ply"])
    rows = [("3×3, one stone each", f"exactly {exact:,}", f"{math.log10(exact):.2f}", "")]
    for name in presets:
        rules = named(name)
        low, high = lower_bound(rules), upper_bound(rules)
        rows.append((f"`{name}`", "bounds", f"at least {low:.2f}", f"at most {high:.2f}"))
    heads = ("rules", "positions", "exponent", "")
    return Table(
        "Positions that a game goes on from, up to the colours of walls", heads, tuple(rows)
    )


def _text(found: dict[str, dict[str, Estimate]], counts: dict[str, Any]) -> list[str]:
    lines = [
        f"The paper estimates about 10^{PAPER_EXPONENT} for 7×7 and does not say how (“WallZero”, "
        "Chen, Arjonilla, Wu and Wu, slide “Game Tree Complexity”).",
        "A leaf of the game tree is a whole game. Knuth's estimate is the mean, over games, of the "
        "product of the numbers of legal actions; over random play it estimates the number of all "
        "games without bias, but from finitely many games it comes out too small, because rare "
        "games hold most of the sum. A typical game is the mean of the product's logarithm. Over "
        "strong play neither counts the tree; they say how many choices a good game passes.",
        "Positions of 3×3 are counted by enumerating them; the lower bound of other boards is the "
        "number of placements, the upper bound all sets of stones and walls.",
        "The intervals count games; all games of a player are of one training.",
    ]
    for rules, kinds in found.items():
        for play, each in kinds.items():
            if rules.startswith("wallzero"):
                low, high = each.typical[1], each.knuth[2]
                side = "within" if low <= PAPER_EXPONENT <= high else "outside"
                lines.append(
                    f"`{rules}`, {play}: 10^{PAPER_EXPONENT} lies {side} the span from a typical "
                    f"game to Knuth's estimate ({low:.1f} to {high:.1f})."
                )
    return lines


def _picture(found: dict[str, dict[str, Estimate]]) -> Picture:
    from train.metrics.intervals import Interval, intervals_figure

    rows = [
        Interval(f"{rules}, {play}", each.knuth[0], each.knuth[1], each.knuth[2])
        for rules, kinds in found.items()
        for play, each in kinds.items()
    ]
    figure = intervals_figure(
        rows,
        title="Size of the game tree by Knuth's estimator",
        x_label="decimal exponent of the number of games; dashed: the paper's 87",
        middle=PAPER_EXPONENT,
    )
    return Picture("game_tree", "intervals by resampling games", figure)
