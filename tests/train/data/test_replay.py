"""The replay buffer, with plies made by hand and with real ones.

A fake ply carries its own number (its row ever written, its board) in `position.stones`, so that a
test knows the plies of a sample.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.support.learner import tiny
from tests.support.learner.random_search import random_search
from tests.support.reference.referee import Game
from train.config import read_config
from train.data import replay
from train.data.best_slots import BestSlots
from train.data.config import SelfPlayConfig
from train.data.outcomes import Outcome, from_mover
from train.data.replay import StoredPlies
from train.data.selfplay import first_boards, make_selfplay
from train.loop.iteration_row import steps_due
from train.loop.programs import FinishedPlies
from train.search.search import Search
from wallgo_jax.game.state import Position

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


def fake_plies(first: int, terminated, *, player=None, rewards=None) -> StoredPlies:
    """Plies [T, B] of which the rows are numbered from `first` on."""
    ended = np.asarray(terminated, bool)
    rows, boards = ended.shape
    number = np.stack(np.indices(ended.shape), axis=-1) + np.array([first, 0])
    player = np.zeros_like(ended) if player is None else np.asarray(player)
    rewards = np.zeros((rows, boards, 2)) if rewards is None else np.asarray(rewards)
    nothing = np.zeros(ended.shape)
    share = array(number.sum(axis=-1, keepdims=True) % 1000, np.float16)
    return StoredPlies(
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
        policy=BestSlots(array(nothing[..., None], np.uint8), share, share[..., 0] * 2),
        policy_weight=array(number.sum(axis=-1) % 1000 / 8, np.float32),
        root_value=array(number.sum(axis=-1) % 1000 / 16, np.float32),
        outcome=Outcome(
            rewards=array(rewards, np.float32),
            owned=array((rewards > 0)[..., None], np.uint32),
        ),
        terminated=array(ended, bool),
    )


def fake_variant(boards: int) -> FakeVariant:
    return FakeVariant(array(np.arange(boards), np.int32))


def pieces(plies: StoredPlies, length: int) -> list[StoredPlies]:
    """[N * T, B] plies as N pieces of T rows."""

    def piece(first: int) -> StoredPlies:
        return jax.tree.map(lambda x: np.asarray(x)[first : first + length], plies)

    return [piece(first) for first in range(0, plies.terminated.shape[0], length)]


def fill(plies: StoredPlies, *, rows: int, length: int) -> replay.ReplayState:
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


def finished_plies(terminated: np.ndarray, rows: int) -> set[tuple[int, int]]:
    """(row, board) of all plies ever played that a replay of `rows` still holds and whose game is
    over."""
    played, boards = terminated.shape
    return {
        (row, board)
        for row in range(max(played - rows, 0), played)
        for board in range(boards)
        if terminated[row:, board].any()
    }


@pytest.mark.parametrize("seed", range(3))
def test_plies_drawn_from_are_those_whose_game_has_ended(seed):
    rng = np.random.default_rng(seed)
    ended = rng.random((10 * LENGTH, BOARDS)) < 0.15
    plies = fake_plies(0, ended)
    replay_state = init(ROWS, pieces(plies, LENGTH)[0])
    assert (int(replay_state.written), replay_state.finished.tolist()) == (0, [0] * BOARDS)
    assert replay.newest_games(replay_state, fake_variant(BOARDS), 1) == []
    seen = set()
    for count, piece in enumerate(pieces(plies, LENGTH), start=1):
        replay_state = add(replay_state, piece)
        finished = finished_plies(ended[: count * LENGTH], ROWS)
        assert int(replay_state.written) == count * LENGTH
        boards = [board for _, board in finished]
        assert replay_state.finished.tolist() == [boards.count(b) for b in range(BOARDS)]
        if finished:
            numbers, _ = drawn(replay_state)
            assert set(map(tuple, numbers.tolist())) == finished
        seen.add((len(set(boards)) < BOARDS, count * LENGTH > ROWS))
    assert len(seen) > 2  # some boards or all of them; before and after the first wrap


def test_draws_are_uniform_over_the_plies_of_finished_games():
    ended = np.zeros((2 * ROWS, BOARDS))
    ended[[-2, -1, -3, -8], np.arange(BOARDS)] = 1
    replay_state = fill(fake_plies(0, ended), rows=ROWS, length=LENGTH)
    numbers, sample = drawn(replay_state, seeds=range(11))
    plies, counts = np.unique(numbers, axis=0, return_counts=True)
    assert len(plies) == 4 * ROWS - 1 - 2 - 7
    mean = len(numbers) / len(plies)  # 1158; five standard deviations are about 170
    assert np.abs(counts - mean).max() < 5 * np.sqrt(mean)
    # Everything of a sample is of the same ply.
    np.testing.assert_array_equal(sample.variant.board, numbers[:, 1])
    np.testing.assert_array_equal(sample.policy.share[:, 0], numbers.sum(axis=1))
    np.testing.assert_array_equal(sample.policy.rest, numbers.sum(axis=1) * 2)
    np.testing.assert_array_equal(sample.policy_weight, numbers.sum(axis=1) / 8)
    np.testing.assert_array_equal(sample.root_value, numbers.sum(axis=1) / 16)
    assert sample.policy.share.dtype == jnp.float16


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
    np.testing.assert_array_equal(sample.reply.policy.share[exists, 0], following.sum(axis=1))
    np.testing.assert_array_equal(sample.reply.policy_weight[exists], following.sum(axis=1) / 8)
    assert 0.2 < exists.mean() < 0.9
    assert sample_plies(replay_state, fake_variant(BOARDS), jax.random.key(0), size=4).reply is None


@pytest.mark.parametrize("iterations", [1, 2, 5])
def test_newest_draws_all_plies_of_the_games_that_ended_last_and_no_others(iterations):
    rng = np.random.default_rng(4)
    ended = rng.random((iterations * LENGTH, BOARDS)) < 0.15
    ended[:, 0] = False  # no game of this board ends
    replay_state = fill(fake_plies(0, ended), rows=ROWS, length=LENGTH)
    draw = jax.jit(replay.sample, static_argnames=("size", "newest"))
    sample = draw(replay_state, fake_variant(BOARDS), jax.random.key(0), size=2000, newest=LENGTH)
    expected = set()
    for board in range(BOARDS):
        ends = np.flatnonzero(ended[:, board])
        old, new = ends[ends < len(ended) - LENGTH], ends[ends >= len(ended) - LENGTH]
        first = max(old[-1] + 1 if len(old) else 0, len(ended) - ROWS)
        expected |= {(row, board) for row in range(first, new[-1] + 1 if len(new) else first)}
    assert set(map(tuple, np.asarray(sample.position.stones).tolist())) == expected
    counts = jax.jit(replay.newly_finished, static_argnums=1)(replay_state, LENGTH)
    assert counts.sum() == len(expected) and counts[0] == 0


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_values_are_read_steps_later_for_the_player_to_move_before(steps):
    """By players in any order; where the game is over by then there is no value."""
    rng = np.random.default_rng(5)
    ended = rng.random((5 * LENGTH, BOARDS)) < 0.2
    ended[-1] = 1
    player = rng.integers(2, size=ended.shape)
    replay_state = fill(fake_plies(0, ended, player=player), rows=ROWS, length=LENGTH)
    sample = jax.jit(replay.sample, static_argnames=("size", "td_steps"))(
        replay_state, fake_variant(BOARDS), jax.random.key(0), size=2000, td_steps=steps
    )
    expected = []
    for row, board in np.asarray(sample.position.stones):
        if ended[row : row + steps, board].any():
            expected.append(np.nan)
        else:
            is_same = player[row, board] == player[row + steps, board]
            expected.append((row + steps + board) / 16 * (1 if is_same else -1))
    np.testing.assert_array_equal(sample.root_value, np.array(expected, np.float32))
    assert np.isnan(expected).any() == (steps > 0)
    assert np.nanmin(expected) < 0 or steps == 0


def test_long_games_are_drawn_from_as_often_as_they_are_played():
    """A run as long as the quickstart: games of 22 to 75 plies, an iteration of 32, a replay of
    17 games' length, which the run fills twice. Over the run, its first iterations included, the
    draws of a ply depend on the length of its game by less than a tenth; its last games are left
    out, as they are cut."""
    boards, length, rows, count = 256, 32, 800, 50
    rng = np.random.default_rng(0)
    played = count * length
    ended, lengths = np.zeros((played, boards), bool), np.zeros((played, boards), int)
    for board in range(boards):
        start = 0
        while start < played:
            game = int(np.clip(rng.normal(46, 8), 22, 75).round())
            lengths[start : start + game, board] = game
            ended[start + game - 1 : start + game, board] = True
            start += game
    config = read_config(None)
    made = pieces(fake_plies(0, ended), length)
    replay_state, draws, first = init(rows, made[0]), np.zeros(lengths.shape), None
    for number, piece in enumerate(made):
        replay_state = add(replay_state, piece)
        finished = int(replay_state.finished.sum())
        steps = steps_due(config, FinishedPlies(finished, finished, 0))
        first = number if first is None and steps else first
        assert (steps > 0) == ended[: (number + 1) * length].any()
        variant = fake_variant(boards)
        sample = sample_plies(replay_state, variant, jax.random.key(number), size=4096)
        np.add.at(draws, tuple(np.asarray(sample.position.stones).T), steps / 8)
    assert first == 0
    is_whole = np.array([ended[row:].any(axis=0) for row in range(played)])
    mean = draws[is_whole].mean()
    for least, most in ((22, 38), (39, 44), (45, 50), (51, 75)):
        of_length = is_whole & (lengths >= least) & (lengths <= most)
        assert draws[of_length].mean() == pytest.approx(mean, rel=0.1), (least, most)


def real_pieces(
    boards: int, length: int, count: int, *, search: Search | None = None
) -> list[StoredPlies]:
    """Pieces of real games, with random moves unless a search is given."""
    variant = tiny.variants(tiny.RULES, boards)
    selfplay = make_selfplay(search or random_search(), SelfPlayConfig(plies=length))

    @jax.jit
    def play(variant, boards, key):
        boards, plies, _ = selfplay((), variant, boards, key)
        return boards, replay.stored(plies)

    position, made = jax.jit(first_boards)(variant), []
    for key in jax.random.split(jax.random.key(3), count):
        position, plies = play(variant, position, key)
        made.append(jax.device_get(plies))
    return made


def newest_whole_game(plies: StoredPlies, rows: int) -> tuple[int, list[float]] | None:
    """Length and rewards of the newest of the games that lie within the last rows."""
    played = len(plies.terminated)
    for row in range(played - 1, max(played - rows, 0) - 1, -1):
        for board in np.flatnonzero(plies.terminated[row]):
            length = int(plies.position.ply[row, board]) + 1
            if row + 1 - length >= max(played - rows, 0):
                return length, plies.outcome.rewards[row, board].tolist()
    return None


def test_newest_game_is_a_whole_game_of_the_referee():
    boards, length, rows = 3, 3, 6
    made = real_pieces(boards, length, 12)
    replay_state, found = init(rows, made[0]), []
    for count, piece in enumerate(made, start=1):
        replay_state = add(replay_state, piece)
        newest = replay.newest_games(replay_state, tiny.variants(tiny.RULES, boards), 1)
        moves = newest[0].actions if newest else []
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
