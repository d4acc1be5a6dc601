// Places on the board: cells are numbered row by row from the top left, sides clockwise from the top.

import { COLUMNS, SIDE_OFFSETS as OFFSETS, SIDE_WORDS as SIDES } from "./engine/rules.js";

export { COLOURS, LETTERS, SIDE_WORDS as SIDES, cellName } from "./engine/rules.js";
export const TILE = 44, GAP = 8, PITCH = TILE + GAP, HEAD = 26, EDGE = 10, STONE = 15;
export const SIDE_NAMES = ["above", "right of", "below", "left of"];
export const HORIZONTAL = 0, VERTICAL = 1;

export function columnName(column) { return COLUMNS[column]; }

export function extent(size) { return HEAD + size * PITCH - GAP + EDGE; }

export function corner(cell, size) {
  return [HEAD + (cell % size) * PITCH, HEAD + Math.floor(cell / size) * PITCH];
}

export function centre(cell, size) {
  const [x, y] = corner(cell, size);
  return [x + TILE / 2, y + TILE / 2];
}

// The cell on the other side of a side, or null beyond the border.
export function neighbour(cell, side, size) {
  const row = Math.floor(cell / size) + OFFSETS[side][0];
  const column = (cell % size) + OFFSETS[side][1];
  if (row < 0 || column < 0 || row >= size || column >= size) return null;
  return row * size + column;
}

// [orientation, cell] of the wall on a side: below its cell if horizontal, else right of it.
export function wallOnSide(cell, side, size) {
  const keeper = side === 0 || side === 3 ? neighbour(cell, side, size) : cell;
  return [side % 2 === 0 ? HORIZONTAL : VERTICAL, keeper];
}

export function wallBox([orientation, cell], size) {
  const [x, y] = corner(cell, size);
  if (orientation === HORIZONTAL) return { x: x - 2, y: y + TILE + 1, width: TILE + 4, height: GAP - 2 };
  return { x: x + TILE + 1, y: y - 2, width: GAP - 2, height: TILE + 4 };
}

// Every [orientation, cell] between two cells of the board.
export function innerEdges(size) {
  const found = [];
  for (let cell = 0; cell < size * size; cell++) {
    if (neighbour(cell, 2, size) !== null) found.push([HORIZONTAL, cell]);
    if (neighbour(cell, 1, size) !== null) found.push([VERTICAL, cell]);
  }
  return found;
}

// The cells that a stone passes on its way, both ends included, or just these where no way of at
// most two steps is open.
export function pathOf(origin, target, position) {
  const { size } = position, taken = new Set(position.stones.flat());
  const walled = new Set(position.walls.map(([orientation, cell]) => `${orientation},${cell}`));
  const reach = (cell) => SIDES.map((_, side) => [neighbour(cell, side, size), side])
    .filter(([next, side]) => next !== null && !walled.has(wallOnSide(cell, side, size).join()))
    .map(([next]) => next);
  const near = reach(origin);
  if (origin === target || near.includes(target)) return [origin, target];
  const middle = near.find((cell) => !taken.has(cell) && reach(cell).includes(target));
  return middle === undefined ? [origin, target] : [origin, middle, target];
}
