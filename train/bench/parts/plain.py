"""Random play as users of pgx write it: jit, a scan over a batched step, a categorical draw.

The harness's loop (`train.bench.harness.play`) is the same for every game, but XLA may compile one
game's step well in it and another's badly. This loop is the one of pgx's documents; a game's speed
is the better of the two.

B boards.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from train.bench.harness.program import compile_program
from train.bench.harness.timing import CHECKSUM, Bench
from train.runtime.host import fetch

SUFFIX = ", plain"
_PLIES = 16
"""Plies of one call; a run is as many calls as its time takes."""


class PlainGame(NamedTuple):
    """A game of one board with pgx's face."""

    name: str
    init: Callable[[jax.Array], Any]
    """key -> state."""
    step: Callable[[Any, jax.Array, jax.Array], Any]
    """(state, action, key) -> state; a finished game is replaced by a new one."""
    draw: Callable[[Any, jax.Array], jax.Array] | None = None
    """(state, key) -> a random legal action; None draws a Gumbel number for every action."""


def make_bench(game: PlainGame, boards: int) -> Bench:
    """Compile the loop for that number of boards on one device."""

    def ply(states: Any, key: jax.Array) -> tuple[Any, jax.Array]:
        draw, reset = jax.random.split(key)
        if game.draw is None:
            logits = jnp.log(states.legal_action_mask.astype(jnp.float32))
            action = jax.random.categorical(draw, logits, axis=-1)
        else:
            action = jax.vmap(game.draw)(states, jax.random.split(draw, boards))
        after = jax.vmap(game.step)(states, action, jax.random.split(reset, boards))
        return after, (after.terminated | after.truncated).sum(dtype=jnp.uint32)

    def play(states: Any, key: jax.Array) -> tuple[Any, jax.Array, jax.Array]:
        states, ended = jax.lax.scan(ply, states, jax.random.split(key, _PLIES))
        # The states are handed out, so all that a user could read of them is computed.
        return states, ended.sum(), states.rewards.astype(jnp.float32).sum()

    states = jax.jit(jax.vmap(game.init))(jax.random.split(jax.random.key(9), boards))
    compiled = compile_program(play, (states, jax.random.key(0)))
    held, calls = [states], 0

    def run(length: int) -> dict[str, float]:
        nonlocal calls
        told = []
        for _ in range(length):
            calls += 1
            held[0], *sums = compiled.call(held[0], jax.random.key(calls))
            told.append(sums)
        jax.block_until_ready(held[0])
        games, rewards = (sum(part) for part in zip(*fetch(told), strict=True))
        return {
            "plies": boards * length * _PLIES,
            "games": int(games),
            CHECKSUM: int(games) + int(abs(float(rewards))),
        }

    return Bench(f"{game.name}{SUFFIX}", boards, run, compiled.stats)
