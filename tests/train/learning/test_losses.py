"""Targets and losses against plain NumPy, on samples of real games."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.support.forms import of_a_tpu
from tests.support.learner.samples import GRID, SAMPLES, SETUPS, played
from train.data import replay
from train.learning import losses as losses_lib
from train.learning.config import LossWeights
from train.learning.losses import (
    cross_entropy,
    make_targets,
    mix_chances,
    mix_rewards,
    ownership_errors,
    policy_cross_entropy,
)
from train.network import MASKED, Output
from wallgo_jax.game import actions, symmetry

targets_of = jax.jit(make_targets)
losses = jax.jit(losses_lib.losses, static_argnums=2, static_argnames="value_mix")
errors_of = jax.jit(ownership_errors)
legal_slots = jax.jit(jax.vmap(actions.legal_slots))
are_in_setup = jax.jit(jax.vmap(lambda state: actions.in_setup(*state)))
STILL = np.zeros(SAMPLES, np.int32)
of_two = pytest.mark.parametrize("drawn", [2], indirect=True)


@pytest.fixture(params=SETUPS, ids=lambda players: f"{players} players")
def drawn(request) -> replay.Sample:
    """Samples with their next plies."""
    return played(request.param).sample


def numpy_losses(output: Output, targets) -> dict[str, float]:
    """Every loss, one sample and one cell at a time."""
    found: dict[str, list[tuple[float, float]]] = {}

    def note(name, value, weight=1.0):
        found.setdefault(name, []).append((float(value), float(weight)))

    players = targets.outcome.shape[1]
    counts = np.zeros(players + 1)
    following = targets.states._replace(position=targets.reply.position)
    legals = np.asarray(legal_slots(targets.states))
    setup, setup_after = (
        np.asarray(are_in_setup(targets.states)),
        np.asarray(are_in_setup(following)),
    )
    for n in range(SAMPLES):
        legal = legals[n]
        slots = _slots(output.policy[n], _own_stones(targets.states, n), in_setup=setup[n])
        weight = targets.policy_weight[n]
        note("policy", _nats(slots[legal], targets.policy[n][legal]), weight)
        is_best = np.where(legal, slots, -np.inf).argmax() == targets.policy[n].argmax()
        note("accuracy", is_best, weight > 0)
        outcome = targets.outcome[n]
        note("value", ((output.value[n] - outcome) ** 2).mean())
        result = np.zeros(players + 1)
        result[np.argmax(outcome) if max(outcome) > 0 else players] = 1
        note("result", _nats(output.result[n], result))
        note("margin", (output.margin[n] - targets.margin[n]) ** 2)
        for cell in np.argwhere(targets.on_board[n]):
            owner = targets.owner[n][tuple(cell)]
            logits = output.ownership[n][tuple(cell)]
            note("ownership", _nats(logits, np.eye(players + 1)[owner]))
            chances = np.exp(logits) / np.exp(logits).sum()
            signs = np.array([1] + [-1] * (players - 1) + [0])
            note("error", (chances @ signs - signs[owner]) ** 2)
            counts[owner] += 1
        if targets.reply.exists[n]:
            own = _own_stones(following, n)
            slots = _slots(output.reply[n], own, in_setup=setup_after[n])
            last = GRID**2 if setup_after[n] else 52 * len(own)
            nats = _nats(slots[:last], targets.reply.policy[n][:last])
            note("reply", nats, targets.reply.policy_weight[n])
    frequency = counts / counts.sum()
    means = {}
    for name, notes in found.items():
        values, weights = np.transpose(notes)
        means[name] = np.average(values, weights=weights)
    return means | {"constant": -(frequency * np.log(np.maximum(frequency, 1e-9))).sum()}


def _nats(logits, target) -> float:
    logits, target = np.asarray(logits, np.float64), np.asarray(target, np.float64)
    logits = logits - logits.max()
    return -(target * (logits - np.log(np.exp(logits).sum()))).sum()


def _own_stones(states, n: int) -> np.ndarray:
    """The mover's stones on the board at place n."""
    return states.position.stones[n, states.position.player[n]]


def _slots(planes, own, *, in_setup: bool) -> np.ndarray:
    """[A] planes read slot by slot."""
    slots = actions.num_slots(len(own), grid=GRID)
    values = np.zeros(slots)
    for slot in range(slots):
        if in_setup:
            values[slot] = planes.reshape(-1, 53)[slot, 52] if slot < GRID**2 else 0
        elif slot < 52 * len(own):
            values[slot] = planes.reshape(-1, 53)[own[slot // 52], slot % 52]
    return values


def random_output(players: int, *, kind: str) -> Output:
    """Random output of every head of a network."""
    draw = np.random.default_rng(9)

    def noise(*shape, squashed=np.array):
        return squashed(draw.normal(size=(SAMPLES, *shape)).astype(np.float32))

    result = noise(players + 1)
    return Output(
        policy=noise(GRID, GRID, 53),
        value=noise(players, squashed=np.tanh),
        result=result if kind == "wdl" else None,
        ownership=noise(GRID, GRID, players + 1),
        margin=noise(),
        reply=noise(GRID, GRID, 53),
    )


@pytest.mark.parametrize("kind", ["scalar", "wdl"])
def test_losses_are_the_stated_ones(drawn, kind):
    targets = targets_of(drawn, np.arange(SAMPLES, dtype=np.int32) % 8)
    players = targets.outcome.shape[1]
    output = random_output(players, kind=kind)
    weights = LossWeights(policy=2.0, value=0.5, ownership=0.25, margin=3.0, reply=0.125)
    found = losses(output, targets, weights)
    full = random_output(players, kind="wdl")
    expected = numpy_losses(*jax.device_get((full._replace(value=output.value), targets)))
    value = expected["result" if kind == "wdl" else "value"]
    np.testing.assert_allclose(found.policy_loss, expected["policy"], rtol=1e-4)
    np.testing.assert_allclose(found.accuracy, expected["accuracy"], rtol=1e-4)
    np.testing.assert_allclose(found.value_loss, value, rtol=1e-4)
    np.testing.assert_allclose(found.ownership_loss, expected["ownership"], rtol=1e-4)
    np.testing.assert_allclose(found.ownership_constant, expected["constant"], rtol=1e-4)
    np.testing.assert_allclose(found.ownership_error, expected["error"], rtol=1e-4)
    errors = errors_of(output.ownership, targets)
    cells = np.asarray(targets.on_board).sum((1, 2))
    np.testing.assert_allclose(np.average(errors, weights=cells), expected["error"], rtol=1e-4)
    np.testing.assert_allclose(found.margin_loss, expected["margin"], rtol=1e-4)
    np.testing.assert_allclose(found.reply_loss, expected["reply"], rtol=1e-4)
    total = (
        2.0 * expected["policy"]
        + 0.5 * value
        + 0.25 * expected["ownership"]
        + 3.0 * expected["margin"]
        + 0.125 * expected["reply"]
    )
    np.testing.assert_allclose(found.loss, total, rtol=1e-4)


def found_values(drawn, *, of_first: float) -> np.ndarray:
    """float32[N]: values for the mover of searches that give player 0 `of_first` and the others its
    negative; every fourth search has found none."""
    is_first = np.asarray(drawn.position.player) == 0
    values = np.where(is_first, of_first, -of_first).astype(np.float32)
    values[::4] = np.nan
    return values


def test_searches_value_is_mixed_into_the_reward_of_whom_it_is_for(drawn):
    """Seen from each player: of two, both rewards are mixed, of more the mover's alone."""
    values = found_values(drawn, of_first=0.5)
    targets = targets_of(drawn._replace(root_value=values), STILL)
    mixed = np.asarray(jax.jit(mix_rewards)(targets.outcome, values, 0.25))
    rewards, movers = np.asarray(drawn.outcome.rewards), np.asarray(drawn.position.player)
    players = rewards.shape[1]
    for n in range(SAMPLES):
        for player in range(players):
            found = rewards[n, player]
            if not np.isnan(values[n]) and (players == 2 or player == movers[n]):
                found = 0.75 * found + 0.25 * (0.5 if player == 0 else -0.5)
            assert mixed[n, (player - movers[n]) % players] == pytest.approx(found)
    output = random_output(players, kind="scalar")
    loss = losses(output, targets, LossWeights(), value_mix=0.25).value_loss
    np.testing.assert_allclose(loss, np.square(output.value - mixed).mean(), rtol=1e-5)


def test_searches_value_is_mixed_into_the_chances_of_two_players():
    chances = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]], np.float32)
    values = np.array([0.5, 1.0, -1.0, np.nan], np.float32)
    mixed = np.asarray(jax.jit(mix_chances)(chances, values, 0.4))
    expected = [[0.9, 0.1, 0], [0.4, 0.6, 0], [0, 0.4, 0.6], [0, 0, 1]]
    np.testing.assert_allclose(mixed, expected, atol=1e-6)
    # Expected rewards are mixed in the same shares.
    rewards = chances @ [1.0, -1.0, 0.0]
    found = np.where(np.isnan(values), rewards, values)
    np.testing.assert_allclose(mixed @ np.array([1, -1, 0]), 0.6 * rewards + 0.4 * found, atol=1e-6)


@of_two
def test_wdl_learns_mixed_chances(drawn):
    players = drawn.outcome.rewards.shape[1]
    values = found_values(drawn, of_first=1.0)
    targets = targets_of(drawn._replace(root_value=values), STILL)
    output = random_output(players, kind="wdl")
    loss = losses(output, targets, LossWeights(), value_mix=1.0).value_loss
    outcome = np.asarray(targets.outcome)
    results = np.where(np.isnan(values), outcome[:, 0], values).astype(int)
    chances = np.eye(3)[np.select([results == 1, results == -1], [0, 1], 2)]
    expected = [_nats(*pair) for pair in zip(output.result, chances, strict=True)]
    np.testing.assert_allclose(loss, np.mean(expected), rtol=1e-4)


@of_two
def test_no_mix_and_no_value_leave_the_outcome(drawn):
    targets = targets_of(drawn, STILL)
    assert targets.root_value is None
    output = random_output(targets.outcome.shape[1], kind="scalar")
    plain = losses(output, targets, LossWeights())
    with_value = targets._replace(root_value=np.ones(SAMPLES, np.float32))
    for given, mix in ((with_value, 0.0), (targets, 0.5)):
        found = losses(output, given, LossWeights(), value_mix=mix)
        np.testing.assert_allclose(found.value_loss, plain.value_loss, rtol=1e-6)


@of_two
def test_heads_that_are_not_there_cost_nothing(drawn):
    targets = targets_of(drawn, STILL)
    output = random_output(targets.outcome.shape[1], kind="scalar")
    found = losses(output._replace(ownership=None, margin=None, reply=None), targets, LossWeights())
    assert found[4:] == (None,) * 6
    np.testing.assert_allclose(found.loss, found.policy_loss + found.value_loss, rtol=1e-6)


@of_two
def test_policies_of_weight_0_teach_nothing(drawn):
    targets = targets_of(drawn, STILL)
    output = random_output(targets.outcome.shape[1], kind="scalar")

    def of_policies(policy, reply, weight):
        after = targets.reply._replace(policy_weight=weight)
        found = losses_lib.losses(
            output._replace(policy=policy, reply=reply),
            targets._replace(policy_weight=weight, reply=after),
            LossWeights(value=0.0, ownership=0.0, margin=0.0),
        )
        return found.loss

    gradient = jax.jit(jax.value_and_grad(of_policies, argnums=(0, 1)))
    _, (policy, reply) = gradient(output.policy, output.reply, drawn.policy_weight)
    learned = np.asarray(drawn.policy_weight) > 0
    assert (np.asarray(policy)[~learned] == 0).all()
    assert (np.asarray(reply)[~learned] == 0).all()
    assert (np.abs(policy).max(axis=(1, 2, 3)) > 0)[learned].mean() > 0.8
    loss, (policy, reply) = gradient(output.policy, output.reply, np.zeros(SAMPLES, np.float32))
    assert float(loss) == 0.0
    assert not np.any(policy) and not np.any(reply)


def test_targets_turn_with_the_board(drawn):
    """NumPy's quarter turns and mirroring, within the board's square, give the same owners; the
    policy's mass moves with the slots, and stays on legal ones."""
    size, nobody = int(drawn.variant.size[0]), drawn.outcome.rewards.shape[1]
    still = jax.device_get(targets_of(drawn, STILL))
    policy = np.zeros(still.policy.shape, np.float32)
    np.put_along_axis(policy, drawn.policy.slot.astype(int), drawn.policy.share, axis=1)
    np.testing.assert_array_equal(still.policy, policy)
    for turn in range(8):
        turned = jax.device_get(targets_of(drawn, np.full(SAMPLES, turn, np.int32)))
        expected = np.rot90(still.owner[:, :size, :size], turn % 4, axes=(1, 2))
        expected = expected[:, :, ::-1] if turn >= 4 else expected
        np.testing.assert_array_equal(turned.owner[:, :size, :size], expected)
        np.testing.assert_array_equal(turned.margin, still.margin)
        np.testing.assert_array_equal(turned.outcome, still.outcome)
        assert (turned.owner[:, size:] == nobody).all()
        legal = np.asarray(legal_slots(turned.states))
        np.testing.assert_array_equal(turned.legal, legal)
        assert (turned.policy[~legal] == 0).all()
        np.testing.assert_allclose(np.sort(turned.policy, axis=1), np.sort(policy, axis=1))


def test_the_winner_owns_most(drawn):
    targets = targets_of(drawn, STILL)
    owner, outcome = np.asarray(targets.owner), np.asarray(targets.outcome)
    players = outcome.shape[1]
    cells = np.stack([(owner == p).sum(axis=(1, 2)) for p in range(players)], axis=1)
    won = outcome.max(axis=1) > 0
    top = cells[np.arange(SAMPLES), outcome.argmax(axis=1)]
    assert (top[won] == cells[won].max(axis=1)).all()
    margin = (cells[:, 0] - cells[:, 1:].max(axis=1)) / targets.on_board[0].sum()
    np.testing.assert_allclose(targets.margin, margin, atol=1e-6)
    assert won.any()


def test_every_ply_of_a_game_has_the_games_ending():
    replay_state, step_outcome = played(2).replay_state, played(2).step_outcome
    ended, stored = replay_state.plies.terminated, replay_state.plies.outcome
    for board in range(ended.shape[1]):
        start = 0
        for row in np.flatnonzero(ended[:, board]):
            for found, given in zip(stored, step_outcome, strict=True):
                assert (found[start : row + 1, board] == given[row, board]).all()
            start = row + 1
    assert (np.abs(stored.rewards) == 1).any()
    assert stored.owned.any()


def test_targets_on_a_tpu_are_the_same(drawn):
    turns = np.arange(SAMPLES) % 8
    expected = jax.device_get(targets_of(drawn, turns))
    with of_a_tpu():
        targets = jax.jit(make_targets)(drawn, turns)
    chex.assert_trees_all_equal_shapes_and_dtypes(targets, expected)
    chex.assert_trees_all_equal(targets, expected)


def test_next_plies_turn_with_their_own_phase(drawn):
    targets = targets_of(drawn, np.full(SAMPLES, 3, np.int32))
    turned = jax.jit(jax.vmap(lambda p, v: symmetry.turn_position(p, jnp.int32(3), v)))(
        drawn.reply.position, drawn.variant
    )
    np.testing.assert_array_equal(targets.reply.position.stones, turned.stones)
    after = targets.states._replace(position=targets.reply.position)
    legal = legal_slots(after)
    exists = np.asarray(targets.reply.exists)
    assert (np.where(legal, 0.0, targets.reply.policy)[exists] == 0).all()
    assert exists.sum() > SAMPLES // 2


def lumps(count: int) -> tuple[np.ndarray, ...]:
    """Logits, legal slots, whole policies [8, 40], and those of which `count` slots are known."""
    rng = np.random.default_rng(count)
    legal = rng.random((8, 40)) < 0.7
    logits = np.where(legal, rng.normal(size=legal.shape), MASKED).astype(np.float32)
    whole = np.where(legal, rng.dirichlet(np.full(40, 0.3), 8), 0.0)
    whole = (whole / whole.sum(axis=1, keepdims=True)).astype(np.float32)
    least = np.sort(whole, axis=1)[:, -count][:, None]
    return logits, legal, whole, np.where(whole >= least, whole, 0.0)


@pytest.mark.parametrize("count", [1, 5, 40])
def test_slots_that_are_known_as_a_sum_count_as_one(count):
    """NumPy gives the loss; it is the whole policy's where all is known, and its gradient is the
    whole policy's where the network shares the sum as the search did."""
    logits, legal, whole, known = lumps(count)
    rest = (whole - known).sum(axis=1)
    of = jax.jit(jax.value_and_grad(lambda *x: policy_cross_entropy(*x).sum()))
    of_whole = jax.jit(jax.value_and_grad(lambda *x: cross_entropy(*x).sum()))
    found, gradient = of(logits, known, rest, legal)
    chances = np.exp(np.where(legal, logits, -np.inf).astype(np.float64))
    chances /= chances.sum(axis=1, keepdims=True)
    others = (chances * (known == 0)).sum(axis=1)
    nats = -(known * np.log(np.where(known > 0, chances, 1))).sum(axis=1)
    nats -= rest * np.log(np.where(rest > 0, others, 1))
    assert float(found) == pytest.approx(nats.sum(), rel=1e-5)
    assert np.isfinite(gradient).all() and not np.any(np.asarray(gradient)[~legal])
    if count == 40:
        assert float(found) == pytest.approx(float(of_whole(logits, whole)[0]), rel=1e-6)
        return
    # Other chances of the known slots, the same shares of the rest.
    alike = np.where(known > 0, logits, np.log(np.maximum(whole, 1e-30)))
    alike = np.where(legal, alike, MASKED).astype(np.float32)
    np.testing.assert_allclose(
        of(alike, known, rest, legal)[1], of_whole(alike, whole)[1], atol=2e-6
    )
    assert np.abs(np.asarray(gradient) - of_whole(logits, whole)[1]).max() > 1e-3


def test_a_rest_without_a_slot_left_costs_nothing():
    logits = np.array([[0.0, 1.0, MASKED]], np.float32)
    policy = np.array([[0.4, 0.6, 0.0]], np.float32)
    legal = np.array([[True, True, False]])
    of = jax.jit(jax.value_and_grad(lambda *x: policy_cross_entropy(*x).sum()))
    found, gradient = of(logits, policy, np.array([1e-4], np.float32), legal)
    assert float(found) == pytest.approx(float(cross_entropy(logits, policy)[0]))
    assert np.isfinite(gradient).all()


def test_cross_entropy_ignores_what_is_masked():
    of = jax.jit(jax.value_and_grad(cross_entropy))
    target = np.array([0.0, 0.5, 0.5, 0.0], np.float32)
    nats, gradient = of(np.array([MASKED, 0.0, 0.0, MASKED], np.float32), target)
    assert float(nats) == pytest.approx(np.log(2))
    assert np.isfinite(gradient).all()
    assert float(of(np.full(4, MASKED, np.float32), np.zeros(4, np.float32))[0]) == 0.0
