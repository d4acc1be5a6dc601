"""The evaluator gets the ply's analysis; values and rewards of a step go to the right player."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.support.learner import tiny
from tests.support.learner.searching import DUEL, RED, WIN, drawn_duel, play, random_ply, repeat
from train.network import MASKED, NetworkConfig
from train.network.build import network_for
from train.search.evaluator import discount_of, evaluator_for
from wallgo_jax import PRESETS
from wallgo_jax.game import actions, chance, referee
from wallgo_jax.game.state import State, initial_state

referee_territory = jax.jit(jax.vmap(referee.territory))
discounts = jax.jit(discount_of)


def test_evaluator_need_not_analyse_the_board_again():
    """A ply's analysis gives the evaluation that analysing the next board anew gives: in setup
    and later, with territory and without, over or not."""
    config = NetworkConfig(width=8, value_width=8, planes="BTR")
    evaluate = evaluator_for(config, DUEL)
    variables = tiny.new_weights(network_for(config, 2))

    @jax.jit
    def evaluated(states: State, bits: jax.Array):
        slots = jax.vmap(lambda s, b: chance.choose_bit(b, actions.legal_words(s)))
        after, _, analysis = jax.vmap(referee.play_with_analysis)(states, slots(states, bits))
        told, alone = evaluate(variables, after, analysis), evaluate(variables, after)
        return jax.vmap(referee.restart_if_over)(after), after.position, told, alone

    states, owners, overs = repeat(initial_state(DUEL), 32), 0, 0
    for bits in np.random.default_rng(0).integers(0, 2**32, (16, 32), np.uint32):
        states, position, told, alone = evaluated(states, bits)
        chex.assert_trees_all_close(told, alone, atol=1e-6)
        logits = np.asarray(alone.logits)
        assert np.ptp(logits[logits > MASKED]) > 0
        owners += int((np.asarray(referee_territory(State(states.variant, position))) > 0).sum())
        overs += int(np.asarray(position.terminated).sum())
    assert owners > 0 and overs > 0


@pytest.mark.parametrize(
    ("preset", "signs"),
    [
        # R B B R, then Red moves: who places, who is next, and so the sign.
        ("wallzero-4stone", [-1, +1, -1, +1, -1, -1]),
        ("wallzero-empty", [-1, +1, -1, +1, -1, +1, -1, +1, -1, -1]),
        ("playwallgo-2p", [-1, -1, -1, -1, -1, -1, -1, -1, -1, -1]),
    ],
)
def test_discount_follows_who_moves_next(preset, signs):
    state = initial_state(PRESETS[preset])
    for ply, sign in enumerate(signs):
        mover = state.position.player
        state = random_ply(state, jnp.uint32(0x9E3779B9 * (ply + 1) % 2**32))
        assert float(discounts(mover, state.position, mover)) == sign, f"ply {ply}"


def test_discount_is_zero_at_the_end_and_reward_is_the_movers():
    state = drawn_duel(mover=RED)
    after, rewards = play(state, jnp.int32(WIN))
    assert bool(after.position.terminated)
    assert float(discounts(jnp.int8(RED), after.position, jnp.int8(RED))) == 0.0
    assert rewards.tolist() == [1.0, -1.0]
    reward_of = jax.jit(referee.reward_of)
    assert reward_of(rewards[None], jnp.array([RED])).tolist() == [1.0]
