"""WallGo as a game to be played at random: the core, and the env that its users know."""

from typing import Any

import jax
import jax.numpy as jnp

from train.bench.harness.play import Game, choose, count_set
from train.bench.harness.program import ProgramStats, compile_program
from wallgo_jax import env as env_lib
from wallgo_jax.game import actions, chance, referee
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import Position, State, initial_state

CORE, CORE_BITS, ENV = "core", "core, bits", "env"


def core_game(rules: Rules, *, on_bits: bool) -> Game:
    """Positions alone, chosen from by the slots' mask as all games here, or on bits: the core's
    own way, which only WallGo has."""
    fresh = initial_state(rules)

    def act(position: Position, bits: jax.Array) -> jax.Array:
        state = State(fresh.variant, position)
        if on_bits:
            return chance.choose_bit(bits, actions.legal_words(state))
        return choose(bits, actions.legal_slots(state))

    def step(position: Position, slot: jax.Array) -> Position:
        return referee.play(State(fresh.variant, position), slot)[0].position

    def read(position: Position, slot: jax.Array, after: Position) -> jax.Array:
        # Every ply's territory hangs on these bits, and so does whether the game is over.
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
    """The env by its public actions; mask and planes are read at every ply."""
    env = env_lib.make(rules, planes=planes)
    return with_public_face(f"{ENV}, {planes}", env.init, env.step, reads_observation=True)


def compiled_steps(rules: Rules, boards: int, *, planes: str) -> list[tuple[str, ProgramStats]]:
    """What compiling the env's steps says, for so many boards on one device, each by its name."""
    env = env_lib.make(rules, planes=planes)
    states = jax.eval_shape(jax.vmap(env.init), jax.random.split(jax.random.key(0), boards))
    actions = jax.ShapeDtypeStruct((boards,), jnp.int32)
    return [
        (f"{ENV}.{step.__name__}", compile_program(jax.vmap(step), (states, actions)).stats)
        for step in (env.step, env.step_auto_reset)
    ]


def with_public_face(name: str, init: Any, step: Any, *, reads_observation: bool) -> Game:
    """A game whose states have the fields that pgx knows."""

    def read(state: Any, action: jax.Array, after: Any) -> jax.Array:
        seen = action.astype(jnp.uint32) + count_set(after.rewards)
        return seen + count_set(state.observation) if reads_observation else seen

    return Game(
        name=name,
        first=init,
        act=lambda state, bits: choose(bits, state.legal_action_mask),
        step=step,
        is_over=lambda state: state.terminated | state.truncated,
        steps=lambda state: state._step_count,
        read=read,
    )
