"""Simulations a second of games played by search, without a network and with one; mctx's own search
over the same slots, and over the public actions, 2597 on the standard board, shows what slots save.

B boards, A slots, N public actions, P players.
"""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp

from train.bench.games import core_game
from train.bench.timing import CHECKSUM, Benchmark, compile_loop, count_set, make_loop_bench
from train.config import RunConfig
from train.network import (
    MASKED,
    POLICY_PLANES,
    NetworkConfig,
    Output,
    cast_weights,
    network_for,
    observer_for,
)
from train.runtime.devices import (
    BY_BOARD,
    EVERYWHERE,
    Devices,
    all_devices,
    broadcast_boards,
    device_key,
)
from train.runtime.fields import check
from train.search import mctx_engine
from train.search.config import SearchConfig
from train.search.evaluator import (
    Evaluation,
    Evaluator,
    evaluator_for,
    legal_slots_of,
    make_evaluator,
    make_play,
)
from train.search.search import Search, SearchResult, make_search
from train.search.tree import Root, Step
from wallgo_jax import observation
from wallgo_jax.game import actions, referee
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import Position, State, initial_position, initial_state, make_variant
from wallgo_jax.game.terrain import BoardAnalysis

WITHOUT, WITH = "no network", "network"
UNIFORM, NETWORK = f"search, {WITHOUT}", f"search, {WITH}"
PLANES = "search, planes alone"
MCTX, MCTX_NETWORK = f"mctx, slots, {WITHOUT}", f"mctx, slots, {WITH}"
PUBLIC, PUBLIC_NETWORK = f"mctx, public actions, {WITHOUT}", f"mctx, public actions, {WITH}"
SPREAD_PLIES = 300
"""Random plies after which boards that began together stand anywhere in their games."""


def make_searcher(kind: str, config: RunConfig, simulations: int) -> Search:
    """A search by its name (UNIFORM, PLANES, NETWORK, those of mctx) in games of a config's rules;
    the variables that it reads are the network's where its name says `network`."""
    network, players = config.network, config.rules.players
    options = dataclasses.replace(config.search, simulations=simulations, first_simulations=0)
    if kind == PUBLIC_NETWORK:
        return _make_public_search(_make_public_evaluator(config), config, simulations)
    if kind == PUBLIC:
        evaluate = make_uniform_evaluator(is_public=True)
        return _make_public_search(evaluate, config, simulations)
    if kind in (MCTX, MCTX_NETWORK):
        options = check(dataclasses.replace(options, engine="mctx", rounds=False))
    if kind in (NETWORK, MCTX_NETWORK):
        evaluate = evaluator_for(network, config.rules)
    elif kind == PLANES:
        evaluate = make_planes_evaluator(network, players=players)
    else:
        evaluate = make_uniform_evaluator()
    return make_search(evaluate, options, explores=True)


def make_bench(
    kind: str, config: RunConfig, boards: int, simulations: int, devices: Devices
) -> Benchmark:
    """Compile moves by a search of `make_searcher` on boards that the devices share."""

    def amounts(length: int, sums: dict[str, float]) -> dict[str, float]:
        return sums | {"simulations": boards * length * simulations, "moves": boards * length}

    move, variables = _make_move(make_searcher(kind, config, simulations)), ()
    if kind in (NETWORK, MCTX_NETWORK, PUBLIC_NETWORK):
        network = network_for(config.network, config.rules.players)
        variables = cast_weights(network.init(jax.random.key(0)), config.network)
    states = spread_boards(config.rules, boards, devices)
    return make_loop_bench(kind, boards, move, variables, states, devices, amounts)


def tree_line(config: RunConfig, boards: int, simulations: int) -> str:
    """The bytes that one more simulation of a board adds to the config's search without a network.
    Compiles it for all and for half of the simulations; runs neither."""
    states = jax.eval_shape(lambda: broadcast_boards(initial_state(config.rules), boards))
    counts = (simulations, simulations // 2)
    moves = [_make_move(make_searcher(UNIFORM, config, count)) for count in counts]
    whole, half = (
        compile_loop(move, (), states, all_devices(1)).stats.peak_bytes for move in moves
    )
    a_node = (whole - half) / boards / (counts[0] - counts[1])
    return (
        f"search of {boards:,} boards and {simulations} simulations: {whole / 1e6:,.1f} MB by "
        f"memory analysis, {a_node:,.0f} bytes a board and simulation"
    )


def _make_move(search: Search) -> Any:
    """A turn of `compile_loop`: a move by search of (variables, states [B])."""

    def move(variables: Any, states: State, key: jax.Array):
        result = search(variables, states, key)
        after, _ = jax.vmap(referee.play)(states, result.slot)
        checksum = result.slot.sum(dtype=jnp.uint32) + count_set(result.policy)
        checksum += count_set(result.value)
        return jax.vmap(referee.restart_if_over)(after), {CHECKSUM: checksum}

    return move


def spread_boards(rules: Rules, boards: int, devices: Devices) -> State:
    """Boards [B] that stand anywhere in their games, after SPREAD_PLIES random plies."""
    game, count = core_game(rules, on_bits=True), boards // devices.count

    def spread(key: jax.Array) -> State:
        variant = broadcast_boards(make_variant(rules), count)

        def ply(positions: Position, ply_key: jax.Array) -> tuple[Position, None]:
            bits = jax.random.bits(ply_key, (count,), jnp.uint32)
            after = jax.vmap(game.step)(positions, jax.vmap(game.act)(positions, bits))
            return jax.vmap(referee.restart_if_over)(State(variant, after)).position, None

        keys = jax.random.split(device_key(key), SPREAD_PLIES)
        first = jax.vmap(initial_position)(variant)
        return State(variant, jax.lax.scan(ply, first, keys)[0])

    program = devices.per_device(spread, (EVERYWHERE,), BY_BOARD)
    return jax.jit(program)(jax.random.key(3))


def make_uniform_evaluator(*, is_public: bool = False) -> Evaluator:
    """Give all legal slots (or public actions) the same logit and everybody the value 0: only the
    search costs time."""

    def evaluate(
        variables: Any, states: State, analysis: BoardAnalysis | None = None
    ) -> Evaluation:
        del variables
        legal = _legal_actions(states) if is_public else legal_slots_of(states, analysis)
        values = jnp.zeros((legal.shape[0], states.position.stones.shape[1]))
        return Evaluation(jnp.where(legal, 0.0, MASKED), values)

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


def _make_public_evaluator(config: RunConfig) -> Evaluator:
    """Evaluate public actions by the config's network; the planes of its policy already have their
    order."""
    network, planes = network_for(config.network, config.rules.players), config.network.planes

    def evaluate(
        variables: Any, states: State, analysis: BoardAnalysis | None = None
    ) -> Evaluation:
        del analysis
        view = jax.vmap(lambda state: observation.observe(state, planes=planes))(states)
        output = network.evaluate(variables, view)
        plays, places = output.policy[..., :-1], output.policy[..., -1]
        logits = jnp.concatenate([x.reshape(x.shape[0], -1) for x in (plays, places)], axis=1)
        return Evaluation(jnp.where(_legal_actions(states), logits, MASKED), output.value)

    return evaluate


def _make_public_search(evaluate: Evaluator, config: RunConfig, simulations: int) -> Search:
    """`make_search`, with mctx's own Gumbel search and public actions for slots; `evaluate` gives
    logits float32[B, N]."""
    considered = config.search.max_considered_actions
    options = SearchConfig(simulations=simulations, max_considered_actions=considered)
    choose, play_slot = mctx_engine.make_gumbel(options, explores=True), make_play(evaluate)

    def play(game: Any, action: jax.Array, position: Position) -> Step:
        slot = jax.vmap(actions.slot_of_action)(State(game[1], position), action)
        return play_slot(game, slot, position)

    def search(variables: Any, states: State, key: jax.Array) -> SearchResult:
        variant, position = states
        evaluation = evaluate(variables, states)
        chosen = choose(
            key,
            Root(evaluation.logits, evaluation.value[:, 0], position, _legal_actions(states)),
            functools.partial(play, (variables, variant, position.player)),
        )
        slot = jax.vmap(actions.slot_of_action)(states, chosen.slot)
        surprise = jnp.zeros_like(chosen.value)
        return SearchResult(slot, chosen.policy, chosen.value, surprise, evaluation.logits)

    return search


def _legal_actions(states: State) -> jax.Array:
    """bool[B, N]."""
    return jax.vmap(actions.legal_actions)(states)
