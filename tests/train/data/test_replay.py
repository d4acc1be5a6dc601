"""The replay buffer, with plies made by hand and with real ones.

A fake ply carries its own number (its row ever written, its board) in `position.stones`, so that a
test knows the plies of a sample.
"""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.support.learner import tiny
from tests.support.reference.referee import Game
from train.bench.parts.search import random_search
from train.data import replay
from train.data.outcomes import Outcome, from_mover
from train.data.replay import Trajectory
from train.data.selfplay import first_boards, make_selfplay
from train.search.search import Search, SearchResult
from wallgo_jax.game import actions, chance, referee
from wallgo_jax.game.state import Position, State

ROWS, LENGTH, BOARDS = 12, 3, 4

add = jax.jit(replay.add)
sample_plies = jax.jit(replay.sample, static_argnames="size")
init = jax.jit(replay.init, static_argnums=0)
of_movers = jax.jit(jax.vmap(from_mover))


class FakeVariant(NamedTuple):
    """Stands in for a variant: the number of the board."""

    board: jax.Array


def array(values: np.ndarray, dtype) -> jax.Array:
    """An array whose dtype is changed on the host: nothing compiles."""
    return jnp.asarray(values.astype(dtype))


def fake_plies(first: int, terminated, *, player=None, rewards=None) -> Trajectory:
    """Plies [T, B] of which the rows are numbered from `first` on."""
    ended = np.asarray(terminated, bool)
    rows, boards = ended.shape
    number = np.stack(np.indices(ended.shape), axis=-1) + np.array([first, 0])
    player = np.zeros_like(ended) if player is None else np.asarray(player)
    rewards = np.zeros((rows, boards, 2)) if rewards is None else np.asarray(rewards)
    nothing = np.zeros(ended.shape)
    return Trajectory(
        position=Position(
            stones=array(number, np.int32),
            walls=array(nothing, np.int8),
            walls_left=array(nothing, np.int8),
            trail=array(nothing, np.int8),
            player=array(player, np.int8),
            ply=array(nothing, np.int16),
            terminated=array(nothing, bool),
        ),
        slot=array(nothing, np.int16),
        policy=array(number.sum(axis=-1, keepdims=True) % 1000, np.float16),
        policy_weight=array(number.sum(axis=-1) % 1000 / 8, np.float32),
        step_outcome=Outcome(
            rewards=array(rewards, np.float32),
            owned=array((rewards > 0)[..., None], np.uint32),
        ),
        terminated=array(ended, bool),
    )


def fake_variant(boards: int) -> FakeVariant:
    return FakeVariant(array(np.arange(boards), np.int32))


def pieces(plies: Trajectory, length: int) -> list[Trajectory]:
    """[N * T, B] plies as N pieces of T rows."""

    def piece(first: int) -> Trajectory:
        return jax.tree.map(lambda x: np.asarray(x)[first : first + length], plies)

    return [piece(first) for first in range(0, plies.terminated.shape[0], length)]


def fill(plies: Trajectory, *, rows: int, length: int) -> replay.ReplayState:
    replay_state = init(rows, pieces(plies, length)[0])
    for piece in pieces(plies, length):
        replay_state = add(replay_state, piece)
    return replay_state


def drawn(
    replay_state: replay.ReplayState, *, seeds: range = range(1)
) -> tuple[np.ndarray, replay.Sample]:
    """Numbers [N, 2] of the plies drawn, 4000 a seed, and the sample."""
    variant = fake_variant(replay_state.plies.terminated.shape[1])
    samples = [
        sample_plies(replay_state, variant, jax.random.key(seed), size=4000) for seed in seeds
    ]
    sample = jax.tree.map(lambda *x: np.concatenate(x), *samples)
    return sample.position.stones, sample


def movers(sample: replay.Sample) -> np.ndarray:
    """[N]: the final rewards of the players to move."""
    return np.asarray(of_movers(sample.outcome.rewards, sample.position.player))[:, 0]


def rows_ready(terminated: np.ndarray, rows: int) -> range:
    """The rows, of all ever played, that a replay buffer of `rows` may sample: it still holds
    them, and on every board a ply from there on ends a game."""
    played = len(terminated)
    ready = [row for row in range(played) if terminated[row:].any(axis=0).all()]
    return range(max(played - rows, 0), max(ready, default=-1) + 1)


def test_new_replay_is_empty():
    like = jax.eval_shape(lambda: fake_plies(0, np.zeros((LENGTH, BOARDS))))
    replay_state = replay.init(ROWS, like)
    assert (int(replay_state.written), int(replay_state.ready)) == (0, 0)
    chex.assert_tree_shape_prefix(replay_state.plies, (ROWS, BOARDS))
    chex.assert_trees_all_equal_dtypes(replay_state.plies, like)
    assert replay.newest_game(replay_state, fake_variant(BOARDS)) == []


@pytest.mark.parametrize("seed", range(3))
def test_rows_drawn_from_are_those_whose_games_have_all_ended(seed):
    rng = np.random.default_rng(seed)
    ended = rng.random((10 * LENGTH, BOARDS)) < 0.25
    plies = fake_plies(0, ended)
    replay_state = init(ROWS, pieces(plies, LENGTH)[0])
    seen = set()
    for count, piece in enumerate(pieces(plies, LENGTH), start=1):
        replay_state = add(replay_state, piece)
        ready = rows_ready(ended[: count * LENGTH], ROWS)
        assert int(replay_state.written) == count * LENGTH
        assert int(replay_state.ready) == len(ready)
        if ready:
            numbers, _ = drawn(replay_state)
            whole = {(row, board) for row in ready for board in range(BOARDS)}
            assert set(map(tuple, numbers.tolist())) == whole
        seen.add((len(ready) == 0, count * LENGTH > ROWS, len(ready) < ROWS))
    assert len(seen) > 2  # nothing ready, part of it, all of it; before and after the first wrap


def test_one_board_that_does_not_end_holds_all_back():
    ended = np.ones((ROWS, BOARDS))
    ended[:, 2] = 0
    assert int(fill(fake_plies(0, ended), rows=ROWS, length=LENGTH).ready) == 0
    ended[4, 2] = 1
    replay_state = fill(fake_plies(0, ended), rows=ROWS, length=LENGTH)
    assert set(drawn(replay_state)[0][:, 0].tolist()) == {0, 1, 2, 3, 4}


def test_new_rows_push_out_the_oldest():
    ended = np.ones((ROWS + 2 * LENGTH, BOARDS))
    replay_state = fill(fake_plies(0, ended), rows=ROWS, length=LENGTH)
    assert int(replay_state.ready) == ROWS
    rows = drawn(replay_state)[0][:, 0]
    assert set(rows.tolist()) == set(range(2 * LENGTH, ROWS + 2 * LENGTH))
    # In the order of age, `first` is the oldest row to sample, here row 0 of a full buffer.
    assert int(replay_state.first) == 0
    oldest = int(replay_state.written) % ROWS
    assert int(np.asarray(replay_state.plies.position.stones)[oldest, 0, 0]) == 2 * LENGTH


def test_first_skips_what_was_never_written():
    replay_state = fill(fake_plies(0, np.ones((LENGTH, BOARDS))), rows=ROWS, length=LENGTH)
    assert (int(replay_state.first), int(replay_state.ready)) == (ROWS - LENGTH, LENGTH)
    assert set(drawn(replay_state)[0][:, 0].tolist()) == set(range(LENGTH))


def test_draws_are_uniform_over_rows_and_boards():
    ended = np.zeros((2 * ROWS, BOARDS))
    ended[-2] = 1  # the last row's games go on
    replay_state = fill(fake_plies(0, ended), rows=ROWS, length=LENGTH)
    numbers, sample = drawn(replay_state, seeds=range(11))
    plies, counts = np.unique(numbers, axis=0, return_counts=True)
    assert len(plies) == (ROWS - 1) * BOARDS
    mean = len(numbers) / len(plies)  # 1000; five standard deviations are about 158
    assert np.abs(counts - mean).max() < 5 * np.sqrt(mean)
    # Everything of a sample is of the same ply.
    np.testing.assert_array_equal(sample.variant.board, numbers[:, 1])
    np.testing.assert_array_equal(sample.policy[:, 0], numbers.sum(axis=1))
    np.testing.assert_array_equal(sample.policy_weight, numbers.sum(axis=1) / 8)
    assert sample.policy.dtype == jnp.float16


def test_other_keys_draw_others():
    replay_state = fill(fake_plies(0, np.ones((ROWS, BOARDS))), rows=ROWS, length=LENGTH)
    first, again, other = (drawn(replay_state, seeds=range(s, s + 1))[0] for s in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).mean() > 0.5


def test_outcome_is_the_movers():
    # Board 0: Red wins a game over two pieces, then Blue one; board 1: a draw, then Blue wins;
    # boards 2 and 3 as 0 and 1.
    ended = [[0, 0], [0, 1], [0, 0], [0, 0], [1, 0], [1, 1]]
    rewards = np.zeros((6, 2, 2))
    rewards[4, 0], rewards[5, 0], rewards[5, 1] = (1, -1), (-1, 1), (-1, 1)
    player = [[0, 0], [1, 1], [1, 0], [0, 0], [0, 1], [1, 1]]
    expected = [[1, 0], [-1, 0], [-1, -1], [1, -1], [1, 1], [1, 1]]
    ended, player, expected = (np.tile(x, 2) for x in (ended, player, expected))
    plies = fake_plies(0, ended, player=player, rewards=np.tile(rewards, (1, 2, 1)))
    numbers, sample = drawn(fill(plies, rows=ROWS, length=LENGTH))
    assert len(np.unique(numbers, axis=0)) == ended.size
    np.testing.assert_array_equal(movers(sample), expected[tuple(numbers.T)])
    # The territory goes with the rewards: here the winner's.
    np.testing.assert_array_equal(sample.outcome.owned[..., 0], sample.outcome.rewards > 0)


def test_outcome_survives_when_the_start_of_its_game_is_overwritten():
    ended, rewards = np.zeros((2 * ROWS, BOARDS)), np.zeros((2 * ROWS, BOARDS, 2))
    ended[[1, ROWS + 4, 2 * ROWS - 1]] = 1
    rewards[ROWS + 4], rewards[-1] = (1, -1), (-1, 1)
    numbers, sample = drawn(fill(fake_plies(0, ended, rewards=rewards), rows=ROWS, length=LENGTH))
    np.testing.assert_array_equal(movers(sample), np.where(numbers[:, 0] <= ROWS + 4, 1, -1))
    assert set(numbers[:, 0].tolist()) == set(range(ROWS, 2 * ROWS))


def test_reply_is_the_next_ply_of_the_same_game():
    rng = np.random.default_rng(3)
    ended = rng.random((5 * LENGTH, BOARDS)) < 0.3
    ended[-1] = 1
    replay_state = fill(fake_plies(0, ended), rows=ROWS, length=LENGTH)
    sample = jax.jit(replay.sample, static_argnames=("size", "has_reply"))(
        replay_state, fake_variant(BOARDS), jax.random.key(0), size=2000, has_reply=True
    )
    sample = jax.device_get(sample)
    row, board = np.asarray(sample.position.stones).T
    exists = np.asarray(sample.reply.exists)
    np.testing.assert_array_equal(exists, ~ended[row, board])
    following = np.stack([row + 1, board], axis=1)[exists]
    np.testing.assert_array_equal(sample.reply.position.stones[exists], following)
    np.testing.assert_array_equal(sample.reply.policy[exists, 0], following.sum(axis=1))
    np.testing.assert_array_equal(sample.reply.policy_weight[exists], following.sum(axis=1) / 8)
    assert 0.2 < exists.mean() < 0.9
    assert sample_plies(replay_state, fake_variant(BOARDS), jax.random.key(0), size=4).reply is None


def test_long_games_are_drawn_from_as_often_as_they_are_played():
    # Each board plays a game of 3 plies, one of 11, and so on, every board at another point of it:
    # at any time 11 of the 14 boards are in a long game.
    short, long, rows, length = 3, 11, 30, 5
    boards = short + long
    phase = (np.arange(20 * length)[:, None] + np.arange(boards)) % boards
    plies = fake_plies(0, (phase == short - 1) | (phase == boards - 1))
    replay_state = init(rows, pieces(plies, length)[0])
    shares = []
    for count, piece in enumerate(pieces(plies, length), start=1):
        replay_state = add(replay_state, piece)
        if int(replay_state.ready):
            numbers, _ = drawn(replay_state, seeds=range(4 * count, 4 * count + 4))
            shares.append((phase[tuple(numbers.T)] >= short).mean())
    assert len(shares) >= 15
    # 11 / 14 = 0.786; leaving out only the plies of unfinished games would give 0.77 or less.
    assert np.mean(shares) == pytest.approx(long / boards, abs=0.005)


def moody_search(variables, states: State, key: jax.Array) -> SearchResult:
    """A player whose mood is Red's first cell. In one mood it ends the game as soon as Red wins by
    that; in the other it goes on as long as it can, then Blue wins if possible."""
    found = random_search()(variables, states, key)
    slots = jnp.arange(found.policy.shape[1])

    def choose(state: State, bits: jax.Array) -> jax.Array:
        after, rewards = jax.vmap(lambda slot: referee.play(state, slot))(slots)
        over, red = after.position.terminated, rewards[:, 0]
        hasty = jnp.where(over & (red > 0), 1.0, 0.0) - jnp.where(over & (red <= 0), 1.0, 0.0)
        patient = jnp.where(over, -2.0 - red, 0.0)
        liking = jnp.where(state.position.stones[0, 0] % 2 == 0, hasty, patient)
        legal = actions.legal_slots(state)
        best = jnp.where(legal, liking, -9.0).max()
        return chance.choose(bits, legal & (liking == best))

    bits = jax.random.bits(key, states.position.ply.shape, jnp.uint32)
    return found._replace(slot=jax.vmap(choose)(states, bits))


def games_of(terminated: np.ndarray, red: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """[R, B] lengths and Red's rewards of the games of all plies; length 0 for unfinished ones."""
    lengths, outcomes = np.zeros(red.shape, int), np.zeros(red.shape)
    for board in range(red.shape[1]):
        start = 0
        for end in np.flatnonzero(terminated[:, board]):
            lengths[start : end + 1, board] = end + 1 - start
            outcomes[start : end + 1, board] = red[end, board]
            start = end + 1
    return lengths, outcomes


def test_learned_positions_are_of_the_games_played():
    """Lengths and outcomes, which go together here, are drawn as they are played: in every
    iteration as in the rows sampled, and over the run, its start included, as in all plies."""
    boards, length, rows, size = 48, 8, 48, 4000
    made = real_pieces(boards, length, 40, search=moody_search)
    played = jax.tree.map(lambda *x: np.concatenate(x), *made)
    lengths, outcomes = games_of(played.terminated, played.step_outcome.rewards[..., 0])
    is_long = lengths > np.median(lengths[played.terminated])
    kind = np.where(lengths == 0, -1, 3 * is_long + outcomes + 1).astype(int)

    def shares(kinds: np.ndarray) -> np.ndarray:
        return np.bincount(kinds.ravel(), minlength=6) / kinds.size

    place = np.stack(np.indices(lengths.shape), axis=-1)
    replay_state = init(rows, made[0])
    variant = tiny.variants(tiny.RULES, boards)
    drawn_shares, ready_shares = [], []
    for count, piece in enumerate(made, start=1):
        # The policy carries the ply's place.
        policy = np.asarray(piece.policy).copy()
        policy[..., :2] = place[(count - 1) * length : count * length]
        replay_state = add(replay_state, piece._replace(policy=jnp.asarray(policy)))
        ready = rows_ready(played.terminated[: count * length], rows)
        assert int(replay_state.ready) == len(ready)
        if ready:
            sample = sample_plies(replay_state, variant, jax.random.key(count), size=size)
            row, board = np.asarray(sample.policy)[:, :2].astype(int).T
            np.testing.assert_array_equal(sample.outcome.rewards[:, 0], outcomes[row, board])
            drawn_shares.append(shares(kind[row, board]))
            ready_shares.append(shares(kind[ready.start : ready.stop]))
    drawn_shares, ready_shares = np.array(drawn_shares), np.array(ready_shares)
    assert len(drawn_shares) >= 38
    # Five standard deviations of a draw, and of all draws together.
    assert np.abs(drawn_shares - ready_shares).max() < 5 * np.sqrt(0.25 / size)
    draws = size * len(drawn_shares)
    difference = drawn_shares.mean(axis=0) - ready_shares.mean(axis=0)
    assert np.abs(difference).max() < 5 * np.sqrt(0.25 / draws)
    of_plies = shares(kind[kind >= 0])
    assert np.abs(drawn_shares.mean(axis=0) - of_plies).max() < 0.02
    # The player is as biased as it is meant to be, so that the above says something.
    of_games = shares(kind[played.terminated])
    assert np.abs(of_games - of_plies).max() > 0.05
    short, late = of_plies[:3] / of_plies[:3].sum(), of_plies[3:] / of_plies[3:].sum()
    assert short[2] > late[2] + 0.2


def real_pieces(
    boards: int, length: int, count: int, *, search: Search | None = None
) -> list[Trajectory]:
    """Pieces of real games, with random moves unless a search is given."""
    variant = tiny.variants(tiny.RULES, boards)
    play = jax.jit(make_selfplay(search or random_search(), plies=length))
    position, made = jax.jit(first_boards)(variant), []
    for key in jax.random.split(jax.random.key(3), count):
        position, plies, _ = play((), variant, position, key)
        made.append(jax.device_get(plies))
    return made


def newest_whole_game(plies: Trajectory, rows: int) -> tuple[int, list[float]] | None:
    """Length and rewards of the newest of the games that lie within the last rows."""
    played = len(plies.terminated)
    for row in range(played - 1, max(played - rows, 0) - 1, -1):
        for board in np.flatnonzero(plies.terminated[row]):
            length = int(plies.position.ply[row, board]) + 1
            if row + 1 - length >= max(played - rows, 0):
                return length, plies.step_outcome.rewards[row, board].tolist()
    return None


def test_newest_game_is_a_whole_game_of_the_referee():
    boards, length, rows = 3, 3, 6
    made = real_pieces(boards, length, 12)
    replay_state, found = init(rows, made[0]), []
    for count, piece in enumerate(made, start=1):
        replay_state = add(replay_state, piece)
        moves = replay.newest_game(replay_state, tiny.variants(tiny.RULES, boards))
        game, rewards = Game(tiny.RULES.to_dict()), None
        for action in moves:
            assert action in game.turns()
            rewards = game.act(action)
        assert game.over == bool(moves)
        played = jax.tree.map(lambda *x: np.concatenate(x), *made[:count])
        expected = newest_whole_game(played, rows)
        assert (len(moves), rewards) == (expected or (0, None))
        found.append((bool(moves), bool(played.terminated[-rows:].any())))
    # Some buffers hold a whole game, some only the ends of games.
    assert {(True, True), (False, True)} <= set(found)
