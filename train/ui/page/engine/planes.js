// What a network sees of a position: the planes of wallgo_jax/planes.py, in their order, by cell and channel.
//
// API: channels(planes, players, hasPlayable), makeObserver(variant, table).

import { NOBODY, NO_LIMIT, analyse, copyPosition, freeExits, initialPosition, takeBack } from "./rules.js";

const HISTORY_LENGTH = 4;
const DISTANCE_TURNS = [2, 3, 4];
const LONGER_TURNS = [5, 6, 7];
const NEARER_TURNS = 7;
const WALLS_LEFT_STEPS = [0, 2, 5, 10];
const FAR = 127;

/**
 * The channels of a plane set, such as `BTRD`, in order.
 * @param {string} planes
 * @param {number} players
 * @param {boolean} hasPlayable
 * @returns {{kind: string, player: number, age: number, turns: number}[]} player NOBODY where it is of no one
 */
export function channels(planes, players, hasPlayable) {
  const table = [];
  const add = (kind, { age = 0, turns = 0, shared = false } = {}) => {
    for (let player = 0; player < (shared ? 1 : players); player++) table.push({ kind, player: shared ? NOBODY : player, age, turns });
  };
  const board = (age) => ["stone", "horizontal", "vertical"].forEach((kind) => add(kind, { age }));
  const territory = (age) => {
    add("territory", { age });
    add("neutral", { age, shared: true });
  };
  const distances = (kind, turns) => turns.forEach((each) => add(kind, { turns: each }));
  board(0);
  add("turn");
  if (planes.includes("T")) territory(0);
  if (planes.includes("R")) add("reach");
  if (planes.includes("D")) {
    distances("within", DISTANCE_TURNS);
    add("nearer");
  }
  if (planes.includes("L")) distances("within", LONGER_TURNS);
  if (planes.includes("W")) {
    distances("walk", DISTANCE_TURNS);
    add("walk_nearer");
  }
  for (let age = 1; planes.includes("H") && age <= HISTORY_LENGTH; age++) {
    board(age);
    territory(age);
  }
  if (planes.includes("V")) {
    add("stay_needs_room", { shared: true });
    add("limited_walls", { shared: true });
    WALLS_LEFT_STEPS.forEach((step) => add("walls_left_over", { turns: step }));
    add("tie_region", { shared: true });
    add("tie_mover_loses", { shared: true });
  }
  if (hasPlayable) add("playable", { shared: true });
  return table;
}

/**
 * A function (position, first, into) that writes the planes of a position as 0 and 1, `into[cell * channels + channel]`.
 * `first` is the player that the planes show first: 0, or the player to move.
 * @param {import("./rules.js").Variant} variant of a board that fills its grid
 * @param {ReturnType<typeof channels>} table
 */
export function makeObserver(variant, table) {
  const { cells, players, rules } = variant;
  const kinds = new Set(table.map((channel) => channel.kind));
  const needsFree = ["reach", "within", "nearer"].some((kind) => kinds.has(kind));
  const needsWalks = ["walk", "walk_nearer"].some((kind) => kinds.has(kind));
  const make = () => Array.from({ length: players }, () => new Int8Array(cells));
  const free = make(), walks = make();
  const frames = Array.from({ length: HISTORY_LENGTH + 1 }, () => ({ position: initialPosition(variant), owners: new Int8Array(cells), exists: true }));
  const oldest = Math.max(...table.map((channel) => channel.age));

  function readFrames(position) {
    frames.slice(0, oldest + 1).forEach((frame, age) => {
      frame.exists = age === 0 || (frames[age - 1].exists && frames[age - 1].position.trail[0] >= 0);
      if (!frame.exists) return;
      copyPosition(frame.position, age ? frames[age - 1].position : position);
      if (age) takeBack(variant, frame.position);
      if (kinds.has("territory")) frame.owners.set(analyse(variant, frame.position).owners);
    });
  }

  return function observe(position, first, into) {
    readFrames(position);
    for (let player = 0; player < players; player++) {
      if (needsFree) writeSteps(variant, position, player, true, free[player]);
      if (needsWalks) writeSteps(variant, position, player, false, walks[player]);
    }
    table.forEach(({ kind, player, age, turns }, channel) => {
      const owner = player === NOBODY ? NOBODY : (player + first) % players;
      const frame = frames[age];
      for (let cell = 0; cell < cells; cell++) {
        const holds = frame.exists && shows(kind, owner, turns, cell, frame, position);
        into[cell * table.length + channel] = holds ? 1 : 0;
      }
    });
  };

  function shows(kind, owner, turns, cell, frame, position) {
    switch (kind) {
      case "stone": return frame.position.occupants[cell] >= 0 && Math.floor(frame.position.occupants[cell] / variant.stones) === owner;
      case "horizontal": return frame.position.horizontal[cell] === owner;
      case "vertical": return frame.position.vertical[cell] === owner;
      case "territory": return frame.owners[cell] === owner;
      case "neutral": return frame.owners[cell] === NOBODY;
      case "turn": return position.player === owner;
      case "reach": return free[owner][cell] === 0 ? mayStay(position, cell) : free[owner][cell] <= 2;
      case "within": return free[owner][cell] <= 2 * turns;
      case "walk": return walks[owner][cell] <= 2 * turns;
      case "nearer": return isNearer(free, owner, cell);
      case "walk_nearer": return isNearer(walks, owner, cell);
      case "stay_needs_room": return rules.stay_needs_room;
      case "limited_walls": return variant.walls !== NO_LIMIT;
      case "walls_left_over": return position.wallsLeft[owner] > turns;
      case "tie_region": return rules.tie.includes("region");
      case "tie_mover_loses": return rules.tie.includes("mover_loses");
      default: return true;  // playable
    }
  }

  function mayStay(position, cell) { return !rules.stay_needs_room || freeExits(variant, position, cell) !== 0; }

  /** Whether a player gets to a cell in fewer turns of two steps than every other player. */
  function isNearer(steps, owner, cell) {
    const turns = (steps[owner][cell] + 1) >> 1;
    if (turns > NEARER_TURNS) return false;
    for (let player = 0; player < players; player++) {
      if (player !== owner && (steps[player][cell] + 1) >> 1 <= turns) return false;
    }
    return true;
  }
}

const queue = new Int16Array(81);

/**
 * Write the fewest steps from a player's stones to each cell round walls, FAR where there is no way.
 * @param {boolean} stonesBlock whether stones are in the way, too
 * @param {Int8Array} into by cell
 */
export function writeSteps(variant, position, player, stonesBlock, into) {
  into.fill(FAR);
  let end = 0;
  for (let stone = player * variant.stones; stone < (player + 1) * variant.stones; stone++) {
    const cell = position.stones[stone];
    if (cell < 0) continue;
    into[cell] = 0;
    queue[end++] = cell;
  }
  for (let place = 0; place < end; place++) {
    const cell = queue[place];
    for (let side = 0; side < 4; side++) {
      if (!(position.exits[cell] >> side & 1)) continue;
      const next = variant.neighbours[cell * 4 + side];
      if (into[next] !== FAR || (stonesBlock && position.occupants[next] >= 0)) continue;
      into[next] = into[cell] + 1;
      queue[end++] = next;
    }
  }
}
