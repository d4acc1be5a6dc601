"""Claims by proof numbers against tables and alpha-beta search, which share only the move code."""

import dataclasses

import pytest

from tests.support.learner.exact import look_up_all
from tests.train.solver.test_solver import COMPILED, LARGE, ONE, late_positions, stack
from train.runtime.errors import UsageError
from train.solver import boards, late
from train.solver.alphabeta import AlphaBeta
from train.solver.boards import DRAW, WIN, Board
from train.solver.claims import Claim, _key
from train.solver.contest import Contest, geometry_of
from train.solver.exact_player import make_placement_values, tables_of
from wallgo_jax.board.geometry import NUM_SYMMETRIES, turn_cell
from wallgo_jax.game.rules import Rules
from wallgo_jax.view.game_replay import replay_actions

TWO = Rules(size=3, stones=2, order=(0, 1, 1, 0))


def range_of(claims: dict[tuple[int, int], Claim], board: Board) -> tuple[int, int]:
    """Bounds of a board's value for the player to move, by what both sides can prove."""
    rules, mover = claims[0, WIN].rules, board.player
    least = []
    for player in (mover, 1 - mover):
        contest = late.reduce(board, player, geometry_of(rules))
        proven = [claims[player, target].decide(contest, 1_000_000) for target in (DRAW, WIN)]
        assert None not in proven
        least.append(sum(map(bool, proven)) - 1)
    return least[0], -least[1]


def make_claims(rules: Rules, **options) -> dict[tuple[int, int], Claim]:
    pairs = [(player, target) for player in range(2) for target in (DRAW, WIN)]
    return {pair: Claim(rules, *pair, **options) for pair in pairs}


def boards_of(rules: Rules, seed: int, *, games: int, walls: int) -> tuple[list, list[Board]]:
    """States and boards of late positions."""
    played = late_positions(rules, seed, games=games, walls=walls)
    states = [replay_actions(rules, each).states[-1] for each in played]
    return states, [boards.board_of(state.position, rules.size) for state in states]


@pytest.mark.parametrize("is_compiled", [False, COMPILED])
@pytest.mark.parametrize(("rules", "walls"), [(ONE, 2), (ONE, 5), (TWO, 6), (TWO, 8)])
def test_claims_agree_with_tables(rules, walls, is_compiled):
    states, met = boards_of(rules, walls, games=12, walls=walls)
    values, _, _ = look_up_all(tables_of(rules), stack(states))
    claims = make_claims(rules, entries=1 << 14, is_compiled=is_compiled)
    ranges = [range_of(claims, board) for board in met]
    assert all(low <= value <= high for (low, high), value in zip(ranges, values, strict=True))
    # Waits of settled regions, which only several stones have, are bounded.
    assert sum(low == high for low, high in ranges) >= (12 if rules is ONE else 10)


@pytest.mark.parametrize(
    ("walls", "entries", "is_compiled"),
    [
        (12, 1 << 14, False),
        pytest.param(7, 1 << 14, True, marks=COMPILED.marks),
        pytest.param(7, 64, True, marks=COMPILED.marks),
    ],
)
def test_claims_agree_with_alpha_beta(walls, entries, is_compiled):
    """A table of 64 entries forgets nearly all, and the claims are the same."""
    search = AlphaBeta(LARGE)
    claims = make_claims(LARGE, entries=entries, is_compiled=is_compiled)
    _, met = boards_of(LARGE, 3, games=12, walls=walls)
    values = [search.value(board) for board in met]
    assert [range_of(claims, board) for board in met] == [(value, value) for value in values]


@pytest.mark.parametrize("is_compiled", [False, COMPILED])
@pytest.mark.parametrize("rules", [ONE, pytest.param(TWO, marks=pytest.mark.slow)])
def test_claims_know_placements(rules, is_compiled):
    values = make_placement_values(rules)(())
    for target in (DRAW, WIN):
        claim = Claim(rules, 0, target, entries=1 << 16, is_compiled=is_compiled)
        holds = [claim.decide(claim.start((cell,)), 1_000_000) for cell in range(9)]
        assert holds == [values[cell] >= target for cell in range(9)]
        assert claim.decide(claim.start(), 1) is (max(values.values()) >= target)


def turned(board: Board, symmetry: int, size: int) -> Board:
    """The image of a board, opening by opening."""
    place = [
        row * size + column
        for row, column in (turn_cell(symmetry, size, *divmod(c, size)) for c in range(size**2))
    ]
    sets = [0, 0]
    for cell in range(size**2):
        for is_open, other in ((board.down, cell + size), (board.right, cell + 1)):
            if is_open >> cell & 1:
                low, high = sorted((place[cell], place[other]))
                sets[high - low == 1] |= 1 << low
    first, second = (tuple(place[cell] for cell in own) for own in board.stones)
    return Board(sets[0], sets[1], (first, second), board.player)


@pytest.mark.parametrize("rules", [LARGE, dataclasses.replace(TWO, size=4)])
def test_symmetric_positions_have_one_proof(rules):
    _, met = boards_of(rules, 5, games=4, walls=12)
    for board in met:
        claim, proofs, nodes = Claim(rules, 0, WIN, is_compiled=False, entries=1 << 14), set(), 0
        for symmetry in range(NUM_SYMMETRIES):
            image = late.reduce(turned(board, symmetry, 4), 0, geometry_of(rules))
            proofs.add(claim.decide(image, 100_000))
            nodes = nodes or claim.nodes
        assert len(proofs) == 1 and None not in proofs
        assert claim.nodes == nodes


def test_claim_goes_on_from_a_file(tmp_path):
    claim = Claim(ONE, 0, WIN, entries=1 << 12, is_compiled=False)
    whole = Claim(ONE, 0, WIN, entries=1 << 12, is_compiled=False)
    assert whole.decide(whole.start(), 1_000_000)
    assert claim.decide(claim.start(), whole.nodes // 2) is None
    claim.save(tmp_path / "claim.npy")
    again = Claim(ONE, 0, WIN, entries=1 << 12, is_compiled=False)
    again.load(tmp_path / "claim.npy")
    assert again.decide(again.start(), 1_000_000)
    assert again.nodes < 2 * whole.nodes
    assert sum(again.decided().values()) and min(again.decided()) == 0
    with pytest.raises(UsageError, match="another size"):
        Claim(ONE, 0, WIN, entries=1 << 11, is_compiled=False).load(tmp_path / "claim.npy")


def test_a_position_that_its_bounds_decide_needs_no_search():
    """The game goes on, but each side surely draws."""
    contest = Contest(10, 218, 0b000_110_000, 0b100_001_000, 0, 0, 0, 0, 0, 1)
    for target, holds in ((DRAW, True), (WIN, False)):
        claim = Claim(TWO, 0, target, entries=1 << 10, is_compiled=False)
        assert claim.decide(contest, 1) is holds


def test_key_tells_contests_apart():
    """Each field of a contest counts."""
    claim = Claim(TWO, 0, WIN, entries=4, is_compiled=False)._claim
    base = Contest(3, 5, 1 | 2, 4 | 8, 0, 1, 1, 0, 0, 0)
    contests = [base._replace(**{field: getattr(base, field) + 1}) for field in Contest._fields]
    assert len({_key(claim, each) for each in (base, *contests)}) == 1 + len(Contest._fields)
