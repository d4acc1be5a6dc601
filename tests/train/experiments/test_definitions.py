"""Definitions of experiments against the slow referee, and figures worked out by hand."""

import itertools
import math
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from tests.support.learner.plain_heuristics import referee_at
from tests.support.reference import referee as slow
from train.checkpoints.exported import Calibration
from train.experiments import balance, lab, mobility, openings, plays, size
from train.experiments.selfplay_games import OwnGames
from wallgo_jax.board.geometry import MOVE_OFFSETS
from wallgo_jax.game.rules import PRESETS, Rules
from wallgo_jax.game.sizes import first_placement
from wallgo_jax.notation import parse_moves
from wallgo_jax.view.game_replay import replay_moves

FOUR, EMPTY = PRESETS["wallzero-4stone"], PRESETS["wallzero-empty"]


def cell(name: str, size: int = 7) -> int:
    """The placement on a cell as a public action."""
    return first_placement(size) + (int(name[1]) - 1) * size + "ABCDEFG".index(name[0])


def games_of(rules: Rules, *played: tuple[tuple[int, ...], float]) -> OwnGames:
    """Finished games and Red's reward in each."""
    actions, rewards = zip(*played, strict=True)
    return OwnGames(rules, actions, np.array([(reward, -reward) for reward in rewards]))


def test_a_start_with_stones_keeps_the_turns_that_leave_it_alike():
    """Red holds B6 and F2, Blue B2 and F6: a half turn and both diagonals keep that."""
    assert len(openings.start_symmetries(FOUR)) == 4
    assert openings.start_symmetries(EMPTY) == list(range(8))


def test_turned_openings_are_one():
    """D3 turned about the diagonals is C4 or E4, by half a turn D5; the same replies turned."""
    lines = [("D3", "D5"), ("D5", "D3"), ("C4", "E4"), ("E4", "C4"), ("D3", "E4")]
    rewards = (1.0, 1.0, -1.0, 0.0, -1.0)
    played = [
        ((*map(cell, line), cell("A1"), cell("G7")), reward)
        for line, reward in zip(lines, rewards, strict=True)
    ]
    tree = balance.tree_of(games_of(FOUR, *played), depth=2)
    one, two = ([node for path, node in tree.nodes.items() if len(path) == n] for n in (1, 2))
    assert one == [balance.OpeningNode(5, 2.5)]
    assert sorted(two) == [balance.OpeningNode(1, 0.0), balance.OpeningNode(4, 2.5)]
    assert tree.games == 5


def test_the_tree_of_openings_shows_the_commonest_below_their_parents():
    lines = [("D4", "D3")] * 4 + [("D4", "C3")] * 3 + [("C3", "E5")] * 2 + [("A1", "B1")]
    played = [(tuple(map(cell, line)), 1.0 - 2 * (i % 2)) for i, line in enumerate(lines)]
    tree = balance.tree_of(games_of(EMPTY, *played), depth=2)
    shown = balance.most_common(tree)
    centre, edge, corner = (each for each in shown if len(each.path) == 1 or each.node.games == 2)
    assert [each.node.games for each in shown] == [7, 4, 3, 2, 2]  # one game alone is not shown
    assert [each.row for each in shown] == [0.5, 0.0, 1.0, 2.0, 2.0]
    assert centre.path[0] == cell("D4") and edge.path == corner.path[:1]
    assert [len(each.path) for each in balance.most_common(tree, leaves=1)] == [1, 2]


def test_placements_are_counted_with_their_turned_copies():
    played = ((cell("D3"), cell("D5"), cell("A1"), cell("G7")), 1.0)
    counts = balance.placement_counts(games_of(FOUR, played)).reshape(2, 7, 7)
    # Red places first and last, Blue in between; A1 and G7 lie on a diagonal.
    assert counts[0].sum() == counts[1].sum() == pytest.approx(2.0)
    assert [counts[0][2, 3], counts[0][3, 2], counts[0][3, 4], counts[0][4, 3]] == [0.25] * 4
    assert counts[0][6, 6] == pytest.approx(0.5)


def test_knuths_estimate_is_the_number_of_games():
    """A board with a wall each is small enough to count its games with the slow referee."""
    rules = Rules(size=3, stones=1, order=(0, 1), walls=1)
    total = sum(_all_counts(rules))
    found = size.size_of(size.random_descents(rules, 1024, seed=1), seed=0)
    assert found.knuth[1] <= math.log10(total) <= found.knuth[2]
    assert found.typical[0] <= found.knuth[0]


def _all_counts(rules: Rules):
    """For each placement of Red and of Blue, the number of games that follow."""
    cells = list(itertools.product(range(3), repeat=2))
    for red, blue in itertools.permutations(cells, 2):
        board = slow.Board(3, [[red], [blue]], {})
        yield _games_after(rules, board, 0)


def _games_after(rules: Rules, board: slow.Board, player: int) -> int:
    total = 0
    stone = board.stones[player][0]
    for end in board.ends(stone, stay_needs_room=False):
        moved = board.copy()
        moved.stones[player][0] = end
        for side in slow.SIDES:
            if not moved.is_open(end, side):
                continue
            after = moved.copy()
            after.walls[slow.edge(end, side)] = player
            is_last = player == 1 or after.is_separated()
            total += 1 if is_last else _games_after(rules, after, 1)
    return total


def test_bounds_of_positions_hold_on_the_solved_board():
    exact = math.log10(69_138)
    assert size.lower_bound(size.SOLVED) == pytest.approx(math.log10(72))
    assert math.log10(72) <= exact <= size.upper_bound(size.SOLVED)


PASSES = "B3 D3 B3->C3:W0 D3->D3:W3 C3->C3:W2 D3->D3:W0 C3->B3:W2"
GIVES_UP = (
    "B3 E4 B3->A3:W1 E4->C4:W1 A3->A2:W2 C4->A4:W0 A2->B2:W0 A4->A5:W1 B2->D2:W3 A5->B4:W3 "
    "D2->D3:W2 B4->C3:W3 D3->D2:W1 C3->D3:W0 D2->D1:W1 D3->C3:W0 D1->C1:W3"
)


@pytest.mark.parametrize(("moves", "has_kind"), [(PASSES, "passes"), (GIVES_UP, "gives_up")])
def test_kinds_of_plays_are_those_of_the_definition(moves, has_kind):
    """Every play of a position against the slow referee's reach and regions; Blue is to move."""
    rules = Rules(size=5, stones=1, order=(0, 1))
    game = replay_moves(rules, parse_moves(moves, grid=5))
    state = game.states[-1]
    found = plays.kinds_of(jax.tree.map(lambda x: np.asarray(x)[None], state))
    board = referee_at(rules, game.actions).board
    stone = board.stones[1][0]
    mover, before, wanted = 1, _sets(board), {}
    for number, move in enumerate(slow.MOVES):
        end = slow.neighbour(stone, move)
        if end not in board.ends(stone, stay_needs_room=False):
            continue
        for place, side in enumerate(slow.SIDES):
            moved = board.copy()
            moved.stones[mover][0] = end
            if moved.is_open(end, side):
                moved.walls[slow.edge(end, side)] = mover
                wanted[number, place] = _sets(moved)
    lead = {key: len(owned[1]) - len(owned[0]) for key, (_, owned) in wanted.items()}
    ahead = {key: len(reach[1]) - len(reach[0]) for key, (reach, _) in wanted.items()}
    most = max(lead.values())
    rival = max(ahead[key] for key in wanted if lead[key] == most)
    passes = {key for key, after in wanted.items() if _changed(before, after) <= plays.HARDLY}
    gives_up = {
        key for key in wanted if lead[key] <= most - plays.LEAD and ahead[key] >= rival + plays.GAIN
    }
    assert len(wanted) > 3 and {"passes": passes, "gives_up": gives_up}[has_kind]
    assert [_plays(mask[0]) for mask in found] == [gives_up, passes]


def _plays(mask: np.ndarray) -> set[tuple[int, int]]:
    """Slots as (move, side); the moves of the engine in the referee's numbers."""
    offsets = [tuple(map(int, offset)) for offset in MOVE_OFFSETS]
    return {(slow.MOVES.index(offsets[slot // 4]), slot % 4) for slot in np.flatnonzero(mask)}


def _changed(before, after) -> int:
    """Cells by which two pairs of reaches and enclosed cells differ."""
    pairs = zip((*before[0], *before[1]), (*after[0], *after[1]), strict=True)
    return sum(len(old ^ new) for old, new in pairs)


def _sets(board: slow.Board):
    """Each side's reach within four turns, and the cells that it encloses."""
    reach = [{at for at, steps in board.distances(p).items() if steps <= 8} for p in (0, 1)]
    regions = [set(board.distances(p, through_stones=True)) for p in (0, 1)]
    owned = [regions[0] - regions[1], regions[1] - regions[0]]
    return reach, owned


def test_searches_are_kept_by_the_calibration_of_their_win_chances(monkeypatch, tmp_path):
    """What a model's card says of win chances may change where its weights do not."""
    known = []

    class Work(lab.Lab):
        def keep(self, kind, key, make):
            known.append((kind, key))
            if kind == "searched-plays":
                raise KeyboardInterrupt

    games = games_of(FOUR, ((1,), 1))
    monkeypatch.setattr(mobility, "selfplay", lambda *given, **settings: games)
    for search in (1.0, 2.0, 1.0):
        analyst = SimpleNamespace(calibration=Calibration(search=search))
        make = lambda *given, analyst=analyst, **settings: analyst  # noqa: E731
        monkeypatch.setattr(mobility, "make_analysis_player", make)
        with pytest.raises(KeyboardInterrupt):
            mobility.main(Work("mobility", mobility.Scale(out=tmp_path)))
    first, second, third = [key for kind, key in known if kind == "searched-plays"]
    assert first == third != second


def test_red_wins_with_draws_as_halves():
    actions = tuple(map(cell, ("D3", "D5", "A1", "G7")))
    games = games_of(FOUR, (actions, 1.0), (actions, 0.0), (actions[:3], -1.0), (actions, 1.0))
    tree, areas = balance.tree_of(games, depth=2), np.tile([[30, 10]], (4, 1))
    assert balance.balance_of(games, tree, areas=areas)["red"] == {"won": 2, "drawn": 1, "lost": 1}
