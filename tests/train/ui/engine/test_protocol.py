"""The page's engine answers the requests of docs/engine.md, as the engine in Python does."""

import jax
import numpy as np
import pytest

from tests.train.ui.engine.games import random_games
from tests.train.ui.engine.test_network import write
from train.checkpoints import pretrained
from train.checkpoints.weights import load_network
from train.engine.protocol import format_evaluation
from train.players.registry import make_evaluating_player
from train.search.config import as_player
from train.search.report import make_reporting_search
from wallgo_jax.notation import format_action

_HEURISTIC = {"machines": [], "other": "heuristic-search:wjx"}
_MOVES = ["A1", "C3", "A1->A1:W2", "C3->C3:W0", "A1->A1:W1"]
_START = {
    "type": "start_game_session",
    "bgsId": "a",
    "rules": {"size": 3, "stones": 1, "order": [0, 1]},
}
_OPEN = {"type": "game_session_started", "bgsId": "a", "success": True, "error": ""}


def serve(engine, *requests, settings=_HEURISTIC, seed=1):
    """The messages of an engine that gets the requests at once."""
    found = engine.ask("serve", settings=settings, requests=requests, seed=seed)
    return found["messages"]


def evaluate(**fields):
    return {"type": "evaluate_position", "bgsId": "a", **fields}


def apply(move, **fields):
    return {"type": "apply_move", "bgsId": "a", "move": move, **fields}


def test_a_game_is_played_to_its_end(engine):
    end = {"type": "end_game_session", "bgsId": "a"}
    requests = [_START, *map(apply, _MOVES), evaluate(details=True), end]
    first, *applied, last, ended = serve(engine, *requests)
    assert first == _OPEN | {"rules": "custom", "ply": 0, "result": None}
    assert [each["ply"] for each in applied] == [1, 2, 3, 4, 5]
    assert [each["result"] for each in applied] == [None] * 4 + [[-1.0, 1.0]]
    assert (last["bestMove"], last["evaluation"], last["winChance"]) == ("", -1.0, 1.0)  # Blue's
    assert last["owners"] == [[1, 0, 0], *[[0, 1, 0]] * 8]
    assert last["margin"] == -7
    assert ended["success"]


def test_moves_are_searched_and_trees_kept(engine):
    requests = [_START | {"moves": _MOVES[:2]}, evaluate(simulations=20, details=True)]
    _, found = serve(engine, *requests)
    assert (found["simulations"], found["visits"], found["ply"]) == (20, 21, 2)
    lead = found["candidates"][0]
    assert lead["move"] == found["bestMove"] == lead["line"][0]
    assert sum(each["visits"] for each in found["candidates"]) == 20
    assert found["owners"] is None and found["margin"] is None
    assert sum(found["chances"]) == pytest.approx(1)
    more = [apply(lead["move"], expectedPly=2), apply(lead["line"][1]), evaluate(simulations=5)]
    *_, kept = serve(engine, *requests, *more)
    assert kept["simulations"] == 5
    assert kept["visits"] > 6


@pytest.mark.parametrize(
    ("request_", "complaint"),
    [
        (apply("C3->C3:W5"), "wall side"),
        (apply("A1->A1:W0"), "not legal"),
        (apply("B A1->A1:W1"), "Red is to move"),
        (apply("A1->A1:W1", expectedPly=1), "the session stands at 2"),
        (evaluate(simulations=4, seconds=1), "not both"),
        (evaluate(simulations=-1), "not from 0"),
        (evaluate(temperature=200), "temperature"),
        (_START, "open already"),
        ({"type": "apply_move", "bgsId": "b", "move": "A1"}, "not open"),
        ({"type": "start_game_session", "bgsId": "b", "rules": "chess"}, "unknown preset"),
        ({"type": "start_game_session", "bgsId": "b", "moves": ["A1", "A1"]}, "ply 2:"),
        ({"type": "resign", "bgsId": "a"}, "type: not one of"),
        ({"type": "apply_move", "move": "A1"}, "bgsId"),
    ],
)
def test_wrong_requests_change_nothing(engine, request_, complaint):
    *_, refused, after = serve(
        engine,
        _START | {"moves": _MOVES[:2]},
        {"wait": "all", **request_},
        {"wait": "all", **apply(_MOVES[2])},
    )
    assert not refused["success"]
    assert complaint in refused["error"]
    assert (after["success"], after["ply"]) == (True, 3)


def test_a_search_tells_its_progress_and_stops_at_once(engine):
    start = _START | {"rules": "wallzero-empty"}
    stop = {"type": "stop_search", "bgsId": "a", "wait": 300}
    messages = serve(engine, start, evaluate(simulations=4000, progress=True), stop)
    told = [each for each in messages if each["type"] == "progress"]
    assert told and all(each["stage"] == "searching" for each in told)
    assert 0 < told[-1]["done"] < told[-1]["total"] == 4000
    stopped = {each["type"]: each for each in messages}
    assert stopped["search_stopped"]["success"]
    assert stopped["evaluate_response"]["error"] == "the search was stopped"


def test_a_search_ends_with_its_time(engine):
    start = _START | {"rules": "wallzero-empty"}
    *_, first = serve(engine, start, evaluate(seconds=0.2))
    assert first["success"]
    assert first["simulations"] >= 1


def test_moves_are_drawn_at_a_temperature(engine):
    start = _START | {"rules": "wallzero-empty"}
    found = [
        serve(engine, start, evaluate(simulations=2, temperature=5), seed=seed)[-1]
        for seed in range(4)
    ]
    assert len({each["bestMove"] for each in found}) > 1


@pytest.mark.parametrize("player", ["greedy", "wjx"])
def test_players_without_a_search_play(engine, player):
    *_, found = serve(
        engine, _START | {"moves": _MOVES[:2]}, evaluate(), settings={"other": player}
    )
    assert (found["simulations"], found["success"]) == (0, True)


@pytest.mark.slow
def test_details_are_those_of_the_engine_in_python(engine, tmp_path):
    name = "wallzero-4stone-v2"  # with a calibration
    trained = write(tmp_path, load_network(pretrained.folder_of(name)))
    rules = trained.config.rules
    player = make_evaluating_player(f"pretrained:{name}")
    search = make_reporting_search(
        player.evaluate,
        as_player(player.search, 32),
        simulations=32,
        evaluate_heads=player.evaluate_heads,
    )
    games, states = random_games(engine, rules, seed=8, count=1)
    state = jax.tree.map(lambda x: np.asarray(x)[14], states)
    moves = [format_action(action, grid=7) for action in games[0][:14]]
    report = jax.device_get(search(trained.variables, state, jax.random.key(0)))[0]
    expected = format_evaluation(report.of_player(player, rules, 32), details=True)
    settings = {"machines": [{"rules": [rules.to_dict()], "model": str(tmp_path / "net")}]}
    start = {"type": "start_game_session", "bgsId": "a", "rules": rules.to_dict(), "moves": moves}
    *_, found = serve(engine, start, evaluate(simulations=32, details=True), settings=settings)
    assert found["bestMove"] == expected["bestMove"]
    assert found["visits"] == expected["visits"]
    for key in ("evaluation", "winChance", "margin"):
        assert found[key] == pytest.approx(expected[key], abs=1e-3)
    np.testing.assert_allclose(found["owners"], expected["owners"], atol=1e-4)
    # That report has six lines, an engine's more.
    by_move = {each["move"]: each for each in found["candidates"]}
    for theirs in expected["candidates"]:
        mine = by_move[theirs["move"]]
        assert mine["line"] == theirs["line"]
        for key in ("prior", "visits", "value", "winChance"):
            assert mine[key] == pytest.approx(theirs[key], abs=1e-3)
