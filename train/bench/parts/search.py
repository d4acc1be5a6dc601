"""Simulations a second of games played by search, without a network and with one.

B boards, A slots, P players.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from train.bench.harness.play import count_set
from train.bench.harness.program import Program, compile_program
from train.bench.harness.timing import CHECKSUM, Bench
from train.bench.parts.games import core_game
from train.bench.parts.public import (
    make_public_evaluator,
    make_public_network_evaluator,
    make_public_search,
)
from train.config import RunConfig
from train.network import MASKED, POLICY_PLANES, NetworkConfig, Output, cast_weights
from train.network.build import network_for, observer_for
from train.runtime.devices import AXIS, BY_BOARD, EVERYWHERE, Devices, broadcast_boards
from train.runtime.host import fetch
from train.search.config import SearchConfig
from train.search.evaluator import (
    Evaluation,
    Evaluator,
    evaluator_for,
    legal_slots,
    make_evaluator,
)
from train.search.search import Search, SearchResult, make_search
from wallgo_jax.game import actions, chance, referee
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import Position, State, Variant, initial_position, make_variant
from wallgo_jax.game.terrain import BoardAnalysis

WITHOUT, WITH = "no network", "network"
UNIFORM, NETWORK = f"search, {WITHOUT}", f"search, {WITH}"
PLANES = "search, planes alone"
MCTX, MCTX_NETWORK = f"mctx, slots, {WITHOUT}", f"mctx, slots, {WITH}"
PUBLIC, PUBLIC_NETWORK = f"mctx, public actions, {WITHOUT}", f"mctx, public actions, {WITH}"
SPREAD_PLIES = 300
"""Random plies after which boards that began together stand anywhere in their games."""


def make_uniform_evaluator(*, players: int) -> Evaluator:
    """Give all legal slots the same logit and everybody the value 0: only the search costs time."""

    def evaluate(
        variables: Any, states: State, analysis: BoardAnalysis | None = None
    ) -> Evaluation:
        del variables
        legal = legal_slots(states, analysis)
        return Evaluation(jnp.where(legal, 0.0, MASKED), jnp.zeros((legal.shape[0], players)))

    return evaluate


def make_planes_evaluator(config: NetworkConfig, *, players: int) -> Evaluator:
    """Show states to a network that answers with zeros: the search and the planes cost time."""

    def answer(variables: Any, planes: jax.Array) -> Output:
        del variables
        # Never true, but all planes are needed to know it.
        odd = jnp.where(planes.any(axis=3).sum(axis=(1, 2)) > 10**6, 1.0, 0.0)
        policy = jnp.broadcast_to(odd[:, None, None, None], (*planes.shape[:3], POLICY_PLANES))
        value = jnp.broadcast_to(odd[:, None], (len(odd), players))
        return Output(policy, value, result=None, ownership=None, margin=None, reply=None)

    network = network_for(config, players)._replace(evaluate=answer)
    return make_evaluator(network, observer_for(config))


class Searcher(NamedTuple):
    """A search by name, with the variables that its evaluator reads."""

    name: str
    search: Search
    variables: Any


def searcher(kind: str, config: RunConfig, simulations: int) -> Searcher:
    """A search by its name (UNIFORM, PLANES, NETWORK, those of mctx), in games of a config's
    rules."""
    rules = config.rules
    players = rules.players
    options = dataclasses.replace(config.search, simulations=simulations, first_simulations=0)
    network, variables = network_for(config.network, players), ()
    if kind in (NETWORK, MCTX_NETWORK, PUBLIC_NETWORK):
        variables = cast_weights(network.init(jax.random.key(0)), config.network)
    if kind in (PUBLIC, PUBLIC_NETWORK):
        options = SearchConfig(
            simulations=simulations, max_considered_actions=options.max_considered_actions
        )
        evaluate = (
            make_public_evaluator(players=players)
            if kind == PUBLIC
            else make_public_network_evaluator(network, planes=config.network.planes)
        )
        return Searcher(kind, make_public_search(evaluate, options), variables)
    if kind in (MCTX, MCTX_NETWORK):
        options = dataclasses.replace(options, engine="mctx", rounds=False)
    if kind in (UNIFORM, MCTX):
        evaluate = make_uniform_evaluator(players=players)
    elif kind == PLANES:
        evaluate = make_planes_evaluator(config.network, players=players)
    else:
        evaluate = evaluator_for(config.network, rules)
    return Searcher(kind, make_search(evaluate, options, explores=True), variables)


def make_bench(
    found: Searcher, rules: Rules, boards: int, simulations: int, devices: Devices
) -> Bench:
    """Compile moves by a search on that number of boards, shared by the devices."""
    variant, positions = spread_boards(rules, boards, devices)
    everywhere = devices.sharding(EVERYWHERE)
    variables = jax.device_put(found.variables, everywhere)
    key = jax.device_put(jax.random.key(0), everywhere)
    arguments = (variables, variant, positions, key, np.int32(1))
    compiled = compile_moves(found.search, arguments, devices)
    held, calls = [positions], 0

    def run(length: int) -> dict[str, float]:
        nonlocal calls
        calls += 1
        call_key = jax.device_put(jax.random.key(calls), everywhere)
        held[0], checksum = compiled.call(variables, variant, held[0], call_key, np.int32(length))
        checksum = int(fetch(checksum))
        moves = boards * length
        return {"simulations": moves * simulations, "moves": moves, CHECKSUM: checksum}

    return Bench(found.name, boards, run, compiled.stats)


def compile_moves(search: Search, arguments: Sequence[Any], devices: Devices) -> Program:
    """Compile `make_moves` for arguments or their shapes; consumes the positions."""
    program = devices.per_device(
        make_moves(search),
        (EVERYWHERE, BY_BOARD, BY_BOARD, EVERYWHERE, EVERYWHERE),
        (BY_BOARD, EVERYWHERE),
    )
    return compile_program(program, arguments, donate=(2,))


def make_moves(search: Search) -> Callable[..., tuple[Position, jax.Array]]:
    """Play by search: (variables, variant [B], positions [B], key, moves) -> positions [B] and a
    checksum of the results, uint32[]."""

    def moves(variables: Any, variant: Variant, positions: Position, key: jax.Array, length: Any):
        key = jax.random.fold_in(key, jax.lax.axis_index(AXIS))

        def move(index: jax.Array, carry: tuple[Position, jax.Array]):
            positions, checksum = carry
            states = State(variant, positions)
            found = search(variables, states, jax.random.fold_in(key, index))
            after, _ = jax.vmap(referee.play)(states, found.slot)
            sums = found.slot.sum(dtype=jnp.uint32) + count_set(found.policy)
            fresh = jax.vmap(referee.restart_if_over)(after)
            return fresh.position, checksum + sums + count_set(found.value)

        positions, checksum = jax.lax.fori_loop(0, length, move, (positions, jnp.uint32(0)))
        return positions, jax.lax.psum(checksum, AXIS)

    return moves


def spread_boards(rules: Rules, boards: int, devices: Devices) -> tuple[Variant, Position]:
    """Boards [B] that stand anywhere in their games, after SPREAD_PLIES random plies."""
    game, own = core_game(rules, on_bits=True), boards // devices.count

    def spread(key: jax.Array) -> tuple[Variant, Position]:
        key = jax.random.fold_in(key, jax.lax.axis_index(AXIS))
        variant = broadcast_boards(make_variant(rules), own)

        def ply(positions: Position, ply_key: jax.Array) -> tuple[Position, None]:
            bits = jax.random.bits(ply_key, (own,), jnp.uint32)
            after = jax.vmap(game.step)(positions, jax.vmap(game.act)(positions, bits))
            fresh = jax.vmap(referee.restart_if_over)(State(variant, after))
            return fresh.position, None

        keys = jax.random.split(key, SPREAD_PLIES)
        first = jax.vmap(initial_position)(variant)
        return variant, jax.lax.scan(ply, first, keys)[0]

    program = devices.per_device(spread, (EVERYWHERE,), (BY_BOARD, BY_BOARD))
    return jax.jit(program)(jax.random.key(3))


def random_search() -> Search:
    """A search that picks a random legal slot and puts the whole policy on it; it fills a replay
    buffer quickly."""

    def search(variables: Any, states: State, key: jax.Array) -> SearchResult:
        del variables
        bits = jax.random.bits(key, states.position.ply.shape, jnp.uint32)
        legal = jax.vmap(actions.legal_slots)(states)
        slot = jax.vmap(chance.choose)(bits, legal)
        nothing = jnp.zeros(slot.shape)
        policy, prior = jax.nn.one_hot(slot, legal.shape[1]), jnp.where(legal, 0.0, MASKED)
        return SearchResult(slot, policy, nothing, nothing, prior)

    return search
