"""Who a value belongs to, what a search finds, and what its tree holds."""

import functools

import chex
import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest
import scipy.special

from tests.support import tiny
from train.network import MASKED, NetworkConfig
from train.network.build import network_for
from train.search.evaluator import Evaluation, discount_of, evaluator_for
from train.search.search import (
    SearchConfig,
    dirichlet,
    divergence,
    draw_visited,
    make_recurrent_fn,
    make_search,
    mix,
    most_visited,
    simulations_at,
    stages,
)
from wallgo_jax import PRESETS, Rules
from wallgo_jax.board.geometry import DOWN, LEFT
from wallgo_jax.game import actions, chance, referee
from wallgo_jax.game.state import Position, State, initial_state

DUEL = Rules(size=3, players=2, stones=1, start=(), order=(0, 1))
GRID = 3
RED, BLUE = 0, 1


legal_slots = jax.jit(actions.legal_slots)
play = jax.jit(referee.play)
step = jax.jit(referee.step)
referee_territory = jax.jit(jax.vmap(referee.territory))


def _batch(tree, count: int):
    return jax.tree.map(lambda x: jnp.asarray(np.broadcast_to(x, (count, *x.shape))), tree)


def _stack(states: list[State]) -> State:
    return jax.tree.map(lambda *x: jnp.asarray(np.stack(x)), *jax.device_get(states))


def test_judge_need_not_look_at_the_board_again():
    """What a ply has seen of the board that it leads to is what the judge sees there: in setup and
    later, with territory and without, over or not."""
    config = NetworkConfig(width=8, value_width=8, planes="BTR")
    evaluate = evaluator_for(config, DUEL)
    variables = tiny.new_weights(network_for(config, 2))

    @jax.jit
    def judged(states: State, bits: jax.Array):
        slots = jax.vmap(lambda s, b: chance.choose_bit(b, actions.legal_words(s)))
        after, _, analysis = jax.vmap(referee.play_with_analysis)(states, slots(states, bits))
        told, alone = evaluate(variables, after, analysis), evaluate(variables, after)
        return jax.vmap(referee.restart_if_over)(after), after.position, told, alone

    states, owners, overs = _batch(initial_state(DUEL), 32), 0, 0
    for bits in np.random.default_rng(0).integers(0, 2**32, (16, 32), np.uint32):
        states, position, told, alone = judged(states, bits)
        chex.assert_trees_all_close(told, alone, atol=1e-6)
        logits = np.asarray(alone.logits)
        assert np.ptp(logits[logits > MASKED]) > 0
        owners += int((np.asarray(referee_territory(State(states.variant, position))) > 0).sum())
        overs += int(np.asarray(position.terminated).sum())
    assert owners > 0 and overs > 0


def _even_judge(grid: int):
    """Every legal slot is as good as the others, and nobody is ahead."""

    def judge(variables, states: State, analysis=None) -> Evaluation:
        del variables
        legal = jax.vmap(actions.legal_slots)(states)
        return Evaluation(
            jnp.where(legal, 0.0, MASKED),
            jnp.zeros((legal.shape[0], states.position.stones.shape[1])),
        )

    return judge


def _partial_judge(grid: int, red_value: float):
    """The same, but always sure that Red is ahead."""

    def judge(variables, states: State, analysis=None) -> Evaluation:
        even = _even_judge(grid)(variables, states)
        mine = jnp.where(states.position.player == RED, red_value, -red_value)
        return even._replace(value=jnp.stack([mine, -mine], axis=1))

    return judge


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
        state = _random_ply(state, jnp.uint32(0x9E3779B9 * (ply + 1) % 2**32))
        assert float(discounts(mover, state.position, mover)) == sign, f"ply {ply}"


discounts = jax.jit(discount_of)


@jax.jit
def _random_ply(state: State, bits: jax.Array) -> State:
    slot = chance.choose_bit(bits, actions.legal_words(state))
    return referee.play(state, slot)[0]


def test_discount_is_zero_at_the_end_and_reward_is_the_movers():
    state = _duel(mover=RED)
    after, rewards = play(state, jnp.int32(_WIN))
    assert bool(after.position.terminated)
    assert float(discounts(jnp.int8(RED), after.position, jnp.int8(RED))) == 0.0
    assert rewards.tolist() == [1.0, -1.0]
    reward_of = jax.jit(referee.reward_of)
    assert reward_of(rewards[None], jnp.array([RED])).tolist() == [1.0]
    assert reward_of(rewards[None], jnp.array([BLUE])).tolist() == [-1.0]


@functools.cache
def _partial_search(kind: str):
    config = SearchConfig(simulations=24, kind=kind)
    return jax.jit(make_search(_partial_judge(7, 0.5), config, explores=True))


@pytest.mark.parametrize(
    ("preset", "kind"),
    [("wallzero-4stone", "gumbel"), ("wallzero-empty", "gumbel"), ("wallzero-empty", "puct")],
)
def test_a_constant_advantage_comes_back_unchanged(preset, kind):
    """A judge that is always sure that Red is 0.5 ahead: after any search, at every ply, setup and
    its double moves included, the root is worth +0.5 to Red and -0.5 to Blue. One wrong sign on the
    way up would mix the two."""
    states, movers = [], []
    state = initial_state(PRESETS[preset])
    for ply in range(11):
        states.append(state)
        movers.append(int(state.position.player))
        state = _random_ply(state, jnp.uint32(0x85EBCA6B * (ply + 1) % 2**32))
    found = _partial_search(kind)((), _stack(states), jax.random.key(0))
    expected = [0.5 if mover == RED else -0.5 for mover in movers]
    np.testing.assert_allclose(found.value, expected, atol=1e-5)
    assert {RED, BLUE} <= set(movers)


# The mover stands on B1, the other on A1. A wall left of B1 shuts the other into one cell: 8 to 1
# at once. To step to C1 and wall its left side shuts the mover into one cell: 1 to 8 at once.
#
#     o X .        o the other   X the mover
#     ---   ---    walls below A1 and below C1
#     . . .
#     . . .
_WIN = 0 * 4 + LEFT
_LOSS = 4 * 4 + LEFT


@functools.partial(jax.jit, static_argnames="mover")
def _duel(*, mover: int) -> State:
    state = initial_state(DUEL)
    cells = {mover: 1, 1 - mover: 0}
    walls = referee.wall_bits(jnp.int32(0), jnp.int32(DOWN), grid=GRID)
    walls |= referee.wall_bits(jnp.int32(2), jnp.int32(DOWN), grid=GRID)
    position = state.position._replace(
        stones=jnp.array([[cells[RED]], [cells[BLUE]]], jnp.int8),
        walls=state.position.walls.at[1 - mover].set(walls),
        player=jnp.int8(mover),
        ply=jnp.int16(4),
    )
    return state._replace(position=position)


@pytest.mark.parametrize("mover", [RED, BLUE])
def test_the_drawn_position_is_as_drawn(mover):
    for slot, own in ((_WIN, 1.0), (_LOSS, -1.0)):
        state, rewards = step(_duel(mover=mover), jnp.int32(slot))
        assert bool(state.position.terminated)
        assert float(rewards[mover]) == own


@functools.cache
def _even_search(kind: str):
    # PUCT looks at each slot once before it can tell.
    config = SearchConfig(
        simulations=64 if kind == "gumbel" else 192, max_considered_actions=32, kind=kind
    )
    return jax.jit(make_search(_even_judge(GRID), config, explores=False))


@pytest.mark.parametrize("kind", ["gumbel", "puct"])
@pytest.mark.parametrize("mover", [RED, BLUE])
def test_search_wins_at_once_and_shuns_the_immediate_loss(mover, kind):
    """A wrong sign of the reward would turn the two around; with an even judge nothing else tells
    the moves apart."""
    found = _even_search(kind)((), _batch(_duel(mover=mover), 1), jax.random.key(3))
    if kind == "gumbel":  # to visits a forced win some plies later is as good
        assert found.slot.tolist() == [_WIN]
    legal = np.asarray(legal_slots(_duel(mover=mover)))
    policy = np.asarray(found.policy[0])
    assert policy[_LOSS] < 0.2 / legal.sum()
    assert policy[_WIN] > (3 if kind == "gumbel" else 1) / legal.sum()
    assert (policy[~legal] == 0).all()
    assert float(found.value[0]) > 0.2


@jax.jit
def _children(state: State):
    """All slots of a 3x3 position: (legal, next states, Red's reward, over)."""
    slots = jnp.arange(actions.num_slots(1, grid=GRID))
    after, rewards = jax.vmap(lambda slot: referee.play(state, slot))(slots)
    legal = actions.legal_slots(state)
    return legal, after, rewards[:, RED], after.position.terminated


def _red_value(state: State) -> float:
    """Exact result for Red, by looking at every line of play."""
    legal, after, reward, over = jax.device_get(_children(state))
    best = max if int(state.position.player) == RED else min
    values = []
    for slot in np.flatnonzero(legal):
        child = jax.tree.map(lambda x, slot=slot: x[slot], after)
        values.append(float(reward[slot]) if over[slot] else _red_value(child))
    return best(values)


def _exchange_colours(state: State) -> State:
    position = state.position
    return state._replace(
        position=position._replace(
            stones=position.stones[::-1],
            walls=position.walls[::-1],
            player=jnp.int8(1) - position.player,
        )
    )


@pytest.mark.slow
def test_search_keeps_the_exact_value_near_the_end():
    """Positions with five sides left to wall, from random games, and the same with the colours
    exchanged: the chosen move must keep the value that looking at every line of play finds."""
    search = jax.jit(make_search(_even_judge(GRID), SearchConfig(2000, 52), explores=False))
    decisive = {RED: 0, BLUE: 0}
    for game in range(40):
        state = initial_state(DUEL)
        for ply in range(9):
            bits = jnp.uint32((0x9E3779B9 * (16 * game + ply + 1)) % 2**32)
            state = _random_ply(state, bits)
        if bool(state.position.terminated):
            continue
        for twin in (state, _exchange_colours(state)):
            mover = int(twin.position.player)
            legal, after, reward, over = jax.device_get(_children(twin))
            values = {}
            for slot in np.flatnonzero(legal):
                child = jax.tree.map(lambda x, slot=slot: x[slot], after)
                values[slot] = float(reward[slot]) if over[slot] else _red_value(child)
            decisive[mover] += min(values.values()) < max(values.values())
            found = search((), _batch(twin, 1), jax.random.key(game))
            best = max if mover == RED else min
            assert values[int(found.slot[0])] == best(values.values()), f"game {game}"
    assert min(decisive.values()) >= 3, decisive


@pytest.fixture(scope="module")
def tree():
    """A real tree on 3x3, deep enough to hold finished games."""
    judge = _even_judge(GRID)
    states = _stack([_duel(mover=RED), _duel(mover=BLUE), initial_state(DUEL)])

    @jax.jit
    def search(states: State):
        root = judge((), states)
        return mctx.gumbel_muzero_policy(
            params=((), states.variant, states.position.player),
            rng_key=jax.random.key(5),
            root=mctx.RootFnOutput(
                prior_logits=root.logits,  # pyright: ignore[reportCallIssue]
                value=root.value[:, 0],  # pyright: ignore[reportCallIssue]
                embedding=states.position,  # pyright: ignore[reportCallIssue]
            ),
            recurrent_fn=make_recurrent_fn(judge),
            num_simulations=200,
            invalid_actions=root.logits == MASKED,
        ).search_tree

    return states.variant, jax.device_get(search(states))


# Three players, one stone each.
TRIO = Rules(size=3, players=3, stones=1, start=(), order=(0, 1, 2))


@pytest.mark.parametrize("kind", ["gumbel", "puct"])
def test_a_share_comes_back_to_its_player_among_three(kind):
    """A judge that gives each player the same share everywhere: whoever searches finds its own."""
    shares = jnp.array([0.5, -0.1, -0.4])

    def judge(variables, states: State, analysis=None) -> Evaluation:
        even = _even_judge(GRID)(variables, states)
        order = (states.position.player[:, None] + jnp.arange(3)[None]) % 3
        return even._replace(value=shares[order])

    config = SearchConfig(simulations=24, kind=kind)
    search = jax.jit(make_search(judge, config, explores=True))
    states, state = [], initial_state(TRIO)
    for ply in range(6):
        states.append(state)
        state = _random_ply(state, jnp.uint32(0x85EBCA6B * (ply + 1) % 2**32))
    batch = _stack(states)
    found, position = jax.device_get((search((), batch, jax.random.key(0)), batch.position))
    expected, over = np.asarray(shares)[position.player], position.terminated
    np.testing.assert_allclose(found.value[~over], expected[~over], atol=1e-5)
    assert set(position.player.tolist()) == {0, 1, 2}


def _paranoid_value(state: State, root: int) -> float:
    """What the root player gets when all others play against it, by every line of play."""
    legal, after, rewards = jax.device_get(_shares_of_children(state))
    values = []
    for slot in np.flatnonzero(legal):
        child = jax.tree.map(lambda x, slot=slot: x[slot], after)
        over = child.position.terminated
        values.append(float(rewards[slot, root]) if over else _paranoid_value(child, root))
    return max(values) if int(state.position.player) == root else min(values)


@jax.jit
def _shares_of_children(state: State):
    slots = jnp.arange(actions.num_slots(1, grid=GRID))
    after, rewards = jax.vmap(lambda slot: referee.play(state, slot))(slots)
    return actions.legal_slots(state), after, rewards


def test_search_among_three_is_paranoid():
    """Near the end of random games the chosen move keeps the value against all others together."""
    search = jax.jit(make_search(_even_judge(GRID), SearchConfig(800, 52), explores=False))
    decisive = set()
    for game in range(16):
        state = initial_state(TRIO)
        for ply in range(10):
            bits = jnp.uint32((0x9E3779B9 * (16 * game + ply + 1)) % 2**32)
            state = _random_ply(state, bits)
        if bool(state.position.terminated):
            continue
        root = int(state.position.player)
        legal, after, rewards = jax.device_get(_shares_of_children(state))
        values = {}
        for slot in np.flatnonzero(legal):
            child = jax.tree.map(lambda x, slot=slot: x[slot], after)
            over = child.position.terminated
            values[slot] = float(rewards[slot, root]) if over else _paranoid_value(child, root)
        if min(values.values()) < max(values.values()):
            decisive.add(game)
        found = search((), _batch(state, 1), jax.random.key(game))
        assert values[int(found.slot[0])] == max(values.values()), f"game {game}"
    assert len(decisive) >= 3, decisive


def test_tree_visits_legal_slots_only(tree):
    variant, found = tree
    of_nodes = jax.vmap(lambda v, p: actions.legal_slots(State(v, p)), (None, 0))
    legal = jax.jit(jax.vmap(of_nodes))(variant, found.embeddings)
    visits = np.asarray(found.children_visits)
    assert (visits[~np.asarray(legal)] == 0).all()
    assert (visits[np.asarray(legal)] > 0).sum() > 100


def test_finished_games_are_exact_leaves(tree):
    _, found = tree
    over = np.asarray(found.embeddings.terminated)
    children = np.asarray(found.children_index)
    boards, nodes, slots = np.nonzero(children >= 0)
    child = children[boards, nodes, slots]
    ended = over[boards, child]
    assert ended.sum() > 20
    discounts = np.asarray(found.children_discounts)[boards, nodes, slots]
    rewards = np.asarray(found.children_rewards)[boards, nodes, slots]
    values = np.asarray(found.node_values)[boards, child]
    assert (discounts[ended] == 0).all()
    assert (np.abs(discounts[~ended]) == 1).all()
    assert set(np.unique(rewards[ended])) <= {-1.0, 0.0, 1.0}
    assert (rewards[~ended] == 0).all()
    assert (values[ended] == 0).all()


def test_tree_holds_positions_only():
    """No observation, no public mask: neither at a node nor anywhere in the search's program."""
    rules = PRESETS["wallzero-4stone"]
    config = NetworkConfig(width=8)
    evaluate = evaluator_for(config, rules)
    states = _batch(initial_state(rules), 2)
    root_shapes = jax.eval_shape(lambda s: s.position, states)
    assert isinstance(root_shapes, Position)
    node_bytes = sum(
        int(np.prod(leaf.shape[1:])) * leaf.dtype.itemsize for leaf in jax.tree.leaves(root_shapes)
    )
    assert node_bytes == 60
    search = make_search(evaluate, SearchConfig(simulations=4), explores=True)
    program = jax.make_jaxpr(search)(network_for(config, 2).shapes, states, jax.random.key(0))
    assert "2597" not in str(program)
    nodes = 5
    stored = [f"[2,{nodes},7,7", f"[2,{nodes},49"]
    assert not any(shape in str(program) for shape in stored)
    assert f"[2,{nodes},208]" in str(program)


def test_search_is_traced_once():
    rules = PRESETS["wallzero-4stone"]
    search = make_search(_even_judge(7), SearchConfig(simulations=2), explores=True)
    chex.clear_trace_counter()
    traced = jax.jit(chex.assert_max_traces(search, n=1))
    for seed in range(3):
        found = traced((), _batch(initial_state(rules), 2), jax.random.key(seed))
        assert found.policy.shape == (2, 208)


TASTE = np.random.default_rng(9).normal(size=actions.num_slots(1, grid=GRID)).astype(np.float32)


def _taste_judge(variables, states: State, analysis=None) -> Evaluation:
    """Prefers some slots to others, as strongly as `variables` says; nobody is ahead."""
    even = _even_judge(GRID)((), states)
    return even._replace(logits=jnp.where(even.logits == MASKED, MASKED, variables * TASTE))


@functools.cache
def _taste_search(*, explores: bool):
    """Noise alone, where there is noise."""
    config = SearchConfig(
        simulations=60,
        kind="puct",
        c_init=2.0,
        c_base=100.0,
        dirichlet_fraction=1.0,
        dirichlet_alpha=50.0,
    )
    return jax.jit(make_search(_taste_judge, config, explores=explores))


def _early_duel() -> State:
    """Both stones placed, no wall yet: nothing can be won soon."""
    state = initial_state(DUEL)
    for cell in (0, 8):
        state, _ = play(state, jnp.int32(cell))
    return state


def test_puct_plays_the_most_visited_slot_and_counts_its_surprise():
    """That its visits and values are mctx's is shown in `test_tree`."""
    states = _batch(_early_duel(), 4)
    found = jax.device_get(_taste_search(explores=False)(1.0, states, jax.random.key(4)))
    np.testing.assert_array_equal(found.slot, found.policy.argmax(axis=1))
    logits = jax.jit(_taste_judge)(1.0, states).logits
    prior = scipy.special.softmax(np.asarray(logits, np.float64), axis=-1)
    policy = np.asarray(found.policy, np.float64)
    nats = np.where(policy > 0, policy * np.log(np.maximum(policy, 1e-30) / (prior + 1e-300)), 0)
    assert (nats.sum(axis=1) > 0).all()
    np.testing.assert_allclose(found.surprise, nats.sum(axis=1), rtol=1e-4)


def test_root_noise_falls_on_legal_slots_alone():
    slots, legal_slots, count = 12, 9, 20_000
    legal = np.arange(slots) % 4 > 0
    assert legal.sum() == legal_slots
    rows = np.broadcast_to(legal, (count, slots))
    noise = np.asarray(draw_noise(jax.random.key(0), rows, alpha=0.17), np.float64)
    assert (noise[:, ~legal] == 0).all()
    np.testing.assert_allclose(noise.sum(axis=1), 1.0, atol=1e-5)
    # The marginals of a symmetric Dirichlet distribution are Beta(alpha, (n - 1) alpha).
    of_legal = noise[:, legal]
    variance = (1 / legal_slots) * (1 - 1 / legal_slots) / (0.17 * legal_slots + 1)
    np.testing.assert_allclose(of_legal.mean(axis=0), 1 / legal_slots, rtol=0.05)
    assert of_legal.var(axis=0).mean() == pytest.approx(variance, rel=0.03)
    # A quarter of the prior's mass makes room for the noise, none of it is lost.
    logits = np.where(rows, np.arange(slots) / 10.0, MASKED).astype(np.float32)
    softmax = jax.jit(jax.nn.softmax)
    mixed = np.asarray(softmax(jax.jit(mix)(logits, jnp.asarray(noise), rows, fraction=0.25)))
    prior = np.asarray(softmax(logits))
    np.testing.assert_allclose(mixed, 0.75 * prior + 0.25 * noise, atol=1e-5)
    assert (mixed[:, ~legal] == 0).all()


draw_noise = jax.jit(dirichlet)


@pytest.mark.parametrize("alpha", [0.001, 0.01, 30.0])
def test_root_noise_is_a_distribution_for_any_alpha(alpha):
    legal = np.arange(64)[None] < np.array([1, 2, 64])[:, None]
    noise = np.asarray(draw_noise(jax.random.key(1), legal, alpha=alpha))
    assert np.isfinite(noise).all()
    np.testing.assert_allclose(noise.sum(axis=1), 1.0, atol=1e-5)
    assert noise[0, 0] == 1.0


def test_root_noise_is_for_self_play():
    """A judge that is sure of one slot is followed without noise; with noise alone it is not."""
    states = _batch(_early_duel(), 4)
    follows, explores = (
        _taste_search(explores=explores)(40.0, states, jax.random.key(2))
        for explores in (False, True)
    )
    assert (np.asarray(follows.policy).max(axis=1) >= 0.75).all()
    assert (np.asarray(explores.policy).max(axis=1) <= 0.5).all()
    legal = np.asarray(legal_slots(_early_duel()))
    assert (np.asarray(explores.policy)[:, ~legal] == 0).all()


@pytest.mark.parametrize("plies", [0, 3])
def test_moves_are_drawn_by_visits_up_to_a_ply(plies):
    """Half of the boards are at ply 2, half at ply 3."""
    boards = 300
    states = _batch(_early_duel(), 2 * boards)
    ply = jnp.asarray(np.repeat(np.array([2, 3], np.int16), boards))
    states = states._replace(position=states.position._replace(ply=ply))
    config = SearchConfig(
        simulations=24, kind="puct", dirichlet_fraction=0.0, temperature_plies=plies
    )
    search = jax.jit(make_search(_taste_judge, config, explores=True))
    found = search(1.0, states, jax.random.key(6))
    policy = np.asarray(found.policy)
    for half in (slice(boards), slice(boards, None)):
        slot = np.asarray(found.slot[half])
        if plies and half.start:
            played = np.take_along_axis(policy[half], slot[:, None], axis=1)[:, 0]
            np.testing.assert_array_equal(played, policy[half].max(axis=1))
        else:
            share = np.bincount(slot, minlength=policy.shape[1]) / boards
            assert np.abs(share - policy[half].mean(axis=0)).max() < 0.1
            assert len(set(slot.tolist())) > 5


@pytest.mark.parametrize(
    ("temperature", "shares"), [(1.0, [1, 3, 0, 4]), (0.5, [1, 9, 0, 16]), (0.01, [0, 0, 0, 1])]
)
def test_draws_go_by_visits_to_a_power(temperature, shares):
    visits = jnp.asarray(np.broadcast_to(np.array([1, 3, 0, 4], np.int32), (20_000, 4)))
    slots = jax.jit(draw_visited)(jax.random.key(0), visits, temperature=temperature)
    expected = np.array(shares) / sum(shares)
    np.testing.assert_allclose(np.bincount(slots, minlength=4) / 20_000, expected, atol=0.02)


def test_the_prior_breaks_ties_of_visits():
    visits = jnp.array([[2, 3, 3, 0], [1, 0, 0, 0]])
    prior = jnp.array([[9.0, 0.0, 1.0, 5.0], [0.0, MASKED, 50.0, 0.0]])
    assert jax.jit(most_visited)(visits, prior).tolist() == [2, 0]


def test_divergence_is_kullback_and_leiblers():
    policy = jnp.array([[0.5, 0.5, 0.0], [0.25, 0.75, 0.0], [1.0, 0.0, 0.0]])
    prior = np.array([[0.5, 0.5, 0.0], [0.5, 0.25, 0.25], [1.0, 0.0, 0.0]], np.float32)
    logits = np.log(prior, out=np.full_like(prior, MASKED), where=prior > 0)
    expected = [0.0, 0.25 * np.log(0.5) + 0.75 * np.log(3), 0.0]
    np.testing.assert_allclose(jax.jit(divergence)(policy, logits), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (0, 16, (16,)),
        (16, 16, (16,)),
        (2, 16, (2, 4, 8, 16)),
        (3, 20, (3, 6, 12, 20)),
        (1, 1, (1,)),
    ],
)
def test_simulations_double_up_to_the_last(first, last, expected):
    config = SearchConfig(simulations=last, first_simulations=first)
    assert stages(config) == expected
    for iterations in (len(expected), 3 * len(expected), 100):
        counts = [simulations_at(config, i, iterations) for i in range(iterations)]
        assert tuple(dict.fromkeys(counts)) == expected
        lengths = [counts.count(count) for count in expected]
        assert max(lengths) - min(lengths) <= 1
    assert simulations_at(config, 1000, 10) == last
