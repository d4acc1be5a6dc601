"""Other programs in matches: the example of the docs, our own engine, and programs that fail."""

import json
import re
import sys

import jax
import pytest

from tests.support.import_graph import ROOT
from tests.support.learner.commands import command
from train.arena.host_match import HostMatch, play_on_host
from train.arena.match import MatchOptions, play_match
from train.players.basic import make_random_player
from train.players.external import make_external_player
from train.registry import make_player
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
    ],
)
def test_a_program_that_cannot_move_loses_and_is_told_why(tmp_path, behaviour, reason):
    path = tmp_path / "program.py"
    player = make_external_player(program(path, _LOOP.replace("BEHAVIOUR", behaviour)), seconds=0.2)
    result = play(player, DUEL, 2)
    player.act.close()
    assert (result.wins, result.losses, result.forfeited) == (0, 2, 2)
    assert all(reason in text and "program.py loses at ply" in text for text in result.forfeits)


def test_our_engine_as_a_program_plays_the_moves_of_our_player(tmp_path, monkeypatch):
    """Each game of the match is the same, move by move, with the engine and without."""
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(ROOT / ".jax_cache"))
    name, rules = "heuristic-search:wjx@8", f"'{json.dumps(DUEL.to_dict())}'"
    options = f"--fresh --rules {rules} --batch 4 --trees 4 --nodes 16"
    program = make_external_player(f"{sys.executable} -m train engine {name} {options}")
    found = []
    for player in (program, make_player(name, DUEL)):
        match = HostMatch(
            (player, make_random_player()),
            DUEL,
            games=6,
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


@pytest.mark.parametrize("words", [["tournament"], ["elo", "--budget", "4", "--simulations", "2"]])
def test_programs_are_players_of_other_commands(tmp_path, words):
    name = f"external:{program(tmp_path / 'example.py', example())}"
    pool = ["--anchors", "random", "--out", tmp_path / "out"] if words[0] == "elo" else ["random"]
    said = command(words[0], name, *pool, *words[1:], "--games", 2, "--json", tmp_path / "it.json")
    assert said.code == 0, said.err
    assert "loses at ply" not in said.out + said.err
    assert name in (tmp_path / "it.json").read_text()
