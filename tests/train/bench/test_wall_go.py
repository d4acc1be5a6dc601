"""The adapter of wall-go's AI with a stub of its worker, which takes any legal action."""

import shlex
import shutil

import pytest

from tests.support.import_graph import ROOT
from tests.support.reference.referee import Game
from train.players.external import Program, ProgramError
from wallgo_jax.game.rules import PRESETS
from wallgo_jax.notation import CANONICAL_SIDES, format_action, parse_action

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="needs node")

ADAPTER = ROOT / "train" / "bench" / "wall_go.mjs"
STUB = """
const SIDES = [["right", 1, 0], ["left", -1, 0], ["bottom", 0, 1], ["top", 0, -1]];
const cells = [...Array(49).keys()].map((i) => ({ x: i % 7, y: Math.floor(i / 7) }));
self.onmessage = ({ data: { aiType, config, gameState: { board, turn, phase } } }) => {
  if (aiType !== "minimax") return self.postMessage({ error: "no idea" });
  if (config.depth !== 2) return self.postMessage({ action: null, info: "too deep" });
  const at = ({ x, y }) => board[y]?.[x];
  const isOpen = (pos, [, dx, dy]) => {
    const next = at({ x: pos.x + dx, y: pos.y + dy });
    const cell = dx + dy > 0 ? next : at(pos);
    return next && !(dx ? cell.wallLeft : cell.wallTop);
  };
  const walls = (pos) => SIDES.filter((side) => isOpen(pos, side)).map(([dir]) => (
    { type: "wall", from: pos, pos, dir }));
  const actions = [];
  for (const from of cells) {
    if (phase === "placing" && !at(from).stone) actions.push({ type: "place", pos: from });
    if (phase !== "playing" || at(from).stone !== turn) continue;
    actions.push(...walls(from));
    for (const side of SIDES) {
      const pos = { x: from.x + side[1], y: from.y + side[2] };
      if (!isOpen(from, side) || at(pos).stone) continue;
      actions.push(...walls(pos).map((followUp) => ({ type: "move", from, pos, followUp })));
    }
  }
  self.postMessage({ action: actions[Math.floor(Math.random() * actions.length)] });
};
"""
START = {"type": "start_game_session", "bgsId": "1", "rules": "wallzero-4stone", "moves": []}
EVALUATE = {"type": "evaluate_position", "bgsId": "1"}


@pytest.fixture
def adapter(tmp_path):
    """Starts the adapter with a level and a seed."""
    worker, programs = tmp_path / "worker.mjs", []
    worker.write_text(STUB, encoding="utf-8")

    def start(level: str, seed: int = 0) -> Program:
        words = ["node", str(ADAPTER), str(worker), level, str(seed)]
        programs.append(Program(shlex.join(words)))
        return programs[-1]

    yield start
    for program in programs:
        program.close()


def play(program: Program) -> list[str]:
    """The moves of a game against itself, each legal for the slow referee."""
    game, moves = Game(PRESETS["wallzero-4stone"].to_dict()), []
    program.ask([START], seconds=30)
    while not game.over:
        (answer,) = program.ask([EVALUATE], seconds=30)
        assert not isinstance(answer, ProgramError), answer
        action = parse_action(answer["bestMove"], grid=7).action
        assert action in game.legal()
        game.act(action)
        moves.append(format_action(action, grid=7, sides=CANONICAL_SIDES))
        apply = {"type": "apply_move", "bgsId": "1", "move": moves[-1]}
        assert program.ask([apply], seconds=30)[0]["ply"] == len(moves)
    assert len(moves) > 10
    return moves


def test_games_are_legal_and_repeat_with_their_seed(adapter):
    games = [play(adapter("easy", seed)) for seed in (1, 1, 2)]
    assert games[0] == games[1] != games[2]


def test_a_session_starts_with_moves(adapter):
    program = adapter("easy")
    moves = play(program)
    program.ask([START | {"moves": moves[:9]}], seconds=30)
    assert program.ask([EVALUATE], seconds=30)[0]["bestMove"] == moves[9]


@pytest.mark.parametrize(("level", "error"), [("practice", "no idea"), ("hard", "too deep")])
def test_what_the_worker_says_for_want_of_a_move_is_a_refusal(adapter, level, error):
    started, refused = adapter(level).ask([START, EVALUATE], seconds=30)
    assert started["success"] and str(refused) == f"refuses: {error}"


def test_other_rules_are_refused(adapter):
    (refused,) = adapter("easy").ask([START | {"rules": "hkoi"}], seconds=30)
    assert str(refused) == "refuses: plays wallzero-4stone alone"


def test_an_unknown_level_ends_it(adapter):
    (refused,) = adapter("impossible").ask([START], seconds=30)
    assert str(refused).startswith("ended with exit code 2: usage: node wall_go.mjs")
