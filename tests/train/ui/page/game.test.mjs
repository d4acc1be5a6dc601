// A game: whose turn it is, taking back, analysis, clocks, puzzles, and the machine's moves.

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";

import { Clocks } from "../../../../train/ui/page/clocks.js";
import { ANALYSE, Game, PLAY } from "../../../../train/ui/page/game.js";
import { goToNext, tryAgain } from "../../../../train/ui/page/mistakes.js";
import { hintText, hintedCells, hintsOf } from "../../../../train/ui/page/panels.js";
import { chooseCell } from "../../../../train/ui/page/picking.js";
import * as referee from "../../../../train/ui/page/referee.js";
import { poseGame, readCopy, writeCopy } from "../../../../train/ui/page/saving.js";
import { GameTree, MAX_NODES, pathTo } from "../../../../train/ui/page/tree.js";
import { ending, viewOf } from "../../../../train/ui/page/view.js";
import { makeMachine, until } from "./fake_engine.mjs";

const PERSON = "person", MACHINE = "expert", RULES = referee.readRules("wallzero-4stone");

const open = [];

// Timers of a game keep the process alive.
afterEach(() => { for (const game of open.splice(0)) game.close(); });

function begin(seats, { engine = makeMachine(), ...more } = {}) {
  const game = new Game({ tree: new GameTree(RULES), seats, machine: engine.machine, pace: 0, ...more });
  game.open(() => {});
  open.push(game);
  return { game, engine };
}

const texts = (game) => pathTo(game.tip).slice(1).map((node) => node.text);

test("the machine answers, and taking back returns to the person's choice", async () => {
  const { game } = begin([PERSON, MACHINE]);
  game.play("D4");
  assert.ok(!game.mayPlay);
  assert.throws(() => game.play("D5"), /Blue is played by the machine/);
  await until(() => game.mayPlay);
  assert.deepEqual(texts(game), ["D4", "A1", "B1"], "Blue places twice running");
  game.takeBack();
  assert.deepEqual(texts(game), []);
  assert.ok(game.mayPlay);
  assert.throws(() => game.takeBack(), /no move of yours to take back/);
});

test("what is not allowed is said in words", () => {
  const { game } = begin([PERSON, PERSON]);
  game.play("C3");
  for (const [move, reason] of [["C3", /C3: Red already stands on C3/], ["R D3", /Blue is to move, not Red/],
    ["J9", /not a cell/], ["B6->B5:up", /a stone has to be placed/], [9 ** 9, /./]]) {
    assert.throws(() => game.play(move), reason);
  }
  for (const move of ["D3", "E3", "F3"]) game.play(move);
  assert.throws(() => game.play("A1"), /every stone is placed/);
  assert.throws(() => game.play("D3->D4:up"), /Red has no stone on D3; its stones: B6, C3, F2, F3/);
  game.play("C3->C3:right");
  game.play("D3->D3:down");
  assert.throws(() => game.play("C3->D3:up"), /Blue already stands on D3/);
  assert.throws(() => game.play("C3->C3:right"), /the right side of C3 is a wall; free there: up, down, left/);
  assert.throws(() => game.play("B6->B7:down"), /the lower side of B7 is the border/);
});

test("a cell that cannot be picked is refused with a reason, and the pick stays", () => {
  const { game } = begin([PERSON, PERSON]);
  for (const [origin, target, reason] of [
    ["", "B6", "Red already stands on B6"], ["C3"], ["D3"], ["G5"], ["F3"],
    ["", "D3", "Blue already stands on D3: pick one of Red's stones"], ["", "D4", "D4 is empty: pick one of Red's stones"],
    ["C3", "C6", "C6 is more than two steps from C3"], ["C3", "D3", "Blue already stands on D3"],
    ["C3", "E3", "walls or stones block the way to E3"], ["G7", "A7", "A7 is more than two steps from G7"],
  ]) {
    if (!target) {
      game.play(origin);
      continue;
    }
    const { state, position } = viewOf(game, "g");
    const [from, to] = [origin, target].map((name) => (name ? referee.parts(referee.read(state, name), 7).target : null));
    assert.equal(referee.whyNot(state, from, to), reason);
    assert.deepEqual(chooseCell(position, { origin: from, target: null }, to), {}, "nothing is undone");
  }
});

test("the first line says who is to do what, the goal what for", () => {
  const { game } = begin([PERSON, MACHINE]);
  game.asksMachine = false;
  const { status, goal } = viewOf(game, "g");
  assert.equal(status, "You are Red. Place your third stone");
  assert.equal(goal, "Goal: wall off more cells than Blue. Of each colour, 2 stones already stand.");
  const people = begin([PERSON, PERSON]).game;
  const said = ["C3", "D3", "E3", "F3", "C3->C4:up"].map((move) => {
    people.play(move);
    return viewOf(people, "g").status;
  });
  assert.deepEqual(said, ["Blue to place the third stone", "Blue to place the fourth stone", "Red to place the fourth stone", "Red to move", "Blue to move"]);
  assert.equal(viewOf(people, "g").goal, "");
});

test("earlier positions are for looking, and analysis keeps variations", () => {
  const { game } = begin([PERSON, PERSON]);
  game.play("C3");
  game.go(0);
  assert.ok(!game.mayPlay);
  assert.throws(() => game.play("D3"), /this is an earlier position/);
  game.setMode(ANALYSE);
  game.play("E3");
  assert.equal(game.tree.root.children.length, 2);
  assert.throws(() => game.go(99), /99 is not a position/);
  game.setMode(PLAY);
  assert.deepEqual(texts(game), ["E3"]);
  assert.equal(game.tree.root.children[0].text, "E3", "the main line");
  assert.throws(() => game.remove(game.tip.number), /these moves are the game/);
  game.remove(1);
  assert.equal(game.tree.root.children.length, 1);
});

test("the machine rests in analysis until play goes on", async () => {
  const { game, engine } = begin([PERSON, MACHINE], { mode: ANALYSE });
  game.play("C3");
  await until(() => true);
  assert.deepEqual([texts(game), engine.heard], [[], []]);
  game.setMode(PLAY);
  await until(() => game.mayPlay);
  assert.equal(texts(game)[0], "C3");
});

test("a resigned game is over, names its winner, and can be taken back", () => {
  const { game } = begin([PERSON, PERSON]);
  game.play("C3");
  assert.equal(ending(game), null);
  game.resign();
  assert.deepEqual(ending(game), { title: "Red won: Blue resigned", cells: [0, 0], nobody: 49, ratio: null, plies: 1 });
  assert.ok(!game.mayPlay);
  assert.throws(() => game.resign(), /no game that a person could resign/);
  game.takeBack();
  assert.equal(game.forfeit, null);
});

const BOTH = [PERSON, PERSON];
const YOU = [PERSON, MACHINE];

for (const [cells, seats, title, ratio, forfeit] of [
  [[3, 1], BOTH, "Red won", 3], [[2, 6, 1], [...BOTH, PERSON], "Blue won", 4], [[9, 0], BOTH, "Red won", null], [[4, 4], YOU, "A draw", null],
  [[3, 1], YOU, "You won", 3], [[1, 3], YOU, "You lost: Blue won", 3], [[2, 6, 1], [MACHINE, ...YOU], "You won", 4],
  [[2, 6, 1], [...YOU, MACHINE], "You lost: Blue won", 4], [[3, 1], [MACHINE, MACHINE], "Red won", 3],
  [[0, 0], YOU, "You ran out of time: Blue won", null, [0, "ran out of time"]], [[0, 0], YOU, "You won: Blue resigned", null, [1, "resigned"]],
]) {
  test(`a finished game of ${cells} cells between ${seats} says how it ended: ${title}`, () => {
    const most = Math.max(...cells), payoff = cells.map((each) => Number(each === most));
    const position = { size: 3, territory: cells, payoff: payoff.filter(Boolean).length > 1 ? cells.map(() => 0) : payoff, ply: 9 };
    const nobody = 9 - cells.reduce((sum, each) => sum + each);
    const game = { tip: { position }, seats, forfeit: forfeit ?? null, isOver: true, task: null };
    assert.deepEqual(ending(game), { title, cells, nobody, ratio, plies: 9 });
  });
}

test("a hint searches deeper than a glance, goes with its position and does not come back", async () => {
  const { game, engine } = begin([PERSON, PERSON]);
  game.showEvaluation(true);
  await until(() => game.tree.root.report);
  game.askHint();
  await until(() => game.tree.root.report.simulations === 256);
  assert.deepEqual(engine.heard, [[64, 0], [256, 0]]);
  const view = viewOf(game, "g");
  const { evaluation, hint } = view;
  assert.deepEqual([hint, hintText(view), hintsOf(view)], ["stone", "Hint: place it in column C", null]);
  assert.deepEqual(hintedCells(view), [2, 9, 16, 23, 30, 37, 44], "the free cells of the column");
  game.askHint();
  const again = viewOf(game, "g");
  assert.deepEqual([again.hint, hintText(again), hintedCells(again)], ["move", "Hint: C1", []]);
  assert.deepEqual(hintsOf(again), evaluation.ideas);
  game.askHint();
  assert.deepEqual([viewOf(game, "g").hint, hintText(viewOf(game, "g"))], [null, ""]);
  game.askHint();
  assert.deepEqual(evaluation.ideas.map((idea) => idea.visits), [8, 1, 1, 1, 1], "the most visited first");
  game.showEvaluation(false);
  game.play("D4");
  game.takeBack();
  assert.ok(!viewOf(game, "g").hint);
});

test("a search that nobody waits for any more is stopped", async () => {
  const { game, engine } = begin([PERSON, MACHINE]);
  engine.held = [];
  game.play("D4");
  await until(() => engine.held.length === 1);
  game.takeBack();
  await until(() => game.search === null);
  assert.deepEqual([texts(game), game.error], [[], ""]);
  engine.held = null;
  game.play("E5");
  await until(() => game.mayPlay);
  assert.deepEqual(texts(game), ["E5", "A1", "B1"]);
});

test("a lost connection costs nothing: the search is asked for again", async () => {
  const { game, engine } = begin([PERSON, MACHINE]);
  engine.held = [];
  game.play("D4");
  await until(() => engine.held.length === 1);
  const { post } = engine.client;
  engine.client.lost();
  engine.held = null;
  engine.client.connected(post);
  await until(() => game.mayPlay);
  assert.deepEqual([texts(game).length, game.error], [3, ""]);
});

test("a machine that fails is not asked again until something changes", async () => {
  const { game, engine } = begin([MACHINE, PERSON], { engine: Object.assign(makeMachine(), { fails: "no room" }) });
  await until(() => game.error);
  assert.equal(game.error, "no room");
  assert.equal(engine.heard.length, 1);
  engine.fails = "";
  game.setMode(ANALYSE);
  assert.equal(game.error, "");
  game.setMode(PLAY);
  await until(() => texts(game).length);
});

test("one tab of several asks the machine", async () => {
  const { game } = begin([MACHINE, PERSON]);
  game.asksMachine = false;
  game.search?.stop();
  await until(() => game.search === null);
  assert.deepEqual(texts(game), []);
  game.asksMachine = true;
  game.update();
  await until(() => texts(game).length === 1);
});

test("clocks run from the first move on, with an increment, and end the game", () => {
  let now = 0;
  const clocks = new Clocks({ minutes: 0.1, increment: 1 }, [6, 6], () => now), { game } = begin([PERSON, PERSON], { clocks });
  assert.equal(clocks.running, null);
  game.play("C3");
  game.play("D3");
  assert.deepEqual([clocks.running, clocks.left(1)], [1, 7]);
  now += 10;
  game.checkTime();
  assert.deepEqual(game.forfeit, [1, "ran out of time"]);
  assert.ok(!game.mayPlay && clocks.running === null);
  assert.throws(() => game.takeBack(), /time is over: analyse, or start a new game/);
  game.setMode(ANALYSE);
  game.go(game.tip.parent.number);
  game.play("E5");
  game.takeBack();
  assert.throws(() => game.setMode(PLAY), /time is over/);
  game.go(game.tip.number);
  game.setMode(PLAY);
  assert.deepEqual(game.forfeit, [1, "ran out of time"]);
});

test("variations that are taken back leave the game as it ended", () => {
  const { game } = begin([PERSON, PERSON]);
  game.play("C3");
  game.play("D3");
  game.resign();
  game.setMode(ANALYSE);
  game.go(game.tip.parent.number);
  game.play("E5");
  game.takeBack();
  assert.deepEqual([game.forfeit, texts(game)], [[1, "resigned"], ["C3", "D3"]]);
  game.go(game.tip.number);
  game.takeBack();
  assert.deepEqual([game.forfeit, texts(game)], [null, ["C3"]]);
});

test("a tree holds so many positions", () => {
  const tree = new GameTree(RULES);
  tree.nodes = { size: MAX_NODES };
  assert.throws(() => tree.play(2549), /already holds 2000 positions/);
});

for (const [seats, marks, places, isInaccuracy] of [
  [BOTH, ["", "?", "??", "?!", "?"], [2, 3, 5], false], [YOU, ["", "?", "??", "?!", "?"], [5], false],
  [[MACHINE, MACHINE], ["", "?", "", "", ""], [2], false], [BOTH, ["", "?!", "", "", ""], [2], true], [YOU, ["", "??", "", "", ""], [], null],
]) {
  test(`a review of ${seats} goes from mistake to mistake: ${marks}`, async () => {
    const { game, engine } = begin(BOTH);
    game.seats = seats;
    game.asksMachine = false;
    game.setMode(ANALYSE);
    for (const move of ["C3", "D3", "E3", "F3", "C3->C4:up"]) game.play(move);
    game.setMode(PLAY);
    engine.reviewed = { marks, chances: Array(6).fill([0.5, 0.5]) };
    await game.askReview();
    assert.equal(viewOf(game, "g").mistakes.total, places.length);
    if (!places.length) assert.throws(() => goToNext(game), /found no mistake/);
    for (const place of [...places, ...places.slice(0, 1)]) {
      goToNext(game);
      const { open } = viewOf(game, "g").mistakes;
      assert.deepEqual([open.ply, open.isInaccuracy, game.tree.current.position.ply, game.mode], [place, isInaccuracy, place - 1, ANALYSE]);
    }
  });
}

test("a mistake is tried again until the move is good", async () => {
  const { game, engine } = begin(YOU, { mode: ANALYSE });
  for (const move of ["C3", "D3"]) game.play(move);
  engine.reviewed = { marks: ["?", ""], chances: [[0.8, 0.2], [0.42, 0.58], [0.5, 0.5]] };
  await game.askReview();
  goToNext(game);
  const look = () => viewOf(game, "g").mistakes.open;
  assert.deepEqual(look(), {
    place: 1, isInaccuracy: false, isYours: true, mark: "?", mover: 0, text: "C3", ply: 1, chances: [0.8, 0.42], tried: null,
  });
  const tried = [];
  for (const [move, chance] of [["E5", 0.5], ["E6", 0.45], ["E7", 0.78], ["A1", 0.1], ["C3", 0.42]]) {
    engine.chance = chance;
    game.play(move);
    await until(() => look().tried.chance !== null);
    tried.push([look().tried.chance, look().tried.verdict]);
    tryAgain(game);
    assert.equal(look().tried, null);
  }
  assert.deepEqual(tried, [[0.5, "better"], [0.45, "worse"], [0.78, "good"], [0.1, "best"], [0.42, "played"]]);
  assert.ok(engine.heard.every(([simulations]) => simulations === 256), "as deep as the review");
  game.go(2);
  assert.equal(look(), null, "elsewhere in the game");
});

const PUZZLE = {
  key: "one", difficulty: 1, variant: "wallzero-4stone", actions: [2548, 2590, 2554, 2596], solution: "B6->B5:W0",
  line: ["B6->B5:W0", "G1->G1:W2"], played: null, win_chance: { solution: 0.93, next_best: 0.4 },
};

test("wrong moves of a puzzle are noted, and nothing gives it away until it is asked for", async () => {
  const { machine, heard } = makeMachine({ puzzles: [PUZZLE] }), game = poseGame(PUZZLE, machine);
  game.open(() => {});
  for (const move of ["B6->B5:left", "B6->B4:left", "B6->B5:left"]) game.play(move);
  assert.deepEqual(viewOf(game, "g").puzzle.tried, ["B6->B4:left", "B6->B5:left"]);
  assert.ok(!("solution" in viewOf(game, "g").puzzle));
  assert.equal(texts(game).length, 4);
  assert.throws(() => game.play("B6->G1:left"), /two steps/);
  game.showEvaluation(true);
  for (const action of ["askHint", "takeBack", "resign"]) assert.throws(() => game[action](), /this is a puzzle/);
  assert.throws(() => game.setMode(ANALYSE), /this is a puzzle/);
  await assert.rejects(game.askReview(), /this is a puzzle/);
  assert.deepEqual(heard, []);
  const again = readCopy(JSON.parse(JSON.stringify(writeCopy(game))), machine);
  assert.ok(again.isPosed);
  again.play("B6->B5:up");
  const view = viewOf(again, "g").puzzle;
  assert.deepEqual([view.state, view.solution, view.chance], ["solved", "B6->B5:up", 0.93]);
  assert.deepEqual(texts(again).slice(4), ["B6->B5:up", "G1->G1:down"]);
  assert.equal(again.tree.current.text, "B6->B5:up");
  assert.throws(() => again.showSolution(), /no puzzle to solve/);
  game.showSolution();
  assert.equal(viewOf(game, "g").puzzle.state, "shown");
});
