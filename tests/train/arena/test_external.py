"""Other programs in matches: the example of the docs, our own engine, and programs that fail."""

import gc
import itertools
import json
import re
import shlex
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest

from tests.support import compiling
from tests.support.import_graph import ROOT
from tests.support.learner.commands import command
from tests.support.reference.referee import Game
from train.arena import host_match
from train.arena.match import MatchOptions, play_match
from train.arena.match_openings import OpeningOptions
from train.arena.result import MatchResult
from train.players import external
from train.players.basic import Player
from train.players.external import Program, make_external_player
from train.players.registry import make_player
from train.runtime.errors import UsageError
from wallgo_jax.game import actions
from wallgo_jax.game.rules import PRESETS, Rules
from wallgo_jax.notation import CANONICAL_SIDES, format_action, parse_action

DUEL = Rules(size=3, stones=1, order=(0, 1))
RANDOM = make_player("random", DUEL)
BOARDS = 4  # of all matches here, so that they share programs

_LOOP = """
import json, os, sys, time
games = {}
for line in sys.stdin:
    request = json.loads(line)
    name = request["bgsId"]
    kind = {"start_game_session": "game_session_started", "evaluate_position": "evaluate_response",
            "apply_move": "move_applied", "end_game_session": "game_session_ended"}[request["type"]]
    answer = {"type": kind, "bgsId": name, "success": True, "error": ""}
    moves = games.setdefault(name, list(request.get("moves", [])))
    moves += [request["move"]] if "move" in request else []
    if kind == "evaluate_response":
        cells = [column + row for column in "ABC" for row in "123"]
        answer["bestMove"] = next(cell for cell in cells if cell not in moves)
        BEHAVIOUR
    print(json.dumps(answer), flush=True)
"""
"""A program that places its stone; its first move after that is illegal."""
START = {"type": "start_game_session", "bgsId": "1", "rules": "hkoi", "moves": []}
ASK = {"type": "evaluate_position", "bgsId": "1", "expectedPly": 0}


def program(path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return f"{shlex.quote(sys.executable)} {shlex.quote(str(path))}"


def behaving(path, behaviour: str) -> str:
    return program(path / "program.py", _LOOP.replace("BEHAVIOUR", behaviour))


def play(command: str, *, seconds: float = 10.0) -> MatchResult:
    """A match of a program against `random`. On a busy machine an answer, and the end of a process,
    may take long."""
    player = make_external_player(command, seconds=seconds)
    options = MatchOptions(games=4, batch=BOARDS)
    result = play_match((player, RANDOM), DUEL, options, key=jax.random.key(0))
    player.act.close()
    assert all("program.py loses at ply" in text for text in result.forfeits if text)
    return result


def reasons(result: MatchResult) -> list[str]:
    return sorted(text.split(": ", 1)[1] for text in result.forfeits if text)


def test_the_example_of_the_docs_plays_whole_games(tmp_path):
    """Against itself, by the slow referee."""
    page = (ROOT / "docs" / "engine.md").read_text(encoding="utf-8")
    section = page.split("## Other programs as players")[1]
    text = re.findall(r"```python\n(.*?)```", section, re.DOTALL)[0]
    assert len([line for line in text.splitlines() if line.strip()]) <= 60
    example = Program(program(tmp_path / "example.py", text))
    for name in ("1", "2"):
        game, plies = Game(PRESETS["wallzero-4stone"].to_dict()), itertools.count(1)
        example.ask([START | {"bgsId": name}], seconds=30)
        while not game.over:
            (answer,) = example.ask([ASK | {"bgsId": name}], seconds=30)
            action = parse_action(answer["bestMove"], grid=7).action
            assert action in game.legal()
            game.act(action)
            move = format_action(action, grid=7, sides=CANONICAL_SIDES)
            request = {"type": "apply_move", "bgsId": name, "move": move}
            assert example.ask([request], seconds=30)[0]["ply"] == next(plies)
    example.close()


def test_a_program_that_makes_no_legal_move_loses_and_is_told_why(tmp_path):
    """It does something else in each game."""
    behaviour = """n = list(games).index(name) + 1
        if n == 1: answer["bestMove"] = "Z9"
        if n == 2: answer["success"], answer["error"] = False, "no idea"
        if n == 3: answer["bestMove"] = "x" * 1000
        if n == 4: del answer["bestMove"]"""
    result = play(behaving(tmp_path, behaviour))
    assert (result.wins, result.losses, result.forfeited) == (0, 4, 4)
    words = ("its answer has no", "refuses: no idea", "Z9", "x...")
    told = reasons(result)
    assert all(any(word in text for text in told) for word in words), told
    assert max(map(len, result.forfeits)) < 600


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        ("sys.exit('out of ideas')", "ended with exit code 1: out of ideas"),
        ("time.sleep(9)", "gave no answer within 0.2 s"),
        ("answer['bgsId'] = 'other'", "gave no answer within 0.2 s; it wrote '{"),
        ("while True: print('thinking')", "wrote 1000 lines that answer no request, the last 'th"),
    ],
)
def test_a_program_that_stops_answering_is_given_up(tmp_path, behaviour, reason):
    asked = Program(behaving(tmp_path, behaviour))
    assert asked.ask([START], seconds=10)[0]["success"]
    (answer,) = asked.ask([ASK], seconds=0.2 if "0.2 s" in reason else 10)
    asked.close()
    assert str(answer).startswith(reason)


def test_games_that_were_answered_go_on_with_another_start(tmp_path):
    """It fails once, where it has answered three of four games."""
    once = tmp_path / "once"
    behaviour = f"""if len(games) == 4 and not os.path.exists({str(once)!r}):
            open({str(once)!r}, "w").close()
            sys.exit(3)"""
    told = reasons(play(behaving(tmp_path, behaviour)))
    assert [text == "ended with exit code 3" for text in told].count(True) == 1
    assert [text.startswith("illegal move") for text in told].count(True) == 3


def test_the_time_of_a_move_runs_from_the_answer_before(tmp_path):
    asked = Program(behaving(tmp_path, "time.sleep(0.3)"))
    names = [str(number) for number in range(5)]
    asked.ask([START | {"bgsId": name} for name in names], seconds=10)
    answers = asked.ask([ASK | {"bgsId": name} for name in names], seconds=1.0)
    asked.close()
    assert [isinstance(answer, dict) for answer in answers] == [True] * 5


_INTERRUPTED = """
import os, signal, sys
from train.players.external import Program
signal.signal(signal.SIGINT, lambda *_: None)
program = Program(sys.argv[1])
ask = [{"type": "evaluate_position", "bgsId": "1", "expectedPly": 0}]
print(program.ask(ask, seconds=60))
os.killpg(os.getpgrp(), signal.SIGINT)
print(program.ask(ask, seconds=60))
program.close()
print(program._process.returncode)
"""


@pytest.mark.slow
def test_ctrl_c_does_not_reach_a_program_and_its_end_of_input_ends_it(tmp_path):
    """As a terminal sends it: to all processes of the group of the one that plays the match."""
    words = [sys.executable, "-c", _INTERRUPTED, behaving(tmp_path, "answer['n'] = 1")]
    said = subprocess.run(
        words, cwd=ROOT, capture_output=True, text=True, timeout=120, start_new_session=True
    )
    first, second, code = said.stdout.splitlines()
    assert first == second and "'n': 1" in second
    assert code == "0", said.stderr


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("import sys; print('no licence', file=sys.stderr); sys.exit(2)", "code 2: no licence"),
        ("import sys\nfor line in sys.stdin: print(line, flush=True)", "no answer within 0.4"),
        ("while True: print('hello')", "1000 lines"),
        ("import os, sys; os.close(1); sys.stdin.read()", "closed its output"),
        ("import sys\nfor line in sys.stdin: print('what?', flush=True)", r"0.4 s.*what\?"),
    ],
)
def test_a_program_that_never_answers_ends_the_match(tmp_path, monkeypatch, text, word):
    """Without JSON it has no time to start."""
    monkeypatch.setattr(external, "STRAY_SECONDS", 0.4)
    with pytest.raises(UsageError, match=word):
        play(program(tmp_path / "program.py", text), seconds=0.2)


def on_host(first, second, options: MatchOptions, **rest) -> MatchResult:
    """A match that the host plays, whoever the players are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host_match, "is_external", lambda player: True)
        return play_match((first, second), DUEL, options, key=jax.random.key(1), **rest)


def test_players_may_place_the_stones_in_a_match_on_the_host():
    """The games are those that the devices play: placements of a player, then the same random
    plies in both games of a pair."""

    def act(variables, states, key):
        return jax.vmap(actions.legal_slots)(states).argmax(axis=1).astype(jnp.int32)

    first = Player("first", (), jax.jit(act))
    host = on_host(first, first, MatchOptions(6, BOARDS, OpeningOptions(2, True)))
    options = MatchOptions(6, 6, OpeningOptions(2, True))
    device = play_match((first, first), DUEL, options, key=jax.random.key(1))
    assert host.games == device.games
    assert host.games[:3] == host.games[3:]
    assert len({game[2:4] for game in host.games}) > 1
    assert {game[:2] for game in host.games} == {(9 * 52, 9 * 52 + 1)}


def test_a_match_stopped_with_few_boards_has_pairs_and_both_colours():
    seen = []
    options = MatchOptions(
        12, BOARDS, OpeningOptions(1), should_stop=lambda: seen[-1] in range(4, 12)
    )
    found = on_host(RANDOM, RANDOM, options, on_progress=seen.append)
    assert 4 <= len(found.games) < 12 and len(found.games) - 2 * len(found.pairs) < BOARDS
    assert len(found.pairs) >= 2


@pytest.mark.slow
def test_our_engine_as_a_program_plays_the_moves_of_our_player(monkeypatch):
    """Each game of the match is the same, move by move, with the engine and without."""
    for variable, value in compiling.environment().items():
        monkeypatch.setenv(variable, value)
    name = "heuristic-search:wjx@8"
    options = f"--fresh --rules '{json.dumps(DUEL.to_dict())}' --batch 4 --trees 4 --nodes 16"
    engine = make_external_player(f"{shlex.quote(sys.executable)} -m train engine {name} {options}")
    with_engine, without = (
        on_host(player, RANDOM, MatchOptions(6, BOARDS, OpeningOptions(1)))
        for player in (engine, make_player(name, DUEL))
    )
    engine.act.close()
    assert with_engine.games == without.games
    assert len(set(without.games)) > 2
    assert with_engine.forfeited == 0


def test_elo_tells_games_that_a_program_loses_without_the_rules(tmp_path):
    name = "external:" + behaving(tmp_path, "answer['bestMove'] = 'x'")
    words = ["--rules", json.dumps(DUEL.to_dict()), "--games", 4, "--budget", 4]
    words += ["--json", tmp_path / "it.json"]
    said = command("elo", name, "--anchors", "random", "--cache", tmp_path / "games.jsonl", *words)
    assert said.code == 0, said.err
    assert "program.py loses at ply" in said.out + said.err
    assert name in (tmp_path / "it.json").read_text()


@pytest.fixture
def silent(tmp_path) -> str:
    """Reads until its input ends; starts without `site`, which takes long."""
    program(tmp_path / "program.py", "import sys\nfor line in sys.stdin: pass\n")
    return shlex.join([sys.executable, "-I", "-S", str(tmp_path / "program.py")])


def test_a_program_ends_once_nobody_has_its_player(silent):
    player = make_external_player(silent)
    process = player.act.program()._process
    assert process.poll() is None
    del player
    gc.collect()
    assert process.poll() == 0
