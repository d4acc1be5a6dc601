"""Games played at random on all boards at once: WallGo's core and env, and games of pgx.

In one loop every game is played alike: each ply takes one random number a board, finished boards
restart by a select of a first state, the game's own counts must add up to the plies claimed, and a
checksum covers all that was read. XLA may compile one game's step well there and another's badly,
so the *plain* loop is timed, too: jit, a scan over a batched step, a categorical draw, as pgx's
documents have it. A game's speed is the better of the two.

pgx: Koyamada et al., "Pgx: Hardware-Accelerated Parallel Game Simulators for Reinforcement
Learning" (2023). Needs the `bench` extra.

B boards, A actions.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from train.bench.timing import (
    CHECKSUM,
    Benchmark,
    compile_traced,
    count_set,
    make_call_bench,
    make_loop_bench,
)
from train.runtime.devices import Devices, broadcast_boards
from train.runtime.errors import require
from wallgo_jax import env as env_lib
from wallgo_jax.game import actions, chance, referee
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import Position, State, initial_state

CORE, CORE_BITS, ENV = "core", "core, bits", "env"
ENV_PLANES = "BTRH"
OWN_DRAW, PLAIN = "random_action", ", plain"
_GAMES = "animal_shogi chess connect_four gardner_chess go_9x9 hex".split()
PGX_GAMES = {"pgx": "othello"} | {f"pgx-{name}": name for name in _GAMES}
"""pgx's games by the name that asks for them; `pgx` is Othello."""
_PLAIN_PLIES = 16
"""Plies of one call of the plain loop; a run is as many calls as its time takes."""


class BenchGame(NamedTuple):
    """A game of one board for random play.

    Attributes:
      first: key -> state before the first ply.
      act: (state, random bits uint32) -> int32, a uniformly random legal action.
      step: (state, action) -> next state.
      is_over: state -> bool.
      steps: state -> int, plies of the game so far, as the game itself counts them.
      read: (state, action, next state) -> uint32 that depends on all that a player would read.
    """

    name: str
    first: Callable[[jax.Array], Any]
    act: Callable[[Any, jax.Array], jax.Array]
    step: Callable[[Any, jax.Array], Any]
    is_over: Callable[[Any], jax.Array]
    steps: Callable[[Any], jax.Array]
    read: Callable[[Any, jax.Array, Any], jax.Array]


def make_bench(game: BenchGame, boards: int, devices: Devices) -> Benchmark:
    """Compile random play of that number of boards, shared by the devices. Its run raises a
    RuntimeError where the game itself counts another number of plies."""

    def ply(fresh: Any, states: Any, key: jax.Array):
        bits = jax.random.bits(key, (boards // devices.count,), jnp.uint32)
        action = jax.vmap(game.act)(states, bits)
        after = jax.vmap(game.step)(states, action)
        over = jax.vmap(game.is_over)(after)
        restarted = jax.vmap(lambda o, x: jax.tree.map(lambda a, b: jnp.where(o, a, b), fresh, x))(
            over, after
        )
        sums = {
            "plies": jax.vmap(game.steps)(after) - jax.vmap(game.steps)(states),
            "games": over,
            CHECKSUM: jax.vmap(game.read)(states, action, after),
        }
        return restarted, {name: each.sum(dtype=jnp.uint32) for name, each in sums.items()}

    def amounts(plies: int, sums: dict[str, float]) -> dict[str, float]:
        claimed = boards * plies
        if claimed % 2**32 != sums["plies"]:
            raise RuntimeError(f"{game.name}: {sums['plies']} plies were played, not {claimed}")
        return sums | {"plies": claimed}

    fresh = jax.jit(game.first)(jax.random.key(9))
    states = jax.jit(lambda x: broadcast_boards(x, boards))(fresh)
    return make_loop_bench(game.name, boards, ply, fresh, states, devices, amounts)


def make_plain_bench(
    name: str,
    boards: int,
    init: Callable[[jax.Array], Any],
    step: Callable[[Any, jax.Array, jax.Array], Any],
    draw: Callable[[Any, jax.Array], jax.Array] | None = None,
) -> Benchmark:
    """Compile the plain loop of a game with pgx's interface on one device.

    Args:
      init: key -> state.
      step: (state, action, key) -> state; replaces a finished game by a new one.
      draw: (state, key) -> a random legal action; None draws a Gumbel number for every action.
    """

    def ply(states: Any, key: jax.Array) -> tuple[Any, jax.Array]:
        draw_key, reset = jax.random.split(key)
        if draw is None:
            logits = jnp.log(states.legal_action_mask.astype(jnp.float32))
            action = jax.random.categorical(draw_key, logits, axis=-1)
        else:
            action = jax.vmap(draw)(states, jax.random.split(draw_key, boards))
        after = jax.vmap(step)(states, action, jax.random.split(reset, boards))
        return after, (after.terminated | after.truncated).sum(dtype=jnp.uint32)

    def play(states: Any, key: jax.Array) -> tuple[Any, dict[str, jax.Array]]:
        states, ended = jax.lax.scan(ply, states, jax.random.split(key, _PLAIN_PLIES))
        # The states are handed out, so all that a user could read of them is computed.
        return states, {"games": ended.sum(), "rewards": states.rewards.astype(jnp.float32).sum()}

    def amounts(calls: int, sums: dict[str, float]) -> dict[str, float]:
        plies, checksum = boards * calls * _PLAIN_PLIES, sums["games"] + abs(sums["rewards"])
        return {"plies": plies, "games": sums["games"], CHECKSUM: int(checksum)}

    states = jax.jit(jax.vmap(init))(jax.random.split(jax.random.key(9), boards))
    program, stats = compile_traced(lambda: jax.jit(play).trace(states, jax.random.key(0)))

    def call(states: Any, number: int) -> tuple[Any, dict[str, jax.Array]]:
        return program(states, jax.random.key(number))

    return make_call_bench(f"{name}{PLAIN}", boards, call, states, stats, amounts)


def plain_benches(rules: Rules, names: Sequence[str], boards: int) -> Iterator[Benchmark]:
    """The env as users of pgx would play it, the same with its own draw of an action, and each game
    of pgx with pgx's own automatic reset."""
    env, name = env_lib.make(rules, planes=ENV_PLANES), f"{ENV}, {ENV_PLANES}"
    yield make_plain_bench(name, boards, env.init, env.step_auto_reset)
    name = f"{name}, {OWN_DRAW}"
    yield make_plain_bench(name, boards, env.init, env.step_auto_reset, env.random_action)
    for name in names:
        env, step = pgx_env(name)
        yield make_plain_bench(f"pgx {name}", boards, env.init, step)


def core_game(rules: Rules, *, on_bits: bool) -> BenchGame:
    """The game on positions alone.

    Args:
      on_bits: choose slots on the packed words of legal slots, which only WallGo has, instead of
        on their mask as in all other games here.
    """
    fresh = initial_state(rules)

    def act(position: Position, bits: jax.Array) -> jax.Array:
        state = State(fresh.variant, position)
        if on_bits:
            return chance.choose_bit(bits, actions.legal_words(state))
        return chance.choose_from_mask(bits, actions.legal_slots(state))

    return BenchGame(
        name=CORE_BITS if on_bits else CORE,
        first=lambda key: fresh.position,
        act=act,
        step=lambda position, slot: referee.play(State(fresh.variant, position), slot)[0].position,
        is_over=lambda position: position.terminated,
        steps=lambda position: position.ply,
        # A new game begins where one ends, so these bits depend on all territories, too.
        read=lambda position, slot, after: count_set(after.walls) + slot.astype(jnp.uint32),
    )


def public_game(name: str, env: Any, *, reads_observation: bool) -> BenchGame:
    """A game of an env whose states have the fields of pgx; every ply reads the mask."""

    def read(state: Any, action: jax.Array, after: Any) -> jax.Array:
        sums = action.astype(jnp.uint32) + count_set(after.rewards)
        return sums + count_set(state.observation) if reads_observation else sums

    return BenchGame(
        name=name,
        first=env.init,
        act=lambda state, bits: chance.choose_from_mask(bits, state.legal_action_mask),
        step=env.step,
        is_over=lambda state: state.terminated | state.truncated,
        steps=lambda state: state._step_count,
        read=read,
    )


def env_game(rules: Rules) -> BenchGame:
    """WallGo's env by its public actions; every ply reads the mask and the planes."""
    env = env_lib.make(rules, planes=ENV_PLANES)
    return public_game(f"{ENV}, {ENV_PLANES}", env, reads_observation=True)


def peer_games(name: str) -> list[BenchGame]:
    """A game of pgx twice: once reads only the mask, once the observation as well."""
    env, _ = pgx_env(name)
    return [
        public_game(f"pgx {name}", env, reads_observation=False),
        public_game(f"pgx {name}, planes", env, reads_observation=True),
    ]


def pgx_env(name: str) -> tuple[Any, Callable[..., Any]]:
    """A game of pgx, and its step with pgx's own automatic reset: (state, action, key) -> state.

    Raises:
      UsageError: pgx is not installed.
    """
    require("bench: --against pgx", "bench", "pgx")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pgx's own imports warn
        import pgx
        from pgx.experimental import auto_reset
    make: Any = pgx.make
    env = make(name)
    return env, auto_reset(env.step, env.init)
