"""The rules of the page's engine equal those of wallgo_jax: rule sets, games, notation."""

import base64
import itertools

import jax
import numpy as np
import pytest

from tests.support.game import harness
from tests.support.game.comparison import walls_of_words
from wallgo_jax.board import bitboard
from wallgo_jax.game import referee
from wallgo_jax.game.rules import PRESETS, Rules, name_of
from wallgo_jax.notation import CANONICAL_SIDES, format_action, parse_action

_ROOM = {(5, 2): 2, (7, 2): 4, (7, 3): 2, (7, 4): 2, (9, 2): 4}
"""Stones a player of the compiled programs (`harness.SHAPES`), by grid and players."""
_CUSTOM = (
    (5, Rules(size=3, stones=1, order=(0, 1))),
    (5, Rules(size=4, stones=2, order=(0, 1, 1, 0), tie=("mover_loses",), walls=3)),
    (5, Rules(size=5, stones=2, start=((0, 0, 0), (4, 4, 1)), order=(1, 0), stay_needs_room=True)),
    (9, Rules(size=9, stay_needs_room=True, walls=5, tie=("region", "mover_loses"))),
    (9, Rules(size=8, stones=3, order=(0, 1) * 3, tie=("mover_loses", "region"))),
    (9, Rules(size=6, stones=2, start=((0, 0, 0), (5, 5, 1), (0, 5, 0), (5, 0, 1)), order=())),
)
RULE_SETS = [*((7, rules) for rules in PRESETS.values()), *_CUSTOM]
"""Twelve rule sets, each with the side of the grid in which it is played."""


@jax.jit
def _owned(states):
    return jax.vmap(jax.vmap(referee.owned_cells))(states)


def compare(engine, seed: int, count: int, grid: int, rules: Rules) -> int:
    """Play random games in the engine and again in wallgo_jax; returns the number of plies."""
    room = {"grid": grid, "stones": _ROOM[grid, rules.players]}
    fields = rules.to_dict()
    answer = engine.ask("random", fields=fields, room=room, seed=seed, count=count)
    shown = harness.replay([rules] * count, answer["actions"], grid=grid)
    owned = bitboard.to_mask(_owned(shown.state), grid)
    owners = np.where(owned.any(axis=2), owned.argmax(axis=2), -1)
    walls = walls_of_words(np.asarray(shown.state.position.walls), grid)  # [T, B, P, 2, N]
    builders = np.where(walls.any(axis=2), walls.argmax(axis=2), -1)
    position = shown.state.position
    plies = 0
    for game, rows in enumerate(answer["rows"]):
        length = len(answer["actions"][game]) + 1
        expected = [
            shown.player,
            position.ply,
            shown.terminated,
            position.stones,
            builders,
            position.walls_left,
            position.trail,
            owners,
            shown.territory,
            shown.largest,
            *_bits(shown.reach, rules.players),
            # After the end the engine has no legal action, wallgo_jax all.
            *_bits((shown.actions & ~shown.terminated[..., None])[:, :, None], 1),
        ]
        table = np.concatenate(
            [np.asarray(each)[:length, game].reshape(length, -1) for each in expected], axis=1
        )
        found = np.frombuffer(base64.b64decode(rows), np.int16).reshape(length, -1)
        np.testing.assert_array_equal(found, table)
        assert shown.terminated[length - 1, game]
        result = answer["results"][game]
        assert result["rewards"] == shown.rewards[length - 2, game].tolist()
        assert result["winner"] == (np.argmax(result["rewards"]) if max(result["rewards"]) else -1)
        plies += length - 1
    return plies


def _bits(masks, count):
    """bool[T, B, count, N] -> count arrays int16[T, B, ceil(N / 16)]."""
    packed = np.packbits(masks, axis=-1, bitorder="little")
    packed = np.pad(packed, [(0, 0)] * 3 + [(0, packed.shape[-1] % 2)])
    return [packed[:, :, place].view(np.int16) for place in range(count)]


@pytest.mark.parametrize(("grid", "rules"), RULE_SETS)
def test_random_games_agree(engine, grid, rules):
    assert compare(engine, 1, 6, grid, rules) > 30


@pytest.mark.slow
@pytest.mark.parametrize(("grid", "rules"), RULE_SETS)
def test_many_random_games_agree(engine, grid, rules):
    plies, seeds = 0, itertools.count(2)
    while plies < 300_000 / len(RULE_SETS):
        plies += compare(engine, next(seeds), harness.BATCH, grid, rules)


def test_conformance_games_are_replayed(engine, conformance):
    for games in conformance.values():
        rules = games[0]["rules"]
        answer = engine.ask(
            "replay", fields=rules, room={}, games=[game["actions"] for game in games]
        )
        for game, result, rows in zip(games, answer["results"], answer["rows"], strict=True):
            found = np.frombuffer(base64.b64decode(rows), np.int16)
            found = found.reshape(len(game["actions"]) + 1, -1)
            actions = 53 * rules["size"] ** 2
            first = found.shape[1] - (actions + 15) // 16
            words = np.ascontiguousarray(found[:-1, first:]).view(np.uint8)
            legal = np.unpackbits(words, axis=1, count=actions, bitorder="little")
            assert found[:-1, 0].tolist() == game["turns"]
            assert legal.sum(axis=1).tolist() == game["legal_counts"]
            if "legal" in game:
                assert [np.flatnonzero(each).tolist() for each in legal] == game["legal"]
            assert result["territory"] == game["territory"]
            assert result["largest"] == game["largest"]
            assert result["rewards"] == pytest.approx(game["rewards"], abs=1e-6)


def test_presets_are_those_of_the_package(engine):
    for name, rules in PRESETS.items():
        assert engine.ask("read", given=name) == {"rules": rules.to_dict(), "name": name}
        assert engine.ask("read", given=rules.to_dict())["name"] == name
    for _, rules in _CUSTOM:
        found = engine.ask("read", given=rules.to_dict())
        assert found == {"rules": rules.to_dict(), "name": name_of(rules)}


@pytest.mark.parametrize(
    "wrong",
    [
        {"size": 2},
        {"size": 7.5},
        {"players": 5},
        {"stones": 0},
        {"walls": 0},
        {"stay_needs_room": 1},
        {"start": 3},
        {"start": [[0, 0]]},
        {"start": [[0, 0, 0], [0, 0, 1]]},
        {"start": [[0, 9, 0]]},
        {"order": [0, 1]},
        {"order": [0, 2]},
        {"size": 3, "stones": 4, "players": 3, "order": [0, 1, 2] * 4},
        {"tie": ["area"]},
        {"tie": ["region", "region"]},
        {"colour": "red"},
    ],
)
def test_wrong_rules_are_refused(engine, wrong):
    with pytest.raises(ValueError, match="rules: "):
        Rules.from_dict(wrong)
    with pytest.raises(ValueError, match="rules: "):
        engine.ask("read", given=wrong)


@pytest.mark.parametrize("grid", [5, 7])
def test_notation_is_that_of_the_package(engine, grid):
    texts = ["C3", "c3", "R B6->B5:W0", "B6→B5:up", "B6->B5:↑", "b6->b6:RIGHT", "A1->B2:W3"]
    texts += ["", "C8", "H1", "B6->B3:up", "B6->B5:W4", "B6->B5", "X C3", "R B C3", "A1->A0:W0"]
    actions = [*range(0, 53 * 25, 7), *range(52 * 25, 53 * 25)]

    def read(text):
        return parse_action(text, grid=grid).action

    def write(action):
        return format_action(action, grid=grid, sides=CANONICAL_SIDES)

    found = engine.ask("notation", texts=texts, grid=grid, actions=actions)
    assert found["read"] == [_or_message(read, text) for text in texts]
    assert found["written"] == [_or_message(write, action) for action in actions]


def _or_message(work, argument):
    try:
        return work(argument)
    except ValueError as error:
        return str(error)
