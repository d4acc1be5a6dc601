"""Matches, pools and tournaments are those of the commands; self-play is the referee's."""

import json
from unittest.mock import Mock

import numpy as np
import pytest

import train
from tests.support.learner import tiny
from tests.support.learner.commands import MATCH, RULES, command
from tests.support.learner.saved import save_run
from train.api import selfplay
from train.api.games import PlayedMatch
from train.api.measures import BoardAccuracy, ProvenAccuracy
from train.api.players import player_of_weights
from train.cli.games import review as review_command
from train.players.config import HeuristicsConfig
from train.ratings import pool as pool_lib
from train.review import analyst
from train.search.config import SearchConfig
from wallgo_jax.formats import records
from wallgo_jax.view.game_replay import replay_actions


@pytest.mark.slow
def test_a_match_is_that_of_the_command(tmp_path):
    found = train.match("random", "greedy", rules=tiny.RULES, games=20, batch=20, seed=4)
    said = command("match", "random", "greedy", *MATCH, "--json", tmp_path / "m.json")
    assert said.code == 0
    told = json.loads((tmp_path / "m.json").read_text())
    assert (told["wins"], told["draws"], told["losses"]) == (found.wins, found.draws, found.losses)
    assert found.summary() == {key: told[key] for key in found.summary()}
    table = found.to_dataframe()
    assert (table["outcome"] > 0).sum() == found.wins
    assert set(table["red"]) == {"random", "greedy"}
    assert drawn(found) == ["all games", "as Red", "as Blue"]
    assert f"{found.wins} won, {found.draws} drawn" in repr(found)


def drawn(found):
    """The names beside the rows of a figure, which can be made a picture."""
    figure = found.figure()
    assert figure._repr_png_().startswith(b"\x89PNG")
    return [label.get_text() for label in figure.axes[0].get_yticklabels()]


def test_a_stopped_match_draws_the_colours_that_it_has():
    one = {"outcome": np.array([1]), "first_is_red": np.array([True]), "games": ((1,),)}
    found = PlayedMatch("a", "b", tiny.RULES, territory=np.array([[5, 4]]), **one)
    assert drawn(found) == ["all games", "as Red"]


@pytest.mark.slow
def test_a_sequential_test_ends_a_match():
    found = train.match("random", "greedy", rules=tiny.RULES, games=2000, batch=20, sprt="0,300")
    assert len(found.games) in range(20, 2000, 20)


def test_accuracy_is_a_table_and_a_figure():
    value, can_err, kept = np.array([1, 1, 0, -1]), np.array([1, 1, 1, 0]), np.array([1, 0, 1, 1])
    found = BoardAccuracy("me", tiny.RULES, value, can_err > 0, kept > 0, np.arange(4))
    table = found.to_dataframe().set_index("positions")
    assert table["total"]["all"] == 4
    assert table["kept_where_one_can_err"]["won"] == 0.5
    assert drawn(found)[:3] == ["all (3)", "won (2)", "drawn (1)"]
    late = ProvenAccuracy("me", value, np.ones(4), can_err > 0, kept > 0, np.full(4, np.nan))
    assert repr(late) == "<me: keeps the value in 75.0% of 4 positions>"
    assert drawn(late) == ["all (3)", "1 to 2 (3)"]


@pytest.mark.slow
def test_a_tournament_is_that_of_the_command(tmp_path):
    names = ["random", "greedy", "net-less"][:2]
    found = train.tournament(names, rules=tiny.RULES, games=4, seed=2)
    words = ["--rules", RULES, "--games", "4", "--seed", "2", "--json", tmp_path / "t.json"]
    assert command("tournament", *names, *words).code == 0
    told = json.loads((tmp_path / "t.json").read_text())["table"]
    table = found.to_dataframe()
    assert table["points"].tolist() == [row["points"] for row in told]
    assert drawn(found) == table["player"].tolist()
    last = train.tournament(names, rules=tiny.RULES, games=4, form="double-elimination")
    assert {row.name for row in last.standings} == set(names)


@pytest.mark.slow
def test_a_pool_is_rated_and_kept(tmp_path, api_run, monkeypatch):
    cache = tmp_path / "games.jsonl"
    players = ["random", "greedy", api_run.player(simulations=0)]
    pool = train.elo(players, rules=tiny.RULES, budget=40, games=20, cache=cache)
    assert {row["player"] for row in pool.rows} == {"random", "greedy", "net:tiny/2"}
    assert pool.ratings.anchor == "random"
    assert pool.measured.new == 40
    again = train.elo(players, rules=tiny.RULES, budget=40, games=20, cache=cache)
    assert (again.measured.new, again.rows) == (0, pool.rows)
    assert len(pool.to_dataframe()) == 3
    assert drawn(pool) == [row["player"] for row in pool.rows]
    interrupt = Mock(side_effect=KeyboardInterrupt)
    monkeypatch.setattr(pool_lib, "make_play", lambda *_, **options: interrupt)
    with pytest.raises(KeyboardInterrupt):
        train.elo(players, rules=tiny.RULES, budget=60, games=20, cache=cache)
    interrupt.assert_called_once()


def test_a_cache_knows_players_by_what_they_are(api_run):
    (wjx,) = pool_lib.entrants_of_names(["wjx"], tiny.RULES, heuristics=HeuristicsConfig())
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


@pytest.mark.slow
def test_the_curve_of_a_run(api_run):
    players = [api_run.directory, "random"]
    pool = train.elo(players, rules=tiny.RULES, budget=60, games=20, simulations=0)
    curve = pool.figure().axes[0].lines[0]
    own = {row["iteration"]: row["elo"] for row in pool.rows if row["run"]}
    assert dict(zip(*curve.get_data(), strict=True)) == own


def named(slot):
    """A player of the name `act`, another one at each call."""

    def act(states, key):
        return np.full(states.position.ply.shape, slot, np.int32)

    return act


THREE = {"size": 3, "players": 3, "stones": 1, "order": [0, 1, 2]}
SEATED = ("--rules", json.dumps(THREE), "--games", "12", "--seed", "4", "--opening-plies", "1")


@pytest.mark.slow
def test_tables_of_three_are_those_of_the_commands(tmp_path):
    how = {"games": 12, "rules": THREE, "seed": 4, "opening_plies": 1}
    found = train.seated_match(["random", "greedy"], **how)
    said = command("match", "random", "greedy", *SEATED, "--json", tmp_path / "m.json")
    assert said.code == 0
    told = json.loads((tmp_path / "m.json").read_text())
    assert found.summary() == {key: told[key] for key in found.summary()}
    table = found.to_dataframe()
    assert len(table) == 3 * len(found.games)
    assert (table[table["player"] == "random"]["reward"] > 0).sum() == found.wins(0)
    assert drawn(found) == ["random", "greedy"]

    names = ["random", "greedy", "wjx", "ethen"]
    several = train.seated_tournament(names, **how)
    files = ["--json", tmp_path / "t.json", "--records", tmp_path / "t.jsonl"]
    # Seven games are no whole number of seatings.
    said = command("tournament", *names, *SEATED, "--games", "7", *files)
    assert (said.code, said.err) == (0, "")
    told = json.loads((tmp_path / "t.json").read_text())
    assert [table["games"] for table in told["tables"]] == 4 * [12]
    assert sum(row["reward"] for row in told["table"]) == pytest.approx(0, abs=1e-6)
    assert len((tmp_path / "t.jsonl").read_text().splitlines()) == 48
    assert several.summary()["table"] == told["table"]
    assert len(several.tables) == 4 and set(drawn(several)) == set(names)
    assert list(several.to_dataframe()["name"]) == [row.name for row in several.standings]

    pool = train.elo(names, rules=THREE, budget=60, games=12, seed=4)
    assert {row["player"] for row in pool.rows} == set(names)
    assert pool.measured.games <= 60


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda: train.match("random", "greedy", rules="playwallgo-3p"),
            "match: the rules are for 3 players, a match is for 2; train.seated_match has tables",
        ),
        (
            lambda: train.seated_match(["random", "greedy"], rules="wallzero-4stone"),
            "match: the rules are for 2 players, seats are for 3 or 4",
        ),
        (
            lambda: train.seated_match(["random"] * 4, rules="playwallgo-3p"),
            "match: 4 players are named, the rules are for 3",
        ),
        (
            lambda: train.seated_tournament(["random", "wjx"], rules="playwallgo-3p"),
            "tournament: 2 players; at least 3 are wanted",
        ),
        (
            lambda: train.seated_match([named(0), named(1), named(0)], rules="playwallgo-3p"),
            "seated_match: two different players are named 'act'",
        ),
        (
            lambda: train.elo([named(0), named(1), "random"], rules="playwallgo-3p"),
            "elo: player 'act' is in the pool twice",
        ),
        (
            lambda: train.seated_match("random", rules="playwallgo-3p"),
            "seated_match: players must be a list",
        ),
    ],
)
def test_wrong_tables_are_told_in_one_line(call, said):
    with pytest.raises(train.UsageError) as raised:
        call()
    assert said in str(raised.value) and "\n" not in str(raised.value)


@pytest.fixture(scope="module")
def games():
    return train.selfplay(
        "heuristic-search:wjx@4", games=4, rules=tiny.RULES, explores=True, opening_plies=2
    )


@pytest.mark.slow
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
        assert (np.abs(games.values[number]) <= 1).all()
    games.write(tmp_path / "games.jsonl.gz")
    assert [record.actions for record in records.read(tmp_path / "games.jsonl.gz")] == [
        game.actions for game in games.games
    ]
    assert games.to_dataframe()["plies"].tolist() == games.lengths.tolist()
    assert len({game.actions for game in games.games}) > 1


def test_self_play_that_explores_weighs_values_as_the_run_does(tmp_path, monkeypatch):
    class AskedError(Exception):
        """Stops self-play with the options of its search."""

    def ask(evaluate, options, *, explores):
        raise AskedError(options, explores)

    monkeypatch.setattr(selfplay, "make_search", ask)
    scales = ["--search.value_scale", "0.2", "--search.player_value_scale", "1.5"]
    config = tiny.config(*scales, "--search.visit_offset", "20")
    run = save_run(tmp_path / "run", seeds={1: 0}, config=config)
    named = train.make_player(f"{run}@5?rounds=true")
    own = player_of_weights("mine", named.trained.variables, config, tiny.RULES, simulations=5)
    for player, rounds in ((named, True), (own, False)):
        with pytest.raises(AskedError) as caught:
            train.selfplay(player, explores=True)
        expected = SearchConfig(
            simulations=5,
            max_considered_actions=config.search.max_considered_actions,
            value_scale=0.2,
            visit_offset=20.0,
            rounds=rounds,
        )
        assert caught.value.args == (expected, True)
        assert player.guide.search.value_scale == 1.5


@pytest.mark.slow
def test_a_game_is_loaded_and_reviewed(games, tmp_path):
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


def test_the_command_reviews_with_as_many_simulations():
    assert review_command.DEFAULT_SIMULATIONS == analyst.DEFAULT_SIMULATIONS


def test_a_game_draws_itself_with_a_slider(games):
    html = games.games[0]._repr_html_()
    assert html.startswith("<iframe")
    assert "type=&quot;range&quot;" in html


def test_a_network_is_described_and_drawn(api_run):
    parts = train.describe(api_run.config).parts
    assert [part.name for part in parts][:2] == ["stem", "block 1 R"]
    owned = train.ownership(str(api_run.directory), api_run.player().env.init())
    assert owned.owners.shape == (3, 3, 3)
    assert owned._repr_html_().startswith("<svg")
    newest = train.ownership(api_run.player(), api_run.player().env.init())
    np.testing.assert_array_equal(newest.owners, owned.owners)
    with pytest.raises(train.UsageError, match="has no T block"):
        train.attention(str(api_run.directory), api_run.player().env.init(), "A1")
