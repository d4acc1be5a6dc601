// Plays the AI of github.com/schaoss/wall-go as an `external:` player (docs/results/outside.md):
//
//     node wall_go.mjs WORKER LEVEL [SEED]
//
// WORKER is src/agents/AIWorker.ts of a checkout, bundled into one module. LEVEL is practice, easy,
// middle or hard. Every answer is logged with its processor time.

import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const SIZE = 7;
const RULES = "wallzero-4stone";
const PLACERS = "RBBR"; // then Red and Blue in turn
const START = { B6: "R", F2: "R", B2: "B", F6: "B" };
const SIDES = ["bottom", "right", "top", "left"]; // W0 to W3: its rows count from our last
const LEVELS = {
  practice: { aiType: "random" },
  easy: { aiType: "minimax", config: { depth: 2 } },
  middle: { aiType: "minimax", config: { depth: 4 } },
  hard: { aiType: "minimax", config: { depth: 6 } },
};
const RESPONSES = {
  start_game_session: "game_session_started",
  evaluate_position: "evaluate_response",
  apply_move: "move_applied",
  end_game_session: "game_session_ended",
};

const seconds = () => Object.values(process.cpuUsage()).reduce((a, b) => a + b) / 1e6;
const position = (cell) => ({ x: cell.charCodeAt(0) - 65, y: SIZE - Number(cell[1]) });
const cellName = ({ x, y }) => String.fromCharCode(65 + x) + (SIZE - y);
const mover = (ply) => PLACERS[ply] ?? "RB"[ply % 2];

/** The snapshot that the worker expects, after moves in our notation. */
function snapshot(moves) {
  const empty = () => ({ stone: null, wallTop: null, wallLeft: null });
  const board = Array.from({ length: SIZE }, () => Array.from({ length: SIZE }, empty));
  const at = ({ x, y }) => board[y][x];
  for (const [cell, player] of Object.entries(START)) at(position(cell)).stone = player;
  for (const [ply, move] of moves.entries()) {
    const [, from, to, side] = /^(?:(..)->)?(..)(?::W(.))?$/.exec(move);
    const target = position(to);
    if (from) at(position(from)).stone = null;
    at(target).stone = mover(ply);
    if (side) addWall(at, target, SIDES[side], mover(ply));
  }
  return {
    board,
    turn: mover(moves.length),
    legal: [],
    stepsTaken: 0,
    phase: moves.length < PLACERS.length ? "placing" : "playing",
    players: ["R", "B"],
    stonesLimit: 4,
    stonesPlaced: { R: 4, B: 4 }, // the worker does not read it
  };
}

function addWall(at, { x, y }, side, player) {
  if (side === "top" || side === "bottom") at({ x, y: y + (side === "bottom") }).wallTop = player;
  else at({ x: x + (side === "right"), y }).wallLeft = player;
}

/** Our notation of a worker's action. */
function moveText(action) {
  const to = cellName(action.pos);
  if (action.type === "place") return to;
  const side = SIDES.indexOf(action.dir ?? action.followUp?.dir);
  return `${cellName(action.from ?? action.pos)}->${to}:W${side}`;
}

/** Makes Math.random a function of a text (FNV-1a, then mulberry32). */
function seedRandom(text) {
  let state = 0x811c9dc5;
  for (const letter of text) state = Math.imul(state ^ letter.charCodeAt(0), 0x01000193);
  Math.random = () => {
    state = (state + 0x6d2b79f5) | 0;
    let bits = Math.imul(state ^ (state >>> 15), state | 1);
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Asks the worker, as its page does; throws its error. */
async function choose(moves) {
  const gameState = snapshot(moves);
  const answer = new Promise((answered) => (worker.postMessage = answered));
  worker.onmessage({ data: { ...LEVELS[level], gameState } });
  const { action, error, info } = await answer;
  if (!action) throw new Error(error ?? info ?? "no action");
  return moveText(action);
}

const games = new Map(); // session to moves

async function answer(request) {
  const name = request.bgsId;
  if (request.type === "start_game_session") {
    if (request.rules !== RULES) throw new Error(`plays ${RULES} alone`);
    games.set(name, [...(request.moves ?? [])]);
  }
  const moves = games.get(name);
  if (request.type === "apply_move") moves.push(request.move);
  if (request.type === "end_game_session") games.delete(name);
  if (request.type !== "evaluate_position") return { ply: moves.length };
  seedRandom([seed, ...moves].join(" "));
  const began = seconds();
  const bestMove = await choose(moves);
  const took = (seconds() - began).toFixed(3);
  console.error(`${name} ply ${moves.length + 1}: ${bestMove} ${took} s`);
  return { ply: moves.length, bestMove, evaluation: 0 };
}

const [path, level, seed = "0"] = process.argv.slice(2);
if (!path || !LEVELS[level]) {
  console.error(`usage: node wall_go.mjs WORKER ${Object.keys(LEVELS).join("|")} [SEED]`);
  process.exit(2);
}
// Its limit of 3 s a move counts processor time, so a busy machine does not weaken it.
performance.now = () => 1000 * seconds();
seedRandom(seed);
const worker = (globalThis.self = {});
await import(pathToFileURL(resolve(path)).href);
for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  const response = { type: RESPONSES[request.type], bgsId: request.bgsId };
  try {
    Object.assign(response, await answer(request), { success: true, error: "" });
  } catch (error) {
    Object.assign(response, { success: false, error: error.message });
  }
  console.log(JSON.stringify(response));
}
