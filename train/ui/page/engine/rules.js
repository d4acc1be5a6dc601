// The rules of Wall Go: one board as plain arrays, its legal actions, its plies, its end and its notation.
//
// Cells, sides, moves and public actions are numbered as in wallgo_jax (board/geometry.py, game/actions.py):
//
//     play    action = cell * 52 + move * 4 + side     cell: where the stone stands
//     setup   action = N * 52 + cell
//     slot    stone * 52 + move * 4 + side in play, the cell in setup; the numbering of the search
//
// API, all plain functions; `variant` is what `makeVariant` returns, `position` what `initialPosition` returns:
//
//     PRESETS, readRules(nameOrFields), nameOf(rules), sameRules(one, other)     rules as JSON, the fields of Rules.to_dict
//     makeVariant(rules)                                       the tables of one rule set
//     initialPosition(variant), clonePosition(position), copyPosition(target, source)
//     inSetup(variant, position)
//     legalActions(variant, position)                          public ids, ascending; [] after the end
//     legalSlots(variant, position, into)                      the same as slots; returns how many
//     play(variant, position, action)                          a new position; throws where illegal
//     playSlot(variant, position, slot)                        in place, unchecked: for the search
//     actionOfSlot, slotOfAction(variant, position, number)
//     analyse(variant, position)                               owners, territory, largest regions, separated
//     result(variant, position)                                { winner, rewards, territory, largest, owners } or null
//     takeBack(variant, position)                              in place, as far as the trail goes
//     reach(variant, position, player)                         cells where a move of the player can end
//     formatAction(action, grid, sides), parseAction(text, grid), cellName(cell, grid), parseCell(text, grid)

export const MOVE_OFFSETS = [[0, 0], [-1, 0], [1, 0], [0, -1], [0, 1], [-2, 0], [2, 0], [0, -2], [0, 2], [-1, -1], [-1, 1], [1, -1], [1, 1]];
export const SIDE_OFFSETS = [[-1, 0], [0, 1], [1, 0], [0, -1]];
export const COLOURS = ["Red", "Blue", "Green", "Yellow"];
export const LETTERS = "RBGY";
export const COLUMNS = "ABCDEFGHI";
export const SIDE_WORDS = ["up", "right", "down", "left"];
export const SIDE_ARROWS = ["↑", "→", "↓", "←"];
export const CANONICAL_SIDES = ["W0", "W1", "W2", "W3"];
export const NOT_PLACED = -1;
export const NOBODY = -1;
export const NO_LIMIT = 10000;
export const PLAYS_PER_STONE = 52;
export const TRAIL_LENGTH = 4;
export const MIN_GRID = 3;
export const MAX_GRID = 9;
const MAX_STONES = 4;
const MAX_WALLS = 1000;
const TIE_RULES = ["region", "mover_loses"];
const OPPOSITE = [2, 3, 0, 1];
// The ways to walk each move, as sides; a diagonal has two.
export const MOVE_PATHS = MOVE_OFFSETS.map(([down, across]) => {
  const vertical = down < 0 ? 0 : 2;
  const horizontal = across < 0 ? 3 : 1;
  if (down && across) return [[vertical, horizontal], [horizontal, vertical]];
  return [Array(Math.abs(down + across)).fill(down ? vertical : horizontal)];
});

/**
 * Rules as `wallgo_jax.Rules.to_dict` writes them.
 * @typedef {{size: number, players: number, stones: number, start: number[][], order: number[], walls: number | null,
 *   stay_needs_room: boolean, tie: string[]}} Rules
 *
 * @typedef {object} Variant
 * @property {Rules} rules
 * @property {number} size of the board
 * @property {number} grid side of the grid that numbers the cells; the board lies in its top-left corner
 * @property {number} cells grid * grid
 * @property {number} players
 * @property {number} stones room for stones of a player
 * @property {number} placements plies of the setup
 * @property {number} walls each player may build, or NO_LIMIT
 * @property {number} slots size of the compact action space
 * @property {Uint8Array} playable by cell
 * @property {Int16Array} neighbours by cell * 4 + side, -1 where there is none
 * @property {Int16Array} ends by cell * 13 + move: where the move ends, -1 off the board
 *
 * All that a ply changes. Walls are kept as in wallgo_jax: the one below a cell or right of it.
 * @typedef {object} Position
 * @property {Int8Array} stones by player * variant.stones + stone: its cell or NOT_PLACED
 * @property {Int8Array} occupants by cell: player * variant.stones + stone, or -1
 * @property {Int8Array} horizontal by cell: the builder of the wall below it, or -1
 * @property {Int8Array} vertical by cell: the builder of the wall right of it, or -1
 * @property {Uint8Array} exits by cell: bit `side` is set where neither border nor wall is
 * @property {Int16Array} wallsLeft by player
 * @property {Int8Array} trail of the last four plies, newest first: stone, cell it left, side walled; -1 for none
 * @property {number} player to move
 * @property {number} ply plies played
 * @property {boolean} over
 * @property {number} mover of the last ply, or -1
 */

const CORNERS = [[5, 1, 0], [1, 5, 0], [1, 1, 1], [5, 5, 1]];
const EMPTY = { size: 7, players: 2, stones: 4, start: [], order: [0, 1, 1, 0, 0, 1, 1, 0], walls: null, stay_needs_room: false, tie: ["region"] };
const PLAY_WALL_GO = { ...EMPTY, walls: 20, stay_needs_room: true, tie: [] };

/** @type {Record<string, Rules>} */
export const PRESETS = {
  "wallzero-4stone": { ...EMPTY, start: CORNERS, order: [0, 1, 1, 0] },
  "wallzero-empty": EMPTY,
  "hkoi": { ...EMPTY, tie: ["region", "mover_loses"] },
  "playwallgo-2p": { ...PLAY_WALL_GO, order: [0, 1, 0, 1, 0, 1, 0, 1] },
  "playwallgo-3p": { ...PLAY_WALL_GO, players: 3, stones: 2, order: [0, 1, 2, 0, 1, 2] },
  "playwallgo-4p": { ...PLAY_WALL_GO, players: 4, stones: 2, order: [0, 1, 2, 3, 0, 1, 2, 3] },
};

/**
 * Checked rules of a preset's name or of fields; fields that are left out are those of `wallzero-empty`.
 * Throws an Error that says which field is wrong and what is allowed.
 * @param {string | Partial<Rules>} given
 * @returns {Rules}
 */
export function readRules(given) {
  if (typeof given === "string") {
    if (!Object.hasOwn(PRESETS, given)) refuse(`unknown preset '${given}'; known presets: ${Object.keys(PRESETS).join(", ")}`);
    return PRESETS[given];
  }
  if (given === null || typeof given !== "object" || Array.isArray(given)) refuse("not a preset's name or an object of fields");
  for (const key of Object.keys(given)) {
    if (!Object.hasOwn(EMPTY, key)) refuse(`unknown key '${key}'; known keys: ${Object.keys(EMPTY).join(", ")}`);
  }
  const rules = { ...EMPTY, ...given };
  checkRange("size", rules.size, MIN_GRID, MAX_GRID);
  checkRange("players", rules.players, 2, 4);
  checkRange("stones", rules.stones, 1, MAX_STONES);
  if (rules.walls !== null) checkRange("walls", rules.walls, 1, MAX_WALLS);
  if (typeof rules.stay_needs_room !== "boolean") refuse(`stay_needs_room is ${told(rules.stay_needs_room)}, not true or false`);
  for (const key of ["start", "order", "tie"]) checkList(key, rules[key]);
  checkStones(rules);
  for (const rule of rules.tie) {
    if (!TIE_RULES.includes(rule)) refuse(`tie has ${told(rule)}, not one of ${TIE_RULES.join(", ")}`);
  }
  if (new Set(rules.tie).size !== rules.tie.length) refuse(`tie names a rule twice: ${told(rules.tie)}`);
  firstPlayer(rules);
  return rules;
}

function checkStones(rules) {
  const { size, players, stones, start, order } = rules;
  const taken = new Set();
  for (const stone of start) {
    checkList("start", stone);
    if (stone.length !== 3) refuse(`start has ${told(stone)}, not [row, column, player]`);
    const [row, column, player] = stone;
    checkRange("start: row", row, 0, size - 1);
    checkRange("start: column", column, 0, size - 1);
    checkRange("start: player", player, 0, players - 1);
    const cell = row * size + column;
    if (taken.has(cell)) refuse(`start puts two stones on row ${row}, column ${column}`);
    taken.add(cell);
  }
  if (players * stones > size ** 2) refuse(`${players} players with ${stones} stones each do not fit on ${size}x${size} cells`);
  for (const player of order) checkRange("order: player", player, 0, players - 1);
  for (let player = 0; player < players; player++) {
    const total = start.filter((stone) => stone[2] === player).length + order.filter((each) => each === player).length;
    if (total !== stones) refuse(`start and order give player ${player} ${total} stones, not ${stones}; name the player of each placement in order`);
  }
}

function refuse(reason) { throw new Error(`rules: ${reason}`); }

function told(value) { return JSON.stringify(value); }

function checkRange(name, value, low, high) {
  if (!Number.isInteger(value) || value < low || value > high) refuse(`${name} is ${told(value)}, not a whole number from ${low} to ${high}`);
}

function checkList(name, value) {
  if (!Array.isArray(value)) refuse(`${name} is ${told(value)}, not a list`);
}

/** The preset's name, or `custom`. */
export function nameOf(rules) { return Object.keys(PRESETS).find((name) => sameRules(PRESETS[name], rules)) ?? "custom"; }

export function sameRules(one, other) { return Object.keys(EMPTY).every((key) => told(one[key]) === told(other[key])); }

function firstPlayer(rules) {
  if (rules.order.length) return rules.order[0];
  if (!rules.stay_needs_room) return 0;
  const { size, start } = rules;
  const taken = new Set(start.map(([row, column]) => row * size + column));
  const movers = start.filter(([row, column]) => SIDE_OFFSETS.some(([down, across]) => {
    const to = [row + down, column + across];
    return to.every((place) => place >= 0 && place < size) && !taken.has(to[0] * size + to[1]);
  }));
  if (!movers.length) refuse("start fills the board, and stay_needs_room then leaves nobody a turn");
  return Math.min(...movers.map((stone) => stone[2]));
}

/**
 * The tables of a rule set, made once a game.
 * @param {Rules} rules checked ones, of `readRules`
 * @param {{grid?: number, stones?: number}} room a larger grid, and room for more stones, as in `wallgo_jax.make`
 * @returns {Variant}
 */
export function makeVariant(rules, { grid = rules.size, stones = rules.stones } = {}) {
  if (grid < rules.size) refuse(`a board of size ${rules.size} does not fit in a grid of ${grid}`);
  if (stones < rules.stones) refuse(`${rules.stones} stones a player do not fit where ${stones} do`);
  const cells = grid * grid;
  const at = (row, column) => (row >= 0 && row < rules.size && column >= 0 && column < rules.size ? row * grid + column : -1);
  const playable = new Uint8Array(cells);
  const neighbours = new Int16Array(cells * 4).fill(-1);
  const ends = new Int16Array(cells * MOVE_OFFSETS.length).fill(-1);
  for (let row = 0; row < rules.size; row++) {
    for (let column = 0; column < rules.size; column++) {
      const cell = at(row, column);
      playable[cell] = 1;
      SIDE_OFFSETS.forEach(([down, across], side) => { neighbours[cell * 4 + side] = at(row + down, column + across); });
      MOVE_OFFSETS.forEach(([down, across], move) => { ends[cell * 13 + move] = at(row + down, column + across); });
    }
  }
  return {
    rules, size: rules.size, grid, cells, players: rules.players, stones, placements: rules.order.length,
    walls: rules.walls ?? NO_LIMIT, slots: Math.max(stones * PLAYS_PER_STONE, cells), playable, neighbours, ends,
  };
}

/** @param {Variant} variant @returns {Position} before the first ply */
export function initialPosition(variant) {
  const { rules, grid, cells, players, stones, neighbours } = variant;
  const position = {
    stones: new Int8Array(players * stones).fill(NOT_PLACED), occupants: new Int8Array(cells).fill(-1),
    horizontal: new Int8Array(cells).fill(NOBODY), vertical: new Int8Array(cells).fill(NOBODY), exits: new Uint8Array(cells),
    wallsLeft: new Int16Array(players).fill(variant.walls), trail: new Int8Array(3 * TRAIL_LENGTH).fill(-1),
    player: firstPlayer(rules), ply: 0, over: false, mover: NOBODY,
  };
  for (const [row, column, player] of rules.start) {
    position.occupants[row * grid + column] = putStone(variant, position, player, row * grid + column);
  }
  for (let edge = 0; edge < neighbours.length; edge++) {
    if (neighbours[edge] >= 0) position.exits[edge >> 2] |= 1 << (edge & 3);
  }
  return position;
}

function putStone(variant, position, player, cell) {
  let stone = player * variant.stones;
  while (position.stones[stone] !== NOT_PLACED) stone++;
  position.stones[stone] = cell;
  return stone;
}

/** @param {Position} position @returns {Position} */
export function clonePosition(position) {
  const copy = { ...position };
  for (const key of ARRAYS) copy[key] = position[key].slice();
  return copy;
}

const ARRAYS = ["stones", "occupants", "horizontal", "vertical", "exits", "wallsLeft", "trail"];

/** Make `target`, a position of the same variant, equal to `source`. */
export function copyPosition(target, source) {
  target.stones.set(source.stones);
  target.occupants.set(source.occupants);
  target.horizontal.set(source.horizontal);
  target.vertical.set(source.vertical);
  target.exits.set(source.exits);
  target.wallsLeft.set(source.wallsLeft);
  target.trail.set(source.trail);
  target.player = source.player;
  target.ply = source.ply;
  target.over = source.over;
  target.mover = source.mover;
}

/** Whether stones are still being placed. */
export function inSetup(variant, position) { return position.ply < variant.placements; }

/** The sides of a cell over which a step can be made: no wall, and an empty cell behind. */
export function freeExits(variant, position, cell) {
  let free = 0;
  for (let side = 0; side < 4; side++) {
    if (position.exits[cell] >> side & 1 && position.occupants[variant.neighbours[cell * 4 + side]] < 0) free |= 1 << side;
  }
  return free;
}

/**
 * Write the legal slots of the player to move, ascending.
 * @param {Variant} variant
 * @param {Position} position
 * @param {Int16Array} into at least variant.slots long
 * @returns {number} of slots; 0 after the end
 */
export function legalSlots(variant, position, into) {
  if (position.over) return 0;
  let count = 0;
  if (inSetup(variant, position)) {
    for (let cell = 0; cell < variant.cells; cell++) {
      if (variant.playable[cell] && position.occupants[cell] < 0) into[count++] = cell;
    }
    return count;
  }
  if (position.wallsLeft[position.player] <= 0) return 0;
  const { stones, neighbours, ends } = variant;
  const first = position.player * stones;
  for (let stone = 0; stone < stones; stone++) {
    const cell = position.stones[first + stone];
    if (cell === NOT_PLACED) continue;
    const free = freeExits(variant, position, cell);
    // The moves that can be walked, as bits.
    let moves = free || !variant.rules.stay_needs_room ? 1 : 0;
    for (let side = 0; side < 4; side++) {
      if (!(free >> side & 1)) continue;
      moves |= 1 << ONE_STEP[side];
      const middle = neighbours[cell * 4 + side];
      const further = freeExits(variant, position, middle);
      for (let next = 0; next < 4; next++) {
        if (further >> next & 1) moves |= TWO_STEPS[side * 4 + next];
      }
    }
    for (let move = 0; move < 13; move++) {
      if (!(moves >> move & 1)) continue;
      const open = position.exits[ends[cell * 13 + move]];
      for (let side = 0; side < 4; side++) {
        if (open >> side & 1) into[count++] = stone * PLAYS_PER_STONE + move * 4 + side;
      }
    }
  }
  return count;
}

const ONE_STEP = SIDE_OFFSETS.map(([down, across]) => moveOf(down, across));
// Back to the start is no move of two steps.
const TWO_STEPS = Array.from({ length: 16 }, (_, way) => {
  const [first, second] = [SIDE_OFFSETS[way >> 2], SIDE_OFFSETS[way & 3]];
  const move = moveOf(first[0] + second[0], first[1] + second[1]);
  return move ? 1 << move : 0;
});

function moveOf(down, across) { return MOVE_OFFSETS.findIndex((offset) => offset[0] === down && offset[1] === across); }

const scratch = new Int16Array(MAX_STONES * PLAYS_PER_STONE);

/** @returns {number[]} the public ids of the legal actions, ascending; none after the end */
export function legalActions(variant, position) {
  const count = legalSlots(variant, position, scratch);
  const actions = Array.from(scratch.subarray(0, count), (slot) => actionOfSlot(variant, position, slot));
  return actions.sort((a, b) => a - b);
}

/** The public action of a legal slot. */
export function actionOfSlot(variant, position, slot) {
  if (inSetup(variant, position)) return variant.cells * PLAYS_PER_STONE + slot;
  const stone = Math.floor(slot / PLAYS_PER_STONE);
  return position.stones[position.player * variant.stones + stone] * PLAYS_PER_STONE + slot % PLAYS_PER_STONE;
}

/** The slot of a public action, legal or not; -1 where it is of the other phase or names no stone of the mover. */
export function slotOfAction(variant, position, action) {
  const first = variant.cells * PLAYS_PER_STONE;
  if (!Number.isInteger(action) || action < 0 || action >= first + variant.cells) return -1;
  if (inSetup(variant, position) !== action >= first) return -1;
  if (action >= first) return action - first;
  const stone = position.occupants[Math.floor(action / PLAYS_PER_STONE)];
  if (stone < 0 || Math.floor(stone / variant.stones) !== position.player) return -1;
  return stone % variant.stones * PLAYS_PER_STONE + action % PLAYS_PER_STONE;
}

/** @returns {boolean} whether a public action is legal */
export function isLegal(variant, position, action) {
  const slot = slotOfAction(variant, position, action);
  return slot >= 0 && scratch.subarray(0, legalSlots(variant, position, scratch)).includes(slot);
}

/**
 * The position after a public action.
 * @param {Variant} variant
 * @param {Position} position stays as it is
 * @param {number} action
 * @returns {Position}
 */
export function play(variant, position, action) {
  if (!isLegal(variant, position, action)) throw new Error(position.over ? "the game is over" : `action ${action} is not legal`);
  const after = clonePosition(position);
  playSlot(variant, after, slotOfAction(variant, position, action));
  return after;
}

/** Play a legal slot in place. Returns the `analyse` of the board after it, which the next call overwrites. */
export function playSlot(variant, position, slot) {
  const mover = position.player;
  let cell = slot, stone, origin = NOT_PLACED, side = -1;
  if (inSetup(variant, position)) {
    stone = putStone(variant, position, mover, cell);
  } else {
    stone = mover * variant.stones + Math.floor(slot / PLAYS_PER_STONE);
    origin = position.stones[stone];
    cell = variant.ends[origin * 13 + (slot % PLAYS_PER_STONE >> 2)];
    side = slot & 3;
    position.occupants[origin] = -1;
    position.stones[stone] = cell;
    buildWall(variant, position, cell, side, mover);
    position.wallsLeft[mover]--;
  }
  position.occupants[cell] = stone;
  position.trail.copyWithin(3, 0, 3 * (TRAIL_LENGTH - 1));
  position.trail[0] = stone;
  position.trail[1] = origin;
  position.trail[2] = side;
  position.ply++;
  position.mover = mover;
  return settle(variant, position, mover);
}

function buildWall(variant, position, cell, side, builder) {
  const neighbour = variant.neighbours[cell * 4 + side];
  const keeper = side === 0 || side === 3 ? neighbour : cell;
  (side & 1 ? position.vertical : position.horizontal)[keeper] = builder;
  position.exits[cell] &= ~(1 << side);
  position.exits[neighbour] &= ~(1 << OPPOSITE[side]);
}

/** Take back the newest ply of the trail in place: stones, walls and the trail alone; all else is undefined. */
export function takeBack(variant, position) {
  const [stone, origin, side] = position.trail;
  const cell = position.stones[stone];
  position.occupants[cell] = -1;
  position.stones[stone] = origin;
  if (origin >= 0) position.occupants[origin] = stone;
  if (side >= 0) {
    const neighbour = variant.neighbours[cell * 4 + side];
    (side & 1 ? position.vertical : position.horizontal)[side === 0 || side === 3 ? neighbour : cell] = NOBODY;
    position.exits[cell] |= 1 << side;
    position.exits[neighbour] |= 1 << OPPOSITE[side];
  }
  position.trail.copyWithin(0, 3);
  position.trail.fill(-1, 3 * (TRAIL_LENGTH - 1));
}

/** Complete a position after a ply: who moves next, and whether the game is over. */
function settle(variant, position, mover) {
  const found = analyse(variant, position);
  if (inSetup(variant, position)) {
    position.player = variant.rules.order[position.ply];
    return found;
  }
  const seat = position.ply === variant.placements ? 0 : mover + 1;
  let ahead = 0;
  while (ahead < variant.players && !hasTurn(variant, position, (seat + ahead) % variant.players)) ahead++;
  const isStuck = ahead === variant.players;
  position.player = isStuck ? mover : (seat + ahead) % variant.players;
  position.over = isStuck || found.separated;
  return found;
}

/** Whether a player has a wall left and a stone that can use it: one that steps can wall the side it came over. */
function hasTurn(variant, position, player) {
  if (position.wallsLeft[player] <= 0) return false;
  for (let stone = player * variant.stones; stone < (player + 1) * variant.stones; stone++) {
    const cell = position.stones[stone];
    if (cell === NOT_PLACED) continue;
    if (variant.rules.stay_needs_room ? freeExits(variant, position, cell) : position.exits[cell]) return true;
  }
  return false;
}

/**
 * The board's regions. One object serves all calls: copy what must last.
 * @typedef {{owners: Int8Array, territory: Int16Array, largest: Int16Array, separated: boolean}} Analysis owners by
 *   cell: the player all of whose stones stand in its region, or NOBODY
 */
/** @type {Analysis} */
const analysis = { owners: new Int8Array(0), territory: new Int16Array(4), largest: new Int16Array(4), separated: false };
const OWNERS = Array.from({ length: MAX_GRID + 1 }, (_, grid) => new Int8Array(grid * grid));
const queue = new Int16Array(MAX_GRID * MAX_GRID);
const UNSEEN = -2;

/** @param {Variant} variant @param {Position} position @returns {Analysis} */
export function analyse(variant, position) {
  const { stones, neighbours } = variant;
  const owners = OWNERS[variant.grid].fill(UNSEEN);
  analysis.owners = owners;
  analysis.territory.fill(0);
  analysis.largest.fill(0);
  analysis.separated = true;
  for (let index = 0; index < position.stones.length; index++) {
    const start = position.stones[index];
    if (start < 0 || owners[start] !== UNSEEN) continue;
    const owner = Math.floor(index / stones);
    owners[start] = owner;
    queue[0] = start;
    let end = 1, shared = false;
    for (let place = 0; place < end; place++) {
      const cell = queue[place];
      const occupant = position.occupants[cell];
      // Players' stones have indices in their order, and an earlier player's would have taken the region.
      if (occupant >= (owner + 1) * stones) shared = true;
      const exits = position.exits[cell];
      for (let side = 0; side < 4; side++) {
        const next = neighbours[cell * 4 + side];
        if (exits >> side & 1 && owners[next] === UNSEEN) {
          owners[next] = owner;
          queue[end++] = next;
        }
      }
    }
    if (shared) {
      analysis.separated = false;
      for (let place = 0; place < end; place++) owners[queue[place]] = NOBODY;
    } else {
      analysis.territory[owner] += end;
      if (end > analysis.largest[owner]) analysis.largest[owner] = end;
    }
  }
  for (let cell = 0; cell < owners.length; cell++) {
    if (owners[cell] === UNSEEN) owners[cell] = NOBODY;
  }
  return analysis;
}

/**
 * The rewards of a finished game: +1 to a sole winner and -1 / (players - 1) to each other, zeros for a draw.
 * @param {Variant} variant
 * @param {Position} position a finished one
 * @param {Analysis} found of its board
 * @param {Float32Array} into by player
 */
export function writeRewards(variant, position, found, into) {
  const winner = winnerOf(variant, position, found);
  const share = -1 / (variant.players - 1);
  for (let player = 0; player < variant.players; player++) {
    into[player] = winner === NOBODY ? 0 : player === winner ? 1 : share;
  }
}

function winnerOf(variant, position, found) {
  let level = mostOf(found.territory, (1 << variant.players) - 1);
  for (const rule of variant.rules.tie) {
    if (!(level & (level - 1))) break;
    level = rule === "region" ? mostOf(found.largest, level) : level & ~(1 << position.mover);
  }
  return level && !(level & (level - 1)) ? 31 - Math.clz32(level) : NOBODY;
}

/** The players, as bits, who have the most among some. */
function mostOf(numbers, among) {
  let most = -1, who = 0;
  for (let player = 0; among >> player; player++) {
    if (!(among >> player & 1) || numbers[player] < most) continue;
    who = numbers[player] > most ? 1 << player : who | 1 << player;
    most = numbers[player];
  }
  return who;
}

/**
 * @param {Variant} variant
 * @param {Position} position
 * @returns {{winner: number, rewards: number[], territory: number[], largest: number[], owners: number[]} | null} null
 *   while the game goes on; winner NOBODY for a draw
 */
export function result(variant, position) {
  if (!position.over) return null;
  const found = analyse(variant, position);
  const rewards = new Float32Array(variant.players);
  writeRewards(variant, position, found, rewards);
  return {
    winner: rewards.indexOf(1), rewards: [...rewards], territory: [...found.territory.subarray(0, variant.players)],
    largest: [...found.largest.subarray(0, variant.players)], owners: [...found.owners],
  };
}

/** The cells, ascending, where a move of a player's stones can end; walls that it could build do not count. */
export function reach(variant, position, player) {
  const cells = new Set();
  for (let stone = player * variant.stones; stone < (player + 1) * variant.stones; stone++) {
    const cell = position.stones[stone];
    if (cell === NOT_PLACED) continue;
    const free = freeExits(variant, position, cell);
    if (free || !variant.rules.stay_needs_room) cells.add(cell);
    for (const first of stepsFrom(variant, cell, free)) {
      cells.add(first);
      for (const second of stepsFrom(variant, first, freeExits(variant, position, first))) cells.add(second);
    }
  }
  return [...cells].sort((a, b) => a - b);
}

function stepsFrom(variant, cell, free) {
  return [0, 1, 2, 3].filter((side) => free >> side & 1).map((side) => variant.neighbours[cell * 4 + side]);
}

/** The name of a cell, `A1` at the top left. */
export function cellName(cell, grid) { return `${COLUMNS[cell % grid]}${Math.floor(cell / grid) + 1}`; }

export function parseCell(text, grid) {
  const column = text ? COLUMNS.indexOf(text[0].toUpperCase()) : -1;
  const row = /^[0-9]+$/.test(text.slice(1)) ? Number(text.slice(1)) : 0;
  if (column < 0 || column >= grid || row < 1 || row > grid) {
    throw new Error(`'${text}' is not a cell; cells are A1 to ${COLUMNS[grid - 1]}${grid}`);
  }
  return (row - 1) * grid + column;
}

/** Write a public action as `C3` or `B6->B5:W0`, with other names of the sides if given. */
export function formatAction(action, grid, sides = CANONICAL_SIDES) {
  const first = grid * grid * PLAYS_PER_STONE;
  if (action >= first) return cellName(action - first, grid);
  const cell = Math.floor(action / PLAYS_PER_STONE);
  const [down, across] = MOVE_OFFSETS[action % PLAYS_PER_STONE >> 2];
  const row = Math.floor(cell / grid) + down, column = cell % grid + across;
  if (row < 0 || row >= grid || column < 0 || column >= grid) throw new Error(`action ${action} moves off the grid from ${cellName(cell, grid)}`);
  return `${cellName(cell, grid)}->${cellName(row * grid + column, grid)}:${sides[action & 3]}`;
}

/** The public action of a text: any of the forms of docs, such as `C3`, `B6->B5:up` or `R B6->B5:W0`. */
export function parseAction(text, grid) {
  const words = text.trim().split(/\s+/);
  const word = words.pop();
  if (words.length > 1 || !word) throw new Error(`'${text}' is not a move; write C3, B6->B5:up or R B6->B5:up`);
  if (words.length && (words[0].length > 1 || !LETTERS.includes(words[0].toUpperCase()))) {
    throw new Error(`'${words[0]}' is not a colour; colours are ${[...LETTERS].join(", ")}`);
  }
  if (!/->|→|:/.test(word)) return grid * grid * PLAYS_PER_STONE + parseCell(word, grid);
  const parts = /^([A-Za-z]\w*)(?:->|→)(\w*):(.*)$/.exec(word);
  if (!parts) throw new Error(`'${word}' is not a play; write it like B6->B5:up`);
  const [origin, target] = [parseCell(parts[1], grid), parseCell(parts[2], grid)];
  const sides = [SIDE_WORDS, SIDE_ARROWS, CANONICAL_SIDES].map((names) => names.findIndex((name) => name.toUpperCase() === parts[3].toUpperCase()));
  const side = Math.max(...sides);
  if (side < 0) throw new Error(`wall side '${parts[3]}' is not one of ${SIDE_WORDS.join(", ")}, ${SIDE_ARROWS.join(" ")}, W0 to W3`);
  const move = moveOf(Math.floor(target / grid) - Math.floor(origin / grid), target % grid - origin % grid);
  if (move < 0) throw new Error(`${parts[1]}->${parts[2]} is more than two steps`);
  return origin * PLAYS_PER_STONE + move * 4 + side;
}
