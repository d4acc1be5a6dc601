"""Proofs of exact values are accepted by a checker that shares nothing with the package, which
plays by the rules of the slow referee and refuses what is false."""

import ast
import functools
import importlib.util
import json
import lzma
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from tests.support.reference.referee import Game
from train.experiments.exact_proofs import CLAIMS, Claim, prove
from train.solver.alphabeta import AlphaBeta
from train.solver.boards import Board, openings_of
from wallgo_jax.game.rules import Rules

FOLDER = Path(__file__).parents[3] / "docs" / "results" / "data" / "exact"
QUICK = [claim for claim in CLAIMS if (claim.size, claim.stones) == (3, 1)]
LARGE = [claim for claim in CLAIMS if claim not in QUICK]
ALL = [*QUICK, *(pytest.param(claim, marks=pytest.mark.slow) for claim in LARGE)]


@functools.cache
def checker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("exact_check", FOLDER / "check.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read(claim: Claim) -> tuple[dict[str, Any], bytes]:
    """What a proof claims, and its moves."""
    line, _, moves = lzma.decompress((FOLDER / claim.name).read_bytes()).partition(b"\n")
    return json.loads(line), moves


def rules_of(size: int, stones: int) -> Rules:
    return Rules(size=size, stones=stones, order=(0, 1) if stones == 1 else (0, 1, 1, 0))


def packed(line: dict[str, Any], moves: bytes) -> bytes:
    return lzma.compress(json.dumps(line).encode() + b"\n" + moves, preset=0)


def is_refused(line: dict[str, Any], moves: bytes) -> bool:
    try:
        checker().check(packed(line, moves))
    except checker().ProofError:
        return True
    return False


def test_the_checker_stands_alone():
    text = (FOLDER / "check.py").read_text("utf-8")
    assert len(text.splitlines()) <= 200
    imported = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import)]
    modules = {alias.name for node in imported for alias in node.names}
    froms = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    modules |= {str(node.module) for node in froms}
    assert {name.partition(".")[0] for name in modules} <= set(sys.stdlib_module_names)


def test_there_is_a_proof_of_each_claim_and_no_other():
    assert {path.name for path in FOLDER.glob("*.xz")} == {claim.name for claim in CLAIMS}
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 100_000


@pytest.mark.parametrize("claim", ALL, ids=lambda claim: claim.name)
def test_proof_is_accepted(claim):
    said = checker().check((FOLDER / claim.name).read_bytes())
    name = claim.name.removesuffix(".proof.xz").replace("-", " ")
    order = {1: "rb", 2: "rbbr"}[claim.stones]
    assert said.lower().replace(":", "").startswith(name.replace(f" {claim.stones}", f" {order}"))


def test_the_program_says_what_is_proved(capsys, monkeypatch, tmp_path):
    path = FOLDER / "3x3-1-red-wins.proof.xz"
    cut = tmp_path / "cut.xz"
    line, moves = read(QUICK[0])
    cut.write_bytes(packed(line, moves[:-1]))
    for paths, code, said in (([path], 0, "proved: 3x3 RB: Red wins"), ([cut, path], 1, "WRONG")):
        monkeypatch.setattr(sys, "argv", ["check.py", *map(str, paths)])
        assert checker().main() == code
        assert capsys.readouterr().out.startswith(said)


@pytest.mark.parametrize("claim", ALL, ids=lambda claim: claim.name)
def test_the_solver_writes_the_proof(claim):
    written = prove(claim, is_compiled=None if claim in LARGE else False)
    assert lzma.decompress(written) == lzma.decompress((FOLDER / claim.name).read_bytes())


@pytest.mark.parametrize(("size", "stones"), [(3, 1), (3, 2), (4, 1), (4, 2), (5, 2)])
def test_the_rules_are_those_of_the_slow_referee(size, stones):
    """Random games: legal moves, whose turn it is, and results."""
    rng = random.Random(size * 10 + stones)
    rules = rules_of(size, stones)
    for _ in range(40 if size < 5 else 4):
        slow, game = Game(rules.to_dict()), checker().Game(size, list(rules.order))
        position, paid = checker().Position(0, ((), ()), rules.order[0]), []
        while not slow.over:
            assert game.result(position) is None
            assert position.player == slow.player
            own = [row * size + column for row, column in slow.board.stones[slow.player]]
            numbers = {}
            for action in slow.legal():
                cell, play = divmod(action, 52)
                in_setup = cell >= size**2
                number = action - size**2 * 52 if in_setup else sorted(own).index(cell) * 52 + play
                numbers[number] = action
            after = dict(game.moves(position))
            assert list(after) == sorted(numbers)
            number = rng.choice(list(after))
            position = after[number]
            paid = slow.act(numbers[number])
        assert game.result(position) == paid[0]


# The first placement up to symmetry, or none, and Red's result: the page's table, proven by the
# slow referee in tests/train/solver.
VALUES = {
    (3, "RB"): {"": 1, "A1": -1, "B1": -1, "B2": 1},
    (3, "RBBR"): {"": 0, "A1": -1, "B1": 0, "B2": 0},
    (4, "RB"): {"": -1, "A1": -1, "B1": -1, "B2": -1},
}


def false_claims() -> Iterator[dict[str, Any]]:
    for (size, order), values in VALUES.items():
        for first, red in values.items():
            for side, value in (("Red", red), ("Blue", -red)):
                for result, least in (("wins", 1), ("does not lose", 0)):
                    if value < least:
                        placed = [first] if first else []
                        yield {
                            "size": size,
                            "order": order,
                            "placed": placed,
                            "side": side,
                            "result": result,
                        }


def test_false_claims_are_refused():
    """With the moves of each true claim, and with random ones."""
    rng = random.Random(0)
    moves = [read(claim)[1] for claim in CLAIMS] + [rng.randbytes(500) for _ in range(5)]
    claims = list(false_claims())
    assert len(claims) * len(moves) >= 250
    assert all(is_refused(line, each) for line in claims for each in moves)


@pytest.mark.parametrize(
    "changes",
    [
        {"size": 2},
        {"size": "3"},
        {"order": "RBR"},
        {"order": ""},
        {"order": "RG"},
        {"placed": ["A0"]},
        {"placed": ["D1"]},
        {"placed": ["A1", "A1"]},
        {"placed": ["A1", "B1", "C1"]},
        {"side": "Green"},
        {"result": "draws"},
    ],
)
def test_claims_that_mean_nothing_are_refused(changes):
    line, moves = read(QUICK[0])
    with pytest.raises(checker().ProofError, match="no claim"):
        checker().check(packed(line | changes, moves))


class Choice(NamedTuple):
    """A position in which a proof has a move."""

    position: Any
    after: dict[int, Any]  # by number of the move


def choices(claim: Claim, monkeypatch) -> list[Choice]:
    """The positions of a proof's moves, in their order, as the checker meets them."""
    met, game = [], checker().Game
    legal = game.moves

    def spy(self, position):
        after = list(legal(self, position))
        met.append(Choice(position, dict(after)))
        return after

    line, moves = read(claim)
    with monkeypatch.context() as patch:
        patch.setattr(game, "moves", spy)
        assert not is_refused(line, moves)
    found = [each for each in met[len(claim.placed) :] if each.position.player == claim.side]
    assert len(found) == len(moves)
    return found


def loses(search: AlphaBeta, claim: Claim, after: Any) -> bool:
    """Whether a play breaks the claim."""
    size = claim.size
    down, right = openings_of(size)
    board = Board(
        down & ~after.walls, right & ~(after.walls >> size**2), after.stones, after.player
    )
    return not search.keeps(board, claim.value)


def losing_moves(
    claim: Claim, count: int, monkeypatch, *, is_compiled: bool | None
) -> Iterator[tuple[int, int]]:
    """Places in a proof, and moves that break its claim there; early ones are likelier, because
    what is wrong is only met after all that comes before it."""
    rng, found = random.Random(1), choices(claim, monkeypatch)
    search = AlphaBeta(rules_of(claim.size, claim.stones), is_compiled=is_compiled)
    while count:
        place = int(len(found) * rng.random() ** 3)
        number, after = rng.choice(list(found[place].after.items()))
        if after.walls and loses(search, claim, after):
            yield place, number
            count -= 1


def replaced(moves: bytes, place: int, number: int) -> bytes:
    return moves[:place] + bytes([number]) + moves[place + 1 :]


def check_mutations(claim: Claim, count: int, monkeypatch, *, is_compiled: bool | None) -> None:
    line, moves = read(claim)
    mutations = losing_moves(claim, count, monkeypatch, is_compiled=is_compiled)
    for place, number in mutations:
        assert is_refused(line, replaced(moves, place, number)), (place, number)


@pytest.mark.parametrize("claim", QUICK, ids=lambda claim: claim.name)
def test_a_losing_move_is_refused(claim, monkeypatch):
    check_mutations(claim, 100, monkeypatch, is_compiled=False)


@pytest.mark.slow
@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
def test_losing_moves_are_refused(claim, monkeypatch):
    """1,000 over all proofs."""
    count = 240 if claim in QUICK else 54 if claim.size == 3 else 10
    check_mutations(claim, count, monkeypatch, is_compiled=None)


def test_moves_that_are_cut_or_added_or_illegal_are_refused(monkeypatch):
    line, moves = read(QUICK[0])
    assert all(is_refused(line, moves[:length]) for length in range(0, len(moves), 9))
    assert all(is_refused(line, moves + bytes([number])) for number in range(0, 256, 15))
    for place, choice in list(enumerate(choices(QUICK[0], monkeypatch)))[::9]:
        number = next(number for number in range(256) if number not in choice.after)
        assert is_refused(line, replaced(moves, place, number))
