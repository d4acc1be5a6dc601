"""Requests and responses: a game, everything that can be wrong with a request, many at once."""

import asyncio
import itertools
import json
import time

import pytest

from tests.support.learner.engines import answers, three_players, two_players
from tests.support.learner.searching import FOUR_STONES, TRIO
from train.engine.protocol import MAX_ERROR, MAX_NAME, Protocol

START = {"type": "start_game_session", "bgsId": "g"}
EVALUATE = {"type": "evaluate_position", "bgsId": "g"}
APPLY = {"type": "apply_move", "bgsId": "g"}
END = {"type": "end_game_session", "bgsId": "g"}
POSITION = f"""rules: {json.dumps(FOUR_STONES.to_dict())}
turn: R
    A   B   C
  +---+---+---+
1 | R   B   . |
  +   +   +   +
2 | .   .   . |
  +   +   +   +
3 | B   .   R |
  +---+---+---+
"""


@pytest.fixture
def protocol():
    """Sessions of two shapes, two players first; all that a test opens ends with it."""
    protocol = Protocol([two_players(), three_players()])
    yield protocol
    for name in list(protocol._sessions):
        answers(protocol, END | {"bgsId": name})


def test_a_game_from_start_to_end(protocol):
    started, told = answers(protocol, START | {"moves": ["A1", "C3", "B2"]}, EVALUATE)
    assert started == {
        "type": "game_session_started",
        "bgsId": "g",
        "success": True,
        "error": "",
        "rules": "custom",
        "ply": 3,
        "result": None,
    }
    assert (told["type"], told["ply"], told["simulations"]) == ("evaluate_response", 3, 24)
    assert -1 <= told["evaluation"] <= 1
    # Red is the first player and to move.
    assert told["winChance"] == pytest.approx((1 + told["evaluation"]) / 2)
    assert "candidates" not in told
    ply = 3
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
    assert sum(one["policy"] for one in candidates) <= 1 + 1e-6 == sum(told["chances"]) + 1e-6
    json.dumps(told, allow_nan=False)


@pytest.mark.parametrize(
    ("line", "word"),
    [
        (b"{", "JSON"),
        (b"\xff\xfe\xfd", "JSON"),
        (b"9" * 5000, "JSON"),
        (b"[1, 2]", "object"),
        ({"type": "resign", "bgsId": "g"}, "type"),
        ({"type": "x" * 60_000, "bgsId": "g"}, "type"),
        (EVALUATE | {"expectedPly": 7}, "expectedPly"),
        (EVALUATE | {"simulations": 64}, "63"),
        (EVALUATE | {"simulations": -1}, "simulations"),
        (EVALUATE | {"seconds": 1, "simulations": 1}, "both"),
        (EVALUATE | {"seconds": 1e-46}, "seconds"),
        (EVALUATE | {"temperature": 5e-324}, "temperature"),
        (EVALUATE | {"simulations": 10**400}, "simulations"),
        (EVALUATE | {"expectedPly": 2**63}, "expectedPly"),
        (EVALUATE | {"details": 1}, "details"),
        (EVALUATE | {"seconds": int("9" * 400)}, "seconds: "),
        (EVALUATE | {"bgsId": "h"}, "open"),
        (APPLY | {"move": "B2", "expectedPly": 0}, "expectedPly"),
        (APPLY | {"move": "A1"}, "move"),
        (APPLY | {"move": "pass me the salt"}, "move"),
        (START, "open"),
        (START | {"bgsId": "x" * (MAX_NAME + 1)}, "bgsId"),
        (START | {"bgsId": "h", "rules": "chess"}, "chess"),
        (START | {"bgsId": "h", "rules": {"size": 99}}, "size"),
        (START | {"bgsId": "h", "rules": {"size": "x" * 60_000}}, "size"),
        (START | {"bgsId": "h", "rules": "hkoi"}, "plays"),
        (START | {"bgsId": "h", "moves": ["A1", "A1"]}, "ply 2"),
        (START | {"bgsId": "h", "position": "rules: hkoi"}, "position"),
        (START | {"bgsId": "h", "position": "rules: hkoi", "rules": "hkoi"}, "position"),
    ],
)
def test_what_is_refused_changes_nothing(protocol, line, word):
    """Each request or line, and a word of the one line that says what is wrong."""
    answers(protocol, START | {"moves": ["A1"]})
    said, after = answers(protocol, line, EVALUATE | {"simulations": 0})
    name = None if isinstance(line, bytes) else line["bgsId"]
    shown = name if name and len(name) <= MAX_NAME else None
    assert (said["success"], said["bgsId"]) == (False, shown)
    assert word in said["error"] and len(said["error"]) <= MAX_ERROR
    assert "\n" not in said["error"] and "internal" not in said["error"]
    assert (after["success"], after["ply"]) == (True, 1)
    assert list(protocol._sessions) == ["g"]


def test_a_session_begins_from_a_diagram(protocol):
    started, applied = answers(
        protocol,
        START | {"position": POSITION, "moves": ["A1->A1:right"]},
        APPLY | {"move": "B1->B1:down"},
    )
    assert (started["success"], started["ply"]) == (True, 5), started
    assert (applied["success"], applied["ply"]) == (True, 6), applied


def test_a_search_that_is_stopped_says_so_and_the_session_goes_on(protocol):
    async def ask():
        await protocol.answer(json.dumps(START).encode())
        search = asyncio.ensure_future(
            protocol.answer(json.dumps(EVALUATE | {"seconds": 30}).encode())
        )
        while not protocol._searches:
            await asyncio.sleep(0)
        stopped = await protocol.answer(b'{"type": "stop_search", "bgsId": "g"}')
        return stopped, await search, await protocol.answer(json.dumps(EVALUATE).encode())

    stopped, searched, after = asyncio.run(ask())
    assert stopped == {"type": "search_stopped", "bgsId": "g", "success": True, "error": ""}
    assert (searched["success"], searched["error"]) == (False, "the search was stopped")
    assert after["success"], after


def test_engines_are_prepared_for_the_rules_of_a_session():
    async def prepare(rules, tell):
        assert rules == TRIO
        tell(1, 4)
        return three_players()

    async def ask():
        protocol, told = Protocol([], prepare), []
        unnamed = await protocol.answer(json.dumps(START).encode(), told.append)
        named = json.dumps(START | {"rules": TRIO.to_dict()}).encode()
        started = await protocol.answer(named, told.append)
        protocol.close()
        return unnamed, started, told

    unnamed, started, told = asyncio.run(ask())
    assert "rules: name them" in unnamed["error"] and started["success"]
    assert told == [{"type": "progress", "bgsId": "g", "stage": "compiling", "done": 1, "total": 4}]
    assert "g" not in three_players()._sessions, "closed with the protocol"


def test_many_sessions_are_searched_in_one_batch(protocol):
    cells = [column + row for row in "123" for column in "ABC"]
    openings = list(itertools.permutations(cells, 2))
    names = [f"game-{number}" for number in range(32)]
    begun = dict(zip(names, openings[::2], strict=False))
    answers(protocol, *[START | {"bgsId": name, "moves": begun[name]} for name in names])
    told = answers(protocol, *[EVALUATE | {"bgsId": name, "simulations": 4} for name in names])
    assert [one["bgsId"] for one in told] == names
    assert {one["visits"] for one in told} == {5}
    alone = {opening: _asked_alone(protocol, opening) for opening in begun.values()}
    for one in told:
        move, evaluation = alone[begun[one["bgsId"]]]
        assert one["bestMove"] == move
        assert one["evaluation"] == pytest.approx(evaluation, abs=1e-5)
    assert len(set(alone.values())) > 25
    # A search begins with what has arrived, which on a slow machine may not be all.
    assert protocol._engines[0]._searcher.largest_batch >= 16


def _asked_alone(protocol, opening):
    """The best move and the evaluation after some moves, with no other session in the batch."""
    named = {"bgsId": "alone"}
    evaluate = EVALUATE | named | {"simulations": 4}
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
    evaluate = EVALUATE | {"details": True}
    started, told = answers(protocol, START | {"rules": TRIO.to_dict(), "moves": ["A1"]}, evaluate)
    assert started["success"], started
    assert len(told["evaluation"]) == 3 and told["ply"] == 1
    # Blue is to move: a value of -1/2 is a certain loss among three.
    assert told["winChance"] == pytest.approx((told["evaluation"][1] + 0.5) / 1.5)
    # There is no network, so nothing tells who gets which cell.
    assert (told["owners"], told["margin"]) == (None, None)
    other, _ = answers(protocol, START | {"bgsId": "two"}, EVALUATE | {"bgsId": "two"})
    assert other["success"]


def test_a_budget_in_seconds_ends_in_time(protocol):
    answers(protocol, START | {"seconds": 0.2})
    began = time.perf_counter()
    told, most = answers(protocol, EVALUATE, EVALUATE | {"seconds": 30})
    # The second is as large as half a tree allows, long before its time is over.
    assert 1 <= told["simulations"] <= most["simulations"] == 32
    assert time.perf_counter() - began < 15
