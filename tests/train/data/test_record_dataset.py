"""Positions of record files are those played; bad records are refused in one line."""

import dataclasses
import gzip
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.support.reference.referee import Game
from tests.support.refusals import refusal
from train.data import record_dataset as examples_lib
from train.data.best_slots import KEPT
from train.data.record_dataset import (
    RecordedGames,
    make_examples,
    read_recorded_games,
    split,
    take,
)
from train.runtime.errors import UsageError
from wallgo_jax.board import bitboard
from wallgo_jax.formats import records
from wallgo_jax.formats.records import Record, Searched
from wallgo_jax.game import actions
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State

RULES = Rules(size=3, stones=1, order=(0, 1))
OTHER = Rules(size=3, stones=1, order=(1, 0), walls=4, tie=("region",))


def played(rules: Rules, seed: int, *, stays: bool = False) -> Record:
    """A random game of the slow referee; `stays` moves no stone that may stay."""
    rng = np.random.default_rng(seed)
    game, chosen, rewards = Game(rules.to_dict()), [], None
    while not game.over:
        legal = game.legal()
        still = [action for action in legal if action % 52 < 4] if stays else []
        chosen.append(int(rng.choice(still or legal)))
        rewards = game.act(chosen[-1])
    return Record(rules=rules, actions=tuple(chosen), result=tuple(rewards))


@pytest.fixture(scope="module")
def games() -> list[Record]:
    return [played(RULES if seed % 3 else OTHER, seed) for seed in range(20)]


@pytest.fixture(scope="module", autouse=True)
def small_chunks():
    """Twenty games in three chunks, the last of them filled up."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(examples_lib, "_GAMES_AT_ONCE", 8)
        yield


@pytest.fixture(scope="module")
def recorded(games, tmp_path_factory):
    path = tmp_path_factory.mktemp("records") / "games.jsonl"
    unfinished = Record(rules=RULES, actions=games[1].actions[:2])
    records.write(path, [*games[:10], unfinished, *games[10:]])
    return read_recorded_games([path], RULES)


@pytest.fixture(scope="module")
def found(recorded):
    return make_examples(recorded)


def test_every_ply_of_every_finished_game_is_there(games, recorded, found):
    assert recorded.records == tuple(games)
    found = jax.device_get(found)
    game = found.game
    action_of_slot = jax.jit(actions.action_of_slot)
    cells_of = jax.jit(bitboard.to_mask, static_argnums=1)
    np.testing.assert_array_equal(
        game, np.repeat(np.arange(20), [len(record.actions) for record in games])
    )
    for index, record in enumerate(games):
        (rows,) = np.nonzero(game == index)
        referee = Game(record.rules.to_dict())
        for row, action in zip(rows, record.actions, strict=True):
            position = jax.tree.map(lambda x, row=row: x[row], found.position)
            variant = jax.tree.map(lambda x, index=index: x[index], found.variant)
            state = State(variant, position)
            assert int(position.player) == referee.player
            slot = jnp.int32(found.slot[row])
            assert int(action_of_slot(state, slot)) == action
            rewards = referee.act(action)
        np.testing.assert_allclose(found.outcome.rewards[index], rewards, atol=1e-6)
        owned = np.asarray(cells_of(found.outcome.owned[index], 3))
        for player, regions in enumerate(referee.board.owned_regions()):
            cells = {3 * row + column for region in regions for row, column in region}
            assert set(np.flatnonzero(owned[player])) == cells


def test_games_by_several_rules_are_read_in_any_order():
    """By the first rules a game has at most 12 plies, by the others 14."""
    few = played(Rules(size=3, stones=1, start=((0, 0, 0), (2, 2, 1)), order=()), 0)
    long = (468, 469, 1, 53, 8, 60, 157, 210, 164, 224, 331, 263, 365)
    game = Game(RULES.to_dict())
    *_, rewards = [game.act(action) for action in long]
    assert game.over and len(long) == 13
    many = Record(rules=RULES, actions=long, result=tuple(rewards))
    for ordered in ([few, many], [many, few]):
        found = make_examples(RecordedGames(tuple(ordered), ("first", "last")))
        lengths = [len(record.actions) for record in ordered]
        np.testing.assert_array_equal(found.game, np.repeat([0, 1], lengths))
        results = [record.result for record in ordered]
        np.testing.assert_allclose(found.outcome.rewards, results, atol=1e-6)


def test_samples_learn_what_was_played(found):
    index = jnp.asarray(np.arange(found.game.shape[0], dtype=np.int32))
    taken = jax.jit(take, static_argnames="has_reply")
    sample = jax.device_get(taken(found, index, has_reply=True))
    found = jax.device_get(found)
    np.testing.assert_array_equal(sample.policy.slot[:, 0], found.slot)
    np.testing.assert_array_equal(sample.policy.share[:, 0], 1.0)
    np.testing.assert_array_equal(sample.outcome.rewards, found.outcome.rewards[found.game])
    last = np.append(np.diff(found.game) > 0, True)
    np.testing.assert_array_equal(sample.reply.exists, ~last)
    following = np.asarray(found.slot)[1:][~last[:-1]]
    np.testing.assert_array_equal(sample.reply.policy.slot[~last, 0], following)
    assert taken(found, index, has_reply=False).reply is None


def searched_game() -> Record:
    """A game whose even plies have a search over the legal actions, of the second most likely the
    action that was played."""
    rng = np.random.default_rng(5)
    game = Game(RULES.to_dict())
    chosen = []
    searches = []
    values = []
    rewards = None
    while not game.over:
        legal = [int(action) for action in rng.permutation(game.legal())]
        chosen.append(legal[min(1, len(legal) - 1)])
        shares = rng.dirichlet(np.ones(len(legal))) * 0.9
        said = Searched(tuple(legal), tuple(np.sort(shares)[::-1].round(4).tolist()))
        searches.append(None if len(chosen) % 2 else said)
        values.append(None if len(chosen) % 2 else len(chosen) / 100)
        rewards = game.act(chosen[-1])
    return Record(
        rules=RULES,
        actions=tuple(chosen),
        result=tuple(rewards),
        values=tuple(values),
        searches=tuple(searches),
    )


def test_samples_learn_what_a_search_said():
    """Its policy and its value in place of the slot that was played, the value so many plies later
    for the player to move."""
    record = searched_game()
    found = make_examples(RecordedGames((record, played(RULES, 1)), ("first", "second")))
    action_of_slot = jax.jit(jax.vmap(jax.vmap(actions.action_of_slot, (None, 0))))
    taken = jax.jit(take, static_argnames=("has_reply", "td_steps"))
    index = jnp.arange(found.game.shape[0], dtype=jnp.int32)
    sample = jax.device_get(taken(found, index, has_reply=True))
    states = State(sample.variant, sample.position)
    public = np.asarray(action_of_slot(states, sample.policy.slot.astype(np.int32)))
    for ply, said in enumerate(record.searches or ()):
        shares = sample.policy.share[ply]
        if said is None:
            assert (public[ply, 0], shares[0], shares[1:].sum()) == (record.actions[ply], 1, 0)
            continue
        count = min(KEPT, len(said.actions))
        assert public[ply, :count].tolist() == list(said.actions[:count])
        np.testing.assert_allclose(shares[:count], said.shares[:count], atol=1e-3)
        assert (shares[count:] == 0).all()
        assert sample.policy.rest[ply] == pytest.approx(1 - sum(said.shares[:count]), abs=2e-3)
    plies = len(record.actions)
    player = sample.position.player
    values = np.array([np.nan if value is None else value for value in record.values or ()])
    np.testing.assert_allclose(sample.root_value[:plies], values, rtol=1e-6)
    assert np.isnan(sample.root_value[plies:]).all()
    later = np.asarray(taken(found, index, has_reply=False, td_steps=3).root_value)
    sign = np.where(player[3:plies] == player[: plies - 3], 1, -1)
    np.testing.assert_allclose(later[: plies - 3], values[3:] * sign, rtol=1e-6)
    assert np.isnan(later[plies - 3 : plies]).all()


def test_a_search_of_an_action_that_is_not_allowed_is_refused():
    record = searched_game()
    wrong = Searched((record.actions[0],), (1.0,))
    searches = (None, None, wrong, *(record.searches or ())[3:])
    with pytest.raises(UsageError, match="game 7: searches: entry 3 has an action"):
        make_examples(RecordedGames((dataclasses.replace(record, searches=searches),), ("game 7",)))


def test_games_are_held_back_whole(found):
    learned, held = split(found, share=0.25, seed=3)
    game = np.asarray(found.game)
    assert len(set(game[held])) == 5
    assert set(game[learned]).isdisjoint(game[held])
    assert len(learned) + len(held) == len(game)
    again = split(found, share=0.25, seed=3)
    np.testing.assert_array_equal(held, again[1])
    assert list(split(found, share=0.25, seed=4)[1]) != list(held)
    assert len(set(game[split(found, share=0.001, seed=0)[1]])) == 1
    with pytest.raises(UsageError, match=r"too few finished games \(20\) to hold back 20"):
        split(found, share=0.99, seed=0)


def complaint(path) -> str:
    message = refusal(lambda: make_examples(read_recorded_games([path], RULES)))
    assert str(path) in message
    return message


def test_what_cannot_be_learned_is_refused(games, tmp_path):
    path = tmp_path / "games.jsonl"
    good = records.to_json(games[1])
    fields = json.loads(good)
    actions_of = fields["actions"]
    larger = played(Rules(size=4, stones=1, order=(0, 1)), 0)
    three = played(Rules(size=3, players=3, stones=1, order=(0, 1, 2)), 0)
    for line, word in (
        ("{", "line 2"),
        ({"actions": [*actions_of[:3], 1, *actions_of[4:]]}, "ply 4"),
        ({"actions": [*actions_of[:3], -1, *actions_of[3:]]}, "ply 4"),
        ({"actions": [*actions_of[:3], 99999999999, *actions_of[4:]]}, "ply 4"),
        ({"result": [0.25, -0.25]}, "result"),
        ({"actions": actions_of[:-1]}, "game 2"),
        ({"actions": [*actions_of, actions_of[-1]]}, "game 2"),
        (records.to_json(larger), "size"),
        (records.to_json(three), "players"),
    ):
        line = line if isinstance(line, str) else json.dumps(fields | line)
        path.write_text(good + "\n" + line + "\n")
        assert word in complaint(path), line


def test_files_that_cannot_be_read_are_refused(tmp_path):
    whole = gzip.compress(b"x" * 1000)
    broken = bytearray(whole)
    broken[10] = 0xFF
    for name, content, word in (
        ("none.jsonl", None, "cannot be read"),
        ("empty.jsonl", b"\n", "finished"),
        ("cut.jsonl.gz", whole[:20], "damaged"),
        ("broken.jsonl.gz", bytes(broken), "damaged"),
        ("plain.jsonl.gz", b"\xff\xfe", "damaged"),
    ):
        path = tmp_path / name
        if content is not None:
            path.write_bytes(content)
        assert word in complaint(path), name
    assert "directory" in complaint(tmp_path)
