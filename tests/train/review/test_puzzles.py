"""Puzzles on a solved board are right, by a slow solver of its own; files keep them."""

import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import pytest

import train
from tests.support.learner.commands import command, complaint
from tests.support.learner.reports import report_of
from tests.support.reference.referee import Game
from tests.support.reference.solver import Solver
from tests.train.review.conftest import MOVES
from train.api import puzzles as finding
from train.data.record_dataset import RecordedGames
from train.review import puzzle_check, puzzle_search
from train.review.own_games import play_own_games
from train.review.player import make_analysis_player
from train.review.puzzle_check import PuzzleOptions, check_puzzles, exact_judge, state_of
from train.review.puzzle_file import (
    SHIPPED_FILE,
    Puzzle,
    WinChances,
    read_puzzles,
    shipped_puzzles,
    to_line,
    write_puzzles,
)
from train.review.puzzle_search import find_puzzles, sameness_key, spread
from train.runtime.errors import UsageError
from wallgo_jax.formats import records
from wallgo_jax.formats.records import Record
from wallgo_jax.game import symmetry as symmetry_lib
from wallgo_jax.game.rules import PRESETS, Rules
from wallgo_jax.notation import parse_moves, placement_of
from wallgo_jax.view.game_replay import replay_actions, replay_moves
from wallgo_jax.view.snapshot import take_snapshot

RULES = Rules(size=3, stones=1, order=(0, 1))
OPTIONS = PuzzleOptions(shallow=4, deep=16, level=0.49, wins=0.7, others=0.69, skipped=0)


@pytest.fixture(scope="module")
def player():
    return make_analysis_player("heuristic-search:wjx@16", RULES)


@pytest.fixture(scope="module")
def recorded(player):
    return play_own_games(player, games=300, simulations=4, opening_plies=5, seed=0)


@pytest.fixture(scope="module")
def puzzles(player, recorded):
    return next(find_puzzles(player, [recorded], OPTIONS, most=12, counts_played=True))[0]


def known_puzzle(actions: tuple[int, ...], line: tuple[int, ...], difficulty: int) -> Puzzle:
    """A puzzle of a solved board, as a search of 16 simulations finds it."""
    return Puzzle(
        record=Record(rules=RULES, actions=actions),
        solution=line[0],
        line=line,
        difficulty=difficulty,
        win_chance=WinChances(0.5, 0.99, 0.01),
        played=268,
        found_by="heuristic-search:wjx@16",
    )


KNOWN = [
    known_puzzle((468, 470, 49, 112, 246), (304, 17, 401), 1),
    known_puzzle((474, 476, 328, 419), (401, 422, 197, 273, 54), 1),
    known_puzzle((471, 470, 161, 118, 10, 100, 175), (307, 210, 407), 2),
    known_puzzle((476, 471, 429, 165, 406, 353, 297, 210), (98, 211, 198), 2),
]
"""The search for puzzles is a slow test; by default these stand for what it finds."""
ON_SMALL = ("--player", "heuristic-search:wjx", "--rules", json.dumps(RULES.to_dict()))


def finished_game() -> Record:
    return records.of_game(replay_moves(RULES, parse_moves(MOVES, grid=3)))


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


@pytest.mark.slow  # Finds puzzles by many searches, and solves their board.
def test_found_solutions_are_the_only_winning_moves(player, recorded, puzzles, solver, tmp_path):
    assert len(puzzles) >= 5
    for puzzle in puzzles:
        assert only_win(solver, puzzle.record.actions) == [puzzle.solution]
        assert puzzle.line[0] == puzzle.solution
        chances = puzzle.win_chance
        assert chances.next_best <= OPTIONS.others < OPTIONS.wins <= chances.solution
        assert placement_of(puzzle.solution, grid=3) is None
    difficulties = [puzzle.difficulty for puzzle in puzzles]
    assert difficulties == sorted(difficulties) and set(difficulties) <= {1, 2, 3, 4, 5}
    # The exact judge agrees with the slow solver, by whom the known solutions are right.
    judge = exact_judge(RULES)
    assert judge is not None
    for puzzle in KNOWN:
        state = state_of(puzzle)
        for action in take_snapshot(state).legal:
            assert judge(state, action) == (action == puzzle.solution)
    # The command confirms them, and a check finds a wrong one.
    path = tmp_path / "puzzles.jsonl"
    write_puzzles(path, puzzles)
    said = command("check-puzzles", path)
    assert said.code == 0, said.err
    assert said.out.endswith(f"{len(puzzles)} of {len(puzzles)} confirmed (100%)\n")
    good, bad = puzzles[:2]
    legal = take_snapshot(state_of(bad)).legal - {bad.solution}
    found = check_puzzles(player, [good, dataclasses.replace(bad, solution=min(legal))], OPTIONS)
    assert [each.is_confirmed for each in found] == [True, False]


def test_a_check_by_search_asks_for_the_solution_and_for_nothing_else(player, monkeypatch):
    """By a stub of the search, which finds the true solution; without it nothing wins."""
    good, bad = KNOWN[0], KNOWN[1]
    solutions = {len(each.record.actions): each.solution for each in (good, bad)}

    def search(player, states, *, simulations, excluded, on_progress):
        assert simulations == puzzle_check.CHECK * OPTIONS.deep
        found = []
        for state, barred in zip(states, excluded or [None] * len(states), strict=True):
            best = solutions[int(state.position.ply)]
            found.append(report_of(state, best, -0.9 if barred == best else 0.9))
        return found

    monkeypatch.setattr(puzzle_check, "exact_judge", lambda rules: None)
    monkeypatch.setattr(puzzle_check, "search_positions", search)
    wrong = dataclasses.replace(bad, solution=good.solution)
    found = check_puzzles(player, [good, wrong], OPTIONS)
    assert [each.is_confirmed for each in found] == [True, False]
    assert found[0].best == good.solution and found[1].best == bad.solution
    # Without its solution the first is not won; without the wrong one the second still is.
    assert found[0].next_best <= OPTIONS.others < OPTIONS.wins <= found[1].next_best
    larger = dataclasses.replace(good, record=dataclasses.replace(good.record, grid=4))
    with pytest.raises(UsageError, match=r"puzzle 2: .* grid"):
        check_puzzles(player, [good, larger], OPTIONS)


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


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"solution": None}, "solution"),
        ({"actions": [468, 470, 5000]}, "ply 3"),
        ({"actions": [468, 470, 468]}, "ply 3"),
        ({"actions": list(finished_game().actions)}, "over"),
        ({"solution": "A1->A1:W3", "line": ["A1->A1:W3"]}, "A1->A1:left"),
        ({"line": []}, "begin"),
        ({"line": ["C3->C3:W1"]}, "begin"),
        ({"actions": [472, 470, 259, 115], "solution": "C3->C3:W0"}, "only legal"),
        ({"difficulty": 1e999}, "difficulty"),
    ],
)
def test_a_puzzle_that_nobody_can_be_asked_is_one_line(tmp_path, changes, reason):
    path, good = tmp_path / "puzzles.jsonl", to_line(KNOWN[0])
    changed = {k: v for k, v in (json.loads(good) | changes).items() if v is not None}
    path.write_text(f"{good}\n{json.dumps(changed)}\n")
    said = complaint(command("check-puzzles", path))
    assert said.startswith(f"{path}, line 2: ") and reason in said


def test_games_of_files_are_replayed_before_any_is_searched(player, tmp_path, monkeypatch):
    good, path = finished_game(), tmp_path / "games.jsonl"
    bad = dataclasses.replace(good, actions=(*good.actions[:2], 0, *good.actions[3:]))
    monkeypatch.setattr(finding, "ROUND_GAMES", 1)
    records.write(path, [good, good])
    rounds = finding._recorded_rounds([path], player.rules)
    assert [each.places for each in rounds] == [(f"{path}, game 1",), (f"{path}, game 2",)]
    records.write(path, [good, bad])
    with pytest.raises(UsageError, match=r"games.jsonl, game 2: ply 3: "):
        next(finding._recorded_rounds([path], player.rules))


def test_what_was_found_before_an_error_is_written(tmp_path, monkeypatch):
    def fail(*arguments, **options):
        yield KNOWN[:1], 256
        yield KNOWN[:2], 512
        raise RuntimeError("the device is lost")

    monkeypatch.setattr(puzzle_search, "find_puzzles", fail)
    path = tmp_path / "puzzles.jsonl"
    with pytest.raises(RuntimeError, match="the device is lost"):
        command("puzzles", *ON_SMALL, "--out", path)
    assert [to_line(each) for each in read_puzzles(path)] == [to_line(p) for p in KNOWN[:2]]


def test_games_of_other_rules_are_refused(tmp_path):
    path, other = tmp_path / "games.jsonl", dataclasses.replace(RULES, stay_needs_room=True)
    records.write(path, [finished_game(), Record(rules=other, actions=(), result=(1.0, -1.0))])
    said = command("puzzles", *ON_SMALL, "--games", path, "--out", tmp_path / "out.jsonl")
    assert f"{path}, game 2: its rules (custom) have stay_needs_room" in complaint(said)
    named = [Record(rules=PRESETS["wallzero-empty"], actions=(), result=(1.0, -1.0))]
    records.write(path, named)
    said = command("calibrate", "heuristic-search:wjx@4", "--rules", "hkoi", "--games", path)
    assert f"{path}, game 1: its rules (wallzero-empty) have " in complaint(said)


def test_shipped_puzzles_are_whole():
    file = Path(train.__file__).parent / "models" / SHIPPED_FILE
    puzzles = shipped_puzzles()
    assert bool(puzzles) == file.is_file()
    for puzzle in puzzles:
        assert puzzle.line[0] == puzzle.solution
        chances = puzzle.win_chance
        assert chances.next_best <= 0.6 < 0.8 <= chances.solution
        assert abs(chances.shallow - 0.5) <= 0.2
        assert puzzle.difficulty >= 2  # The network's policy missed it.
    some = puzzles[::10]
    for puzzle in some:
        assert puzzle.solution in take_snapshot(state_of(puzzle)).legal
        replay_actions(puzzle.record.rules, [*puzzle.record.actions, *puzzle.line])
    assert len({sameness_key(state_of(puzzle)) for puzzle in some}) == len(some)
    if puzzles:
        assert len(puzzles) >= 50 and file.stat().st_size < 200_000
        assert len({puzzle.difficulty for puzzle in puzzles}) >= 3


def test_a_turned_board_of_other_colours_is_the_same_puzzle():
    game = replay_moves(PRESETS["hkoi"], parse_moves("B2 C2 E5 A7 B6 F1 D4 G3 B2->B3:up", grid=7))
    state = game.states[-1]
    key = sameness_key(state)
    turn_state = jax.jit(symmetry_lib.turn_state)
    for symmetry in range(8):
        assert sameness_key(turn_state(state, np.int32(symmetry))) == key
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


def test_a_search_ends_with_enough_puzzles(monkeypatch):
    """Where each round of games holds one of the known puzzles, and then again the first."""
    monkeypatch.setattr(
        puzzle_search, "_find_in", lambda player, search, recorded, *given, **named: recorded.held
    )

    def search(numbers, most):
        games = (SimpleNamespace(records=[None] * 10, held=[KNOWN[n]]) for n in numbers)
        return list(find_puzzles(None, games, OPTIONS, most=most))

    enough = search([2, 0, 1, 3], 2)
    assert enough == [([KNOWN[2]], 10), ([KNOWN[0], KNOWN[2]], 20)]
    # The same games again hold nothing new.
    assert search([2, 2], 99) == [([KNOWN[2]], 10), ([KNOWN[2]], 20)]


def test_puzzles_are_spread_over_difficulties():
    many = [dataclasses.replace(KNOWN[0], difficulty=d) for d in (1, 1, 1, 1, 2, 4, 4)]
    assert [each.difficulty for each in spread(many, 5)] == [1, 1, 2, 4, 4]
    assert [each.difficulty for each in spread(many, 9)] == [1, 1, 1, 1, 2, 4, 4]


def test_positions_at_the_beginning_are_left_out():
    plies = []

    def search(step, states, simulations):
        plies.append([int(state.position.ply) for state in states])
        return [report_of(state, 0, -1.0) for state in states]  # none is level

    recorded = RecordedGames((finished_game(),), ("game",))
    late = dataclasses.replace(OPTIONS, skipped=0.6)
    assert puzzle_search._level(search, recorded, late) == []
    assert plies == [[3, 4], []]
