"""Training without search: returns as a slow loop finds them, the clipped gain, and learning."""

from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import train
from tests.support.learner import tiny
from train.arena.match import MatchOptions, play_match
from train.data.outcomes import Outcome
from train.data.replay import Trajectory
from train.experiments import ppo
from train.learning.losses import TrainingTargets
from train.network import Output
from train.network.slots import POLICY_PLANES
from train.players.registry import make_player
from train.players.searching import network_player
from wallgo_jax.game import actions
from wallgo_jax.game.state import initial_state

OPTIONS = ppo.Options(iterations=60, epochs=2, clip=0.2, entropy=0.5, trace=0.9, pool_every=0)
PLIES, BOARDS, NOTHING = 12, 5, cast(Any, None)


def slow_returns(plies, last_value, last_player, trace: float) -> np.ndarray:
    """Each board's returns by a loop, all of them kept for the first player."""
    player, found = plies.position.player, np.zeros((PLIES, BOARDS))
    for board in range(BOARDS):
        values = [*plies.root_value[:, board], last_value[board]]
        movers = [*player[:, board], last_player[board]]
        red = [value if mover == 0 else -value for value, mover in zip(values, movers, strict=True)]
        after = red[-1]
        for ply in reversed(range(PLIES)):
            if plies.terminated[ply, board]:
                after = plies.outcome.rewards[ply, board, 0]
            elif not np.isnan(red[ply + 1]):
                after = (1 - trace) * red[ply + 1] + trace * after
            found[ply, board] = after if movers[ply] == 0 else -after
    return found


def test_returns_are_those_of_a_slow_loop():
    rng = np.random.default_rng(0)
    position = jax.tree.map(
        lambda x: np.broadcast_to(x, (PLIES, BOARDS, *np.shape(x))),
        initial_state(tiny.RULES).position,
    )
    # Players move twice running, too; some plies are an opponent's, without a value.
    position = position._replace(player=rng.integers(0, 2, (PLIES, BOARDS)).astype(np.int8))
    over = rng.random((PLIES, BOARDS)) < 0.2
    rewards = np.where(over, rng.integers(-1, 2, (PLIES, BOARDS)), 0).astype(np.float32)
    values = rng.uniform(-1, 1, (PLIES, BOARDS)).astype(np.float32)
    values[rng.random((PLIES, BOARDS)) < 0.3] = np.nan
    weight = (rng.random((PLIES, BOARDS)) < 0.8).astype(np.float32)
    plies = cast(Any, Trajectory)(
        position=position,
        slot=NOTHING,
        policy=NOTHING,
        policy_weight=np.where(np.isnan(values), 0, weight),
        root_value=values,
        outcome=cast(Any, Outcome)(np.stack([rewards, -rewards], axis=-1), None),
        terminated=over,
    )
    last = rng.uniform(-1, 1, BOARDS).astype(np.float32), rng.integers(0, 2, BOARDS).astype(np.int8)
    plies, *last = jax.tree.map(jnp.asarray, (plies, *last))
    returns = jax.jit(ppo.lambda_returns)(plies, last[0], last[1], 0.9)
    np.testing.assert_allclose(returns, slow_returns(plies, last[0], last[1], 0.9), atol=1e-6)
    found, learned = ppo.advantages(plies, returns), plies.policy_weight > 0
    assert (found[~learned] == 0).all()
    gap = (np.asarray(returns) - values)[learned]
    np.testing.assert_allclose(found[learned], (gap - gap.mean()) / gap.std(), atol=1e-4)


@pytest.mark.parametrize(
    ("ratio", "advantage", "gain"),
    [(1.0, 1.0, 1.0), (2.0, 1.0, 1.2), (2.0, -1.0, -2.0), (0.5, 1.0, 0.5), (0.5, -1.0, -0.8)],
)
def test_the_gain_is_clipped_and_then_teaches_nothing(ratio, advantage, gain):
    """A network that gives each of nine cells the same chance."""
    state = jax.tree.map(lambda x: jnp.asarray(x)[None], initial_state(tiny.RULES))
    legal, slot = jax.vmap(actions.legal_slots)(state), 4
    policy = jnp.zeros(legal.shape).at[0, slot].set(1 / 9 / ratio)
    targets = TrainingTargets(
        state,
        legal,
        policy,
        policy_rest=jnp.zeros(1),
        policy_weight=jnp.full(1, advantage),
        **dict.fromkeys(TrainingTargets._fields[5:], NOTHING),
    )

    def loss(planes: jax.Array) -> jax.Array:
        output = Output(planes, *[NOTHING] * (len(Output._fields) - 1))
        return ppo.ppo_loss(output, targets, options=OPTIONS)

    found, gradient = jax.value_and_grad(loss)(jnp.zeros((1, 3, 3, POLICY_PLANES)))
    np.testing.assert_allclose(found, -gain - 0.5 * np.log(9), rtol=1e-5)
    # Nor does the entropy, which is at its most.
    is_clipped = gain != ratio * advantage
    assert np.allclose(gradient, 0, atol=1e-6) == is_clipped


@pytest.mark.slow
@pytest.mark.parametrize("pool_every", [0, 5])
def test_it_learns(pool_every):
    """Its raw policy beats random play, which is what it began as."""
    words = ["--selfplay.boards", "64", "--selfplay.plies", "16", "--learner.batch", "128"]
    config = train.make_config(tiny.config(*words), ppo.PLAIN)
    options = OPTIONS._replace(entropy=0.01, pool_every=pool_every)
    state, figures = ppo.learn_config(config, options, 0)
    assert figures["games"] > 1000 and figures["positions"] == options.iterations * 64 * 16
    raw = network_player("raw", state.weights, config, tiny.RULES)
    players = raw, make_player("random", tiny.RULES)
    result = play_match(players, tiny.RULES, MatchOptions(200, 200), key=jax.random.key(0))
    assert result.wins > 125
