"""Matches, pools and tournaments are those of the commands; self-play is the referee's.

Matches are stood in for: what is asked of them is that of the commands, and they end at once.
"""

import dataclasses
import inspect
import json
from unittest.mock import Mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import train
import train.arena.match
from tests.support.learner import matches, tiny
from tests.support.learner.commands import RULES, command
from tests.support.learner.reports import report_of
from tests.support.learner.saved import save_run
from train.analysis.accuracy import Accuracy
from train.api import whole_games
from train.api.players import player_of_weights
from train.arena import meetings
from train.arena.result import MatchResult
from train.config.run import HeuristicsConfig
from train.ratings import pool as pool_lib
from train.review import game_review
from train.search.config import SearchConfig
from train.search.search import SearchResult
from wallgo_jax.formats import records
from wallgo_jax.game import actions
from wallgo_jax.game.rules import Rules
from wallgo_jax.view.game_replay import replay_actions

legal_actions = jax.jit(actions.legal_actions)


def test_options_of_a_call_are_in_its_signature_and_others_are_refused():
    options = inspect.signature(train.match).parameters
    assert options["games"].default == 400 and "opening_plies" in options
    assert not any(each.kind is each.VAR_KEYWORD for each in options.values())
    for call in (train.match, train.tournament, train.elo, train.accuracy):
        players = ["random", "greedy"] if call is train.match else [["random", "greedy"]]
        with pytest.raises(train.UsageError, match="gamse"):
            call(*players, gamse=3)


def match_of(names: list[str], rules, games: int) -> MatchResult:
    """A match of which the first of two wins a half and loses a quarter."""
    if rules.players > 2:
        return matches.at_table(names, rules, games)
    red, outcome = np.arange(games) % 4 < 2, np.resize([1, 0, 1, -1], games)
    return matches.of_two(*names, rules, outcome, is_red=red)


@pytest.fixture
def asked(monkeypatch) -> list:
    """What was asked of matches; they end at once."""
    found = []

    def note(players, rules, how, **more):
        names = [player.name for player in players]
        key = more.pop("key", None)
        if key is not None:
            more["key"] = jax.random.key_data(key).tolist()
        found.append((names, rules, dataclasses.replace(how, should_stop=None), more))
        return match_of(names, rules, how.games)

    def until_decided(players, rules, how, test, *, key, on_progress):
        return note(players, rules, how, test=test, key=key)

    def meeting(players, rules, how, *, seed, before, on_progress):
        return note(players, rules, how, seed=seed, before=before)

    monkeypatch.setattr(train.arena.match, "play_in_rounds", until_decided)
    monkeypatch.setattr(meetings, "play_meeting", meeting)
    return found


def drawn(found):
    """The names beside the rows of a figure, which can be made a picture."""
    figure = found.figure()
    assert figure._repr_png_().startswith(b"\x89PNG")
    return [label.get_text() for label in figure.axes[0].get_yticklabels()]


def test_a_match_is_that_of_the_command(asked, tmp_path):
    found = train.match(
        "random", "greedy", rules=tiny.RULES, games=20, batch=10, seed=4, sprt="0,300"
    )
    words = ("--rules", RULES, "--games", "20", "--batch", "10", "--seed", "4", "--sprt", "0,300")
    said = command("match", "random", "greedy", *words, "--json", tmp_path / "m.json")
    assert (said.code, said.err) == (0, "")
    by_python, by_command = asked
    assert by_python == by_command
    names, rules, how, _ = by_python
    assert (names, rules, how.games, how.batch) == (["random", "greedy"], tiny.RULES, 20, 10)
    assert (found.wins, found.draws, found.losses) == (10, 5, 5)
    assert found.summary() == json.loads((tmp_path / "m.json").read_text())
    table = found.to_dataframe()
    assert (table["outcome"] > 0).sum() == found.wins
    assert set(table["red"]) == {"random", "greedy"}
    assert drawn(found) == ["all games", "as Red", "as Blue"]
    assert f"{found.wins} won, {found.draws} drawn" in repr(found)
    assert train.match(named(0), "random", rules=tiny.RULES, games=4).first == "act"
    assert "seating" not in found.caption


@pytest.mark.parametrize(("seats", "games", "played"), [(2, 7, 8), (3, 4, 6)])
def test_a_match_says_that_it_plays_more_games(asked, seats, games, played):
    said = f"{played} games, not {games}: each opening is played in every seating"
    players, rules = ("random", "greedy", "wjx")[:seats], tiny.RULES if seats == 2 else THREE
    assert said in train.match(*players, rules=rules, games=games).caption
    words = ("--rules", RULES if seats == 2 else json.dumps(THREE), "--games", games)
    assert said in " ".join(command("match", *players, *words).out.split())


def test_a_stopped_match_draws_the_colours_that_it_has():
    found = matches.of_two("a", "b", tiny.RULES, [1], is_red=[True])
    assert drawn(found) == ["all games", "as Red"]


def test_a_series_is_told_by_opponent_and_colour(tmp_path):
    """Of files; in each game walls shut Red in, 1 cell against 8."""
    me, weak, strong = "a person", "machine (novice)", "machine (strong)"
    games, blue_wins = [(weak, me), (me, strong), (strong, me)], (468, 476, 1, 416, 2)
    for number, players in enumerate(games):
        record = records.Record(tiny.RULES, blue_wins, players=players)
        records.write(tmp_path / f"{number}.jsonl", [record])
    unfinished = tmp_path / "3.jsonl"
    records.write(unfinished, [records.Record(tiny.RULES, blue_wins[:3], players=(me, weak))])
    read = train.series(sorted(tmp_path.glob("*.jsonl")))
    assert read.unfinished == 1
    assert [match.names for match in read.matches] == [(me, weak), (me, strong)]
    of_weak, of_strong = read.matches
    assert (of_weak.wins, of_weak.losses, of_weak.territory_ratio) == (1, 0, 8.0)
    assert (of_strong.wins, of_strong.losses, of_strong.territory_ratio) == (1, 1, 1.0)
    assert [of_strong.win_rate_at(seat) for seat in (0, 1)] == [0.0, 1.0]
    assert of_weak.regions.tolist() == [[1, 8]]
    (table,) = read.shown()
    assert [column for column in table.heads] == ["", f"against {weak}", f"against {strong}"]
    with pytest.raises(train.UsageError, match="none of 1 games is over"):
        train.series([unfinished])


def test_accuracy_is_a_table_and_a_figure():
    value, can_err, kept = np.array([1, 1, 0, -1]), np.array([1, 1, 1, 0]), np.array([1, 0, 1, 1])
    shares = tiny.RULES, value, can_err > 0, kept > 0
    found = Accuracy("me", *shares, "ply", np.arange(4))
    table = found.to_dataframe().set_index("positions")
    assert table["total"]["all"] == 4
    assert table["kept_where_one_can_err"]["won"] == 0.5
    assert drawn(found)[:3] == ["all (3)", "won (2)", "drawn (1)"]
    margins = {"given_away": np.full(4, np.nan)}
    late = Accuracy("me", *shares, "plies left", np.ones(4), **margins)
    assert repr(late) == "<me: keeps the value in 75.0% of 4 positions>"
    assert drawn(late) == ["all (3)", "1 to 2 (3)"]


def test_a_tournament_has_its_table_and_its_figure(asked):
    names = ["random", "greedy", "wjx"]
    found = train.tournament(names, rules=tiny.RULES, games=4, seed=2)
    assert len(asked) == len(found.meetings) == 3
    table = found.to_dataframe()
    assert table["points"].tolist() == [5.0, 4.0, 3.0]
    assert drawn(found) == table["player"].tolist() == names
    last = train.tournament(names, rules=tiny.RULES, games=4, form="double-elimination")
    assert {row.name for row in last.standings} == set(names)


@pytest.fixture
def batches(monkeypatch) -> Mock:
    """Plays the batches of a pool at once."""

    def play_batch(seated, number):
        rules = tiny.RULES if len(seated) == 2 else Rules.from_dict(THREE)
        return match_of([entrant.name for entrant in seated], rules, 20 if len(seated) == 2 else 12)

    play = Mock(side_effect=play_batch)
    monkeypatch.setattr(pool_lib, "make_play", lambda rules, *, games, **options: play)
    return play


def test_a_pool_is_rated_and_kept(tmp_path, api_run, batches):
    cache = tmp_path / "games.jsonl"
    players = ["random", "greedy", api_run.player(simulations=0)]
    how = {"rules": tiny.RULES, "games": 20}
    pool = train.elo(players, **how, budget=40, cache=cache)
    assert {row["player"] for row in pool.rows} == {"random", "greedy", "net:tiny/2"}
    assert pool.ratings.anchor == "random"
    assert pool.measured.new == 40 and batches.call_count == 2
    again = train.elo(players, **how, budget=40, cache=cache)
    assert (again.measured.new, again.rows) == (0, pool.rows)
    assert len(pool.to_dataframe()) == 3
    assert drawn(pool) == [row["player"] for row in pool.rows]
    batches.reset_mock()
    batches.side_effect = KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        train.elo(players, **how, budget=60, cache=cache)
    batches.assert_called_once()


def test_a_cache_knows_players_by_what_they_are(api_run):
    wjx = pool_lib.entrant_of_name("wjx", tiny.RULES, heuristics=HeuristicsConfig())
    assert train.make_player("wjx", tiny.RULES).identity == wjx.identity
    for simulations, name in ((4, f"{api_run.directory}@4"), (0, f"net:{api_run.directory}")):
        newest = api_run.player(simulations=simulations)
        assert newest.identity == train.make_player(name).identity
        assert newest.identity != api_run.player(simulations=2).identity
    act = named(0)
    one, same = (train.make_player(act, tiny.RULES).identity for _ in range(2))
    assert one == same
    # Each is gone when the next one is made, whose id may be the same.
    others = {train.make_player(named(0), tiny.RULES).identity for _ in range(20)}
    assert len(others | {one}) == 21


def test_the_curve_of_a_run(api_run, batches):
    how = {"rules": tiny.RULES, "budget": 60, "games": 20, "simulations": 0}
    pool = train.elo([api_run.directory, "random"], **how)
    curve = pool.figure().axes[0].lines[0]
    own = {row["iteration"]: row["elo"] for row in pool.rows if row["run"]}
    assert own and dict(zip(*curve.get_data(), strict=True)) == own


def named(slot):
    """A player of the name `act`, another one at each call."""

    def act(states, key):
        return np.full(states.position.ply.shape, slot, np.int32)

    return act


THREE = {"size": 3, "players": 3, "stones": 1, "order": [0, 1, 2]}
HOW = {"games": 12, "rules": THREE, "seed": 4, "opening_plies": 1}


def test_the_second_of_two_has_all_other_seats(asked):
    found = train.match("random", "greedy", **HOW)
    ((names, _, how, _),) = asked
    assert (names, how.games) == (["random", "greedy", "greedy"], 12)
    table = found.to_dataframe()
    assert len(table) == 3 * len(found.games)
    assert (table[table["player"] == "random"]["reward"] > 0).sum() == found.wins > 0
    assert drawn(found) == ["random", "greedy"]


def test_a_tournament_of_three_writes_its_games(asked, batches, tmp_path):
    names = ["random", "greedy", "wjx", "ethen"]
    several = train.tournament(names, **HOW, records=tmp_path / "t.jsonl")
    assert len(asked) == 4
    assert len((tmp_path / "t.jsonl").read_text().splitlines()) == 48
    assert len(several.tables) == 4 and set(drawn(several)) == set(names)
    assert list(several.to_dataframe()["player"]) == [row.name for row in several.standings]
    pool = train.elo(names, rules=THREE, budget=60, games=12, seed=4)
    assert {row["player"] for row in pool.rows} == set(names)
    assert pool.measured.games <= 60


def draw_legal(evaluate, options, *, explores):
    """Stands in for `make_search`: draws a legal slot; all are as good."""

    def search(variables, states, key):
        legal = jax.vmap(actions.legal_slots)(states)
        prior = jnp.where(legal, 0.0, -1e9)
        slot = jax.random.categorical(key, prior)
        policy, value = legal / legal.sum(axis=1, keepdims=True), 1 / (1 + legal.sum(axis=1))
        return SearchResult(slot, policy, value, jnp.zeros_like(value), prior)

    return search


@pytest.fixture(scope="module")
def games():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(whole_games, "make_search", draw_legal)
        how = {"explores": True, "opening_plies": 2, "searches": True}
        return train.selfplay("heuristic-search:wjx@4", games=4, rules=tiny.RULES, **how)


def test_games_keep_what_the_search_of_each_player_says(tmp_path):
    """The search of a player's name, asked about each position, and nothing of others."""
    path = tmp_path / "games.jsonl"
    player = "heuristic-search:wjx@4"
    how = {"games": 2, "rules": tiny.RULES, "opening_plies": 2}
    train.match(player, "greedy", **how, records=path, searches=True)
    one, _ = records.read(path)
    game = replay_actions(tiny.RULES, one.actions)
    own = (one.players or ()).index(player)
    assert one.searches is not None and one.values is not None
    for ply, mover in enumerate(game.movers):
        said, value = one.searches[ply], one.values[ply]
        if mover != own:
            assert (said, value) == (None, None)
            continue
        assert said is not None and said.visits is not None
        assert sum(said.visits) <= 4 and sum(said.shares) == pytest.approx(1, abs=1e-2)
        assert list(said.shares) == sorted(said.shares, reverse=True)
    ply = game.movers.index(own)
    found = train.make_player(player, tiny.RULES).search(game.states[ply])
    said = one.searches[ply]
    assert said is not None
    assert said.actions[0] == int(found.actions[np.argmax(found.policy)])
    assert one.values[ply] == pytest.approx(float(found.value), abs=1e-4)
    with pytest.raises(train.UsageError, match="a player that searches"):
        train.match("greedy", "wjx", **how, records=path, searches=True)
    with pytest.raises(train.UsageError, match="greedy does not search"):
        train.selfplay("greedy", games=2, rules=tiny.RULES, searches=True)


def test_self_play_is_whole_games_of_the_referee(games, tmp_path):
    assert len(games) == 4
    for number in range(4):
        length = games.lengths[number]
        game = replay_actions(tiny.RULES, games.actions[number, :length].tolist())
        assert game.is_over
        np.testing.assert_array_equal(game.rewards, games.rewards[number])
        assert game.movers == tuple(games.movers[number, :length])
        assert (games.actions[number, length:] == -1).all()
        np.testing.assert_allclose(games.policies[number, :length].sum(-1), 1, atol=1e-5)
        assert (games.policies[number, length:] == 0).all()
        assert (games.values[number, :length] > 0).all()
        assert (games.values[number, length:] == 0).all()
    # The search that played, asked once more: of these all legal actions are as good.
    for record, game in zip(games.records(), games.games, strict=True):
        assert record.searches is not None
        for said, state in zip(record.searches, game.states[:-1], strict=True):
            legal = np.flatnonzero(legal_actions(state)).tolist()
            assert said is not None and sorted(said.actions) == legal
            assert max(said.shares) - min(said.shares) < 1e-3
    games.write(tmp_path / "games.jsonl.gz")
    assert [record.actions for record in records.read(tmp_path / "games.jsonl.gz")] == [
        game.actions for game in games.games
    ]
    assert games.to_dataframe()["plies"].tolist() == games.lengths.tolist()
    assert len({game.actions for game in games.games}) > 1
    html = games.games[0]._repr_html_()
    assert html.startswith("<iframe")
    assert "type=&quot;range&quot;" in html


def test_self_play_that_explores_weighs_values_as_the_run_does(tmp_path, monkeypatch):
    make = Mock(side_effect=KeyboardInterrupt)
    monkeypatch.setattr(whole_games, "make_search", make)
    scales = ["--search.value_scale", "0.2", "--search.player_value_scale", "1.5"]
    config = tiny.config(*scales, "--search.visit_offset", "20")
    run = save_run(tmp_path / "run", seeds={1: 0}, config=config)
    named = train.make_player(f"{run}@5?rounds=true")
    own = player_of_weights("mine", named.trained.variables, config, tiny.RULES, simulations=5)
    for player, rounds in ((named, True), (own, False)):
        with pytest.raises(KeyboardInterrupt):
            train.selfplay(player, explores=True)
        expected = SearchConfig(
            simulations=5,
            max_considered_actions=config.search.max_considered_actions,
            value_scale=0.2,
            visit_offset=20.0,
            rounds=rounds,
        )
        (_, options), how = make.call_args
        assert (options, how) == (expected, {"explores": True})
        assert player.searching.search.value_scale == 1.5


def test_a_game_is_loaded_and_reviewed(games, tmp_path, monkeypatch):
    def search_positions(player, states, **options):
        """Each position's first legal move, and values that rise for the player to move."""
        found = []
        for ply, state in enumerate(states):
            slot = np.asarray(legal_slots(state)).argmax()
            action = int(actions.action_of_slot(state, slot))
            found.append(report_of(state, action, 0.1 * ply))
        return found

    legal_slots = jax.jit(actions.legal_slots)
    monkeypatch.setattr(game_review, "search_positions", search_positions)
    games.write(tmp_path / "games.jsonl")
    game = train.load_game(tmp_path / "games.jsonl", game=2)
    assert game.actions == games.games[1].actions
    review = train.review_game(game, "heuristic-search:wjx@4")
    assert len(review.moves) == len(review.rows()) == len(game.actions)
    assert review.chances.shape == (len(game.actions) + 1, 2)
    assert review.to_dataframe()["ply"].tolist() == [*range(1, len(game.actions) + 1)]
    shown = review.figure().axes[0].lines[0].get_ydata()
    np.testing.assert_array_equal(shown, review.chances[:, 0])
    assert review._repr_html_().startswith("<iframe")
    review.write(tmp_path / "review.html")
    assert (tmp_path / "review.html").read_text().startswith("<!DOCTYPE html>")


def test_a_network_is_described_and_drawn(api_run):
    parts = train.describe(api_run.config, measure=False).parts
    assert [part.name for part in parts][:2] == ["stem", "block 1 R"]
    start = jax.jit(api_run.player().env.init)()
    owned = train.ownership(str(api_run.directory), start)
    assert owned.owners.shape == (3, 3, 3)
    assert owned._repr_html_().startswith("<svg")
    # At the start nobody owns a cell: the error is the mean square of the evaluation.
    assert owned.error(start) == pytest.approx(np.square(owned.evaluation).mean())
    assert not train.ownership("wjx", start).evaluation.any()  # neither side has a stone
    newest = train.ownership(api_run.player(), start)
    np.testing.assert_array_equal(newest.owners, owned.owners)
    with pytest.raises(train.UsageError, match="has no T block"):
        train.attention(str(api_run.directory), start, "A1")
