"""Complete games of an independent referee, replayed by the engine and by the slow referee."""

import contextlib
import zlib

import numpy as np
import pytest

from tests.support import compiling
from tests.support.game import harness
from tests.support.reference.referee import Game
from wallgo_jax import PRESETS

VARIANTS = (
    "wallzero-4stone",
    "wallzero-empty",
    "hkoi",
    "playwallgo-2p",
    "playwallgo-3p",
    "playwallgo-4p",
    "3x3-1stone",
    "5x5-2stones",
    "6x6-3stones-room",
    "8x8",
    "9x9-start",
)


OPTIMIZED = ("wallzero-4stone", "playwallgo-3p")
"""Rule sets whose games the default tests replay as users compile the engine."""


def replay(games, *, is_optimized: bool = False) -> harness.Shown:
    """The games replayed by the engine."""
    is_optimized |= games[0]["variant"] in OPTIMIZED
    with compiling.as_users() if is_optimized else contextlib.nullcontext():
        return harness.replay(
            harness.rules_of(games),
            [game["actions"] for game in games],
            grid=games[0]["rules"]["size"],
        )


def crc(ids) -> int:
    """CRC-32 of ascending ids joined by commas."""
    return zlib.crc32(",".join(map(str, ids)).encode("ascii"))


def cells_of(mask) -> list[int]:
    """The true places of a mask, ascending."""
    return np.flatnonzero(mask).tolist()


def test_every_rule_set_is_replayed(conformance):
    assert tuple(conformance) == VARIANTS
    assert [len(games) for games in conformance.values()] == [60] * len(VARIANTS)


@pytest.mark.parametrize("variant", VARIANTS)
def test_engine_replays_conformance_games(conformance, variant):
    check_replay(conformance[variant])


@pytest.mark.slow
@pytest.mark.parametrize("variant", [name for name in PRESETS if name not in OPTIMIZED])
def test_other_presets_are_replayed_as_users_compile_them(conformance, variant):
    check_replay(conformance[variant], is_optimized=True)


def check_replay(games, *, is_optimized: bool = False) -> None:
    shown = replay(games, is_optimized=is_optimized)
    for b, game in enumerate(games):
        end = len(game["actions"])
        assert shown.player[:end, b].tolist() == game["turns"]
        assert not shown.terminated[:end, b].any()
        assert shown.terminated[end:, b].all()
        legal = [cells_of(mask) for mask in shown.actions[:end, b]]
        assert [len(ids) for ids in legal] == game["legal_counts"]
        assert [crc(ids) for ids in legal] == game["legal_crc"]
        assert shown.back[:end, b].tolist() == game["actions"]
        assert shown.territory[end, b].tolist() == game["territory"]
        assert shown.largest[end, b].tolist() == game["largest"]
        assert not shown.rewards[: end - 1, b].any()
        np.testing.assert_allclose(shown.rewards[end - 1, b], game["rewards"], atol=1e-6)
        assert not shown.rewards[end:, b].any()


@pytest.mark.parametrize("variant", VARIANTS)
def test_engine_shows_full_lists_of_conformance_games(conformance, variant):
    games = [game for game in conformance[variant] if "legal" in game]
    assert len(games) == 2
    shown = replay(games)
    for b, game in enumerate(games):
        for t in range(len(game["actions"])):
            assert cells_of(shown.actions[t, b]) == game["legal"][t]
            assert shown.territory[t, b].tolist() == game["territory_by_ply"][t]
            assert [cells_of(mask) for mask in shown.reach[t, b]] == game["reach_by_ply"][t]


@pytest.mark.parametrize("variant", VARIANTS)
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
