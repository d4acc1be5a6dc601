// Games as plain data and as files: copies that a browser keeps, records with their variations, positions as diagrams.

import { Clocks } from "./clocks.js";
import { ANALYSE, Game, OPEN, PERSON, PLAY } from "./game.js";
import { COLOURS, LETTERS } from "./geometry.js";
import { readGame } from "./reading.js";
import * as referee from "./referee.js";
import { GameTree, MAX_NODES, pathTo } from "./tree.js";
import { namesOf } from "./view.js";

export const MAX_NAME = 200;  // characters that are kept of a player's name
const MAX_PART = 40;  // and of it in the name of a file

// A whole game as JSON. A position's place is its number among all, parents before their children.
export function writeCopy(game) {
  const { tree, clocks, task, review } = game, nodes = [...tree.nodes.values()], seats = [...game.seats.keys()];
  const places = new Map(nodes.map((node, place) => [node, place]));
  return {
    rules: referee.writeRules(tree.rules),
    position: tree.diagram,
    plies: nodes.slice(1).map((node) => [places.get(node.parent), node.action]),
    lines: nodes.map((node) => node.children.map((child) => places.get(child))),
    current: places.get(tree.current),
    tip: places.get(game.tip),
    mode: game.mode,
    seats: game.seats,
    names: tree.names,
    clock: clocks && clocks.settings,
    left: clocks && seats.map((player) => clocks.left(player)),
    forfeit: game.forfeit,
    evaluates: game.evaluates,
    puzzle: task && { key: task.puzzle.key, state: task.state, tried: task.tried },
    notes: nodes.flatMap((node, place) => (node.chances || node.mark ? [[place, node.chances, node.simulations, node.mark]] : [])),
    review: review && !review.isRunning ? { ...review, tip: places.get(tree.nodes.get(review.tip)) ?? null } : null,
  };
}

// Sets a game up from the fields of its copy; those that are left out are of a new game. Throws what is wrong with them.
export function readCopy(copy, machine) {
  const diagram = copy.position ?? null;
  const rules = diagram === null ? referee.readRules(copy.rules) : referee.readDiagram(diagram).rules;
  const tree = new GameTree(rules, diagram), nodes = [tree.root], { players } = rules;
  const at = (place) => {
    if (!nodes[place]) throw new Error(`plies, current or tip: ${place} is not the place of a position before it`);
    return nodes[place];
  };
  for (const [place, action] of (copy.plies ?? []).slice(0, MAX_NODES)) nodes.push(tree.add(at(place), action));
  for (const [place, children] of (copy.lines ?? []).entries()) {
    if (children.length > 1) at(place).children = children.map(at);
  }
  const { mode = PLAY, clock = null } = copy, rival = mode === ANALYSE ? PERSON : machine.choices.level;
  const seats = copy.seats ?? [PERSON, ...Array(players - 1).fill(rival)];
  for (const counted of [copy.names, copy.left, seats]) {
    if (counted && counted.length !== players) throw new Error(`names, left and seats: ${players} of each are needed, one a player`);
  }
  const unknown = seats.find((seat) => seat !== PERSON && !machine.level(seat));
  if (unknown !== undefined) throw new Error(`level '${unknown}' is not one of this page`);
  tree.names = copy.names?.map((name) => String(name).slice(0, MAX_NAME)) ?? null;
  const clocks = clock && new Clocks(clock, copy.left ?? Array(players).fill(60 * clock.minutes));
  tree.current = at(copy.tip ?? 0);
  const game = new Game({ tree, seats, machine, clocks, mode });
  tree.current = at(copy.current ?? 0);
  game.forfeit = copy.forfeit ?? null;
  game.evaluates = copy.evaluates ?? false;
  for (const [place, chances, simulations, mark] of copy.notes ?? []) Object.assign(at(place), { chances, simulations, mark });
  if (copy.review) game.review = { ...copy.review, tip: copy.review.tip === null ? null : at(copy.review.tip).number };
  return setPuzzle(game, copy.puzzle);
}

function setPuzzle(game, kept) {
  const puzzle = kept && game.machine.choices.puzzles.find(({ key }) => key === kept.key);
  if (!puzzle) return game;
  game.task = { puzzle, state: kept.state ?? OPEN, tried: kept.tried ?? [], mover: puzzleStart(puzzle).current.position.player };
  return game;
}

// Sets a puzzle, whose position is reached by the plies before it.
export function poseGame(puzzle, machine) {
  const tree = puzzleStart(puzzle);
  return new Game({ tree, seats: Array(tree.rules.players).fill(PERSON), machine, puzzle });
}

function puzzleStart({ variant, rules, actions }) {
  const tree = new GameTree(referee.readRules(rules ?? variant));
  for (const action of actions) tree.play(action);
  return tree;
}

// The name of a game's file: its players and the date.
export function nameOfFile(game, ending, date = new Date()) {
  const players = namesOf(game).map((name) => name.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, MAX_PART));
  const day = [date.getFullYear(), date.getMonth() + 1, date.getDate()].map((part) => String(part).padStart(2, "0"));
  return `${players.join("-vs-")}-${day.join("-")}.${ending}`;
}

// The game as text, for people first: rules, players and the moves to its end, as `python -m wallgo_jax show` writes and
// reads them; a game from a position as its file.
export function writeMoves(game) {
  const { tree, tip } = game;
  if (tree.diagram !== null) return writeGame(game).text;
  const rules = referee.writeRules(tree.rules);
  const about = typeof rules === "string" ? rules : JSON.stringify(rules);
  const part = new RegExp(`, (?=(?:${COLOURS.join("|")}) )`, "g");
  const names = namesOf(game).map((name, player) => `${COLOURS[player]} ${name.replace(/\s+/g, " ").replace(part, " ").trim()}`);
  const moves = pathTo(tip).slice(1).map((node, ply) => `${ply + 1}. ${LETTERS[node.mover]} ${node.text}`);
  return `# ${[about, ...names].join(", ")}\n${moves.join("\n")}\n`;
}

// The name and the text of a file: a record line of the line that leads to the end of the game, with the other lines under
// `tree`; JSON of the copy where the game starts from a position that no record can hold.
export function writeGame(game) {
  const { tree, tip } = game, copy = writeCopy(game);
  if (tree.diagram !== null) {
    const { rules, position, plies, tip: end, names } = copy;
    return { name: nameOfFile(game, "json"), text: JSON.stringify({ rules, position, plies, tip: end, names }) };
  }
  const path = pathTo(tip), variant = referee.nameOf(tree.rules), { payoff } = tip.position;
  const fields = {
    variant, ...(variant === "custom" ? { rules: tree.rules } : {}), actions: path.slice(1).map((node) => node.action),
    players: namesOf(game), result: payoff, env_version: game.machine.choices.version,
    ...(tree.size > path.length ? { tree: copy.plies } : {}),
  };
  return { name: nameOfFile(game, "jsonl"), text: `${JSON.stringify(fields)}\n` };
}

// Sets a game for analysis up from a text: a record, moves, an HKOI code, a diagram, or what `writeGame` wrote. Moves that
// name no rules are of these.
export function loadGame(text, machine, rules) {
  const { position = null, plies = [], tip = 0, names = null, actions = [], ...found } = readGame(text, rules);
  const copy = position === null ? { rules: found.rules, plies } : { position, plies, tip, current: tip };
  const game = readCopy({ ...copy, names, mode: ANALYSE }, machine);
  for (const action of actions) game.tip = game.tree.play(action);
  return game;
}
