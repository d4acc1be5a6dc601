"""Engines with an evaluator that is compiled at once, and requests to them."""

import asyncio
import functools
import json
from typing import Any

import jax.numpy as jnp

from tests.support.learner.searching import random_evaluator
from train.checkpoints.calibration import Calibration
from train.engine.protocol import Protocol
from train.engine.sessions import Sessions
from train.engine.trees.guide import Guide
from train.engine.trees.options import EngineOptions
from train.search.config import SearchConfig
from wallgo_jax.game.rules import Rules


def opposed_evaluator(variables, states, analysis=None):
    """The random one, with what one of two players expects the opposite of the other's."""
    found = random_evaluator(variables, states)
    players = found.value.shape[1]
    share = jnp.full(players, -1.0 / (players - 1)).at[0].set(1.0)
    return found._replace(value=found.value[:, :1] * share[None])


def sessions_of(
    rules: Rules, kind: str, options: EngineOptions, *, rescale_values: bool = True
) -> Sessions:
    """Sessions of 24 simulations an answer; compiled once, and never shut down."""
    return _sessions_of(rules, SearchConfig(kind=kind, rescale_values=rescale_values), options)


@functools.cache
def _sessions_of(rules: Rules, config: SearchConfig, options: EngineOptions) -> Sessions:
    guide = Guide(
        "random", opposed_evaluator, (), config, 1, 24, None, None, None, True, Calibration()
    )
    sessions = Sessions(guide, rules, options)
    sessions.wait_for_all_sizes()
    return sessions


def answers(protocol: Protocol, *requests: dict[str, Any] | bytes) -> list[dict[str, Any]]:
    """The responses to requests that come at the same time."""
    lines = [r if isinstance(r, bytes) else json.dumps(r).encode() for r in requests]

    async def ask_all() -> list[dict[str, Any]]:
        return await asyncio.gather(*map(protocol.answer, lines))

    return asyncio.run(ask_all())
