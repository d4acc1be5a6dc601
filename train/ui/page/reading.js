// Games from text: a record, moves that may name their rules, an HKOI code, or a diagram.

import * as referee from "./referee.js";
import { COLOURS, LETTERS, cellName } from "./geometry.js";
import { MOVE_OFFSETS, SIDE_OFFSETS, PLAYS_PER_STONE } from "./engine/rules.js";

const PICTURE = /^[ \t]*A +B +C[ A-Z]*$/m;
const CODE = /^[0-9a-v\s]*_[0-9a-v\s]*$/i;

// What a text holds: { position } of a diagram, or { rules, actions, names, plies }: plies are those of a tree of
// variations, as copies have them.
export function readGame(text, defaultRules) {
  const clean = text.replace(/^\ufeff/, "").replace(/\r\n?/g, "\n");
  if (!clean.trim()) throw new Error("the game: is empty");
  if (referee.isDiagram(clean)) return { position: clean };
  if (clean.trimStart().startsWith("{")) return readRecord(clean.trim().split("\n")[0]);
  if (CODE.test(clean)) return readCode(clean);
  return readMoves(clean, defaultRules);
}

function readRecord(line) {
  let fields;
  try {
    fields = JSON.parse(line);
  } catch (error) {
    throw new Error(`the game: not JSON: ${error.message}`);
  }
  if ("position" in fields) return { position: fields.position, plies: fields.plies, tip: fields.tip, names: fields.names };
  for (const key of ["variant", "actions"]) {
    if (!(key in fields)) throw new Error(`the game: key '${key}' is missing`);
  }
  const rules = referee.readRules(fields.rules ?? fields.variant), grid = fields.grid ?? rules.size;
  const actions = played(rules, fields.actions.map((action) => inOwnGrid(action, grid, rules.size)));
  return { rules, actions, names: fields.players, plies: fields.tree };
}

// A public action of a board in a larger grid, as one of the board's own.
function inOwnGrid(action, grid, size) {
  if (grid === size) return action;
  const first = grid * grid * PLAYS_PER_STONE, cell = action >= first ? action - first : Math.floor(action / PLAYS_PER_STONE);
  const own = Math.floor(cell / grid) * size + (cell % grid);
  return action >= first ? size * size * PLAYS_PER_STONE + own : own * PLAYS_PER_STONE + (action % PLAYS_PER_STONE);
}

// The public actions of plies, in notation or public actions themselves, each played by the rules.
function played(rules, plies) {
  let state = referee.begin(rules);
  return plies.map((ply, place) => {
    try {
      const action = referee.read(state, ply);
      state = referee.play(state, action);
      return action;
    } catch (error) {
      throw new Error(`the game: ply ${place + 1}: ${error.message}`);
    }
  });
}

function readMoves(text, defaultRules) {
  const comment = /^\s*#[ \t]*(.*)/.exec(text)?.[1] ?? "", rules = rulesOf(comment) ?? defaultRules;
  const picture = PICTURE.exec(text), lines = (picture ? text.slice(0, picture.index) : text).split("\n");
  const words = lines.map((line) => line.split("#")[0]).join(" ").replaceAll(",", " ").split(/\s+/).filter(Boolean);
  const moves = [];
  let letter = "";
  for (const word of words.filter((each) => !/^\d+\.$/.test(each))) {
    if (!letter && /^[a-z]$/i.test(word)) {
      letter = word;
      continue;
    }
    moves.push(`${letter} ${word}`.trim());
    letter = "";
  }
  if (letter) throw new Error(`the game: ply ${moves.length + 1}: the move after '${letter}' is missing`);
  return { rules, actions: played(rules, moves), names: namesOf(comment, rules.players) };
}

function rulesOf(comment) {
  if (!comment.startsWith("{")) {
    const name = comment.split(/[\s,]/)[0];
    return Object.hasOwn(referee.PRESETS, name) ? referee.readRules(name) : null;
  }
  const end = comment.lastIndexOf("}");
  try {
    return referee.readRules(JSON.parse(comment.slice(0, end + 1)));
  } catch (error) {
    throw new Error(`the game: line 1: ${error.message}`);
  }
}

// The players' names of the first comment: rules, then each colour with a name.
function namesOf(comment, players) {
  const names = [];
  let rest = comment;
  for (const colour of COLOURS.slice(0, players).reverse()) {
    const at = rest.lastIndexOf(`, ${colour} `);
    if (at < 0) return null;
    names.unshift(rest.slice(at + colour.length + 3).trim());
    rest = rest.slice(0, at);
  }
  return rest ? names : null;
}

// The replay code of the HKOI contest, as wallgo_jax.formats.hkoi_code describes it.
function readCode(text) {
  const SIZE = 7, SIDES = [0, 2, 3, 1], digits = "0123456789abcdefghijklmnopqrstuv";
  const [placements, moves] = text.replace(/\s/g, "").toLowerCase().split("_"), cells = new Map();
  if (placements.length !== 32) throw new Error(`code: ${placements.length} digits stand before '_', not 32: eight placements of four`);
  if (moves.length % 3) throw new Error(`code: the last move has ${moves.length % 3} digits, not 3`);
  const plies = placements.match(/.{4}/g).map((four, place) => {
    const [row, column, player, piece] = [...four].map(Number);
    if (!(row < SIZE && column < SIZE && (player === 1 || player === 2) && piece < 4)) {
      throw new Error(`code: placement ${place + 1}: '${four}' is not row, column, player and piece`);
    }
    cells.set(`${player - 1},${piece}`, row * SIZE + column);
    return `${LETTERS[player - 1]} ${cellName(row * SIZE + column, SIZE)}`;
  });
  for (const [place, three] of (moves.match(/.{3}/g) ?? []).entries()) {
    const [a, b, c] = [...three].map((digit) => digits.indexOf(digit)), code = a + 32 * b + 1024 * c;
    const player = code >> 12, key = `${player},${(code >> 9) & 7}`, cell = cells.get(key);
    const steps = [(code >> 6) & 7, (code >> 3) & 7].filter(Boolean).map((step) => SIDE_OFFSETS[SIDES[step - 1]]);
    const wall = SIDES[(code & 7) - 1];
    if (Math.min(a, b, c) < 0 || cell === undefined || wall === undefined || steps.includes(undefined)) {
      throw new Error(`code: move ${place + 1}: '${three}' is not a move`);
    }
    const [down, across] = [0, 1].map((axis) => steps.reduce((sum, step) => sum + step[axis], 0));
    const move = MOVE_OFFSETS.findIndex((offset) => offset[0] === down && offset[1] === across);
    cells.set(key, cell + down * SIZE + across);
    plies.push(`${LETTERS[player]} ${referee.write(cell * PLAYS_PER_STONE + move * 4 + wall, SIZE)}`);
  }
  const rules = referee.readRules("hkoi");
  return { rules, actions: played(rules, plies), names: null };
}
