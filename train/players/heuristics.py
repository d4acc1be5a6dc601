"""The distance heuristics of the HKOI contest: it guesses who will own each cell and adds up.

After Ka Hei Wai, "Wall Go Sharing" (Hong Kong Olympiad in Informatics, AI Competition, 2025-06-30).
A cell has a weight by its distances, in steps round walls, from the nearest stone of two sides: a
player's own, and the other's.

    only one side gets there                     sure_own / sure_other
    one side gets there, the other is far off    semi_sure_own / semi_sure_other
    both get there                               guess_weight * formula, no further from 0 than
                                                 a semi-sure cell
    nobody gets there, or both are far off       0

Far off is `boundary` or more steps away. A side that has no stone yet counts as one step less from
every cell, so that the first placement looks for the middle.

With more than two players a cell counts for the side that is strictly nearer than every other, by
its distance and that of the nearest rival; where two sides are nearest it counts for nobody.

B boards, A slots, P players, N cells.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import chex
import jax
import jax.numpy as jnp

from train.config.run import HeuristicConfig
from train.network import MASKED
from train.players.basic import Player, act_by, make_choice_search
from train.search.evaluator import Evaluation, Evaluator, side_of
from train.search.sequential_halving import are_largest
from wallgo_jax.board import bitboard
from wallgo_jax.board.bitboard import Cells, Exits
from wallgo_jax.board.fusion import fusion_barrier
from wallgo_jax.game import actions, chance, referee
from wallgo_jax.game import terrain as terrain_lib
from wallgo_jax.game.state import State
from wallgo_jax.game.terrain import BoardAnalysis

DECIDED = 1000.0
"""Score of a won game, more than any board can give; its negative for a lost one."""

_GUESSES: dict[str, Callable[[int, int], float]] = {
    "ethen": lambda own, other: 0.9 * (other - own) / max(own, other),
    "wjx": lambda own, other: 1 - 2 * own / (own + other),
}


def score(state: State, player: jax.Array, config: HeuristicConfig) -> jax.Array:
    """float32[]: the sum of all cells' weights for one player, in cells; a finished game counts
    like any other. Of two players' games cells are counted by weight as sets, not weighed one by
    one.
    """
    chex.assert_rank(state.position.ply, 0)
    if state.position.stones.shape[0] > 2:
        return referee.reward_of(_scores_among(state, config), player)
    weights = _weights_between(state, player, config)
    return functools.reduce(jnp.add, (weight * _count(cells) for weight, cells in weights))


def cell_weights(state: State, player: jax.Array, config: HeuristicConfig) -> jax.Array:
    """float32[grid, grid]: each cell's weight for one of two players; their sum is its `score`."""
    chex.assert_shape(state.position.stones, (2, None))
    grid = state.grid
    parts = [
        weight * bitboard.to_mask(bitboard.pack(cells), grid)
        for weight, cells in _weights_between(state, player, config)
    ]
    return functools.reduce(jnp.add, parts).reshape(grid, grid)


def _weights_between(
    state: State, player: jax.Array, config: HeuristicConfig
) -> Iterator[tuple[float, Cells]]:
    """Weights for one of two players, each with its cells."""
    grid, terrain = state.grid, terrain_lib.read_terrain(*state)
    nothing = bitboard.empty(grid)
    own = bitboard.union(
        *(bitboard.where(player == p, cells, nothing) for p, cells in enumerate(terrain.stones))
    )
    other = bitboard.difference(terrain.occupied, own)
    exits = terrain.free_exits if config.stones_block else terrain.exits
    playable = bitboard.unpack(state.variant.playable)
    near_own = _discs(own, exits, playable, config.boundary, grid=grid)
    near_other = _discs(other, exits, playable, config.boundary, grid=grid)
    all_own, all_other = bitboard.flood((near_own[-1], near_other[-1]), exits, grid)
    yield config.sure_own, bitboard.difference(all_own, all_other)
    yield config.sure_other, bitboard.difference(all_other, all_own)
    beyond_other = bitboard.difference(all_other, near_other[-1])
    beyond_own = bitboard.difference(all_own, near_own[-1])
    yield config.semi_sure_own, bitboard.intersection(near_own[-1], beyond_other)
    yield config.semi_sure_other, bitboard.intersection(near_other[-1], beyond_own)
    rings_own, rings_other = _rings(near_own), _rings(near_other)
    for weight, pairs in _make_guesses(config).items():
        both = (bitboard.intersection(rings_own[i], rings_other[j]) for i, j in pairs)
        yield weight, bitboard.union(*both)


def _scores_among(state: State, config: HeuristicConfig) -> jax.Array:
    """float32[P]: `score` where more than two play: each cell counts for the side that is strictly
    nearer than every other, for a player its own cells and against it those of every rival."""
    grid, terrain = state.grid, terrain_lib.read_terrain(*state)
    exits = terrain.free_exits if config.stones_block else terrain.exits
    playable = bitboard.unpack(state.variant.playable)
    near = [_discs(each, exits, playable, config.boundary, grid=grid) for each in terrain.stones]
    reached = bitboard.flood(tuple(discs[-1] for discs in near), exits, grid)
    # Else XLA on CPU computes the discs of a batch again for each pair of distances.
    near, reached = fusion_barrier((near, reached), token=state.position.ply < 0)
    own, other = [], []  # sums of the weights of a side's cells, as its own and as a rival's
    for side, discs in enumerate(near):
        others = [number for number in range(len(near)) if number != side]
        near_others = [
            bitboard.union(*(near[number][steps] for number in others))
            for steps in range(config.boundary)
        ]
        all_others = bitboard.union(*(reached[number] for number in others))
        sure = _count(bitboard.difference(reached[side], all_others))
        beyond = bitboard.difference(all_others, near_others[-1])
        semi_sure = _count(bitboard.intersection(discs[-1], beyond))
        mine = config.sure_own * sure + config.semi_sure_own * semi_sure
        theirs = config.sure_other * sure + config.semi_sure_other * semi_sure
        rings, rings_others = _rings(discs), _rings(near_others)
        for weight, pairs in _make_guesses(config).items():
            # A positive weight is of the nearer side's cells, a negative one of the other's.
            one, two = (rings, rings_others) if weight > 0 else (rings_others, rings)
            shared = [bitboard.intersection(one[i], two[j]) for i, j in pairs]
            part = weight * _count(bitboard.union(*shared))
            mine, theirs = (mine + part, theirs) if weight > 0 else (mine, theirs + part)
        own.append(mine)
        other.append(theirs)
    against = jnp.stack(other)
    return jnp.stack(own) + against.sum() - against


def _discs(
    stones: Cells, exits: Exits, playable: Cells, boundary: int, *, grid: int
) -> list[Cells]:
    """The cells within 0, 1, ... `boundary` - 1 steps; all of them within the last if a side has
    no stone."""
    discs = [stones]
    for _ in range(boundary - 1):
        discs.append(bitboard.union(discs[-1], bitboard.step(discs[-1], exits, grid)))
    discs[-1] = bitboard.where(bitboard.any_cell(stones), discs[-1], playable)
    return discs


def _rings(discs: list[Cells]) -> list[Cells]:
    """The cells exactly 0, 1, ... steps away."""
    inner = zip(discs[1:], discs, strict=False)
    return [discs[0], *(bitboard.difference(outer, smaller) for outer, smaller in inner)]


def _count(cells: Cells) -> jax.Array:
    return bitboard.count(cells).astype(jnp.float32)


def _make_guesses(config: HeuristicConfig) -> dict[float, list[tuple[int, int]]]:
    """The pairs of distances below the boundary, by the weight that they share, unless it is 0."""
    guesses: dict[float, list[tuple[int, int]]] = {}
    for own in range(config.boundary):
        for other in range(config.boundary):
            if own != other:
                guess = config.guess_weight * _GUESSES[config.formula](own, other)
                weight = min(max(guess, config.semi_sure_other), config.semi_sure_own)
                guesses.setdefault(round(weight, 9), []).append((own, other))
    guesses.pop(0.0, None)
    return guesses


def slot_scores(state: State, config: HeuristicConfig) -> jax.Array:
    """float32[A]: the mover's score after each legal slot, -inf elsewhere.

    Games that end are scored by their result alone: DECIDED times the mover's reward.
    """
    mover = state.position.player
    slots = state.num_slots

    def after(slot: jax.Array) -> jax.Array:
        return outcome(*referee.play(state, slot), mover, config)

    legal = actions.legal_slots(state)
    return jnp.where(legal, jax.vmap(after)(jnp.arange(slots)), -jnp.inf)


def outcome(
    state: State, rewards: jax.Array, player: jax.Array, config: HeuristicConfig
) -> jax.Array:
    """float32[]: a player's score after a ply that paid float32[P] rewards."""
    return jnp.where(
        state.position.terminated,
        DECIDED * referee.reward_of(rewards, player),
        score(state, player, config),
    )


@functools.cache
def make_heuristic_player(name: str, config: HeuristicConfig) -> Player:
    """Plays the highest score after one ply, at random among equals; its raw policy is that of
    `make_heuristic_evaluator`."""

    def judge(states: State) -> tuple[jax.Array, jax.Array]:
        scores = jax.vmap(lambda state: slot_scores(state, config))(states)
        return are_largest(scores), _logits_of(scores, config)

    report = make_choice_search(judge)
    return Player(name, (), act_by(report), report)


def _logits_of(scores: jax.Array, config: HeuristicConfig) -> jax.Array:
    return jnp.where(scores > -jnp.inf, scores / config.temperature, MASKED)


@functools.cache
def make_two_ply_player(name: str, config: HeuristicConfig) -> Player:
    """Make a player that looks two plies ahead.

    Of the `top_k` best slots after one ply it plays the one that leaves the next player's best
    reply worst, at random among equals.

    Where the mover moves again its own best ply counts, for it; of more players, each is taken to
    play against it.
    """

    @jax.jit
    def act(variables: Any, states: State, key: jax.Array) -> jax.Array:
        del variables
        first_bits, last_bits = jax.random.bits(key, (2, *states.position.ply.shape), jnp.uint32)
        choose = functools.partial(_two_ply_slot, config=config)
        return jax.vmap(choose)(states, first_bits, last_bits)

    return Player(name, (), act)


def _two_ply_slot(
    state: State, first_bits: jax.Array, last_bits: jax.Array, *, config: HeuristicConfig
) -> jax.Array:
    scores, mover = slot_scores(state, config), state.position.player
    lot = jax.random.permutation(jax.random.key(first_bits), jnp.arange(scores.shape[0]))
    slots = jnp.lexsort((lot, -scores))[: config.top_k].astype(jnp.int32)

    def value(slot: jax.Array) -> jax.Array:
        """The mover's after the next player's best reply; an end right after the ply counts
        double."""
        after, rewards = referee.play(state, slot)
        reply = slot_scores(after, config).max() * side_of(after.position.player, mover)
        won = 2 * DECIDED * referee.reward_of(rewards, mover)
        return jnp.where(after.position.terminated, won, reply)

    values = jnp.where(scores[slots] > -jnp.inf, jax.vmap(value)(slots), -jnp.inf)
    return slots[chance.choose(last_bits, are_largest(values))]


@functools.cache
def make_heuristic_evaluator(config: HeuristicConfig) -> Evaluator:
    """The heuristic in place of a network, for search.

    The logits are the scores after one ply over the temperature. A value is a squashed score, the
    mover's that halfway to its best ply. Of more than two players each has its own, less their
    mean, since rewards add up to zero, and divided by the largest where that is above 1.
    """

    def evaluate_board(state: State) -> Evaluation:
        mover, players = state.position.player, state.position.stones.shape[0]
        scores = slot_scores(state, config)
        logits = _logits_of(scores, config)
        if players == 2:
            still = score(state, mover, config)
            value = jnp.tanh((scores.max() + still) / 2 / config.scale)
            return Evaluation(logits, value * jnp.array([1.0, -1.0], jnp.float32))
        order = (mover + jnp.arange(players)) % players
        still = _scores_among(state, config)[order]
        values = jnp.tanh(still.at[0].add(scores.max()).at[0].divide(2) / config.scale)
        values -= values.mean()
        return Evaluation(logits, values / jnp.maximum(1, jnp.abs(values).max()))

    def evaluate(
        variables: Any, states: State, analysis: BoardAnalysis | None = None
    ) -> Evaluation:
        del variables, analysis
        return jax.vmap(evaluate_board)(states)

    return evaluate
