// A move in the making: a stone, then its cell, then its wall; or a cell for a placement. Each step
// can be undone. The position's list of legal moves decides what can be picked.

import { SIDES, cellName } from "./geometry.js";

export const NOTHING = Object.freeze({ origin: null, target: null });

// The stage: "place", "confirm", "stone", "cell" or "wall".
export function stageOf(position, pick) {
  if (position.inSetup) return pick.target === null ? "place" : "confirm";
  if (pick.origin === null) return "stone";
  return pick.target === null ? "cell" : "wall";
}

export function stonesToPick(position) {
  return Object.keys(position.legal.plays).map(Number);
}

export function cellsToPick(position, pick) {
  if (position.inSetup) return position.legal.cells;
  if (pick.origin === null) return [];
  return Object.keys(position.legal.plays[pick.origin] ?? {}).map(Number);
}

export function sidesToPick(position, pick) {
  if (pick.origin === null || pick.target === null) return [];
  return position.legal.plays[pick.origin]?.[pick.target] ?? [];
}

export function undo(pick) {
  if (pick.target !== null) return { origin: pick.origin, target: null };
  return NOTHING;
}

// What a click on a cell does: the new pick, with the move if it is complete; nothing where the rules forbid the cell.
export function chooseCell(position, pick, cell) {
  const stage = stageOf(position, pick);
  if (stage === "place" || stage === "confirm") {
    if (!position.legal.cells.includes(cell)) return {};
    if (pick.target === cell) return { pick: NOTHING, move: cellName(cell, position.size) };
    return { pick: { origin: null, target: cell } };
  }
  const stones = stonesToPick(position), targets = cellsToPick(position, pick);
  if (stage === "stone") return stones.includes(cell) ? { pick: { origin: cell, target: null } } : {};
  // The stone's own cell is where it stays; when it is up to choose a wall, a click steps back.
  if (stage === "cell" && targets.includes(cell)) return { pick: { origin: pick.origin, target: cell } };
  if (stage === "cell" && cell === pick.origin) return { pick: NOTHING };
  if (stage === "wall" && cell === pick.target) return { pick: undo(pick) };
  if (stage === "wall" && targets.includes(cell)) return { pick: { origin: pick.origin, target: cell } };
  return stones.includes(cell) ? { pick: { origin: cell, target: null } } : {};
}

// The move that a wall completes, or null if the side is not free.
export function chooseSide(position, pick, side) {
  if (!sidesToPick(position, pick).includes(side)) return null;
  const { size } = position;
  return `${cellName(pick.origin, size)}->${cellName(pick.target, size)}:${SIDES[side]}`;
}

export function advice(position, pick, hasPointer) {
  const stage = stageOf(position, pick), { size } = position;
  const again = hasPointer ? "click it again, or press Enter," : "tap it again";
  const words = {
    place: "Pick a cell for your stone",
    confirm: `Stone on ${pick.target === null ? "" : cellName(pick.target, size)}: ${again} to place it`,
    stone: "Pick one of your stones",
    cell: cellsToPick(position, pick).includes(pick.origin)
      ? `Choose a cell for it, or ${hasPointer ? "click" : "tap"} the stone again to stay` : "Choose a cell for it",
    wall: "Pick the wall to build",
  };
  return words[stage];
}
