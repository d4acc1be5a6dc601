// The rules as the page asks them: states of a game, their plies in notation, and what a board draws of them.

import { isDiagram, parseDiagram, stonesOf } from "./diagram.js";
import { SIDE_WORDS, MOVE_PATHS, NOT_PLACED, NO_LIMIT, PLAYS_PER_STONE } from "./engine/rules.js";
import * as engine from "./engine/rules.js";
import { COLOURS, HORIZONTAL, LETTERS, VERTICAL, cellName, neighbour } from "./geometry.js";

export { PRESETS, nameOf, readRules, sameRules } from "./engine/rules.js";

// The name of a preset, or the fields of the rules.
export function writeRules(rules) {
  const name = engine.nameOf(rules);
  return name === "custom" ? rules : name;
}

// The state before the first ply: { variant, position } of the engine.
export function begin(rules) {
  const variant = engine.makeVariant(rules);
  return { variant, position: engine.initialPosition(variant) };
}

// The state after a public action; throws the rule that it breaks.
export function play(state, action) {
  const { variant, position } = state;
  if (!engine.isLegal(variant, position, action)) throw new Error(illegality(state, action));
  return { variant, position: engine.play(variant, position, action) };
}

// The public action of a move in any notation, or of a public action itself; legal or not.
export function read({ variant, position }, move) {
  if (typeof move === "number") return move;
  const led = /^\s*([a-z])\s+\S/i.exec(move), player = led ? LETTERS.indexOf(led[1].toUpperCase()) : -1;
  const action = engine.parseAction(move, variant.grid);
  if (player >= 0 && player !== position.player && !position.over) {
    throw new Error(`move: ${COLOURS[position.player]} is to move, not ${COLOURS[player]}`);
  }
  return action;
}

// A public action in words, such as B6->B5:up.
export function write(action, size) { return engine.formatAction(action, size, SIDE_WORDS); }

export function inWords(move, size) { return write(engine.parseAction(move, size), size); }

// Origin, target and side of a public action; origin and side are null for a placement.
export function parts(action, size) {
  const first = size * size * PLAYS_PER_STONE;
  if (action >= first) return { origin: null, target: action - first, side: null };
  const origin = Math.floor(action / PLAYS_PER_STONE), [down, across] = engine.MOVE_OFFSETS[(action % PLAYS_PER_STONE) >> 2];
  return { origin, target: origin + down * size + across, side: action & 3 };
}

// The position in plain data, with the plies that are allowed in it.
export function look({ variant, position }) {
  const { size, players } = variant, found = engine.analyse(variant, position), cells = [...Array(size * size).keys()];
  const wall = (orientation, builders) => cells.filter((cell) => builders[cell] >= 0).map((cell) => [orientation, cell, builders[cell]]);
  return {
    size,
    ply: position.ply,
    player: position.player,
    stones: [...Array(players).keys()].map((player) =>
      [...position.stones.subarray(player * variant.stones, (player + 1) * variant.stones)]),
    walls: [...wall(HORIZONTAL, position.horizontal), ...wall(VERTICAL, position.vertical)],
    owner: [...found.owners],
    territory: [...found.territory.subarray(0, players)],
    inSetup: engine.inSetup(variant, position),
    isOver: position.over,
    wallsLeft: variant.walls === NO_LIMIT ? null : [...position.wallsLeft],
    payoff: engine.result(variant, position)?.rewards ?? null,
    last: lastPly(variant, position),
    legal: legal(variant, position),
  };
}

function lastPly(variant, position) {
  const [stone, origin, side] = position.trail;
  if (stone < 0) return null;
  const target = position.stones[stone], player = Math.floor(stone / variant.stones);
  return side < 0 ? { player, origin: null, target, side: null } : { player, origin, target, side };
}

// The cells to place on; and for each stone's cell, the cells it can end on with the sides that are free there.
function legal(variant, position) {
  const cells = [], plays = {};
  for (const action of engine.legalActions(variant, position)) {
    const { origin, target, side } = parts(action, variant.grid);
    if (origin === null) cells.push(target);
    else ((plays[origin] ??= {})[target] ??= []).push(side);
  }
  return { cells, plays };
}

// Rules and state of a diagram from which a game can go on.
export function readDiagram(text) {
  const drawn = parseDiagram(text);
  const rules = engine.readRules(drawn.rules.startsWith("{") ? readJson(drawn.rules) : drawn.rules);
  if (drawn.size !== rules.size) throw new Error(`the board has ${drawn.size} columns, its rules ${rules.size}`);
  const stones = stonesOf(drawn, rules), state = begin(rules), { variant, position } = state;
  if (drawn.isOver) throw new Error("the game of this position is over");
  position.stones.fill(NOT_PLACED);
  position.occupants.fill(-1);
  stones.forEach((cells, player) => cells.forEach((cell, index) => {
    position.stones[player * rules.stones + index] = cell;
    position.occupants[cell] = player * rules.stones + index;
  }));
  const built = Array(rules.players).fill(0);
  for (const [orientation, cell, player] of drawn.walls) {
    built[player] += 1;
    const side = orientation === HORIZONTAL ? 2 : 1, other = neighbour(cell, side, rules.size);
    (orientation === HORIZONTAL ? position.horizontal : position.vertical)[cell] = player;
    position.exits[cell] &= ~(1 << side);
    position.exits[other] &= ~(1 << ((side + 2) % 4));
  }
  position.wallsLeft.set(wallsLeft(drawn, rules, built));
  const placed = drawn.stones.length - rules.start.length;
  position.ply = placed + drawn.walls.length;
  position.player = turnOf(drawn, rules, placed);
  if (!engine.inSetup(variant, position)) {
    if (!engine.legalActions(variant, position).length) throw new Error(`turn: ${COLOURS[position.player]} has no legal turn`);
    if (engine.analyse(variant, position).separated) throw new Error("no region holds stones of two players, so the game is over");
  }
  return { rules, state };
}

function readJson(text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`rules are not JSON: ${error.message}`);
  }
}

function turnOf({ turn }, rules, placed) {
  const scheduled = rules.order[placed];
  if (turn === undefined && scheduled === undefined) throw new Error("the line 'turn: R' is missing: the player to move");
  if (turn === undefined) return scheduled;
  const player = turn.length === 1 ? LETTERS.indexOf(turn) : -1;
  if (player < 0 || player >= rules.players) throw new Error(`turn '${turn}' is not one of ${[...LETTERS.slice(0, rules.players)].join(", ")}`);
  if (scheduled !== undefined && player !== scheduled) throw new Error(`turn: ${COLOURS[scheduled]} places the next stone`);
  return player;
}

function wallsLeft({ wallsLeft: told }, rules, built) {
  if (rules.walls === null && told !== undefined) throw new Error("walls left: these rules set no limit to walls");
  if (rules.walls === null) return built.map(() => NO_LIMIT);
  if (told === undefined) {
    if (built.some((count) => count > rules.walls)) throw new Error(`the board shows more than the ${rules.walls} walls that a player may build`);
    return built.map((count) => rules.walls - count);
  }
  const counts = told.replaceAll(",", " ").split(/\s+/).map(Number);
  if (counts.length !== rules.players || counts.some((count) => !Number.isInteger(count) || count < 0 || count > rules.walls)) {
    throw new Error(`walls left '${told}' is not ${rules.players} numbers from 0 to ${rules.walls}`);
  }
  return counts;
}

// Why a click on a cell is refused, in words: no stone can be placed there, none of the player's to pick stands there
// (origin null), or the stone on origin cannot go there.
export function whyNot(state, origin, target) {
  const { variant, position } = state;
  const cell = cellName(target, variant.size);
  if (engine.inSetup(variant, position)) return standsOn(state, target);
  if (origin === null && !ownCells(state).includes(target)) {
    return `${standsOn(state, target) ?? `${cell} is empty`}: pick one of ${COLOURS[position.player]}'s stones`;
  }
  return brokenMove(state, origin ?? target, target) ?? `no side of ${cell} is free for a wall`;
}

// The rule that an action breaks, in words; the engine decides whether it is legal.
function illegality(state, action) {
  const { variant } = state, { size } = variant;
  let text;
  try {
    text = write(action, size);
  } catch (error) {
    return error.message;
  }
  return `${text}: ${brokenRule(state, action) ?? "the referee does not allow it"}`;
}

function brokenRule({ variant, position }, action) {
  const { size } = variant, { origin, target, side } = parts(action, size), inSetup = engine.inSetup(variant, position);
  if (position.over) return "the game is over";
  if (inSetup !== (origin === null)) {
    return inSetup ? "a stone has to be placed; write C3" : "every stone is placed; write B6->B5:up";
  }
  if (origin === null) return standsOn({ variant, position }, target);
  const colour = COLOURS[position.player];
  const own = ownCells({ variant, position });
  if (!own.includes(origin)) {
    const cells = own.map((cell) => cellName(cell, size)).sort().join(", ");
    return `${colour} has no stone on ${cellName(origin, size)}; its stones: ${cells}`;
  }
  const wrong = brokenMove({ variant, position }, origin, target);
  if (wrong) return wrong;
  const free = [0, 1, 2, 3].filter((each) => (position.exits[target] >> each) & 1);
  if (free.includes(side)) return null;
  const what = neighbour(target, side, size) === null ? "the border" : "a wall";
  const allowed = free.length ? `; free there: ${free.map((each) => SIDE_WORDS[each]).join(", ")}` : "";
  return `the ${["upper", "right", "lower", "left"][side]} side of ${cellName(target, size)} is ${what}${allowed}`;
}

// The cells of the stones of the player to move.
function ownCells({ variant, position }) {
  const first = position.player * variant.stones;
  return [...position.stones.subarray(first, first + variant.stones)];
}

// The stone on a cell, in words; null for none.
function standsOn({ variant, position }, cell) {
  const stone = position.occupants[cell];
  return stone < 0 ? null : `${COLOURS[Math.floor(stone / variant.stones)]} already stands on ${cellName(cell, variant.size)}`;
}

// The rule that a stone's way breaks, whatever wall it builds; null for none.
function brokenMove(state, origin, target) {
  const { variant, position } = state;
  const { size } = variant;
  const from = cellName(origin, size);
  const to = cellName(target, size);
  if (position.wallsLeft[position.player] === 0) return `${COLOURS[position.player]} has no walls left`;
  if (origin === target) {
    const isShut = variant.rules.stay_needs_room && !engine.freeExits(variant, position, origin);
    return isShut ? `the stone on ${from} has no room to step out and back` : null;
  }
  const down = Math.floor(target / size) - Math.floor(origin / size);
  const across = (target % size) - (origin % size);
  const move = engine.MOVE_OFFSETS.findIndex((offset) => offset[0] === down && offset[1] === across);
  if (move < 0) return `${to} is more than two steps from ${from}`;
  const taken = standsOn(state, target);
  if (taken) return taken;
  const isReached = MOVE_PATHS[move].some((path) => isOpen(variant, position, origin, path));
  return isReached ? null : `walls or stones block the way to ${to}`;
}

function isOpen(variant, position, origin, path) {
  let cell = origin;
  return path.every((side) => {
    const isFree = (engine.freeExits(variant, position, cell) >> side) & 1;
    if (isFree) cell = neighbour(cell, side, variant.size);
    return isFree;
  });
}

export { isDiagram };
