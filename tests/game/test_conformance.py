"""Complete games of an independent referee, replayed by the engine and by the slow referee."""

import zlib

import numpy as np
import pytest

from tests.support.game import harness
from tests.support.game.comparison import to_grid
from tests.support.reference.referee import Game
from wallgo_jax.game.rules import PRESETS

GRIDS = dict.fromkeys(PRESETS, 7)
GRIDS |= {"3x3-1stone": 5, "5x5-2stones": 5}
GRIDS |= {"6x6-3stones-room": 9, "8x8": 9, "9x9-start": 9}
"""The grid in which the games of each rule set are replayed: the programs of `harness.SHAPES`."""


def crc(ids) -> int:
    """CRC-32 of ascending ids joined by commas."""
    return zlib.crc32(",".join(map(str, ids)).encode("ascii"))


def cells_of(mask) -> list[int]:
    """The true places of a mask, ascending."""
    return np.flatnonzero(mask).tolist()


def test_every_rule_set_is_replayed(conformance):
    assert tuple(conformance) == tuple(GRIDS)
    assert [len(games) for games in conformance.values()] == [60] * len(GRIDS)
    for games in conformance.values():
        assert sum("legal" in game for game in games) == 2


@pytest.mark.parametrize("variant", GRIDS)
def test_engine_replays_conformance_games(conformance, variant):
    check_replay(conformance[variant], grid=GRIDS[variant])


def test_all_rules_of_two_players_are_replayed_in_one_batch(conformance):
    """One program plays boards of several sizes, rules and numbers of stones side by side."""
    games = [games[place] for place in range(60)[:16:2] for games in conformance.values()]
    games = [game for game in games if game["rules"]["players"] == 2]
    assert len(games) == harness.BATCH + 8
    check_replay(games, grid=9)


def check_replay(games, *, grid: int) -> None:
    """The engine's answers in a grid, renumbered, are those of the records."""
    rules = harness.rules_of(games)
    ids = [to_grid(np.arange(each.size**2 * 53), each.size, grid) for each in rules]
    played = [own[game["actions"]] for own, game in zip(ids, games, strict=True)]
    shown = harness.replay(rules, played, grid=grid)
    for b, (own, game) in enumerate(zip(ids, games, strict=True)):
        end, size = len(game["actions"]), game["rules"]["size"]
        assert shown.player[:end, b].tolist() == game["turns"]
        assert not shown.terminated[:end, b].any()
        assert shown.terminated[end:, b].all()
        assert shown.actions[end:, b].all()
        assert shown.actions[:end, b].sum(axis=-1).tolist() == game["legal_counts"]
        legal = [cells_of(mask[own]) for mask in shown.actions[:end, b]]
        assert [len(each) for each in legal] == game["legal_counts"]
        assert [crc(each) for each in legal] == game["legal_crc"]
        assert shown.back[:end, b].tolist() == played[b].tolist()
        assert shown.territory[end, b].tolist() == game["territory"]
        assert shown.largest[end, b].tolist() == game["largest"]
        assert not shown.rewards[: end - 1, b].any()
        np.testing.assert_allclose(shown.rewards[end - 1, b], game["rewards"], atol=1e-6)
        assert not shown.rewards[end:, b].any()
        if "legal" in game:
            assert legal == game["legal"]
            assert shown.territory[:end, b].tolist() == game["territory_by_ply"]
            cells = own[-(size**2) :] - grid**2 * 52
            reach = shown.reach[:end, b]
            shown_reach = [[cells_of(mask[cells]) for mask in ply] for ply in reach]
            assert shown_reach == game["reach_by_ply"]
            assert reach.sum() == reach[..., cells].sum()


@pytest.mark.parametrize("variant", GRIDS)
def test_slow_referee_replays_conformance_games(conformance, variant):
    for record in conformance[variant][:10]:
        game = Game(record["rules"])
        for t, action in enumerate(record["actions"]):
            assert (game.player, game.over) == (record["turns"][t], False)
            assert crc(game.legal()) == record["legal_crc"][t]
            if "legal" in record:
                assert game.legal() == record["legal"][t]
                assert game.territory() == record["territory_by_ply"][t]
                reach = [game.reach(player) for player in range(game.players)]
                assert reach == record["reach_by_ply"][t]
            rewards = game.act(action)
        assert game.over
        assert game.territory() == record["territory"]
        assert game.largest() == record["largest"]
        assert rewards == pytest.approx(record["rewards"], abs=1e-6)
