"""Requests and responses: a game, everything that can be wrong with a request, many at once."""

import asyncio
import itertools
import json
import time

import pytest

from tests.support.learner.engines import answers, sessions_of
from tests.support.learner.searching import DUEL, TRIO
from train.engine.protocol import MAX_ERROR, MAX_NAME, Protocol
from train.engine.trees.options import EngineOptions
from wallgo_jax.game.rules import PRESETS

MANY = EngineOptions(batch_sizes=(1, 256), chunk=8, nodes=64, trees=256)
ONE = EngineOptions(batch_sizes=(1,), chunk=8, nodes=64, trees=2)
START = {"type": "start_game_session", "bgsId": "g"}
EVALUATE = {"type": "evaluate_position", "bgsId": "g"}
APPLY = {"type": "apply_move", "bgsId": "g"}
END = {"type": "end_game_session", "bgsId": "g"}


@pytest.fixture
def protocol():
    """Sessions of two shapes, two players first; all that a test opens ends with it."""
    protocol = Protocol([sessions_of(DUEL, "gumbel", MANY), sessions_of(TRIO, "gumbel", ONE)])
    yield protocol
    for name in list(protocol._sessions):
        answers(protocol, END | {"bgsId": name})


def test_a_game_from_start_to_end(protocol):
    started, told = answers(protocol, START | {"moves": ["A1", "C3"]}, EVALUATE)
    assert started == {
        "type": "game_session_started",
        "bgsId": "g",
        "success": True,
        "error": "",
        "rules": "custom",
        "ply": 2,
        "result": None,
    }
    assert (told["type"], told["ply"], told["simulations"]) == ("evaluate_response", 2, 24)
    assert -1 <= told["evaluation"] <= 1
    # Red is the first player and to move.
    assert told["winChance"] == pytest.approx((1 + told["evaluation"]) / 2)
    assert "candidates" not in told
    ply = 2
    while told["bestMove"]:
        move = APPLY | {"move": told["bestMove"], "expectedPly": ply}
        applied, told = answers(protocol, move, EVALUATE | {"simulations": 4})
        ply += 1
        assert (applied["type"], applied["ply"], told["ply"]) == ("move_applied", ply, ply)
        assert (applied["result"] is None) == bool(told["bestMove"])
    assert applied["result"] == [told["evaluation"], -told["evaluation"]]
    (ended,) = answers(protocol, END)
    assert ended == {"type": "game_session_ended", "bgsId": "g", "success": True, "error": ""}


def test_details_name_candidates_whose_visits_add_up(protocol):
    _, told = answers(protocol, START, EVALUATE | {"details": True, "simulations": 30})
    candidates = told["candidates"]
    assert candidates[0]["move"] == told["bestMove"] == candidates[0]["line"][0]
    assert sum(one["visits"] for one in candidates) == 30 == told["visits"] - 1
    assert all(0 <= one["prior"] <= 1 and 0 <= one["winChance"] <= 1 for one in candidates)
    # There is no network, so nothing tells who gets which cell.
    assert (told["owners"], told["margin"]) == (None, None)


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (EVALUATE | {"expectedPly": 7}, "expectedPly: 7, but the session stands at ply 1"),
        (EVALUATE | {"expectedPly": "1"}, 'expectedPly: "1" is not a whole number'),
        (EVALUATE | {"expectedPly": True}, "expectedPly: true is not a whole number"),
        (EVALUATE | {"simulations": 64}, "simulations: 64 is not from 0 to 63"),
        (EVALUATE | {"simulations": -1}, "simulations: -1 is not from 0 to 63"),
        (EVALUATE | {"simulations": 1.5}, "simulations: 1.5 is not a whole number"),
        (EVALUATE | {"seconds": 0}, "seconds: 0 is not above 0, up to 600"),
        (EVALUATE | {"seconds": 1, "simulations": 1}, "say simulations or seconds, not both"),
        (EVALUATE | {"temperature": -1}, "temperature: -1 is not from 0 to 100"),
        (EVALUATE | {"details": 1}, "details: 1 is not true or false"),
        (EVALUATE | {"bgsId": "h"}, "session 'h' is not open; open sessions: 'g'"),
        (APPLY | {"move": "B2", "expectedPly": 0}, "expectedPly: 0, but the session stands at"),
        (APPLY | {"move": "A1"}, "move: "),
        (APPLY | {"move": "Z9"}, "move: 'Z9' is not a cell"),
        (APPLY | {"move": "pass me the salt"}, "move: "),
        (APPLY | {"move": 5}, "move: 5 is not a text such as C3 or B6->B5:W0"),
        (APPLY, "move: null is not a text"),
        (APPLY | {"bgsId": "h", "move": "B2"}, "session 'h' is not open"),
        (END | {"bgsId": "h"}, "session 'h' is not open"),
        (START, "session 'g' is open already; end it first, or choose a name"),
        (START | {"bgsId": ""}, f"bgsId: not a text of 1 to {MAX_NAME} characters"),
        (START | {"bgsId": "x" * (MAX_NAME + 1)}, "bgsId: not a text"),
        (START | {"bgsId": 4}, "bgsId: not a text"),
        (START | {"bgsId": "h", "rules": "chess"}, "chess"),
        (START | {"bgsId": "h", "rules": 5}, "rules: 5 is neither a preset's name nor an object"),
        (START | {"bgsId": "h", "rules": {"size": 99}}, "size"),
        (START | {"bgsId": "h", "rules": "hkoi"}, "this engine plays 2 with 1 on 3x3"),
        (START | {"bgsId": "h", "moves": "A1"}, "moves: not a list of texts"),
        (START | {"bgsId": "h", "moves": ["A1", "A1"]}, "ply 2: move: "),
        (START | {"bgsId": "h", "seconds": 1e9}, "seconds: 1000000000.0 is not above"),
        ({"type": "resign", "bgsId": "g"}, 'type: "resign" is not one of start_game_session'),
        ({"bgsId": "g"}, "type: null is not one of"),
    ],
)
def test_a_bad_request_says_what_is_allowed_and_changes_nothing(protocol, request_, reason):
    answers(protocol, START | {"moves": ["A1"]})
    said, after = answers(protocol, request_, EVALUATE | {"simulations": 0})
    assert (said["success"], said["bgsId"]) == (False, _name(request_["bgsId"]))
    assert reason in said["error"]
    assert "\n" not in said["error"] and "internal" not in said["error"]
    assert (after["success"], after["ply"]) == (True, 1)
    assert list(protocol._sessions) == ["g"]


def _name(name):
    return name if isinstance(name, str) and len(name) <= MAX_NAME else None


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "not JSON: "),
        (b"\xff\xfe\xfd", "not JSON: "),
        (b"[" * 60_000, "not JSON: "),
        (b'{"type": NaN}', "not JSON: NaN is no JSON number"),
        (b"[1, 2]", "not a JSON object"),
        (b"9" * 5000, "not JSON: "),
    ],
)
def test_a_line_that_is_no_request(protocol, line, reason):
    (said,) = answers(protocol, line)
    assert (said["type"], said["bgsId"], said["success"]) == ("error", None, False)
    assert reason in said["error"] and "\n" not in said["error"]


def test_an_error_does_not_repeat_a_long_request(protocol):
    long = "x" * 60_000
    for asked in ({"rules": long}, {"rules": {"size": long}}, {"rules": {long: 1}}):
        (said,) = answers(protocol, START | asked)
        assert not said["success"] and "\n" not in said["error"]
        assert len(said["error"]) <= MAX_ERROR
    (said,) = answers(protocol, {"type": long, "bgsId": "g"})
    assert len(said["error"]) <= MAX_ERROR


def test_many_sessions_are_searched_in_one_batch(protocol):
    cells = [column + row for row in "123" for column in "ABC"]
    openings = list(itertools.permutations(cells, 2))
    names = [f"game-{number}" for number in range(256)]
    begun = dict(zip(names, itertools.cycle(openings), strict=False))
    answers(protocol, *[START | {"bgsId": name, "moves": begun[name]} for name in names])
    told = answers(protocol, *[EVALUATE | {"bgsId": name, "simulations": 4} for name in names])
    assert [one["bgsId"] for one in told] == names
    assert {one["visits"] for one in told} == {5}
    alone = {opening: _asked_alone(protocol, opening, simulations=4) for opening in openings}
    for one in told:
        move, evaluation = alone[begun[one["bgsId"]]]
        assert one["bestMove"] == move
        assert one["evaluation"] == pytest.approx(evaluation, abs=1e-5)
    assert len(set(alone.values())) > 60
    # A search begins with what has arrived, which on a slow machine may not be all.
    assert protocol._engines[0].largest_batch >= 128


def _asked_alone(protocol, opening, *, simulations):
    """The best move and the evaluation after some moves, with no other session in the batch."""
    evaluate = EVALUATE | {"bgsId": "alone", "simulations": simulations}
    named = {"bgsId": "alone"}
    _, told, _ = answers(protocol, START | named | {"moves": opening}, evaluate, END | named)
    return told["bestMove"], told["evaluation"]


def test_requests_of_a_session_are_answered_in_order(protocol):
    game = [START, EVALUATE, APPLY | {"move": "B2"}, EVALUATE, APPLY | {"move": "A1"}, EVALUATE]
    plies = []

    async def note(request):
        told = await protocol.answer(json.dumps(request).encode())
        assert told["success"], told
        plies.append(told.get("ply"))

    async def ask_all():
        await asyncio.gather(*map(note, [*game, END]))

    asyncio.run(ask_all())
    assert plies == [0, 0, 1, 1, 2, 2, None]


def test_three_players_get_a_number_each_and_share_the_engine_with_two(protocol):
    started, told = answers(protocol, START | {"rules": TRIO.to_dict(), "moves": ["A1"]}, EVALUATE)
    assert started["success"], started
    assert len(told["evaluation"]) == 3 and told["ply"] == 1
    # Blue is to move: a value of -1/2 is a certain loss among three.
    assert told["winChance"] == pytest.approx((told["evaluation"][1] + 0.5) / 1.5)
    other, _ = answers(protocol, START | {"bgsId": "two"}, EVALUATE | {"bgsId": "two"})
    assert other["success"]
    (refused,) = answers(protocol, START | {"bgsId": "h", "rules": "playwallgo-3p"})
    assert "this engine plays" in refused["error"] and "playwallgo-3p" in PRESETS


def test_a_budget_in_seconds_ends_in_time(protocol):
    answers(protocol, START | {"seconds": 0.2})
    began = time.perf_counter()
    told, most = answers(protocol, EVALUATE, EVALUATE | {"seconds": 30})
    # The second is as large as half a tree allows, long before its time is over.
    assert 1 <= told["simulations"] <= most["simulations"] == 32
    assert time.perf_counter() - began < 15


def test_responses_are_json(protocol):
    for told in answers(protocol, START, EVALUATE | {"details": True}, END):
        json.dumps(told, allow_nan=False)
