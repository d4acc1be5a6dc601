"""Puzzles on a solved board are right, by a slow solver of its own; files keep them."""

import dataclasses
import functools
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import train
from tests.support.learner.commands import command, complaint
from tests.support.reference.referee import Game
from tests.support.reference.solver import Solver
from train.puzzles.check import PuzzleOptions, check_puzzles, exact_judge, state_of
from train.puzzles.find import StoppedError, find_puzzles, spread
from train.puzzles.puzzle_file import (
    SHIPPED_FILE,
    Puzzle,
    read_puzzles,
    shipped_puzzles,
    to_line,
    write_puzzles,
)
from train.puzzles.sameness import sameness_key
from train.review.analyst import make_analyst
from train.review.own_games import play_own_games
from train.solver.exact_player import make_exact_player
from wallgo_jax.formats.records import Record
from wallgo_jax.game import actions
from wallgo_jax.game import symmetry as symmetry_lib
from wallgo_jax.game.rules import PRESETS, Rules
from wallgo_jax.notation import parse_moves, placement_of
from wallgo_jax.view.game_replay import replay_actions, replay_moves
from wallgo_jax.view.snapshot import take_snapshot

RULES = Rules(size=3, stones=1, order=(0, 1))
SHIPPED_FOLDER = Path(train.__file__).parent / "models"
OPTIONS = PuzzleOptions(shallow=4, deep=16, level=0.49, wins=0.7, others=0.69, skipped=0)


@pytest.fixture(scope="module")
def analyst():
    return make_analyst("heuristic-search:wjx@16", RULES)


@pytest.fixture(scope="module")
def recorded(analyst):
    return play_own_games(analyst, games=300, simulations=4, opening_plies=5, seed=0)


@pytest.fixture(scope="module")
def puzzles(analyst, recorded):
    return find_puzzles(analyst, [recorded], OPTIONS, most=12, counts_played=True)


def known_puzzle(actions: tuple[int, ...], line: tuple[int, ...], difficulty: int) -> Puzzle:
    """A puzzle of a solved board, as a search of 16 simulations finds it."""
    return Puzzle(
        record=Record(rules=RULES, actions=actions),
        solution=line[0],
        line=line,
        difficulty=difficulty,
        shallow=0.5,
        chance=0.99,
        next_best=0.01,
        played=268,
        found_by="heuristic-search:wjx@16",
    )


KNOWN = [
    known_puzzle((468, 470, 49, 112, 246), (304, 17, 401), 1),
    known_puzzle((474, 476, 328, 419), (401, 422, 197, 273, 54), 1),
    known_puzzle((471, 470, 161, 118, 10, 100, 175), (307, 210, 407), 2),
    known_puzzle((476, 471, 429, 165, 406, 353, 297, 210), (98, 211, 198), 2),
]
"""Searches for puzzles are slow tests; by default these stand for what they find."""


@pytest.fixture(scope="module")
def solver():
    return Solver(RULES.to_dict())


def only_win(solver: Solver, played: tuple[int, ...]) -> list[int]:
    """Actions that win, by the slow solver; none where the position is not won."""
    game = Game(RULES.to_dict())
    for action in played:
        game.act(action)
    solved = solver.solve(game)
    if solved.value < 1:
        return []
    own = game.board.stones[game.player]
    turns = game.turns()
    return [
        action
        for action, (stone, end, wall) in turns.items()
        if (None if wall is None else own[stone], end, wall) in solved.best
    ]


def test_known_solutions_are_the_only_winning_moves(solver):
    for puzzle in KNOWN:
        assert only_win(solver, puzzle.record.actions) == [puzzle.solution]
        replay_actions(RULES, [*puzzle.record.actions, *puzzle.line])


@pytest.mark.slow
def test_every_solution_is_the_only_winning_move(puzzles, solver):
    assert len(puzzles) >= 5
    for puzzle in puzzles:
        assert only_win(solver, puzzle.record.actions) == [puzzle.solution]
        assert puzzle.line[0] == puzzle.solution
        assert puzzle.next_best <= OPTIONS.others < OPTIONS.wins <= puzzle.chance


@pytest.mark.slow
def test_puzzles_of_a_larger_solved_board_are_what_the_exact_player_plays():
    rules = Rules(size=4, stones=1, order=(0, 1), stay_needs_room=True)
    analyst = make_analyst("heuristic-search:wjx@16", rules)
    recorded = play_own_games(analyst, games=100, simulations=4, opening_plies=6, seed=0)
    found = find_puzzles(analyst, [recorded], OPTIONS, most=12, counts_played=True)
    assert found
    exact = make_exact_player(rules)
    for puzzle in found:
        states = jax.tree.map(lambda x: x[None], state_of(puzzle))
        for seed in range(4):
            slot = exact.act(exact.variables, states, jax.random.key(seed))
            public = actions.action_of_slot(state_of(puzzle), slot[0])
            assert int(public) == puzzle.solution


def test_the_exact_judge_agrees_with_the_slow_solver(solver):
    judge = exact_judge(RULES)
    assert judge is not None
    for puzzle in KNOWN:
        state = state_of(puzzle)
        for action in take_snapshot(state).legal:
            assert judge(state, action) == (action == puzzle.solution)
    assert exact_judge(PRESETS["wallzero-4stone"]) is None


@pytest.mark.slow
def test_a_check_finds_a_wrong_solution(analyst, puzzles):
    good, bad = puzzles[:2]
    legal = take_snapshot(state_of(bad)).legal - {bad.solution}
    found = check_puzzles(analyst, [good, bad._replace(solution=min(legal))], OPTIONS)
    assert [each.is_confirmed for each in found] == [True, False]


def test_a_file_gives_the_puzzles_again(tmp_path):
    puzzles = KNOWN
    for name in ("a.jsonl", "a.jsonl.gz"):
        write_puzzles(tmp_path / name, puzzles)
        again = read_puzzles(tmp_path / name)
        assert [to_line(each) for each in again] == [to_line(each) for each in puzzles]
        assert [each.solution for each in again] == [each.solution for each in puzzles]
    data = (tmp_path / "a.jsonl.gz").read_bytes()
    write_puzzles(tmp_path / "b.jsonl.gz", puzzles)
    assert (tmp_path / "b.jsonl.gz").read_bytes() == data


@pytest.mark.slow
def test_difficulties_are_in_order(puzzles):
    found = [puzzle.difficulty for puzzle in puzzles]
    assert found == sorted(found) and set(found) <= {1, 2, 3, 4, 5}
    assert all(placement_of(puzzle.solution, grid=3) is None for puzzle in puzzles)


@pytest.mark.slow
def test_the_command_checks_a_file(puzzles, tmp_path):
    path = tmp_path / "puzzles.jsonl"
    write_puzzles(path, puzzles)
    said = command("puzzles", "--check", path)
    assert said.code == 0, said.err
    assert said.out.endswith(f"{len(puzzles)} of {len(puzzles)} confirmed (100%)\n")


def test_a_puzzle_without_its_solution_is_one_line(tmp_path):
    path = tmp_path / "puzzles.jsonl"
    write_puzzles(path, KNOWN)
    fields = json.loads(path.read_text().splitlines()[0])
    del fields["solution"]
    path.write_text(json.dumps(fields))
    assert complaint(command("puzzles", "--check", path)).startswith(f"{path}, line 1: key 'sol")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([], "puzzles: needs either --out FILE or --check FILE"),
        (["--check", "nowhere"], "nowhere: cannot be read: No such file or directory"),
        (["--out", "x", "--deep", "8"], "shallow (16) must be from 1 to below deep (8)"),
        (["--out", "x", "--wins", "0.5"], "win chances must be ordered"),
        (["--out", "x", "--count", "0"], "puzzles: count (0) must be at least 1"),
    ],
)
def test_wrong_words_are_answered_in_one_line(words, reason, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert reason in complaint(command("puzzles", *words))


def test_shipped_puzzles_are_whole():
    file = SHIPPED_FOLDER / SHIPPED_FILE
    puzzles = shipped_puzzles()
    assert bool(puzzles) == file.is_file()
    for puzzle in puzzles:
        assert puzzle.solution in take_snapshot(state_of(puzzle)).legal
        assert puzzle.line[0] == puzzle.solution
        replay_actions(puzzle.record.rules, [*puzzle.record.actions, *puzzle.line])
        assert puzzle.next_best <= 0.6 < 0.8 <= puzzle.chance and abs(puzzle.shallow - 0.5) <= 0.2
        assert puzzle.difficulty >= 2  # The network's policy missed it.
    assert len({sameness_key(state_of(puzzle)) for puzzle in puzzles}) == len(puzzles)
    if puzzles:
        assert len(puzzles) >= 50 and file.stat().st_size < 200_000
        assert len({puzzle.difficulty for puzzle in puzzles}) >= 3


def test_a_turned_board_of_other_colours_is_the_same_puzzle():
    game = replay_moves(PRESETS["hkoi"], parse_moves("B2 C2 E5 A7 B6 F1 D4 G3 B2->B3:up", grid=7))
    state = game.states[-1]
    key = sameness_key(state)
    for symmetry in range(8):
        assert sameness_key(symmetry_lib.turn_state(state, jnp.int32(symmetry))) == key
    stones, walls = np.asarray(state.position.stones), np.asarray(state.position.walls)
    other = state.position._replace(stones=stones[::-1, ::-1], player=1 - state.position.player)
    assert sameness_key(state._replace(position=other)) == key
    assert sameness_key(state._replace(position=other._replace(walls=walls[::-1]))) == key
    for position in (
        state.position._replace(player=1 - state.position.player),
        state.position._replace(walls=0 * walls),
        state.position._replace(stones=np.where(stones == stones[0, 0], 6, stones)),
    ):
        assert sameness_key(state._replace(position=position)) != key


@pytest.mark.slow
def test_a_search_ends_with_enough_puzzles_or_when_it_is_stopped(analyst, recorded, puzzles):
    found, rounds = [], []

    def own_games():
        for number in range(3):
            rounds.append(number)
            yield recorded

    def on_found(count, games):
        found.append((count, games))

    find = functools.partial(
        find_puzzles, analyst, options=OPTIONS, counts_played=True, on_found=on_found
    )
    enough = find(own_games(), most=len(puzzles))
    assert [to_line(each) for each in enough] == [to_line(each) for each in puzzles]
    assert rounds == [0] and found == [(len(puzzles), 300)]
    # The same games again hold nothing new, and a stop keeps what was found before.
    rounds.clear()

    def on_progress(step, done, total):
        if len(rounds) == 3:
            raise StoppedError

    kept = find(own_games(), most=99, on_progress=on_progress)
    assert [to_line(each) for each in kept] == [to_line(each) for each in puzzles]
    assert found[1:] == [(len(puzzles), 300), (len(puzzles), 600)]


def test_puzzles_are_spread_over_difficulties():
    many = [KNOWN[0]._replace(difficulty=d) for d in (1, 1, 1, 1, 2, 4, 4)]
    assert [each.difficulty for each in spread(many, 5)] == [1, 1, 2, 4, 4]
    assert [each.difficulty for each in spread(many, 9)] == [1, 1, 1, 1, 2, 4, 4]


@pytest.mark.slow
def test_positions_at_the_beginning_are_left_out(analyst, recorded):
    late = dataclasses.replace(OPTIONS, skipped=0.6)
    found = find_puzzles(analyst, [recorded], late, most=99, counts_played=True)
    lengths = {record.actions: len(record.actions) for record in recorded.records}
    for puzzle in found:
        played = puzzle.record.actions
        whole = [n for actions, n in lengths.items() if actions[: len(played)] == played]
        assert len(played) >= 0.6 * min(whole)
