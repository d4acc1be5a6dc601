// Games as copies, files, links and diagrams, and back.

import assert from "node:assert/strict";
import { test } from "node:test";

import { drawDiagram } from "../../../../train/ui/page/diagram.js";
import { readLink, writeLink } from "../../../../train/ui/page/link.js";
import { readGame } from "../../../../train/ui/page/reading.js";
import * as referee from "../../../../train/ui/page/referee.js";
import { loadGame, nameOfFile, readCopy, writeCopy, writeGame, writeMoves } from "../../../../train/ui/page/saving.js";
import { pathTo } from "../../../../train/ui/page/tree.js";
import { aboutRules } from "../../../../train/ui/page/view.js";
import { choiceText, describeRules } from "../../../../train/ui/page/words.js";
import { makeMachine } from "./fake_engine.mjs";

const { machine } = makeMachine(), RULES = referee.readRules("wallzero-4stone");
const MOVES = ["C3", "D3", "E3", "F3", "C3->C4:up"];
const texts = (game) => pathTo(game.tip).slice(1).map((node) => node.text);

function aGame() {
  const game = readCopy({ rules: "wallzero-4stone", seats: ["person", "expert"], clock: { minutes: 2, increment: 1 } }, machine);
  for (const move of MOVES) game.tip = game.tree.play(referee.read(game.tip.state, move));
  game.tree.current = game.tree.node(1);
  game.tree.play(referee.read(game.tree.current.state, "G7"));
  game.tree.current = game.tip;
  return game;
}

const json = (value) => JSON.parse(JSON.stringify(value));

test("a copy sets the game up again, with its lines, chances and marks", () => {
  const game = aGame();
  game.forfeit = [1, "resigned"];
  game.tree.promote(game.tree.node(6));
  Object.assign(game.tree.node(2), { chances: [0.25, 0.75], simulations: 64, mark: "?" });
  const copy = json(writeCopy(game)), again = readCopy(copy, machine);
  assert.deepEqual(json(writeCopy(again)), copy);
  assert.deepEqual(again.tree.node(1).children.map((node) => node.text), ["G7", "D3"]);
  assert.deepEqual([again.tree.node(2).chances, again.clocks.left(0)], [[0.25, 0.75], 120]);
});

for (const change of [{ plies: [[5, 1]] }, { tip: -1 }, { seats: [] }, { plies: [[0, 9 ** 9]] }, { rules: "chess" }, { seats: ["person", "god"] }]) {
  test(`a copy with ${JSON.stringify(change)} is refused`, () => {
    assert.throws(() => readCopy({ ...json(writeCopy(aGame())), ...change }, machine), /\w/);
  });
}

test("every rule set has a player's words of its own", () => {
  const titles = Object.values(referee.PRESETS).map((rules) => aboutRules(rules));
  assert.equal(new Set(titles.map((about) => choiceText(about))).size, titles.length);
  for (const { name, title, text } of titles) assert.ok(title !== name && !text.includes(name), name);
  assert.equal(titles[0].about, "7×7 cells, 4 stones each, 2 of them set at the start. A tie goes to the largest single region.");
  assert.match(describeRules(referee.PRESETS["playwallgo-3p"]), /20 walls each. A tie is a draw/);
  assert.match(describeRules(referee.PRESETS.hkoi), /else the last to move loses/);
});

test("records hold the game, its variations and its players", () => {
  const { name, text } = writeGame(aGame()), fields = JSON.parse(text);
  assert.match(name, /^person-vs-machine-expert-\d{4}-\d\d-\d\d\.jsonl$/);
  assert.deepEqual([fields.variant, fields.players, fields.result], ["wallzero-4stone", ["person", "machine (expert)"], null]);
  const again = loadGame(text, machine, RULES);
  assert.deepEqual([again.mode, texts(again), again.tree.size], ["analyse", MOVES, 7]);
  const named = loadGame(JSON.stringify({ ...fields, players: ["Ada <b>", "x".repeat(300)] }), machine, RULES);
  assert.deepEqual(JSON.parse(writeGame(named).text).players, ["Ada <b>", "x".repeat(200)]);
  named.setMode("play");
  assert.equal(named.tree.names, null);
});

test("games from a position are saved as such, and can be sent", () => {
  const start = drawDiagram(aGame().tip.position, "wallzero-4stone");
  const game = readCopy({ position: start, seats: ["person", "person"] }, machine);
  const inOrder = (stones) => stones.map((cells) => cells.toSorted((one, other) => one - other));
  assert.deepEqual(game.tip.position.stones, inOrder(aGame().tip.position.stones), "a diagram has no order of stones");
  assert.deepEqual([game.tip.position.walls, game.tip.position.player], [aGame().tip.position.walls, aGame().tip.position.player]);
  for (const key of ["legal", "owner", "wallsLeft", "ply"]) assert.deepEqual(game.tip.position[key], aGame().tip.position[key], key);
  assert.throws(() => referee.readDiagram(start.replace("| .   B", "| B   B")), /Blue has 5 stones; these rules give each player 4/);
  assert.throws(() => referee.readDiagram(start.replace("| .   B", "| .   .")), /Red has 4 stones where the placement order gives 3/);
  const played = aGame();
  played.setMode("analyse");
  game.play("D3->D3:up");
  played.play("D3->D3:up");
  assert.deepEqual(game.tip.position.legal, played.tree.current.position.legal, "walls close both of their cells");
  const { name, text } = writeGame(game), again = loadGame(text, machine, RULES);
  assert.match(name, /^person-vs-person-.*\.json$/);
  assert.deepEqual([again.tree.size, texts(again)], [2, ["D3->D3:up"]]);
  assert.equal(writeMoves(game), text);
  const { position, moves } = readLink(writeLink(game));
  assert.deepEqual([position, moves], [start, ["D3->D3:up"]]);
});

test("a file has the players' names and the date, and moves are copied with them", () => {
  const game = aGame();
  game.tree.names = ["../Ada, Blue <é>", "x".repeat(99)];
  assert.equal(nameOfFile(game, "svg", new Date(2026, 1, 3)), `Ada-Blue-é-vs-${"x".repeat(40)}-2026-02-03.svg`);
  game.tree.names = ["Ada, Blue too", "Bob"];
  const text = writeMoves(game);
  assert.equal(text, "# wallzero-4stone, Red Ada Blue too, Blue Bob\n1. R C3\n2. B D3\n3. B E3\n4. R F3\n5. R C3->C4:up\n");
  const again = loadGame(text, machine, referee.PRESETS.hkoi);
  assert.deepEqual([again.tree.rules, again.tree.names, texts(again)], [RULES, ["Ada Blue too", "Bob"], MOVES]);
});

test("a link holds rules and moves without signs that addresses write out", () => {
  const link = writeLink(aGame());
  assert.equal(link, "rules=wallzero-4stone&moves=C3+D3+E3+F3+C3-C4%3Aup");
  assert.deepEqual(readLink(link), { rules: "wallzero-4stone", moves: MOVES });
  assert.equal(readLink("AAAAAAAAAAAA"), null);
  const custom = referee.readRules({ size: 3, stones: 1, order: [0, 1] }), game = readCopy({ rules: custom }, machine);
  assert.deepEqual(readLink(writeLink(game)).rules, custom);
});

const CODE = "00100111_";

test("moves, records in a larger grid and HKOI codes are read", () => {
  const load = (text) => loadGame(text, machine, RULES);
  const moves = load("\ufeff# hkoi, Red Ada, Blue Bob\r\n 1. R C3  2. B D4, B e5 # what\n\n    A   B   C\n  +---+");
  assert.deepEqual([moves.tree.rules, moves.tree.names, texts(moves)], [referee.PRESETS.hkoi, ["Ada", "Bob"], ["C3", "D4", "E5"]]);
  assert.deepEqual(texts(load("C3 D3")), ["C3", "D3"]);
  assert.deepEqual(load("C3").tree.rules, RULES);
  const grid = { variant: "custom", rules: { size: 3, stones: 1, order: [0, 1] }, grid: 7, actions: [2548, 2564, 9, 832] };
  assert.deepEqual(texts(load(JSON.stringify(grid))), ["A1", "C3", "A1->A2:right", "C3->C3:up"]);
});

for (const [text, reason] of [["", /empty/], ["{}", /variant/], ["{", /JSON/], ['{"position": "x"}', /./], ["# hkoi\nC3 C3", /ply 2.*C3/],
  ["nonsense", /ply 1/], ["C3 R", /ply 2: the move after 'R' is missing/], [CODE, /8 digits stand before/]]) {
  test(`${JSON.stringify(text)} is no game`, () => { assert.throws(() => loadGame(text, machine, RULES), reason); });
}

test("the contest's own example of a code is read", async () => {
  const { readFileSync } = await import("node:fs");
  const code = readFileSync(new URL("../../../data/hkoi-example.txt", import.meta.url), "utf8");
  const { rules, actions } = readGame(code, RULES);
  assert.equal(rules, referee.PRESETS.hkoi);
  assert.ok(actions.length > 8);
});

const HEAD = "rules: wallzero-4stone\nturn: R\n", EMPTY = drawDiagram(aGame().tree.root.position, "wallzero-4stone");

for (const [text, reason] of [
  [HEAD, /the board is missing/], [`rules: chess\n${EMPTY.split("\n").slice(1).join("\n")}`, /chess/],
  [`grid: 3\n${EMPTY.replace("wallzero-4stone", "hkoi")}`, /./], [EMPTY.replace("turn: R", "turn: B"), /Red places the next stone/],
  [EMPTY.replace(" .  ", " R  "), /Blue places the next stone/], [EMPTY.replace("turn: R", "turn: R\nturn: R"), /twice/],
  [EMPTY.replace(" .  ", " X  "), /not '.' or a stone/], [EMPTY.replace("turn: R", "turn: R\nover: yes"), /over/],
  [EMPTY.replace("turn: R", "turn: R\nwalls left: 3 3"), /no limit/], [EMPTY.replace("+---+", "    +"), /border|columns/],
]) {
  test(`the diagram ${JSON.stringify(text.slice(0, 60))} is refused`, () => { assert.throws(() => referee.readDiagram(text), reason); });
}
