"""Value accuracy is exact for players whose errors are known."""

import io
import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console

from train.analysis import value_accuracy as lib
from train.analysis.value_accuracy import (
    ValueAccuracy,
    accuracy_record,
    accuracy_table,
    value_accuracy,
    value_kept,
)
from train.players.basic import Player
from train.runtime.errors import UsageError
from train.solver.exact_player import make_exact_player, tables_of
from train.solver.reachable import batches, reachable_levels
from train.solver.tablebase import optimal_slots, place_of
from wallgo_jax.game import actions
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State

# The stones stand beforehand, so that positions are few.
RULES = Rules(size=3, stones=1, start=((1, 1, 0), (0, 0, 1)), order=())
KEY = jax.random.key(3)


@pytest.fixture(scope="module")
def levels() -> list[State]:
    """Some of the positions of each ply."""
    return [jax.tree.map(lambda x: x[:200], level) for level in reachable_levels(RULES)]


def marked_player(chooses_best: Any) -> Player:
    """Plays the first best slot where told so, else the first legal slot that is worse, if any."""

    @jax.jit
    def act(variables: Any, states: State, key: jax.Array) -> jax.Array:
        del key
        best = jax.vmap(lambda state: optimal_slots(variables, state))(states)
        legal = jax.vmap(actions.legal_slots)(states)
        bad = legal & ~best
        slot = jnp.where(bad.any(axis=1), bad.argmax(axis=1), best.argmax(axis=1))
        return jnp.where(chooses_best(states), best.argmax(axis=1), slot).astype(jnp.int32)

    return Player("marked", tables_of(RULES), act)


def ask(player: Player, levels: list[State], *, batch: int = 64) -> ValueAccuracy:
    return value_kept(player, RULES, tables_of(RULES), levels, key=KEY, batch=batch)


@pytest.mark.slow
def test_exact_player_keeps_every_value(levels):
    result = ask(make_exact_player(RULES), levels)
    assert result.kept.all()
    assert result.can_err.mean() > 0.5
    assert not result.can_err[result.value == -1].any()
    assert len(result.value) == sum(len(level.position.ply) for level in levels)


def test_shares_of_a_player_with_known_errors(levels):
    # Right when blue is to move, wrong wherever red can be.
    result = ask(marked_player(lambda states: states.position.player == 1), levels)
    red = np.concatenate([level.position.player == 0 for level in levels])
    np.testing.assert_array_equal(result.kept, ~(red & result.can_err))
    total, share = result.share(result.can_err)
    assert total == result.can_err.sum()
    assert share == (result.can_err & ~red).sum() / total
    assert 0.2 < share < 0.8


def test_batch_does_not_matter(levels):
    player = marked_player(lambda states: states.position.stones[:, 0, 0] < 4)
    one, other = ask(player, levels[:6], batch=64), ask(player, levels[:6], batch=128)
    np.testing.assert_array_equal(one.kept, other.kept)
    assert not one.kept.all()


def test_table_and_record_say_the_shares(levels):
    result = ask(marked_player(lambda states: states.position.player == 1), levels)
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(accuracy_table(result))
    text = console.export_text()
    record = json.loads(json.dumps(accuracy_record(result)))["positions"]
    for name in ("all", "won", "drawn", "lost"):
        assert f"{record[name]['kept']:.2%}" in text
        share = record[name]["kept_where_one_can_err"]
        assert (share is None) == (record[name]["total_where_one_can_err"] == 0)
        assert (f"{share:.2%}" if share is not None else "0 │      - │") in text
    # Whoever has lost loses no value by any move.
    assert record["lost"]["kept_where_one_can_err"] is None
    by_ply = [figures for name, figures in record.items() if name.startswith("ply")]
    assert sum(figures["total"] for figures in by_ply) == record["all"]["total"]
    assert Rules.from_dict(accuracy_record(result)["rules"]) == RULES


def test_positions_are_distinct_unfinished_and_in_order():
    seen, look = set(), jax.jit(jax.vmap(place_of))
    for ply, level in enumerate(reachable_levels(RULES)):
        position = level.position
        assert (position.ply == ply).all()
        assert not position.terminated.any()
        parts = [(look(part), own) for part, own in batches(level, 4096)]
        walls, pair = (np.concatenate([np.asarray(p[i])[:own] for p, own in parts]) for i in (0, 1))
        assert (np.bitwise_count(walls) == ply).all()
        keys = set(zip(walls.tolist(), pair.tolist(), position.player.tolist(), strict=True))
        assert len(keys) == len(position.ply)
        assert not keys & seen
        seen |= keys
    assert len(seen) > 1000


def test_batches_hold_everything_once():
    parts = list(batches((np.arange(10), np.arange(20, 30)), 4))
    assert [own for _, own in parts] == [4, 4, 2]
    assert np.concatenate([part[0][:own] for part, own in parts]).tolist() == [*range(10)]
    assert all(len(part[1]) == 4 for part, _ in parts)


@pytest.mark.slow
def test_a_batch_is_no_larger_than_what_it_can_hold(monkeypatch):
    asked, most = [], max(len(level.position.ply) for level in reachable_levels(RULES))
    monkeypatch.setattr(lib, "check_fits", lambda needs, memory: asked.extend(needs))
    result = value_accuracy("random", RULES, batch=10**8, is_quiet=True)
    assert len(result.kept) > 1000
    assert asked[0].key == "batch"
    assert asked[0].value == max(most, lib.DEFAULT_BATCH)
    assert asked[0].bytes > 20 * asked[0].value


def test_board_that_is_not_solved_is_refused():
    with pytest.raises(UsageError, match="tables are for"):
        value_accuracy("random", Rules(), is_quiet=True)
