"""Does a network see a small board inside a large grid, by the plane of playable cells or by walls?

A network of 7x7 boards can be asked about a 5x5 one in three ways: on a grid of 5x5, in the corner
of a 7x7 grid of which a plane shows the playable cells, or on a board of 7x7 on which walls cut the
corner off. The game is the same in all three once the stones are placed: the cells beyond the walls
are out of reach and belong to nobody. The same weights are asked about every position of play of
random games, and play games against themselves in which one side sees walls and the other the
smaller grid; each opening is played twice, with the sides changed. The intervals count games
(Wilson); all games of a network are of one training.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from train.experiments.lib import stats
from train.experiments.lib.pages import Report
from train.experiments.lib.stats import MatchCounts
from train.experiments.lib.work import Work, check_network
from train.players.networks import load_network
from train.players.registry import make_player
from train.ratings.pool import identity
from train.runtime.display import Table
from train.runtime.host import fetch
from train.search.config import as_player
from train.search.evaluator import evaluator_for
from train.search.search import make_search
from wallgo_jax.board import bitboard
from wallgo_jax.board.geometry import PLAYS_PER_STONE
from wallgo_jax.game import actions, chance, referee
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State, initial_state

KINDS = OWN, PLANE, WALLS = "grid of its own", "plane of playable cells", "padding walls"


class Views(NamedTuple):
    """The same boards as three kinds of states, in the order of KINDS, or what belongs to these."""

    own: Any
    plane: Any
    walls: Any


def report(work: Work) -> Report:
    """Ask each network, and match it with itself."""
    scale, networks, rows = work.scale.padding, [], []
    order = tuple(range(2)) * scale.stones
    rules = Rules(size=scale.size, stones=scale.stones, order=order)
    for name in scale.players:
        settings = {
            "player": identity(name, make_player(name, rules, transfer=True)),
            "rules": rules.to_dict(),
            "grid": scale.grid,
            "games": scale.games,
            "simulations": scale.simulations,
            "seed": work.seed,
        }
        answers = work.cached("padding", settings, functools.partial(_ask, work, name, rules))
        networks.append({"player": name} | answers)
        for kind, figures in answers["kinds"].items():
            shares = "same_best", "policy_distance", "same_searched"
            best, apart, searched = (stats.percent(figures[share]) for share in shares)
            row = [f"`{name}`, {answers['positions']:,} positions", kind, best, apart]
            row += [f"{figures['value_distance']:.3f}", searched, ""]
            if kind == WALLS:
                meeting = MatchCounts(WALLS, OWN, 0, *answers["walls_against_own"])
                row[-1] = "{} ({}) of {}".format(*meeting.estimate.cells(), meeting.games)
            rows.append(row)
    heads = ["network", "shown by", "same best move", "policies apart", "values apart"]
    heads += ["same move by search", "won against its own grid"]
    table = Table("The same weights and positions, shown in three ways", heads, rows)
    return Report("Small boards inside a large grid", [table], {"networks": networks})


def first_views(rules: Rules, grid: int, games: int) -> Views:
    """New games [G]; on a board of the grid's size walls cut off the corner of the rules' board.

    Both players have built none of these walls: they count as the first's, which no rule reads.
    """
    large = Rules.from_dict(rules.to_dict() | {"size": grid})
    state, size = initial_state(large), rules.size
    below = [(size - 1) * grid + column for column in range(size)]
    right = [row * grid + size - 1 for row in range(size)]
    walls = np.stack([bitboard.constant(cells, grid) for cells in (below, right)])
    walls = jnp.asarray(state.position.walls).at[0].set(walls)
    cut_off = State(state.variant, state.position._replace(walls=walls))
    one = Views(initial_state(rules), initial_state(rules, grid=grid), cut_off)
    return jax.tree.map(lambda x: jnp.broadcast_to(x, (games, *jnp.shape(x))), one)


def step_views(views: Views, slot: jax.Array) -> tuple[Views, Views]:
    """The boards [G] after slots int32[G] of the large grid, and their rewards float32[G, P], zeros
    until the end; finished boards stay."""
    own, (size, grid) = views.own, (views.own.grid, views.plane.grid)

    def step(view: State, slot: jax.Array) -> tuple[State, jax.Array]:
        after, rewards = referee.play(view, slot)
        over = view.position.terminated
        position = jax.tree.map(
            lambda old, new: jnp.where(over, old, new), view.position, after.position
        )
        return State(view.variant, position), jnp.where(over, 0.0, rewards)

    placing = jax.vmap(actions.in_setup)(own.variant, own.position)
    small = jnp.where(placing, slot // grid * size + slot % grid, slot)
    slots = zip(views, (small, slot, slot), strict=True)
    after, rewards = zip(*(jax.vmap(step)(view, chosen) for view, chosen in slots), strict=True)
    return Views(*after), Views(*rewards)


def random_positions(rules: Rules, grid: int, *, games: int, seed: int) -> tuple[Views, jax.Array]:
    """The positions [T, G] of random games, and bool[T, G]: which of them are of play, and not
    over."""

    def ply(views: Views, key: jax.Array) -> Any:
        legal = jax.vmap(actions.legal_slots)(views.plane)
        bits = jax.random.bits(key, (games,), jnp.uint32)
        after, _ = step_views(views, jax.vmap(chance.choose)(bits, legal))
        position = views.plane.position
        is_play = ~jax.vmap(actions.in_setup)(views.plane.variant, position)
        return after, (views, is_play & ~position.terminated)

    keys = jax.random.split(jax.random.key(seed), rules.max_plies)
    return jax.jit(lambda views: jax.lax.scan(ply, views, keys)[1])(first_views(rules, grid, games))


def _ask(work: Work, name: str, rules: Rules) -> dict[str, Any]:
    """The answers of a network by the kinds that it can be shown."""
    scale, trained = work.scale.padding, load_network(name)
    config = trained.config
    check_network(name)
    kinds = KINDS if config.network.playable else (OWN, WALLS)
    evaluate = evaluator_for(config.network, rules)
    search = make_search(evaluate, as_player(config.search, scale.simulations), explores=False)
    heads = jax.jit(lambda states: evaluate(trained.variables, states))
    move = jax.jit(lambda states: search(trained.variables, states, jax.random.key(0)).slot)
    shown, is_play = random_positions(rules, scale.grid, games=scale.games, seed=work.seed)
    plies = [ply for ply in range(rules.max_plies) if bool(is_play[ply].any())]
    answers: dict[str, list[tuple[np.ndarray, ...]]] = {kind: [] for kind in kinds}
    with work.task(f"{name}: positions", len(plies), "plies") as on_progress:
        for number, ply in enumerate(plies, start=1):
            views = jax.tree.map(lambda x, ply=ply: x[ply], shown)
            for kind in kinds:
                states = views[KINDS.index(kind)]
                (logits, value), slot = fetch((heads(states), move(states)))
                policy = np.asarray(jax.nn.softmax(logits))[:, : scale.stones * PLAYS_PER_STONE]
                answers[kind].append((policy, value[:, 0], slot))
            on_progress(number)
    mask = np.asarray(is_play)[plies]
    masked = {
        kind: [np.stack(part)[mask] for part in zip(*each, strict=True)]
        for kind, each in answers.items()
    }
    with work.task(f"{name}: games", 1, "matches") as on_progress:
        counts = _play(work, rules, move)
        on_progress(1)
    return {
        "positions": int(mask.sum()),
        "kinds": {kind: _compare(masked[kind], masked[OWN]) for kind in kinds},
        "walls_against_own": counts,
    }


def _compare(one: list[np.ndarray], other: list[np.ndarray]) -> dict[str, float]:
    """Differences between two kinds of answers about the same positions."""
    (policy, value, slot), (own_policy, own_value, own_slot) = one, other
    return {
        "same_best": float((policy.argmax(axis=1) == own_policy.argmax(axis=1)).mean()),
        "policy_distance": float(np.abs(policy - own_policy).sum(axis=1).mean() / 2),
        "value_distance": float(np.abs(value - own_value).mean()),
        "same_searched": float((slot == own_slot).mean()),
    }


def _play(work: Work, rules: Rules, move: Any) -> list[int]:
    """Won, drawn and lost games of the side that sees padding walls; both games of a pair begin
    with the same random placements."""
    games = 2 * (work.scale.padding.games // 2)

    @jax.jit
    def place(views: Views, key: jax.Array) -> Views:
        bits = jnp.repeat(jax.random.bits(key, (games // 2,), jnp.uint32), 2)
        legal = jax.vmap(actions.legal_slots)(views.plane)
        return step_views(views, jax.vmap(chance.choose)(bits, legal))[0]

    views = first_views(rules, work.scale.padding.grid, games)
    for key in jax.random.split(jax.random.key(work.seed + 1), len(rules.order)):
        views = place(views, key)
    sees_walls = jnp.arange(games) % 2  # the player of each game that does
    step, won = jax.jit(step_views), np.zeros(games)
    for _ in range(rules.max_plies - len(rules.order)):
        position = views.own.position
        if bool(position.terminated.all()):
            break
        by_walls = position.player == sees_walls
        views, rewards = step(views, jnp.where(by_walls, move(views.walls), move(views.own)))
        won += np.asarray(rewards.own)[np.arange(games), np.asarray(sees_walls)]
    return [int((won > 0).sum()), int((won == 0).sum()), int((won < 0).sum())]
