"""WallGo as a game for random play: the core alone, and the env with its public face."""

from typing import Any

import jax
import jax.numpy as jnp

from train.bench.harness.play import Game, count_set
from train.bench.harness.program import ProgramStats, compile_program
from train.bench.parts.plain import PlainGame
from wallgo_jax import env as env_lib
from wallgo_jax.game import actions, chance, referee
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import Position, State, initial_state

CORE, CORE_BITS, ENV = "core", "core, bits", "env"
OWN_DRAW = "random_action"


def core_game(rules: Rules, *, on_bits: bool) -> Game:
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

    def step(position: Position, slot: jax.Array) -> Position:
        return referee.play(State(fresh.variant, position), slot)[0].position

    def read(position: Position, slot: jax.Array, after: Position) -> jax.Array:
        # A new game begins where one ends, so these bits depend on all territories, too.
        return count_set(after.walls) + slot.astype(jnp.uint32)

    return Game(
        name=CORE_BITS if on_bits else CORE,
        first=lambda key: fresh.position,
        act=act,
        step=step,
        is_over=lambda position: position.terminated,
        steps=lambda position: position.ply,
        read=read,
    )


def env_game(rules: Rules, *, planes: str) -> Game:
    """The env by its public actions; every ply reads the mask and the planes."""
    env = env_lib.make(rules, planes=planes)
    return with_public_face(f"{ENV}, {planes}", env.init, env.step, reads_observation=True)


def plain_envs(rules: Rules, *, planes: str) -> list[PlainGame]:
    """The env as users of pgx would play it at random, and with its own draw of an action."""
    env, name = env_lib.make(rules, planes=planes), f"{ENV}, {planes}"
    return [
        PlainGame(name, env.init, env.step_auto_reset),
        PlainGame(f"{name}, {OWN_DRAW}", env.init, env.step_auto_reset, env.random_action),
    ]


def compiled_steps(rules: Rules, boards: int, *, planes: str) -> list[tuple[str, ProgramStats]]:
    """Name and compile statistics of each of the env's steps, for boards on one device."""
    env = env_lib.make(rules, planes=planes)
    states = jax.eval_shape(jax.vmap(env.init), jax.random.split(jax.random.key(0), boards))
    actions = jax.ShapeDtypeStruct((boards,), jnp.int32)
    return [
        (f"{ENV}.{step.__name__}", compile_program(jax.vmap(step), (states, actions)).stats)
        for step in (env.step, env.step_auto_reset)
    ]


def with_public_face(name: str, init: Any, step: Any, *, reads_observation: bool) -> Game:
    """A game whose states have the fields of pgx."""

    def read(state: Any, action: jax.Array, after: Any) -> jax.Array:
        sums = action.astype(jnp.uint32) + count_set(after.rewards)
        return sums + count_set(state.observation) if reads_observation else sums

    return Game(
        name=name,
        first=init,
        act=lambda state, bits: chance.choose_from_mask(bits, state.legal_action_mask),
        step=step,
        is_over=lambda state: state.terminated | state.truncated,
        steps=lambda state: state._step_count,
        read=read,
    )
