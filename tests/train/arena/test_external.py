"""Other programs in matches: the example of the docs, our own engine, and programs that fail."""

import json
import re
import subprocess
import sys
import time

import jax
import pytest

from tests.support import compiling
from tests.support.import_graph import ROOT
from tests.support.learner.commands import command
from train.arena.host_match import HostMatch, play_on_host
from train.arena.match import MatchOptions, play_match
from train.players import external
from train.players.basic import make_random_player
from train.players.external import make_external_player
from train.registry import make_player
from train.runtime.errors import UsageError
from wallgo_jax.game.rules import PRESETS, Rules

DUEL = Rules(size=3, stones=1, order=(0, 1))

_LOOP = """
import json, sys, time
for line in sys.stdin:
    request = json.loads(line)
    name = request["bgsId"]
    kind = {"start_game_session": "game_session_started", "evaluate_position": "evaluate_response",
            "apply_move": "move_applied", "end_game_session": "game_session_ended"}[request["type"]]
    answer = {"type": kind, "bgsId": name, "success": True, "error": ""}
    if kind == "evaluate_response":
        BEHAVIOUR
    print(json.dumps(answer), flush=True)
"""


def example() -> str:
    """The program of docs/players.md."""
    page = (ROOT / "docs" / "players.md").read_text(encoding="utf-8")
    section = page.split("## Other programs as players")[1]
    return re.findall(r"```python\n(.*?)```", section, re.DOTALL)[0]


def program(path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return f"{sys.executable} {path}"


def play(player, rules: Rules, games: int):
    options = MatchOptions(games=games, batch=games)
    return play_match(player, make_random_player(), rules, options, key=jax.random.key(0))


def test_the_example_of_the_docs_plays_whole_games(tmp_path):
    text = example()
    assert len([line for line in text.splitlines() if line.strip()]) <= 30
    player = make_external_player(program(tmp_path / "example.py", text))
    result = play(player, PRESETS["wallzero-4stone"], 4)
    player.act.close()
    assert (len(result.games), result.forfeited) == (4, 0)
    assert min(map(len, result.games)) > 8


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        ("answer['bestMove'] = 'Z9'", "illegal move: 'Z9' is not a cell"),
        ("answer['success'], answer['error'] = False, 'no idea'", "refuses: no idea"),
        ("sys.exit('out of ideas')", "ended with exit code 1: out of ideas"),
        ("time.sleep(1)", "gave no answer within 0.2 s"),
        ("pass", "its answer has no bestMove"),
        ("answer['bgsId'] = 'other'", "gave no answer within 0.2 s; it wrote '{"),
        ("while True: print('thinking')", "wrote 1000 lines that answer no request, the last 'th"),
        ("answer['bestMove'] = 'x' * 1000", "x..."),
    ],
)
def test_a_program_that_cannot_move_loses_and_is_told_why(tmp_path, behaviour, reason):
    path = tmp_path / "program.py"
    command = program(path, _LOOP.replace("BEHAVIOUR", behaviour))
    # On a busy machine an answer, and the end of a process, may take longer than that.
    player = make_external_player(command, seconds=0.2 if "0.2 s" in reason else 10)
    result = play(player, DUEL, 2)
    player.act.close()
    assert (result.wins, result.losses, result.forfeited) == (0, 2, 2)
    assert all(reason in text and "program.py loses at ply" in text for text in result.forfeits)
    assert max(map(len, result.forfeits)) < 600


_CELLS = """
        cells = [c + r for c in "ABC" for r in "123"]
        moves = games[name]
        answer["bestMove"] = next(cell for cell in cells if cell not in moves)"""
_PLACING = _LOOP.replace("for line", "games = {}\nfor line", 1).replace(
    "    if kind ==",
    """    moves = games.setdefault(name, list(request.get("moves", [])))
    moves += [request["move"]] if "move" in request else []
    if kind ==""",
)
"""Places stones; its first move after that is illegal."""
PLACES = Rules(size=3, stones=4, order=(0, 1) * 4)


def forfeits_of(path, behaviour: str, *, seconds: float = 0.3) -> list[str]:
    """The games of a program that behaves, once its stones are placed, as if it could play on."""
    text = _PLACING.replace("        BEHAVIOUR", f"        {behaviour}{_CELLS}")
    player = make_external_player(program(path, text), seconds=seconds)
    result = play(player, PLACES, 6)
    player.act.close()
    return sorted(text.split(": ", 1)[1] for text in result.forfeits)


def test_the_last_words_of_a_program_are_waited_for(monkeypatch):
    read = external.Program._read_log
    monkeypatch.setattr(external.Program, "_read_log", lambda self: (time.sleep(0.3), read(self)))
    program = external.Program(f"{sys.executable} -c 'raise SystemExit(\"out of ideas\")'")
    (answer,) = program.ask([{"type": "start_game_session", "bgsId": "one"}], seconds=10)
    program.close()
    assert str(answer) == "ended with exit code 1: out of ideas"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("failure", "reason"),
    [("sys.exit(3)", "ended with exit code 3"), ("time.sleep(9)", "gave no answer within 0.3 s")],
)
def test_games_that_were_answered_go_on_with_another_start(tmp_path, failure, reason):
    """It fails once, where it has answered four of six games."""
    once = tmp_path / "once"
    behaviour = f"""import os
        if len(games) == 5 and not os.path.exists({str(once)!r}):
            open({str(once)!r}, "w").close()
            {failure}"""
    told = forfeits_of(tmp_path / "program.py", behaviour)
    assert [text == reason for text in told].count(True) == 2
    assert [text.startswith("illegal move") for text in told].count(True) == 4


@pytest.mark.slow
def test_the_time_of_a_move_runs_from_the_answer_before(tmp_path):
    told = forfeits_of(tmp_path / "program.py", "time.sleep(0.12)", seconds=0.5)
    assert all(text.startswith("illegal move") for text in told), told


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


def test_ctrl_c_does_not_reach_a_program_and_its_end_of_input_ends_it(tmp_path):
    """As a terminal sends it: to all processes of the group of the one that plays the match."""
    command = program(tmp_path / "program.py", _LOOP.replace("BEHAVIOUR", "answer['n'] = 1"))
    words = [sys.executable, "-c", _INTERRUPTED, command]
    said = subprocess.run(
        words, cwd=ROOT, capture_output=True, text=True, timeout=120, start_new_session=True
    )
    first, second, code = said.stdout.splitlines()
    assert first == second and "'n': 1" in second
    assert code == "0", said.stderr


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import sys; print('no licence', file=sys.stderr); sys.exit(2)", "code 2: no licence"),
        ("import sys\nfor line in sys.stdin: print(line, flush=True)", "gave no answer within 0.2"),
        ("while True: print('hello')", "wrote 1000 lines that answer no request, the last 'hello'"),
        ("import os, sys; os.close(1); sys.stdin.read()", "closed its output"),
    ],
)
def test_a_program_that_never_answers_ends_the_match(tmp_path, text, reason):
    player = make_external_player(program(tmp_path / "program.py", text), seconds=0.2)
    with pytest.raises(UsageError, match=reason):
        play(player, DUEL, 2)


@pytest.mark.parametrize("boards", [2, 3])
def test_a_match_stopped_with_few_boards_has_pairs_and_both_colours(boards):
    match = HostMatch(
        (make_random_player(), make_random_player()),
        DUEL,
        games=12,
        boards=boards,
        opening_plies=1,
        keys=(jax.random.key(1), jax.random.key(2)),
    )
    found = play_on_host(
        match, on_progress=lambda _: None, should_stop=lambda: match.finished in range(4, 12)
    )
    assert 4 <= len(found.games) < 12 and found.unpaired < boards
    assert len(found.pairs) >= 2
    half = len(found.pairs)
    assert found.first_is_red[:half].all() and not found.first_is_red[half : 2 * half].any()


def test_a_program_that_writes_no_json_has_no_time_to_start(tmp_path, monkeypatch):
    monkeypatch.setattr(external, "STRAY_SECONDS", 0.4)
    text = "import sys\nfor line in sys.stdin: print('what?', flush=True)"
    player = make_external_player(program(tmp_path / "program.py", text), seconds=0.2)
    with pytest.raises(UsageError, match=r"gave no answer within 0.4 s; it wrote 'what\?'"):
        play(player, DUEL, 2)


@pytest.mark.slow
def test_a_later_start_takes_no_longer_than_the_first_by_far(tmp_path):
    """Its second start answers nothing: the games that are left are lost soon."""
    once = tmp_path / "once"
    behaviour = f"""import os
        if len(games) == 5:
            open({str(once)!r}, "w").close()
            sys.exit(3)"""
    text = _PLACING.replace("        BEHAVIOUR", f"        {behaviour}{_CELLS}")
    head = f"import os, time\nif os.path.exists({str(once)!r}): time.sleep(99)\n"
    player = make_external_player(program(tmp_path / "program.py", head + text), seconds=0.3)
    began = time.monotonic()
    result = play(player, PLACES, 6)
    player.act.close()
    assert result.forfeited == 6 and time.monotonic() - began < 60
    assert sum("gave no answer within" in told for told in result.forfeits) == 4


@pytest.mark.slow
def test_our_engine_as_a_program_plays_the_moves_of_our_player(tmp_path, monkeypatch):
    """Each game of the match is the same, move by move, with the engine and without."""
    for variable, value in compiling.environment().items():
        monkeypatch.setenv(variable, value)
    options = f"--rules '{json.dumps(DUEL.to_dict())}' --batch 4 --trees 4 --nodes 16"
    compare_with_engine("heuristic-search:wjx@8", DUEL, options, games=6)


@pytest.mark.slow
def test_the_shipped_network_plays_the_same_moves_as_a_program(monkeypatch):
    name, rules = "pretrained:wallzero-4stone@16", PRESETS["wallzero-4stone"]
    options = "--batch 4 --trees 4 --nodes 32"
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(ROOT / ".jax_cache"))
    compare_with_engine(name, rules, options, games=4)


def compare_with_engine(name, rules, options, *, games):
    """Play the same match against `random` by our engine as a program, and by our player."""
    program = make_external_player(f"{sys.executable} -m train engine {name} --fresh {options}")
    found = []
    for player in (program, make_player(name, rules)):
        match = HostMatch(
            (player, make_random_player()),
            rules,
            games=games,
            boards=4,
            opening_plies=1,
            keys=(jax.random.key(1), jax.random.key(2)),
        )
        found.append(play_on_host(match, on_progress=lambda _: None, should_stop=lambda: False))
    program.act.close()
    with_engine, without = found
    assert with_engine.games == without.games
    assert len(set(without.games)) > 2
    assert with_engine.forfeited == 0


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["tournament"], marks=pytest.mark.slow),
        pytest.param(["elo", "--budget", "4", "--simulations", "2"], marks=pytest.mark.slow),
    ],
)
def test_programs_are_players_of_other_commands(tmp_path, words):
    name = f"external:{program(tmp_path / 'example.py', example())}"
    pool = ["--anchors", "random", "--out", tmp_path / "out"] if words[0] == "elo" else ["random"]
    said = command(words[0], name, *pool, *words[1:], "--games", 2, "--json", tmp_path / "it.json")
    assert said.code == 0, said.err
    for told in ("loses at ply", "without the rules"):
        assert told not in said.out + said.err
    assert name in (tmp_path / "it.json").read_text()


@pytest.mark.slow
def test_elo_tells_games_that_a_program_loses_without_the_rules(tmp_path):
    text = _LOOP.replace("BEHAVIOUR", "answer['bestMove'] = 'x'")
    name = f"external:{program(tmp_path / 'program.py', text)}"
    words = ["--rules", json.dumps(DUEL.to_dict()), "--games", 2, "--budget", 2]
    said = command("elo", name, "--anchors", "random", "--cache", tmp_path / "games.jsonl", *words)
    assert said.code == 0, said.err
    assert "program.py loses at ply" in said.out + said.err
