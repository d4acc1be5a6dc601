"""Engines with an evaluator that is compiled at once, and requests to them."""

import asyncio
import functools
import json
from typing import Any

import jax.numpy as jnp
import numpy as np

from tests.support.learner.searching import FOUR_STONES, TRIO, random_evaluator
from train.engine.options import EngineOptions
from train.engine.protocol import Protocol
from train.engine.sessions import Sessions
from train.network import Output
from train.players.basic import Player, act_by, make_random_search
from train.search.config import SearchConfig
from wallgo_jax.game.rules import Rules

OPTIONS = EngineOptions(batch_sizes=(1, 32), chunk=8, nodes=64, trees=32)
"""Sizes of the engines that tests share."""
OWNERS = np.linspace(-1, 1, 27, dtype=np.float32).reshape(3, 3, 3) ** 3
"""Logits [H, W, owner] of `heads` after one ply, the player to move first."""
LEAD = 0.125
"""Margin of `heads` after one ply, in boards."""


def opposed_evaluator(variables, states, analysis=None):
    """The random one, with what one of two players expects the opposite of the other's."""
    found = random_evaluator(variables, states)
    players = found.value.shape[1]
    share = jnp.full(players, -1.0 / (players - 1)).at[0].set(1.0)
    return found._replace(value=found.value[:, :1] * share[None])


def heads(variables: Any, states: Any) -> Output:
    """Stands in for a network's further heads: larger with each ply."""
    del variables
    ply = states.position.ply.astype(jnp.float32)
    unused: Any = None
    owners = OWNERS[None] * ply[:, None, None, None]
    return Output(unused, unused, None, owners, LEAD * ply, None)


def two_players() -> Sessions:
    """Gumbel search with heads, of rules by which a player moves twice running."""
    return sessions_of(FOUR_STONES, "gumbel", OPTIONS, evaluate_heads=heads)


def three_players() -> Sessions:
    """PUCT, and nothing that tells of owners."""
    return sessions_of(TRIO, "puct", EngineOptions((1,), chunk=8, nodes=64, trees=2))


@functools.cache
def sessions_of(
    rules: Rules, kind: str, options: EngineOptions, *, evaluate_heads: Any = None
) -> Sessions:
    """Sessions of 24 simulations an answer; compiled once, and never shut down."""
    config = SearchConfig(kind=kind)
    player = Player(
        name="random",
        variables=(),
        act=act_by(make_random_search()),
        evaluate=opposed_evaluator,
        evaluate_heads=evaluate_heads,
        search=config,
        simulations=24,
    )
    sessions = Sessions(player, rules, options)
    sessions.programs.compile_rest()
    sessions.programs.wait()
    return sessions


def answers(protocol: Protocol, *requests: dict[str, Any] | bytes) -> list[dict[str, Any]]:
    """The responses to requests that come at the same time."""
    lines = [r if isinstance(r, bytes) else json.dumps(r).encode() for r in requests]

    async def ask_all() -> list[dict[str, Any]]:
        return await asyncio.gather(*map(protocol.answer, lines))

    return asyncio.run(ask_all())
